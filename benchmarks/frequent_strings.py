"""How many of the ten most frequent strings are found, by how many characters prefixes grow at a time.

    python benchmarks/frequent_strings.py [--quick]

Strings are drawn at random and have frequencies by Zipf's law. Which step is chosen by default is marked; it follows
from alphabet, length and the number of prefixes that are kept, and nothing was chosen by these cases but the rule that
fewer groups are better.
"""

import sys
import time

import numpy as np

from defocus.local import HeavyHitters, heavy_hitters
from defocus.noise.testing import seeded

CASES = [
    ("abcdefgh", 6, 100_000, 2, 1.2, 2000),
    ("ab", 16, 100_000, 2, 1.2, 2000),
    ("abcdefghij", 8, 200_000, 2, 1.1, 2000),
    ("abcdefghijklmnopqrstuvwxyz", 6, 400_000, 1, 1.2, 2000),
    ("abcdefghijklmnopqrstuvwxyz", 6, 400_000, 1, 1.0, 50),
]


def main() -> None:
    draw, runs = np.random.default_rng(17), 2 if "--quick" in sys.argv else 16
    print("strings | letters | length | people | epsilon | step | groups | recall of 10 | s")
    for alphabet, length, people, epsilon, slope, number in CASES:
        strings = list(dict.fromkeys("".join(draw.choice(list(alphabet), length)) for _ in range(number)))
        weights = np.arange(1.0, len(strings) + 1) ** -slope
        counts = draw.multinomial(people, weights / weights.sum())
        values = [text for text, times in zip(strings, counts, strict=True) for _ in range(times)]
        best = {strings[i] for i in np.argsort(-counts, kind="stable")[:10]}
        usual = HeavyHitters(alphabet, length, epsilon)
        for step in sorted({1, 2, 3, 4, usual.step}):
            if 16 * (len(alphabet) + 1) ** step > 1 << 18:
                continue
            began, recall = time.perf_counter(), []
            for seed in range(runs):
                found = heavy_hitters(
                    values, alphabet=alphabet, length=length, epsilon=epsilon, step=step, bits=seeded(seed)
                )
                recall.append(len(best & set(found.keys["value"][:10])) / 10)
            mark = " (default)" if step == usual.step else ""
            row = [number, len(alphabet), length, people, epsilon, f"{step}{mark}", -(-length // step)]
            told = [f"{np.mean(recall):.2f}", f"{(time.perf_counter() - began) / runs:.1f}"]
            print(" | ".join(map(str, [*row, *told])), flush=True)


if __name__ == "__main__":
    main()

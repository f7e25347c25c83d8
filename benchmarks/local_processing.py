"""Squared errors of local estimates after processing: ours beside iterative Bayes, on collections of several shapes.

    python benchmarks/local_processing.py

Counts of optimised unary encoding are drawn from their exact law. Iterative Bayes is expectation maximisation with a
uniform start, as multi-freq-ldpy has it (Arcolezi et al. 2022; ElSalamouny, Palamidessi 2020), and stops after 10 000
rounds or when nothing moves by 1e-12. Shapes and sizes had no part in the choice of constants but for the first.
"""

import numpy as np

from defocus.local.estimates import Array, empirical_bayes, norm_sub

CASES = [
    (2, 100, 10_000, "zipf 1.3"),
    (2, 50, 10_000, "zipf 1.0"),
    (1, 200, 50_000, "zipf 1.6"),
    (0.5, 1000, 200_000, "zipf 1.0"),
    (2, 64, 5_000, "flat"),
    (2, 100, 10_000, "geometric"),
    (1, 256, 100_000, "bell"),
    (2, 500, 20_000, "a few and many"),
    (4, 30, 2_000, "zipf 1.3"),
    (2, 25, 3_000, "steps"),
]
REPETITIONS = 40


def shape(name: str, size: int) -> Array:
    places = np.arange(size)
    if name.startswith("zipf"):
        shares = (places + 1.0) ** -float(name.split()[1])
    else:
        shares = {
            "flat": np.ones(size),
            "geometric": 0.8**places,
            "bell": np.exp(-0.5 * ((places - size / 2) / (size / 8)) ** 2),
            "a few and many": np.where(places < 3, 100.0, 0.1),
            "steps": 1.0 + places // 5,
        }[name]
    return np.asarray(shares / shares.sum())


def iterative_bayes(seen: Array, people: int, present: float, absent: float) -> Array:
    shares = np.full(len(seen), 1 / len(seen))
    for _ in range(10_000):
        weights = seen / (absent + (present - absent) * shares)
        new = shares * ((present - absent) * weights + absent * weights.sum())
        new /= new.sum()
        if np.abs(new - shares).max() < 1e-12:
            break
        shares = new
    return shares * people


def main() -> None:
    drawn = np.random.default_rng(11)
    print(
        "epsilon | categories | people | shape | norm-sub | iterative Bayes | ours | ours / norm-sub | ours / iterative"
    )
    for epsilon, size, people, name in CASES:
        present, absent = 0.5, 1 / (np.exp(epsilon) + 1)
        gap = present - absent
        errors = np.zeros(3)
        for _ in range(REPETITIONS):
            truth = drawn.multinomial(people, shape(name, size))
            seen = drawn.binomial(truth, present) + drawn.binomial(people - truth, absent)
            counts = (seen - people * absent) / gap
            of_one = present * (1 - present) - absent * (1 - absent)
            variances = (people * absent * (1 - absent) + of_one * counts.clip(0, people)) / gap**2
            estimates = (
                norm_sub(counts, people),
                iterative_bayes(seen, people, present, absent),
                empirical_bayes(counts, people, variances),
            )
            errors += [((each - truth) ** 2).mean() / REPETITIONS for each in estimates]
        ratios = [f"{errors[2] / errors[other]:.2f}" for other in (0, 1)]
        print(" | ".join([str(epsilon), str(size), str(people), name, *(f"{error:.0f}" for error in errors), *ratios]))


if __name__ == "__main__":
    main()

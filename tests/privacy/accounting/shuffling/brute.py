"""Shuffled releases of few users, worked out in full: every multiset of reports with its probability."""

import itertools
import math
from collections.abc import Sequence

Law = Sequence[float]
Multisets = dict[tuple[int, ...], float]


def shuffled_law(laws: Sequence[Law]) -> Multisets:
    """How often each report occurs, when each user draws one from a law of their own."""
    found: Multisets = {(0,) * len(laws[0]): 1.0}
    for law in laws:
        after: Multisets = {}
        for counts, mass in found.items():
            for report, p in enumerate(law):
                more = (*counts[:report], counts[report] + 1, *counts[report + 1 :])
                after[more] = after.get(more, 0.0) + mass * p
        found = after
    return found


def hockey_stick(p: Multisets, q: Multisets, loss: float) -> float:
    """Sup P(S) - e^l Q(S)."""
    return math.fsum(max(0.0, mass - math.exp(loss) * q.get(counts, 0.0)) for counts, mass in p.items())


def worst_delta(randomiser: Sequence[Law], users: int, loss: float) -> float:
    """The largest delta over all values of the user in question, before and after, and of all others."""
    worst = 0.0
    values = range(len(randomiser))
    for others in itertools.combinations_with_replacement(values, users - 1):
        rest = [randomiser[x] for x in others]
        seen = [shuffled_law([*rest, randomiser[x]]) for x in values]
        for x, y in itertools.permutations(values, 2):
            worst = max(worst, hockey_stick(seen[x], seen[y], loss))
    return worst


def k_rr(epsilon: float, categories: int) -> list[list[float]]:
    """Randomised response."""
    e = math.exp(epsilon)
    return [[(e if x == y else 1) / (e + categories - 1) for y in range(categories)] for x in range(categories)]


def unary(epsilon: float, categories: int) -> list[list[float]]:
    """Optimised unary encoding: the true bit is kept by a coin, others are set with probability 1/(e^ε+1)."""
    q = 1 / (math.exp(epsilon) + 1)
    sets = list(itertools.product((0, 1), repeat=categories))
    return [
        [0.5 * math.prod(q if bit else 1 - q for y, bit in enumerate(chosen) if y != x) for chosen in sets]
        for x in range(categories)
    ]

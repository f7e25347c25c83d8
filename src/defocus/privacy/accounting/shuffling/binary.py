r"""Shuffled binary randomised response, exactly: what is seen is a count, and every other user's bit hides it.

Let the user in question hold 0 or 1, and of the n−1 others k hold 1. With p the chance of a lie and O the number of
ones among the others, P and Q are the laws of O + Bernoulli(p) and O + Bernoulli(1−p), O being a sum of two binomials.
Its masses o are log-concave, so the best test is a threshold on the count, and for :math:`E = e^l`

.. math:: \delta_k(l) = \max_c\; p(e^\varepsilon - E)\,o(c) - (E-1)\,\Pr[O < c].

Exchanging P and Q exchanges k and n−1−k, so the supremum over k of one direction is the loss.

*All k at once.* Telling what one of the others said only helps: :math:`\delta_k \le \delta'_{k-1}` and
:math:`\delta_k \le \delta'_k`, with the prime for one user less. So one evaluation, at k with j users less, bounds all
of k, …, k+j. Blocks are halved where that is not close enough to the largest value found; since the others' skewness
decides, that is near k = 0 only.

Published formulas for shuffled reports, by name: to compare with, and where a formula is wanted.

None of them is tight; ``account(Shuffled(Pure(epsilon), users), adjacency="replace")`` is never worse and usually
several times better. Outside the range of its theorem a formula is refused.
"""

import math
from collections.abc import Callable

import numpy as np

from defocus.errors import FormulaOutOfRangeError, Number, choice, count, positive, probability
from defocus.privacy.accounting.shuffling import blanket
from defocus.privacy.accounting.shuffling.binomials import Floats, Window, lower_half
from defocus.privacy.accounting.shuffling.blanket import chernoff
from defocus.privacy.accounting.shuffling.reports import Reports
from defocus.privacy.numbers import PAD, above, below

__all__ = ["CLOSED_FORMS", "MOST_USERS", "counted", "log_deltas", "shuffled_epsilon"]


MOST_USERS = 2**20
"""More users only hide better; beyond this many, the others' reports are given away, or the blanket does better."""

_U = 2.0**-53
_REACH = 100.0
_MANY_BLOCKS = 500
"""After so many blocks, the coarsest will do."""
_FINEST, _COARSEST, _MANY = 10_000, 250, 30_000
"""A block of one part in so many is close enough: the finest up to so many users, the coarsest beyond."""
_CLOSE = 3e-4
"""So is one whose log delta exceeds the largest found by no more than this part of it."""


def log_deltas(reports: Reports, users: int, losses: Floats) -> Floats:
    """Logarithms of upper bounds on delta at each of ``losses``, whatever the others' bits are."""
    n = min(users, MOST_USERS)
    smallest = n // (_FINEST if n <= _MANY else _COARSEST)
    best = _block(reports, n, 0, smallest, losses)
    waiting = [(smallest + 1, n - 1)] if smallest < n - 1 else []
    evaluated = 0
    while waiting:
        low, high = waiting.pop()
        found = _block(reports, n, low, high - low, losses)
        evaluated += 1
        if evaluated > _MANY_BLOCKS:  # all k are much alike, as they are where reports are nearly fair coins
            smallest = max(smallest, n // _COARSEST)
        if high - low <= smallest or np.all(found <= best + _CLOSE * (1 + np.abs(best))):
            best = np.maximum(best, found)
        else:
            middle = (low + high) // 2
            waiting += [(middle + 1, high), (low, middle)]
    best = np.minimum(best, chernoff(reports, users, losses))
    return np.minimum(best, blanket.log_deltas(reports, users, losses)) if users > n else best


def counted(reports: Reports, users: int, ones: int) -> Window:
    """The law of the number of ones among ``users`` − 1 others of whom so many hold 1."""
    return lower_half((users - 1 - ones, 1 / reports.odds), (ones, reports.odds), _REACH)


def _block(reports: Reports, users: int, ones: int, fewer: int, losses: Floats) -> Floats:
    """A bound for ``ones`` to ``ones`` + ``fewer`` of the others holding 1."""
    law = counted(reports, users - fewer, ones)
    rise = np.expm1(losses)
    hit, miss = reports.alone * np.maximum(reports.gain - rise, 0.0), rise
    below = np.concatenate(([0.0], np.cumsum(law.masses)[:-1]))
    # hit * o(c) - (hit + miss) * o(c-1) changes sign once.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.concatenate(([0.0], law.masses[:-1] / law.masses[1:]))
    ratios = np.maximum.accumulate(np.nan_to_num(ratios, nan=np.inf))
    last = np.searchsorted(ratios, hit / (hit + miss + 1e-300), side="right") - 1
    error = law.error + 4 * _U * len(law.masses)
    best = np.zeros_like(losses)
    for shift in (-1, 0, 1):
        c = np.clip(last + shift, 0, len(law.masses) - 1)
        best = np.maximum(best, hit * law.masses[c] * (1 + error) - miss * below[c] * (1 - error))
    # To the left of the window there is no more than the rest.
    return np.asarray(np.log(best * (1 + 1e-12) + hit * law.rest * (1 + 1e-9) + 1e-320))


def _erlingsson(epsilon: float, n: int, delta: float) -> float:
    r"""12ε√(log(1/δ)/n): Erlingsson, Feldman, Mironov, Raghunathan, Talwar, Thakurta (2019)."""
    _within("erlingsson-2019", n >= 1000 and epsilon < 0.5 and delta < 0.01, "n >= 1000, epsilon < 1/2, delta < 1/100")
    return 12 * epsilon * math.sqrt(-math.log(delta) / n)


def _feldman_2021(epsilon: float, n: int, delta: float) -> float:
    r"""Feldman, McMillan, Talwar (2021), Hiding among the clones, Theorem 3.1."""
    e = math.exp(epsilon)
    _within("feldman-2021", e <= n / (16 * math.log(2 / delta)), "epsilon <= log(n/(16 log(2/delta)))")
    grown = 8 * math.sqrt(e * math.log(4 / delta) / n) + 8 * e / n
    return math.log1p(math.tanh(epsilon / 2) * grown)


def _feldman_2023(epsilon: float, n: int, delta: float) -> float:
    r"""Feldman, McMillan, Talwar (2023), Stronger privacy amplification by shuffling."""
    e = math.exp(epsilon)
    _within("feldman-2023", e + 1 <= n / (8 * math.log(2 / delta)), "epsilon <= log(n/(8 log(2/delta)) - 1)")
    grown = 4 * math.sqrt(2 * math.log(4 / delta) / ((e + 1) * n)) + 4 / n
    return math.log1p(math.expm1(epsilon) * grown)


CLOSED_FORMS: dict[str, Callable[[float, int, float], float]] = {
    "erlingsson-2019": _erlingsson,
    "feldman-2021": _feldman_2021,
    "feldman-2023": _feldman_2023,
}
"""What :func:`shuffled_epsilon` knows."""


def shuffled_epsilon(epsilon: Number, users: int, delta: Number, *, method: str = "feldman-2023") -> float:
    """The central epsilon, by a formula, of reports of any randomiser of local ``epsilon`` among so many ``users``.

    Assumes:
        One user's value is replaced; all run the same randomiser and are honest.

    >>> round(shuffled_epsilon(1, 10_000, 1e-6, method="feldman-2021"), 3), round(shuffled_epsilon(1, 10_000, 1e-6), 3)
    (0.214, 0.18)
    """
    formula = CLOSED_FORMS[choice("formula", method, CLOSED_FORMS)]
    local, n = above(positive("epsilon", epsilon)), count("users", users)
    share = below(probability("delta", delta, zero=False, one=False))
    if local > 100:
        raise FormulaOutOfRangeError(f"At a local epsilon of {local:g} no formula holds.", fix="randomise more.")
    return min(local, formula(local, n, share) * PAD)


def _within(name: str, holds: bool, where: str) -> None:
    if not holds:
        raise FormulaOutOfRangeError(
            f"The formula {name} holds for {where} only.",
            fix='use account(Shuffled(Pure(epsilon), users), adjacency="replace"), which always holds.',
        )

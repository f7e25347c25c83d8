"""Published formulas for shuffled reports, by name: to compare with, and where a formula is wanted.

None of them is tight; ``account(Shuffled(Pure(epsilon), users), adjacency="replace")`` is never worse and usually
several times better. Outside the range of its theorem a formula is refused.
"""

import math
from collections.abc import Callable

from defocus.errors import FormulaOutOfRangeError, InvalidParameterError, Number, count, positive, probability
from defocus.privacy.rounding import PAD, above, below

__all__ = ["CLOSED_FORMS", "shuffled_epsilon"]


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


def shuffled_epsilon(epsilon: Number, users: int, delta: Number, *, by: str = "feldman-2023") -> float:
    """The central epsilon, by a formula, of reports of any randomiser of local ``epsilon`` among so many ``users``.

    Assumes:
        One user's value is replaced; all run the same randomiser and are honest.

    >>> round(shuffled_epsilon(1, 10_000, 1e-6, by="feldman-2021"), 3), round(shuffled_epsilon(1, 10_000, 1e-6), 3)
    (0.214, 0.18)
    """
    if by not in CLOSED_FORMS:
        raise InvalidParameterError(
            f"There is no formula named {str(by)[:40]!r}.", fix=f"choose one of {', '.join(CLOSED_FORMS)}."
        )
    local, n = above(positive("epsilon", epsilon)), count("users", users)
    share = below(probability("delta", delta, zero=False, one=False))
    if local > 100:
        raise FormulaOutOfRangeError(f"At a local epsilon of {local:g} no formula holds.", fix="randomise more.")
    return min(local, CLOSED_FORMS[by](local, n, share) * PAD)


def _within(name: str, holds: bool, where: str) -> None:
    if not holds:
        raise FormulaOutOfRangeError(
            f"The formula {name} holds for {where} only.",
            fix='use account(Shuffled(Pure(epsilon), users), adjacency="replace"), which always holds.',
        )

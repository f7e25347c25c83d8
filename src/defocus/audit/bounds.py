"""From two counts to a lower bound: exact binomial confidence limits and what they imply for epsilon and delta."""

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, betainccinv, betaincinv, ndtri

__all__ = ["Bound", "below", "bound", "detectable", "promise", "upto"]

_SAFE = 1e-9  # relative allowance for the rounding of betaincinv, exp and log


def below(successes: Any, runs: int, alpha: float) -> NDArray[np.float64]:
    r"""Clopper–Pearson: a level the probability is below with probability at most ``alpha``.

    Guarantee:
        For k ~ Bin(n, p), :math:`\Pr[\mathrm{below}(k) > p] \le \alpha` for every p: the limit is
        the p whose upper tail :math:`\Pr[\mathrm{Bin}(n, p) \ge k]` is exactly alpha.
    Reference:
        Clopper, Pearson (1934), The use of confidence or fiducial limits illustrated in the case of the binomial.

    >>> float(below(0, 100, 0.05)), round(float(below(100, 100, 0.05)), 4)
    (0.0, 0.9705)
    """
    k = np.asarray(successes, dtype=np.float64)
    inner = betaincinv(np.maximum(k, 1.0), runs - np.maximum(k, 1.0) + 1.0, alpha)
    return np.where(k <= 0, 0.0, inner * (1 - _SAFE))


def upto(successes: Any, runs: int, alpha: float) -> NDArray[np.float64]:
    """Clopper–Pearson: a level the probability is above with probability at most ``alpha``.

    >>> round(float(upto(0, 100, 0.05)), 4), float(upto(100, 100, 0.05))
    (0.0295, 1.0)
    """
    k = np.asarray(successes, dtype=np.float64)
    inner = betainccinv(np.minimum(k, runs - 1.0) + 1.0, runs - np.minimum(k, runs - 1.0), alpha)
    return np.where(k >= runs, 1.0, np.minimum(inner * (1 + _SAFE), 1.0))


@final
@dataclass(frozen=True, slots=True)
class Bound:
    """What one event's counts prove at one confidence."""

    epsilon: float
    delta: float


def bound(hits: tuple[int, int], runs: int, alpha: float, *, delta: float, claimed: float | None) -> Bound:
    r"""Lower bounds from one event that was fixed before its runs: on epsilon at ``delta``, on delta at ``claimed``.

    Guarantee:
        If a mechanism is (ε, δ)-DP then P(S) ≤ e^ε·Q(S) + δ for every event S. ``hits`` are binomial
        with those probabilities, P(S) ≥ p and Q(S) ≤ q each fail with probability at most α/2, so
        with probability at least 1 − α both hold and every valid ε is at least log((p − δ)/q), and
        every valid δ at ε = ``claimed`` is at least p − e^ε·q.

    >>> bound((5000, 0), 5000, 0.001, delta=0.0, claimed=1.0)
    Bound(epsilon=6.48..., delta=0.994...)
    """
    p = float(below(hits[0], runs, alpha / 2))
    q = float(upto(hits[1], runs, alpha / 2))
    epsilon = math.log((p - delta) / q) if p > delta else 0.0
    epsilon -= _SAFE * (1 + abs(epsilon))
    at_claim = p - math.exp(min(claimed, 700.0)) * q * (1 + _SAFE) if claimed is not None else 0.0
    return Bound(max(0.0, epsilon), max(0.0, at_claim))


def promise(hits: Any, others: Any, runs: int, alpha: float, delta: float) -> NDArray[np.float64]:
    """The bound an event would give, approximately: Wilson's limits, used to choose an event and never to judge one."""
    z2 = float(ndtri(alpha / 2)) ** 2
    k, j = np.asarray(hits, dtype=np.float64), np.asarray(others, dtype=np.float64)

    def limit(x: NDArray[np.float64], sign: int) -> NDArray[np.float64]:
        spread = np.sqrt(z2 * (x * (runs - x) / runs + z2 / 4))
        return np.asarray((x + z2 / 2 + sign * spread) / (runs + z2))

    return np.asarray(np.log(np.maximum(limit(k, -1) - delta, 1e-12) / limit(j, +1)))


def detectable(runs: int, alpha: float, *, delta: float, claimed: float, likely: float = 0.5) -> float:
    r"""The least true ε at which these runs would call a violation of ``claimed`` with probability at least 90 %.

    How it is computed:
        Suppose an event that happens with probability ``likely`` shows a true loss of x, so that
        P(S) = likely and Q(S) = (likely − δ)·e^−x. Except with probability 10 % together, the hits stay
        above their 5 % quantile under P and below their 95 % quantile under Q; x is the least loss
        at which even those counts give a bound above ``claimed``. Laplace noise that is too small
        shows in an event of probability 1/2. Faults that show only in rarer events need more runs.
        Infinite where these runs cannot detect any loss.

    >>> round(detectable(50_000, 0.001, delta=0.0, claimed=1.0), 2)
    1.07
    """
    least = _quantile(runs, likely, 0.05)

    def seen(x: float) -> bool:
        most = _quantile(runs, max(likely - delta, 0.0) * math.exp(-x), 0.95)
        return bound((least, most), runs, alpha, delta=delta, claimed=None).epsilon > claimed

    low, high = claimed, claimed + 64.0
    if likely <= delta or not seen(high):
        return math.inf
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if seen(middle) else (middle, high)
    return high


def _quantile(runs: int, p: float, level: float) -> int:
    """The least k with P(Bin(runs, p) <= k) >= level, by bisection."""
    low, high = -1, runs
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bdtr(middle, runs, p) >= level else (middle, high)
    return high

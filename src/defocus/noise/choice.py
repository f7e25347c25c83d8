"""Exact sampling for the exponential mechanism, without Gumbel noise and without floating point."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from defocus.errors import InvalidParameterError, Number, finite, non_negative, positive
from defocus.noise.bits import Bits, Words, source
from defocus.noise.enclosures import exp_bounds, ln2_bounds
from defocus.noise.ranges import Integers, coin, uniform_below

__all__ = ["Scores", "cell_choice", "exponential_choice"]


Scores: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.uint64]


def exponential_choice(
    log_weights: Sequence[Number] | npt.NDArray[np.generic], bits: Bits | None = None, *, factor: Number = 1
) -> int:
    r"""Return an index i with :math:`P(i) \propto e^{factor \cdot w_i}`, for rational log-weights w.

    Integer scores in a numpy array are handled at once: pass them with ``factor`` = epsilon / (2 sensitivity).

    Guarantee:
        The law is exact. With :math:`d_i = factor\,(\max w - w_i)`, every candidate gets a whole number
        :math:`m_i` with :math:`m_i \ln 2 \le d_i`, so that :math:`e^{-d_i} \le 2^{-m_i}`. A candidate is
        proposed with probability proportional to :math:`2^{-m_i}` by one uniform integer and kept with
        probability :math:`2^{m_i} e^{-d_i}` by one exact coin; otherwise both are drawn again. Which
        :math:`m_i` is taken changes the speed only, so gaps may be rounded down to find it.

    Error:
        Fewer than three proposals are expected, whatever the weights.
    Reference:
        McSherry, Talwar (2007), Mechanism design via differential privacy, for the mechanism.

    >>> exponential_choice([0, -(10**30)])
    0
    >>> exponential_choice(np.array([3, 1, 2]), factor=Fraction(1, 10)) in range(3)
    True
    """
    generator = source(bits)
    rate = Fraction(non_negative("factor", factor))
    weights = _checked(log_weights)
    top = Fraction(int(weights.max())) if isinstance(weights, np.ndarray) else max(weights)
    halvings = _halvings(weights, top, rate)
    deepest = int(halvings.max())
    shares = [count << (deepest - m) for m, count in enumerate(np.bincount(halvings).tolist())]
    while True:
        m, rank = _proposal(shares, generator)
        index = int(np.flatnonzero(halvings == m)[rank])
        weight = weights[index]
        distance = rate * (top - (weight if isinstance(weight, Fraction) else int(weight)))
        if coin(partial(_scaled_exp, distance, m), generator):
            return index


def _checked(log_weights: Sequence[Number] | npt.NDArray[np.generic]) -> Scores | list[Fraction]:
    """The log-weights as 64-bit integers where they came so, else as exact fractions."""
    if isinstance(log_weights, np.ndarray) and log_weights.ndim == 1 and log_weights.size:
        if log_weights.dtype.kind == "u":
            return log_weights.astype(np.uint64)
        if log_weights.dtype.kind == "i":
            return log_weights.astype(np.int64)
    elif not isinstance(log_weights, Sequence) or not log_weights:
        raise InvalidParameterError(
            "log_weights must be a flat sequence of at least one number.", fix="pass one log-weight for each candidate."
        )
    return [Fraction(finite(f"log_weights[{i}]", weight)) for i, weight in enumerate(log_weights)]


def _halvings(weights: Scores | list[Fraction], top: Fraction, rate: Fraction) -> npt.NDArray[np.intp]:
    """The m of every candidate, stopping where all further ones together weigh less than 2**-64 of the best."""
    if rate == 0:
        return np.zeros(len(weights), np.intp)
    gaps, grain = (_exact_gaps(weights), rate) if isinstance(weights, np.ndarray) else _gaps(weights, top, rate)
    limit = 64 + len(weights).bit_length()
    _, ln2 = ln2_bounds(128)
    unit = grain.numerator << 128
    marks = [-(-m * ln2 * grain.denominator // unit) for m in range(1, limit + 1)]  # least gap that is m halvings
    return np.searchsorted(np.array([mark for mark in marks if mark < 1 << 64], np.uint64), gaps, side="right")


def _exact_gaps(scores: Scores) -> Words:
    """How far each score lies below the highest: at most 2**64 - 1, so arithmetic modulo 2**64 is exact."""
    words: Words = scores.view(np.uint64)
    gaps: Words = words[np.argmax(scores)] - words
    return gaps


def _gaps(weights: list[Fraction], top: Fraction, rate: Fraction) -> tuple[Words, Fraction]:
    """Lower bounds on the gaps in units of a grain, and the grain: a power of two for which d is at most 1/8."""
    shift = rate.numerator.bit_length() - rate.denominator.bit_length() + 4
    up, down = max(shift, 0), max(-shift, 0)
    highest = (top.numerator << up) // (top.denominator << down)
    gaps = [highest + (-w.numerator << up) // (w.denominator << down) for w in weights]
    return np.array([min(max(gap, 0), (1 << 64) - 1) for gap in gaps], np.uint64), rate * (1 << down) / (1 << up)


def _proposal(shares: list[int], bits: Bits) -> tuple[int, int]:
    """A class m with probability proportional to its share, and a uniform rank within the class."""
    at = uniform_below(sum(shares), bits)
    for m, share in enumerate(shares):
        if at < share:
            return m, at >> (len(shares) - 1 - m)
        at -= share
    raise AssertionError(at)  # pragma: no cover: at < sum(shares)


def _scaled_exp(distance: Fraction, m: int, precision: int) -> tuple[int, int]:
    """Enclose 2**precision * 2**m * exp(-distance), at most 2**precision by the choice of m."""
    return exp_bounds(distance.numerator, distance.denominator, precision + m)


_MOST = 1 << 53


def cell_choice(
    counts: Integers,
    bounds: Integers,
    grain: Number,
    distance: Callable[[int, int], Fraction],
    bits: Bits | None = None,
) -> tuple[int, int]:
    r"""Return a candidate, as its cell and its place within the cell, with :math:`P \propto e^{-d}`.

    Cell i holds ``counts[i]`` candidates; ``distance(i, j)`` is the exact :math:`d` of the j-th of them, and
    ``grain * bounds[i]`` is at most the distance of each. Only the candidates that are proposed have their distance
    computed, so bounds may come from quick arithmetic that rounds down.

    Guarantee:
        The law is exact whatever the bounds, as long as none is too large. Every cell gets a whole number
        :math:`m_i` with :math:`m_i \ln 2 \le grain \cdot bounds_i`, so that :math:`e^{-d} \le 2^{-m_i}` for its
        candidates. One is proposed with probability proportional to :math:`2^{-m_i}` by one uniform integer, and
        kept with probability :math:`2^{m_i} e^{-d}` by one exact coin; otherwise both are drawn again.
    Assumes:
        The bounds hold: ``distance`` is trusted, and a coin whose bias would exceed one is refused.

    Error:
        If distances exceed their bounds by at most :math:`\ln 2` within :math:`64 \ln 2` of the least one, fewer
        than five proposals are expected.
    Reference:
        Rejection from a dyadic envelope, as in :func:`defocus.noise.exponential_choice`.

    >>> cell_choice(np.array([1, 1000]), np.array([0, 10**6]), Fraction(1), lambda i, j: Fraction(10**6 * i + j))
    (0, 0)
    """
    generator = source(bits)
    total = int(counts.sum())
    if not 0 < total < _MOST or len(counts) != len(bounds):
        raise InvalidParameterError(
            "The cells hold no candidates, or 2**53 of them or more.", fix="pass one bound and one count for each cell."
        )
    marks = _marks(Fraction(positive("grain", grain)), 64 + total.bit_length())
    halvings: npt.NDArray[np.intp] = np.searchsorted(marks, bounds.view(np.uint64), side="right")
    members = np.bincount(halvings, weights=counts)  # sums of integers below 2**53, which floats hold exactly
    deepest = len(members) - 1
    shares = [int(number) << (deepest - m) for m, number in enumerate(members.tolist())]
    everything = sum(shares)
    while True:
        m, at = 0, uniform_below(everything, generator)
        while at >= shares[m]:
            at -= shares[m]
            m += 1
        place = at >> (deepest - m)
        cells = np.flatnonzero(halvings == m)
        ends = np.cumsum(counts[cells])
        which = int(np.searchsorted(ends, place, side="right"))
        cell = int(cells[which])
        place -= int(ends[which] - counts[cell])
        if coin(partial(_scaled_exp_of_cell, distance(cell, place), m), generator):
            return cell, place


@lru_cache(maxsize=256)
def _marks(grain: Fraction, limit: int) -> Words:
    """The least bound that is m halvings, for m from 1 to ``limit``: beyond it, all weigh less than 2**-64 together."""
    _, ln2 = ln2_bounds(128)
    unit = grain.numerator << 128
    marks = [-(-m * ln2 * grain.denominator // unit) for m in range(1, limit + 1)]
    return np.array([mark for mark in marks if mark < 1 << 63], np.uint64)


def _scaled_exp_of_cell(distance: Fraction, m: int, precision: int) -> tuple[int, int]:
    """Enclose 2**precision * 2**m * exp(-distance), at most 2**precision where the bound of the cell holds."""
    low, high = exp_bounds(distance.numerator, distance.denominator, precision + m)
    if low > 1 << precision:
        raise AssertionError("a bound exceeds a distance")
    return low, high

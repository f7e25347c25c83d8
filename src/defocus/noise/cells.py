"""Exact choice among very many candidates, given in cells whose weights are known only roughly at first."""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from defocus.errors import InvalidParameterError, Number, positive
from defocus.noise.bits import Bits, Words, source
from defocus.noise.coins import coin
from defocus.noise.enclosures import exp_bounds, ln2_bounds
from defocus.noise.integers import Integers
from defocus.noise.ranges import uniform_below

__all__ = ["cell_choice"]

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
        if coin(partial(_scaled_exp, distance(cell, place), m), generator):
            return cell, place


@lru_cache(maxsize=256)
def _marks(grain: Fraction, limit: int) -> Words:
    """The least bound that is m halvings, for m from 1 to ``limit``: beyond it, all weigh less than 2**-64 together."""
    _, ln2 = ln2_bounds(128)
    unit = grain.numerator << 128
    marks = [-(-m * ln2 * grain.denominator // unit) for m in range(1, limit + 1)]
    return np.array([mark for mark in marks if mark < 1 << 63], np.uint64)


def _scaled_exp(distance: Fraction, m: int, precision: int) -> tuple[int, int]:
    """Enclose 2**precision * 2**m * exp(-distance), at most 2**precision where the bound of the cell holds."""
    low, high = exp_bounds(distance.numerator, distance.denominator, precision + m)
    if low > 1 << precision:
        raise AssertionError("a bound exceeds a distance")
    return low, high

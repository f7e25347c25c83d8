r"""Tables that turn one 64-bit word into one integer of an exact law.

The integers are cut into blocks of :math:`W = 2^k` neighbours, the A-th on the positive side being AW … AW+W-1 and on
the negative side -(A+1)W … -AW-1. With :math:`f(x) = e^{-(a|x| + b x^2)}` and :math:`F_A = f(AW)`, every x of either
block has :math:`F_{A+1} \le f(x) \le F_A`, so the graph of f over the block lies between two rectangles. A draw picks
one of these cells with probability proportional to its area (all in units of W):

* core of a block, area :math:`F_{A+1}`: a uniform integer of the block, always kept;
* wedge of a block, area :math:`F_A - F_{A+1}`: a uniform integer x of the block, kept with probability
  :math:`(f(x) - F_{A+1}) / (F_A - F_{A+1})`;
* tail of a side, blocks from B on, area :math:`F_B / (1 - e^{-\alpha})` with
  :math:`\alpha = aW + 2bW^2B`: the block B + m with m geometric of ratio :math:`e^{-\alpha}`, kept with probability
  :math:`e^{-bW^2m^2}` (which makes its envelope :math:`F_{B+m}`), then a uniform integer x of it, kept with
  probability :math:`f(x) / F_{B+m}`.

Summed over the cells, x is proposed and kept with weight exactly f(x); a draw that is not kept starts again, so what
is returned has exactly the law f. With W = 1 the wedge vanishes: positive cells have area :math:`F_A`, negative ones
:math:`F_{A+1}`.

Cell i is picked by a uniform real u between the thresholds :math:`t_{i-1} \le u < t_i`. Thresholds are known as
integer enclosures of :math:`2^{64} t_i`. A guide indexed by the leading bits of u names the block wherever those bits
alone prove the answer; the bits after them are then still uniform and choose the integer within the block.
"""

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import final

import numpy as np

from defocus.noise.bits import Bits, Words
from defocus.noise.enclosures import exp_bounds
from defocus.noise.integers import Integers
from defocus.noise.laws import Law

__all__ = ["GUIDE_BITS", "UNSURE", "Grid", "Table", "gaussian_table", "laplace_table"]

GUIDE_BITS = 16
UNSURE = -(1 << 62)
"""What the guide says where its bits prove nothing. Far below every block: those end at 2**46."""

_DEPTH = 16
_SPLIT = 5


@final
@dataclass(frozen=True, slots=True)
class Grid:
    """How the integers are cut: blocks of 2**k neighbours, ``blocks`` of them on each side, then the tails.

    Cells are numbered cores (from the most negative block to the most positive), wedges in the same order if k > 0,
    negative tail, positive tail.
    """

    law: Law
    k: int
    blocks: int

    @classmethod
    def of(cls, law: Law, scale: Fraction) -> "Grid":
        """Blocks between 1/64 and 1/32 of the scale, up to where f has fallen to exp(-16)."""
        k = max(0, int(scale).bit_length() - 1 - _SPLIT)
        unit = law.widened(1 << k)
        least, most = 0, 1
        while unit.exponent(most) < _DEPTH:
            least, most = most, 2 * most
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (middle, most) if unit.exponent(middle) < _DEPTH else (least, middle)
        return cls(law, k, most)

    @property
    def unit(self) -> Law:
        """The law with the block as its unit of length."""
        return self.law.widened(1 << self.k)

    @property
    def tails(self) -> int:
        """The number of the negative tail's cell; the positive one's is the next and last."""
        return 2 * self.blocks * (2 if self.k else 1)

    def steps(self, precision: int) -> list[tuple[int, int]]:
        """Enclosures of 2**precision * F_{A+1} / F_A for A below ``blocks``: a geometric progression."""
        a, b = self.unit.a, self.unit.b
        low, high = exp_bounds(*(a + b).as_integer_ratio(), precision)
        ratio_low, ratio_high = exp_bounds(*(2 * b).as_integer_ratio(), precision)
        out = []
        for _ in range(self.blocks):
            out.append((low, high))
            low, high = low * ratio_low >> precision, -(-high * ratio_high >> precision)
        return out

    def slopes(self, precision: int) -> list[int]:
        """The floor of 2**precision * (aW + 2bW²A) for A below ``blocks``; none where no block has a wedge."""
        a, b = self.unit.a, 2 * self.unit.b
        start, step, unit = a.numerator * b.denominator, b.numerator * a.denominator, a.denominator * b.denominator
        return [((start + step * A) << precision) // unit for A in range(self.blocks if self.k else 0)]

    def areas(self, precision: int) -> list[tuple[int, int]]:
        """Enclosures of 2**precision times the area of every cell."""
        one = 1 << precision
        heights = [(one, one)]
        for step_low, step_high in self.steps(precision):
            low, high = heights[-1]
            heights.append((low * step_low >> precision, -(-high * step_high >> precision)))
        inner, outer = heights[:-1], heights[1:]
        alpha = self.unit.a + 2 * self.unit.b * self.blocks
        ratio_low, ratio_high = exp_bounds(*alpha.as_integer_ratio(), precision)
        low, high = outer[-1]
        tail = ((low << precision) // (one - ratio_low), -((-high << precision) // (one - ratio_high)))
        if self.k == 0:
            return [*reversed(outer), *inner, tail, tail]
        wedge = [(max(0, i[0] - o[1]), i[1] - o[0]) for i, o in zip(inner, outer, strict=True)]
        return [*reversed(outer), *outer, *reversed(wedge), *wedge, tail, tail]

    def thresholds(self, nbits: int) -> tuple[list[int], list[int]]:
        """Lower and upper integer bounds of 2**nbits * t_i, for every cell i but the last (whose t is 1)."""
        areas = self.areas(nbits + 64)
        below = list(accumulate(low for low, _ in areas))
        above = list(accumulate(high for _, high in areas))
        least, most = below.pop(), above.pop()
        lows = [(value << nbits) // most for value in below]
        highs = [min(-((-value << nbits) // least), 1 << nbits) for value in above]
        return lows, highs

    def locate(self, word: int, bits: Bits) -> int:
        """The cell of a uniform real whose first 64 bits are ``word``, however many more bits that takes."""
        nbits = 64
        while True:
            word, nbits = word << 64 | bits.integer(64), nbits + 64
            lows, highs = self.thresholds(nbits)
            cell = bisect_right(lows, word)
            if cell == bisect_right(highs, word):
                return cell


@final
@dataclass(frozen=True, slots=True)
class Table:
    """A grid with its thresholds at 64 bits, its guide, and what the wedges' test needs, as numpy arrays."""

    grid: Grid
    lows: Words
    """Words below ``lows[i]`` are below t_i for certain."""
    lasts: Words
    """Words above ``lasts[i]`` are not below t_i for certain."""
    starts: Integers
    """The least integer of the block that a core or wedge belongs to."""
    guide: Integers
    """By leading bits: the least integer of the core they prove, or UNSURE."""
    slopes: Words
    """floor(2**32 * (aW + 2bW²A)), by A."""
    drops: Words
    """floor(2**32 * (1 - F_{A+1}/F_A)) or one less, by A."""
    curve: int
    """floor(2**32 * bW²)."""

    @classmethod
    def of(cls, grid: Grid) -> "Table":
        """Compute everything with integers; some milliseconds."""
        low_list, high_list = grid.thresholds(64)
        lows = np.array(low_list, np.uint64)
        lasts = np.array([max(high - 1, low) for low, high in zip(low_list, high_list, strict=True)], np.uint64)
        cores = np.arange(-grid.blocks, grid.blocks, dtype=np.int64) << grid.k
        first = np.arange(1 << GUIDE_BITS, dtype=np.uint64) << np.uint64(64 - GUIDE_BITS)
        last = first + np.uint64((1 << (64 - GUIDE_BITS)) - 1)
        cell = np.searchsorted(lows, last, side="right")
        sure = (cell == np.searchsorted(lasts, first, side="left")) & (cell < cores.size)
        return cls(
            grid=grid,
            lows=lows,
            lasts=lasts,
            starts=np.concatenate([cores, cores]),
            guide=np.where(sure, cores[np.minimum(cell, cores.size - 1)], UNSURE),
            slopes=np.array(grid.slopes(32), np.uint64),
            drops=np.array([((1 << 96) - high) >> 64 for _, high in grid.steps(96)], np.uint64),
            curve=int(grid.unit.b * 2**32) if grid.k else 0,
        )


@lru_cache(maxsize=16)
def laplace_table(scale: Fraction) -> Table:
    """The table of the discrete Laplace law."""
    return Table.of(Grid.of(Law.laplace(scale), scale))


@lru_cache(maxsize=16)
def gaussian_table(sigma: Fraction) -> Table:
    """The table of the discrete Gaussian law."""
    return Table.of(Grid.of(Law.gaussian(sigma), sigma))

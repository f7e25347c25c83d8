r"""Laws of discrete noise, and tables through which arrays are drawn from them.

The one family of laws behind Laplace and Gaussian noise, and how to draw from it one integer at a time.

Tables that turn one 64-bit word into one integer of an exact law.

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
from functools import lru_cache, partial
from itertools import accumulate
from typing import final

import numpy as np

from defocus.noise.bits import Bits, Words
from defocus.noise.enclosures import exp_bounds
from defocus.noise.ranges import Coins, Integers, coin, coin_exp, fitting, uniform_below

__all__ = [
    "GUIDE_BITS",
    "UNSURE",
    "Grid",
    "Law",
    "Table",
    "draw",
    "gaussian_one",
    "gaussian_table",
    "geometric_one",
    "laplace_one",
    "laplace_table",
]


@final
@dataclass(frozen=True, slots=True)
class Law:
    r"""The law on the integers with :math:`P(x) \propto e^{-(a|x| + b x^2)}`, a and b rational, not both zero."""

    a: Fraction
    b: Fraction

    @classmethod
    def laplace(cls, scale: Fraction) -> "Law":
        """The discrete Laplace law: a = 1 / scale."""
        return cls(1 / scale, Fraction(0))

    @classmethod
    def gaussian(cls, sigma: Fraction) -> "Law":
        """The discrete Gaussian law: b = 1 / (2 sigma^2)."""
        return cls(Fraction(0), 1 / (2 * sigma * sigma))

    def exponent(self, size: int) -> Fraction:
        """The a abs(x) + b x^2 at abs(x) = ``size``."""
        return size * (self.a + self.b * size)

    def widened(self, width: int) -> "Law":
        """The same exponent as a function of abs(x) / width."""
        return Law(self.a * width, self.b * width * width)


def geometric_one(rate: Fraction, bits: Bits) -> int:
    r"""One m >= 0 with :math:`P(m) = (1-e^{-rate}) e^{-rate \cdot m}`, rate > 0.

    Guarantee:
        With rate = p/q: u uniform on range(q), kept with probability :math:`e^{-u/q}`, plus q times a number of
        successes at bias 1/e, is geometric with ratio :math:`e^{-1/q}`; its quotient by p is the answer.
    Reference:
        Canonne, Kamath, Steinke (2020), Algorithm 2.
    """
    p, q = rate.numerator, rate.denominator
    while True:
        u = uniform_below(q, bits)
        if coin_exp(u, q, bits):
            break
    v = 0
    while coin_exp(1, 1, bits):
        v += 1
    return (u + q * v) // p


def laplace_one(scale: Fraction, bits: Bits) -> int:
    """One discrete Laplace integer, of any size. Reference: Canonne, Kamath, Steinke (2020), Algorithm 2."""
    while True:
        size = geometric_one(1 / scale, bits)
        negative = bits.integer(1)
        if not negative:
            return size
        if size:
            return -size


def gaussian_one(sigma: Fraction, bits: Bits) -> int:
    """One discrete Gaussian integer, of any size. Reference: Canonne, Kamath, Steinke (2020), Algorithm 3."""
    p, q = (sigma * sigma).as_integer_ratio()
    t = int(sigma) + 1
    denominator = 2 * p * q * t * t
    while True:
        y = laplace_one(Fraction(t), bits)
        if coin_exp((abs(y) * t * q - p) ** 2, denominator, bits):
            return y


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


_CHUNK = 1 << 17
_MARGIN = 16
_TERMS = 8


def draw(table: Table, size: int, bits: Bits) -> Integers:
    """Return ``size`` independent integers of the table's law.

    The guide answers for most words at once; the others are settled in :func:`_settle`. Pieces of 2**17 words
    stay in the processor's cache and share the cost of the rare cases.
    """
    out = np.empty(size, np.int64)
    within = np.uint64((1 << table.grid.k) - 1)
    for start in range(0, size, _CHUNK):
        part = out[start : start + _CHUNK]
        words = bits.words(part.size)
        slots = words >> np.uint64(64 - GUIDE_BITS)
        np.take(table.guide, slots.view(np.int64), out=part, mode="clip")
        unsure = np.flatnonzero(part == UNSURE)
        if within:
            np.bitwise_and(words, within, out=slots)
            part += slots.view(np.int64)
        part[unsure] = _settle(table, words[unsure], bits)
    return out


def _settle(table: Table, words: Words, bits: Bits) -> Integers:
    """Draw one integer for each of ``words``, its first word; whoever is not kept starts again with a fresh one."""
    out = np.empty(words.size, np.int64)
    todo = np.arange(words.size)
    while todo.size:
        values, kept = _attempt(table, words, bits)
        out[todo[kept]] = values[kept]
        todo = todo[~kept]
        words = bits.words(todo.size)
    return out


def _attempt(table: Table, words: Words, bits: Bits) -> tuple[Integers, Coins]:
    """Pick a cell by each word, then an integer of the cell by fresh bits; say which are kept."""
    grid = table.grid
    cells = np.searchsorted(table.lows, words, side="right")
    tied = (cells > 0) & (words <= table.lasts[cells - 1])
    for i in np.flatnonzero(tied):
        cells[i] = grid.locate(int(words[i]), bits)
    in_tail = cells >= grid.tails
    values = table.starts[np.where(in_tail, 0, cells)]
    kept = np.ones(words.size, np.bool_)
    if grid.k:
        offsets = (bits.words(words.size) >> np.uint64(64 - grid.k)).view(np.int64)
        wedge = np.flatnonzero((cells >= 2 * grid.blocks) & ~in_tail)
        kept[wedge] = _under(table, values[wedge] >> grid.k, offsets[wedge], bits)
        values += offsets
    for i in np.flatnonzero(in_tail):
        value = _tail(table, bits, negative=bool(cells[i] == grid.tails))
        kept[i] = value is not None
        values[i] = fitting(value or 0)
    return values, kept


def _under(table: Table, blocks: Integers, offsets: Integers, bits: Bits) -> Coins:
    """Whether a uniform point of each block's wedge lies under the curve.

    Where the fixed-point answer of :func:`_room` is too close to call, the exact comparison decides, with the bits
    already drawn and as many more as it takes.
    """
    grid = table.grid
    negative = blocks < 0
    index = np.where(negative, ~blocks, blocks)
    distance = np.where(negative, (1 << grid.k) - offsets, offsets)
    heights = bits.words(index.size)
    room = _room(table, index, distance, heights)
    under: Coins = room > 0
    for i in np.flatnonzero(np.abs(room) <= _MARGIN):
        share = partial(_share, grid.unit, int(index[i]), Fraction(int(distance[i]), 1 << grid.k))
        under[i] = coin(share, bits, prefix=int(heights[i]), length=64)
    return under


def _room(table: Table, index: Integers, distance: Integers, heights: Words) -> Integers:
    r"""How far a point of a wedge lies under the curve, as a multiple of :math:`2^{-32} F_A`.

    Guarantee:
        Within 14 of the truth. For the A-th block, ``distance`` = :math:`|x| - AW = tW` and the height v = ``heights``
        / 2**64, the truth is :math:`2^{32}(D - H - vD)` where :math:`D = 1 - F_{A+1}/F_A`, :math:`H = 1 - e^{-y}`,
        :math:`y = t(\alpha + ct)`, :math:`\alpha = aW + 2bW^2A` and :math:`c = bW^2`. In units of :math:`2^{-32}`:

        * ``y`` is too small by less than 5: ``slopes``, ``curve`` and its product with t lose less than 1 each, the
          truncation of t less than 1 (and only if k > 32), the last floor less than 1;
        * y <= 1/4, because blocks are at most 1/32 of the scale and f is above exp(-16) at their inner ends; so the
          floors in the Horner scheme of :math:`y(1 - \frac y2(1 - \frac y3(\dots(1 - \frac y8))))` cost less than 2,
          and the terms left out less than :math:`2^{32}\,4^{-9}/9! < 0.1`; since H grows no faster than y,
          ``fall`` is within 8 of :math:`2^{32}H`;
        * ``drops`` is too small by less than 2, and ``(v * drops) >> 32`` by less than 4, unseen bits of v included.
    """
    k, half, one = table.grid.k, np.uint64(32), np.uint64(1 << 32)
    steps = distance.view(np.uint64)
    t = steps << np.uint64(32 - k) if k <= 32 else steps >> np.uint64(k - 32)
    y = t * (table.slopes[index] + (t * np.uint64(table.curve) >> half)) >> half
    series = np.full(y.size, one)
    for term in range(_TERMS, 1, -1):
        series = one - (y * series >> half) // np.uint64(term)
    fall = y * series >> half
    drops = table.drops[index]
    room: Integers = (drops - fall - ((heights >> half) * drops >> half)).view(np.int64)
    return room


def _share(unit: Law, block: int, t: Fraction, precision: int) -> tuple[int, int]:
    """Enclose 2**precision times (f(x) - F_{A+1}) / (F_A - F_{A+1}) for A = ``block``, abs(x) = (A + t) W."""
    slope = unit.a + 2 * unit.b * block
    work = precision + 64 + block.bit_length()
    at_low, at_high = exp_bounds(*(t * (slope + unit.b * t)).as_integer_ratio(), work)
    end_low, end_high = exp_bounds(*(slope + unit.b).as_integer_ratio(), work)
    one = 1 << work
    low = (max(0, at_low - end_high) << precision) // (one - end_low)
    high = -((-(at_high - end_low) << precision) // (one - end_high))
    return low, min(high, 1 << precision)


def _tail(table: Table, bits: Bits, *, negative: bool) -> int | None:
    """An integer of a tail, with exact coins; None where it is not kept."""
    grid, unit = table.grid, table.grid.unit
    m = geometric_one(unit.a + 2 * unit.b * grid.blocks, bits)
    if not coin_exp(*(unit.b * m * m).as_integer_ratio(), bits):
        return None
    block = grid.blocks + m
    offset = uniform_below(1 << grid.k, bits)
    t = Fraction((1 << grid.k) - offset if negative else offset, 1 << grid.k)
    if not coin_exp(*(t * (unit.a + unit.b * (2 * block + t))).as_integer_ratio(), bits):
        return None
    return ((~block if negative else block) << grid.k) + offset

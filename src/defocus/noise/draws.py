"""Arrays of integers of an exact law, drawn through its table."""

from fractions import Fraction
from functools import partial

import numpy as np

from defocus.noise.bits import Bits, Words
from defocus.noise.coins import Coins, coin, coin_exp
from defocus.noise.enclosures import exp_bounds
from defocus.noise.integers import Integers, fitting
from defocus.noise.laws import Law, geometric_one
from defocus.noise.ranges import uniform_below
from defocus.noise.tables import GUIDE_BITS, UNSURE, Table

__all__ = ["draw"]

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

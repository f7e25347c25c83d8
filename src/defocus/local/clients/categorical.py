"""Categories on the device: one exact randomiser for each design."""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from defocus.local import designs
from defocus.local.designs.unary import UnaryLaw
from defocus.local.domains import Codes
from defocus.local.hashes import Columns, Elements, bloom_bits, coordinates, field, points, rank, sketch_hashes, vectors
from defocus.local.layouts import Payload
from defocus.noise import Bits, bernoulli, uniform
from defocus.noise.bits import Words

__all__ = [
    "answers",
    "asked",
    "disguised",
    "encoded",
    "hashed",
    "noisy_bits",
    "packed",
    "permanent",
    "place_geometry",
    "place_hadamard",
    "place_hadamard_sketch",
    "place_hashing",
    "place_k_rr",
    "randomise_d_bit",
    "randomise_geometry",
    "randomise_hadamard",
    "randomise_hadamard_sketch",
    "randomise_hashing",
    "randomise_k_rr",
    "randomise_rappor",
    "randomise_sketch",
    "randomise_subset",
    "randomise_unary",
    "signed",
]


_WORDS = 1 << 16
"""Words at once, which stay in the processor's cache."""


def randomise_unary(design: designs.Unary, codes: Codes, bits: Bits) -> Payload:
    """One row of bits for each code."""
    return encoded(design.bits, design.domain.size, codes, bits)


def encoded(law: UnaryLaw, width: int, codes: Codes, bits: Bits) -> NDArray[np.uint8]:
    """Packed rows of ``width`` noisy bits, in each of which one was a one."""
    words = -(-width // 64)
    out = np.empty((len(codes), -(-width // 8)), np.uint8)
    step = max(1, _WORDS // words)
    for start in range(0, len(codes), step):
        part = codes[start : start + step]
        rows = noisy_bits(law.noise, law.depth, len(part) * words, bits).reshape(len(part), words)
        ones = bits.words(len(part)) >> np.uint64(1) < np.uint64(law.truth)
        _write(rows, part, ones)
        if width % 64:
            rows[:, -1] &= np.uint64((1 << width % 64) - 1)
        out[start : start + step] = rows.astype("<u8", copy=False).view(np.uint8)[:, : out.shape[1]]
    return out


def noisy_bits(noise: int, depth: int, size: int, bits: Bits) -> Words:
    r"""Words all of whose bits are independent ones of probability exactly noise / 2**depth.

    Let :math:`0.b_1 b_2 \dots b_k` be the probability in binary. A bit that is one with probability
    :math:`0.b_{i+1} \dots b_k` becomes one with probability :math:`0.b_i b_{i+1} \dots b_k` by a fair bit: *or* if
    :math:`b_i = 1`, *and* if it is 0. Sixty-four of them at once, one operation for each binary digit.
    """
    digits = depth - ((noise & -noise).bit_length() - 1)
    fair = bits.words(digits * size).reshape(digits, size)
    words: Words = fair[0]
    for i in range(1, digits):
        if noise >> (depth - digits + i) & 1:
            words |= fair[i]
        else:
            words &= fair[i]
    return words


def _write(rows: Words, codes: Codes, ones: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> None:
    """Put each person's own bit where it belongs."""
    at = np.arange(len(codes)), codes >> 6
    shift = (codes & 63).view(np.uint64)
    rows[at] = rows[at] & ~(np.uint64(1) << shift) | ones.astype(np.uint64) << shift


def randomise_k_rr(design: designs.KRR, codes: Codes, bits: Bits) -> Payload:
    """One report for each code."""
    hit, index = design.levels.draw(len(codes), bits)
    return place_k_rr(codes, hit, index).astype(design.layout.dtype)


def place_k_rr(codes: Codes, hit: NDArray[np.bool_], index: Words) -> NDArray[np.int64]:
    """The category that a draw stands for: the truth, or the ``index``-th of the others."""
    other = index.view(np.int64)
    other += other >= codes
    np.copyto(other, codes, where=hit)
    return other


def randomise_hadamard(design: designs.Hadamard, codes: Codes, bits: Bits) -> Payload:
    """One report for each code, from one word each: its leading bits name the row, the others decide the flip."""
    words = bits.words(len(codes))
    rows = words >> np.uint64(64 - design.order)
    words &= np.uint64((1 << (64 - design.order)) - 1)
    return place_hadamard(codes, rows, words < np.uint64(design.flips)).astype(design.layout.dtype)


def place_hadamard(codes: Codes, rows: Words, flipped: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> Words:
    """Row and sign in one number: category v has column v + 1."""
    return signed(codes + 1, rows, flipped)


def signed(columns: Codes, rows: Words, flipped: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> Words:
    """Entry (j, v) of the matrix is minus where j & v has an odd number of ones. Overwrites the rows."""
    sign = np.bitwise_count(rows & columns.view(np.uint64))
    sign += flipped
    rows <<= np.uint64(1)
    rows |= sign & np.uint8(1)
    return rows


def randomise_hashing(design: designs.LocalHashing, codes: Codes, bits: Bits) -> Payload:
    """One report for each code."""
    hit, index = design.levels.draw(len(codes), bits)
    return place_hashing(design, codes, hit, index).astype(design.layout.dtype)


def place_hashing(
    design: designs.LocalHashing, codes: Codes, hit: NDArray[np.bool_], index: Words
) -> NDArray[np.int64]:
    """Seed and value: a hit names the seed and the value is right; otherwise the value is a step away from it."""
    g, number = design.order, index.view(np.int64)
    seeds = number // (g - 1)
    steps = number - seeds * (g - 1) + 1
    np.copyto(seeds, number, where=hit)
    np.copyto(steps, 0, where=hit)
    steps += hashed(design, seeds, codes)
    steps -= g * (steps >= g)
    seeds *= g
    seeds += steps
    return seeds


def hashed(design: designs.LocalHashing, seeds: NDArray[np.int64], codes: Codes) -> Elements:
    """The inner product of the digits of seed and category."""
    f = field(design.order)
    total: Elements = np.zeros(len(codes), np.int16)
    for a, v in zip(coordinates(seeds, f.q, design.digits), coordinates(codes, f.q, design.digits), strict=True):
        total = f.add(total, f.multiply(a, v))
    return total


_DEPTH = 8
"""Binary digits of the bias: it only has to be near, and each digit costs a word of random bits."""
_SUBSET_WORDS = 1 << 16
"""Words at once, which stay in the processor's cache."""


def randomise_subset(design: designs.SubsetSelection, codes: Codes, bits: Bits) -> Payload:
    """One set for each code."""
    words = -(-design.domain.size // 64)
    step = max(1, _SUBSET_WORDS // words)
    out = np.empty((len(codes), design.layout.length), np.uint8)
    for start in range(0, len(codes), step):
        sets = _sets(design, codes[start : start + step], bits)
        out[start : start + step] = sets.astype("<u8", copy=False).view(np.uint8)[:, : out.shape[1]]
    return out


def _sets(design: designs.SubsetSelection, codes: Codes, bits: Bits) -> Words:
    """Independent bits, then members added or dropped one by one, uniformly, until each set has its size.

    Independent bits of one bias make all sets of a given size equally likely, and so does adding a uniform one of those
    outside or dropping a uniform one of those inside. So the sets are exactly uniform, and the bias, which only
    should be near m/k, decides how many steps it takes. One's own category is kept out of all this and put in by a
    coin of its own.
    """
    k, n = design.domain.size, len(codes)
    words = -(-k // 64)
    bias = _bias(design.members, k)
    rows = (noisy_bits(bias, _DEPTH, n * words, bits) if bias else np.zeros(n * words, np.uint64)).reshape(n, words)
    if k % 64:
        rows[:, -1] &= np.uint64((1 << k % 64) - 1)
    own = np.uint64(1) << (codes & 63).view(np.uint64)
    everyone = np.arange(n)
    rows[everyone, codes >> 6] &= ~own
    held = bits.words(n) >> np.uint64(1) < np.uint64(design.holds)
    missing = design.members - held - np.bitwise_count(rows).sum(axis=1, dtype=np.int64)
    _adjust(rows, codes, missing, k, bits)
    rows[everyone, codes >> 6] |= np.where(held, own, np.uint64(0))
    return rows


def _bias(members: int, k: int) -> int:
    """Of 2**8 chances: so many that sets come out a little too small, since adding is quicker than dropping.

    None for small sets: where few are inside, the right one to drop is rarely proposed.
    """
    share = members / k
    return int((share - math.sqrt(share * (1 - share) / k)) * (1 << _DEPTH)) if share > 1 / 16 else 0


def _adjust(rows: Words, codes: Codes, missing: NDArray[np.int64], k: int, bits: Bits) -> None:
    """Propose a uniform category for every set that is not of its size yet; take it if it can be added or dropped."""
    active = np.flatnonzero(missing)
    while active.size:
        tried = uniform(k, len(active), bits)
        at, bit = tried >> 6, np.uint64(1) << (tried & 63).view(np.uint64)
        inside = (rows[active, at] & bit) != 0
        takes = (inside == (missing[active] < 0)) & (tried != codes[active])
        chosen = active[takes]
        rows[chosen, at[takes]] ^= bit[takes]
        missing[chosen] -= np.sign(missing[chosen])
        active = active[missing[active] != 0]


def randomise_sketch(design: designs.CountMeanSketch, codes: Codes, bits: Bits) -> Payload:
    """One row with its noisy bits for each code."""
    rows = uniform(design.rows, len(codes), bits)
    at = sketch_hashes(design.seed, design.rows, design.width, rows, codes)
    return design.layout.with_rows(rows, encoded(design.bits, design.width, at, bits))


def randomise_hadamard_sketch(design: designs.HadamardSketch, codes: Codes, bits: Bits) -> Payload:
    """One row, entry and noisy sign for each code, from one word each."""
    words = bits.words(len(codes))
    pairs = words >> np.uint64(64 - design.order)
    words &= np.uint64((1 << (64 - design.order)) - 1)
    return place_hadamard_sketch(design, codes, pairs, words < np.uint64(design.flips)).astype(design.layout.dtype)


def place_hadamard_sketch(
    design: designs.HadamardSketch, codes: Codes, pairs: Words, flipped: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
) -> Words:
    """Pair and sign in one number; the sign is that of (entry, column) in the Hadamard matrix."""
    rows = (pairs // np.uint64(design.width)).astype(np.int64)
    at = sketch_hashes(design.seed, design.rows, design.width, rows, codes)
    return signed(at, pairs, flipped)


def randomise_geometry(design: designs.GeometryResponse, codes: Codes, bits: Bits) -> Payload:
    """One report for each code."""
    hit, index = design.levels.draw(len(codes), bits)
    return place_geometry(design, codes, hit, index).astype(design.layout.dtype)


def place_geometry(
    design: designs.GeometryResponse, codes: Codes, hit: NDArray[np.bool_], index: Words
) -> NDArray[np.int64]:
    r"""The point that a draw stands for.

    Let x be the category's vector and i the place of its leading 1. Whatever the other t - 1 coordinates u of y are,
    the i-th can be chosen so that :math:`\langle x, y\rangle` is 0, and then the direction of y depends on that of
    u alone: the ``index``-th direction u gives the ``index``-th orthogonal point. Or so that it is 1, and then the
    ``index``-th vector u gives the ``index``-th point that is not orthogonal, since every such direction has exactly
    one vector with that product.
    """
    q, t = design.order, design.dimension
    numbers = index.view(np.int64)
    plane = points(q, t - 1)
    u = coordinates(np.where(hit, _lifted(numbers, hit, q, t - 1, plane), numbers), q, t - 1)
    return rank(field(q), _completed(design, codes, hit, u))


def _lifted(numbers: NDArray[np.int64], hit: NDArray[np.bool_], q: int, t: int, plane: int) -> NDArray[np.int64]:
    """The vectors of directions as numbers in base q; what is not a hit stays in range."""
    shift = np.zeros(len(numbers), np.int64)
    for r in range(t):
        np.copyto(shift, q**r - points(q, r), where=numbers >= points(q, r))
    return np.where(hit, np.minimum(numbers, plane - 1) + shift, 0)


def _completed(design: designs.GeometryResponse, codes: Codes, hit: NDArray[np.bool_], u: Columns) -> Columns:
    """Put the leading coordinate of x among the others, so that the inner product is 0 for a hit and 1 otherwise."""
    f, t = field(design.order), design.dimension
    lead, rest = _values(design)
    pivot = lead[codes]
    total: Elements = np.zeros(len(codes), np.int16)
    for i in range(1, t):
        total = f.add(total, f.multiply(rest[i][codes], u[i - 1]))  # 0 up to the pivot, where x has no others
    chosen = f.add((~hit).astype(np.int16), f.negative(total))
    y: Columns = []
    for i in range(t):
        column = u[i].copy() if i < t - 1 else np.zeros(len(codes), np.int16)
        if i:
            np.copyto(column, u[i - 1], where=pivot < i)
        np.copyto(column, chosen, where=pivot == i)
        y.append(column)
    return y


@lru_cache(maxsize=8)
def _values(design: designs.GeometryResponse) -> tuple[NDArray[np.int8], Columns]:
    """The place of the leading 1 of each category's vector, and the coordinates after it."""
    x = vectors(np.arange(design.domain.size), design.order, design.dimension)
    lead = np.argmax(np.array([coordinate != 0 for coordinate in x]), axis=0).astype(np.int8)
    return lead, [np.where(lead == i, 0, each).astype(np.int16) for i, each in enumerate(x)]


def randomise_rappor(design: designs.Rappor, codes: Codes, bits: Bits) -> Payload:
    """One report for each code, of people who never reported before."""
    cohorts = uniform(design.cohorts, len(codes), bits)
    return disguised(design, cohorts, permanent(design, cohorts, codes, bits), bits)


def permanent(design: designs.Rappor, cohorts: NDArray[np.int64], codes: Codes, bits: Bits) -> Words:
    """Filters with each bit flipped once and for all."""
    flips, depth = design.permanent
    words = -(-design.width // 64)
    rows = noisy_bits(flips, depth, len(codes) * words, bits).reshape(len(codes), words)
    positions = bloom_bits(design.domain, cohorts, codes, design.width, design.hashes)
    filters = np.zeros_like(rows)
    people = np.arange(len(codes))
    for i in range(design.hashes):
        filters[people, positions[:, i] >> 6] |= np.uint64(1) << (positions[:, i] & 63).view(np.uint64)
    return rows ^ filters


def disguised(design: designs.Rappor, cohorts: NDArray[np.int64], remembered: Words, bits: Bits) -> Payload:
    """A fair bit where the remembered one is a zero; the *or* of two fair bits where it is a one."""
    fair = bits.words(2 * remembered.size).reshape(2, *remembered.shape)
    shown = fair[0] | remembered & fair[1]
    if design.width % 64:
        shown[:, -1] &= np.uint64((1 << design.width % 64) - 1)
    packed = shown.astype("<u8", copy=False).view(np.uint8)[:, : -(-design.width // 8)]
    return design.layout.with_rows(cohorts, packed)


def randomise_d_bit(design: designs.DBitFlip, codes: Codes, bits: Bits) -> Payload:
    """One report for each code, of people who never reported before."""
    about = asked(design, len(codes), bits)
    yes = np.where(about == codes[:, None], *answers(design, about.shape, bits))
    return packed(design, about, yes)


def asked(design: designs.DBitFlip, size: int, bits: Bits) -> NDArray[np.int64]:
    """For each person, different categories, uniform, by Floyd's method: one more category joins in each step."""
    k, d = design.domain.size, design.asked
    out = np.empty((size, d), np.int64)
    for i, top in enumerate(range(k - d, k)):
        tried = uniform(top + 1, size, bits)
        taken = (out[:, :i] == tried[:, None]).any(axis=1)
        out[:, i] = np.where(taken, top, tried)
    return out


def answers(
    design: designs.DBitFlip, shape: tuple[int, ...], bits: Bits
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """What would be answered about one's own category, and what about another."""
    size = int(np.prod(shape))
    own = bernoulli(design.bits.p, size, bits).reshape(shape)
    return own, bernoulli(design.bits.q, size, bits).reshape(shape)


def packed(design: designs.DBitFlip, about: NDArray[np.int64], yes: NDArray[np.bool_]) -> Payload:
    """Yes among the first k bits, no among the last k."""
    k = design.domain.size
    rows = np.zeros((len(about), 2 * k), np.uint8)
    np.put_along_axis(rows, np.where(yes, about, about + k), 1, axis=1)
    return np.packbits(rows, axis=1, bitorder="little")

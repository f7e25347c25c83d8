"""Subset selection on the device."""

import math

import numpy as np
from numpy.typing import NDArray

from defocus.local.clients.unary import noisy_bits
from defocus.local.designs import SubsetSelection
from defocus.local.domains import Codes
from defocus.local.layouts import Payload
from defocus.noise import Bits, uniform
from defocus.noise.bits import Words

__all__ = ["randomise"]

_DEPTH = 8
"""Binary digits of the bias: it only has to be near, and each digit costs a word of random bits."""
_WORDS = 1 << 16
"""Words at once, which stay in the processor's cache."""


def randomise(design: SubsetSelection, codes: Codes, bits: Bits) -> Payload:
    """One set for each code."""
    words = -(-design.domain.size // 64)
    step = max(1, _WORDS // words)
    out = np.empty((len(codes), design.layout.length), np.uint8)
    for start in range(0, len(codes), step):
        sets = _sets(design, codes[start : start + step], bits)
        out[start : start + step] = sets.astype("<u8", copy=False).view(np.uint8)[:, : out.shape[1]]
    return out


def _sets(design: SubsetSelection, codes: Codes, bits: Bits) -> Words:
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

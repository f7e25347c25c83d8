"""Bloom filters of categories, one for each cohort: public, and the same for everybody.

A filter has ones where SHA-256 of cohort and label, cut into pieces of 4 bytes, each modulo the width, points. What is
hashed is ``cohort/label``, the number being the label where there are none, and ``cohort`` for the bucket of
others: so no label can be mistaken for that bucket.
"""

import hashlib
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from defocus.local.domains import Categories

__all__ = ["bloom_bits", "bloom_matrix", "bloom_positions", "sketch_hashes"]


def bloom_bits(
    domain: Categories, cohorts: NDArray[np.int64], codes: NDArray[np.int64], width: int, hashes: int
) -> NDArray[np.int64]:
    """Where the ones of each person's filter are, by hash function; some may coincide. Only these are hashed."""
    pairs, place = np.unique(cohorts * domain.size + codes, return_inverse=True)
    cut = [_digest(domain, *divmod(pair, domain.size))[: 4 * hashes] for pair in pairs.tolist()]
    bits = np.frombuffer(b"".join(cut), "<u4").astype(np.int64).reshape(-1, hashes) % width
    return np.asarray(bits[place.ravel()], np.int64)


@lru_cache(maxsize=8)
def bloom_positions(domain: Categories, cohorts: int, width: int, hashes: int) -> NDArray[np.int64]:
    """The same for every cohort and category."""
    everyone = np.arange(cohorts * domain.size)
    found = bloom_bits(domain, everyone // domain.size, everyone % domain.size, width, hashes)
    return found.reshape(cohorts, domain.size, hashes)


@lru_cache(maxsize=4)
def bloom_matrix(domain: Categories, cohorts: int, width: int, hashes: int) -> NDArray[np.float64]:
    """One row for each cohort and bit, one column for each category: whether its filter has a one there."""
    positions = bloom_positions(domain, cohorts, width, hashes)
    out = np.zeros((cohorts, width, domain.size))
    cohort, category = np.ix_(np.arange(cohorts), np.arange(domain.size))
    for i in range(hashes):
        out[cohort, positions[:, :, i], category] = 1.0
    return out.reshape(cohorts * width, domain.size)


def _digest(domain: Categories, cohort: int, code: int) -> bytes:
    other = domain.outside == "other" and code == domain.size - 1
    name = str(code) if domain.labels is None or other else domain.labels[code]
    return hashlib.sha256((f"{cohort}" if other else f"{cohort}/{name}").encode("utf-8", "surrogatepass")).digest()


_PRIME = (1 << 31) - 1
"""A Mersenne prime above the largest domain; products of two residues fit into 64 bits."""


@lru_cache(maxsize=16)
def _coefficients(seed: int, rows: int) -> NDArray[np.int64]:
    """Three residues modulo 2**31 - 1 for each row, from SHA-256: 64 bits are drawn for each, so none is preferred."""
    stream = hashlib.shake_256(f"defocus.local.sketch/{seed}".encode()).digest(24 * rows)
    return (np.frombuffer(stream, "<u8").reshape(rows, 3) % np.uint64(_PRIME)).astype(np.int64)


def sketch_hashes(
    seed: int, rows: int, width: int, row: NDArray[np.int64], codes: NDArray[np.int64]
) -> NDArray[np.int64]:
    r"""The column of each category in each given row: a random polynomial of degree 2 modulo a prime, modulo the width.

    Over the choice of coefficients, the columns of three different categories are independent, and each is uniform up
    to :math:`width / 2^{31}`.
    """
    a = _coefficients(seed, rows)[row]
    x = codes % _PRIME
    value = (a[..., 0] * x + a[..., 1]) % _PRIME
    value = (value * x + a[..., 2]) % _PRIME
    found: NDArray[np.int64] = value % width
    return found

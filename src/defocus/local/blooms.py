"""Bloom filters of categories, one for each cohort: public, and the same for everybody."""

import hashlib
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from defocus.local.domains import Categories

__all__ = ["bloom_matrix", "bloom_positions"]


@lru_cache(maxsize=8)
def bloom_positions(domain: Categories, cohorts: int, width: int, hashes: int) -> NDArray[np.int64]:
    """Where the ones of each category's filter are: by cohort, category and hash function. Some may coincide.

    SHA-256 of cohort and label, cut into pieces of 4 bytes, each modulo the width.
    """
    labels = domain.labels or ()
    names = [*labels, *(str(code) for code in range(len(labels), domain.size))]
    cut = [
        np.frombuffer(hashlib.sha256(f"{cohort}/{name}".encode()).digest(), "<u4")[:hashes]
        for cohort in range(cohorts)
        for name in names
    ]
    return (np.array(cut).astype(np.int64) % width).reshape(cohorts, domain.size, hashes)


@lru_cache(maxsize=4)
def bloom_matrix(domain: Categories, cohorts: int, width: int, hashes: int) -> NDArray[np.float64]:
    """One row for each cohort and bit, one column for each category: whether its filter has a one there."""
    positions = bloom_positions(domain, cohorts, width, hashes)
    out = np.zeros((cohorts, width, domain.size))
    cohort, category = np.ix_(np.arange(cohorts), np.arange(domain.size))
    for i in range(hashes):
        out[cohort, positions[:, :, i], category] = 1.0
    return out.reshape(cohorts * width, domain.size)

"""Hash functions of a sketch: public, fixed by a seed, and independent for any three categories."""

import hashlib
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["sketch_hashes"]

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

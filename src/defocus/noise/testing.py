"""Repeatable bits, for tests only: whoever knows the seed can subtract the noise."""

import hashlib
from collections.abc import Iterable
from typing import final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from defocus.errors import whole
from defocus.noise.bits import Bits, Words

__all__ = ["replay", "seeded"]


@final
class _Seeded(Bits):
    __slots__ = ("_stream",)

    def __init__(self, seed: int) -> None:
        key = hashlib.sha256(b"defocus.noise.testing" + str(seed).encode()).digest()
        self._stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def words(self, n: int) -> Words:
        return np.frombuffer(self._stream.update(bytes(8 * n)), "<u8").astype(np.uint64)


@final
class _Replay(Bits):
    __slots__ = ("_first", "_then")

    def __init__(self, first: Iterable[int], then: Bits) -> None:
        self._first = list(first)
        self._then = then

    def words(self, n: int) -> Words:
        head, self._first = self._first[:n], self._first[n:]
        return np.concatenate([np.array(head, np.uint64), self._then.words(n - len(head))])


def seeded(seed: int) -> Bits:
    """Return a source that repeats itself for each ``seed``. Tests only: it protects nobody.

    >>> seeded(7).integer(32) == seeded(7).integer(32) != seeded(8).integer(32)
    True
    """
    return _Seeded(whole("seed", seed))


def replay(first: Iterable[int], then: Bits) -> Bits:
    """Return a source that gives the words ``first``, then those of ``then``: to reach the rarest branches.

    >>> replay([0, 2**64 - 1], seeded(0)).words(2)
    array([                   0, 18446744073709551615], dtype=uint64)
    """
    return _Replay(first, then)

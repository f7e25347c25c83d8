"""Secret streams of one run: every draw of a run follows from one key, so that a run can go on where it stopped."""

import hashlib
from typing import final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from defocus.ledger.entries import canonical
from defocus.noise.bits import Bits, Words

__all__ = ["KEY_BYTES", "Stream", "derive", "new_key"]

KEY_BYTES = 32
_PERSON = b"defocus learning"


def new_key(bits: Bits) -> bytes:
    """A fresh secret for one run."""
    return bits.words(KEY_BYTES // 8).astype("<u8").tobytes()


def derive(key: bytes, *labels: str | int, size: int = 48) -> bytes:
    """A secret for one purpose, named by its labels: secrets of different labels are independent.

    Assumes:
        Keyed BLAKE2b is a pseudorandom function.

    >>> derive(bytes(32), "noise", 1) != derive(bytes(32), "noise", 2)
    True
    """
    text = canonical(list(labels)).encode()
    return hashlib.blake2b(text, key=key, digest_size=size, person=_PERSON).digest()


@final
class Stream(Bits):
    """Bits that follow from a key and labels: AES-256 in counter mode.

    The same key and labels give the same bits, so that a run that is resumed draws what it would have drawn. They are
    as secret as the key.
    """

    __slots__ = ("_cipher",)

    def __init__(self, key: bytes, *labels: str | int) -> None:
        secret = derive(key, *labels)
        self._cipher = Cipher(algorithms.AES(secret[:32]), modes.CTR(secret[32:])).encryptor()

    def words(self, n: int) -> Words:
        """See the base class."""
        out = np.empty(n, np.uint64)
        self.fill(out.view(np.uint8).data)
        return out

    def integer(self, nbits: int) -> int:
        """See the base class."""
        count = max(1, -(-nbits // 64))
        value = 0
        for word in self.words(count).tolist():
            value = value << 64 | word
        return value >> (64 * count - nbits)

    def fill(self, view: memoryview) -> None:
        """Overwrite ``view`` with fresh bytes."""
        for start in range(0, len(view), len(_ZEROS)):
            part = view[start : start + len(_ZEROS)]
            self._cipher.update_into(_ZEROS[: len(part)], part)


_ZEROS = memoryview(bytes(1 << 20))

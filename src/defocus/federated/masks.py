"""What hides a vector: streams that cancel between two parties, and the keys and shares behind them."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from defocus.errors import ProtocolError
from defocus.federated.identity import KEY

__all__ = ["PAIR", "SELF", "TAG", "add_masks", "commitment", "derived", "exchanged", "nonce_of", "usable"]

TAG = 16
"""Bytes that show that sealed shares are whole."""
SELF, PAIR = 0, 1
"""What a share is of: a party's own mask, or its key for the masks with others. Seeds of spare noise come after."""
_CHUNK = 1 << 15
"""Numbers that are masked at a time, so that they stay in the processor's cache."""


def add_masks(vector: NDArray[Any], keys: Sequence[tuple[bytes, bool]]) -> None:
    """Add the stream of each key to a vector, or subtract it where the flag says so."""
    streams = [(Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor(), minus) for key, minus in keys]
    width = vector.itemsize
    mask, zeros = np.empty(_CHUNK, vector.dtype), bytes(_CHUNK * width)
    into = memoryview(mask.view(np.uint8))  # type: ignore[arg-type]
    for start in range(0, len(vector), _CHUNK):
        part = vector[start : start + _CHUNK]
        size = len(part) * width
        for stream, minus in streams:
            stream.update_into(memoryview(zeros)[:size], into[:size])
            if minus:
                part -= mask[: len(part)]
            else:
                part += mask[: len(part)]


def derived(secret: bytes, session: bytes, what: bytes) -> bytes:
    """A key for one use in one sum."""
    return HKDF(SHA256(), KEY, salt=session, info=b"defocus.sum/2 " + what).derive(secret)


def exchanged(mine: tuple[int, X25519PrivateKey], theirs: tuple[int, bytes], session: bytes, what: bytes) -> bytes:
    """A key of two parties, bound to their numbers and to both public keys.

    Other bytes can stand for a key with the same secret: the point with its unused bit set, or moved by one of small
    order. Unless the key is bound to who sent which bytes, whoever sends such a twin of another's key gets the
    other's masks, and the two cancel.
    """
    number, own = mine
    try:
        shared = own.exchange(X25519PublicKey.from_public_bytes(theirs[1]))
    except ValueError:
        raise ProtocolError("A party sent a key that is none.") from None
    both = sorted([(number, own.public_key().public_bytes_raw()), theirs])
    return derived(shared, session, what + b"".join(each.to_bytes(2) + public for each, public in both))


def usable(public: bytes) -> bool:
    """Whether keys can be exchanged with it: with a point of small order, all would be zero, and are refused."""
    try:
        X25519PrivateKey.generate().exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        return False
    return True


def nonce_of(sender: int, receiver: int) -> bytes:
    """One of two for each pair of parties, which has a key of its own."""
    return bytes(11) + bytes([sender < receiver])


def commitment(session: bytes, dealer: int, holder: int, share: bytes) -> bytes:
    """What a dealer says of a share before it is seen, so that a wrong one is known."""
    return hashlib.sha256(session + dealer.to_bytes(2) + holder.to_bytes(2) + share).digest()

"""Keys with which parties sign, and by which others know them."""

import hashlib
from dataclasses import dataclass, field
from typing import final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from defocus.errors import InvalidParameterError, ProtocolError

__all__ = ["KEY", "Identity", "verified"]

KEY = 32
"""Bytes of a key, public or private."""


@final
@dataclass(frozen=True, slots=True)
class Identity:
    """The key with which a party signs. It is never shown; others know ``public``.

    >>> len(Identity.generate().public)
    32
    """

    _private: Ed25519PrivateKey = field(repr=False)

    @staticmethod
    def generate() -> "Identity":
        """A new one."""
        return Identity(Ed25519PrivateKey.generate())

    @staticmethod
    def from_bytes(secret: object) -> "Identity":
        """One that :meth:`to_bytes` gave."""
        if not isinstance(secret, bytes) or len(secret) != KEY:
            raise InvalidParameterError("An identity has 32 bytes.", fix="pass what Identity.to_bytes() gave.")
        return Identity(Ed25519PrivateKey.from_private_bytes(secret))

    def to_bytes(self) -> bytes:
        """The secret itself: whoever has it can speak as this party."""
        return self._private.private_bytes_raw()

    @property
    def public(self) -> bytes:
        """The public key, 32 bytes."""
        return self._private.public_key().public_bytes_raw()

    def signed(self, head: bytes, body: bytes) -> bytes:
        """A whole message."""
        return head + body + self._private.sign(head + hashlib.sha256(body).digest())


def verified(public: bytes, head: bytes, body: bytes | memoryview, signature: bytes) -> None:
    """Refuse a message that its sender did not sign."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, head + hashlib.sha256(body).digest())
    except InvalidSignature:
        raise ProtocolError("A message does not bear the signature of its sender.") from None

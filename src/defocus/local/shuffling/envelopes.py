r"""Sealed messages: only who holds the private key reads them, and only unchanged.

``32 bytes of a fresh public key | ciphertext | 16 bytes of tag``. The key is HKDF-SHA256 of the X25519 secret between
the fresh and the reader's key, bound to both public keys and to a context; the cipher is ChaCha20-Poly1305, and since
every message has a key of its own, its nonce is zero. A message sealed for another reader or in another context does
not open.
"""

from dataclasses import dataclass, field
from typing import final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from defocus.errors import InvalidParameterError, SealError

__all__ = ["GROWTH", "Key", "seal", "seal_alike"]

GROWTH = 48
"""How many bytes sealing adds."""
_KEY = 32
"""Bytes of an X25519 key."""
_NONCE = bytes(12)


@final
@dataclass(frozen=True, slots=True)
class Key:
    """A private key. It is never shown; ``public`` is what others seal with.

    ``fresh`` is a key that was made in this process: nothing was sealed for it before.

    >>> len(Key.generate().public)
    32
    """

    _private: X25519PrivateKey = field(repr=False)
    fresh: bool = False

    @staticmethod
    def generate() -> "Key":
        """A new one from the operating system's randomness."""
        return Key(X25519PrivateKey.generate(), fresh=True)

    @staticmethod
    def from_bytes(secret: object) -> "Key":
        """One that :meth:`to_bytes` gave."""
        if not isinstance(secret, bytes) or len(secret) != _KEY:
            raise InvalidParameterError("A private key has 32 bytes.", fix="pass what Key.to_bytes() gave.")
        return Key(X25519PrivateKey.from_private_bytes(secret))

    def to_bytes(self) -> bytes:
        """The secret itself: whoever has it reads everything."""
        return self._private.private_bytes_raw()

    @property
    def public(self) -> bytes:
        """The public key, 32 bytes."""
        return self._private.public_key().public_bytes_raw()

    def proof(self, other: bytes, context: bytes) -> bytes:
        """32 bytes that only the holders of this key and of that of ``other`` can know."""
        shared = _exchanged(self._private, other)
        return _derived(shared, b"", bytes(a ^ b for a, b in zip(self.public, other, strict=True)), context)

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """What was sealed for this key in this context; anything else is refused."""
        if len(sealed) < GROWTH:
            raise SealError("A message shorter than its seal")
        fresh = bytes(sealed[:_KEY])
        try:
            shared = self._private.exchange(X25519PublicKey.from_public_bytes(fresh))
            return ChaCha20Poly1305(_derived(shared, fresh, self.public, context)).decrypt(
                _NONCE, bytes(sealed[_KEY:]), context
            )
        except (InvalidTag, ValueError):
            raise SealError("A sealed message") from None


def seal(message: bytes, public: bytes, context: bytes) -> bytes:
    """Seal ``message`` for whoever holds the private key of ``public``.

    >>> key = Key.generate()
    >>> key.open(seal(b"yes", key.public, b"a poll"), b"a poll")
    b'yes'
    """
    return _sealed(X25519PrivateKey.generate(), message, public, context)


def seal_alike(message: bytes, public: bytes, context: bytes) -> bytes:
    """Seal ``message`` so that equal messages look alike; nothing else is seen by who cannot guess what they say.

    The fresh key is derived from message, reader and context, so that each message has a key of its own. Whoever can
    guess a message can seal it too, and compare.

    >>> key = Key.generate()
    >>> seal_alike(b"yes", key.public, b"a poll") == seal_alike(b"yes", key.public, b"a poll")
    True
    """
    derived = HKDF(SHA256(), _KEY, salt=None, info=b"defocus.alike/1" + public + context).derive(message)
    return _sealed(X25519PrivateKey.from_private_bytes(derived), message, public, context)


def _sealed(fresh: X25519PrivateKey, message: bytes, public: bytes, context: bytes) -> bytes:
    shared = _exchanged(fresh, public)
    own = fresh.public_key().public_bytes_raw()
    return own + ChaCha20Poly1305(_derived(shared, own, public, context)).encrypt(_NONCE, message, context)


def _exchanged(private: X25519PrivateKey, public: bytes) -> bytes:
    try:
        return private.exchange(X25519PublicKey.from_public_bytes(public))
    except (ValueError, TypeError):
        raise InvalidParameterError("This is no public key.", fix="pass the 32 bytes of Key.public.") from None


def _derived(shared: bytes, fresh: bytes, public: bytes, context: bytes) -> bytes:
    return HKDF(SHA256(), _KEY, salt=None, info=b"defocus.seal/1" + fresh + public + context).derive(shared)

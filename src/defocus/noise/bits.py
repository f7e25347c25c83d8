"""Where random bits come from: the operating system's generator, stretched by a stream cipher."""

import hashlib
import hmac
import os
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import final

import numpy as np
import numpy.typing as npt

from defocus.errors import NotBitsError

__all__ = ["Bits", "Words", "bound", "source", "system"]

Words = npt.NDArray[np.uint64]
"""An array of 64-bit words, every bit of them uniform and independent."""

_BLOCK = bytes(1 << 20)
_POOL = 256


class Bits(ABC):
    """A source of uniform, independent random bits: the only thing an outcome may depend on.

    >>> isinstance(system(), Bits), len(system().words(4))
    (True, 4)
    """

    __slots__ = ()

    @abstractmethod
    def words(self, n: int) -> Words:
        """Return ``n`` fresh 64-bit words, in an array the caller may overwrite."""

    def integer(self, nbits: int) -> int:
        """Return a fresh uniform integer in range(2**nbits): the leading bits of as many words as it needs."""
        count = max(1, -(-nbits // 64))
        value = 0
        for word in self.words(count).tolist():
            value = value << 64 | word
        return value >> (64 * count - nbits)


@final
class _System(Bits):
    """The default source. Made by :func:`system`, once in each process."""

    __slots__ = ("__weakref__", "_pool", "_process")

    def __init__(self) -> None:
        self._pool: list[int] = []
        self._process = os.getpid()
        if hasattr(os, "register_at_fork"):  # where processes can fork
            os.register_at_fork(after_in_child=_forgetting(weakref.ref(self)))

    def words(self, n: int) -> Words:
        out = np.empty(n, np.uint64)
        view = out.view(np.uint8).data
        for start in range(0, len(view), len(_BLOCK)):
            _stretching()(view[start : start + len(_BLOCK)])
        return out

    def integer(self, nbits: int) -> int:
        # Hot for single releases. list.pop hands each word to one caller only, also between threads and
        # when a signal handler interrupts; a word is gone from memory that others can reach once handed out.
        if self._process != os.getpid():
            self.forget()
        value, have = self._word(), 64
        while have < nbits:
            value, have = value << 64 | self._word(), have + 64
        return value >> (have - nbits)

    def forget(self) -> None:
        """Drop what a parent process may hand out as well."""
        self._pool.clear()
        self._process = os.getpid()

    def __reduce__(self) -> tuple[Callable[[], Bits], tuple[()]]:
        """Travel to another process, or be copied, as a name and never as a state."""
        return system, ()

    def _word(self) -> int:
        try:
            return self._pool.pop()
        except IndexError:
            fresh: list[int] = self.words(_POOL).tolist()
            word = fresh.pop()
            self._pool.extend(fresh)
            return word


@cache
def _stretching() -> Callable[[memoryview], None]:
    """What fills at most a mebibyte with fresh bits: a stream cipher, several times as fast as the system's generator.

    The generator itself where ``cryptography`` is not installed, as on devices that only send reports.
    """
    try:
        ciphers = import_module("cryptography.hazmat.primitives.ciphers")
    except ImportError:
        return _from_the_system

    def stretch(part: memoryview) -> None:
        secret = os.urandom(48)
        stream = ciphers.Cipher(ciphers.algorithms.AES(secret[:32]), ciphers.modes.CTR(secret[32:])).encryptor()
        stream.update_into(memoryview(_BLOCK)[: len(part)], part)

    return stretch


def _from_the_system(part: memoryview) -> None:
    part[:] = os.urandom(len(part))


def _forgetting(reference: "weakref.ref[_System]") -> Callable[[], None]:
    def after_fork() -> None:
        bits = reference()
        if bits is not None:
            bits.forget()

    return after_fork


@cache
def system() -> Bits:
    """Return the cryptographic source of random bits: AES-256 in counter mode under keys from the operating system.

    Guarantee:
        Bits are computationally indistinguishable from uniform and independent ones. Every request for many
        words, and every mebibyte within it, runs under a key and counter of its own, fresh from
        ``os.urandom`` and forgotten at once. Single integers come from a pool of at most a few hundred such
        words; each word leaves the pool when it is used, so threads never share one, and a forked child
        empties the pool before it can repeat what its parent draws.
    Assumes:
        The operating system's generator is seeded and AES-256 is a pseudorandom permutation (without the package
        ``cryptography`` all bits come from the system's generator itself). A virtual machine
        resumed twice from one snapshot may repeat the pool.
    Reference:
        NIST SP 800-38A (counter mode); Garfinkel, Leclerc (2020), Randomness concerns when deploying
        differential privacy.

    >>> system().words(3).dtype
    dtype('uint64')
    >>> 0 <= system().integer(100) < 2**100
    True
    """
    return _System()


@final
class _Bound(Bits):
    """One stream. Made by :func:`bound`."""

    __slots__ = ("_stream",)

    def __init__(self, key: bytes) -> None:
        ciphers = import_module("cryptography.hazmat.primitives.ciphers")
        self._stream = ciphers.Cipher(ciphers.algorithms.AES(key), ciphers.modes.CTR(bytes(16))).encryptor()

    def words(self, n: int) -> Words:
        return np.frombuffer(self._stream.update(bytes(8 * n)), "<u8").astype(np.uint64)

    def __reduce__(self) -> tuple[Callable[[], Bits], tuple[()]]:
        """Refuse to travel: two copies would hand out the same words."""
        raise TypeError("bits that are bound to a value stay where they are made")


def bound(secret: bytes, value: bytes) -> Bits:
    r"""Return the bits that belong to a value under a secret: AES-256 in counter mode under HMAC-SHA-256 of the value.

    For noise that is drawn far from the secret, by processes that may be run again: noise drawn from these bits is the
    same whenever it is added to the same value, and independent of it whenever it is added to another.

    Guarantee:
        Whoever does not know the ``secret`` (32 uniform bytes, used for one release) cannot tell the streams of
        different values from uniform and independent ones. So noise on values that are all different in one release,
        such as blocks with different keys, has the law of fresh noise, whatever the values are. A value that is noised
        twice gives the same sum twice, and two values never share their noise, of which the difference would be bare.
    Assumes:
        HMAC-SHA-256 is a pseudorandom function and AES-256 a pseudorandom permutation. The secret is forgotten
        afterwards: with it, all noise can be drawn again, and subtracted.
    Reference:
        Bellare (2006), New proofs for NMAC and HMAC; NIST SP 800-38A (counter mode).

    >>> secret = bytes(32)  # of a test; else of the system's bits
    >>> bound(secret, b"a").integer(64) == bound(secret, b"a").integer(64) != bound(secret, b"b").integer(64)
    True
    """
    return _Bound(hmac.new(secret, value, hashlib.sha256).digest())


def source(bits: object) -> Bits:
    """Return ``bits``, or the system's source for None; anything else (a seed, a numpy generator) is refused.

    >>> source(42)
    Traceback (most recent call last):
    ...
    defocus.errors.core.NotBitsError: bits must be a source of cryptographic random bits, but it is of type int.
    To fix: leave bits out; a test that needs repeatable noise passes defocus.noise.testing.seeded(seed).
    """
    if bits is None:
        return system()
    if not isinstance(bits, Bits):
        raise NotBitsError(bits)
    return bits

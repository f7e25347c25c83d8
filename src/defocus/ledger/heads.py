"""Signed heads: how long a ledger is and what is in it, in one signed line that others can hold against it.

A head commits to all entries by the root of their Merkle tree. Two heads of one ledger with a proof between them show
that nothing before was rewritten. A witness signs a head only if it follows from the last one that it signed, so that
a keeper cannot show one history to some and another to others.
"""

import contextlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from defocus.errors import InvalidParameterError, LedgerDamagedError, LedgerUnavailableError
from defocus.ledger.entries import canonical
from defocus.ledger.lock import file_lock, sync_directory
from defocus.ledger.merkle import consistent

__all__ = ["Head", "SigningKey", "signed_by", "witness"]

_TAG = b"defocus ledger head 1\n"
_LONGEST = 1 << 20


@final
@dataclass(frozen=True, slots=True)
class SigningKey:
    """An Ed25519 key that signs heads and bundles. Made by :meth:`open`; it is shown by its public half only.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     SigningKey.open(f"{home}/hospital.key").public == SigningKey.open(f"{home}/hospital.key").public
    True
    """

    _private: Ed25519PrivateKey

    @classmethod
    def open(cls, path: "str | Path | SigningKey") -> "SigningKey":
        """The key in a file, made for its owner alone if there is none."""
        if isinstance(path, SigningKey):
            return path
        place = Path(path)
        try:
            if not place.exists():
                _write(place, Ed25519PrivateKey.generate())
            private = serialization.load_pem_private_key(place.read_bytes(), password=None)
        except OSError as error:
            raise LedgerUnavailableError(
                f"The key {place} cannot be used: {error.strerror}.", fix="name a file in a folder that you may write."
            ) from None
        except (ValueError, TypeError):
            private = None
        if not isinstance(private, Ed25519PrivateKey):
            raise InvalidParameterError(
                f"{place} does not hold a private Ed25519 key without a password.",
                fix="name another file; one that does not exist is made.",
            )
        return cls(private)

    @property
    def public(self) -> str:
        """The public half, in hexadecimal: whoever checks a signature needs to know it from elsewhere."""
        return self._private.public_key().public_bytes_raw().hex()

    def sign(self, message: bytes) -> str:
        """The signature of a message, in hexadecimal."""
        return self._private.sign(message).hex()

    def __repr__(self) -> str:
        return f"SigningKey({self.public})"


def signed_by(public: str, message: bytes, signature: str) -> bool:
    """Whether the signature of a message is by this public key, each written in the one way that :meth:`sign` writes.

    >>> signed_by("00" * 32, b"", "not a signature")
    False
    """
    try:
        key, text = bytes.fromhex(public), bytes.fromhex(signature)
        Ed25519PublicKey.from_public_bytes(key).verify(text, message)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return (key.hex(), text.hex()) == (public, signature)


@final
@dataclass(frozen=True, slots=True)
class Head:
    """That a ledger has ``size`` entries under one Merkle ``root``, signed by its keeper and perhaps by witnesses.

    ``proof`` connects it with the head of its first ``since`` entries. Made by :meth:`.Ledger.head`.

    >>> from defocus import examples
    >>> from defocus.privacy import Laplace
    >>> home = examples.folder()
    >>> book = examples.ledger()
    >>> first = book.head(f"{home}/hospital.key")
    >>> receipt = book.charge(Laplace(2), purpose="a count")
    >>> book.head(f"{home}/hospital.key", since=first).follows(first)
    True
    >>> book.close()
    """

    ledger: str
    size: int
    root: str
    time: str
    signatures: tuple[tuple[str, str], ...] = ()
    since: int = 0
    proof: tuple[str, ...] = ()

    @property
    def _message(self) -> bytes:
        said = {"ledger": self.ledger, "size": self.size, "root": self.root, "time": self.time}
        return _TAG + canonical(said).encode()

    def signed(self, key: SigningKey) -> "Head":
        """The head with one signature more."""
        others = tuple(pair for pair in self.signatures if pair[0] != key.public)
        return replace(self, signatures=(*others, (key.public, key.sign(self._message))))

    def is_signed(self, public: str) -> bool:
        """Whether there is a valid signature by this key."""
        return any(signed_by(key, self._message, text) for key, text in self.signatures if key == public)

    @property
    def forged(self) -> bool:
        """Whether a signature is not valid."""
        return not all(signed_by(key, self._message, text) for key, text in self.signatures)

    def follows(self, older: "Head") -> bool:
        """Whether the proof shows that this ledger begins with all entries of the older head."""
        if self.ledger != older.ledger or older.size not in {self.since, self.size}:
            return False
        try:
            tops = bytes.fromhex(older.root), bytes.fromhex(self.root)
            proof = [bytes.fromhex(text) for text in self.proof] if self.size != older.size else []
        except ValueError:
            return False
        return consistent(older.size, tops[0], self.size, tops[1], proof)

    def to_dict(self) -> dict[str, Any]:
        """The head with JSON types only."""
        return {
            "ledger": self.ledger,
            "size": self.size,
            "root": self.root,
            "time": self.time,
            "signatures": [list(pair) for pair in self.signatures],
            "since": self.since,
            "proof": list(self.proof),
        }

    @classmethod
    def read(cls, data: Any) -> "Head":
        """The head that :meth:`to_dict` wrote, or its JSON text."""
        refusal = InvalidParameterError(
            "This is not the head of a ledger.", fix="pass what ledger.head(…) or defocus ledger head wrote."
        )
        try:
            fields = json.loads(data) if isinstance(data, str | bytes) and len(data) <= _LONGEST else data
            pairs = tuple((str(key), str(signature)) for key, signature in fields["signatures"])
            texts = [fields["ledger"], fields["root"], fields["time"], *fields["proof"]]
            sizes = [fields["size"], fields["since"]]
        except (KeyError, TypeError, ValueError, RecursionError):
            raise refusal from None
        known = all(isinstance(text, str) for text in texts)
        if not known or not all(type(size) is int and 0 <= size < 1 << 62 for size in sizes):
            raise refusal
        ledger, root, time, *proof = texts
        return cls(ledger, sizes[0], root, time, pairs, sizes[1], tuple(proof))

    def __str__(self) -> str:
        return f"{self.size} entries of ledger {self.ledger[:8]} at {self.time[:19]}: {self.root}"


def witness(head: Head, key: "str | Path | SigningKey", memory: str | Path) -> Head:
    """Sign a head that follows from the last one that was signed here, and remember it; refuse any other.

    Guarantee:
        Of all heads of one ledger that one memory signed, each begins with the entries of the one before, and shares a
        signature with it that is not the witness's own.

    Args:
        head: what the keeper of the ledger sent, with a proof since the last one.
        key: the key of the witness, or its file.
        memory: the file that remembers the last head of each ledger.

    >>> from defocus import examples
    >>> home = examples.folder()
    >>> book = examples.ledger()
    >>> head = witness(book.head(f"{home}/a.key"), f"{home}/b.key", f"{home}/heads.json")
    >>> len(head.signatures)
    2
    >>> book.close()
    """
    place, own = Path(memory), SigningKey.open(key)
    if not head.signatures or head.forged:
        raise LedgerDamagedError("The head is not signed as it says.", fix="ask the keeper for it again.")
    held = file_lock(place, timeout=None)
    with contextlib.nullcontext() if held is None else contextlib.closing(held):
        known = _remembered(place)
        last = known.get(head.ledger)
        keepers = set() if last is None else {public for public, _ in last.signatures} - {own.public}
        if keepers and not any(head.is_signed(public) for public in keepers):
            raise LedgerDamagedError(
                "The head is not signed by the keeper of the last one that was signed here: anybody can sign a head of"
                " a ledger whose name they know.",
                fix="ask the keeper for it; who changes the key signs one head with the old key and the new one.",
            )
        if last is not None and not head.follows(last):
            raise LedgerDamagedError(
                f"The head does not follow from that of {last.size} entries, which was signed at {last.time[:19]}:"
                " the history was rewritten, or the proof is missing.",
                fix=f"ask the keeper for a proof since {last.size} entries: defocus ledger head … --since FILE.",
            )
        signed = head.signed(own)
        _remember(place, {**known, head.ledger: signed}.values())
    return signed


def _remembered(place: Path) -> dict[str, Head]:
    try:
        heads = [Head.read(entry) for entry in json.loads(place.read_text(encoding="utf-8"))]
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError):
        raise LedgerDamagedError(
            f"The memory of the witness, {place}, cannot be read.", fix="restore it from a trusted copy."
        ) from None
    return {head.ledger: head for head in heads}


def _remember(place: Path, heads: Iterable[Head]) -> None:
    temporary = place.with_name(f"{place.name}.new")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(canonical([head.to_dict() for head in heads]))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(place)
    sync_directory(place.parent)


def _write(place: Path, private: Ed25519PrivateKey) -> None:
    """The key in a file that only its owner may read; a file that another process made meanwhile stays."""
    text = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with contextlib.suppress(FileExistsError):
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        sync_directory(place.parent)

"""Messages of a secure sum, as bytes: strict to read, so that there is one way to write each.

``kind (1) | session (32) | sender (2) | body | signature (64)``; what the coordinator sends has no sender and no
signature, since nobody relies on its word. Numbers are unsigned and big-endian, but for
masked vectors, which are little-endian.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple, final

from defocus.errors import ProtocolError

__all__ = [
    "HEAD",
    "SIGNATURE",
    "Kind",
    "Received",
    "bitmap",
    "heading",
    "known",
    "numbers",
    "read",
    "rows",
    "table",
    "written",
]

SIGNATURE = 64
HEAD = 35
_SESSION = 32


@final
class Kind(IntEnum):
    """What a message says: those of parties are odd, and those of the coordinator even."""

    KEYS = 1
    DIRECTORY = 2
    SHARES = 3
    INBOX = 4
    MASKED = 5
    SURVIVORS = 6
    CONFIRMED = 7
    CONFIRMATIONS = 8
    REVEALED = 9


class Received(NamedTuple):
    """A message of which the form was checked, and nothing else."""

    sender: int
    """The number of a party; 0 for the coordinator."""
    signed: bytes
    body: memoryview
    signature: bytes


def heading(kind: Kind, session: bytes, sender: int = 0) -> bytes:
    """How a message begins."""
    return bytes([kind]) + session + sender.to_bytes(2)


def written(kind: Kind, session: bytes, body: bytes) -> bytes:
    """A message of the coordinator."""
    return heading(kind, session) + body


def read(message: object, kind: Kind, session: bytes) -> Received:
    """The parts of a message of this kind and session; anything else is refused."""
    signed = kind % 2 == 1
    least = HEAD + (SIGNATURE if signed else 0)
    if not isinstance(message, bytes) or len(message) < least:
        raise ProtocolError("A message is no message of a secure sum.")
    if message[0] != kind:
        raise ProtocolError(f"A message came where one of kind {kind.name.lower()} was due.")
    if message[1 : 1 + _SESSION] != session:
        raise ProtocolError("A message belongs to another sum or to an earlier round.")
    sender = int.from_bytes(message[HEAD - 2 : HEAD])
    end = len(message) - SIGNATURE if signed else len(message)
    if not signed and sender:
        raise ProtocolError("A message of the coordinator names a sender.")
    view = memoryview(message)
    return Received(sender, message[:HEAD], view[HEAD:end], message[end:])


def table(rows: Iterable[tuple[int, bytes]]) -> bytes:
    """Numbers of parties, each with something of one length."""
    return b"".join(number.to_bytes(2) + value for number, value in rows)


def rows(body: memoryview, width: int) -> Iterator[tuple[int, bytes]]:
    """What :func:`table` wrote, with ``width`` bytes for each party; numbers must rise."""
    if len(body) % (width + 2):
        raise ProtocolError("A message has the wrong length.")
    last = 0
    for start in range(0, len(body), width + 2):
        number = int.from_bytes(body[start : start + 2])
        if number <= last:
            raise ProtocolError("A message names a party twice, or not in order.")
        last = number
        yield number, bytes(body[start + 2 : start + 2 + width])


def numbers(body: memoryview, parties: int) -> frozenset[int]:
    """Which parties a row of bits names: the first bit is that of party 1."""
    if len(body) != -(-parties // 8) or (parties % 8 and body[-1] & (0xFF >> parties % 8)):
        raise ProtocolError("A message has the wrong length.")
    return frozenset(1 + i for i in range(parties) if body[i // 8] >> (7 - i % 8) & 1)


def bitmap(named: Iterable[int], parties: int) -> bytes:
    """The row of bits that :func:`numbers` reads.

    >>> bitmap([1, 10], 12).hex()
    '8040'
    """
    found = bytearray(-(-parties // 8))
    for number in named:
        found[(number - 1) // 8] |= 0x80 >> (number - 1) % 8
    return bytes(found)


def known(named: Iterable[int], allowed: Sequence[int] | frozenset[int]) -> None:
    """Refuse a message that names others than it may."""
    if not set(named) <= set(allowed):
        raise ProtocolError("A message names a party that has no part in it.")

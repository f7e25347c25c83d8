"""The analyser: opens sealed batches and the reports in them, and counts."""

from dataclasses import dataclass
from typing import final

from defocus.errors import InvalidParameterError, SealError
from defocus.local.servers import Server
from defocus.local.shuffling.envelopes import Key
from defocus.local.shuffling.rounds import VERSION, Round, receipt

__all__ = ["Analyser", "Opened"]


@final
@dataclass(frozen=True, slots=True)
class Opened:
    """What a batch held: reports as messages for the oracle's server, and how many could not be opened.

    >>> from defocus import local
    >>> from defocus.local.shuffling import Analyser, Key, Round, Shuffler
    >>> ours, theirs = Key.generate(), Key.generate()
    >>> asked = local.oracle("k-rr", 4, epsilon=2)
    >>> described = Round(asked.design, users=3, shuffler=ours.public, analyser=theirs.public)
    >>> mixer = Shuffler(described, ours)
    >>> for envelope in described.envelopes(asked.encode([1, 2, 3])):
    ...     _ = mixer.accept(envelope)
    >>> found = Analyser(described, theirs).open(mixer.release())
    >>> len(found.messages), found.unreadable
    (3, 0)
    """

    messages: tuple[bytes, ...]
    unreadable: int


@final
@dataclass(frozen=True, slots=True)
class Analyser:
    """One round at the analyser, who holds the only key that opens reports and batches.

    >>> from defocus import local
    >>> from defocus.local.shuffling import Analyser, Key, Round, Shuffler
    >>> ours, theirs = Key.generate(), Key.generate()
    >>> asked = local.oracle("k-rr", 4, epsilon=2)
    >>> described = Round(asked.design, users=100, shuffler=ours.public, analyser=theirs.public)
    >>> mixer = Shuffler(described, ours)
    >>> for envelope in described.envelopes(asked.encode([1] * 100)):
    ...     _ = mixer.accept(envelope)
    >>> batch = mixer.release()
    >>> Analyser(described, theirs).count(batch)
    <server: 100 reports of k-rr counted, 0 rejected>
    """

    round: Round
    key: Key

    def __post_init__(self) -> None:
        if self.key.public != self.round.analyser:
            raise InvalidParameterError("This key is not the round's analyser key.", fix="pass that of Round.analyser.")

    def receipt(self, index: int = 0) -> bytes:
        """What tells the shuffler that the batch of this number arrived; nobody else can make it."""
        return receipt(self.round, self.key, self.round.shuffler, index)

    def open(self, batch: bytes) -> Opened:
        """The messages of a batch, in the shuffler's order; a batch that does not open is refused as a whole."""
        body = self.key.open(batch, b"batch" + self.round.digest)
        length = self.round.sealed_length
        number = int.from_bytes(body[1:9], "little")
        if body[:1] != bytes((VERSION,)) or len(body) != 9 + number * length or number < self.round.users:
            raise SealError("A batch of another version, length or size")
        messages, unreadable = [], 0
        for i in range(number):
            try:
                sealed = body[9 + i * length : 9 + (i + 1) * length]
                messages.append(self.key.open(sealed, b"report" + self.round.digest))
            except SealError:
                unreadable += 1
        return Opened(tuple(messages), unreadable)

    def count(self, batch: bytes) -> Server:
        """A server that has counted a batch; what does not open is among its rejected messages."""
        opened = self.open(batch)
        server = Server(self.round.design)
        server.add_many(opened.messages)
        for _ in range(opened.unreadable):
            server.add(b"")
        return server

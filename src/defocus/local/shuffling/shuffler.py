"""The shuffler: takes envelopes, forgets who sent them, waits for enough, and seals a batch in random order."""

import hashlib
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, final

from defocus.errors import InvalidParameterError, SealError, count
from defocus.local.servers import Server
from defocus.local.shuffling.crowds import Crowds, CrowdServer
from defocus.local.shuffling.envelopes import Key, seal
from defocus.local.shuffling.histograms import HistogramServer, MultiMessageHistogram
from defocus.local.shuffling.rounds import VERSION, Round, receipt
from defocus.local.shuffling.sums import MultiMessageSum, SumServer
from defocus.noise import Bits, permutation, uniform

__all__ = ["REASONS", "Analyser", "Opened", "Reason", "Shuffler"]


Reason: TypeAlias = Literal["truncated", "oversized", "unreadable", "replayed", "full"]
REASONS: tuple[Reason, ...] = ("truncated", "oversized", "unreadable", "replayed", "full")
"""Why an envelope is rejected: of another length than all; not sealed for this shuffler and round; a copy of one that
was seen before; or no room is left, or none to note it."""

_MARK = 16
"""Bytes that stand for an accepted envelope: by chance no two of 2**40 are alike."""
_NUMBER = 8
"""Bytes of a number in a batch."""


@final
class Shuffler:
    """One round at the shuffler. Thread-safe; nothing but sealed reports is kept, and those in no order.

    Guarantee:
        A batch holds all messages of at least ``round.users`` distinct envelopes, in a uniformly random order that is
        independent of the order of arrival and of which came together, and is sealed for the analyser. Of ``Crowds``
        it holds the large enough ones, with noisy numbers. What the shuffler keeps of an envelope is the messages
        inside, which it cannot read, each in a random place among those that wait, and a hash of them all by which
        copies are rejected, under its own key, so that nobody else can find a report by it. An envelope is taken whole
        or not at all.

        Copies are rejected for as long as the hashes live. In memory, that is this object's life, and so the key shall
        be this shuffler's only: one that was stored and read again is refused. With ``marks``, the hashes are also
        written to a file, before a report is accepted, and a shuffler that is restarted with the same key and file goes
        on rejecting. (Reports that waited when it stopped are lost, and their copies rejected.)
    Assumes:
        The shuffler does not collude with the analyser, and envelopes come from that many different honest users: an
        attacker who sends all envelopes but one hides nobody. Who may send is for the deployment to check.

    >>> from defocus import examples
    >>> from defocus.local.shuffling import Shuffler
    >>> asked, described, ours, theirs = examples.shuffled(100)
    >>> mixer = Shuffler(described, ours)
    >>> for envelope in described.envelopes(asked.encode([1] * 100)):
    ...     _ = mixer.accept(envelope)
    >>> len(mixer.release())
    5957
    """

    def __init__(self, described: Round, key: Key, *, most: int = 10_000_000, marks: str | Path | None = None) -> None:
        if key.public != described.shuffler:
            raise InvalidParameterError(
                "This key is not the round's shuffler key.", fix="pass the key of Round.shuffler."
            )
        self.round = described
        self._key = key
        self._most = count("most", most)
        self._held: list[bytes] = []
        self._users = 0
        self._marks = None if marks is None else Path(marks)
        self._seen = _remembered(self._marks, fresh=key.fresh)
        self._rejected: dict[Reason, int] = {}
        self._lock = threading.Lock()
        self._context = b"envelope" + described.digest

    @property
    def rejected(self) -> dict[Reason, int]:
        """How many envelopes were rejected, by reason."""
        with self._lock:
            return dict(self._rejected)

    @property
    def ready(self) -> bool:
        """Whether enough reports wait for a batch."""
        with self._lock:
            return self._users >= self.round.users

    def accept(self, envelope: bytes) -> Reason | None:
        """Take one envelope; if it is rejected, why. Nothing that strangers send raises an error."""
        if len(envelope) != self.round.envelope_length:
            return self._reject("truncated" if len(envelope) < self.round.envelope_length else "oversized")
        try:
            inner = self._key.open(envelope, self._context)
        except SealError:
            return self._reject("unreadable")
        mark = hashlib.blake2b(inner, digest_size=_MARK, key=self._key.to_bytes()).digest()
        with self._lock:
            full, replayed = len(self._seen) >= self._most, mark in self._seen
            if not full and not replayed and self._noted(mark):
                for message in self.round.split(inner):
                    self._hold(message)
                self._users += 1
                return None
        return self._reject("replayed" if replayed else "full")

    def release(self, bits: Bits | None = None) -> bytes | None:
        """All that waits as one sealed batch, or None where users are too few."""
        with self._lock:
            if self._users < self.round.users:
                return None
            waiting, self._held = self._held, []
            users, self._users = self._users, 0
        if isinstance(self.round.design, Crowds):
            crowds = self.round.design.handed_on(waiting, bits)
            body = b"".join(crowd + number.to_bytes(_NUMBER, "little") for crowd, number in crowds)
        else:
            body = b"".join(waiting[i] for i in permutation(len(waiting), bits).tolist())
        head = bytes((VERSION,)) + users.to_bytes(_NUMBER, "little")
        return seal(head + body, self.round.analyser, b"batch" + self.round.digest)

    def receipt(self, index: int) -> bytes:
        """What the analyser will say when the batch of this number has arrived."""
        return receipt(self.round, self._key, self.round.analyser, index)

    def _noted(self, mark: bytes) -> bool:
        """Remember a report by its hash, in the file first; whether that worked."""
        if self._marks is not None:
            try:
                with self._marks.open("ab") as file:
                    file.write(mark)
                    file.flush()
                    os.fsync(file.fileno())
            except OSError:
                return False
        self._seen.add(mark)
        return True

    def _hold(self, inner: bytes) -> None:
        """Put a report in a random place; the one that was there goes last. All orders stay equally likely."""
        place = uniform(len(self._held) + 1)
        self._held.append(inner)
        self._held[place], self._held[-1] = self._held[-1], self._held[place]

    def _reject(self, why: Reason) -> Reason:
        with self._lock:
            self._rejected[why] = self._rejected.get(why, 0) + 1
        return why


def _remembered(marks: Path | None, *, fresh: bool) -> set[bytes]:
    """The hashes of all reports that were ever accepted with this key; a torn one at the end is cut off."""
    if marks is not None and marks.exists():
        data = marks.read_bytes()
        whole_ones = len(data) // _MARK * _MARK
        with marks.open("r+b") as file:
            file.truncate(whole_ones)
        return {data[i : i + _MARK] for i in range(0, whole_ones, _MARK)}
    if not fresh:
        raise InvalidParameterError(
            "This key was used before, and which reports were accepted with it is not known: a copy would be accepted.",
            fix="generate a key for each shuffler, or pass as marks= the file that it has written from the start.",
        )
    if marks is not None:
        marks.touch()
    return set()


@final
@dataclass(frozen=True, slots=True)
class Opened:
    """What a batch held: messages for the server, how many could not be opened, and of how many users they are.

    ``numbers`` are the noisy numbers of ``Crowds``, one for each message.

    >>> from defocus import examples
    >>> from defocus.local.shuffling import Analyser, Shuffler
    >>> asked, described, ours, theirs = examples.shuffled(3)
    >>> mixer = Shuffler(described, ours)
    >>> for envelope in described.envelopes(asked.encode([1, 2, 3])):
    ...     _ = mixer.accept(envelope)
    >>> found = Analyser(described, theirs).open(mixer.release())
    >>> len(found.messages), found.unreadable
    (3, 0)
    """

    messages: tuple[bytes, ...]
    unreadable: int
    users: int = 0
    numbers: tuple[int, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Analyser:
    """One round at the analyser, who holds the only key that opens reports and batches.

    >>> from defocus import examples
    >>> from defocus.local.shuffling import Analyser, Shuffler
    >>> asked, described, ours, theirs = examples.shuffled(100)
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
        """The messages in a batch. Those that were not sealed for this round's analyser are counted and left out."""
        body = self.key.open(batch, b"batch" + self.round.digest)
        users, length = int.from_bytes(body[1 : 1 + _NUMBER], "little"), self.round.sealed_length
        crowds, body, version = isinstance(self.round.design, Crowds), body[1 + _NUMBER :], body[:1]
        step = length + (_NUMBER if crowds else 0)
        whole_one = len(body) % step == 0 if crowds else len(body) == users * self.round.messages_per_user * length
        if version != bytes((VERSION,)) or not whole_one or users < self.round.users:
            raise SealError("A batch of another version, length or size")
        messages, numbers, unreadable = list[bytes](), list[int](), 0
        for start in range(0, len(body), step):
            try:
                messages.append(self.key.open(body[start : start + length], b"report" + self.round.digest))
                numbers += [int.from_bytes(body[start + length : start + step], "little")] if crowds else []
            except SealError:
                unreadable += 1
        return Opened(tuple(messages), unreadable, users, tuple(numbers))

    def count(self, batch: bytes) -> Any:
        """A server that has counted a batch: of the oracle or the protocol. What does not open is among its rejected.

        What users on somebody's side send instead of messages moves an estimate by no more than messages they choose.
        """
        opened, design = self.open(batch), self.round.design
        if isinstance(design, Crowds):
            crowds = CrowdServer(design, users=opened.users)
            for message, number in zip(opened.messages, opened.numbers, strict=True):
                crowds.add(message, number)
            crowds.rejected += opened.unreadable
            return crowds
        server: Server | SumServer | HistogramServer
        match design:
            case MultiMessageSum():
                server = SumServer(design, users=opened.users)
            case MultiMessageHistogram():
                server = HistogramServer(design, users=opened.users)
            case _:
                server = Server(design)
        for message in (*opened.messages, *[b""] * opened.unreadable):
            server.add(message)
        return server

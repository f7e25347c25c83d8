"""The shuffler: takes envelopes, forgets who sent them, waits for enough, and seals a batch in random order."""

import hashlib
import threading
from typing import Literal, TypeAlias, final

from defocus.errors import InvalidParameterError, SealError, count
from defocus.local.shuffling.rounds import VERSION, Round
from defocus.local.shuffling.sealing import Key, seal
from defocus.noise import Bits, permutation

__all__ = ["REASONS", "Reason", "Shuffler"]

Reason: TypeAlias = Literal["truncated", "oversized", "unreadable", "replayed", "full"]
REASONS: tuple[Reason, ...] = ("truncated", "oversized", "unreadable", "replayed", "full")
"""Why an envelope is rejected: of another length than all; not sealed for this shuffler and round; a copy of one that
was seen before; or no room is left."""


@final
class Shuffler:
    """One round at the shuffler. Thread-safe; nothing but sealed reports is kept, and those in no order.

    Guarantee:
        A batch holds at least ``round.users`` reports from distinct envelopes, in a uniformly random order that is
        independent of the order of arrival, and is sealed for the analyser. What the shuffler keeps of an envelope is
        the report inside, which it cannot read, and a hash of it by which copies are rejected.
    Assumes:
        The shuffler does not collude with the analyser, and envelopes come from that many different honest users: an
        attacker who sends all envelopes but one hides nobody. Who may send is for the deployment to check.
    """

    def __init__(self, described: Round, key: Key, *, most: int = 10_000_000) -> None:
        if key.public != described.shuffler:
            raise InvalidParameterError(
                "This key is not the round's shuffler key.", fix="pass the key of Round.shuffler."
            )
        self.round = described
        self._key = key
        self._most = count("most", most)
        self._held: list[bytes] = []
        self._seen: set[bytes] = set()
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
            return len(self._held) >= self.round.users

    def accept(self, envelope: bytes) -> Reason | None:
        """Take one envelope; if it is rejected, why. Nothing that strangers send raises an error."""
        if len(envelope) != self.round.envelope_length:
            return self._reject("truncated" if len(envelope) < self.round.envelope_length else "oversized")
        try:
            inner = self._key.open(envelope, self._context)
        except SealError:
            return self._reject("unreadable")
        mark = hashlib.sha256(inner).digest()[:16]
        with self._lock:
            full, replayed = len(self._seen) >= self._most, mark in self._seen
            if not full and not replayed:
                self._seen.add(mark)
                self._held.append(inner)
                return None
        return self._reject("replayed" if replayed else "full")

    def release(self, bits: Bits | None = None) -> bytes | None:
        """All waiting reports as one sealed batch, or None where they are too few."""
        with self._lock:
            if len(self._held) < self.round.users:
                return None
            waiting, self._held = self._held, []
        order = permutation(len(waiting), bits)
        body = b"".join(waiting[i] for i in order.tolist())
        head = bytes((VERSION,)) + len(waiting).to_bytes(8, "little")
        return seal(head + body, self.round.analyser, b"batch" + self.round.digest)

    def _reject(self, why: Reason) -> Reason:
        with self._lock:
            self._rejected[why] = self._rejected.get(why, 0) + 1
        return why

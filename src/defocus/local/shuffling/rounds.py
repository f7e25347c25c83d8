"""A round of shuffled collection: what devices, shuffler and analyser agree on. It is public and travels as JSON."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any, final

from defocus.errors import DefocusError, InvalidParameterError, Number, UnreadableDescriptionError, count, whole
from defocus.local import wire
from defocus.local.designs import Design, design_of, from_json, to_json
from defocus.local.domains import never_silent
from defocus.local.layouts import Payload
from defocus.local.reports import Reports
from defocus.local.shuffling.amplification import amplified
from defocus.local.shuffling.envelopes import GROWTH, Key, seal
from defocus.privacy import events

__all__ = ["VERSION", "Round", "receipt"]

VERSION = 1
"""Of the round's description and its batches."""
_HEAD = 10
"""Bytes of a message's header without a nonce: version, kind and digest."""
_LONGEST = 1 << 26
"""As long as the description of an oracle may be."""


@final
@dataclass(frozen=True, slots=True)
class Round:
    """One design, one threshold, and the public keys of the two parties that no single one of them can replace.

    A device seals its report for the analyser, and that for the shuffler. The shuffler sees who sends and not what;
    the analyser sees what and not who; neither alone can put both together.

    >>> from defocus import local
    >>> from defocus.local.shuffling import Analyser, Key, Round, Shuffler
    >>> ours, theirs = Key.generate(), Key.generate()
    >>> asked = local.oracle("k-rr", 4, epsilon=2)
    >>> described = Round(asked.design, users=100, shuffler=ours.public, analyser=theirs.public)
    >>> described.event
    Shuffled(event=RandomizedResponse(epsilon=2, categories=5), users=100)
    """

    design: Design
    users: int
    """No batch is released with fewer reports, and the event counts on so many."""
    shuffler: bytes
    analyser: bytes

    def __post_init__(self) -> None:
        object.__setattr__(self, "design", design_of(self.design))
        never_silent(self.design.domain)
        count("users", self.users)
        for name in ("shuffler", "analyser"):
            if not isinstance(getattr(self, name), bytes) or len(getattr(self, name)) != 32:
                raise InvalidParameterError(f"The public key of the {name} has 32 bytes.", fix="pass Key.public.")
        if self.shuffler == self.analyser:
            raise InvalidParameterError(
                "Shuffler and analyser have the same key, so one party would see who says what.",
                fix="let two parties that do not collude generate a key each.",
            )

    @property
    def event(self) -> events.Shuffled:
        """What one batch costs: one user's value replaced among ``users`` shuffled reports."""
        return amplified(self.design, self.users)

    @property
    def digest(self) -> bytes:
        """Eight bytes of SHA-256 over the description, which every seal is bound to."""
        return hashlib.sha256(self.to_json().encode()).digest()[:8]

    @property
    def sealed_length(self) -> int:
        """The length of a report sealed for the analyser."""
        return _HEAD + self.design.layout.length + GROWTH

    @property
    def envelope_length(self) -> int:
        """The length of what a device sends: all are equally long, whatever they say."""
        return self.sealed_length + GROWTH

    def envelope(self, payload: Payload) -> bytes:
        """One report as a device sends it."""
        message = wire.write(self.design, payload, batch=False)
        inner = seal(message, self.analyser, b"report" + self.digest)
        return seal(inner, self.shuffler, b"envelope" + self.digest)

    def envelopes(self, reports: Reports) -> list[bytes]:
        """Reports of many devices, each in an envelope of its own."""
        if reports.design.digest != self.design.digest:
            raise InvalidParameterError("These reports are of another design.", fix="encode with the round's design.")
        return [self.envelope(reports.payload[i : i + 1]) for i in range(len(reports))]

    def to_json(self) -> str:
        """The public description."""
        return json.dumps(
            {
                "format": "defocus.shuffle",
                "version": VERSION,
                "design": json.loads(to_json(self.design)),
                "users": self.users,
                "shuffler": self.shuffler.hex(),
                "analyser": self.analyser.hex(),
            },
            sort_keys=True,
        )

    @staticmethod
    def from_json(text: str | bytes, *, at_most: Number | None = None) -> "Round":
        """Read a description; anything else is refused, and a report that by itself costs more than ``at_most``."""
        if len(text) > _LONGEST:
            raise UnreadableDescriptionError("it is longer than 64 MiB")
        try:
            data: Any = json.loads(text)
            if data["format"] != "defocus.shuffle" or data["version"] != VERSION:
                raise UnreadableDescriptionError("it is not a round of this version")
            keys = (bytes.fromhex(data["shuffler"]), bytes.fromhex(data["analyser"]))
            return Round(from_json(json.dumps(data["design"]), at_most=at_most), data["users"], *keys)
        except DefocusError:
            raise
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise UnreadableDescriptionError(f"{type(error).__name__}, {str(error)[:80]}") from error


def receipt(described: Round, key: Key, other: bytes, index: int) -> bytes:
    """What shuffler and analyser of a round, and nobody else, know of a batch: each by its own and the other's key."""
    return key.proof(other, b"receipt" + described.digest + whole("index", index).to_bytes(8, "little"))

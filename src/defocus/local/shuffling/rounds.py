"""A round of shuffled collection: what devices, shuffler and analyser agree on. It is public and travels as JSON."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias, final

from defocus.errors import (
    DefocusError,
    EpsilonTooLargeError,
    InvalidParameterError,
    Number,
    UnreadableDescriptionError,
    count,
    whole,
)
from defocus.local import wire
from defocus.local.clients import Client
from defocus.local.designs import Design, design_of, from_json, to_json
from defocus.local.domains import Categories, Interval, domain_from_wire, never_silent
from defocus.local.layouts import Payload
from defocus.local.reports import Reports
from defocus.local.shuffling.amplification import amplified
from defocus.local.shuffling.crowds import Crowds
from defocus.local.shuffling.envelopes import GROWTH, Key, seal, seal_alike
from defocus.local.shuffling.histograms import MultiMessageHistogram
from defocus.local.shuffling.sums import MultiMessageSum
from defocus.noise import Bits
from defocus.noise.bits import source
from defocus.privacy import events
from defocus.privacy.wire import read_number, write_number

__all__ = ["VERSION", "Protocol", "Round", "protocol_from_json", "protocol_to_json", "receipt"]

Protocol: TypeAlias = MultiMessageSum | MultiMessageHistogram | Crowds
"""What is no design and can be shuffled: its messages promise nothing by themselves."""
_PROTOCOLS: dict[str, type[Protocol]] = {"sum": MultiMessageSum, "histogram": MultiMessageHistogram, "crowds": Crowds}

VERSION = 1
"""Of the round's description and its batches."""
_HEAD = 10
"""Bytes of a message's header without a nonce: version, kind and digest."""
_LONGEST = 1 << 26
"""As long as the description of an oracle may be."""
_LARGEST_ENVELOPE = 1 << 19
"""Bytes that travel in one request."""
_NONCE = 16
"""Bytes by which envelopes with the same text differ once they are opened: copies are rejected, and equals are not."""


@final
@dataclass(frozen=True, slots=True)
class Round:
    r"""What is asked, how many users there must be, and the public keys of two parties that do not collude.

    A device seals each of its messages for the analyser, and all of them, in one envelope, for the shuffler. The
    shuffler opens the envelope and finds sealed messages, all of one length and always as many; it puts each by itself
    among those of all other users.

    ====================  ===========================================  =============================================
    who                   sees                                         does not see
    ====================  ===========================================  =============================================
    on the way            who sends, and when                          anything inside; all envelopes are equally long
    the shuffler          who sends                                    what (of ``Crowds``: who sends the same, and
                                                                       whether it is what it guesses)
    the analyser          all messages of a batch, in random order,    who sent which, and which messages come from
                          and how many users there were                one user
    ====================  ===========================================  =============================================

    One envelope, and not one for each message, needs no more trust: whoever carries messages sees who sends them, and
    so which are one user's. It makes a user complete or absent. An envelope that breaks off is no envelope, and nothing
    of it is in a batch, so each user counted has tossed all of its coins.

    Guarantee:
        Nothing is handed on while fewer than ``users`` envelopes have come. The event of a batch is that of ``honest``
        users, all by default: whoever drops out is not among the envelopes, and up to ``users`` - ``honest`` of those
        who came may be on the analyser's side. A protocol of several messages counts on the users it was described for.
        Users beyond those only add messages that do not depend on a given user's value.
    Assumes:
        So many different honest users send envelopes. Who may send, and how often, is for the deployment to check.

    >>> from defocus import examples
    >>> asked, described, ours, theirs = examples.shuffled(100)
    >>> described.event
    Shuffled(event=RandomizedResponse(epsilon=2, categories=5), users=100)
    """

    design: Design | Protocol
    users: int
    """No batch is released with fewer users."""
    shuffler: bytes
    analyser: bytes
    honest: int = 0
    """How many of them the event counts on; those that a protocol was described for, or all, by default."""

    def __post_init__(self) -> None:
        if not isinstance(self.design, Protocol):
            object.__setattr__(self, "design", design_of(self.design))
        if not isinstance(self.design, Crowds):
            never_silent(self.design.domain)
        count("users", self.users)
        counted_on = self.design.users if isinstance(self.design, Protocol) else self.honest or self.users
        if whole("honest", self.honest) == 0:
            object.__setattr__(self, "honest", counted_on)
        if not self.honest == counted_on <= self.users:
            raise InvalidParameterError(
                f"The privacy of this round counts on {counted_on} honest users, but a batch may have {self.users} "
                f"users, {self.honest} of them honest.",
                fix="describe a protocol for the honest users, leave honest= out, and pass users= of at least as many.",
            )
        for name in ("shuffler", "analyser"):
            if not isinstance(getattr(self, name), bytes) or len(getattr(self, name)) != 32:
                raise InvalidParameterError(f"The public key of the {name} has 32 bytes.", fix="pass Key.public.")
        if self.shuffler == self.analyser:
            raise InvalidParameterError(
                "Shuffler and analyser have the same key, so one party would see who says what.",
                fix="let two parties that do not collude generate a key each.",
            )
        if self.envelope_length > _LARGEST_ENVELOPE:
            raise InvalidParameterError(
                f"An envelope would have {self.envelope_length} bytes, more than {_LARGEST_ENVELOPE}.",
                fix="ask for fewer categories or levels, or of more users, who toss fewer coins each.",
            )

    @property
    def event(self) -> events.Event:
        """What one batch costs: one user's value replaced among the messages of ``honest`` users."""
        return self.design.event if isinstance(self.design, Protocol) else amplified(self.design, self.honest)

    @property
    def digest(self) -> bytes:
        """Eight bytes of SHA-256 over the description, which every seal is bound to."""
        return hashlib.sha256(self.to_json().encode()).digest()[:8]

    @property
    def messages_per_user(self) -> int:
        """How many messages are in an envelope."""
        return self.design.messages_per_user if isinstance(self.design, Protocol) else 1

    @property
    def sealed_length(self) -> int:
        """The length of a message sealed for the analyser."""
        design = self.design
        return GROWTH + (design.length if isinstance(design, Protocol) else _HEAD + design.layout.length)

    @property
    def envelope_length(self) -> int:
        """The length of what a device sends: all are equally long, whatever they say."""
        nonce = _NONCE if isinstance(self.design, Crowds) else 0
        return nonce + self.messages_per_user * self.sealed_length + GROWTH

    def report(self, value: Any, bits: Bits | None = None) -> bytes:
        """All that a device sends about one value. To try once more, send the same bytes: a copy is not counted.

        >>> from defocus.local import Interval
        >>> from defocus.local.shuffling import Key, MultiMessageSum, Round
        >>> total = MultiMessageSum(Interval(0, 1), users=500, epsilon=1, delta=1e-6)
        >>> described = Round(total, users=600, shuffler=Key.generate().public, analyser=Key.generate().public)
        >>> {len(described.report(value)) == described.envelope_length for value in (0, 0.3, 1, None)}
        {True}
        """
        if isinstance(self.design, Protocol):
            return self.enclosed(self.design.client().report(value, bits))
        return self.enclosed((Client(self.design).report(value, bits=bits),))

    def envelope(self, payload: Payload) -> bytes:
        """One report of a design as a device sends it."""
        return self.enclosed((wire.write(self._only_design(), payload, batch=False),))

    def envelopes(self, reports: Reports) -> list[bytes]:
        """Reports of many devices, each in an envelope of its own."""
        if reports.design.digest != self._only_design().digest:
            raise InvalidParameterError("These reports are of another design.", fix="encode with the round's design.")
        return [self.envelope(reports.payload[i : i + 1]) for i in range(len(reports))]

    def enclosed(self, messages: Sequence[bytes]) -> bytes:
        """The messages of one device in one envelope."""
        if [GROWTH + len(message) for message in messages] != [self.sealed_length] * self.messages_per_user:
            raise InvalidParameterError(
                "These are not as many messages of one length as every device of this round sends.",
                fix="pass what the round's own client reports.",
            )
        context = b"report" + self.digest
        if isinstance(self.design, Crowds):
            inner = wire.new_nonce(source(None)) + seal_alike(messages[0], self.analyser, context)
        else:
            inner = b"".join(seal(message, self.analyser, context) for message in messages)
        return seal(inner, self.shuffler, b"envelope" + self.digest)

    def split(self, inner: bytes) -> list[bytes]:
        """The sealed messages of an envelope that was opened."""
        length, start = self.sealed_length, len(inner) - self.messages_per_user * self.sealed_length
        return [inner[i : i + length] for i in range(start, len(inner), length)]

    def _only_design(self) -> Design:
        if isinstance(self.design, Protocol):
            raise InvalidParameterError("This round has no single reports.", fix="call report(value) on each device.")
        return self.design

    def to_json(self) -> str:
        """The public description."""
        asked: dict[str, Any]
        if isinstance(self.design, Protocol):
            asked = {"protocol": _written(self.design)}
        else:
            asked = {"design": json.loads(to_json(self.design))}
            asked |= {} if self.honest == self.users else {"honest": self.honest}
        return json.dumps(
            {
                "format": "defocus.shuffle",
                "version": VERSION,
                **asked,
                "users": self.users,
                "shuffler": self.shuffler.hex(),
                "analyser": self.analyser.hex(),
            },
            sort_keys=True,
        )

    @staticmethod
    def from_json(text: str | bytes, *, at_most: Number | None = None) -> "Round":
        """Read a description; anything else is refused, and a report that by itself costs more than ``at_most``.

        A message of a protocol promises nothing by itself, so with a limit these are all refused.
        """
        if len(text) > _LONGEST:
            raise UnreadableDescriptionError("it is longer than 64 MiB")
        try:
            data: Any = json.loads(text)
            if data["format"] != "defocus.shuffle" or data["version"] != VERSION:
                raise UnreadableDescriptionError("it is not a round of this version")
            keys = (bytes.fromhex(data["shuffler"]), bytes.fromhex(data["analyser"]))
            if "protocol" in data:
                if at_most is not None:
                    raise EpsilonTooLargeError(float("inf"), float(at_most))
                return Round(_read(data["protocol"]), data["users"], *keys)
            design = from_json(json.dumps(data["design"]), at_most=at_most)
            return Round(design, data["users"], *keys, data.get("honest", 0))
        except DefocusError:
            raise
        except (KeyError, TypeError, ValueError, RecursionError, AttributeError) as error:
            raise UnreadableDescriptionError(f"{type(error).__name__}, {str(error)[:80]}") from error


def protocol_to_json(protocol: Protocol) -> str:
    """The description of a protocol, for ``defocus shuffler`` or any other program that makes a round of it.

    >>> protocol_from_json(protocol_to_json(Crowds(16, users=100, epsilon=1, delta=1e-6))).users
    100
    """
    return json.dumps(
        {"format": "defocus.protocol", "version": VERSION, "protocol": _written(protocol)}, sort_keys=True
    )


def protocol_from_json(text: str | bytes) -> Protocol:
    """Read the description of a protocol; anything else is refused.

    >>> protocol_from_json(protocol_to_json(Crowds(16, users=100, epsilon=1, delta=1e-6))).length
    16
    """
    try:
        data: Any = json.loads(text)
        if data["format"] != "defocus.protocol" or data["version"] != VERSION:
            raise UnreadableDescriptionError("it is not a protocol of this version")
        return _read(data["protocol"])
    except DefocusError:
        raise
    except (KeyError, TypeError, ValueError, RecursionError, AttributeError) as error:
        raise UnreadableDescriptionError(f"{type(error).__name__}, {str(error)[:80]}") from error


def _written(protocol: Protocol) -> dict[str, Any]:
    name = next(name for name, kind in _PROTOCOLS.items() if type(protocol) is kind)
    given = {each.name: getattr(protocol, each.name) for each in fields(protocol)}
    domain = {} if isinstance(protocol, Crowds) else {"domain": protocol.domain.to_wire()}
    return {"name": name} | {key: write_number(value) for key, value in given.items()} | domain


def _read(data: Any) -> Protocol:
    given = {key: value if key in {"name", "domain"} else read_number(value) for key, value in dict(data).items()}
    kind = _PROTOCOLS[given.pop("name")]
    if "domain" in given:
        given["domain"] = domain_from_wire(given["domain"])
        if not isinstance(given["domain"], Interval if kind is MultiMessageSum else Categories):
            raise UnreadableDescriptionError("its domain is of another kind")
    return kind(**given)


def receipt(described: Round, key: Key, other: bytes, index: int) -> bytes:
    """What shuffler and analyser of a round, and nobody else, know of a batch: each by its own and the other's key."""
    return key.proof(other, b"receipt" + described.digest + whole("index", index).to_bytes(8, "little"))

"""What a server has counted: integers that add up, whoever counted them and in whatever order."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import final

import numpy as np

from defocus.errors import InvalidParameterError, MismatchedOracleError, UnreadableDescriptionError, whole
from defocus.local.designs import Design, from_json, to_json
from defocus.local.servers.tallies import LARGEST, Tally, possible, reports_in, tally_shape
from defocus.local.wire import REASONS, Reason

__all__ = ["State"]

_MAGIC = b"defocus.local.state/1\n"
"""How stored counts begin, with the version of their format."""


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class State:
    """Counts under one design. ``a + b`` counts the reports of both; the sum does not depend on the order.

    It holds nothing but sums over reports, each of which is epsilon-private already, so it may be stored and sent.
    """

    design: Design
    tally: Tally
    rejected: Mapping[Reason, int] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def reports(self) -> int:
        """How many reports were counted."""
        return reports_in(self.design.layout, self.tally)

    def __add__(self, other: object) -> "State":
        if not isinstance(other, State):
            return NotImplemented
        if other.design.digest != self.design.digest:
            raise MismatchedOracleError("Counts", other.design.digest.hex(), self.design.digest.hex())
        if self.reports + other.reports >= LARGEST or _wraps(self.tally, other.tally):
            raise InvalidParameterError(
                "These are more reports than 64-bit integers can count.", fix="check where the counts came from."
            )
        reasons = {why: self.rejected.get(why, 0) + other.rejected.get(why, 0) for why in REASONS}
        return State(self.design, self.tally + other.tally, {why: n for why, n in reasons.items() if n})

    def __repr__(self) -> str:
        return f"<{self.reports} reports of {self.design.name} counted, {sum(self.rejected.values())} rejected>"

    def to_bytes(self) -> bytes:
        """Description, rejections and counts, with a checksum; for a file or another machine."""
        head = json.dumps({"design": to_json(self.design), "rejected": dict(self.rejected)}).encode()
        body = _MAGIC + len(head).to_bytes(8, "little") + head + self.tally.astype("<i8").tobytes()
        return body + hashlib.sha256(body).digest()

    @staticmethod
    def from_bytes(data: bytes) -> "State":
        """Read counts back; whatever was changed or cut off is refused."""
        if not isinstance(data, bytes):
            raise _unread("they are not bytes")
        body, checksum = data[:-32], data[-32:]
        start = len(_MAGIC) + 8
        if not body.startswith(_MAGIC) or hashlib.sha256(body).digest() != checksum:
            raise _unread("they are not such counts, or not whole")
        end = start + int.from_bytes(body[len(_MAGIC) : start], "little")
        try:
            head = json.loads(body[start:end])
            design = from_json(head["design"])
            tally = np.frombuffer(body[end:], "<i8").astype(np.int64).reshape(tally_shape(design.layout))
            rejected = {why: whole(why, head["rejected"][why]) for why in REASONS if why in head["rejected"]}
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise _unread(f"{type(error).__name__}, {str(error)[:120]}") from error
        if not possible(design.layout, tally):
            raise _unread("no server counts so many reports, or so few")
        return State(design, tally, rejected)


def _unread(why: str) -> UnreadableDescriptionError:
    return UnreadableDescriptionError(why, what="The counts of a server", writer="State.to_bytes()")


def _wraps(one: Tally, other: Tally) -> bool:
    """Whether a sum has another sign than both of what is added."""
    total = one + other
    return bool((((one ^ total) & (other ^ total)) < 0).any())

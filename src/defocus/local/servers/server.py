"""A server: it reads messages, rejects what is not a report, and counts the rest."""

from collections.abc import Iterable
from typing import Any, final

import numpy as np

from defocus.errors import MismatchedOracleError, whole
from defocus.local import wire
from defocus.local.designs import Describes, Design, design_of, from_json
from defocus.local.layouts import Payload
from defocus.local.reports import Reports
from defocus.local.servers.counts import State, count_reports, no_reports

__all__ = ["Server"]

_GATHER = 1 << 13
"""Single reports that are counted at once: enough to make the call's own cost vanish."""


@final
class Server:
    """Counts reports as they come. Its memory depends on the design, never on how many reports there are.

    What strangers send is rejected and counted by reason in ``rejected``; nothing they send raises an error. With
    ``replays`` = m, a message must carry a nonce, and at least the last m nonces are remembered: a copy of any of
    those messages is rejected. (A copy that comes later than that is not noticed; nonces cost 16 bytes each, and
    more in Python.) A batch is one message with one nonce. A nonce is used up by reports that are counted, not by
    garbage.

    That is against copies by accident: a message sent twice, a file read twice. It is *not* against attackers. Nothing
    binds a nonce to its report, so whoever sees a message on its way can send the report again with another nonce, or
    another report with that nonce first; carry messages so that nobody does.

    Reports that clients forged are not recognised: whoever sends k messages moves the estimates like k people with
    chosen reports, here as in every local collection. Limit the number of messages by account before they come here.

    >>> from defocus import local
    >>> asked = local.oracle("k-rr", ["red", "green", "blue"], epsilon=2)
    >>> server = Server.from_json(asked.to_json())
    >>> server.add(asked.client().report("red")), server.add(b"garbage"), server.rejected
    (True, False, {'truncated': 1})
    """

    __slots__ = ("_before", "_recent", "_rejected", "_replays", "_tally", "design")

    def __init__(self, design: Design | Describes, *, replays: int = 0) -> None:
        self.design = design_of(design)
        self._replays = whole("replays", replays)
        self._tally = no_reports(self.design.layout)
        self._rejected: dict[wire.Reason, int] = {}
        self._recent: set[bytes] = set()
        self._before: set[bytes] = set()

    @staticmethod
    def from_json(text: str | bytes, *, replays: int = 0) -> "Server":
        """The server of a description."""
        return Server(from_json(text), replays=replays)

    def __repr__(self) -> str:
        return f"<server: {str(self.state())[1:-1]}>"

    @property
    def rejected(self) -> dict[wire.Reason, int]:
        """How many were rejected, by reason: reports, and messages that hold none that can be told apart."""
        return dict(self._rejected)

    def add(self, message: Any) -> bool:
        """Count one message (bytes, or JSON as text); whether all of it was counted."""
        payload = self._checked(message)
        return payload is not None and self._count(payload)

    def add_many(self, messages: Iterable[Any]) -> int:
        """Count a stream of messages; how many of them were counted whole. Many single reports are counted at once."""
        whole_ones, held, size = 0, list[Payload](), 0
        for message in messages:
            payload = self._checked(message)
            if payload is None:
                continue
            if len(payload) != 1:
                whole_ones += self._count(payload)
                continue
            held.append(payload)
            size += 1
            if size == _GATHER:
                whole_ones += self._gathered(held)
                held, size = [], 0
        return whole_ones + self._gathered(held)

    def add_records(self, data: bytes | bytearray | memoryview) -> int:
        """Count single messages that lie one after the other, as in a file or a buffer; how many were counted.

        Each has its own header, no nonce, and the length of a right message of this oracle: millions are checked at
        once. Where nonces are asked for, all are rejected.
        """
        payload, rejected = wire.read_records(data, self.design)
        for why, times in rejected.items():
            self._reject(why, times)
        if self._replays:
            self._reject("no nonce", len(payload))
            return 0
        before = self._rejected.get("invalid", 0)
        self._count(payload)
        return len(payload) - (self._rejected.get("invalid", 0) - before)

    def add_reports(self, reports: Reports) -> None:
        """Count reports made in this process: the fast way, without a message around them."""
        if reports.design.digest != self.design.digest:
            raise MismatchedOracleError("Reports", reports.design.digest.hex(), self.design.digest.hex())
        self._count(reports.payload)

    def merge(self, other: State) -> None:
        """Count what another server has counted."""
        merged = self.state() + other
        self._tally, self._rejected = merged.tally, dict(merged.rejected)

    def state(self) -> State:
        """The counts so far, as a value that no longer changes."""
        return State(self.design, self._tally.copy(), dict(self._rejected))

    def _checked(self, message: Any) -> Payload | None:
        payload = wire.read(message, self.design)
        if not isinstance(payload, wire.Message):
            self._reject(payload)
            return None
        if self._replays and (payload.nonce is None or not self._fresh(payload.nonce, payload.payload)):
            self._reject("no nonce" if payload.nonce is None else "replayed", max(len(payload.payload), 1))
            return None
        return payload.payload

    def _fresh(self, nonce: bytes, payload: Payload) -> bool:
        """Whether the nonce is new. Two generations of up to m are kept; the older goes when the newer is full.

        A message without any report that counts leaves no trace.
        """
        good = self.design.layout.valid(payload)
        if nonce in self._recent or nonce in self._before:
            return False
        if not len(payload) or (good is not None and not good.any()):
            return True
        self._recent.add(nonce)
        if len(self._recent) >= self._replays:
            self._recent, self._before = set(), self._recent
        return True

    def _count(self, payload: Payload) -> bool:
        good = self.design.layout.valid(payload)
        if good is not None:
            self._reject("invalid", int(len(payload) - good.sum()))
            payload = payload[good]
        count_reports(self.design.layout, self._tally, payload)
        return good is None

    def _gathered(self, held: list[Payload]) -> int:
        if not held:
            return 0
        bad = self._rejected.get("invalid", 0)
        self._count(np.concatenate(held))
        return len(held) - (self._rejected.get("invalid", 0) - bad)

    def _reject(self, why: wire.Reason, times: int = 1) -> None:
        if times:
            self._rejected[why] = self._rejected.get(why, 0) + times

"""Counting reports: integers whose size does not depend on how many reports there were, and which add up."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, MismatchedOracleError, UnreadableDescriptionError, whole
from defocus.local.designs import Design, from_json, to_json
from defocus.local.layouts import BitRows, Cells, Layout, Payload, Totals
from defocus.local.wire import REASONS, Reason

__all__ = ["LARGEST", "State", "Tally", "count_reports", "no_reports", "possible", "reports_in", "tally_shape"]


Tally: TypeAlias = NDArray[np.int64]

LARGEST = 1 << 62
"""No tally is of so many reports."""

_CHUNK = 1 << 16
"""Reports at once, which stay in the processor's cache."""
_SHORT = 1 << 14
"""Rows at once, whose planes of bits stay in the processor's cache."""
_LOW = (1 << 32) - 1
"""The low half of a square."""
_MOST = 1 << 27
"""A gibibyte of counts."""


def tally_shape(layout: Layout) -> tuple[int, ...]:
    """Reports by cell; reports by row and bit, their number as the last column; or number, sum and squares."""
    match layout:
        case Cells():
            return (layout.cells,)
        case BitRows():
            return (layout.rows, layout.width + 1)
        case Totals():
            return (4,)


def no_reports(layout: Layout) -> Tally:
    """A tally of nothing; refused where it would not fit into memory."""
    shape = tally_shape(layout)
    if math.prod(shape) > _MOST:
        raise InvalidParameterError(
            f"A server would keep {math.prod(shape)} counts, more than {_MOST}.",
            fix="use fewer categories, a sketch (hcms), or find frequent values first (heavy_hitters).",
        )
    return np.zeros(shape, np.int64)


def reports_in(layout: Layout, tally: Tally) -> int:
    """How many reports were counted."""
    match layout:
        case Cells():
            return int(tally.sum())
        case BitRows():
            return int(tally[:, -1].sum())
        case Totals():
            return int(tally[0])


def possible(layout: Layout, tally: Tally) -> bool:
    """Whether reports could have been counted so: nothing negative, no bit more often than there are reports."""
    counts = tally[[0, 2, 3]] if isinstance(layout, Totals) else tally
    if counts.size and (int(counts.min()) < 0 or float(counts.sum(dtype=np.float64)) >= LARGEST):
        return False
    return not isinstance(layout, BitRows) or bool((tally[:, :-1] <= tally[:, -1:]).all())


def count_reports(layout: Layout, tally: Tally, payload: Payload) -> None:
    """Add valid reports to a tally, in pieces that stay in the processor's cache."""
    step = layout.rows << 10 if isinstance(layout, BitRows) and layout.rows > _CHUNK >> 10 else _CHUNK
    for start in range(0, len(payload), step):
        part = payload[start : start + step]
        match layout:
            case Cells():
                _count_cells(tally, part)
            case BitRows():
                _count_bits(layout, tally, part)
            case Totals():
                _count_totals(tally, part)


def _count_cells(tally: Tally, part: Payload) -> None:
    if len(tally) <= 4 * len(part):
        tally += np.bincount(part.astype(np.intp, copy=False), minlength=len(tally))
    else:  # few reports among many cells
        np.add.at(tally, part.astype(np.intp, copy=False), 1)


def _count_bits(layout: BitRows, tally: Tally, part: Payload) -> None:
    """Row by row, a short piece at a time."""
    if layout.rows == 1:
        tally[0, -1] += len(part)
        for start in range(0, len(part), _SHORT):
            tally[0, :-1] += _column_sums(part[start : start + _SHORT])[: layout.width]
        return
    rows = layout.row(part)
    order = np.argsort(rows, kind="stable")
    present, starts = np.unique(rows[order], return_index=True)
    for row, people in zip(present.tolist(), np.split(order, starts[1:]), strict=True):
        tally[row, -1] += len(people)
        tally[row, :-1] += _column_sums(part[people, layout.prefix :])[: layout.width]


def _column_sums(packed: Payload) -> Tally:
    """How many ones each bit position has, by adding rows as binary numbers written across planes of bits.

    Three rows of weight :math:`2^k` become one of the same weight (their sum without carry) and one of weight
    :math:`2^{k+1}` (the carry): 64 positions at a time, until two rows or fewer are left of each weight.
    """
    words = -(-packed.shape[1] // 8)
    padded = np.zeros((len(packed), 8 * words), np.uint8)
    padded[:, : packed.shape[1]] = packed
    rows, weight = padded.view("<u8"), 0
    sums = np.zeros(64 * words, np.int64)
    while len(rows):
        carries = [rows[:0]]
        while len(rows) > 2:
            third = len(rows) // 3
            a, b, c = rows[:third], rows[third : 2 * third], rows[2 * third : 3 * third]
            mixed = a ^ b
            carries.append(a & b | mixed & c)
            rows = np.concatenate([mixed ^ c, rows[3 * third :]])
        sums += np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little").sum(axis=0, dtype=np.int64) << weight
        rows, weight = np.concatenate(carries), weight + 1
    return sums


def _count_totals(tally: Tally, part: Payload) -> None:
    """Squares are summed in two halves, so that two thousand million reports of any size fit."""
    squares = (np.abs(part).astype(np.uint64)) ** np.uint64(2)
    tally += np.array(
        [
            len(part),
            part.sum(),
            (squares & np.uint64(_LOW)).astype(np.int64).sum(),
            (squares >> np.uint64(32)).astype(np.int64).sum(),
        ]
    )


_MAGIC = b"defocus.local.state/1\n"
"""How stored counts begin, with the version of their format."""


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class State:
    """Counts under one design. ``a + b`` counts the reports of both; the sum does not depend on the order.

    It holds nothing but sums over reports, each of which is epsilon-private already, so it may be stored and sent.

    >>> from defocus import local
    >>> asked = local.oracle("k-rr", ["red", "green", "blue"], epsilon=2)
    >>> north, south = asked.server(), asked.server()
    >>> _ = north.add(asked.client().report("red")), south.add(asked.client().report("blue"))
    >>> north.state() + south.state()
    <2 reports of k-rr counted, 0 rejected>
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

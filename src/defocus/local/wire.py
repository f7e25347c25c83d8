r"""How reports travel.

A message is bytes, all integers little-endian:

======  =====  ==============================================================
offset  bytes  what
======  =====  ==============================================================
0       1      version of the format: 1
1       1      kind: bit 0, a nonce follows; bit 1, it is a batch
2       8      digest of the oracle's description
10      16     nonce, if there is one
…       8      number of reports, in a batch
…       …      payloads, each of the length that the oracle's layout says
======  =====  ==============================================================

A payload is the number of a cell (1, 2, 4 or 8 bytes), or the number of a row (left out if there is only one) and a row
of bits, lowest bit of each byte first, or a signed integer of 8 bytes. One report may also travel as JSON:
``{"version": 1, "oracle": hex, "payload": hex, "nonce": hex}``, the nonce left out if there is none.

Whatever arrives is data from strangers: :func:`read` never raises, and names the reason why it rejects.
"""

import json
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, final, get_args

import numpy as np

from defocus.local.designs import VERSION, Design
from defocus.local.layouts import Payload
from defocus.noise import Bits

__all__ = ["NONCE", "REASONS", "Message", "Reason", "new_nonce", "read", "read_records", "write", "write_json"]

NONCE = 16
"""Bytes of a nonce."""

Reason: TypeAlias = Literal[
    "malformed", "version", "oracle", "truncated", "oversized", "invalid", "no nonce", "replayed"
]
REASONS: tuple[Reason, ...] = get_args(Reason)
"""Why a message is rejected: not a message at all; of another version; of another oracle; too short; too long; a
payload that no client of this oracle makes; no nonce where one is asked for; a nonce that was seen before."""

_HEAD = 10
"""Bytes of version, kind and digest."""
_LONGEST_TEXT = 1 << 24
"""Characters of a JSON message: eight times the longest report in hexadecimal digits."""


@final
@dataclass(frozen=True, slots=True)
class Message:
    """What was read: payloads, and the nonce that came with them."""

    payload: Payload
    nonce: bytes | None


def new_nonce(bits: Bits) -> bytes:
    """A random nonce, independent of what it goes with."""
    return bits.integer(8 * NONCE).to_bytes(NONCE, "little")


def write(design: Design, payload: Payload, *, nonce: bytes | None = None, batch: bool = True) -> bytes:
    """Reports as one message. Without ``batch`` there is exactly one."""
    kind = (nonce is not None) | 2 * batch
    count = len(payload).to_bytes(8, "little") if batch else b""
    return bytes((VERSION, kind)) + design.digest + (nonce or b"") + count + payload.tobytes()


def write_json(design: Design, payload: Payload, *, nonce: bytes | None = None) -> str:
    """One report as JSON."""
    fields = {"version": VERSION, "oracle": design.digest.hex(), "payload": payload.tobytes().hex()}
    return json.dumps(fields if nonce is None else fields | {"nonce": nonce.hex()})


def read(data: Any, design: Design) -> Message | Reason:
    """The message, or why it is rejected. What a payload says is not checked here, only its length."""
    if isinstance(data, str):
        return _read_json(data, design)
    if not isinstance(data, bytes | bytearray | memoryview):
        return "malformed"
    view = memoryview(data)
    if view.nbytes != len(view) or not view.c_contiguous:
        return "malformed"
    return _read_bytes(view.cast("B"), design)


def read_records(data: bytes | bytearray | memoryview, design: Design) -> tuple[Payload, dict[Reason, int]]:
    """Payloads of single messages without nonces that lie one after the other, and how many are rejected for what.

    All have the length of a right one, so that a wrong one spoils itself and not those after it.
    """
    record = np.dtype([("head", "<u2"), ("oracle", "<u8"), ("payload", f"V{design.layout.length}")])
    whole_ones, rest = divmod(len(data), record.itemsize)
    records = np.frombuffer(data, record, whole_ones)
    head, oracle = records["head"], records["oracle"] == int.from_bytes(design.digest, "little")
    right = (head == VERSION) & oracle  # version, then kind 0
    rejected: dict[Reason, int] = {"truncated": int(rest > 0)}
    if not right.all():
        version = head & 255 == VERSION
        rejected["version"] = int((~version).sum())
        rejected["malformed"] = int((version & (head != VERSION)).sum())
        rejected["oracle"] = int(((head == VERSION) & ~oracle).sum())
        records = records[right]
    payload = design.layout.payload(records["payload"].tobytes())
    return payload, {why: times for why, times in rejected.items() if times}


def _read_bytes(view: memoryview, design: Design) -> Message | Reason:
    if len(view) < _HEAD:
        return "truncated"
    if view[0] != VERSION:
        return "version"
    kind = view[1]
    if kind > 3:
        return "malformed"
    if view[2:_HEAD] != design.digest:
        return "oracle"
    start, nonce, number = _HEAD, None, 1
    if kind & 1:
        nonce, start = bytes(view[start : start + NONCE]), start + NONCE
    if kind & 2:
        number, start = int.from_bytes(view[start : start + 8], "little"), start + 8
    expected = start + number * design.layout.length
    if len(view) != expected:
        return "truncated" if len(view) < expected else "oversized"
    return Message(design.layout.payload(view[start:]), nonce)


def _read_json(text: str, design: Design) -> Message | Reason:
    """JSON is brought into the binary form, so that both are judged by the same rules."""
    if len(text) > _LONGEST_TEXT:
        return "oversized"
    try:
        data = json.loads(text)
        version, oracle = data["version"], bytes.fromhex(data["oracle"])
        payload = bytes.fromhex(data["payload"])
        nonce = bytes.fromhex(data["nonce"]) if "nonce" in data else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return "malformed"
    if type(version) is not int or not 0 <= version < 256:
        return "version"
    if len(oracle) != 8 or (nonce is not None and len(nonce) != NONCE):
        return "malformed"
    head = bytes((version, nonce is not None)) + oracle + (nonce or b"")
    return _read_bytes(memoryview(head + payload), design)

"""One line of a ledger: its canonical text, its hash, and how it is read back.

The body is JSON in one canonical form (sorted keys, no spaces, ASCII, shortest floats), and the
hash is SHA-256 over a tag and the body. The body holds the sequence number and the hash of the
entry before it, so each hash vouches for everything that came before.
"""

import dataclasses
import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, final

import numpy as np

from defocus.errors import DefocusError, InvalidParameterError, LedgerDamagedError
from defocus.ledger.filter import Tally
from defocus.privacy.events import Event, described
from defocus.privacy.wire import from_wire, to_wire, write_number

__all__ = [
    "CHARGE",
    "DATA",
    "GENESIS",
    "NO_HASH",
    "RELEASE",
    "TUNING",
    "WITHHELD",
    "Entry",
    "amounts_in",
    "amounts_out",
    "canonical",
    "digest",
    "fingerprint",
    "now",
    "plain",
    "read_body",
    "stored_event",
]


GENESIS, CHARGE, RELEASE, DATA, TUNING = "genesis", "charge", "release", "data", "tuning"
NO_HASH = "0" * 64
WITHHELD = "withheld"
"""What is shown of the identity of a data set."""
_TAG = b"defocus ledger entry 1\n"
_FIELDS = {
    GENESIS: frozenset({"terms"}),
    CHARGE: frozenset({"event", "cost", "request"}),
    RELEASE: frozenset({"charge", "digest", "description", "value"}),
    DATA: frozenset({"data"}),
    TUNING: frozenset({"data", "tuning"}),
}
_OPTIONAL = {GENESIS: frozenset({"data"}), CHARGE: frozenset({"approved_by", "data", "question"})}
"""What may be said beside: what is declared of the ledger's own data; which other data a charge is about, what is
asked, and who approved it."""
_COMMON = frozenset({"sequence", "kind", "time", "who", "purpose", "previous", "spent"})
_TALLY = frozenset({"tally"})
_DIVIDED = {GENESIS: _TALLY, CHARGE: frozenset({"tally", "parts"}), RELEASE: _TALLY, DATA: _TALLY, TUNING: _TALLY}
"""What the entries of a ledger with parts have beside."""


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """What was written, when, by whom, why, and how much has been spent once it counts.

    ``content`` depends on the kind: ``terms`` for the genesis, and what is declared of its ``data``;
    ``event``, ``cost`` and ``request`` for a charge, with the name of its ``data`` set where it is
    not the ledger's own, the ``question`` where it is known and ``approved_by`` where somebody did;
    ``charge`` (a sequence number), ``digest``, ``description`` and ``value`` for a release; ``data`` for a declaration;
    ``data`` (its name) and ``tuning`` for what was chosen by looking at raw data.

    Where the data has parts, ``tally`` has the sums behind ``spent``, which is then the most that anybody was charged,
    and the content of a charge has ``parts``: the label of each part it is about, with the sum of that part; none for
    everybody.

    >>> from defocus import examples
    >>> with examples.ledger() as book:
    ...     [(entry.sequence, entry.kind) for entry in book.entries()]
    [(0, 'genesis')]
    """

    sequence: int
    kind: str
    time: str
    who: str
    purpose: str
    previous: str
    spent: tuple[float, ...]
    content: Mapping[str, Any]
    tally: Tally | None = None

    @property
    def parts(self) -> dict[str, tuple[float, ...]]:
        """The sum of each part that a charge names; empty where it is about everybody."""
        return {label: amounts_in(sum_) for label, sum_ in self.content.get("parts", {}).items()}

    @property
    def body(self) -> str:
        """The canonical text that is stored and hashed."""
        tally = self.tally
        divided = {} if tally is None else {"tally": _tally_out(tally)}
        return canonical(
            {
                "sequence": self.sequence,
                "kind": self.kind,
                "time": self.time,
                "who": self.who,
                "purpose": self.purpose,
                "previous": self.previous,
                "spent": amounts_out(self.spent),
                **divided,
                **self.content,
            }
        )

    @property
    def hash(self) -> str:
        """SHA-256 of the body, in hexadecimal."""
        return digest(self.body)

    def to_dict(self) -> dict[str, Any]:
        """The entry with JSON types only, its own hash included; which data it is about is not shown."""
        fields: dict[str, Any] = json.loads(self.body)
        data = fields.get("data")
        if isinstance(data, dict) and data.get("identity") is not None:
            data["identity"] = WITHHELD  # with its salt, a guess of the data could be tried
        return fields | {"hash": self.hash}


def canonical(value: Any) -> str:
    r"""The one JSON text of ``value``.

    >>> canonical({"b": 1.50, "a": "é"})
    '{"a":"\\u00e9","b":1.5}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(body: str) -> str:
    """The hash of an entry's body."""
    return hashlib.sha256(_TAG + body.encode("utf-8", "surrogatepass")).hexdigest()


def now() -> str:
    """The system clock in UTC. A claim, not an order: only sequence numbers order entries."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def read_body(body: object) -> Entry:
    """Read an entry back, or say why the text is not one that a ledger wrote."""
    if not isinstance(body, str):
        raise _unreadable("its body is not text")
    try:
        fields = json.loads(body)
        same = canonical(fields) == body
    except (ValueError, RecursionError) as error:
        raise _unreadable(f"its body is not JSON ({str(error)[:60]!r})") from None
    if not isinstance(fields, dict) or not same:
        raise _unreadable("its body is not in canonical form")
    kind = fields.get("kind")
    expected = _FIELDS.get(kind) if isinstance(kind, str) else None
    divided = _DIVIDED.get(kind, frozenset()) if isinstance(kind, str) and "tally" in fields else frozenset()
    if expected is None or fields.keys() - _OPTIONAL.get(str(kind), frozenset()) != expected | _COMMON | divided:
        raise _unreadable("its fields are not those of a genesis, a charge, a release, a declaration or a tuning")
    expected |= fields.keys() & _OPTIONAL.get(str(kind), frozenset())
    entry = Entry(
        **{name: fields[name] for name in _COMMON - {"spent"}},
        spent=amounts_in(fields["spent"]),
        content=MappingProxyType({name: fields[name] for name in sorted(expected | divided - {"tally"})}),
        tally=_tally_in(fields["tally"]) if divided else None,
    )
    texts = [entry.time, entry.who, entry.purpose, entry.previous]
    numbers: list[Any] = [entry.sequence]
    if kind == CHARGE:
        amounts_in(entry.content["cost"])
        if not isinstance(entry.content.get("parts", {}), dict):
            raise _unreadable("its parts are not labels with their sums")
        _ = entry.parts
        texts += [entry.content["request"] or "", *(entry.content.get(name, "") for name in _OPTIONAL[CHARGE])]
    elif kind == RELEASE:
        texts += [entry.content["digest"], entry.content["description"] or ""]
        numbers += [entry.content["charge"]]
    elif kind == TUNING:
        texts += [entry.content["data"], entry.content["tuning"]]
    if not all(type(x) is int for x in numbers) or not all(isinstance(text, str) for text in texts):
        raise _unreadable("a field has the wrong type")
    return entry


def amounts_out(amounts: Iterable[float]) -> list[float | None]:
    """Amounts as JSON has them: null for an infinite one.

    >>> amounts_out((0.5, math.inf))
    [0.5, None]
    """
    return [None if math.isinf(amount) else amount for amount in amounts]


def amounts_in(value: Any) -> tuple[float, ...]:
    """Amounts as :func:`amounts_out` wrote them."""
    known = isinstance(value, list) and all(x is None or (type(x) in {int, float} and 0 <= x < 1e300) for x in value)
    if not known:
        raise _unreadable("its cost or spending is not a list of amounts")
    return tuple(math.inf if x is None else x for x in value)


def _tally_out(tally: Tally) -> dict[str, Any]:
    return {"common": amounts_out(tally.common), "heaviest": amounts_out(tally.heaviest), "parts": tally.parts}


def _tally_in(value: Any) -> Tally:
    known = isinstance(value, dict) and value.keys() == {"common", "heaviest", "parts"}
    if not known or type(value["parts"]) is not int or value["parts"] < 0:
        raise _unreadable("its tally is not one of common and part sums")
    return Tally(amounts_in(value["common"]), amounts_in(value["heaviest"]), value["parts"])


def _unreadable(why: str) -> LedgerDamagedError:
    return LedgerDamagedError(f"An entry cannot be read: {why}.", fix="restore the ledger from a trusted copy.")


_LARGEST = 1 << 20


def plain(value: Any) -> Any:
    """``value`` with JSON types only, for keeping in the ledger; refused if that would change it or be too large.

    >>> plain((3, Fraction(1, 2), np.array([1, 2])))
    [3, '1/2', [1, 2]]
    """
    kept = _plain(value, 0)
    try:
        size = len(canonical(kept))
    except ValueError:
        raise _unkept("it holds a number that is not finite or is too long") from None
    if size > _LARGEST:
        raise _unkept(f"it takes {size} characters, and at most {_LARGEST} are kept")
    return kept


def fingerprint(value: Any) -> str:
    """SHA-256 of a released value: equal values have equal digests, whatever container they came in.

    >>> fingerprint([1, 2]) == fingerprint(np.array([1, 2]))
    True
    """
    try:
        text = canonical(_plain(value, 0))
    except (InvalidParameterError, ValueError):
        text = _described(value)
    return hashlib.sha256(b"defocus released value 1\n" + text.encode("utf-8", "surrogatepass")).hexdigest()


def _described(value: Any) -> str:
    """What is left to take a digest of when a value has no JSON form; it must not fail, the value is paid for."""
    name = type(value).__name__
    try:
        return f"{name} {value:x}" if isinstance(value, int) else f"{name} {value!r}"
    except Exception:  # noqa: BLE001  # a repr may raise anything
        return name


_PLAIN = frozenset((bool, int, float, str, type(None)))


def _plain(value: Any, depth: int) -> Any:
    if depth > 20:
        raise _unkept("it is nested too deeply")
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist(), depth + 1)
    if isinstance(value, Real):
        return _number(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list) and _PLAIN.issuperset(map(type, value)):  # millions of numbers, as they are
        return value
    if isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    raise _unkept(f"it is a {type(value).__name__}")


def _number(value: Real) -> int | float | str:
    if isinstance(value, Integral):
        return int(value)
    written: str | float = write_number(value) if isinstance(value, Fraction) else float(value)
    return written


def _unkept(why: str) -> InvalidParameterError:
    return InvalidParameterError(
        f"The released value cannot be kept in the ledger: {why}.",
        fix="record it without keep=True (its digest is recorded), and keep the value itself elsewhere.",
    )


_LONGEST = 1 << 20


def stored_event(event: object) -> Any:
    """The event with JSON types only, read back once to be sure that it will mean the same.

    >>> from defocus.privacy.events import Laplace
    >>> stored_event(Laplace(2))
    {'kind': 'Laplace', 'ratio': 2}
    """
    if not isinstance(event, Event):
        raise InvalidParameterError(
            f"A ledger is charged with an event, but got {described(event)}.",
            fix="pass for example privacy.Laplace(2), or mechanism.event.",
        )
    try:
        wire: Any = to_wire(event)
        size, same = len(canonical(wire)), from_wire(wire) == event
    except DefocusError:
        raise
    except (TypeError, ValueError, OverflowError):
        wire, size, same = None, 0, False
    if not same:
        raise InvalidParameterError(
            "The event holds a number that cannot be stored exactly.", fix="use int, float or Fraction of usual size."
        )
    if size > _LONGEST:
        raise InvalidParameterError(
            f"The event takes {size} characters, and at most {_LONGEST} are kept.", fix="charge it in several parts."
        )
    return wire

"""Events and units as JSON and back: what a ledger stores. Exact numbers stay exact, and nothing is evaluated."""

import re
from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from typing import Any

from defocus.errors import DefocusError, InvalidParameterError
from defocus.privacy import events
from defocus.privacy.units import Adjacency, Unit

__all__ = ["from_wire", "read_number", "read_unit", "to_wire", "write_number", "write_unit"]

_KINDS: dict[str, Callable[..., events.Event]] = {
    name: kind
    for name, kind in ((name, getattr(events, name)) for name in events.__all__)
    if isinstance(kind, type) and kind not in {events.Event, events.Composed}
}
_DEEPEST = 32
_FRACTION = re.compile(r"-?[0-9]{1,1300}/[0-9]{1,1300}")
"""How a fraction is written; nothing else is read, and nothing so long that reading it takes time."""


def to_wire(event: events.Event) -> dict[str, Any]:
    """Describe ``event`` with JSON types only; fractions become "p/q".

    >>> to_wire(3 * events.Laplace(Fraction(1, 3)))
    {'kind': 'Composed', 'parts': [[{'kind': 'Laplace', 'ratio': '1/3'}, 3]]}
    """
    return _written(event, 0)


def from_wire(data: Any) -> events.Event:
    """Read an event back; anything malformed is refused.

    >>> from_wire(to_wire(events.Sampled(events.Gaussian(1.1), 0.01)))
    Sampled(event=Gaussian(ratio=1.1), rate=0.01)
    """
    return _event(data, 0)


def write_number(value: Any) -> Any:
    """A number as JSON has it; a fraction becomes "p/q", everything else stays.

    >>> write_number(Fraction(1, 3)), write_number(0.5)
    ('1/3', 0.5)
    """
    return f"{value.numerator}/{value.denominator}" if isinstance(value, Fraction) else value


def read_number(value: Any) -> Any:
    """A number as :func:`write_number` wrote it; text that is not a fraction is refused."""
    if not isinstance(value, str):
        return value
    if not _FRACTION.fullmatch(value):
        raise _malformed(f"{value[:40]!r} is not a fraction")
    return Fraction(value)


def write_unit(unit: Unit) -> dict[str, Any]:
    """Describe ``unit`` with JSON types only.

    >>> write_unit(Unit("rows", per_person=3))
    {'kind': 'rows', 'column': None, 'bound': None, 'adjacency': 'add_remove', 'per_person': 3}
    """
    more = {"per_person": unit.per_person, "period": unit.period, "of": unit.of}
    return {
        "kind": unit.kind,
        "column": unit.column,
        "bound": write_number(unit.bound),
        "adjacency": unit.adjacency.value,
        **{name: value for name, value in more.items() if value is not None},
    }


def read_unit(data: Any) -> Unit:
    """Read a unit back; anything malformed is refused."""
    try:
        owned = data.get("per_person")
        if owned is not None and not (type(owned) is int and owned > 0):
            raise _malformed("per_person is not a number of rows")
        adjacency, period = Adjacency(data["adjacency"]), (data.get("period"), data.get("of"))
        return Unit(data["kind"], data["column"], read_number(data["bound"]), adjacency, owned, *period)
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError) as error:
        raise _malformed(f"{type(error).__name__} in a unit") from error


def _written(event: Any, depth: int) -> dict[str, Any]:
    kind = type(event).__name__
    if depth > _DEEPEST:
        raise InvalidParameterError(
            f"An event nested more than {_DEEPEST} deep cannot be stored.", fix="describe the release by fewer layers."
        )
    if isinstance(event, events.Composed):
        return {"kind": kind, "parts": [[_written(part, depth + 1), times] for part, times in event.parts]}
    if kind not in _KINDS or not isinstance(event, getattr(events, kind)):
        raise InvalidParameterError(f"{kind} is not an event a ledger can store.", fix="charge a defocus event.")
    return {"kind": kind} | {field.name: _write(getattr(event, field.name), depth) for field in fields(event)}


def _write(value: Any, depth: int) -> Any:
    if isinstance(value, events.Event):
        return _written(value, depth + 1)
    return write_number(value)


def _event(data: Any, depth: int) -> events.Event:
    try:
        if depth > _DEEPEST:
            raise _malformed("nested too deeply")
        if not isinstance(data, dict):
            raise _malformed(f"{type(data).__name__} where an event belongs")
        given = {name: value for name, value in data.items() if name != "kind"}
        if data["kind"] == "Composed" and given.keys() == {"parts"}:
            return events.Composed(tuple((_event(part, depth + 1), times) for part, times in given["parts"]))
        return _KINDS[data["kind"]](**{name: _read(value, depth) for name, value in given.items()})
    except DefocusError:
        raise
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise _malformed(f"{type(error).__name__}, {str(error)[:80]}") from error


def _read(value: Any, depth: int) -> Any:
    if isinstance(value, dict):
        return _event(value, depth + 1)
    return read_number(value)


def _malformed(why: str) -> InvalidParameterError:
    return InvalidParameterError(
        f"A stored event or unit could not be read: {why}.", fix="restore the record from a trusted copy."
    )

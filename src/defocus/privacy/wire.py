"""Events as JSON and back: what a ledger stores. Exact numbers stay exact, and nothing is evaluated."""

from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from typing import Any

from defocus.errors import DefocusError, InvalidParameterError
from defocus.privacy import events

__all__ = ["from_wire", "to_wire"]

_KINDS: dict[str, Callable[..., events.Event]] = {
    name: getattr(events, name)
    for name in (
        "Approximate",
        "Concentrated",
        "DiscreteGaussian",
        "DiscreteLaplace",
        "Exponential",
        "Gaussian",
        "Laplace",
        "Pure",
        "RandomizedResponse",
        "Sampled",
        "SampledBatch",
        "Selected",
        "SelectedPoisson",
    )
}
_DEEPEST = 32


def to_wire(event: events.Event) -> dict[str, Any]:
    """Describe ``event`` with JSON types only; fractions become "p/q".

    >>> to_wire(3 * events.Laplace(Fraction(1, 3)))
    {'kind': 'Composed', 'parts': [[{'kind': 'Laplace', 'ratio': '1/3'}, 3]]}
    """
    if isinstance(event, events.Composed):
        return {"kind": "Composed", "parts": [[to_wire(part), times] for part, times in event.parts]}
    kind = type(event).__name__
    if kind not in _KINDS:
        raise InvalidParameterError(f"{kind} is not an event a ledger can store.", fix="charge a defocus event.")
    return {"kind": kind} | {field.name: _write(getattr(event, field.name)) for field in fields(event)}  # type: ignore[arg-type]


def from_wire(data: Any) -> events.Event:
    """Read an event back; anything malformed is refused.

    >>> from_wire(to_wire(events.Sampled(events.Gaussian(1.1), 0.01)))
    Sampled(event=Gaussian(ratio=1.1), rate=0.01)
    """
    return _event(data, 0)


def _write(value: Any) -> Any:
    if isinstance(value, events.Event):
        return to_wire(value)
    return f"{value.numerator}/{value.denominator}" if isinstance(value, Fraction) else value


def _event(data: Any, depth: int) -> events.Event:
    try:
        if depth > _DEEPEST:
            raise _malformed("nested too deeply")
        fields_of = dict(data)
        kind = fields_of.pop("kind")
        if kind == "Composed":
            return events.Composed(tuple((_event(part, depth + 1), times) for part, times in fields_of["parts"]))
        return _KINDS[kind](**{name: _read(value, depth) for name, value in fields_of.items()})
    except DefocusError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError) as error:
        raise _malformed(str(error)[:80]) from error


def _read(value: Any, depth: int) -> Any:
    if isinstance(value, dict):
        return _event(value, depth + 1)
    return Fraction(value) if isinstance(value, str) else value


def _malformed(why: str) -> InvalidParameterError:
    return InvalidParameterError(
        f"A stored event could not be read: {why}.", fix="restore the record from a trusted copy."
    )

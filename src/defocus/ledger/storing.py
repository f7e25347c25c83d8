"""An event as a ledger stores it."""

from typing import Any

from defocus.errors import DefocusError, InvalidParameterError
from defocus.ledger.entries import canonical
from defocus.privacy.events import Event
from defocus.privacy.naming import described
from defocus.privacy.wire import from_wire, to_wire

__all__ = ["stored_event"]

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

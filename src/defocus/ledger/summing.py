"""Everything that was charged, as one event."""

from collections import Counter
from collections.abc import Iterable

from defocus.ledger.entries import Entry
from defocus.privacy.events import Event, compose
from defocus.privacy.wire import from_wire

__all__ = ["heaviest_events"]


def heaviest_events(charges: Iterable[Entry]) -> Event:
    """The events of all charges; of those that name parts, each as often as in the part that had it most often.

    Guarantee:
        It holds every release that anybody's own share of the run holds, as often or more often, so it loses no less.
    """
    everybody: list[Event] = []
    parts: dict[str, Counter[Event]] = {}
    for entry in charges:
        event, labels = from_wire(entry.content["event"]), entry.parts
        if not labels:
            everybody.append(event)
        for label in labels:
            parts.setdefault(label, Counter())[event] += 1
    most: Counter[Event] = Counter()
    for counted in parts.values():
        most |= counted
    return compose([*everybody, *most.elements()])

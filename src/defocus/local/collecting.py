"""Collections on the ledger: what the people of one collection pay, charged before they are asked."""

from typing import Any, Protocol, TypeVar, runtime_checkable

from defocus.errors import InvalidParameterError, whole
from defocus.local.designs import DBitFlip, Rappor
from defocus.local.designs.duchi import Duchi
from defocus.local.hitters import Hitters
from defocus.local.means import Mean
from defocus.local.oracles import Oracle
from defocus.local.surveys import Attributes
from defocus.privacy import events

__all__ = ["Charging", "collect", "collection_event"]

_Receipt_co = TypeVar("_Receipt_co", covariant=True)


@runtime_checkable
class Charging(Protocol[_Receipt_co]):
    """What is needed of a ledger."""

    def charge(self, event: events.Event, *, purpose: str) -> _Receipt_co:
        """Charge an event, or refuse."""


def collect(
    asked: Oracle | Mean | Attributes | Hitters,
    *,
    ledger: "Charging[_Receipt_co]",
    purpose: str,
    reports: int = 1,
    values: int | None = None,
) -> _Receipt_co:
    """Charge a collection to a ledger whose unit is the person, and return the receipt. Do this before asking anyone.

    The reports of one person compose with everything else the ledger holds, central or local: a person who reported is
    protected by the sum. Whoever trusts only their own device has the guarantee of their own reports regardless.

    >>> import tempfile, pathlib
    >>> from defocus import Budget, Ledger, local, user
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.open(pathlib.Path(folder) / "l.db", budget=Budget(3), unit=user("phone"), dataset="phones")
    ...     receipt = collect(local.oracle("k-rr", 5, 1), ledger=ledger, purpose="favourite colour", reports=2)
    >>> receipt.event
    Composed(parts=((RandomizedResponse(epsilon=1, categories=5), 2),))
    """
    return ledger.charge(collection_event(asked, reports=reports, values=values), purpose=purpose)


def collection_event(
    asked: Oracle | Mean | Attributes | Hitters, *, reports: int = 1, values: int | None = None
) -> events.Event:
    """What ``reports`` reports of one person cost.

    Each report costs the oracle's event anew. With ``values`` = c, devices remember (see
    :class:`~defocus.local.clients.Memory`), and a person whose value takes at most c different values pays c events,
    however many reports there are. Only oracles that can remember may be charged so.
    """
    times = whole("reports", reports, at_least=1)
    if values is None:
        return times * asked.event
    design: Any = getattr(asked, "design", None)
    if not isinstance(design, Rappor | Duchi | DBitFlip):
        raise InvalidParameterError(
            "Reports that are drawn anew each time add up, however few values there are.",
            fix="use rappor, duchi or d-bit with a Memory on each device, or leave values out.",
        )
    return min(times, whole("values", values, at_least=1)) * asked.event

"""Collections on the ledger: what the people of one collection pay, charged before they are asked."""

from typing import Any, TypeAlias

from defocus.errors import InvalidParameterError, whole
from defocus.ledger import Ledger, Receipt
from defocus.local.designs import DBitFlip, Rappor
from defocus.local.designs.numeric import Duchi
from defocus.local.frequent_strings import HeavyHitters
from defocus.local.means import Mean
from defocus.local.oracles import Oracle
from defocus.local.shuffling import MultiMessageHistogram, MultiMessageSum, Round
from defocus.local.surveys import Attributes
from defocus.privacy import Adjacency, events
from defocus.release.charge import charge

__all__ = ["Asked", "collect", "collection_event"]

Asked: TypeAlias = Oracle | Mean | Attributes | HeavyHitters | Round | MultiMessageSum | MultiMessageHistogram
"""What can be collected."""


def collect(
    asked: Asked,
    *,
    ledger: Ledger,
    purpose: str,
    who: str | None = None,
    reports: int = 1,
    values: int | None = None,
    changes_are_public: bool = False,
) -> Receipt:
    """Charge a collection to a ledger whose unit is the person, and return the receipt. Do this before asking anyone.

    The reports of one person compose with everything else the ledger holds, central or local: a person who reported is
    protected by the sum. Whoever trusts only their own device has the guarantee of their own reports regardless.

    That a person takes part is seen by whoever carries the message, so what is protected is *what* they say: neighbours
    differ in one person's values, and the unit has to say so (``replace=True``). See :func:`collection_event` for
    ``reports``, ``values`` and ``changes_are_public``; the last is written into the purpose of the charge. A collection
    takes no ``request``: each charge allows people to be asked once more, and there is no answer yet to be recalled.

    >>> import tempfile, pathlib
    >>> from defocus import Budget, Ledger, local, user
    >>> phones = {"budget": Budget(3), "unit": user("phone", replace=True), "dataset": "phones"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.open(pathlib.Path(folder) / "l.db", **phones)
    ...     receipt = collect(local.oracle("k-rr", 5, 1), ledger=ledger, purpose="favourite colour", reports=2)
    >>> receipt.event
    Composed(parts=((RandomizedResponse(epsilon=1, categories=6), 2),))
    """
    event = collection_event(asked, reports=reports, values=values, changes_are_public=changes_are_public)
    if ledger.unit.adjacency is not Adjacency.REPLACE:
        raise InvalidParameterError(
            "Reports show who takes part, so a person added or removed is seen; only what they say is protected.",
            fix='open the ledger with a unit whose values are replaced, for example user("phone", replace=True).',
        )
    told = f" (at most {values} values a person; moments of change are public)"
    return charge(event, ledger=ledger, purpose=f"{purpose}{told if (values or 1) > 1 else ''}", who=who)


def collection_event(
    asked: Asked, *, reports: int = 1, values: int | None = None, changes_are_public: bool = False
) -> events.Event:
    """What ``reports`` reports of one person cost, for values replaced.

    Each report costs the oracle's event anew. Where devices remember (see :class:`~defocus.local.clients.Memory`):

    * ``values=1``: each person's value stays the same, and all their reports together cost one event. Nothing is
      promised to a person whose value changes nevertheless: *when* it changed can be read off the reports.
    * ``values`` = c > 1, with ``rappor`` only: a person's value takes at most c different values, and all reports cost
      c events, *if the moments at which it changes, and returns to an earlier one, are public*.
      ``changes_are_public`` is the owner's word for that. Without it no number of events suffices: of two series of
      values that change at different moments, one makes reports likely that the other hardly ever makes, or never.
      With ``duchi`` and ``d-bit`` it is no use, since *which* bits change tells the values themselves.

    >>> from defocus import local
    >>> asked = local.oracle("k-rr", ["red", "green", "blue"], epsilon=2)
    >>> collection_event(asked)
    RandomizedResponse(epsilon=2, categories=4)
    """
    times = whole("reports", reports, at_least=1)
    if values is None:
        return times * asked.event
    design: Any = getattr(asked, "design", None)
    if not isinstance(design, Rappor | Duchi | DBitFlip) or isinstance(asked, Round):
        raise InvalidParameterError(
            "Reports that are drawn anew each time add up, however few values there are.",
            fix="use rappor, duchi or d-bit with a Memory on each device, or leave values out.",
        )
    different = whole("values", values, at_least=1)
    if different > 1 and not (changes_are_public is True and isinstance(design, Rappor)):
        raise InvalidParameterError(
            f"{different} values of one person cost more than {different} events: reports show when a value changes.",
            fix="charge every report (leave values out), or collect what does not change (values=1); with rappor, say "
            "changes_are_public=True if the moments of change are known to everybody anyway.",
        )
    return min(times, different) * asked.event

r"""How one person of a ledger appears in a data set, and how many single changes of that data the person is.

A ledger states the person once: ``user("patient")`` or ``node()``. Each data set states by its own unit how such a
person appears in it, and what is released about it is planned for as many changes as the person can make.

Theorem:
    Let the ledger's neighbours :math:`D \sim D'` differ in one person, and let x(D) be what a data set holds of D. Call
    two data sets one change apart if one row, edge, event or node with its edges is in one and not in the other. If
    :math:`x(D)` and :math:`x(D')` are at most k changes apart for all neighbours, then a vector that one change moves
    by at most Δ moves by at most kΔ, and a release with the event e for one change has the event ``group(e, k)`` for
    the person. Proof. Walk from x(D) to x(D') in k changes; norms obey the triangle inequality, and along the walk the
    bounds of each change compose as in :mod:`defocus.privacy.groups`.

So a translation is one number, :attr:`.Unit.changes`, and its proof is a bound on a distance. They are listed in
:data:`TRANSLATIONS`. The tests compute every distance on all small data sets by breadth-first search: none is larger,
and some pair attains it.

Reference:
    Dwork, Roth (2014), section 2.3 (groups); Kasiviswanathan, Nissim, Raskhodnikova, Smith (2013) for nodes and edges.
"""

from dataclasses import dataclass, replace
from typing import final

from defocus.errors import LedgerMismatchError
from defocus.privacy.units import Adjacency, Unit

__all__ = ["PERSONS", "TRANSLATIONS", "Translation", "appearance"]

PERSONS = ("user", "node")
"""Units that are everything about one person, whatever the data."""


@final
@dataclass(frozen=True, slots=True)
class Translation:
    """One way in which a person appears in data: the unit of the data, how many changes a person is, and why.

    >>> TRANSLATIONS[0].appears, TRANSLATIONS[0].changes
    ('rows by column', '1')
    """

    appears: str
    unit: str
    changes: str
    """For a person added or removed."""
    replaced: str
    """For a person replaced by another."""
    why: str


TRANSLATIONS = (
    Translation(
        "rows by column",
        'user("column")',
        "1",
        "2",
        "all rows with one value of the column are the person; what one person may weigh is bounded by the release",
    ),
    Translation(
        "at most m rows",
        "rows(per_person=m)",
        "m",
        "2m",
        "the person's rows come or go one after the other; of two persons, those of one go and those of the other come",
    ),
    Translation(
        "a node with its edges",
        "node()",
        "1",
        "2",
        "without the person the graph lacks the node and every edge at it, which is the neighbour under node privacy",
    ),
    Translation(
        "an end of at most m edges",
        "edge(per_person=m)",
        "m",
        "2m",
        "on public nodes, the person's edges come or go one after the other, whichever end the person is",
    ),
    Translation(
        "in at most m events",
        "item(per_person=m)",
        "m",
        "2m",
        "messages, visits or interactions with the person come or go one after the other",
    ),
    Translation(
        "at most m weights",
        "weight(bound=w, per_person=m)",
        "none",
        "m values",
        "each weight of the person takes another value in its range; which weights exist is public, so a person who"
        " is added or removed cannot be protected",
    ),
    Translation(
        "one report each time",
        'collect(participation="public")',
        "1 a report",
        "1 a report",
        "who has no data reports as well, as somebody whose value is missing; that a person takes part is public",
    ),
)
"""What :func:`appearance` admits, as ``defocus units`` prints it."""


def appearance(person: Unit, data: Unit) -> Unit:
    """The unit under which a data set is asked, whose ledger protects ``person`` and whose own unit is ``data``.

    Adjacency is the ledger's: whether persons come and go or are replaced is stated once.

    Guarantee:
        Neighbours of the ledger differ in the data by at most ``appearance(...).changes`` changes of its kind.
    Assumes:
        What the unit declares: that no person owns more than ``per_person``, and that the column or the nodes of the
        data name the same persons as the ledger.

    >>> from defocus import edge, node, rows, user
    >>> print(appearance(user("patient"), edge(per_person=20)))
    all edges of one person, at most 20, added or removed
    >>> print(appearance(user("patient", replace=True), node()))
    one node and its edges, replaced by another
    >>> appearance(user("patient"), rows())
    Traceback (most recent call last):
    ...
    defocus.errors.core.LedgerMismatchError: The ledger protects everything about one patient, added or removed, and ...
    To fix: say how many one person has at most: rows(per_person=…); or name the column of the person: user("…").
    """
    if data == person:
        return person
    if person.period is not None or data.period is not None:
        raise _refusal(
            person,
            data,
            "and one person may have many periods",
            "open data with the unit that the ledger was made for, or make another ledger for it.",
        )
    if person.kind not in PERSONS:
        raise _refusal(
            person,
            data,
            "which does not say whose it is",
            'make a ledger for the person, unit=dp.user("person_id"), and open both data sets with it.',
        )
    if data.adjacency is Adjacency.REPLACE and person.adjacency is Adjacency.ADD_REMOVE:
        weights = data.kind == "weight"
        raise _refusal(
            person,
            data,
            "which weights exist is public there" if weights else "the number of units is public there",
            "make the ledger for persons who are replaced, replace=True; or protect "
            + ("edges." if weights else "those who are added or removed: leave replace= out."),
        )
    if data.kind in PERSONS:
        return replace(data, adjacency=person.adjacency)
    if data.per_person is None:
        name = {"event": "item", "weight": f"weight(bound={data.bound}, "}.get(data.kind, data.kind)
        call = f"{name}per_person=…)" if data.kind == "weight" else f"{name}(per_person=…)"
        other = {"rows": 'name the column of the person: user("…")', "edge": "protect the node: node()"}.get(data.kind)
        raise _refusal(
            person,
            data,
            "of which one person may have any number",
            f"say how many one person has at most: {call}{f'; or {other}' if other else ''}.",
        )
    return replace(data, adjacency=person.adjacency)


def _refusal(person: Unit, data: Unit, why: str, fix: str) -> LedgerMismatchError:
    return LedgerMismatchError(
        f"The ledger protects {person}, and the data {data}, {why}: what it costs the person is not known.", fix=fix
    )

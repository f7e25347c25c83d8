"""Which ledger answers for a graph, and what the graph is called there.

A ledger adds up what may be known about one edge. The same rows read from other columns, or with a direction, have
other edges: one edge of the first reading may be a hundred of the second. So a ledger is made for one reading.
"""

import hashlib
import re
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from defocus.errors import InvalidParameterError, NotDeclaredError
from defocus.graphs.edge_files import EdgeSource
from defocus.ledger import Ledger
from defocus.ledger.creation import beside, exists
from defocus.ledger.text import line
from defocus.privacy.budgets import Budget
from defocus.privacy.units import Unit, node

__all__ = ["Holding", "booked", "called", "place_of"]

_DIRECTED = ", directed"
_READING = re.compile(r"(?:, ends (?:['\"].* and .*['\"]|[0-9a-f]{16}))?(?:, directed)?$")
"""What ledgers write behind the name of a graph."""
_LONGEST = 80
"""The names of two columns are written as they are up to so many characters."""


@final
@dataclass(frozen=True, slots=True)
class Holding:
    """What a ledger holds of a graph: its name, the columns of its ends in any order, and its direction.

    >>> Holding("calls", ("caller", "callee")).dataset
    "calls, ends 'callee' and 'caller'"
    >>> Holding("calls", None, directed=True).dataset
    'calls, directed'
    """

    name: str
    ends: tuple[str, str] | None
    directed: bool = False

    @property
    def dataset(self) -> str:
        """What is written into the ledger."""
        return self.name + ("" if self.ends is None else f", ends {_spelt(self.ends)}") + _DIRECTED * self.directed

    @property
    def earlier(self) -> str:
        """What was, before columns were written down, and is where the data has none."""
        return self.name + _DIRECTED * self.directed


def called(name: str | None, opened: EdgeSource, ledger: Any) -> str:
    """What the data is called where nobody says: as its file is, else as in its ledger.

    A name that reads like what ledgers write behind names is refused: two graphs would be called alike.
    """
    found = _found(opened, ledger) if name is None else line("name", name, longest=200)
    if _READING.sub("", found, count=1) != found:
        raise InvalidParameterError(
            f"A graph cannot be called {found!r:.80}: ledgers write behind a name how edges are read.",
            fix='call it otherwise: name="friends"; pass directed= and ends= for the rest.',
        )
    return found


def _found(opened: EdgeSource, ledger: Any) -> str:
    if opened.name is not None:
        return opened.name
    if isinstance(ledger, Ledger):
        return _READING.sub("", ledger.dataset, count=1)
    return Path(ledger).stem if isinstance(ledger, str | Path) and "://" not in str(ledger) else "graph"


def place_of(data: Any, table: str | None, unit: Unit | None, budget: Budget | None) -> Path:
    """Where the ledger is if nobody says: beside the data."""
    place = beside(data, table=table, unit=unit, budget=budget)
    if place is not None:
        return place
    raise NotDeclaredError(
        "This graph has no place of its own, so nobody knows where its ledger is.",
        fix='pass ledger="friends.ledger" and name="friends", the same each time, or the budget would start anew.',
    )


def booked(
    place: Ledger | str | Path,
    holding: Holding,
    undo: ExitStack,
    anchor_file: str | Path | None,
    *,
    unit: Unit | None,
    budget: Budget | None,
    **facts: Any,
) -> Ledger:
    """The ledger for this reading of the data, which is made now if there is none.

    One for edges must have been made for the same unit and reading. One for persons holds any graph about them: by
    default a person is a node. A ledger that was made before columns were written down is opened as it was.
    """
    if isinstance(place, Ledger):
        book = place
        book.terms.hold(dataset=None, unit=None, budget=budget)
    elif unit is None or exists(place):
        book = undo.enter_context(Ledger.open(place, anchor_file=anchor_file, budget=budget))
    else:
        made: dict[str, Any] = {"budget": budget, "unit": unit, "dataset": holding.dataset, **facts}
        book = undo.enter_context(Ledger.open(place, anchor_file=anchor_file, **made))
    name = holding.earlier if book.dataset == holding.earlier else holding.dataset
    if unit is None and book.person.kind == "user" and name not in {declared.name for declared in book.datasets()}:
        unit = book.unit if book.unit.kind != "user" else node()
    return book.data(name, unit=unit, **facts)


def _spelt(ends: tuple[str, str]) -> str:
    """Two columns in one line; by a few digits where their names are long."""
    text = " and ".join(map(repr, sorted(ends)))
    if len(text) <= _LONGEST:
        return text
    return hashlib.sha256(text.encode()).hexdigest()[:16]

"""Public facts about a graph, and statistics whose plans depend on those alone."""

from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, NotDeclaredError
from defocus.privacy.sensitivity import Sensitivity
from defocus.privacy.units import Unit

__all__ = ["IntVector", "Public", "Statistic", "edge_sensitivity"]


@final
@dataclass(frozen=True, slots=True)
class Public:
    """The protected unit, the public number of nodes, and how edges are read.

    ``nodes`` is None where the number of nodes is private: under node privacy. ``listed`` says whether nodes
    without edges are known, from a list of nodes, or only those that have an edge. ``named`` is a digest of public
    names, by which kept answers about other nodes are told apart, and ``columns`` are what was said to be read.

    >>> from defocus import edge
    >>> Public(edge(), 100).n, Public(edge(replace=True), 100).changes
    (100, 2)
    """

    unit: Unit
    nodes: int | None
    directed: bool = False
    listed: bool = True
    named: str = ""
    columns: tuple[str | None, ...] = ()
    engine: str = field(default="", repr=False)
    """Where edges are counted, if not in memory. Kept answers do not depend on it."""
    lines: bool = field(default=False, repr=False)
    """Whether edges are lines of text. One that is too long or not UTF-8 is left out, whichever field is to blame, so
    that which edges are listed depends on weights."""

    @property
    def n(self) -> int:
        """The number of nodes, where it is public; else a refusal."""
        if self.nodes is None:
            raise NotDeclaredError(
                f"This graph protects {self.unit}, so the number of its nodes is private,"
                " and this question needs a public one.",
                fix=f"ask something whose answer does not depend on it, such as {self.answerable}; or protect edges:"
                " unit=dp.edge(), nodes=….",
            )
        return self.nodes

    @property
    def answerable(self) -> str:
        """What can be asked where this unit is protected, in words."""
        if self.unit.kind == "node":
            return "edges or triangles" + (" or the degree histogram" if self.listed else "")
        return {"weight": "weights", "event": "interactions"}.get(self.unit.kind, "edges")

    def need_all_nodes(self) -> None:
        """Refuse where nodes without an edge are not known: a node that leaves would take others with it."""
        if not self.listed:
            raise NotDeclaredError(
                "Nodes without an edge are not known here, so a node that leaves takes others out of the count with"
                " it.",
                fix="pass the list of all nodes when the graph is opened: nodes=[…]; it stays private.",
                command="pass --nodes and a file of all nodes, one per line; it stays private.",
            )

    @property
    def changes(self) -> int:
        """How many edges, nodes or events come or go between neighbours; see :attr:`.Unit.changes`."""
        return self.unit.changes


IntVector: TypeAlias = NDArray[np.int64]


@runtime_checkable
class Statistic(Protocol):
    """A vector of whole numbers that a graph has, and how far one unit can move it.

    Guarantee:
        :meth:`sensitivity` and :meth:`length` depend on public facts only. Between neighbours under the unit of
        ``public`` the vector moves by at most :meth:`sensitivity`; every statistic in the registry has a certificate
        that says where this was checked on all small graphs.

    >>> from defocus.graphs import Edges
    >>> isinstance(Edges(), Statistic)
    True
    """

    @property
    def name(self) -> str:
        """What the statistic is called, in a few words."""

    def exact(self, graph: Any) -> IntVector:
        """The vector itself. Private: it is computed after the charge and leaves with noise only."""

    def length(self, public: Public) -> int:
        """How many entries the vector has."""

    def sensitivity(self, public: Public) -> Sensitivity:
        """How far one unit can move the vector; a refusal where no useful bound is known."""


def edge_sensitivity(public: Public, one: Sensitivity, *, name: str) -> Sensitivity:
    """The sensitivity under edge privacy, from that of one edge added or removed.

    Replacing one edge by another is two such changes, so it moves the vector at most twice as far. This is
    sound, and for statistics that an added edge can only raise it is not attained.
    """
    if public.unit.kind != "edge":
        raise InvalidParameterError(
            f"{name} has no noise of this kind for graphs that protect {public.unit}.",
            fix=f"protect edges: unit=dp.edge(); or ask what has a form for this unit: {public.answerable}.",
        )
    return one.times(public.changes)

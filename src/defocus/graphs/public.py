"""What everyone may know about a graph, and nothing else: what plans and lengths of results may depend on."""

from dataclasses import dataclass, field
from typing import final

from defocus.errors import NotDeclaredError
from defocus.privacy.units import Adjacency, Unit

__all__ = ["Public"]


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
            return "edges() or triangles()" + (" or degree_histogram()" if self.listed else "")
        return {"weight": "weights()", "event": "interactions(every=…)"}.get(self.unit.kind, "edges()")

    def need_all_nodes(self) -> None:
        """Refuse where nodes without an edge are not known: a node that leaves would take others with it."""
        if not self.listed:
            raise NotDeclaredError(
                "Nodes without an edge are not known here, so a node that leaves takes others out of the count with"
                " it.",
                fix="pass the list of all nodes when the graph is opened: nodes=[…]; it stays private.",
            )

    @property
    def changes(self) -> int:
        """How many units come or go between neighbours: one, or two where one replaces another."""
        return 2 if self.unit.adjacency is Adjacency.REPLACE else 1

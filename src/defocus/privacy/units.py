"""What one person is: the unit a ledger protects, and which data sets count as neighbours."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, final

from defocus.errors import InvalidParameterError, Number, count, positive, storable

__all__ = ["Adjacency", "Unit", "edge", "item", "node", "rows", "user", "weight"]


_KINDS = ("rows", "user", "edge", "node", "event", "weight")


class Adjacency(StrEnum):
    """Which pairs of data sets must be hard to tell apart.

    >>> Adjacency("replace") is Adjacency.REPLACE
    True
    """

    ADD_REMOVE = "add_remove"
    """One unit is present in one data set and absent from the other."""
    REPLACE = "replace"
    """One unit has other data in the other data set; the number of units is public."""

    @classmethod
    def _missing_(cls, value: object) -> "Adjacency":
        raise InvalidParameterError(
            f"There is no adjacency {value!r:.60}.", fix=f"choose one of {', '.join(kind.value for kind in cls)}."
        )


@final
@dataclass(frozen=True, slots=True)
class Unit:
    """One protected unit and its adjacency. Made by :func:`rows`, :func:`user`, :func:`edge` and their kin.

    >>> print(user("patient_id"))
    everything about one patient_id, added or removed
    """

    kind: str
    column: str | None = None
    bound: Number | None = None
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        known = self.kind in _KINDS and (self.column is None) != (self.kind == "user")
        if not known or not isinstance(self.adjacency, Adjacency):
            raise InvalidParameterError(
                f"{self!r} is not a unit.", fix=f"make one with {', '.join(f'{kind}()' for kind in _KINDS)}."
            )

    def __str__(self) -> str:
        thing = {
            "rows": "one row",
            "user": f"everything about one {self.column}",
            "edge": "one edge",
            "node": f"one node with at most {self.bound} edges" if self.bound else "one node and its edges",
            "event": "one event",
            "weight": f"one weight in [0, {self.bound}]",
        }[self.kind]
        return f"{thing}, {'added or removed' if self.adjacency is Adjacency.ADD_REMOVE else 'replaced by another'}"


def rows(*, replace: bool = False) -> Unit:
    """Protect one row of a table.

    >>> print(rows())
    one row, added or removed
    >>> print(rows(replace=True))
    one row, replaced by another
    """
    return Unit("rows", adjacency=_adjacency(replace=replace))


def user(column: object, *, replace: bool = False) -> Unit:
    """Protect all rows that share a value of ``column``: one person, however often they appear.

    >>> print(user("patient_id"))
    everything about one patient_id, added or removed
    """
    if not isinstance(column, str) or not column:
        raise InvalidParameterError(
            f"user() needs the name of the column that identifies a person, but got {column!r}.",
            fix='write for example user("patient_id").',
        )
    return Unit("user", column=column, adjacency=_adjacency(replace=replace))


def edge(*, replace: bool = False) -> Unit:
    """Protect one edge of a graph.

    >>> print(edge())
    one edge, added or removed
    """
    return Unit("edge", adjacency=_adjacency(replace=replace))


def node(*, max_degree: int | None = None, replace: bool = False) -> Unit:
    """Protect one node of a graph with all its edges.

    >>> print(node())
    one node and its edges, added or removed
    >>> print(node(max_degree=20))
    one node with at most 20 edges, added or removed
    """
    bound = None if max_degree is None else count("max_degree", max_degree)
    return Unit("node", bound=bound, adjacency=_adjacency(replace=replace))


def item(*, replace: bool = False) -> Unit:
    """Protect one event of a stream or temporal graph.

    >>> print(item())
    one event, added or removed
    """
    return Unit("event", adjacency=_adjacency(replace=replace))


def weight(*, bound: Number) -> Unit:
    """Protect the value of one weight in [0, ``bound``]; which weights exist is public.

    >>> print(weight(bound=5))
    one weight in [0, 5], replaced by another
    """
    return Unit("weight", bound=storable("bound", positive("bound", bound)), adjacency=Adjacency.REPLACE)


def _adjacency(*, replace: Any) -> Adjacency:
    if not isinstance(replace, bool):
        raise InvalidParameterError(
            f"replace must be True or False, but it is of type {type(replace).__name__}.",
            fix="pass replace=True for neighbours that replace one unit by another, and leave it out otherwise.",
        )
    return Adjacency.REPLACE if replace else Adjacency.ADD_REMOVE

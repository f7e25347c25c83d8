"""What one person is: the unit a ledger protects, and which data sets count as neighbours."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, final

from defocus.errors import InvalidParameterError, Number, count, positive, storable

__all__ = ["Adjacency", "Unit", "edge", "item", "node", "rows", "user", "weight"]


_KINDS = ("rows", "user", "edge", "node", "event", "weight")
_COUNTED = {"rows": "rows", "edge": "edges", "event": "events", "weight": "weights"}
"""Units of which one person may own several."""
_PERIODS = ("week", "month", "quarter", "year")
"""Periods of a calendar."""


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

    With ``per_person`` the unit is a person who owns at most so many rows, edges, events or weights. With ``period``
    it is what one person has in one period, such as a month: a column, or the calendar's period ``of`` a date.

    >>> print(user("patient_id"))
    everything about one patient_id, added or removed
    >>> print(rows(per_person=3))
    all rows of one person, at most 3, added or removed
    """

    kind: str
    column: str | None = None
    bound: Number | None = None
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    per_person: int | None = None
    period: str | None = None
    of: str | None = None

    def __post_init__(self) -> None:
        whole = self.kind in _KINDS and (self.column is None) != (self.kind == "user")
        owned = self.per_person
        counted = type(owned) is int and owned > 0 and self.kind in _COUNTED
        whole = whole and _is_period(self.kind, self.period, self.of)
        whole = whole and (self.kind == "user" or self.period is None or owned is not None)
        if not (whole and (owned is None or counted)) or not isinstance(self.adjacency, Adjacency):
            raise InvalidParameterError(
                f"{self!r} is not a unit.", fix=f"make one with {', '.join(f'{kind}()' for kind in _KINDS)}."
            )

    @property
    def changes(self) -> int:
        """How many rows, edges, events, weights or whole persons come or go between neighbours, at most.

        A person who is replaced goes and another comes, so that both count. Weights do neither: they change in place.

        >>> rows().changes, rows(replace=True).changes, edge(per_person=20).changes, user("id", replace=True).changes
        (1, 2, 20, 2)
        """
        both = self.adjacency is Adjacency.REPLACE and self.kind != "weight"
        return (self.per_person or 1) * (2 if both else 1)

    @property
    def number_is_public(self) -> bool:
        """Whether neighbours have equally many units. Not where persons are replaced who own several: not as many.

        >>> rows(replace=True).number_is_public, rows(per_person=3, replace=True).number_is_public
        (True, False)
        """
        return self.adjacency is Adjacency.REPLACE and (self.per_person is None or self.kind == "weight")

    def __str__(self) -> str:
        thing = {
            "rows": "one row",
            "user": f"everything about one {self.column}" + (f" in one {self.period}" if self.period else ""),
            "edge": "one edge",
            "node": f"one node with at most {self.bound} edges" if self.bound else "one node and its edges",
            "event": "one event",
            "weight": f"one weight in [0, {self.bound}]",
        }[self.kind]
        if self.per_person is not None:
            limits = f" in [0, {self.bound}]" if self.kind == "weight" else ""
            period = f" in one {self.period}" if self.period else ""
            thing = f"all {_COUNTED[self.kind]}{limits} of one person{period}, at most {self.per_person}"
        return f"{thing}, {'added or removed' if self.adjacency is Adjacency.ADD_REMOVE else 'replaced by another'}"


def rows(*, per_person: int | None = None, period: str | None = None, replace: bool = False) -> Unit:
    """Protect one row of a table; with ``per_person``, a person who owns at most so many.

    With ``period``, a column such as the day of each row, protect what one person has in one period: at most
    ``per_person`` rows, which somebody else must hold, such as the :class:`~defocus.local.ContributionFilter` of a
    device.

    >>> print(rows())
    one row, added or removed
    >>> print(rows(replace=True))
    one row, replaced by another
    >>> print(rows(per_person=10, period="day"))
    all rows of one person in one day, at most 10, added or removed
    """
    owned, adjacency = _owned(per_person), _adjacency(replace=replace)
    if period is not None and (owned is None or replace or not _is_period("rows", period, None)):
        raise InvalidParameterError(
            f"A period of {period!r:.60} is not understood for rows.",
            fix='say how many rows one person has in one of them, as in rows(per_person=10, period="day"),'
            " and leave replace= out.",
        )
    return Unit("rows", adjacency=adjacency, per_person=owned, period=period)


def user(column: object, *, period: str | None = None, of: str | None = None, replace: bool = False) -> Unit:
    """Protect all rows that share a value of ``column``: one person, however often they appear.

    Args:
        column: the column that names the person.
        period: protect what one person has in one period, with a budget for each period: a column of the table, such as
            the month of each row; or "week", "month", "quarter" or "year" ``of`` a column of dates. Over several
            periods a person is protected by the sum of what was released from them, and no better.
        of: the column of dates.
        replace: whether neighbours have other data of one unit, and not one unit more.

    >>> print(user("patient_id"))
    everything about one patient_id, added or removed
    >>> print(user("patient_id", period="month", of="admitted"))
    everything about one patient_id in one month, added or removed
    """
    if not isinstance(column, str) or not column:
        raise InvalidParameterError(
            f"user() needs the name of the column that identifies a person, but got {column!r}.",
            fix='write for example user("patient_id").',
        )
    adjacency = _adjacency(replace=replace)
    if (period, of) != (None, None) and not _is_period("user", period, of):
        raise InvalidParameterError(
            f"A period of {period!r:.60} of {of!r:.60} is not understood.",
            fix='write period="month" for a column of that name, or period="month", of="day" for a column of dates;'
            f" of dates there are {', '.join(_PERIODS)}.",
        )
    if period is not None and replace:
        raise InvalidParameterError(
            "What one person has in one period is added or removed, not replaced: it stays in its period.",
            fix="leave replace= out.",
        )
    return Unit("user", column=column, adjacency=adjacency, period=period, of=of)


def edge(*, per_person: int | None = None, replace: bool = False) -> Unit:
    """Protect one edge of a graph; with ``per_person``, a person at an end of at most so many.

    >>> print(edge())
    one edge, added or removed
    """
    return Unit("edge", adjacency=_adjacency(replace=replace), per_person=_owned(per_person))


def node(*, max_degree: int | None = None, replace: bool = False) -> Unit:
    """Protect one node of a graph with all its edges.

    >>> print(node())
    one node and its edges, added or removed
    >>> print(node(max_degree=20))
    one node with at most 20 edges, added or removed
    """
    bound = None if max_degree is None else count("max_degree", max_degree)
    return Unit("node", bound=bound, adjacency=_adjacency(replace=replace))


def item(*, per_person: int | None = None, replace: bool = False) -> Unit:
    """Protect one event of a stream or temporal graph; with ``per_person``, a person in at most so many.

    >>> print(item())
    one event, added or removed
    """
    return Unit("event", adjacency=_adjacency(replace=replace), per_person=_owned(per_person))


def weight(*, bound: Number, per_person: int | None = None) -> Unit:
    """Protect the value of one weight in [0, ``bound``]; which weights exist is public.

    With ``per_person``, protect those of a person who has at most so many.

    >>> print(weight(bound=5))
    one weight in [0, 5], replaced by another
    """
    limit = storable("bound", positive("bound", bound))
    return Unit("weight", bound=limit, adjacency=Adjacency.REPLACE, per_person=_owned(per_person))


def _adjacency(*, replace: Any) -> Adjacency:
    if not isinstance(replace, bool):
        raise InvalidParameterError(
            f"replace must be True or False, but it is of type {type(replace).__name__}.",
            fix="pass replace=True for neighbours that replace one unit by another, and leave it out otherwise.",
        )
    return Adjacency.REPLACE if replace else Adjacency.ADD_REMOVE


def _is_period(kind: str, period: object, of: object) -> bool:
    if period is None:
        return of is None
    named = kind in {"rows", "user"} and isinstance(period, str) and bool(period)
    dates = kind == "user" and isinstance(of, str) and bool(of) and period in _PERIODS
    return named and (of is None or dates)


def _owned(per_person: Any) -> int | None:
    return None if per_person is None else count("per_person", per_person)

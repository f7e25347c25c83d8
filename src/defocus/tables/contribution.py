"""How much one person may contribute to a question, and who a person is."""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import final

import pyarrow as pa
from sqlglot import exp

from defocus.engines.schema import Kind
from defocus.engines.sources import Source, without
from defocus.engines.syntax import column, named, sub
from defocus.errors import InvalidParameterError, WrongKindError, count

__all__ = [
    "BY",
    "DEFAULT_ROWS",
    "FIND",
    "Bound",
    "fitting",
    "naming",
    "people_weight",
    "root_above",
]


BY = ("weights", "sampling")
"""The two ways to hold a bound; see :class:`Bound`."""
FIND = "find"
"""``rows="find"``, ``bounds="find"``: let a share of the budget find the bound with the least error, or bounds."""
DEFAULT_ROWS = 5
"""For how many rows errors are expected until a bound is found; the bound where it is given for groups only."""
_MOST = 1 << 20
"""Bounds beyond this many rows would leave no room for a grid in 64 bits."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    r"""One person counts with at most ``rows`` rows in all, ``per_group`` in each group, and in ``groups`` groups.

    *By weights*, everybody's rows all count, but those of a person with more than ``rows`` of them count less, so
    that they weigh ``rows`` together. Nothing is random and nothing is sorted. *By sampling*, a person's rows are
    chosen with a fresh cryptographic key. With ``find`` the number of rows is chosen in the course of the release,
    from a private histogram of how many rows people have; see :mod:`defocus.tables.found_bound`.

    Guarantee:
        In units of one row, the rows of one person weigh at most :attr:`total` over all groups and at most
        ``per_group`` in each of them. Whatever splits a row's weight into non-negative parts therefore moves by at
        most :attr:`total` in L1 norm, and by :meth:`l2` in L2 norm, when a person is added or removed.

    >>> Bound(rows=5).total, Bound(groups=3, per_group=2).total
    (5, 6)
    """

    rows: int | None = None
    groups: int | None = None
    per_group: int | None = None
    by: str = "weights"
    find: bool = False
    most: int | None = field(default=None, repr=False)
    """How many rows nobody has more than, where the owner knows. Intervals rest on it, and no promise of privacy."""

    def __post_init__(self) -> None:
        for name in ("rows", "groups", "per_group", "most"):
            value = getattr(self, name)
            if value is not None and count(name, value) > _MOST:
                raise InvalidParameterError(
                    f"{name} is {value}; at most {_MOST} can be counted exactly.",
                    fix=f"choose {name} for a usual person, not for the one with the most rows.",
                )
        if self.by not in BY:
            raise InvalidParameterError(
                f"A bound is held by weights or by sampling, not by {self.by!r:.40}.",
                fix='leave by= out, or pass by="sampling".',
            )
        if self.find:
            if self.rows is not None or self.per_group is not None or self.by != "weights":
                raise InvalidParameterError(
                    "A bound that is to be found has no rows of its own, and is held by weights.",
                    fix='write bound(rows="find"), perhaps with groups=.',
                )
            return
        if self.rows is None and (self.groups is None or self.per_group is None):
            raise InvalidParameterError(
                "This bound does not limit what one person contributes in all.",
                fix="give rows=, or both groups= and per_group=.",
            )

    @classmethod
    def of(
        cls,
        *,
        rows: int | str | None = None,
        groups: int | None = None,
        per_group: int | None = None,
        by: str = "weights",
        most: int | None = None,
    ) -> "Bound":
        """The bound that people ask for: ``rows`` is found by default.

        >>> print(Bound.of(groups=3), "-", Bound.of(per_group=2))
        a number of rows that is found privately and 3 groups - 5 rows and 2 rows in each group
        """
        if isinstance(rows, str) and rows != FIND:
            raise InvalidParameterError("rows is neither a number nor to be found.", fix='pass rows=5 or rows="find".')
        if rows is None and (per_group is not None or by == "sampling"):  # these need a number
            at_least = max(DEFAULT_ROWS, groups or 1, per_group if isinstance(per_group, int) else 1)
            rows = None if groups is not None and per_group is not None else at_least
            return cls(rows=rows, groups=groups, per_group=per_group, by=by, most=most)
        if rows is None or isinstance(rows, str):
            return cls(groups=groups, per_group=per_group, by=by, find=True, most=most)
        return cls(rows=rows, groups=groups, per_group=per_group, by=by, most=most)

    @property
    def cuts(self) -> bool:
        """Whether anybody may have more rows than count."""
        return self.most is None or self.find or self.per_group is not None or self.most > self.total

    @property
    def total(self) -> int:
        """How many rows one person weighs at most, over all groups; the default where it is not yet found."""
        if self.find:
            return DEFAULT_ROWS
        limits = [self.rows] if self.rows is not None else []
        if self.groups is not None and self.per_group is not None:
            limits.append(self.groups * self.per_group)
        return min(limits)

    @property
    def people_in(self) -> int:
        """In how many groups one person may be counted as a person."""
        return self.total if self.groups is None else self.groups

    @property
    def keys_of(self) -> int:
        """How many groups of one person count where keys are found: one, unless groups are bounded.

        The number of people that a group needs grows with it as fast as the groups do that people speak for, up to
        about twenty of them. So more groups show no more of them, and fewer where people are in one group each.
        """
        return 1 if self.groups is None else self.groups

    def l2(self) -> Fraction:
        r"""A bound on the L2 norm of one person's weights over the groups, in units of one row.

        A convex function on :math:`\{c : 0 \le c_g \le p,\ \sum c_g \le t\}` is largest at a corner: as many
        groups as fit are full, and one more holds the rest. Without ``per_group`` everything may be in one group.

        >>> Bound(rows=5).l2(), Bound(rows=4, per_group=1).l2()
        (Fraction(5, 1), Fraction(2, 1))
        """
        most = self.total if self.per_group is None else min(self.per_group, self.total)
        full, rest = divmod(self.total, most)
        return root_above(full * most**2 + rest**2)

    def __str__(self) -> str:
        if self.find:
            groups = "" if self.groups is None else f" and {self.groups} groups"
            return f"a number of rows that is found privately{groups}"
        parts = [] if self.rows is None else [f"{self.rows} {_rows(self.rows)}"]
        if self.per_group is not None:
            parts.append(f"{self.per_group} {_rows(self.per_group)} in each group")
        if self.groups is not None:
            parts.append(f"{self.groups} group{'' if self.groups == 1 else 's'}")
        return " and ".join(parts)


def fitting(bound: object, *, people: bool) -> Bound | None:
    """The bound, if there is one and there are people whom it can bound."""
    if bound is None:
        return None
    if not isinstance(bound, Bound):
        raise InvalidParameterError(
            f"bound is of type {type(bound).__name__}.", fix="pass bound=dp.tables.Bound(rows=5)."
        )
    if not people:
        raise InvalidParameterError(
            "Each row is protected alone here, so it is one contribution already and has no bound.",
            fix='leave the bound out, or protect people with unit=dp.user("…").',
        )
    return bound


def root_above(square: int) -> Fraction:
    """The square root, exactly where it is whole, else rounded up to a part in 2**32 of one."""
    root = math.isqrt(square)
    if root * root == square:
        return Fraction(root)
    return Fraction(math.isqrt(square << 64) + 1, 1 << 32)


def people_weight(grid: int, groups: int, norm: int) -> int:
    """What somebody weighs in each of so many groups: together no more than ``grid`` in each of the default number.

    In the L1 norm or in the L2 norm, for which the noise is. Somebody in n groups, more than ``groups``, weighs
    w·groups/n in each of them, which is as much in L1 norm and less in L2 norm.

    >>> people_weight(100, 20, 1), people_weight(100, 20, 2)
    (25, 50)
    """
    return grid * DEFAULT_ROWS // groups if norm == 1 else math.isqrt(grid**2 * DEFAULT_ROWS // groups)


def _rows(number: int) -> str:
    return "row" if number == 1 else "rows"


def naming(opened: Source, name: str) -> Source:
    """The source with a column that can name the person.

    Guarantee:
        No two different values of the column in the source are one value other than NULL in the relation. What one
        person contributes is bounded for each value of the relation; if two people shared one, adding the second
        could push the first out of the bound, and the answer would move by twice the sensitivity. A person whose
        value has no counterpart is NULL: nobody, and in no answer.

        Whole numbers, text, dates, booleans and moments in microseconds keep their values, and may be declared to be
        text. Text declared to be integers is one only as an integer is written: "1", and neither "01" nor "1.4".
        Anything else is refused by its type, whatever is in it.
    Assumes:
        pandas and polars columns of Python objects name people by their text: 1 and "1" are the same person.
    """
    column = opened.schema.usable(name)
    own, kind = opened.own.usable(name).kind, column.kind
    if not kind.countable:
        raise WrongKindError(
            f"{name!r:.60} is of kind {kind}, which cannot name a person exactly.", fix="use a whole number or text."
        )
    if not own.countable or _rounded(opened, name):
        raise WrongKindError(
            f"{name!r:.60} holds values that differ by less than {kind} can tell, so two people could become one.",
            fix="name people by whole numbers or text: store the column as such (in pandas, as Int64 or string).",
        )
    if (own, kind) == (Kind.TEXT, Kind.INTEGER):
        return replace(opened, relation=_as_written(opened, name))
    if kind not in {own, Kind.TEXT}:
        raise WrongKindError(
            f"{name!r:.60} holds {own} and was declared {kind}, which could make one person of two.",
            fix=f"leave out what is declared about it, so that people are named by {own}, or declare it as text.",
        )
    return opened


def _rounded(opened: Source, name: str) -> bool:
    """Whether the column is of a type that is read coarser than it is stored, here or on the way into the engine."""
    stored = opened.origin.stored().get(name)
    if stored is None:
        return name in opened.engine.finer(opened.raw)
    kind = stored.value_type if pa.types.is_dictionary(stored) else stored
    # Days that are stored in milliseconds, and nanoseconds, which DuckDB drops itself from old Parquet files.
    return bool(pa.types.is_date64(kind) or (pa.types.is_timestamp(kind) and kind.unit == "ns"))


def _as_written(opened: Source, name: str) -> exp.Select:
    """The rows with an integer where the text is the one way to write it, and NULL elsewhere."""
    kinds = {key: Kind(kind) for key, kind in opened.origin.types.items()} | {name: Kind.TEXT}
    texts = opened.engine.canonical(opened.raw, kinds)
    text = column(name)
    whole = exp.TryCast(this=text, to=exp.DataType.build("BIGINT"))
    same = exp.EQ(this=exp.Cast(this=whole.copy(), to=exp.DataType.build("TEXT")), expression=text.copy())
    number = exp.Case(ifs=[exp.If(this=same, true=whole)])
    columns = [named(number if key == name else column(key), key) for key in opened.schema.names]
    select = exp.select(*columns).from_(sub(texts, "t"))
    return without(select, opened.origin.missing, opened.schema)

"""How much one person may contribute to a question, and what follows from it.

How many rows one person should count with, found privately: the bound with the least expected error.

A bound of R rows adds noise in proportion to R and takes away the rows beyond it. Which is worse depends on how many
rows people have. That is counted first, for a small share of the budget: one person is in one bucket of the histogram,
so its sensitivity is one, whatever they contribute. The bound is then chosen from the noisy histogram, which is free.

What one person weighs at most is fixed before: with R rows each of them weighs 1/R of it. So the noise, and with it
what is charged, does not depend on R.

Reference: Amin, Kulesza, Munoz Medina, Vassilvitskii (2019), Bounding user contributions: a bias-variance trade-off in
differential privacy, for the trade-off.
"""

import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from defocus.engines.schema import Kind
from defocus.engines.sources import Source, without
from defocus.engines.syntax import column, named, sub
from defocus.errors import InvalidParameterError, WrongKindError, count

__all__ = [
    "BY",
    "DEFAULT_ROWS",
    "EDGES",
    "FIND",
    "Bound",
    "FoundBound",
    "best_bound",
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
    from a private histogram of how many rows people have; see :mod:`defocus.tables.contribution`.

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

    def __post_init__(self) -> None:
        for name in ("rows", "groups", "per_group"):
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
            return cls(rows=rows, groups=groups, per_group=per_group, by=by)
        if rows is None or isinstance(rows, str):
            return cls(groups=groups, per_group=per_group, by=by, find=True)
        return cls(rows=rows, groups=groups, per_group=per_group, by=by)

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


EDGES = tuple(sorted({round(2 ** (j / 2)) for j in range(41)} | {3, 5, 7}))
"""Numbers of rows: bucket i holds people with more than EDGES[i-1] and at most EDGES[i] rows; the last, all others."""


_ONE_SIDED = 1.645
"""Below how many standard deviations noise stays with 95 % probability: of one Laplace noise 1.63, of many 1.645."""
_NEARBY = 2.0
"""How many standard deviations of noise tell that people with a few more rows are there."""
_SPREAD = 0.25
"""What values are taken to vary by, in units of their range."""
_RELATED = 0.25
"""How far values are taken to depend on how many rows a person has: in units of their spread."""


@final
@dataclass(frozen=True, slots=True)
class FoundBound:
    """A number of rows that was found privately, and what is known about those who have more."""

    rows: int
    beyond: float
    """About which part of all rows lies beyond it."""
    people: int
    """How many people have more, at most, with 95 % probability."""
    weight: float
    """How many people with so many rows weigh as much as all people do."""


def best_bound(
    people: npt.NDArray[np.int64],
    *,
    scale: float,
    groups: int,
    noise: float,
    counts: bool,
    quotients: bool,
    norm: int = 1,
) -> FoundBound:
    r"""The number of rows with the least expected error, from a noisy histogram of people by their number of rows.

    Everything is relative to the size of a group. Noise in n cells errs by :math:`\sqrt n\,\sigma R`; a count has
    about two of them, a quotient about half of one. Counts and sums also err by the rows taken away, which no interval
    tells, so that is weighted twice. A quotient such as a mean loses no rows, but weighs them unequally: with a spread
    of a quarter of its range it errs by a quarter of :math:`\sqrt{\sum w^2/(\sum w)^2 - 1/n}`, and by what people with
    many rows differ from others.

    Sums of neighbouring buckets tell where people end: one bucket that holds few of them may be noise, and four that
    do are not. Beyond the last of these nobody is seen, and for
    counts the next two buckets are taken to hold as many as noise may well hide.

    Args:
        people: noisy numbers of people, by :data:`EDGES`.
        scale: the scale of the Laplace noise on them.
        groups: among how many groups the rows are spread.
        noise: the standard deviation of one cell, for a person who weighs one.
        counts: whether numbers of rows, sums or histograms are asked.
        quotients: whether means or other quotients are asked.
        norm: 2 where noise grows with the root of the bound: each of what is counted is in a cell of its own, and the
            noise is for the L2 norm.

    >>> people = np.zeros(len(EDGES), np.int64)
    >>> people[EDGES.index(2)], people[EDGES.index(64)] = 100_000, 10_000
    >>> found = best_bound(people, scale=20, groups=10, noise=1.4, counts=True, quotients=False)
    >>> found.rows, found.beyond, found.people
    (91, 0.0, 242)
    >>> best_bound(people // 200, scale=20, groups=10, noise=1.4, counts=True, quotients=False).rows
    4
    """
    rows = np.array([(low + 1 + high) / 2 for low, high in itertools.pairwise((0, *EDGES))])  # in the middle of each
    numbers, end = _people(people, scale)
    unseen = np.zeros(len(EDGES))
    unseen[end : end + 2] = 2 * scale
    total = max(1.0, float((numbers * rows).sum()))
    errors, beyond, full = [], [], []
    for bound in EDGES:
        weights = np.minimum(1.0, bound / rows)
        kept = max(1.0, float((numbers * rows * weights).sum()))
        lost = max(0.0, 1 - kept / total)
        spread = noise * bound ** (1 / norm) * groups / kept
        error = 0.0
        if counts:
            missed = lost + float((unseen * rows * (1 - weights)).sum()) / total
            error += math.hypot(math.sqrt(2) * spread, 2 * missed)
        if quotients:
            uneven = float((numbers * rows * weights**2).sum()) / kept**2 - 1 / total
            apart = _SPREAD * math.hypot(math.sqrt(max(0.0, uneven) * groups), _RELATED * lost)
            error += math.hypot(math.sqrt(0.5) * spread, apart)
        errors.append(error)
        beyond.append(lost)
        full.append(kept / bound)
    best = int(np.argmin(errors))
    above = people[best + 1 :]
    most = float(above.sum()) + _ONE_SIDED * scale * math.sqrt(2 * len(above))
    return FoundBound(EDGES[best], beyond[best], max(0, math.ceil(most)), full[best])


def _people(noisy: npt.NDArray[np.int64], scale: float) -> tuple[npt.NDArray[np.float64], int]:
    """The numbers of people behind a noisy histogram, and the bucket where they end.

    A bucket, or two, four or eight of them in a row, hold people if noise alone would hardly ever give so many: with
    probability 1/400 for all single ones together, and 4.5 standard deviations for the others.
    """
    end = 0
    for length in (1, 2, 4, 8):
        limit = scale * (math.log(200 * len(EDGES)) if length == 1 else 4.5 * math.sqrt(2 * length))
        for start in range(end, len(EDGES) - length + 1):
            if noisy[start : start + length].sum() > limit:
                end = start + length
    for length in (1, 2, 4):  # next to them, less is enough: a bucket too many costs little
        if noisy[end : end + length].sum() > _NEARBY * scale * math.sqrt(2 * length):
            end = min(end + length, len(EDGES))
    tails = noisy[:end][::-1].astype(np.float64).cumsum()  # how many have more rows than a bucket begins with
    above = np.maximum.accumulate(np.maximum(tails, 0.0))
    numbers = np.zeros(len(EDGES))
    numbers[:end] = np.diff(above, prepend=0.0)[::-1]
    return numbers, end


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

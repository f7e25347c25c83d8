"""Tests and survival curves as questions: what is measured of each group, and how it is read. No row is looked at."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from defocus.answers.columns import checked_names
from defocus.engines.schema import Kind
from defocus.errors import InvalidParameterError, NotDeclaredError, WrongKindError, in_range, positive, probability
from defocus.privacy.units import Unit
from defocus.tables.aggregates import Aggregate, histogram
from defocus.tables.contribution import Bound
from defocus.tables.hypothesis_tests import ChiSquared, MeanTest, RankTest
from defocus.tables.keys import Keys
from defocus.tables.reading import Reading
from defocus.tables.rows import Rows
from defocus.tables.splits import Argument, checked_text
from defocus.tables.statistics import Statistic, count
from defocus.tables.survival import Survival

__all__ = ["Asked", "chi_squared", "independent", "mean_test", "rank_test", "survival"]

_CELLS = 400
"""Counts of a test, each of which is simulated thousands of times."""
Asked: TypeAlias = tuple[Mapping[str, Aggregate], Reading]
"""What is measured of each group, and how that is read."""


def independent(bound: Bound | None, person: str | None, unit: Unit) -> Bound | None:
    """The bound by which one person weighs one row: tests and curves count on rows that are independent."""
    if person is None:
        if (unit.per_person or 1) > 1:
            raise NotDeclaredError(
                "One person may own several of these rows, which are then not independent.",
                fix='name the column of the person when the table is opened: unit=dp.user("…").',
            )
        return bound
    given = Bound(rows=1) if bound is None else bound
    if given.find or given.total != 1:
        raise InvalidParameterError(
            f"One {person} counts with {given}, and rows of one {person} are not independent.",
            fix="write bound(rows=1), by which all rows of a person weigh one together.",
        )
    return given


def mean_test(rows: Rows, argument: Argument, by: str | None, groups: Keys | None, *, mean: Any, level: Any) -> Asked:
    """A t test of one or two groups."""
    if (by is None) == (mean is None):
        raise InvalidParameterError(
            "A t test compares two groups, or one mean with a value.", fix="pass by= or mean=, and not both."
        )
    known = _bounded(rows, argument)
    if mean is not None:
        in_range("mean", mean, known.bottom, known.bottom + known.width)
    sums = {"n": "count", "s": "sum", "r": "squares"}
    measured = {name: Statistic(operation, (known,)) for name, operation in sums.items()}
    compared = () if by is None else _two(by, groups)
    return measured, MeanTest(known.text, compared, by, 0.0 if mean is None else float(mean), _level(level))


def chi_squared(
    names: Sequence[str], domains: Sequence[Keys | None], expected: Mapping[Any, Any] | None, level: Any
) -> Asked:
    """A chi-squared test of independence or of given shares."""
    if len(names) > 1 and expected is not None:
        raise InvalidParameterError(
            "Shares are expected of one column.", fix="leave out expected= to test whether the two are independent."
        )
    values = []
    for name, domain in zip(names, domains, strict=True):
        if domain is None or domain.number < 2:
            raise NotDeclaredError(
                f"Nobody declared two or more values of {name!r:.60}.", fix=f'declare them: declare({name}=["A", "B"]).'
            )
        values.append(domain.table.column(0).to_pylist())
    shares = None
    if len(names) == 1:
        given = dict.fromkeys(values[0], 1) if expected is None else dict(expected)
        if set(given) != set(values[0]):
            raise InvalidParameterError(
                f"The shares are not those of the declared values of {names[0]!r:.60}.", fix="give one for each value."
            )
        total = sum(float(positive("a share", share)) for share in given.values())
        shares = tuple((value, float(given[value]) / total) for value in values[0])
    shape = len(values[0]), len(values[1]) if len(values) > 1 else 1
    if math.prod(shape) > _CELLS:
        raise InvalidParameterError(
            f"These are {math.prod(shape)} combinations, and a test takes at most {_CELLS}.",
            fix="derive coarser values, or name fewer.",
        )
    return {"count": count()}, ChiSquared(tuple(names), shape, shares, _level(level))


def rank_test(rows: Rows, argument: Argument, by: str, groups: Keys | None, *, steps: Any, level: Any) -> Asked:
    """A rank test of two groups."""
    known = _bounded(rows, argument)
    edges = np.linspace(known.bottom, known.bottom + known.width, int(in_range("steps", steps, 2, 200)) + 1)
    measured = {"h": histogram(known.text, edges.tolist())}
    return measured, RankTest(known.text, _two(by, groups), by, _level(level))


def survival(rows: Rows, time: str, event: str, horizon: Any, *, steps: Any, by: str | None) -> Asked:
    """A survival curve on equal steps up to a horizon; what comes later is known to have survived it."""
    number = int(in_range("steps", steps, 2, 1000))
    last = float(positive("horizon", horizon))
    kind = rows.schema.usable(event).kind
    if kind is not Kind.BOOLEAN:
        raise WrongKindError(
            f"{event!r:.60} is of kind {kind}, and says of no row whether the event happened.",
            fix=f'derive a truth value: derive(happened="{event:.60} = 1").',
        )
    checked_names([*([] if by is None else [by]), "time"], ["survival", "sampling"])
    edges = [float(f"{last * i / number:.9g}") for i in range(number + 2)]
    measured = {"h": histogram(time, edges)}
    return measured, Survival(checked_text(time), event, by, tuple(edges[:-1]))


def _bounded(rows: Rows, argument: Argument) -> Argument:
    if argument.find:
        raise InvalidParameterError("A test needs bounds that are known.", fix="give low and high, or declare them.")
    return argument.declared(rows)


def _two(by: str, groups: Keys | None) -> tuple[Any, ...]:
    """The two groups that are compared."""
    if groups is None or groups.number != 2:
        raise NotDeclaredError(
            f"A test compares two groups, and {by!r:.60} has not two declared ones.", fix='name them: keys=["A", "B"].'
        )
    return tuple(groups.table.column(0).to_pylist())


def _level(level: Any) -> float:
    return float(probability("level", level, zero=False, one=False))

"""What is charged is what is sampled, and stays within what was asked for."""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables.attacks.exact import table

from defocus.errors import DefocusError, InvalidParameterError, NotDeclaredError
from defocus.privacy import account
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Composed, DiscreteLaplace, Event, Exponential, Pure, compose
from defocus.tables import (
    correlation,
    count,
    count_distinct,
    count_units,
    histogram,
    mean,
    quantile,
    quantiles,
    ratio,
    sum,  # noqa: A004  # as in questions
    variance,
)
from defocus.tables.aggregates import Aggregate
from defocus.tables.planner import GRID, Plan

MANY: dict[str, Aggregate] = {
    "n": count(),
    "xs": count("x"),
    "m": mean("x", 0, 10),
    "v": variance("z", 0, 1),
    "r": correlation("x", "z", x_bounds=(0, 1), y_bounds=(0, 1)),
    "q": ratio("x", "z", numerator_bounds=(0, 1), denominator_bounds=(0, 1)),
    "people": count_units(),
    "values": count_distinct("s", at_most=3),
    "median": quantile("x", 0.5, 0, 1),
    "quartiles": quantiles("z", [0.25, 0.5, 0.75], 0, 1),
    "deciles": quantiles("z", [i / 10 for i in range(1, 10)], 0, 1),
    "h": histogram("x", [0, 1, 2]),
    "found": mean("x", bounds="find"),
    "sum_found": sum("z", bounds="find"),
    "found_median": quantile("y", 0.5, bounds="find"),
}
BOUNDS: list[dict[str, Any]] = [{"rows": 5}, {"groups": 3, "per_group": 2}, {"rows": "find"}, {"rows": 40}]


def planned(
    names: list[str], bound: dict[str, Any], *, replace: bool = False, private: bool = False, **budget: Any
) -> Plan:
    groups = table([], replace=replace).bound(**bound).group_by("k", keys=None if private else ["a", "b"])
    return groups.agg(**{name: MANY[name] for name in names}).plan(**budget)


def parts(event: Event) -> Iterator[tuple[Event, int]]:
    if isinstance(event, Composed):
        for part, times in event.parts:
            for inner, more in parts(part):
                yield inner, times * more
    else:
        yield event, 1


def pure(event: Event) -> Fraction:
    """What events without a delta cost together, by adding up."""
    total = Fraction(0)
    for part, times in parts(event):
        if isinstance(part, DiscreteLaplace):
            total += times * Fraction(part.sensitivity) / Fraction(part.scale)
        else:
            assert isinstance(part, Pure | Exponential)
            total += times * Fraction(part.epsilon)
    return total


def spent(plan: Plan, epsilon: float | Fraction) -> bool:
    """Whether all of it is spent, but for scales that are rounded up to whole steps of a fine grid."""
    return Fraction(epsilon) * (1 - Fraction(1, 10**5)) <= pure(plan.event) <= Fraction(epsilon)


def within(event: Event, budget: Budget) -> bool:
    """Adding up is exact where a delta is spent directly, which leaves no room for the rounding of a finer account."""
    return any(budget.covers(account(event, method=method)) for method in ("pld", "basic"))


some = st.lists(st.sampled_from(sorted(MANY)), min_size=1, max_size=6, unique=True)


@pytest.mark.slow
@settings(max_examples=25)
@given(some, st.sampled_from(BOUNDS), st.sampled_from([1, 0.1, Fraction(1, 3), 7.5]), st.booleans())
def test_a_pure_plan_costs_what_was_asked_and_no_more(
    names: list[str], bound: dict[str, Any], epsilon: float | Fraction, replace: bool
) -> None:
    plan = planned(names, bound, epsilon=epsilon, replace=replace)
    assert spent(plan, epsilon)


@settings(max_examples=6)
@given(some, st.sampled_from(BOUNDS), st.sampled_from([1, 0.3]), st.booleans(), st.booleans())
def test_a_plan_with_a_delta_stays_within_both(
    names: list[str], bound: dict[str, Any], epsilon: float, replace: bool, private: bool
) -> None:
    plan = planned(names, bound, epsilon=epsilon, delta=1e-6, replace=replace, private=private)
    assert within(plan.event, Budget(epsilon, 1e-6))


@pytest.mark.long
@settings(max_examples=30)
@given(some, st.sampled_from(BOUNDS), st.sampled_from([1, 0.3, 4]), st.booleans(), st.booleans())
def test_many_more_plans_with_a_delta_stay_within_both(
    names: list[str], bound: dict[str, Any], epsilon: float, replace: bool, private: bool
) -> None:
    plan = planned(names, bound, epsilon=epsilon, delta=1e-6, replace=replace, private=private)
    assert within(plan.event, Budget(epsilon, 1e-6))


def test_many_quantiles_beside_gaussian_noise_stay_within_both() -> None:
    """A tree adds Laplace noise, which costs more than a choice of the same epsilon."""
    plan = planned(["deciles", "m", "v", "r", "q", "xs", "people", "h"], {"rows": 5}, epsilon=1, delta=1e-6)
    assert Budget(1, 1e-6).covers(account(plan.event))


def test_the_event_is_that_of_everything_that_is_sampled() -> None:
    plan = planned(list(MANY), {"rows": 5}, epsilon=1, delta=1e-6, private=True)
    sampled = [*plan.splits, *plan.others.values(), *plan.findings.values()]
    assert plan.selection is not None
    assert plan.event == compose([plan.selection.event, *(each.event for each in sampled)])
    assert len(plan.splits) == len(plan.arrangement.splits)
    assert set(plan.findings) == {"x", "z", "y"}


def test_a_share_moves_noise_from_one_column_to_another() -> None:
    query = table([]).agg(n=count_units(), m=mean("x", 0, 1))
    even, more = query.plan(epsilon=1), query.share(n=8).plan(epsilon=1)
    assert spent(even, 1)
    assert spent(more, 1)
    assert even.others["n"].event != more.others["n"].event
    assert more.splits[0].variance > even.splits[0].variance
    with pytest.raises(InvalidParameterError, match="no column 'k'"):
        query.share(k=2).plan(epsilon=1)
    for wrong in (0, -1, math.nan, math.inf, "2", True):
        with pytest.raises(DefocusError):
            query.share(n=wrong).plan(epsilon=1)  # type: ignore[arg-type]  # refused


def test_private_keys_need_a_delta() -> None:
    with pytest.raises(NotDeclaredError, match="only be found with a delta"):
        planned(["n"], {"rows": 5}, epsilon=1, private=True)


@pytest.mark.parametrize("wrong", [0, -1, math.nan, math.inf, "1", True, None, 10**400])
def test_wrong_budgets_are_refused_before_anything_is_charged(wrong: Any) -> None:
    with pytest.raises(DefocusError):
        planned(["n"], {"rows": 5}, epsilon=wrong)
    if wrong is not None and wrong != 0:
        with pytest.raises(DefocusError):
            planned(["n"], {"rows": 5}, epsilon=1, delta=wrong)


def test_noise_that_does_not_fit_is_refused_or_put_on_a_coarser_grid() -> None:
    assert planned(["n"], {"rows": 5}, epsilon=1).grid == GRID
    assert planned(["n"], {"rows": 100_000}, epsilon=1).grid < GRID
    with pytest.raises(DefocusError, match="64 bits"):
        planned(["n"], {"rows": 1 << 20}, epsilon=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("bound", [{"rows": 100}, {"rows": 1000}, {"groups": 50, "per_group": 20}], ids=str)
def test_many_columns_under_wide_bounds_can_still_be_planned(bound: dict[str, Any]) -> None:
    plan = planned(list(MANY), bound, epsilon=0.01, replace=True)
    assert spent(plan, 0.01)


def test_the_default_noise_of_one_count_is_as_small_as_it_can_be() -> None:
    plan = table([]).bound(rows=1).agg(n=count()).plan(epsilon=1)
    assert plan.event == DiscreteLaplace(GRID, GRID)

"""From however deep a place a question is asked, it is answered or costs nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.tables.test_query import opened

import defocus as dp
from defocus.errors import InvalidParameterError
from defocus.tables.planner import plan_measurements
from defocus.tables.table import Table

T = TypeVar("T")
DEEP = "(" * 12 + "x" + " + 1)" * 12
EVERYTHING: dict[str, Any] = {
    "n": dp.count(),
    "people": dp.count_units(),
    "m": dp.mean(DEEP, 0, 10),
    "median": dp.quantile(DEEP, 0.5, 0, 10),
    "h": dp.histogram("x", [0, 5, 10]),
    "d": dp.count_distinct("k", at_most=2),
    "found": dp.mean("x", bounds="find"),
}


def nested(calls: int, work: Callable[[], T]) -> T:
    return nested(calls - 1, work) if calls else work()


def layered(table: Table) -> Table:
    for i in range(40):
        table = table.where(f"x < {100 + i}")
    return table


def public(table: Table) -> Any:
    return table.bound(rows=2).group_by("k", keys=[0, 1]).agg(n=dp.count())


def private(table: Table) -> Any:
    return layered(table).bound(groups=2, per_group=1, by="sampling").group_by("k").agg(**EVERYTHING)


def weighed(table: Table) -> Any:
    return layered(table).bound(rows="find").group_by("k", keys=[0, 1]).agg(**EVERYTHING)


def cube(table: Table) -> Any:
    return layered(table).declare(k=[0, 1, 2, 3], s=["0", "1"]).cube("k", "s", ways=2)


@pytest.mark.parametrize(
    "ask", [public, *(pytest.param(each, marks=pytest.mark.long) for each in (private, weighed, cube))]
)
def test_a_question_from_any_depth_is_answered_or_refused_before_the_charge(
    ask: Callable[[Table], Any], tmp_path: Path
) -> None:
    with opened(tmp_path, budget=dp.Budget(10**6, 1e-3)) as table:
        query = ask(table)

        def charged_at(calls: int) -> bool:
            before = len(table.ledger)
            try:
                nested(calls, lambda: query.release(epsilon=1, delta=1e-6))
            except InvalidParameterError as refused:
                assert "nothing was charged" in str(refused)  # noqa: PT017 # either outcome is right
                assert len(table.ledger) == before
                return False
            return True

        low, high = 0, 800
        assert charged_at(low)
        assert not charged_at(high)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if charged_at(middle) else (low, middle)
        assert low >= 40
        assert not any(charged_at(calls) for calls in range(high, high + 300, 60))


def test_the_expressions_of_a_question_are_those_of_its_aggregates(tmp_path: Path) -> None:
    with opened(tmp_path, budget=dp.Budget(1)) as table:
        planned = plan_measurements(table.rows, {**EVERYTHING, "again": dp.sum("x", 0, 1)})
    assert planned.texts == [DEEP, "x", "k"]

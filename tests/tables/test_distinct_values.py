"""How many values a person brings is chosen by scores that one person moves by one, and what is charged is fixed."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import defocus as dp
from defocus.answers import Effect
from defocus.errors import InvalidParameterError
from defocus.noise.testing import seeded
from defocus.privacy import account
from defocus.tables import Table
from defocus.tables.distinct_values import _NUMBERS, _PERSON, Distinct, FoundValues, _losses
from defocus.tables.measurement import Measuring
from defocus.tables.weights import RowSampler, published

Opened = Callable[..., Table]


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    made = 0

    def make(brought: list[list[int]], **unit: Any) -> Table:
        nonlocal made
        made += 1
        rows = [(who, value) for who, values in enumerate(brought) for value in values]
        who, v = zip(*rows, strict=True)
        table = pa.table({"who": who, "v": v, "g": [value % 3 for value in v]})
        unit = {"unit": dp.user("who", **unit), "budget": dp.Budget(1000, 1e-3)}
        return dp.open(table, ledger=tmp_path / f"{made}.ledger", name="t", **unit)

    return make


def new(table: Table, by: str | None = None) -> list[int]:
    grouped = table if by is None else table.group_by(by, keys=[0, 1, 2])
    query = grouped.agg(d=dp.count_distinct("v"))
    assert query.keys is not None
    with published(query.rows, query.by, query.keys, query.bound) as groups:
        measuring = Measuring(groups, 1, RowSampler("k"))
        found = measuring.exact(measuring.new_values_sql("v", _NUMBERS), len(_NUMBERS)).sum(axis=0)
        for k, total in zip(_NUMBERS, found.cumsum(), strict=True):
            assert measuring.exact(measuring.distinct_sql("v", k), 1).sum() == total
    return [int(total) for total in found.cumsum()]


@pytest.mark.slow
@pytest.mark.parametrize("by", [None, "g"])
def test_a_person_moves_each_number_of_values_by_at_most_what_one_brings(opened: Opened, by: str | None) -> None:
    people = [[1, 2, 3], [3, 4, 5, 6, 7], [8], [1, 1, 1], list(range(10, 40))]
    everybody = new(opened(people), by)
    assert everybody[-1] == 38
    for left_out in range(len(people)):
        others = new(opened([values if i != left_out else [] for i, values in enumerate(people)]), by)
        assert all(0 <= a - b <= k for k, a, b in zip(_NUMBERS, everybody, others, strict=True))


@given(st.lists(st.integers(0, 10**6), min_size=13, max_size=13), st.lists(st.floats(-1, 1), min_size=13, max_size=13))
def test_a_score_moves_by_at_most_one(totals: list[int], moves: list[float]) -> None:
    each = Fraction(7, 3)
    before = [Fraction(total) - each * k for k, total in zip(_NUMBERS, totals, strict=True)]
    after = [score + Fraction(move) * k for k, score, move in zip(_NUMBERS, before, moves, strict=True)]
    assert all(abs(a - b) <= 1 for a, b in zip(_losses(before), _losses(after), strict=True))
    assert min(_losses(before)) == 0


def test_what_is_charged_is_what_was_asked_for_and_every_value_weighs_a_part_of_it(opened: Opened) -> None:
    query = opened([[1, 2]] * 5).agg(d=dp.count_distinct("v"), n=dp.count())
    planned = query.plan(epsilon=Fraction(1, 2))
    assert account(planned.event, method="basic").epsilon(0) == pytest.approx(0.5, abs=1e-6)
    how = planned.others["d"]
    assert isinstance(how, FoundValues)
    assert how.choice.epsilon == Fraction(1, 12)
    assert how.noise.mechanism is not None
    assert how.noise.mechanism.sensitivity == _PERSON
    assert not how.choice.monotone
    assert all(_PERSON // k * k <= _PERSON for k in _NUMBERS)
    assert "permute-and-flip" in str(planned)
    purposes = [each.purpose for each in planned.statements]
    assert purposes[-2:] == ["find how many values people bring to d", "compute d"]


@pytest.mark.slow
def test_many_values_of_each_are_counted_and_few_need_no_more_noise(opened: Opened) -> None:
    own = opened([[100 * who + i for i in range(8)] for who in range(1500)])
    answer = own.agg(d=dp.count_distinct("v")).release(epsilon=2, bits=seeded(3))
    assert abs(answer["d"].values[0] - 12_000) < 500
    (said,) = [rule for rule in answer.rules if rule.effect is Effect.OPEN]
    assert said.startswith("one who brings at most 8 different values of v, a number that was found privately")
    assert "16 of each would show at most" in said
    one = own.agg(d=dp.count_distinct("v", at_most=1)).release(epsilon=2, bits=seeded(3))
    assert one["d"].values[0] < 1600
    assert "one who brings at most 1 different value of v, chosen at random, so rare values may be missing" in str(one)
    shared = opened([list(range(8))] * 1500)
    errors = [
        shared.agg(d=dp.count_distinct("v")).release(epsilon=2, bits=seeded(i))["d"].values[0] - 8 for i in range(20)
    ]
    assert np.median(np.abs(errors)) < 4


def test_rows_of_their_own_bring_one_value(tmp_path: Path) -> None:
    data = pa.table({"v": [1, 2, 3]})
    with dp.open(data, unit=dp.rows(), budget=dp.Budget(9), ledger=tmp_path / "r", name="r") as table:
        ((_, aggregate),) = table.agg(d=dp.count_distinct("v")).arrangement.apart
        assert aggregate == Distinct("v", 1)


@pytest.mark.parametrize("at_most", [0, -1, 1.5, "some", True])
def test_what_is_no_number_of_values_is_refused(at_most: Any) -> None:
    with pytest.raises(InvalidParameterError) as caught:
        dp.count_distinct("v", at_most=at_most)
    assert caught.value.fix
    assert dp.count_distinct("v", at_most="find") == dp.count_distinct("v") == Distinct("v", None)

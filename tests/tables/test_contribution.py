"""Bounds say what one person weighs at most, exactly."""

import itertools
import math
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
from defocus.errors import DefocusError, InvalidParameterError
from defocus.mechanisms import Gaussian
from defocus.noise.testing import seeded
from defocus.privacy import account
from defocus.tables import Table
from defocus.tables.contribution import Bound, fitting, people_weight, root_above
from defocus.tables.found_bound import EDGES, best_bound
from defocus.tables.measurement import Measuring
from defocus.tables.noise import CellNoise
from defocus.tables.weights import RowSampler, published

limit = st.integers(1, 6)


@given(limit, st.none() | limit, st.none() | limit)
def test_the_norms_are_the_largest_that_whole_rows_reach(rows: int, groups: int | None, per_group: int | None) -> None:
    bound = Bound(rows=rows, groups=groups, per_group=per_group)
    most = per_group or rows
    ways = [way for way in itertools.product(range(most + 1), repeat=4) if sum(way) <= bound.total]
    squares = max(sum(n * n for n in way) for way in ways)
    if bound.total <= 4 * most:
        assert bound.l2() ** 2 >= squares
        assert float(bound.l2()) ** 2 == pytest.approx(squares)
    assert max(map(sum, ways)) <= bound.total


@given(st.integers(0, 10**30))
def test_roots_are_rounded_up_by_less_than_a_part_in_a_billion(square: int) -> None:
    root = root_above(square)
    assert root * root >= square
    assert (root - Fraction(1, 2**31)) ** 2 <= square or root < Fraction(1, 2**31)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "3", None, float("nan"), 2**20 + 1, 10**30])
def test_wrong_numbers_of_rows_are_refused(wrong: Any) -> None:
    with pytest.raises(DefocusError):
        Bound(rows=wrong)


def test_a_bound_must_limit_what_one_person_contributes() -> None:
    unlimited: list[dict[str, Any]] = [{"groups": 2}, {"per_group": 2}, {}]
    for limits in unlimited:
        with pytest.raises(InvalidParameterError, match="does not limit"):
            Bound(**limits)
    with pytest.raises(InvalidParameterError, match="by weights or by sampling"):
        Bound(rows=1, by="magic")
    with pytest.raises(InvalidParameterError, match="to be found"):
        Bound(rows=3, find=True)


def test_people_are_counted_in_as_many_groups_as_they_may_have_rows_in() -> None:
    assert Bound(rows=5).people_in == 5
    assert Bound(rows=5, groups=2).people_in == 2
    assert str(Bound(rows=1, groups=1)) == "1 row and 1 group"


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ({}, Bound(find=True)),
        ({"rows": 2}, Bound(rows=2)),
        ({"groups": 3}, Bound(find=True, groups=3)),
        ({"by": "sampling"}, Bound(rows=5, by="sampling")),
        ({"groups": 9, "by": "sampling"}, Bound(rows=9, groups=9, by="sampling")),
        ({"per_group": 7}, Bound(rows=7, per_group=7)),
        ({"groups": 3, "per_group": 2}, Bound(groups=3, per_group=2)),
        ({"rows": "find", "groups": 2}, Bound(find=True, groups=2)),
    ],
)
def test_rows_are_filled_in_where_they_are_needed(asked: dict[str, Any], meant: Bound) -> None:
    assert Bound.of(**asked) == meant


@pytest.mark.parametrize("value", [0, -1, 1.5, True, math.nan, math.inf, "5", 2**70, [1]])
@pytest.mark.parametrize("name", ["rows", "groups", "per_group"])
def test_what_is_no_number_of_rows_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidParameterError) as caught:
        Bound.of(**{name: value})
    assert caught.value.fix


def test_a_bound_needs_people() -> None:
    assert fitting(None, people=False) is None
    assert fitting(Bound(rows=2), people=True) == Bound(rows=2)
    with pytest.raises(InvalidParameterError, match="protected alone"):
        fitting(Bound(rows=2), people=False)
    with pytest.raises(InvalidParameterError, match=r"Bound\(rows=5\)"):
        fitting(5, people=True)


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., Table]:
    def make(people: list[int], **unit: Any) -> Table:
        """A table in which person i has people[i] rows, spread over ten groups."""
        who = np.repeat(np.arange(len(people)), people)
        table = pa.table({"who": who, "g": np.arange(len(who)) % 10, "v": np.linspace(0, 1, len(who))})
        number = len(list(tmp_path.iterdir()))
        return dp.open(
            table,
            unit=dp.user("who", **unit),
            budget=dp.Budget(1000, 1e-5),
            ledger=tmp_path / f"{number}.ledger",
            name="t",
        )

    return make


def test_each_person_is_in_one_bucket_by_their_number_of_rows(opened: Callable[..., Table]) -> None:
    table = opened([1, 2, 2, 3, 5, 6, 40])
    question = table.bound(rows="find").group_by("g", keys=list(range(10))).agg(n=dp.count())
    assert question.keys is not None
    with published(question.rows, question.by, question.keys, question.bound) as groups:
        found = Measuring(groups, 1, RowSampler("k")).contributions(EDGES)
    wanted = dict.fromkeys(EDGES, 0)
    for rows in (1, 2, 2, 3, 5, 6, 40):
        wanted[next(edge for edge in EDGES if rows <= edge)] += 1
    assert found.tolist() == list(wanted.values())


def test_nobody_weighs_more_than_was_charged_whatever_bound_is_found(opened: Callable[..., Table]) -> None:
    """Also where people are counted, in as many groups as were planned and no more."""
    table = opened([200] * 3 + [1] * 5)
    keys = list(range(10))
    question = (
        table.bound(rows="find").group_by("g", keys=keys).agg(n=dp.count(), m=dp.mean("v", 0, 1), p=dp.count_units())
    )
    planned = question.plan(epsilon=1)
    one_person = opened([200]).bound(rows="find").group_by("g", keys=keys)
    for rows in EDGES[::4]:
        grid = planned.grid * 5 // rows
        bound = Bound(rows=rows, groups=5)
        asked = one_person.agg(n=dp.count(), m=dp.mean("v", 0, 1), p=dp.count_units())
        assert asked.keys is not None
        with published(asked.rows, asked.by, asked.keys, bound) as groups:
            cells = Measuring(groups, grid, RowSampler("k")).cells(planned.arrangement.splits)
            measuring = Measuring(groups, planned.people_grid, RowSampler("k"))
            people = measuring.exact(measuring.people_sql(), 1)
        assert sum(int(part.sum()) for part in cells) <= planned.splits[0].sensitivity.l1  # type: ignore[union-attr]
        assert int(people.sum()) <= planned.others["p"].mechanism.sensitivity  # type: ignore[attr-defined]


def test_people_are_counted_in_as_many_groups_as_they_are_in(opened: Callable[..., Table]) -> None:
    """Each is in ten groups, and would count as half a person in a default of five."""
    table = opened([300] * 400)
    question = table.bound(rows="find").group_by("g", keys=list(range(10))).agg(p=dp.count_units(), n=dp.count())
    answer = question.release(epsilon=50, bits=seeded(1))
    assert answer.rules[-1].startswith("one who counts with at most 362 rows, a bound that was found privately; ")
    assert answer["p"].values.sum() == pytest.approx(400 * 10, rel=0.02)
    five = table.bound(rows="find", groups=5).group_by("g", keys=list(range(10))).agg(p=dp.count_units())
    assert five.plan(epsilon=1).memberships is None
    assert five.release(epsilon=50, bits=seeded(1))["p"].values.sum() == pytest.approx(400 * 5, rel=0.02)


@pytest.mark.parametrize("delta", [None, 1e-2])
def test_nobody_weighs_more_than_was_charged_in_however_many_groups(
    opened: Callable[..., Table], delta: float | None
) -> None:
    keys = list(range(10))
    asked = opened([200]).group_by("g", keys=keys).agg(p=dp.count_units())
    planned = asked.plan(epsilon=1, delta=delta)
    noise = planned.others["p"]
    assert isinstance(noise, CellNoise)
    norm = 2 if isinstance(noise.mechanism, Gaussian) else 1
    assert (norm == 2) == (delta is not None)
    assert asked.keys is not None
    for most in (1, 2, 3, 5, 7, 8, 11, 16):
        grid = people_weight(planned.people_grid, most, norm)
        with published(asked.rows, asked.by, asked.keys, Bound(rows=3, groups=most)) as groups:
            measuring = Measuring(groups, grid, RowSampler("k"))
            people = [int(w) for w in measuring.exact(measuring.people_sql(), 1).ravel()]
        assert noise.mechanism is not None
        assert 0 < sum(w**norm for w in people) <= Fraction(noise.mechanism.sensitivity) ** norm


def test_the_share_for_the_histogram_is_part_of_what_is_charged(opened: Callable[..., Table]) -> None:
    question = opened([3] * 10).bound(rows="find").agg(n=dp.count())
    planned = question.plan(epsilon=Fraction(1, 2))
    assert account(planned.event, method="basic").epsilon(0) == pytest.approx(0.5, abs=1e-8)
    assert planned.contributions is not None
    assert planned.contributions.event.scale == Fraction(101, 20)  # type: ignore[attr-defined]  # 40/101 of 1/2
    many = opened([3] * 10).group_by("g", keys=list(range(50)))
    for asked, scale in ((many.agg(n=dp.count()), Fraction(15, 2)), (many.agg(m=dp.mean("v", 0, 1)), 15)):
        in_many = asked.plan(epsilon=Fraction(1, 2)).contributions
        assert in_many is not None
        assert in_many.event.scale == scale  # type: ignore[attr-defined]  # 4/15 of 1/2, and half of that
    replaced = opened([3] * 10, replace=True).bound(rows="find").agg(n=dp.count()).plan(epsilon=Fraction(1, 2))
    assert replaced.contributions is not None
    assert replaced.contributions.event.sensitivity == 2  # type: ignore[attr-defined]


def test_a_large_crowd_gets_a_large_bound_and_a_small_one_a_small_bound() -> None:
    people = np.zeros(len(EDGES), np.int64)
    people[EDGES.index(2)], people[EDGES.index(64)] = 50_000, 5_000
    given: dict[str, Any] = {"scale": 20.0, "groups": 10, "noise": 1.5}
    large = best_bound(people, counts=True, quotients=False, **given)
    small = best_bound(people // 100, counts=True, quotients=False, **given)
    assert small.rows < large.rows <= 91
    assert large.beyond < 0.01
    assert best_bound(people, counts=False, quotients=True, **given).rows <= large.rows


def test_buckets_of_noise_do_not_raise_the_bound() -> None:
    people = np.zeros(len(EDGES), np.int64)
    people[EDGES.index(2)] = 10_000
    noisy = people + np.random.default_rng(1).laplace(0, 20, len(EDGES)).astype(np.int64)
    for counts, most in ((True, 4), (False, 2)):
        given: dict[str, Any] = {"scale": 20.0, "groups": 10, "noise": 1.5, "counts": counts, "quotients": not counts}
        assert best_bound(noisy, **given).rows == best_bound(people, **given).rows <= most


def test_people_spread_over_many_buckets_are_seen_though_each_holds_few() -> None:
    """Seven buckets of 70 people each, where noise alone may give 135 in one of them."""
    people = np.zeros(len(EDGES), np.int64)
    people[EDGES.index(8) : EDGES.index(91) + 1] = 70
    noisy = people + np.random.default_rng(2).laplace(0, 20, len(EDGES)).astype(np.int64)
    found = best_bound(noisy, scale=20.0, groups=1, noise=10.0, counts=True, quotients=False)
    assert 91 <= found.rows <= 362


def test_where_only_people_are_counted_no_bound_on_rows_is_paid_for(opened: Callable[..., Table]) -> None:
    question = opened([3] * 10).group_by("g", keys=list(range(10))).agg(p=dp.count_units())
    assert question.plan(epsilon=1).contributions is None
    told = question.release(epsilon=1, bits=seeded(1)).rules
    said = [rule for rule in told if rule.effect is Effect.OPEN]
    assert len(said) == 1
    assert said[0].startswith("where people are counted, one who counts in at most ")


@pytest.mark.slow
def test_by_default_intervals_hold_where_a_few_people_have_most_rows(opened: Callable[..., Table]) -> None:
    """A bound of 5 rows would show a tenth of these rows, in an interval that never holds."""
    people = np.exp(np.random.default_rng(1).normal(3, 1.2, 1500)).astype(int).clip(1, 500)
    table, total = opened(people.tolist()), int(people.sum())
    answers = [table.agg(n=dp.count()).release(epsilon=1, bits=seeded(i)) for i in range(40)]
    held = sum(answer["n"].low[0] <= total <= answer["n"].high[0] for answer in answers)
    assert held >= 34
    assert np.median([abs(answer["n"].values[0] - total) for answer in answers]) < 0.03 * total


def test_an_empty_table_has_an_answer(opened: Callable[..., Table]) -> None:
    answer = opened([]).bound(rows="find").agg(n=dp.count(), m=dp.mean("v", 0, 1)).release(epsilon=1, bits=seeded(3))
    assert abs(answer["n"].values[0]) < 2**21


@pytest.mark.parametrize("wrong", [{"per_group": 2}, {"by": "sampling"}])
def test_what_is_to_be_found_cannot_be_given_as_well(opened: Callable[..., Table], wrong: dict[str, Any]) -> None:
    table = opened([1])
    with pytest.raises(InvalidParameterError, match="held by weights"):
        table.bound(rows="find", **wrong)
    with pytest.raises(InvalidParameterError, match="neither a number"):
        table.bound(rows="seek")

"""Intervals that hold what bounding and clipping take away hold the truth, if what was declared is true."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import defocus as dp
from defocus.answers import Effect
from defocus.errors import InvalidParameterError
from defocus.noise.testing import seeded
from defocus.tables.table import Table

ASKED: dict[str, Any] = {"n": dp.count(), "s": dp.sum("x"), "m": dp.mean("x")}


NUMBER = np.where(np.arange(2000) % 10 == 0, 12, 1)
"""A tenth of the people have twelve rows, of which three count, and larger values."""
WHO = np.repeat(np.arange(2000), NUMBER)
X = np.where(NUMBER[WHO] > 1, 9.0, 1.0) + (np.arange(len(WHO)) % 50 == 0) * 5.0
TRUTH = {"n": float(len(X)), "s": float(X.sum()), "m": float(X.mean())}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    terms: dict[str, Any] = {"unit": dp.user("who"), "budget": dp.Budget(1000), "columns": {"x": (0, 10)}}
    return dp.open(pa.table({"who": WHO, "x": X}), ledger=tmp_path / "t.ledger", name="t", **terms).bound(rows=3)


def test_the_truth_is_held_by_widened_intervals_and_by_no_others(table: Table) -> None:
    lost = 1 - (1800 + 200 * 3) / TRUTH["n"]
    for seed in range(20):
        plain = table.agg(**ASKED).release(epsilon=2, bits=seeded(seed))
        wide = table.agg(**ASKED).covering(beyond=lost, clipped={"x": 0.1}).release(epsilon=2, bits=seeded(seed))
        for name, number in TRUTH.items():
            assert not plain[name].low[0] <= number <= plain[name].high[0]
            assert wide[name].low[0] <= number <= wide[name].high[0]
            assert wide[name].values[0] == plain[name].values[0]


def test_the_ends_are_those_of_the_worst_rows_that_are_declared(table: Table) -> None:
    plain = table.agg(**ASKED).release(epsilon=2, bits=seeded(1))
    wide = table.agg(**ASKED).covering(beyond=0.2).release(epsilon=2, bits=seeded(1))
    assert wide["n"].low[0] == plain["n"].low[0]
    assert wide["n"].high[0] == pytest.approx(plain["n"].high[0] / 0.8)
    assert wide["m"].low[0] == pytest.approx(0.8 * plain["m"].low[0])
    assert wide["m"].high[0] == pytest.approx(0.8 * plain["m"].high[0] + 2)
    assert wide["s"].low[0] == plain["s"].low[0]
    assert wide["s"].high[0] == pytest.approx(plain["s"].high[0] + 10 * plain["n"].high[0] / 4, rel=0.01)


def test_what_is_covered_is_told_and_no_longer_missing(table: Table) -> None:
    for asked in (table, table.bound(rows="find")):
        answer = asked.agg(n=dp.count()).covering(beyond=0.5).release(epsilon=1)
        assert not [rule for rule in answer.rules if rule.effect is Effect.BOUND]
        said = "intervals also hold what is declared: at most 50 % of the rows of each group lie beyond the bound"
        assert said in str(answer)
    half = table.agg(m=dp.mean("x", bounds="find")).covering(beyond=0.5).release(epsilon=1)
    (clipped,) = [rule for rule in half.rules if rule.startswith("values of x")]
    assert clipped.effect is Effect.TOLD
    assert "intervals hold that" in clipped


def test_what_was_declared_belongs_to_a_request(table: Table) -> None:
    asked = table.agg(n=dp.count())
    asked.covering(beyond=0.1).release(epsilon=1, request="a")
    again = asked.covering(beyond=0.1).release(epsilon=1, request="a")
    assert again.receipt.sequence == 1
    with pytest.raises(InvalidParameterError):
        asked.covering(beyond=0.2).release(epsilon=1, request="a")


@pytest.mark.parametrize(
    ("aggregates", "given", "words"),
    [
        ({"v": dp.variance("x")}, {"beyond": 0.1}, "is not known"),
        ({"p": dp.count_units()}, {"beyond": 0.1}, "is not known"),
        ({"n": dp.count()}, {}, "Nothing is declared"),
        ({"n": dp.count()}, {"beyond": 1}, "beyond"),
        ({"n": dp.count()}, {"beyond": float("nan")}, "beyond"),
        ({"n": dp.count()}, {"clipped": {"y": 1}}, "not asked about"),
        ({"m": dp.mean("x")}, {"clipped": {"x": float("inf")}}, "clipped"),
    ],
)
def test_what_cannot_be_covered_is_refused(table: Table, aggregates: Any, given: Any, words: str) -> None:
    with pytest.raises(InvalidParameterError, match=words) as caught:
        table.agg(**aggregates).covering(**given)
    assert caught.value.fix

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import defocus as dp
from defocus.errors import InvalidParameterError
from defocus.noise.testing import seeded
from defocus.synthesis import synthesise
from defocus.synthesis.domains import domain_of
from defocus.synthesis.released import measurements
from defocus.synthesis.targets import Noisy, by_bins, pooled_margins

FACTS: dict[str, Any] = {"ward": ["A", "B", "C"], "age": (0, 9)}


def people(n: int = 3000) -> pa.Table:
    rng = np.random.default_rng(1)
    ward = rng.choice(["A", "B", "C"], n)
    return pa.table(
        {"ward": ward, "smoker": rng.random(n) < np.where(ward == "A", 0.8, 0.1), "age": rng.integers(0, 10, n)}
    )


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Any]:
    with dp.open(
        people(), unit=dp.rows(), budget=dp.Budget(50, 1e-2), ledger=tmp_path / "a", name="v", columns=FACTS
    ) as opened:
        yield opened


def _smoking(rows: pa.Table) -> float:
    """How much more of ward A smokes than of the others."""
    smoker, first = np.array(rows["smoker"].to_pylist()) == True, np.array(rows["ward"].to_pylist()) == "A"  # noqa: E712
    return float(smoker[first].mean() - smoker[~first].mean())


ASKED: dict[str, Callable[[Any], Any]] = {
    "groups": lambda t: t.group_by("smoker", "ward").agg(n=dp.count()).release(epsilon=2, bits=seeded(4)),
    "cube": lambda t: t.cube("ward", "smoker").release(epsilon=2, delta=1e-6, bits=seeded(4)),
    "SQL": lambda t: t.sql("SELECT ward, smoker, COUNT(*) AS n FROM v GROUP BY 1, 2", epsilon=2),
}


@pytest.mark.slow
@pytest.mark.parametrize("how", ASKED)
def test_a_dependence_that_was_released_before_is_there_at_a_price_that_shows_nothing(table: Any, how: str) -> None:
    answer = ASKED[how](table)
    price: dict[str, Any] = {"epsilon": 0.05, "delta": 1e-7}
    without = synthesise(table, **price, bits=seeded(1), rows=3000)
    made = synthesise(table, **price, bits=seeded(1), rows=3000, released=[answer])
    assert made.receipt is not None
    assert without.receipt is not None
    assert made.receipt.event == without.receipt.event
    assert abs(_smoking(without.sample(bits=seeded(2)))) < 0.4
    assert _smoking(made.sample(bits=seeded(2))) > 0.6
    assert "1 answers that were released before" in made.explain()


def test_counts_come_with_their_errors_and_what_is_not_told_is_not_made_up(table: Any) -> None:
    domains = [domain_of(table.schema[name], None, told=False) for name in ("ward", "smoker", "age")]
    answer = ASKED["groups"](table)
    ages = table.group_by("age", keys=range(10)).agg(n=dp.count()).release(epsilon=1, bits=seeded(4))
    found = measurements([answer, ages], table, domains)
    assert set(found) == {(0, 1), (2,)}
    (pair,), (alone,) = found[0, 1], found[2,]
    assert pair.counts.shape == (4, 3)
    assert np.isnan(pair.counts[3]).all()
    assert np.isnan(pair.counts[:, 2]).all()
    assert pair.counts[:3, :2].sum() == pytest.approx(3000, abs=50)
    assert alone.sigma == pytest.approx(float(ages.columns[0].errors[0]))
    assert np.abs(alone.counts[:10] - 300).max() < 100


@pytest.mark.parametrize(
    ("ask", "word"),
    [
        (lambda _: "3", "not of this ledger"),
        (lambda t: t.where("age > 3").group_by("ward").agg(n=dp.count()).release(epsilon=1), "no plain count"),
        (lambda t: t.group_by("ward").agg(n=dp.sum("age", 0, 9)).release(epsilon=1), "no plain count"),
        (lambda t: t.group_by("ward").agg(n=dp.count()).release(epsilon=1).non_negative(), "no plain count"),
        (lambda t: t.sql("SELECT ward, COUNT(*) AS n FROM v WHERE age > 3 GROUP BY ward", epsilon=1), "no plain count"),
        (
            lambda t: t.sql(
                "SELECT ward, COUNT(*) AS n FROM (SELECT * FROM v WHERE age > 3) AS s GROUP BY ward", epsilon=1
            ),
            "no plain count",
        ),
        (lambda t: t.agg(n=dp.count()).release(epsilon=1), "no plain count"),
    ],
)
def test_what_is_no_count_of_all_rows_is_refused_before_any_charge(table: Any, ask: Any, word: str) -> None:
    answer = ask(table)
    before = len(table.ledger)
    with pytest.raises(InvalidParameterError, match=word):
        synthesise(table, epsilon=1, delta=1e-6, released=[answer])
    assert len(table.ledger) == before


def test_an_answer_of_another_ledger_is_refused(table: Any, tmp_path: Path) -> None:
    given: dict[str, Any] = {"unit": dp.rows(), "budget": dp.Budget(9), "name": "v", "columns": FACTS}
    with dp.open(people(), ledger=tmp_path / "other", **given) as other:
        answer = ASKED["groups"](other)
    with pytest.raises(InvalidParameterError, match="not of this ledger"):
        synthesise(table, epsilon=1, delta=1e-6, released=[answer])


def test_codes_become_bins_and_what_is_not_known_stays_so() -> None:
    noisy = Noisy(np.array([[1.0, 2.0, np.nan], [3.0, 4.0, np.nan]]), 2.0)
    bins = [np.array([0, 0]), np.array([0, 1, 1])]
    assert by_bins(noisy, bins, [False, True]).counts.tolist() == [[4.0, 6.0]]
    assert np.isnan(by_bins(noisy, bins, [False, False]).counts).tolist() == [[False, True]]
    assert by_bins(noisy, bins, [False, True]).sigma == pytest.approx(2 * np.sqrt(3))
    assert noisy.with_(Noisy(np.ones((2, 3)), 2.0)).counts.tolist() == [[1.0, 1.5, 1.0], [2.0, 2.5, 1.0]]
    own = [Noisy(np.array([3.0, 7.0]), 1.0), Noisy(np.array([2.0, 3.0, 5.0]), 1.0)]
    assert pooled_margins(own, {(0, 1): noisy}, 10)[0].tolist() == [3.0, 7.0]


@pytest.mark.slow
def test_noise_aware_draws_know_what_was_released(table: Any) -> None:
    made = synthesise(table, epsilon=0.05, delta=1e-7, bits=seeded(1), rows=1000, released=[ASKED["groups"](table)])
    (drawn,) = made.draws(1, bits=seeded(3))
    assert _smoking(drawn) > 0.6

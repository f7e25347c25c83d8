import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import defocus as dp
from defocus.errors import InvalidParameterError, QualityNotReachedError, UnknownColumnError
from defocus.noise.testing import seeded
from defocus.synthesis import Generator, Synthesiser
from defocus.synthesis.counting import Counter, counter_of
from defocus.synthesis.measurement import STEPS, Spending
from defocus.synthesis.prediction import CLASSES, Scores, area, labels_of, scores_of
from defocus.synthesis.synthesiser import METHODS
from defocus.synthesis.targets import Noisy
from defocus.tables.contribution import Bound
from defocus.tables.weights import RowSampler

FACTS: dict[str, Any] = {"age": (0, 89), "ward": ["A", "B"], "odd": (0, 9)}


def people(n: int = 3000) -> pa.Table:
    rng = np.random.default_rng(1)
    age = rng.integers(0, 90, n)
    sick = rng.random(n) < 1 / (1 + np.exp(-(age - 45) / 12))
    ward = rng.choice(["A", "B", "Z"], n)  # Z is not declared
    return pa.table({"age": age, "ward": ward, "odd": rng.integers(0, 10, n), "sick": pa.array(sick, mask=age == 7)})


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Any]:
    how: dict[str, Any] = {"budget": dp.Budget(90, 1e-3), "ledger": tmp_path / "a", "name": "v", "columns": FACTS}
    with dp.open(people(), unit=dp.rows(), **how) as made:
        yield made


def counter(table: Any, **more: Any) -> Counter:
    domains = Synthesiser(table).domains
    given: dict[str, Any] = {"bound": None, "grid": 1, "chance": RowSampler.drawn(seeded(1)), **more}
    return counter_of(table.rows, domains, **given)


def test_the_engine_counts_classes_as_a_loop_over_rows_does(table: Any) -> None:
    bins = [np.arange(91) // 10, np.array([0, 1, 2]), np.arange(11) % 3, np.array([0, 1, 1])]
    rng = np.random.default_rng(3)
    weights = tuple(rng.integers(0, 400, int(own.max()) + 1) for own in bins)
    scores = Scores(3, (*weights[:3], np.zeros(2, np.int64)), (*range(200, 900, 50), 900))
    assert len(scores.cuts) == CLASSES - 1
    codes = []
    for row in people().to_pylist():
        sick = 2 if row["sick"] is None else int(row["sick"])
        codes.append([row["age"], {"A": 0, "B": 1}.get(row["ward"], 2), row["odd"], sick])
    records = np.stack([own[np.array(codes)[:, i]] for i, own in enumerate(bins)], 1)
    labels = np.where(np.array(codes)[:, 3] == 2, -1, np.array(codes)[:, 3])
    found = counter(table).by_class(scores, bins)
    assert found.shape == (CLASSES, 3)
    assert found[:, :2].tolist() == scores.counted(records, labels).tolist()
    assert found.sum() == 3000


def test_nobody_moves_the_classes_by_more_than_they_weigh(tmp_path: Path) -> None:
    """Each of some people is left out: with up to nine rows each, and a bound of two."""
    rng = np.random.default_rng(4)
    data = people(60).append_column("who", pa.array(np.sort(rng.integers(0, 12, 60))))
    sets = [np.arange(91) // 10, np.arange(3), np.arange(11), np.arange(3)]
    scores = Scores(3, (np.arange(10) * 9, np.array([0, 40, 5]), np.arange(11) * 3, np.zeros(3, int)), tuple(range(15)))

    def counts(rows: pa.Table, where: str) -> Any:
        given: dict[str, Any] = {"budget": dp.Budget(9, 1e-3), "ledger": tmp_path / where, "name": "v"}
        with dp.open(rows, unit=dp.user("who"), columns=FACTS, **given) as table:
            return counter(table, bound=Bound(rows=2), grid=1 << 10).by_class(scores, sets)

    every, moved = counts(data, "all"), []
    for who in range(12):
        rest = data.filter(pa.array(data["who"].to_numpy() != who))
        moved.append(np.abs(every - counts(rest, f"{who}")).sum())
    assert max(moved) <= 2 << 10
    assert max(moved) > 1 << 10  # somebody has more than one row


@pytest.mark.parametrize("method", list(METHODS))
def test_a_prediction_takes_its_part_from_the_whole(method: str) -> None:
    plain, more = METHODS[method], METHODS[method].with_prediction()
    assert sum(more.stages()) == pytest.approx(sum(plain.stages()))
    assert sum(delta * delta for delta in more.deltas()) <= STEPS * STEPS
    assert len(more.deltas()) == len(plain.deltas()) + 1
    assert sum(Spending().with_prediction().stages()) == pytest.approx(1)


def test_the_area_is_that_of_all_pairs_of_rows_and_its_error_that_of_the_noise() -> None:
    rng = np.random.default_rng(5)
    counts = rng.integers(20, 60, (CLASSES, 2)).astype(float)
    pairs = wins = 0.0
    for one, two in itertools.product(range(CLASSES), repeat=2):
        both = counts[one, 1] * counts[two, 0]
        pairs, wins = pairs + both, wins + both * (one > two) + both * (one == two) / 2
    assert area(Noisy(counts, 0.0))[0] == pytest.approx(wins / pairs)
    noisy = [area(Noisy(counts + rng.normal(0, 5, counts.shape), 5.0)) for _ in range(2000)]
    assert np.std([found for found, _ in noisy]) == pytest.approx(np.mean([error for _, error in noisy]), rel=0.1)
    assert area(Noisy(np.ones((CLASSES, 2)), 5.0)) == (0.5, np.inf)


def test_what_is_predicted_badly_is_told_and_refused(table: Any, tmp_path: Path) -> None:
    made = table.synthesise(epsilon=8, delta=1e-6, predict="sick", request="may", bits=seeded(1))
    assert made.prediction.column == "sick"
    assert abs(made.prediction.auc - 0.9) < 0.04
    assert made.prediction.error < 0.02
    assert "sick as predicted" in made.explain()
    made.save(tmp_path / "g.json")
    assert Generator.load(tmp_path / "g.json").prediction == made.prediction
    assert table.synthesise(epsilon=8, delta=1e-6, predict="sick", request="may").prediction == made.prediction
    with pytest.raises(InvalidParameterError, match="another question"):
        table.synthesise(epsilon=8, delta=1e-6, request="may")
    assert {"age, sick", "ward, sick", "odd, sick"} == set(made.quality["columns"].to_pylist())
    with pytest.raises(QualityNotReachedError, match=r"at least 0\.9900") as caught:
        table.synthesise(epsilon=8, delta=1e-6, predict="sick", accept_auc=0.99)
    assert caught.value.generator.sample(3).num_rows == 3


def test_a_column_that_noise_says_nothing_about_is_not_said_to_be_predicted(table: Any) -> None:
    made = table.synthesise(epsilon=0.01, delta=1e-6, predict="sick", bits=seeded(1))
    assert (made.prediction.auc, made.prediction.error) == (0.5, np.inf)
    assert "unknown" in made.explain()
    assert Generator.from_json(made.to_json()).prediction == made.prediction


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"predict": "age"}, InvalidParameterError),
        ({"predict": "nobody"}, UnknownColumnError),
        ({"predict": "sick", "only": ["sick"]}, InvalidParameterError),
        ({"accept_auc": 0.8}, InvalidParameterError),
    ],
)
def test_what_cannot_be_predicted_is_refused_before_any_charge(table: Any, asked: Any, error: Any) -> None:
    with pytest.raises(error):
        table.synthesise(epsilon=1, delta=1e-6, **asked)
    assert not [entry for entry in table.ledger.entries() if entry.kind == "charge"]


def test_codes_that_share_a_bin_have_a_model_that_tells_nothing() -> None:
    records = np.stack([np.arange(100) % 3, np.zeros(100, int)], 1)
    labels = labels_of(records, 1, np.array([0, 0, 0]))
    scores = scores_of(records, [3, 1], 1, labels, np.random.default_rng(1))
    assert area(Noisy(scores.counted(records, labels).astype(float), 0.0)) == (0.5, np.inf)

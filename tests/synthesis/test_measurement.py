import itertools
import math
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import defocus as dp
from defocus.errors import InvalidParameterError
from defocus.mechanisms import Gaussian
from defocus.noise.testing import seeded
from defocus.privacy import Budget, account
from defocus.synthesis import measurement
from defocus.synthesis.field import MarkovField, counted, quota
from defocus.synthesis.measurement import STEPS, Setup, Spending, events, fitted
from defocus.synthesis.targets import Noisy, merged, pooled_margins, raked, simplex, smoothed, table_target


def counting(records: Any, sizes: Any) -> Any:
    """Exact counts of a table of codes."""

    def count(sets: Any, bins: Any) -> Any:
        binned = np.stack([own[records[:, i]] for i, own in enumerate(bins)], 1)
        return [counted(binned, columns, [int(own.max()) + 1 for own in bins]) for columns in sets]

    assert records.shape[1] == len(sizes)
    return count


def setup(sizes: tuple[int, ...], **more: Any) -> Setup:
    plain: dict[str, Any] = {
        "ordered": (False,) * len(sizes),
        "missing": (False,) * len(sizes),
        "sigma": 4.2 * STEPS,
        "weight": 1,
        "grid": 1,
        "spending": Spending(),
    }
    return Setup(sizes=sizes, **{**plain, **more})


def correlated(n: int, seed: int = 0) -> Any:
    """Three columns of which the first two are nearly the same."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 6, n)
    second = np.where(rng.random(n) < 0.8, first, rng.integers(0, 6, n))
    return np.stack([first, second, rng.integers(0, 3, n)], 1)


def test_stages_spend_no_more_than_the_whole() -> None:
    deltas = Spending().deltas()
    assert sum(delta * delta for delta in deltas) <= STEPS * STEPS
    assert math.isclose(sum(Spending().stages()), 1.0)
    event = reduce(add, events(Spending(), 4.2247 * STEPS, 1))
    assert Budget(1, 1e-6).covers(account(event))
    assert not Budget(0.95, 1e-6).covers(account(event))


def test_every_stage_moves_by_no_more_than_its_sensitivity(monkeypatch: pytest.MonkeyPatch) -> None:
    """All neighbours of a small table, with the noise of the first run in all of them."""
    records = correlated(60)
    met: list[tuple[Any, float]] = []
    drawn: list[Any] = []
    replayed = False

    def sample(self: Gaussian, value: Any, _: Any = None) -> Any:
        met.append((np.array(value), float(self.sensitivity)))
        if not replayed:
            drawn.append(np.asarray(value) + np.random.default_rng(len(met)).integers(-9, 10, len(value)))
        return drawn[len(met) - 1]

    monkeypatch.setattr(Gaussian, "sample", sample)
    monkeypatch.setattr(measurement, "_worthwhile", lambda *_: [0, 1, 2])  # so that all stages measure something
    sizes = (6, 6, 3)
    wanted = setup(sizes, sigma=STEPS / 100)
    fitted(wanted, counting(records, sizes), seeded(1), np.random.default_rng(1))
    first, replayed = list(met), True
    assert len(first) == 2 + 2 * len(Spending().rounds)
    assert [bound for _, bound in first] == Spending().deltas()
    closest = 0.0
    for row in itertools.product(*(range(size) for size in sizes)):
        met.clear()
        fitted(wanted, counting(np.vstack([records, row]), sizes), seeded(1), np.random.default_rng(1))
        assert len(met) == len(first)
        for (before, bound), (after, _) in zip(first, met, strict=True):
            moved = math.dist(before, after)
            assert moved <= bound
            closest = max(closest, moved / bound)
    assert closest > 0.99  # the bound is not loose either


def test_a_dependence_is_found_and_kept() -> None:
    records = correlated(20_000)
    made = fitted(setup((6, 6, 3)), counting(records, (6, 6, 3)), seeded(3), np.random.default_rng(3))
    assert (0, 1) in made.tables
    exact = counted(records, (0, 1), (6, 6, 3)) / len(records)
    found = counted(made.records, (0, 1), (6, 6, 3)) / len(made.records)
    assert np.abs(exact - found).sum() / 2 < 0.02
    assert abs(len(made.records) - len(records)) < 200


def test_held_back_budget_says_how_far_off_pairs_are() -> None:
    records, sizes = correlated(20_000), (6, 6, 3)
    made = fitted(setup(sizes), counting(records, sizes), seeded(4), np.random.default_rng(4))
    for pair, told in zip(itertools.combinations(range(3), 2), made.distances.counts, strict=True):
        ours = counted(made.records, pair, sizes)
        truth = np.abs(counted(records, pair, sizes) - ours).sum() / 2 / len(made.records)
        assert abs(told - truth) < 4 * made.distances.sigma


def test_noise_that_hides_everything_leaves_columns_independent() -> None:
    records, sizes = correlated(200), (6, 6, 3)
    made = fitted(setup(sizes, sigma=4000.0 * STEPS), counting(records, sizes), seeded(5), np.random.default_rng(5))
    assert not made.tables
    assert len(made.records) >= 1


@pytest.mark.parametrize(
    ("columns", "focus", "ordered", "most"),
    [(2, (), False, 1 << 16), (3, ((0, 1, 2),), False, 1 << 16), (2, (), True, 1 << 10)],
)
def test_no_stage_measures_more_cells_than_memory_holds_whatever_columns_hold(
    monkeypatch: pytest.MonkeyPatch, columns: int, focus: Any, ordered: bool, most: int
) -> None:
    """Thousands of frequent values in each column: a pair of them has millions of cells, a triple billions."""
    monkeypatch.setattr(measurement, "_PAIRED", most)
    met: list[int] = []
    often = 3e6 / np.arange(50, 5050)

    def count(sets: Any, bins: Any) -> Any:
        sizes = [int(own.max()) + 1 for own in bins]
        met.append(sum(math.prod(sizes[i] for i in own) for own in sets))
        assert met[-1] <= (most if len(met) > 1 else 5000 * columns)
        shares = [np.bincount(own, often) / often.sum() for own in bins]
        exact = (often.sum() * reduce(np.multiply.outer, [shares[i] for i in own]) for own in sets)
        return [np.rint(each).astype(int) for each in exact]

    wanted = setup((5000,) * columns, ordered=(ordered,) * columns, sigma=0.01 * STEPS, records=2000, focus=focus)
    found = fitted(wanted, count, seeded(3), np.random.default_rng(1))
    assert max(met[1:]) > most / 4
    assert all(int(own.max()) > 8 for own in found.bins)


def test_so_many_columns_or_codes_are_refused_before_any_charge(tmp_path: Path) -> None:
    many = pa.table({f"c{i}": [True] for i in range(501)})
    with dp.open(many, unit=dp.rows(), budget=dp.Budget(1, 1e-6), ledger=tmp_path / "a.ledger", name="v") as table:
        with pytest.raises(InvalidParameterError, match="501 columns of together 1503 codes"):
            dp.synthesise(table, epsilon=1, delta=1e-6)
        assert not [entry for entry in table.ledger.entries() if entry.kind == "charge"]


def test_as_many_records_are_made_as_are_asked_for() -> None:
    records, sizes = correlated(5000), (6, 6, 3)
    made = fitted(setup(sizes, records=300), counting(records, sizes), seeded(6), np.random.default_rng(6))
    assert len(made.records) == 300
    exact, found = (counted(own, (0, 1), sizes) / len(own) for own in (records, made.records))
    assert np.abs(exact - found).sum() / 2 < 0.08


def test_no_record_is_in_a_cell_that_is_not_allowed() -> None:
    records, sizes = correlated(5000), (6, 6, 3)
    allowed = ~np.eye(6, dtype=np.bool_)
    wanted = setup(sizes, allowed={(0, 1): allowed})
    made = fitted(wanted, counting(records, sizes), seeded(7), np.random.default_rng(7))
    assert np.trace(counted(made.records, (0, 1), sizes)) == 0


def test_a_field_meets_targets_that_fit_together() -> None:
    field = MarkovField([4, 4, 4], 2000, np.random.default_rng(1))
    table = np.full((4, 4), 50.0) + 300 * np.eye(4)
    field.hold_margins([np.full(4, 500.0)] * 3)
    for pair in ((0, 1), (1, 2)):
        field.hold(pair, table)
    field.fit(30)
    field.settle(8)
    for pair in ((0, 1), (1, 2)):
        assert np.abs(counted(field.records, pair, [4, 4, 4]) - table).sum() / 2 / 2000 < 0.01


def test_of_very_many_records_some_are_swept_first_and_all_meet_the_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("defocus.synthesis.field._CHAINS", 500)
    swept: list[int] = []
    plain = MarkovField._swept

    def watched(self: MarkovField, *arguments: Any, **named: Any) -> None:
        swept.append(named.get("number") or self.number)
        plain(self, *arguments, **named)

    monkeypatch.setattr(MarkovField, "_swept", watched)
    field = MarkovField([4, 4], 4000, np.random.default_rng(1))
    table = np.full((4, 4), 100.0) + 600 * np.eye(4)
    field.hold_margins([np.full(4, 1000.0)] * 2)
    field.hold((0, 1), table)
    field.fit(40)
    assert swept == [500] * 30 + [4000] * 10
    assert len(np.unique(field.records[:500] != field.records[500:1000])) == 2  # no copies are left
    field.settle(6)
    assert np.abs(counted(field.records, (0, 1), [4, 4]) - table).sum() / 2 / 4000 < 0.01


def test_a_table_of_three_columns_is_met_too() -> None:
    field = MarkovField([2, 2, 2], 800, np.random.default_rng(1))
    parity = np.array([[[190.0, 10.0], [10.0, 190.0]], [[10.0, 190.0], [190.0, 10.0]]])
    field.hold_margins([np.full(2, 400.0)] * 3)
    field.hold((0, 1, 2), parity)
    field.fit(30)
    field.settle(8)
    assert np.abs(counted(field.records, (0, 1, 2), [2, 2, 2]) - parity).sum() / 2 / 800 < 0.02


def test_counts_are_averaged_by_inverse_variance() -> None:
    margins = [Noisy(np.array([10.0, 30.0]), 1.0), Noisy(np.array([20.0, 20.0]), 1.0)]
    tables: dict[tuple[int, ...], Noisy] = {(0, 1): Noisy(np.array([[5.0, 9.0], [15.0, 11.0]]), 1.0)}
    pooled = pooled_margins(margins, tables, 40)
    assert np.allclose(pooled[0], [(10 + 14 / 2) / 1.5, (30 + 26 / 2) / 1.5])


def test_shrinkage_takes_noise_away_and_leaves_a_dependence() -> None:
    rng = np.random.default_rng(2)
    margin = np.full(10, 100.0)
    base = np.outer(margin, margin) / 1000
    truth = base + 5 * np.outer(np.linspace(-1, 1, 10), np.linspace(-1, 1, 10))
    noisy = truth + rng.normal(0, 3, (10, 10))
    target = table_target(Noisy(noisy, 3.0), [margin, margin], base)
    assert np.abs(target - truth).sum() < 0.6 * np.abs(noisy - truth).sum()
    assert np.allclose(target.sum(0), margin, rtol=1e-3)


def test_small_tools_do_what_they_say() -> None:
    assert math.isclose(simplex(np.array([-3.0, 2.0, 9.0]), 7).sum(), 7)
    assert raked(np.ones((2, 2)), [np.array([1.0, 3.0]), np.array([2.0, 2.0])]).sum() == pytest.approx(4)
    assert merged(np.array([5.0, 5.0, 5.0, 1.0]), 4, ordered=True, alone=1).tolist() == [0, 1, 2, 3]
    assert len(quota(np.array([0.0, 2.0, 1.0]), 9, np.random.default_rng(0))) == 9
    spike = np.zeros(64)
    spike[7] = 100
    assert smoothed(spike, 1.0)[7] > 90


def test_a_code_that_hardly_anybody_has_is_not_made_up() -> None:
    records = np.stack([np.zeros(4000, np.int64), np.arange(4000) % 3], 1)
    wanted = setup((3, 4), missing=(True, True))
    made = fitted(wanted, counting(records, (3, 4)), seeded(8), np.random.default_rng(8))
    assert made.within[1][3] == 0  # the code for missing, which nobody has
    assert measurement.pairs_of(2) == [(0, 1)]


def test_records_have_little_chance_in_pairs_and_triples_that_were_not_measured() -> None:
    """Independent columns: each of 64 cells of a triple holds 100 records, which chance alone would move by 10."""
    field = MarkovField([4, 4, 4], 6400, np.random.default_rng(1))
    field.hold_margins([np.full(4, 1600.0)] * 3)
    field.fit(1)
    field.settle(8)
    assert counted(field.records, (0, 1), [4, 4, 4]).std() < 4
    assert counted(field.records, (0, 1, 2), [4, 4, 4]).std() < 5
    assert counted(field.records, (0,), [4, 4, 4]).std() < 4

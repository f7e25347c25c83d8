import tracemalloc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import defocus as dp
from defocus.errors import InvalidParameterError
from defocus.noise.testing import seeded
from defocus.synthesis import Combined, combine
from defocus.synthesis.inference import with_cells
from defocus.synthesis.measurement import Fitted
from defocus.synthesis.noise_aware import redrawn
from defocus.synthesis.targets import Noisy


@pytest.mark.parametrize(
    ("noise", "rows", "draws"), [(0.0, 0.25, 20), (1.0, 0.25, 20), (4.0, 0.25, 20), (0.0, 1.0, 200)]
)
def test_intervals_hold_the_truth_as_often_as_they_say(noise: float, rows: float, draws: int) -> None:
    """The law of the draws itself: noise beside sampling, which has variance one, and ``rows``, that of drawn rows."""
    rng, trials = np.random.default_rng(1), 2000
    known = rng.normal(0, np.sqrt(1 + noise), trials)
    tables = known + rng.normal(0, np.sqrt(1 + noise), (draws, trials)) + rng.normal(0, np.sqrt(rows), (draws, trials))
    low, high = combine(tables, np.full((draws, trials), rows)).interval()
    assert 0.93 < ((low <= 0) & (high >= 0)).mean() < 0.97
    naive = np.abs(tables[0]) < 1.96 * np.sqrt(rows)
    assert naive.mean() < 0.8


def test_draws_vary_by_noise_and_by_sampling() -> None:
    """One column of two values: the share varies by what is known exactly."""
    n, sigma = 900, 25.0
    records = np.repeat([[0], [1]], [300, 600], axis=0).astype(np.int32)
    plain = (np.array([0, 1]),)
    margin = Noisy(np.array([300.0, 600.0]), sigma)
    made = Fitted(records, plain, (np.ones(2),), (margin,), {}, float(n), Noisy(np.zeros(1), 0.1), ((0,),))
    shares = [one.records.mean() for one in redrawn(made, 300, np.random.default_rng(0))]
    sampling, noise, rows = 2 / 9 / n, sigma**2 / 2 / n**2, 2 / 9 / (4 * n)
    assert np.mean(shares) == pytest.approx(2 / 3, abs=0.01)
    assert np.var(shares) == pytest.approx(sampling + noise + rows, rel=0.25)


def test_draws_take_no_more_memory_for_more_people() -> None:
    """Thirty million rows, of which 900 records were made: other people are drawn as counts of records."""
    records = np.repeat([[0], [1]], [300, 600], axis=0).astype(np.int32)
    margin = Noisy(np.array([300.0, 600.0]), 25.0)
    made = Fitted(records, (np.arange(2),), (np.ones(2),), (margin,), {}, 3e7, Noisy(np.zeros(1), 0.1), ((0,),))
    next(redrawn(made, 1, np.random.default_rng(0)))  # so that nothing is compiled while it is measured
    tracemalloc.start()
    next(redrawn(made, 1, np.random.default_rng(0)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000


@pytest.mark.slow
def test_an_analysis_of_a_generator_has_an_interval(tmp_path: Any) -> None:
    rng = np.random.default_rng(2)
    age = rng.integers(0, 3, 2000)
    data = pa.table({"age": age, "sick": rng.random(2000) < 0.2 + 0.2 * age})
    how = {"unit": dp.rows(), "budget": dp.Budget(9, 1e-4), "ledger": tmp_path / "a", "name": "v"}
    with dp.open(data, columns={"age": [0, 1, 2]}, **how) as table:
        made = table.synthesise(epsilon=2, delta=1e-6, focus=[("age", "sick")], bits=seeded(1))

    def slope(rows: pa.Table) -> tuple[float, float]:
        frame = rows.drop_null().to_pandas()
        x, y = frame.age.to_numpy(float), frame.sick.to_numpy(float)
        x = x - x.mean()
        found = (x @ y) / (x @ x)
        rest = y - y.mean() - found * x
        return found, (rest @ rest) / len(x) / (x @ x)

    found = made.infer(slope, number=20, bits=seeded(3))
    low, high = found.interval(0.999)
    assert low[0] < 0.2 < high[0]
    assert 0.008 < found.error[0] < 0.06  # of 2000 real rows alone it would be 0.013


def test_what_cannot_be_combined_is_refused() -> None:
    for wrong in (([1.0], [0.1]), ([1.0, 2.0], [0.1]), ([1.0, 2.0], [0.1, -1.0])):
        with pytest.raises(InvalidParameterError, match="cannot be combined"):
            combine(*wrong)
    same = combine([1.0, 1.0], [0.0, 0.0])
    assert same.error.tolist() == [np.inf]  # that all tables agree says nothing about private rows


@pytest.mark.slow
def test_the_share_of_a_value_at_which_numbers_pile_up_is_in_its_interval(tmp_path: Any) -> None:
    rng = np.random.default_rng(5)
    paid = np.where(rng.random(3000) < 0.39, 0.0, rng.exponential(400, 3000))
    how = {"unit": dp.rows(), "budget": dp.Budget(9, 1e-4), "ledger": tmp_path / "a", "name": "v"}
    with dp.open(pa.table({"paid": paid}), columns={"paid": (0, 10_000)}, **how) as table:
        made = table.synthesise(epsilon=2, delta=1e-6, bits=seeded(1))

    def share(value: float) -> Any:
        def analysis(rows: pa.Table) -> tuple[float, float]:
            own = float((rows["paid"].to_numpy() == value).mean())
            return own, own * (1 - own) / rows.num_rows

        low, high = made.infer(analysis, bits=seeded(3)).interval(0.999)
        return low[0], high[0]

    low, high = share(0.0)
    assert 0.3 < low < 0.39 < high < 0.48
    assert share(123.456) == (-np.inf, np.inf)  # a value within a cell: nothing is known of it


def test_rows_of_one_person_are_drawn_together() -> None:
    records = np.repeat([[0], [1]], [300, 600], axis=0).astype(np.int32)
    margin = Noisy(np.array([300.0, 600.0]), 0.01)
    plain = (np.array([0, 1]),)
    made = Fitted(records, plain, (np.ones(2),), (margin,), {}, 900.0, Noisy(np.zeros(1), 0.1), ((0,),))
    shares = [one.records.mean() for one in redrawn(made, 200, np.random.default_rng(0), together=5)]
    assert np.var(shares) == pytest.approx(2 / 9 / 900 * (5 + 0.25), rel=0.3)


def test_no_spike_is_made_up_where_values_do_not_pile_up(tmp_path: Any) -> None:
    paid = np.random.default_rng(5).uniform(0, 100, 4000)
    how = {"unit": dp.rows(), "budget": dp.Budget(9, 1e-4), "ledger": tmp_path / "a", "name": "v"}
    with dp.open(pa.table({"paid": paid}), columns={"paid": (0, 100)}, **how) as table:
        rows = table.synthesise(epsilon=2, delta=1e-6, bits=seeded(1)).sample(bits=seeded(2))
    assert not np.isin(rows["paid"].to_numpy(), [0.0, 100.0]).any()


def share_of(wanted: Any) -> Any:
    """The share of rows for which something holds, and its variance."""

    def analysis(rows: pa.Table) -> tuple[float, float]:
        own = float(np.mean(wanted(rows.to_pandas())))
        return own, own * (1 - own) / rows.num_rows

    return analysis


@pytest.mark.slow
def test_single_values_and_edges_within_a_cell_are_not_answered_as_if_they_were_known(tmp_path: Any) -> None:
    """Whole numbers in cells of 195: a tenth has one value of a cell, and values elsewhere are spread."""
    rng = np.random.default_rng(5)
    gain = np.where(rng.random(3000) < 0.1, 7298, rng.integers(0, 99_999, 3000))
    how = {"unit": dp.rows(), "budget": dp.Budget(9, 1e-4), "ledger": tmp_path / "a", "name": "v"}
    with dp.open(pa.table({"gain": gain}), columns={"gain": (0, 99_999)}, **how) as table:
        made = table.synthesise(epsilon=2, delta=1e-6, bits=seeded(1))

    def found(wanted: Any) -> tuple[float, float]:
        combined = made.infer(share_of(wanted), number=8, bits=seeded(3))
        return combined.estimate[0], combined.error[0]

    assert found(lambda rows: rows.gain == 7298)[1] == np.inf
    below, unsure = found(lambda rows: rows.gain < 7300)  # an edge of the cell in which the value is is 7421
    assert abs(below - (gain < 7300).mean()) < 2 * unsure
    assert 0.04 < unsure < 0.2
    _, sure = found(lambda rows: rows.gain < 50_000)
    assert sure < unsure  # the value that is not known is on one side in any case


@pytest.mark.slow
def test_values_that_heap_at_round_numbers_within_cells_are_not_told_to_be_spread(tmp_path: Any) -> None:
    """Nine of ten tell a multiple of ten: in cells of 195 numbers that is not seen, and evenly spread ones say .1."""
    rng = np.random.default_rng(5)
    gain = rng.integers(0, 9_999, 3000) * 10 + np.where(rng.random(3000) < 0.9, 0, rng.integers(1, 10, 3000))
    how = {"unit": dp.rows(), "budget": dp.Budget(9, 1e-4), "ledger": tmp_path / "a", "name": "v"}
    with dp.open(pa.table({"gain": gain}), columns={"gain": (0, 99_999)}, **how) as table:
        made = table.synthesise(epsilon=2, delta=1e-6, bits=seeded(1))
    low, high = made.infer(share_of(lambda rows: rows.gain % 10 == 0), number=8, bits=seeded(3)).interval(0.95)
    assert low[0] < 0.9 < high[0]
    assert high[0] - low[0] < np.inf
    rare = made.infer(share_of(lambda rows: rows.gain == 7303), number=8, bits=seeded(3))
    assert rare.error.tolist() == [np.inf]


def test_what_no_place_in_a_cell_changes_but_spreading_does_is_not_known() -> None:
    """Single values that few spread ones hit: how unsure these are says nothing about how many have the value."""
    made, nothing = Combined(np.array([0.001]), np.array([0.02]), np.array([7.0])), np.zeros(1)
    hit = [nothing, np.array([0.002])]
    assert with_cells(made, hit, [(nothing, nothing, nothing)] * 2).error.tolist() == [np.inf]
    assert with_cells(made, [nothing, nothing], [(nothing, nothing, nothing)] * 2).error.tolist() == [0.02]


@pytest.mark.slow
def test_a_popular_value_that_is_declared_is_kept_and_has_an_interval(tmp_path: Any) -> None:
    rng = np.random.default_rng(5)
    gain = np.where(rng.random(3000) < 0.1, 7298, rng.integers(0, 99_999, 3000))
    how = {"unit": dp.rows(), "budget": dp.Budget(9, 1e-4), "ledger": tmp_path / "a", "name": "v"}
    with dp.open(pa.table({"gain": gain}), columns={"gain": (0, 99_999)}, **how) as table:
        facts = {"gain": (0, 99_999, 1, [7298])}
        made = table.synthesise(epsilon=2, delta=1e-6, columns=facts, bits=seeded(1))
    rows = made.sample(bits=seeded(2)).to_pandas()
    assert 0.07 < (rows.gain == 7298).mean() < 0.13
    found = made.infer(share_of(lambda rows: rows.gain == 7298), number=8, bits=seeded(3))
    low, high = found.interval(0.99)
    assert 0.03 < low[0] < 0.1 < high[0] < 0.2


@pytest.mark.slow
def test_what_constraints_decide_is_known_and_what_nobody_was_drawn_with_is_not(tmp_path: Any) -> None:
    rng = np.random.default_rng(6)
    age = rng.integers(0, 90, 2000)
    data = pa.table({"age": age, "married": (age > 17) & (rng.random(2000) < 0.5)})
    how = {"unit": dp.rows(), "budget": dp.Budget(9, 1e-4), "ledger": tmp_path / "a", "name": "v"}
    with dp.open(data, columns={"age": (0, 99)}, **how) as table:
        made = table.synthesise(epsilon=2, delta=1e-6, constraints=["age > 14 OR NOT married"], bits=seeded(1))
    children = made.infer(share_of(lambda rows: rows.married & (rows.age < 14)), number=4, bits=seeded(3))
    assert (children.estimate.tolist(), children.error.tolist()) == ([0], [0])
    nobody = made.infer(share_of(lambda rows: rows.age > 200), number=4, bits=seeded(3))
    assert nobody.error.tolist() == [np.inf]


def test_codes_that_share_a_bin_are_as_unsure_as_their_counts() -> None:
    """Two rare codes of which one was counted a little more often than the other."""
    records = np.repeat([[0], [1]], [800, 100], axis=0).astype(np.int32)
    within = np.array([800.0, 60.0, 40.0])
    margin = Noisy(np.array([800.0, 100.0]), 20.0)
    bins = np.array([0, 1, 1])
    made = Fitted(records, (bins,), (within,), (margin,), {}, 900.0, Noisy(np.zeros(1), 0.1), ((0,),))
    shares = [one.within[0][1] for one in redrawn(made, 300, np.random.default_rng(0))]
    assert np.std(shares) == pytest.approx(np.sqrt(20**2 * 2 / 3 + 60), rel=0.2)

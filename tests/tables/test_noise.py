"""Every measurement has the noise that it is charged for."""

import itertools
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import defocus as dp
from defocus.mechanisms import Gaussian, Laplace
from defocus.noise.testing import seeded
from defocus.privacy import NOTHING, Sensitivity
from defocus.privacy.events import DiscreteGaussian, DiscreteLaplace
from defocus.tables.noise import CellNoise, PersonWeight, gaussian, laplace

SENSITIVITY = Sensitivity(1000)
NOISES = {"laplace": laplace(SENSITIVITY, Fraction(1, 2)), "gaussian": gaussian(SENSITIVITY, 2.0)}


@pytest.mark.statistical
@pytest.mark.parametrize("kind", NOISES)
def test_the_noise_has_the_declared_variance_and_no_other(kind: str) -> None:
    noise = NOISES[kind]
    drawn = noise.add(np.full((40_000, 2), 7, np.int64), seeded(4)) - 7
    ratio = drawn.std() / np.sqrt(noise.variance)
    assert abs(drawn.mean()) < 4 * np.sqrt(noise.variance / drawn.size)
    assert abs(ratio - 1) < 0.02
    assert abs(1.1 * ratio - 1) > 0.02
    held = np.mean(np.abs(drawn) <= noise.width * np.sqrt(noise.variance))
    assert abs(held - 0.95) < 0.004


def test_the_event_is_that_of_the_noise() -> None:
    one, other = NOISES["laplace"].event, NOISES["gaussian"].event
    assert one == DiscreteLaplace(2000, 1000)
    assert isinstance(other, DiscreteGaussian)
    assert (other.sigma, other.sensitivity) == (2000, 1000)


def test_replacing_moves_twice_as_far_in_one_norm_and_root_two_in_the_other() -> None:
    replaced = Sensitivity(5, 9).replaced()
    assert replaced.l1 == 10
    assert Fraction(18) <= replaced.l2**2 < 18 + Fraction(1, 10**12)


def test_no_cells_need_no_noise() -> None:
    empty = np.zeros((0, 3), np.int64)
    for noise in NOISES.values():
        assert isinstance(noise, CellNoise)
        assert noise.add(empty, seeded(1)).shape == (0, 3)


def test_each_is_called_by_its_name() -> None:
    assert [noise.words for noise in NOISES.values()] == ["discrete Laplace noise", "discrete Gaussian noise"]


def people(tmp_path: Path, values: list[Any], unit: dp.privacy.Unit) -> dp.tables.Table:
    frame = pa.table({"x": pa.array(values, pa.float64())})
    return dp.open(frame, name="people", unit=unit, budget=dp.Budget(1000, 1e-2), ledger=tmp_path / "p.ledger")


def test_where_the_number_of_rows_is_public_counts_are_exact_and_owe_nothing(tmp_path: Path) -> None:
    table = people(tmp_path, [1.0, 2.0, None, 4.0], dp.rows(replace=True))
    answer = table.agg(n=dp.count()).release(epsilon=1)
    assert answer.to_arrow()["n"].to_pylist() == [4]
    assert answer.receipt.event == NOTHING
    assert (answer.columns[0].low[0], answer.columns[0].high[0]) == (4, 4)
    for other in (
        table.where("x > 1").agg(n=dp.count()),
        table.agg(n=dp.count("x")),
        table.derive(y="CASE WHEN x > 1 THEN 1 ELSE 0 END").group_by("y", keys=[0, 1]).agg(n=dp.count()),
    ):
        assert other.preview(epsilon=1).event != NOTHING


@pytest.mark.slow
@pytest.mark.statistical
def test_a_mean_of_a_public_number_of_rows_has_the_error_of_its_sum(tmp_path: Path) -> None:
    n, top = 10_000, 120
    values = np.random.default_rng(3).uniform(0, top, n)
    query = people(tmp_path, values.tolist(), dp.rows(replace=True)).agg(m=dp.mean("x", 0, top, missing=0))
    assert query.preview(epsilon=1).event == DiscreteLaplace(1 << 24, 1 << 24)
    bits = seeded(5)
    errors = [query.release(epsilon=1, bits=bits).columns[0].values[0] - values.mean() for _ in range(400)]
    typical = float(np.mean(np.abs(errors))) / (top / n)
    assert abs(typical - 1) < 5 / np.sqrt(400)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("cells", [1, 2, 3, 4])
def test_what_is_measured_moves_by_no_more_than_is_charged_where_the_number_is_public(cells: int, kind: str) -> None:
    """All ways to divide a row of weight 3, replaced by all others."""
    person = PersonWeight(None, 3, 1, 1, replace=True, number_is_public=True)
    charged = person.cells(cells)
    if charged is None:
        assert cells == 1
        return
    noise = replace(laplace(charged, Fraction(1)) if kind == "laplace" else gaussian(charged, 1.0), total=True)
    measured = noise._measured(cells)[0]
    parts = [np.array(part) for part in itertools.product(range(4), repeat=cells) if sum(part) == 3]
    moves = [measured @ (after - before) for before in parts for after in parts]
    if kind == "laplace":
        assert max(int(np.abs(move).sum()) for move in moves) == charged.l1
    else:
        most = max(int(np.square(move).sum()) for move in moves)
        assert 0 <= charged.l2_squared - most < Fraction(1, 10**9)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [Laplace(scale=40, sensitivity=10), Gaussian(sigma=60, sensitivity=10)], ids=str)
@pytest.mark.parametrize("cells", [2, 3, 4])
def test_the_noise_of_cells_with_a_known_sum_is_known(mechanism: Laplace | Gaussian, cells: int) -> None:
    noise = CellNoise(mechanism, Sensitivity(10), total=True)
    bits, exact = seeded(1), np.array([[500, 300, 150, 50]])[:, :cells]
    drawn = np.array([noise.noisy(exact, bits, 1).cells[0] for _ in range(4000)])
    assert np.allclose(drawn.sum(axis=1), exact.sum())
    assert np.abs(drawn.mean(axis=0) - exact).max() < 6
    weights = np.array([2.0, 5.0, 1.0, 4.0])[:cells]
    column = noise.noisy(exact, bits, 1).count("n", weights, "")
    said = float(column.errors[0])
    assert float((drawn @ weights).std()) == pytest.approx(said, rel=0.06)
    assert np.mean(np.abs(drawn @ weights - exact[0] @ weights) <= column.half[0]) == pytest.approx(0.95, abs=0.015)


def test_a_mean_with_missing_values_errs_no_more_than_without_where_it_is_in_the_middle(tmp_path: Path) -> None:
    table = people(tmp_path, [60.0, None], dp.rows(replace=True))
    sizes = [table.agg(m=dp.mean("x", 0, 120, missing=missing)).preview(epsilon=1) for missing in (None, 0)]
    errors = [preview.columns[0].by_size[2][1] for preview in sizes]
    assert errors[0] == pytest.approx(errors[1], rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize(
    "aggregate",
    [
        dp.count(),
        dp.count("x"),
        dp.sum("x", 0, 3),
        dp.variance("x", 0, 3),
        dp.histogram("x", [0, 1, 3]),
        dp.count_units(),
        dp.count_distinct("i"),
    ],
    ids=lambda aggregate: aggregate.words,
)
def test_rows_of_a_person_without_a_column_move_cells_by_no_more_than_is_charged(
    tmp_path: Path, aggregate: Any, replaced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that two persons with at most two rows may own, beside the rows of others; cells are seen before noise."""
    seen: list[Any] = []

    def unnoised(_: CellNoise, cells: Any, __: Any) -> Any:
        seen.append(np.array(cells))
        return cells

    monkeypatch.setattr(CellNoise, "add", unnoised)
    owned: list[tuple[Any, ...]] = [(), (0.0,), (3.0,), (None,), (0.0, 3.0), (3.0, 3.0), (2.0, None)]
    with dp.Ledger.open(
        tmp_path / "h.ledger", budget=dp.Budget(1000), unit=dp.user("p", replace=replaced), dataset="hospital"
    ) as ledger:
        exact, charged = {}, set()
        for mine in owned:
            rows = [1.0, *mine]
            whole = pa.array([None if x is None else int(x) for x in rows], pa.int64())
            frame = pa.table({"x": pa.array(rows, pa.float64()), "i": whole})
            table = dp.open(frame, ledger=ledger, name="v", unit=dp.rows(per_person=2))
            seen.clear()
            charged.add(table.agg(a=aggregate).release(epsilon=1).receipt.event)
            exact[mine] = np.concatenate([cells.ravel() for cells in seen])
        pairs = [(one, two) for one in owned for two in (owned if replaced else [()])]
        moved = max(int(np.abs(exact[one] - exact[two]).sum()) for one, two in pairs)
    (event,) = charged
    assert isinstance(event, DiscreteLaplace)
    assert 0 < moved <= event.sensitivity


def test_a_number_of_rows_that_depends_on_what_they_hold_is_not_exact(tmp_path: Path) -> None:
    """A filter inside a view, and lines that cannot be read, leave rows out for what is in them."""
    with duckdb.connect(tmp_path / "c.duckdb") as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS i, range % 3 AS ill FROM range(90)")
        connection.execute("CREATE VIEW sick AS SELECT * FROM t WHERE ill = 1")
        connection.execute("CREATE VIEW same AS SELECT * FROM t")
    (tmp_path / "a.csv").write_text("x\n1\n2\n", encoding="utf-8")
    owed = {}
    for name, data in (("sick", "c.duckdb"), ("same", "c.duckdb"), ("t", "c.duckdb"), ("csv", "a.csv")):
        said: dict[str, Any] = {"unit": dp.rows(replace=True), "budget": dp.Budget(1), "name": name}
        said |= {} if name == "csv" else {"table": name}
        with dp.open(tmp_path / data, ledger=tmp_path / f"{name}.ledger", **said) as table:
            owed[name] = table.agg(n=dp.count()).preview(epsilon=0.5).event
    assert [name for name, event in owed.items() if event == NOTHING] == ["same", "t"]

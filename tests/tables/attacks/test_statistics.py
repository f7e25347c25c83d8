"""Statistics in files must not decide what a row is worth: Parquet's leave NaN out, and optimisers believe them."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

import defocus as dp
from defocus.errors import EngineError, QuestionFailedError
from defocus.tables import Table

EXTRA: dict[str, list[float]] = {
    "nobody": [],
    "above": [11.0],
    "below": [-5.0],
    "zero": [-0.0],
    "infinite": [float("inf")],
    "missing": [float("nan")],
}
CONDITIONS = [
    "x < 10",
    "x > 3",
    "NOT x >= 10",
    "x BETWEEN 0 AND 10",
    "x <> 5",
    "x IS NULL",
    "x IS NOT NULL",
    "x = 5",
    "1 / x < 1",
]


def opened(values: Any, where: Path, how: str) -> Table:
    path = where / "x.parquet"
    pq.write_table(pa.table({"id": np.arange(len(values)), "x": values}), path)
    data: Any = path
    more: dict[str, Any] = {}
    if how == "view":
        data = duckdb.connect()
        data.execute("CREATE VIEW v AS SELECT * FROM read_parquet(?)".replace("?", f"'{path}'"))
        more = {"table": "v"}
    if how == "dataset":
        data = pads.dataset(path)
    number = len(list(where.glob("*.ledger")))
    return dp.open(
        data, unit=dp.user("id"), budget=dp.Budget(10**6), ledger=where / f"{number}.ledger", name="x", **more
    )


def truth(values: Any, condition: str) -> int:
    """How many values a condition is true of, NaN being NULL."""
    number = [None if np.isnan(value) else float(value) for value in values]
    rules: dict[str, Any] = {
        "x < 10": lambda x: x < 10,
        "x > 3": lambda x: x > 3,
        "NOT x >= 10": lambda x: x < 10,
        "x BETWEEN 0 AND 10": lambda x: 0 <= x <= 10,
        "x <> 5": lambda x: x != 5,
        "x IS NOT NULL": lambda _: True,
        "x = 5": lambda x: x == 5,
        "1 / x < 1": lambda x: x != 0 and 1 / x < 1,
    }
    if condition == "x IS NULL":
        return number.count(None)
    return sum(1 for x in number if x is not None and rules[condition](x))


WAYS = [("file", "float64"), ("file", "float32"), ("view", "float64"), ("dataset", "float32")]
OTHERS = [("view", "float32"), ("dataset", "float64")]


@pytest.mark.slow
@pytest.mark.parametrize(("how", "kind"), [*WAYS, *(pytest.param(*each, marks=pytest.mark.long) for each in OTHERS)])
@pytest.mark.parametrize("extra", list(EXTRA))
def test_one_row_more_moves_no_other_row(tmp_path: Path, extra: str, how: str, kind: str) -> None:
    values = np.array([5.0, np.nan] * 500 + EXTRA[extra]).astype(kind)
    table = opened(values, tmp_path, how).bound(rows=1)
    for condition in CONDITIONS:
        found = table.where(condition).agg(n=dp.count()).release(epsilon=1000)["n"].values[0]
        assert found == pytest.approx(truth(values, condition), abs=0.1), condition
    asked = table.agg(
        n=dp.count("x"), m=dp.mean("x", 0, 30), h=dp.histogram("x", [0, 4, 6, 30]), q=dp.median("x", 0, 30)
    )
    answer = asked.release(epsilon=10**5)
    known = values[~np.isnan(values)]
    assert answer["n"].values[0] == pytest.approx(len(known), abs=0.1)
    assert answer["m"].values[0] == pytest.approx(np.clip(known, 0, 30).mean(), abs=0.01)
    assert answer["h_4_to_6"].values[0] == pytest.approx(500, abs=0.1)
    assert answer["q"].values[0] == pytest.approx(5, abs=0.1)


MOMENTS = [-(2**63), -(2**63) + 1, 2**63 - 1]
OF_MOMENTS = ["CAST(CAST(x AS TEXT) AS DATE) IS NULL", "CAST(x AS DATE) IS NULL", "x IS NULL", "YEAR(x) > 1"]


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["us", "ns"])
@pytest.mark.parametrize("usual", [1_600_000_000_000_000, -(2**63) + 1])
def test_no_moment_makes_a_question_fail_or_moves_the_others(unit: str, usual: int, tmp_path: Path) -> None:
    """Dictionaries and statistics: DuckDB failed for good on the least moment, or dropped the check of years."""
    seen = []
    for number, extra in enumerate([[], *([moment] for moment in MOMENTS)]):
        values = pa.array([usual] * 200 + extra, pa.int64()).cast(pa.timestamp(unit))
        where = tmp_path / str(number)
        where.mkdir()
        with opened(values, where, "file") as table:
            each_once = table.bound(rows=1)  # noise of at least a half has a chance of exp(-500)
            asked = [each_once.where(each).agg(n=dp.count()).release(epsilon=1000) for each in OF_MOMENTS]
        seen.append([round(float(answer.columns[0].values[0])) for answer in asked])
    assert all(abs(a - b) <= 1 for row in seen[1:] for a, b in zip(row, seen[0], strict=True)), seen


def test_a_database_that_gave_up_refuses_before_the_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fatal(*_: object) -> None:
        raise duckdb.FatalException("gone")

    with opened(np.zeros(3), tmp_path, "file") as table:
        query = table.agg(n=dp.count())
        with monkeypatch.context() as patch:
            patch.setattr(table.rows.engine, "_connection", type("Broken", (), {"sql": fatal})())
            with pytest.raises(QuestionFailedError):
                query.release(epsilon=1)
        charges = len(list(table.ledger.entries()))
        with pytest.raises(EngineError, match="gave up"):
            query.release(epsilon=1)
        assert len(list(table.ledger.entries())) == charges

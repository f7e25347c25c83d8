"""A question is free to preview, charged once, and exact about both."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.waiting import again_and_again

import defocus as dp
from defocus.errors import BudgetExceededError, InvalidParameterError, QuestionFailedError
from defocus.noise.testing import seeded
from defocus.tables.table import Table

ROWS = 4000
DATA = pa.table(
    {
        "u": np.arange(ROWS) // 2,
        "k": np.arange(ROWS) % 4,
        "x": (np.arange(ROWS) % 101) / 10,
        "s": [str(i % 7) for i in range(ROWS)],
    }
)


def opened(where: Path, data: Any = DATA, budget: dp.Budget | None = None) -> Table:
    ledger = where / f"{len(list(where.iterdir()))}.ledger"
    return dp.open(data, unit=dp.user("u"), budget=budget or dp.Budget(1000, 1e-4), ledger=ledger, name="t")


def test_a_preview_is_free_and_its_errors_are_those_of_the_release(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        query = (
            table.bound(rows=2)
            .group_by("k", keys=list(range(4)))
            .agg(
                n=dp.count(),
                s=dp.sum("x", 0, 10),
                m=dp.mean("x", 0, 10),
                p=dp.count_units(),
                d=dp.count_distinct("s", at_most=2),
            )
        )
        before = table.remaining()
        preview = query.preview(epsilon=1)
        assert table.remaining() == before
        answer = query.release(epsilon=1, bits=seeded(1))
        for foreseen, column in zip(preview.columns, answer.columns, strict=True):
            error = foreseen.error if foreseen.error is not None else {rows: e for rows, e, _ in foreseen.by_size}[1000]
            assert np.median(column.errors) == pytest.approx(error, rel=0.05), column.name
        assert answer.receipt.event == query.plan(epsilon=1).event


@pytest.mark.statistical
def test_errors_of_whole_releases_are_those_announced(tmp_path: Path) -> None:
    """1000 public groups of which none has rows are 1000 draws of the noise."""
    keys = list(range(10, 1510))
    with opened(tmp_path) as table:
        for aggregate in (
            dp.count(),
            dp.count_units(),
            dp.count_distinct("s"),
            dp.sum("x", -5, 10),
            dp.histogram("x", [0, 5, 10]),
        ):
            for delta in (None, 1e-6):
                query = table.bound(rows=3).group_by("k", keys=keys).agg(it=aggregate)
                column = query.release(epsilon=2, delta=delta, bits=seeded(2)).columns[0]
                ratio = column.values.std() / column.errors[0]
                assert abs(column.values.mean()) < 4 * column.errors[0] / np.sqrt(len(keys))
                assert 0.9 < ratio < 1.1
                assert not 0.9 < 1.25 * ratio < 1.1
                assert np.mean((column.low <= 0) & (column.high >= 0)) > 0.93


def test_nothing_leans_where_nobody_exceeds_the_bound(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        for by in ("weights", "sampling"):
            query = table.bound(rows=2, by=by).agg(n=dp.count(), s=dp.sum("x", 0, 10), p=dp.count_units())
            answer = query.release(epsilon=500, bits=seeded(3))
            truth = [ROWS, float(np.sum(DATA["x"].to_numpy())), ROWS / 2]
            for column, true in zip(answer.columns, truth, strict=True):
                assert column.low[0] - 0.05 <= true <= column.high[0] + 0.05


def test_a_question_must_ask_something_and_name_it_once(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        with pytest.raises(InvalidParameterError, match="Nothing is asked"):
            table.agg()
        with pytest.raises(InvalidParameterError):
            table.group_by("k", keys=[1]).agg(k=dp.count())
        with pytest.raises(InvalidParameterError):
            table.agg(q_50=dp.count(), q=dp.quantiles("x", [0.5], 0, 1))
        with pytest.raises(InvalidParameterError, match="not something to ask"):
            table.agg(n=3)  # type: ignore[arg-type]  # refused


def test_the_name_of_a_column_does_not_change_its_noise(tmp_path: Path) -> None:
    plans = set()
    with opened(tmp_path) as table:
        for name in ("n", "split 0", "split 1", "bounds of x", "people", "0", "contributions"):
            asked: dict[str, Any] = {name: dp.count_units(), "m": dp.mean("x", bounds="find")}
            plans.add(str(table.agg(**asked).plan(epsilon=1).event))
    assert len(plans) == 1


def test_a_cancelled_question_stays_charged(tmp_path: Path) -> None:
    many = pa.table({"u": np.arange(3_000_000), "k": np.zeros(3_000_000, np.int64), "x": np.ones(3_000_000)})
    with opened(tmp_path, many, dp.Budget(1)) as table:
        query = table.agg(**{f"m{i}": dp.mean(f"x + {i}", 0, 1) for i in range(30)})
        with (
            again_and_again(table.rows.engine.cancel, 0.02),
            pytest.raises(QuestionFailedError, match="cancelled"),
        ):
            query.release(epsilon=0.75)
        with pytest.raises(BudgetExceededError):
            query.release(epsilon=0.5)

"""What a test or a curve needs is refused before the charge, by public facts alone."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import defocus as dp
from defocus.errors import DefocusError, InvalidParameterError, NotDeclaredError
from defocus.tables.table import Table

DATA = pa.table({"u": [1, 2], "g": ["A", "B"], "k": ["x", "y"], "v": [1.0, 2.0]})


def opened(where: Path, unit: Any = None) -> Table:
    ledger = where / f"{len(list(where.iterdir()))}.ledger"
    return dp.open(DATA, unit=unit or dp.user("u"), budget=dp.Budget(10), ledger=ledger, name="t").declare(v=(0, 10))


def test_rows_of_one_person_are_not_independent(tmp_path: Path) -> None:
    with opened(tmp_path).declare(g=["A", "B"]) as table:
        with pytest.raises(InvalidParameterError, match="not independent"):
            table.bound(rows=2).ttest("v", by="g")
        with pytest.raises(InvalidParameterError, match="not independent"):
            table.bound(rows="find").chi2("g")
        bound = table.ttest("v", by="g").bound
        assert bound is not None
        assert bound.total == 1
    with opened(tmp_path, dp.rows(per_person=3)) as table, pytest.raises(NotDeclaredError, match="several"):
        table.ttest("v", mean=5)
    with opened(tmp_path, dp.rows()) as table:
        assert table.ttest("v", mean=5).bound is None


def test_what_a_test_needs_is_refused_by_name(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        known = table.declare(g=["A", "B"], k=["x", "y", "z"])
        wrong: Any
        for wrong in (
            lambda: table.ttest("v"),
            lambda: known.ttest("v", by="g", mean=3),
            lambda: table.ttest("v", by="g"),
            lambda: known.ttest("v", by="k"),
            lambda: known.ttest("v", mean=11),
            lambda: known.ttest("v", by="g", bounds="find"),
            lambda: known.ttest("v", by="g", level=0),
            lambda: known.ttest("k", by="g"),
            lambda: table.chi2("g", "k"),
            lambda: known.chi2("g", "k", expected={"A": 1, "B": 1}),
            lambda: known.chi2("g", expected={"A": 1}),
            lambda: known.chi2("g", expected={"A": 1, "B": 0}),
            lambda: known.chi2("g", "g"),
            lambda: known.declare(k=[str(i) for i in range(201)]).chi2("g", "k"),
            lambda: known.rank_test("v", by="g", steps=1),
            lambda: known.rank_test("v", by="k"),
        ):
            with pytest.raises(DefocusError, match="To fix"):
                wrong()
        assert len(table.ledger.history()) == 1  # that it was opened

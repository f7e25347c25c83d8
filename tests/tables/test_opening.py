"""A table is opened without a look at its rows."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import defocus as dp
from defocus.errors import DefocusError, InvalidParameterError, NotDeclaredError, UnknownColumnError, WrongKindError
from defocus.ledger import Ledger

DATA = pa.table({"u": [1, 2], "x": [1.0, 2.0], "l": [[1], [2]]})


def opened(where: Path, data: Any = DATA, **more: Any) -> Any:
    terms: dict[str, Any] = {"unit": dp.user("u"), "budget": dp.Budget(1), "ledger": where / "t.ledger", "name": "t"}
    return dp.open(data, **terms | more)


def test_the_ledger_outlives_the_table(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        table.agg(n=dp.count()).release(epsilon=0.75)
    with opened(tmp_path) as again, pytest.raises(DefocusError):
        again.agg(n=dp.count()).release(epsilon=0.5)


def test_another_unit_or_budget_does_not_start_anew(tmp_path: Path) -> None:
    opened(tmp_path).close()
    for other in ({"unit": dp.rows()}, {"budget": dp.Budget(2)}, {"unit": dp.user("u", replace=True)}, {"name": "v"}):
        with pytest.raises(DefocusError):
            opened(tmp_path, **other)


def test_a_ledger_that_is_open_says_the_rest(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "a.ledger", budget=dp.Budget(1), unit=dp.user("u"), dataset="t") as ledger:
        assert dp.open(DATA, ledger=ledger).rows.unit == "u"
        with pytest.raises(DefocusError):
            dp.open(DATA, ledger=ledger, unit=dp.rows())


def test_the_person_is_named_by_a_column_that_can(tmp_path: Path) -> None:
    for column, error in (("x", WrongKindError), ("l", WrongKindError), ("nothing", UnknownColumnError)):
        with pytest.raises(error):
            opened(tmp_path, unit=dp.user(column), ledger=tmp_path / f"{column}.ledger")
    with pytest.raises(InvalidParameterError, match="rows or people"):
        opened(tmp_path, unit=dp.edge(), ledger=tmp_path / "edge.ledger")


def test_a_frame_has_no_place_for_its_ledger() -> None:
    with pytest.raises(NotDeclaredError, match="no place of its own"):
        dp.open(DATA, unit=dp.user("u"), budget=dp.Budget(1))


def test_declared_bounds_are_checked_before_anything_is_asked(tmp_path: Path) -> None:
    for i, wrong in enumerate([(1, 1), (2, 1), (0, float("inf")), (2**53, 2**53 + 1), (-1e308, 1e308), "0-1", (0,)]):
        with pytest.raises(DefocusError):
            opened(tmp_path, columns={"x": wrong}, ledger=tmp_path / f"{i}.ledger")

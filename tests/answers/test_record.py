import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.answers.making import charged, column

from defocus.answers.record import asked_in, asked_out, columns_in, columns_out, reading
from defocus.errors import LedgerDamagedError
from defocus.privacy.budgets import Budget


@pytest.mark.parametrize("absolute", [True, False])
def test_columns_come_back_whole_also_where_numbers_are_not_finite(absolute: bool) -> None:
    made = column(values=[1.5, np.nan, -np.inf])
    written = json.loads(json.dumps(columns_out([made]), allow_nan=False))
    assert written[0].pop("absolute") is False
    (back,) = columns_in(written, absolute=absolute)  # as an earlier version wrote it
    for part in ("values", "errors", "low", "high"):
        assert np.array_equal(getattr(back, part), getattr(made, part), equal_nan=True)
    assert (back.name, back.how, back.integral) == (made.name, made.how, made.integral)
    assert back.absolute is absolute


def test_whether_errors_are_absolute_is_written_down() -> None:
    for absolute in (True, False):
        written = columns_out([replace(column(values=[1.5]), absolute=absolute)])
        assert [columns_in(written, absolute=other)[0].absolute for other in (True, False)] == [absolute] * 2


def test_what_was_asked_for_comes_back_and_may_be_missing() -> None:
    asked = Budget(0.5, 1e-7)
    assert asked_in(json.loads(json.dumps(asked_out(asked)))) == asked
    assert asked_in(asked_out(None)) is None


@pytest.mark.parametrize("problem", [KeyError("x"), TypeError("x"), ValueError("x"), AttributeError("x")])
def test_what_is_no_record_is_told_as_such_without_its_text(problem: Exception, tmp_path: Path) -> None:
    receipt = charged(tmp_path)
    refused = pytest.raises(LedgerDamagedError, match="charge 1 is not the answer to a question about a graph")
    with refused as caught, reading(receipt, "a graph"):
        raise problem
    assert caught.value.__cause__ is None

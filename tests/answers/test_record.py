import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.answers.making import charged, column

from defocus.answers import Effect, Released, Rule, Tails
from defocus.answers.record import columns_in, columns_out, read, written
from defocus.errors import LedgerDamagedError
from defocus.ledger import Receipt
from defocus.privacy.budgets import Budget


@pytest.mark.parametrize("absolute", [True, False])
def test_columns_come_back_whole_also_where_numbers_are_not_finite(absolute: bool) -> None:
    made = column(values=[1.5, np.nan, -np.inf])
    kept = json.loads(json.dumps(columns_out([made]), allow_nan=False))
    assert (kept[0].pop("absolute"), kept[0].pop("tails")) == (False, "unknown")
    (back,) = columns_in(kept, absolute=absolute)  # as an earlier version wrote it
    for part in ("values", "errors", "low", "high"):
        assert np.array_equal(getattr(back, part), getattr(made, part), equal_nan=True)
    assert (back.name, back.how, back.integral) == (made.name, made.how, made.integral)
    assert (back.absolute, back.tails) == (absolute, Tails.UNKNOWN)


def test_whether_errors_are_absolute_and_what_the_tails_are_is_written_down() -> None:
    for absolute in (True, False):
        kept = columns_out([replace(column(values=[1.5]), absolute=absolute, tails=Tails.LOG_CONCAVE)])
        assert [columns_in(kept, absolute=other)[0].absolute for other in (True, False)] == [absolute] * 2
        assert columns_in(kept, absolute=absolute)[0].tails is Tails.LOG_CONCAVE


def back(record: Any, receipt: Receipt, **more: Any) -> Released:
    def made(**parts: Any) -> Released:
        return Released(keys={}, **parts)

    return read(record, receipt, "a graph", made, absolute=False, earlier={"at most": Effect.CUT}, **more)


@pytest.mark.parametrize("asked", [None, Budget(0.5, 1e-7)])
def test_an_answer_comes_back_whole(asked: Budget | None, tmp_path: Path) -> None:
    rules = (Rule("plain"), Rule("at least 3", Effect.CUT), Rule("told", Effect.TOLD))
    answer = Released({}, (column(values=[1.5]),), "q", charged(tmp_path), rules, processing=("p",), asked=asked)
    again = back(json.loads(json.dumps(written(answer), allow_nan=False)), answer.receipt)
    assert (again.asked, again.question, again.processing) == (asked, "q", ("p",))
    assert [(rule, rule.effect) for rule in again.rules] == [(rule, rule.effect) for rule in rules]


def test_rules_of_an_earlier_version_are_known_by_their_words(tmp_path: Path) -> None:
    receipt = charged(tmp_path)
    kept = written(Released({}, (column(values=[1.5]),), "q", receipt, (Rule("a"), Rule("at most 3"))))
    del kept["effects"], kept["asked"]
    assert [rule.effect for rule in back(kept, receipt).rules] == [Effect.READ, Effect.CUT]
    assert back(kept, receipt).asked is None


@pytest.mark.parametrize("problem", [{"asked": [1, 2, 3]}, {"rules": [5]}, {"effects": ["x"]}, {"columns": [{}]}, None])
def test_what_is_no_record_is_told_as_such_without_its_text(problem: dict[str, Any] | None, tmp_path: Path) -> None:
    receipt = charged(tmp_path)
    kept = written(Released({}, (column(values=[1.5]),), "q", receipt, (Rule("a"),)))
    if problem is not None and "rules" in problem:
        del kept["effects"]
    refused = pytest.raises(LedgerDamagedError, match="charge 1 is not the answer to a question about a graph")
    with refused as caught:
        back(None if problem is None else {**kept, **problem}, receipt)
    assert caught.value.__cause__ is None

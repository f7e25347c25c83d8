"""Refusals of the workloads room: what they say, and how they say to mend it."""

from pathlib import Path

import numpy as np
import pytest

from defocus import Budget, rows
from defocus import workloads as w
from defocus.errors import MismatchedDomainError, UnanswerableWorkloadError
from defocus.ledger import Ledger


def test_a_table_of_records_taken_for_a_histogram_is_told_how_to_be_passed(tmp_path: Path) -> None:
    plan = w.plan(w.marginals([3, 4], ways=1), Budget(1))
    with Ledger.open(tmp_path / "people.ledger", budget=Budget(1), unit=rows(), dataset="people") as ledger:
        with pytest.raises(MismatchedDomainError, match=r"domain \(5, 2\), but \(3, 4\) is needed") as caught:
            plan.release(np.zeros((5, 2), np.int64), ledger=ledger, purpose="both tables")
        assert "workloads.records(codes)" in caught.value.fix
        plan.release(w.records(np.zeros((5, 2), np.int64)), ledger=ledger, purpose="both tables")


def test_a_strategy_that_leaves_a_question_open_is_told_what_to_add() -> None:
    with pytest.raises(UnanswerableWorkloadError, match="rank 1 over 3 cells") as caught:
        w.plan(w.prefix(3), Budget(1), strategy=w.strategy([[1, 1, 1]]))
    assert "add rows to the strategy" in caught.value.fix
    assert "ask for sums of its answers only" in caught.value.fix

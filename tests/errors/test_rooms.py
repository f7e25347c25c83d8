"""Refusals of the workloads room: what they say, and how they say to mend it."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from defocus import Budget, errors, rows
from defocus import workloads as w
from defocus.errors import (
    DefocusError,
    InvalidParameterError,
    MismatchedDomainError,
    MismatchedOracleError,
    NotShuffledError,
    OutOfDomainError,
    SealError,
    UnanswerableWorkloadError,
    UnknownTargetError,
    UnreadableDescriptionError,
)
from defocus.ledger import Ledger


@pytest.mark.parametrize(
    "error",
    [
        OutOfDomainError("5 categories", rule="outside='other'"),
        MismatchedOracleError("Reports", "00ff", "ff00"),
        UnreadableDescriptionError("it is empty"),
    ],
)
def test_every_refusal_says_what_to_do_and_survives_a_process(error: DefocusError) -> None:
    assert isinstance(error, ValueError)
    assert "\nTo fix: " in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301 - our own error


def test_refusals_say_what_happened_and_how_to_mend_it() -> None:
    refused = NotShuffledError("secure aggregation", "only a sum is shown", "charge the local event.")
    assert str(refused) == (
        "There is no amplification by shuffling in secure aggregation: only a sum is shown.\n"
        "To fix: charge the local event."
    )
    assert isinstance(refused, InvalidParameterError)
    assert str(SealError("A batch")).startswith("A batch could not be opened.\nTo fix: ")
    assert isinstance(SealError("A batch"), DefocusError)


def test_a_table_of_records_taken_for_a_histogram_is_told_how_to_be_passed(tmp_path: Path) -> None:
    plan = w.plan(w.marginals([3, 4], ways=1), epsilon=1)
    with Ledger.open(tmp_path / "people.ledger", budget=Budget(1), unit=rows(), dataset="people") as ledger:
        with pytest.raises(MismatchedDomainError, match=r"domain \(5, 2\), but \(3, 4\) is needed") as caught:
            plan.release(np.zeros((5, 2), np.int64), ledger=ledger, purpose="both tables")
        assert "workloads.records(codes)" in caught.value.fix
        plan.release(w.records(np.zeros((5, 2), np.int64)), ledger=ledger, purpose="both tables")


def test_a_strategy_that_leaves_a_question_open_is_told_what_to_add() -> None:
    with pytest.raises(UnanswerableWorkloadError, match="rank 1 over 3 cells") as caught:
        w.plan(w.prefix(3), epsilon=1, strategy=w.strategy([[1, 1, 1]]))
    assert "add rows to the strategy" in caught.value.fix
    assert "ask for sums of its answers only" in caught.value.fix


@pytest.mark.parametrize(
    ("kind", "root"),
    [
        (errors.UnfitModelError, errors.InvalidParameterError),
        (errors.DependentExamplesError, errors.UnfitModelError),
        (errors.UnaccountedSamplingError, errors.InvalidParameterError),
        (errors.TrainingEndedError, errors.DefocusError),
        (errors.CheckpointError, errors.DefocusError),
        (errors.BranchedRunError, errors.DefocusError),
        (errors.LostProcessError, errors.DefocusError),
        (errors.StepFailedError, errors.DefocusError),
        (errors.ChangedModelError, errors.DefocusError),
    ],
)
def test_each_has_its_place_and_survives_pickling(
    kind: type[errors.DefocusError], root: type[errors.DefocusError]
) -> None:
    error = kind("It is so.", fix="mend it.")
    assert isinstance(error, root)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - made here
    assert str(again) == "It is so.\nTo fix: mend it."


def test_an_unknown_target_names_its_neighbours() -> None:
    error = UnknownTargetError("laplacian", ["laplace", "gaussian", "broken/nan"])
    assert "'laplacian'" in str(error)
    assert "To fix: choose one of the 3 names of audit.targets(), for example laplace" in str(error)


def test_a_hostile_name_is_shortened_and_quoted() -> None:
    text = str(UnknownTargetError("x\n" * 1000, ["laplace"]))
    assert len(text) < 300
    assert "\\n" in text


def test_it_survives_pickling() -> None:
    error = UnknownTargetError("a", ["laplace"])
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301  # our own bytes


def test_a_name_that_sql_cut_at_a_hyphen_is_found_again() -> None:
    told = str(errors.UnknownColumnError("education", ["age", "education-num"]))
    assert "did you mean 'education-num'? In SQL, write it in double quotes." in told

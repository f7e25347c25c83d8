from functools import partial
from pathlib import Path
from typing import Any

import pytest

from defocus import privacy
from defocus.errors import BudgetExceededError, InvalidParameterError
from defocus.ledger import Ledger
from defocus.mechanisms import (
    AboveThreshold,
    Exponential,
    Laplace,
    Mechanism,
    PartitionSelection,
    PermuteAndFlip,
    Quantiles,
    RandomizedResponse,
    RangeFinding,
    ReportNoisyMax,
)
from defocus.privacy.budgets import Budget
from defocus.privacy.units import rows
from defocus.release import release
from defocus.release.checks import checked_mechanism, checked_neighbours

MONOTONE: list[tuple[Mechanism, Mechanism]] = [
    (kind(epsilon=1, candidates=2, monotone=True), kind(epsilon=1, candidates=2))
    for kind in (Exponential, PermuteAndFlip, ReportNoisyMax)
] + [
    (AboveThreshold(epsilon=1, threshold=3, monotone=True), AboveThreshold(epsilon=1, threshold=3)),
]


@pytest.mark.parametrize(("halved", "full"), MONOTONE, ids=lambda m: type(m).__name__)
def test_half_the_noise_for_monotone_utilities_is_refused_where_a_unit_is_replaced(
    halved: Mechanism, full: Mechanism, tmp_path: Path
) -> None:
    """One person moving from one candidate to another raises one count and lowers the other."""
    with Ledger.open(tmp_path / "a.ledger", budget=Budget(2), unit=rows(replace=True), dataset="votes") as book:
        with pytest.raises(InvalidParameterError, match="some can rise while others fall") as refusal:
            release(halved, [5, 2], ledger=book, purpose="best")
        assert "monotone=False" in refusal.value.fix
        assert len(book) == 1  # nothing was charged
        release(full, [5, 2], ledger=book, purpose="best")
    with Ledger.open(tmp_path / "b.ledger", budget=Budget(2), unit=rows(), dataset="votes") as book:
        release(halved, [5, 2], ledger=book, purpose="best")
        assert len(book) == 3


def test_an_event_or_a_class_in_place_of_a_mechanism_is_named_as_one() -> None:
    with pytest.raises(InvalidParameterError, match=r"got the event privacy\.Laplace"):
        checked_mechanism(privacy.Laplace(20), None)
    with pytest.raises(InvalidParameterError, match="got the class Laplace"):
        checked_mechanism(Laplace, None)


def test_a_list_of_reports_is_refused_where_its_length_shows_who_is_there(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "a.ledger", budget=Budget(2), unit=rows(), dataset="votes") as book:
        with pytest.raises(InvalidParameterError, match="number itself would show") as refusal:
            release(RandomizedResponse(epsilon=1), [0, 1, 1], ledger=book, purpose="vote")
        assert "replace=True" in refusal.value.fix
        assert len(book) == 1
        release(RandomizedResponse(epsilon=1), 1, ledger=book, purpose="one person's vote")
    with Ledger.open(tmp_path / "b.ledger", budget=Budget(2), unit=rows(replace=True), dataset="votes") as book:
        assert len(release(RandomizedResponse(epsilon=1), [0, 1, 1], ledger=book, purpose="vote").value) == 3


@pytest.mark.parametrize("secret", [0, 1, 2, 137, -5])
def test_no_refusal_tells_which_category_someone_is_in(secret: int, tmp_path: Path) -> None:
    """A refusal that depends on the value could be asked for again and again, for nothing."""
    with Ledger.open(tmp_path / "a.ledger", budget=Budget(1), unit=rows(), dataset="votes") as book:
        with pytest.raises(BudgetExceededError):
            release(RandomizedResponse(epsilon=10, categories=3), secret, ledger=book, purpose="probe")
        assert release(RandomizedResponse(epsilon=1, categories=3), secret, ledger=book, purpose="vote").value in {
            0,
            1,
            2,
        }


@pytest.mark.parametrize(
    "kind",
    [
        partial(Quantiles, levels=(0.5,), epsilon=1, buckets=4),
        partial(RangeFinding, epsilon=1, smallest=0, largest=2),
        partial(PartitionSelection, epsilon=1, delta=1e-6),
    ],
    ids=["quantiles", "ranges", "keys"],
)
def test_noise_for_units_that_come_or_go_is_refused_where_one_is_replaced(kind: Any) -> None:
    with pytest.raises(InvalidParameterError, match="made for units added") as refusal:
        checked_neighbours(kind(), [1, 2, 3, 4], rows(replace=True))
    assert "replace=True" in refusal.value.fix
    checked_neighbours(kind(replace=True), [1, 2, 3, 4], rows(replace=True))
    checked_neighbours(kind(), [1, 2, 3, 4], rows())

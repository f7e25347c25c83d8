import json
import math
import sqlite3
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from defocus import privacy
from defocus.errors import (
    BudgetExceededError,
    DefocusError,
    InvalidParameterError,
    LedgerUnavailableError,
    NotBitsError,
    NotRecordedError,
    ReleaseFailedError,
)
from defocus.ledger import Ledger, Parts
from defocus.mechanisms import (
    AboveThreshold,
    Exponential,
    Gaussian,
    Grid,
    Laplace,
    Mechanism,
    PartitionSelection,
    PermuteAndFlip,
    Quantiles,
    RandomizedResponse,
    RangeFinding,
    ReportNoisyMax,
)
from defocus.noise import Bits
from defocus.noise.testing import seeded
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event, Pure
from defocus.privacy.units import rows
from defocus.release import Release, release
from defocus.release.release import checked_mechanism, checked_neighbours


class WatchedBits(Bits):
    """Looks into the ledger's file each time a random bit is drawn."""

    __slots__ = ("charges_seen", "inner", "where")

    def __init__(self, where: str) -> None:
        self.where = where
        self.inner = seeded(1)
        self.charges_seen: list[int] = []

    def _look(self) -> None:
        connection = sqlite3.connect(self.where)
        self.charges_seen += connection.execute("SELECT count(*) FROM ledger_entries WHERE kind = 'charge'").fetchone()
        connection.close()

    def words(self, n: int) -> Any:
        self._look()
        return self.inner.words(n)

    def integer(self, nbits: int) -> int:
        self._look()
        return self.inner.integer(nbits)


@dataclass(frozen=True)
class Failing:
    """A mechanism that fails while it holds private data."""

    error: float = 1.0

    @property
    def event(self) -> Event:
        return Pure(0.5)

    def interval(self, confidence: float) -> float:
        return confidence

    def check(self, value: Any) -> None:
        """Accept anything."""

    def sample(self, value: Any, bits: Bits | None = None) -> Any:
        raise ValueError(f"private value {value} with {bits}")


class Noisy:
    """A mechanism that owes what another does, and does not tell its parameters."""

    event, error, interval = Laplace(scale=4).event, Laplace(scale=4).error, staticmethod(Laplace(scale=4).interval)
    check, sample = staticmethod(Laplace(scale=4).check), staticmethod(Laplace(scale=4).sample)


def kinds(ledger: Ledger) -> list[str]:
    return [entry.kind for entry in ledger.entries()]


def test_a_release_carries_value_event_error_interval_and_receipt(ledger: Ledger) -> None:
    mechanism = Laplace(scale=2)
    found = release(mechanism, 1041, ledger=ledger, purpose="number of visits", who="Ada", bits=seeded(3))
    assert found.value == mechanism.sample(1041, seeded(3))
    assert (found.event, found.error, found.interval) == (mechanism.event, mechanism.error, mechanism.interval(0.95))
    assert found.receipt.purpose == "number of visits"
    assert kinds(ledger) == ["genesis", "charge", "release"]
    assert ledger.verify().ok


def test_the_charge_is_on_disk_before_the_first_random_bit_is_drawn(ledger: Ledger) -> None:
    bits = WatchedBits(ledger.where)
    release(Laplace(scale=2), 7, ledger=ledger, purpose="count", bits=bits)
    assert bits.charges_seen
    assert set(bits.charges_seen) == {1}


def test_a_refused_release_draws_no_bit_and_charges_nothing(ledger: Ledger) -> None:
    bits = WatchedBits(ledger.where)
    with pytest.raises(BudgetExceededError):
        release(Laplace(scale=0.01), 7, ledger=ledger, purpose="count", bits=bits)
    assert bits.charges_seen == []
    assert kinds(ledger) == ["genesis"]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"mechanism": None}, InvalidParameterError),
        ({"mechanism": Laplace}, InvalidParameterError),
        ({"mechanism": "laplace"}, InvalidParameterError),
        ({"value": 1.5}, DefocusError),
        ({"value": float("nan")}, DefocusError),
        ({"value": "7"}, DefocusError),
        ({"value": True}, DefocusError),
        ({"value": []}, DefocusError),
        ({"value": None}, DefocusError),
        ({"bits": 42}, NotBitsError),
        ({"bits": np.random.default_rng(1)}, NotBitsError),
        ({"grid": 0.5}, InvalidParameterError),
        ({"ledger": "visits.ledger"}, InvalidParameterError),
        ({"purpose": ""}, InvalidParameterError),
        ({"purpose": "two\nlines"}, InvalidParameterError),
        ({"who": "\x1b[31m"}, InvalidParameterError),
        ({"request": ""}, InvalidParameterError),
    ],
)
def test_what_is_wrong_in_public_is_refused_free_of_charge(
    ledger: Ledger, change: dict[str, Any], kind: type[DefocusError]
) -> None:
    given: dict[str, Any] = {"mechanism": Laplace(scale=2), "value": 7, "ledger": ledger, "purpose": "count"} | change
    with pytest.raises(kind, match="To fix"):
        release(given.pop("mechanism"), given.pop("value"), **given)
    assert kinds(ledger) == ["genesis"]


def test_a_grid_does_not_go_with_a_choice(ledger: Ledger) -> None:
    with pytest.raises(InvalidParameterError, match="does not release a number"):
        release(Exponential(epsilon=1, candidates=3), [1, 2, 3], ledger=ledger, purpose="best", grid=Grid("0.5"))
    assert kinds(ledger) == ["genesis"]


def test_a_failure_after_the_charge_keeps_the_charge_and_tells_nothing(ledger: Ledger) -> None:
    with pytest.raises(ReleaseFailedError) as failed:
        release(Failing(), 123456789, ledger=ledger, purpose="count")
    assert failed.value.charge == 1
    assert "123456789" not in str(failed.value)
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None
    assert kinds(ledger) == ["genesis", "charge"]


@pytest.mark.parametrize("pair", [(0, 1), (1, 2), (2**63 - 2, 2**63 - 1), (-(2**63), -(2**63) + 1)])
def test_neighbouring_values_meet_the_same_outcome_and_the_same_charge(ledger: Ledger, pair: tuple[int, int]) -> None:
    before = ledger.anchor().sequence
    for value in pair:
        release(Laplace(scale=100), value, ledger=ledger, purpose="count")
    charges = [entry for entry in ledger.entries() if entry.kind == "charge"]
    assert ledger.anchor().sequence == before + 4
    assert charges[0].content["cost"] == charges[1].content["cost"]


def test_a_value_that_could_not_be_recorded_is_handed_over_in_the_error(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: Any, **_options: Any) -> None:
        raise LedgerUnavailableError("The disk is full.", fix="make room.")

    monkeypatch.setattr(Ledger, "record", full)
    with pytest.raises(NotRecordedError, match="The disk is full") as failed:
        release(Laplace(scale=2), 7, ledger=ledger, purpose="count")
    assert isinstance(failed.value.release, Release)
    assert kinds(ledger) == ["genesis", "charge"]


def test_a_repeated_request_gets_the_recorded_answer_free_of_charge(ledger: Ledger) -> None:
    mechanism = Gaussian(sigma=30, sensitivity=1, dimension=3)
    first = release(mechanism, [1, 2, 3], ledger=ledger, purpose="count", request="by year", grid=Grid("0.5"))
    bits = WatchedBits(ledger.where)
    again = release(mechanism, [9, 9, 9], ledger=ledger, purpose="x", request="by year", grid=Grid("0.5"), bits=bits)
    assert again.value.tolist() == first.value.tolist()
    assert again.receipt == first.receipt
    assert bits.charges_seen == []
    assert kinds(ledger) == ["genesis", "charge", "release"]


def test_a_recorded_answer_is_not_given_out_for_other_noise(ledger: Ledger) -> None:
    release(Laplace(scale=2), 7, ledger=ledger, purpose="count", request="count")
    with pytest.raises(InvalidParameterError, match="other noise"):
        release(Laplace(scale=3), 7, ledger=ledger, purpose="count", request="count")


def test_a_recorded_answer_is_not_given_out_for_another_mechanism_or_grid_that_owes_the_same(ledger: Ledger) -> None:
    first = release(Noisy(), 7, ledger=ledger, purpose="count", request="count")
    for mechanism, grid in ((Laplace(scale=4), None), (Noisy(), Grid("0.5"))):
        assert mechanism.event == first.event
        with pytest.raises(InvalidParameterError, match="to another question"):
            release(mechanism, 7, ledger=ledger, purpose="count", request="count", grid=grid)
    assert release(Noisy(), 9, ledger=ledger, purpose="count", request="count").value == first.value


def test_a_recorded_answer_about_one_part_is_not_given_out_for_another(tmp_path: Path) -> None:
    days = Parts("day", "date", "rows")
    with Ledger.open(tmp_path / "a", budget=Budget(5), unit=rows(), dataset="visits", parts=days) as book:
        first, second = book.about("2026-11-15", "2026-11-14"), book.about("2026-11-16")
        found = release(Laplace(scale=4), 7, ledger=first, purpose="count", request="count")
        for other in (second, book):
            with pytest.raises(InvalidParameterError, match="to another question"):
                release(Laplace(scale=4), 7, ledger=other, purpose="count", request="count")
        assert release(Laplace(scale=4), 9, ledger=first, purpose="count", request="count").value == found.value


def test_an_answer_that_an_older_version_recorded_is_found_by_the_description_of_its_mechanism(ledger: Ledger) -> None:
    receipt = ledger.charge(Laplace(scale=4).event, purpose="count", request="count")
    ledger.record(receipt, 12, description="Laplace(scale=4, sensitivity=1)", keep=True)
    assert release(Laplace(scale=4), 9, ledger=ledger, purpose="count", request="count").value == 12
    with pytest.raises(InvalidParameterError, match="to another question"):
        release(Laplace(scale=8, sensitivity=2), 9, ledger=ledger, purpose="count", request="count")


def test_a_mechanism_that_does_not_tell_its_parameters_is_recalled_by_its_type(ledger: Ledger) -> None:
    first = release(Noisy(), 7, ledger=ledger, purpose="count", request="count")
    assert release(Noisy(), 9, ledger=ledger, purpose="count", request="count").value == first.value


def test_the_grid_brings_value_error_and_interval_to_the_units_of_the_data(ledger: Ledger) -> None:
    mechanism, grid = Laplace(scale=4), Grid("0.25")
    found = release(mechanism, [400, 800], ledger=ledger, purpose="sums", grid=grid, bits=seeded(5))
    np.testing.assert_array_equal(found.value, mechanism.sample([400, 800], seeded(5)) / 4)
    assert found.error == mechanism.error / 4
    assert found.interval == mechanism.interval(0.95) / 4


@pytest.mark.parametrize(
    ("mechanism", "value", "accuracy"),
    [
        (Exponential(epsilon=0.5, candidates=3), [5, 1, 0], "in the utility of what was chosen"),
        (RandomizedResponse(epsilon=0.5, categories=4), 2, "a report is not the truth with probability 0.6453"),
        (AboveThreshold(epsilon=0.5, threshold=10), [1, 2, 30], "one comparison is off by"),
    ],
)
def test_choices_are_released_recorded_and_kept_too(ledger: Ledger, mechanism: Any, value: Any, accuracy: str) -> None:
    found = release(mechanism, value, ledger=ledger, purpose="choice", request="once")
    assert "choice" in str(found)
    assert accuracy in found.explain()
    assert json.dumps(found.to_dict())
    assert ledger.recall("once") is not None
    assert ledger.verify().ok


def one(ledger: Ledger, purpose: str = "number of visits") -> Release:
    return release(Laplace(scale=2), 1041, ledger=ledger, purpose=purpose, who="Ada", bits=seeded(3))


def test_explain_says_what_was_protected_how_well_by_what_and_at_which_cost(ledger: Ledger) -> None:
    text = one(ledger).explain()
    for words in (
        "number of visits (Ada",
        "everything about one patient_id, added or removed, in ward visits",
        "epsilon 0.5 for this release alone",
        "by at most 1.649",
        "at most 62.2 %",
        "Laplace(scale=2, sensitivity=1)",
        "entry 1 of the ledger",
        "one release of epsilon 2.5",
        "Budget(epsilon=3, delta=1e-06)",
    ):
        assert words in text


def test_the_odds_of_a_pure_release_are_e_to_the_epsilon(ledger: Ledger) -> None:
    promised = one(ledger).promise()
    assert promised.epsilon == 0.5
    assert promised.delta == 0
    assert math.isclose(promised.odds, math.exp(0.5), rel_tol=1e-9)


def test_a_gaussian_release_names_its_delta_and_the_chance_of_exception(ledger: Ledger) -> None:
    found = release(Gaussian(sigma=10), 5, ledger=ledger, purpose="count")
    assert found.promise().delta == 1e-6
    assert "except with probability 1e-06" in found.explain()


def test_a_release_is_json_and_a_page_without_markup_from_its_purpose(ledger: Ledger) -> None:
    found = one(ledger, "<script>alert(1)</script>")
    assert json.loads(json.dumps(found.to_dict()))["value"] == found.value
    page = found._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_str_is_one_line_with_the_interval(ledger: Ledger) -> None:
    assert str(one(ledger)) == "1046 ± 6 (95 %), number of visits"


def test_the_position_of_a_choice_is_called_one(ledger: Ledger) -> None:
    found = release(Exponential(epsilon=0.5, candidates=2), [900, 0], ledger=ledger, purpose="most common")
    assert "value:       0 (the position of what was chosen, counted from 0)" in found.explain()
    assert "position" not in one(ledger).explain()


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

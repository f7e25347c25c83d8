from pathlib import Path

import pytest

from defocus import Budget, Ledger, edge, user
from defocus.errors import BudgetExceededError, InvalidParameterError, UnsupportedEventError
from defocus.local import Mean, Oracle, attributes, mean, oracle
from defocus.local.domains import Categories, Interval
from defocus.local.frequent_strings import HeavyHitters
from defocus.local.shuffling import MultiMessageHistogram, MultiMessageSum
from defocus.local.surveys import Asked, collect, collection_event
from defocus.privacy import account, events


def opened(folder: Path, *, replace: bool = True) -> Ledger:
    unit = user("phone", replace=replace)
    return Ledger.open(folder / f"{replace}.db", budget=Budget(3, 1e-5), unit=unit, dataset="phones")


def test_reports_of_one_person_add_up_on_the_ledger(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    collect(oracle("oue", 10, 1), ledger=ledger, purpose="colours", reports=2)
    collect(mean("hybrid", 0, 24, 1), ledger=ledger, purpose="hours")
    with pytest.raises(BudgetExceededError):
        collect(attributes({"a": 2}, 1), ledger=ledger, purpose="once more")
    assert len(list(ledger.entries())) >= 2


def test_the_ledger_notes_who_collects(tmp_path: Path) -> None:
    assert collect(oracle("GRR", 10, 1), ledger=opened(tmp_path), purpose="colours", who="ada").who == "ada"


def test_devices_that_remember_pay_for_values_and_not_for_reports() -> None:
    daily = mean("duchi", 0, 24, 1)
    assert account(collection_event(daily, reports=365), method="basic").epsilon(0) == pytest.approx(365)
    assert account(collection_event(daily, reports=365, values=1), method="basic").epsilon(0) == pytest.approx(1)
    assert collection_event(oracle("rappor", 5, 2), reports=10**6, values=1) == events.Pure(2)
    with pytest.raises(InvalidParameterError, match="add up"):
        collection_event(oracle("oue", 5, 2), reports=10, values=1)
    with pytest.raises(InvalidParameterError):
        collection_event(HeavyHitters("ab", 3, 1), reports=10, values=1)


@pytest.mark.parametrize(
    "asked", [mean("duchi", 0, 24, 1), oracle("d-bit", 5, 1), oracle("rappor", 5, 1)], ids=["duchi", "d-bit", "rappor"]
)
def test_values_that_change_are_not_charged_as_if_nobody_saw_when(asked: Oracle | Mean) -> None:
    """0, 24, 0, 24 and 0, 0, 24, 24 take two values each, and have reports that the other cannot have."""
    with pytest.raises(InvalidParameterError, match=r"show when a value changes.*\n?.*charge every report"):
        collection_event(asked, reports=4, values=2)
    for yes in (1, "yes", None):
        with pytest.raises(InvalidParameterError, match="show when"):
            collection_event(asked, reports=4, values=2, changes_are_public=yes)  # type: ignore[arg-type]  # no bool


@pytest.mark.parametrize("asked", [mean("duchi", 0, 24, 1), oracle("d-bit", 5, 1)], ids=["duchi", "d-bit"])
def test_which_bits_change_tells_the_values_even_where_the_moments_are_public(asked: Oracle | Mean) -> None:
    with pytest.raises(InvalidParameterError, match="show when"):
        collection_event(asked, reports=4, values=2, changes_are_public=True)


def test_public_moments_of_change_are_said_on_the_receipt(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    receipt = collect(
        oracle("rappor", 5, 1),
        ledger=ledger,
        purpose="pages",
        reports=365,
        values=2,
        changes_are_public=True,
    )
    assert receipt.event == 2 * events.Pure(1)
    assert receipt.purpose == "pages"
    asked = list(ledger.entries())[receipt.sequence].content["question"]
    assert asked == "local reports, 365 a person, at most 2 values, whose moments of change are public"


def test_persons_who_are_added_or_removed_may_report_where_taking_part_is_public(tmp_path: Path) -> None:
    ledger = opened(tmp_path, replace=False)
    receipt = collect(oracle("k-rr", 5, 1), ledger=ledger, purpose="pages", participation="public")
    assert receipt.event == events.RandomizedResponse(1, 6)
    assert "takes part is public" in list(ledger.entries())[receipt.sequence].content["question"]
    for silent in (oracle("k-rr", ["a", "b"], 1, outside="refuse"), mean("duchi", 0, 1, 1, outside="refuse")):
        with pytest.raises(InvalidParameterError, match="would send nothing"):
            collect(silent, ledger=ledger, purpose="pages", participation="public")
    with pytest.raises(InvalidParameterError, match="participation"):
        collect(oracle("k-rr", 5, 1), ledger=ledger, purpose="pages", participation="secret")


def test_a_ledger_of_edges_or_rows_has_no_persons_who_report(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "e", budget=Budget(1), unit=edge(), dataset="e") as ledger:  # noqa: SIM117
        with pytest.raises(InvalidParameterError, match="about persons"):
            collect(oracle("k-rr", 5, 1), ledger=ledger, purpose="pages", participation="public")


def test_a_ledger_of_persons_added_or_removed_is_refused_for_all_collections(tmp_path: Path) -> None:
    """Whoever carries the messages sees who takes part."""
    ledger = opened(tmp_path, replace=False)
    histogram = MultiMessageHistogram(Categories.of(4), 1000, 1, 1e-6)
    total = MultiMessageSum(Interval(0, 1), 1000, 1, 1e-6)
    asked: list[Asked] = [oracle("k-rr", 5, 1), mean("laplace", 0, 1, 1), HeavyHitters("ab", 3, 1), histogram, total]
    for each in asked:
        with pytest.raises(InvalidParameterError, match=r"who takes part[^\n]*\nTo fix: .*replace=True"):
            collect(each, ledger=ledger, purpose="x")
    for protocol in (histogram, total):
        with pytest.raises(UnsupportedEventError, match="replace=True"):
            ledger.charge(protocol.event, purpose="around collect")
    assert len(list(ledger.entries())) == 1
    kept = opened(tmp_path)
    collect(histogram, ledger=kept, purpose="histogram")
    assert kept.remaining().epsilon == pytest.approx(2)


def test_every_kind_of_collection_has_an_event() -> None:
    for asked in (
        oracle("pgr", 50, 1),
        mean("laplace", 0, 1, 1),
        attributes({"a": 3, "b": 4}, 1),
        HeavyHitters("ab", 3, 1),
    ):
        assert account(collection_event(asked), method="basic").epsilon(0) == pytest.approx(1)
    with pytest.raises(InvalidParameterError):
        collection_event(oracle("pgr", 50, 1), reports=0)

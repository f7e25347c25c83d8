from pathlib import Path
from typing import Any

import numpy as np
import pytest

from defocus import Budget, Ledger, edge, user
from defocus.errors import BudgetExceededError, InvalidParameterError, OutOfDomainError, UnsupportedEventError
from defocus.local import Attributes, Mean, Oracle, attributes, changing, mean, oracle
from defocus.local.domains import Categories, Interval
from defocus.local.frequent_strings import HeavyHitters
from defocus.local.shuffling import Crowds, Key, MultiMessageHistogram, MultiMessageSum, Round
from defocus.local.surveys import Asked, collect, collection_event
from defocus.noise.testing import seeded
from defocus.privacy import account, events


def people(n: int) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    sex = rng.integers(0, 2, n)
    age = np.minimum(rng.poisson(2 + sex, n), 5)
    return {"sex": sex, "age": age, "town": rng.integers(0, 4, n)}


@pytest.mark.statistical
@pytest.mark.parametrize("how", ["each", "pairs", "joint"])
def test_tables_are_unbiased_and_their_errors_are_the_stated_ones(how: Any) -> None:
    columns = people(6000)
    asked, bits = attributes({"sex": 2, "age": 6, "town": 4}, 2, how=how, outside="refuse"), seeded(7)
    wanted = ("age",) if how == "each" else ("age", "sex")
    sizes = {"age": 6, "sex": 2}
    cells = np.ravel_multi_index([columns[name] for name in wanted], [sizes[name] for name in wanted])
    true = np.bincount(cells, minlength=6 if how == "each" else 12)
    estimates = [asked.table(asked.encode(columns, bits), wanted) for _ in range(60)]
    z = np.array([(each.counts - true) / each.errors for each in estimates])
    assert abs(z.mean(axis=0)).max() < 4.5 / np.sqrt(60)
    assert (z**2).mean() == pytest.approx(1, abs=0.25)
    assert estimates[0].reports == 6000


def test_a_person_pays_epsilon_however_many_attributes_there_are() -> None:
    assert attributes({f"a{i}": 3 for i in range(10)}, 1, how="pairs").event == events.Pure(1)
    assert len(attributes({f"a{i}": 3 for i in range(10)}, 1, how="pairs").oracles) == 45


def test_one_attribute_needs_no_set() -> None:
    assert list(attributes({"a": 3}, 1, how="pairs").oracles) == [("a",)]


@pytest.mark.parametrize(
    ("domains", "how"), [({}, "each"), ([2, 3], "each"), ({"a": 2}, "some"), ({"a": 1 << 12, "b": 1 << 12}, "joint")]
)
def test_descriptions_without_meaning_are_refused(domains: Any, how: Any) -> None:
    with pytest.raises(InvalidParameterError):
        attributes(domains, 1, how=how)


def test_columns_are_complete_and_of_one_length() -> None:
    asked = attributes({"a": 3, "b": 3}, 1)
    with pytest.raises(InvalidParameterError, match="b is missing"):
        asked.encode({"a": [1]})
    with pytest.raises(InvalidParameterError, match=r"differ in length\.\nTo fix: give one value of every attribute"):
        asked.encode({"a": [1], "b": [1, 2]})
    with pytest.raises(OutOfDomainError):
        attributes({"a": 3, "b": 3}, 1, outside="refuse").encode({"a": [1], "b": [3]})


def test_a_table_that_was_not_asked_about_is_refused() -> None:
    asked = attributes({"a": 3, "b": 3}, 1)
    tables = asked.encode({"a": [1] * 50, "b": [2] * 50}, seeded(1))
    for names in (("a", "b"), ("c",), ("a", "a"), ()):
        with pytest.raises(InvalidParameterError, match="asked about"):
            asked.table(tables, names)
    assert len(asked.table(tables, "a")) == 4


@pytest.mark.statistical
def test_who_is_asked_about_what_is_part_of_the_error() -> None:
    """At a large epsilon reports have hardly any noise, and the choice of people is all that is left."""
    columns, bits = people(3000), seeded(8)
    asked = attributes({"sex": 2, "age": 6, "town": 4}, 12, outside="refuse")
    true = np.bincount(columns["town"], minlength=4)
    estimates = [asked.table(asked.encode(columns, bits), "town") for _ in range(100)]
    z = np.array([(each.counts - true) / each.errors for each in estimates])
    assert (z**2).mean() == pytest.approx(1, abs=4 * np.sqrt(2 / z.size))


def test_an_oracle_that_costs_more_or_asks_another_question_is_refused() -> None:
    known = {"a": Categories(3), "b": Categories(2)}
    assert Attributes(known, 1, {("a", "b"): oracle("k-rr", 6, 1, outside="refuse")}).epsilon == 1
    for names, asked in (
        (("a",), oracle("k-rr", 3, 32, outside="refuse")),
        (("a",), oracle("k-rr", 4, 1, outside="refuse")),
        (("a",), oracle("k-rr", Categories(3), 1)),
        (("a", "b"), oracle("k-rr", 5, 1, outside="refuse")),
        (("c",), oracle("k-rr", 3, 1, outside="refuse")),
        (("a", "a"), oracle("k-rr", 9, 1, outside="refuse")),
        (("a",), oracle("k-rr", ["x", "y", "z"], 1, outside="refuse")),
    ):
        with pytest.raises(InvalidParameterError, match="does not suit"):
            Attributes(known, 1, {names: asked})


def test_values_outside_have_a_bucket() -> None:
    asked = attributes({"a": ["x", "y"], "b": 3}, 1)
    assert len(asked.encode({"a": ["x", None, 7], "b": [9, "?", 1]})) == 3


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["k-rr", "subset", "oue"])
def test_errors_of_sums_of_cells_know_that_cells_compete_for_reports(name: str) -> None:
    columns, bits = people(1500), seeded(11)
    asked = attributes({"sex": 2, "age": 6, "town": 4}, 2, how="joint", outside="refuse")
    asked = Attributes(asked.domains, 2, {("sex", "age", "town"): oracle(name, 48, 2, outside="refuse")})
    true = np.bincount(columns["sex"])
    estimates = [asked.table(asked.encode(columns, bits), "sex") for _ in range(150)]
    z = np.array([(each.counts - true) / each.errors for each in estimates])
    assert (z**2).mean() == pytest.approx(1, abs=4 * np.sqrt(2 / z.size) + 0.05)


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


def test_a_value_that_changes_costs_one_event_however_it_does(tmp_path: Path) -> None:
    phones = {"budget": Budget(3), "unit": user("phone", replace=True), "dataset": "phones"}
    ledger = Ledger.open(tmp_path / "l.db", **phones)  # type: ignore[arg-type]  # of several types
    asked = changing(["home", "work"], epochs=300, changes=2, epsilon=1)
    receipt = collect(asked, ledger=ledger, purpose="whereabouts")
    assert receipt.event == events.Pure(1)
    assert ledger.remaining().epsilon == pytest.approx(2)
    assert "300 epochs, 2 changes" in str(ledger.history()[-1])
    with pytest.raises(InvalidParameterError, match="drawn anew"):
        collection_event(asked, values=1)


def test_a_round_of_several_messages_or_of_crowds_is_charged_for_its_honest_users(tmp_path: Path) -> None:
    phones = {"budget": Budget(3, 1e-5), "unit": user("phone", replace=True), "dataset": "phones"}
    ledger = Ledger.open(tmp_path / "l.db", **phones)  # type: ignore[arg-type]  # of several types
    keys = Key.generate().public, Key.generate().public
    for asked in (MultiMessageSum(Interval(0, 1), 500, 1, 1e-6), Crowds(16, 500, 1, 1e-6)):
        assert collect(Round(asked, 600, *keys), ledger=ledger, purpose="a round").event == asked.event
    assert ledger.remaining().epsilon == pytest.approx(1, abs=1e-6)

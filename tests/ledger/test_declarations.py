"""Data sets of one ledger: declared once, held against every later opening, changed by entries only."""

import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from defocus.errors import InvalidParameterError, LedgerDamagedError, LedgerMismatchError, LedgerUnavailableError
from defocus.ledger import Declaration, Ledger
from defocus.privacy import Budget, Laplace, edge, node, rows, user

HOSPITAL: dict[str, Any] = {"budget": Budget(3), "unit": user("patient"), "dataset": "hospital"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "hospital.ledger"


@pytest.fixture
def hospital(place: Path) -> Iterator[Ledger]:
    with Ledger.open(place, **HOSPITAL) as ledger:
        yield ledger


def test_data_sets_of_one_ledger_are_charged_to_one_sum(hospital: Ledger) -> None:
    contacts, survey = hospital.data("contacts", unit=node()), hospital.data("survey", unit=rows(per_person=2))
    hospital.charge(Laplace(1), purpose="visits")
    contacts.charge(Laplace(1), purpose="edges")
    assert survey.remaining().epsilon == pytest.approx(1)
    assert hospital.spent() == contacts.spent() == survey.spent()
    survey.charge(Laplace(1), purpose="a model")
    assert not contacts.admits(Laplace(100))


def test_a_view_has_the_name_and_unit_of_its_data_and_remembers_the_person(hospital: Ledger) -> None:
    contacts = hospital.data("contacts", unit=edge(per_person=20))
    assert (contacts.dataset, contacts.unit, contacts.person) == ("contacts", edge(per_person=20), user("patient"))
    receipt = contacts.charge(Laplace(10), purpose="edges", question="number of edges")
    assert receipt.terms.dataset == "contacts"
    assert receipt.to_dict()["ledger"]["person"]["kind"] == "user"
    entry = list(hospital.entries())[receipt.sequence]
    assert (entry.content["data"], entry.content["question"]) == ("contacts", "number of edges")
    assert hospital.verify().ok


def test_what_was_declared_holds_for_whoever_opens_the_ledger_later(hospital: Ledger, place: Path) -> None:
    hospital.data("contacts", unit=edge(per_person=20), purposes=["care"])
    with Ledger.open(place) as again:
        contacts = again.data("contacts")
        assert contacts.unit == edge(per_person=20)
        assert contacts.purposes == ("care",)
        with pytest.raises(InvalidParameterError, match="named purposes only"):
            contacts.charge(Laplace(10), purpose="marketing")
        with pytest.raises(InvalidParameterError, match="named purposes only"):
            again.data("contacts", purposes=None).charge(Laplace(10), purpose="marketing")
        contacts.charge(Laplace(10), purpose="care")
    with Ledger.open(place, dataset="contacts") as opened:
        assert opened.purposes == ("care",)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"unit": edge(per_person=30)}, "at most 20"),
        ({"unit": node()}, "at most 20"),
        ({"purposes": ["care", "marketing"]}, "it may be used for care"),
        ({"purposes": ["marketing"]}, "it may be used for care"),
        ({"identity": "another file"}, "other data under the name"),
    ],
)
def test_facts_that_contradict_the_ledger_are_refused_and_nothing_is_written(
    hospital: Ledger, facts: dict[str, Any], words: str
) -> None:
    said: dict[str, Any] = {"unit": edge(per_person=20), "purposes": ["care"], "identity": "a file"}
    hospital.data("contacts", **said)
    before = len(hospital)
    with pytest.raises(LedgerMismatchError) as refused:
        hospital.data("contacts", **{**said, **facts})
    assert words in refused.value.what
    assert "ledger.declare" in refused.value.fix
    assert len(hospital) == before
    hospital.data("contacts", **said)
    assert len(hospital) == before


def test_a_change_is_an_entry_with_who_and_why(hospital: Ledger) -> None:
    hospital.data("contacts", unit=edge(per_person=20), purposes=["care"], identity="a file")
    changed = hospital.declare(
        "contacts", unit=edge(per_person=30), purposes=["care", "audit"], renew=True, why="May was added", who="Ada"
    )
    assert changed.unit == edge(per_person=30)
    entry = list(hospital.entries())[-1]
    assert (entry.kind, entry.who, entry.purpose) == ("data", "Ada", "May was added")
    assert hospital.data("contacts", identity="another file").purposes == ("care", "audit")
    with pytest.raises(LedgerMismatchError, match="other data"):
        hospital.data("contacts", identity="a file")
    assert hospital.verify().ok


def test_a_ledger_that_was_open_while_facts_changed_charges_nothing(hospital: Ledger, place: Path) -> None:
    contacts = hospital.data("contacts", unit=edge(per_person=20))
    with Ledger.open(place) as other:
        other.declare("contacts", purposes=["care"], why="the board decided")
    with pytest.raises(InvalidParameterError, match="named purposes only"):
        contacts.charge(Laplace(10), purpose="edges")
    hospital.declare("contacts", unit=edge(per_person=30), why="somebody has more")
    with pytest.raises(LedgerMismatchError, match="was changed since it was opened"):
        contacts.charge(Laplace(10), purpose="care")
    assert hospital.spent() == hospital.data("contacts").spent()
    hospital.data("contacts").charge(Laplace(10), purpose="care")


def test_the_own_data_set_of_a_ledger_has_facts_too(hospital: Ledger, place: Path) -> None:
    hospital.data(purposes="care", identity="a file")
    with Ledger.open(place, **HOSPITAL) as again:
        assert again.purposes == ("care",)
        with pytest.raises(LedgerMismatchError, match="other data"):
            again.data(identity="another")
        with pytest.raises(LedgerMismatchError, match="unit: the ledger has"):
            again.data(unit=rows(per_person=2))


def test_a_ledger_of_rows_or_edges_holds_one_data_set_only(tmp_path: Path) -> None:
    for unit in (rows(), edge()):
        with Ledger.open(tmp_path / f"{unit.kind}.ledger", budget=Budget(1), unit=unit, dataset="visits") as ledger:
            with pytest.raises(LedgerMismatchError, match="dataset: the ledger has visits, you gave claims"):
                ledger.data("claims")
            assert len(ledger) == 1


def test_a_request_is_recalled_for_its_own_data_set_only(hospital: Ledger) -> None:
    contacts = hospital.data("contacts", unit=node())
    receipt = contacts.charge(Laplace(10), purpose="edges", request="May")
    contacts.record(receipt, 7, keep=True)
    assert hospital.recall("May") is None
    recalled = contacts.recall("May")
    assert recalled is not None
    assert recalled.value == 7
    assert recalled.receipt.terms.dataset == "contacts"


def test_every_data_set_is_declared_once_also_where_a_person_appears_as_in_the_ledger(hospital: Ledger) -> None:
    for _ in range(2):
        hospital.data("visits")
    assert [one.name for one in hospital.datasets()] == ["hospital", "visits"]
    with pytest.raises(InvalidParameterError, match="has no data set 'claims'"):
        hospital.declare("claims", why="a slip of the pen")
    assert len(hospital) == 2


def test_a_ledger_for_reading_declares_nothing(hospital: Ledger, place: Path) -> None:
    with Ledger.open(place, read_only=True) as reading:
        contacts = reading.data("contacts", unit=edge(per_person=3))
        assert contacts.unit.changes == 3
        with pytest.raises(LedgerUnavailableError, match="reading only"):
            reading.declare(why="no")
        with pytest.raises(LedgerUnavailableError, match="reading only"):
            contacts.charge(Laplace(1), purpose="no")
    assert [one.name for one in hospital.datasets()] == ["hospital"]


def _declare(place: str, number: int) -> None:
    with Ledger.open(place) as ledger:
        ledger.data("contacts", unit=edge(per_person=20)).charge(Laplace(100), purpose=f"charge {number}")


@pytest.mark.slow
def test_processes_that_declare_at_once_write_one_declaration(hospital: Ledger, place: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_declare, args=(str(place), number)) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    kinds = [entry.kind for entry in hospital.entries()]
    assert kinds.count("data") == 1
    assert kinds.count("charge") == 3
    assert hospital.verify().ok


@pytest.mark.parametrize("hostile", ["", "a\nb", "x" * 201, 3, "a\u202eb"])
def test_names_that_a_ledger_cannot_show_are_refused(hospital: Ledger, hostile: Any) -> None:
    with pytest.raises(InvalidParameterError):
        hospital.data(hostile, unit=node())
    with pytest.raises(InvalidParameterError):
        hospital.declare(why=hostile if hostile != "x" * 201 else "")
    assert len(hospital) == 1


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"name": "a", "unit": {"kind": "people"}, "purposes": None, "identity": None},
        {"name": "a", "unit": None, "purposes": None, "identity": None},
        {"name": "a", "unit": {"kind": "rows", "column": None, "bound": None, "adjacency": "add_remove",
                               "per_person": -1}, "purposes": None, "identity": None},
        {"name": "a", "unit": {"kind": "rows", "column": None, "bound": None, "adjacency": "add_remove"},
         "purposes": [3], "identity": None},
        [],
    ],
)  # fmt: skip
def test_a_declaration_that_cannot_be_read_is_a_damaged_ledger(broken: Any) -> None:
    with pytest.raises(LedgerDamagedError):
        Declaration.read(broken)


def test_what_identifies_the_data_is_kept_as_a_salted_digest(tmp_path: Path) -> None:
    kept = []
    for name in "ab":
        with Ledger.open(tmp_path / f"{name}.ledger", **HOSPITAL) as ledger:
            ledger.data(identity="Ada, 37")
            kept.append(ledger.datasets()[0].identity)
            assert "Ada" not in str(ledger.history())
    assert kept[0] != kept[1]


def test_what_receipts_show_does_not_tell_which_data_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ledgers of one data set, equal in everything else that is shown: their hashes differ by the salt."""
    monkeypatch.setattr("defocus.ledger.ledger.now", lambda: "2026-01-01T00:00:00.000000+00:00")
    monkeypatch.setattr("defocus.ledger.creation.now", lambda: "2026-01-01T00:00:00.000000+00:00")
    monkeypatch.setattr("defocus.ledger.terms.secrets.token_hex", lambda n: "0" * 2 * n)
    shown = []
    for name in "ab":
        monkeypatch.setattr("defocus.ledger.declarations.secrets.token_hex", lambda n, name=name: name * 2 * n)
        with Ledger.open(tmp_path / f"{name}.ledger", **HOSPITAL, identity="Ada, 37", who="Ada") as ledger:
            shown.append(ledger.charge(Laplace(10), purpose="visits", who="Ada").to_dict())
    assert shown[0].pop("hash") != shown[1].pop("hash")
    assert "identity" not in str(shown)


def test_declarations_are_kept_by_every_database(opened: Any) -> None:
    ledger = opened()
    contacts = ledger.data("contacts", unit=edge(per_person=2), purposes=["care"], identity="a file")
    contacts.charge(Laplace(100), purpose="care", question="edges")
    again = opened().data("contacts", identity="a file")
    assert (again.unit, again.purposes) == (edge(per_person=2), ("care",))
    with pytest.raises(LedgerMismatchError, match="other data"):
        again.data("contacts", identity="another")
    assert again.verify().ok

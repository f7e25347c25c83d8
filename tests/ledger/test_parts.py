from pathlib import Path
from typing import Any

import pytest

from defocus.errors import InvalidParameterError, LedgerMismatchError
from defocus.ledger import Ledger, Parts
from defocus.ledger.parts import MOST_PARTS, key_of, labels_of
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Laplace, Pure
from defocus.privacy.units import Unit, edge, item, node, rows, user, weight

DAYS = Parts("day", "date", "rows")
HOSPITALS = Parts("hospital", "text", "people")


@pytest.mark.parametrize("unit", [rows(), item()])
def test_a_row_is_in_one_part(unit: Unit) -> None:
    assert DAYS.check(unit) is DAYS


def test_a_person_is_in_one_part_only_if_the_owner_says_so() -> None:
    assert HOSPITALS.check(user("patient")) is HOSPITALS
    with pytest.raises(InvalidParameterError, match="says nothing about everything about one patient"):
        DAYS.check(user("patient"))
    with pytest.raises(InvalidParameterError, match="says nothing about one row"):
        HOSPITALS.check(rows())


@pytest.mark.parametrize("unit", [rows(replace=True), item(replace=True), weight(bound=1), edge(replace=True)])
def test_a_unit_that_is_replaced_could_move_to_another_part(unit: Unit) -> None:
    with pytest.raises(InvalidParameterError, match="may move from one part to another"):
        DAYS.check(unit)
    with pytest.raises(InvalidParameterError, match="may move from one part to another"):
        HOSPITALS.check(user("patient", replace=True))


@pytest.mark.parametrize("unit", [edge(), node()])
def test_graphs_have_no_parts(unit: Unit) -> None:
    with pytest.raises(InvalidParameterError, match="says nothing about"):
        DAYS.check(unit)


@pytest.mark.parametrize("parts", [Parts("", "date", "rows"), Parts("a\nb", "date", "rows"), Parts("a", "", "rows")])
def test_the_column_and_its_kind_are_lines_of_text(parts: Parts) -> None:
    with pytest.raises(InvalidParameterError, match="of the parts"):
        parts.check(rows())


def test_there_is_no_third_reason() -> None:
    with pytest.raises(InvalidParameterError, match="no reason 'luck'"):
        Parts("a", "text", "luck").check(rows())


@pytest.mark.parametrize("given", ["2026-11-14", b"x", 3, None])
def test_labels_are_a_list(given: Any) -> None:
    with pytest.raises(InvalidParameterError, match="must list the labels"):
        labels_of(given)


@pytest.mark.parametrize("label", ["", " ", "a\0b", "a\nb", "\ud800", "\u202e", "x" * 301, 1, True, None, 1.0])
def test_a_label_is_one_short_line(label: Any) -> None:
    with pytest.raises(InvalidParameterError, match="the label of a part"):
        labels_of([label])


def test_so_many_parts_are_everybody() -> None:
    assert len(labels_of(map(str, range(MOST_PARTS)))) == MOST_PARTS
    with pytest.raises(InvalidParameterError, match="names 1001"):
        labels_of(map(str, range(MOST_PARTS + 1)))


def test_labels_that_look_alike_are_different() -> None:
    alike = ["a", "a ", "A", "à", "a\u0300", "\uff41", "1", "1.0", "01"]
    assert len(labels_of(alike)) == len({key_of(label) for label in alike}) == len(alike)


def test_a_ledger_keeps_the_parts_it_was_made_for(where: str) -> None:
    terms: dict[str, Any] = {"budget": Budget(1), "unit": rows(), "dataset": "visits"}
    with Ledger.open(where, parts=DAYS, **terms) as ledger:
        assert ledger.terms.parts == DAYS
    with Ledger.open(where, **terms) as ledger:  # who does not say it may still charge everybody
        assert ledger.terms.parts == DAYS
        ledger.charge(Laplace(10), purpose="count")
        assert ledger.verify().ok
    for other in (Parts("ward", "text", "rows"), Parts("day", "text", "rows")):
        with pytest.raises(LedgerMismatchError, match=r"parts: the ledger has parts by day \(date\)"):
            Ledger.open(where, parts=other, **terms)


def test_an_older_ledger_is_used_as_before_and_has_no_parts(where: str) -> None:
    terms: dict[str, Any] = {"budget": Budget(1), "unit": rows(), "dataset": "visits"}
    with Ledger.open(where, **terms) as ledger:
        ledger.charge(Laplace(10), purpose="count")
        with pytest.raises(InvalidParameterError, match="made for data without parts"):
            ledger.charge(Laplace(10), purpose="count", parts=["2026-11-14"])
        assert "tally" not in ledger.history()[1]
    with pytest.raises(LedgerMismatchError, match="parts: the ledger has none, you gave parts by day"):
        Ledger.open(where, parts=DAYS, **terms)
    with Ledger.open(where, **terms) as ledger:
        assert ledger.tally() is None
        assert ledger.verify().ok


def test_parts_of_another_type_are_refused(tmp_path: Path) -> None:
    given: Any = "day"
    with pytest.raises(InvalidParameterError, match="parts must be Parts, but it is str"):
        Ledger.open(tmp_path / "a", budget=Budget(1), unit=rows(), dataset="visits", parts=given)


def test_nothing_is_made_where_parts_do_not_fit_the_unit(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match="says nothing about"):
        Ledger.open(tmp_path / "a", budget=Budget(1), unit=user("patient"), dataset="visits", parts=DAYS)
    assert not (tmp_path / "a").exists()
    with Ledger.open(tmp_path / "a", budget=Budget(1), unit=rows(), dataset="visits", parts=DAYS) as ledger:
        ledger.charge(Pure(1), purpose="all of one day", parts=["2026-11-14"])
        ledger.charge(Pure(1), purpose="all of another", parts=["2026-11-15"])

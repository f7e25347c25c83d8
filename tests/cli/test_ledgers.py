"""Reading and verifying a ledger from a terminal."""

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from defocus import Budget, user
from defocus.ledger import Ledger
from defocus.privacy import Laplace


@pytest.fixture
def where(tmp_path: Path) -> Path:
    """A ledger with two charges and one recorded release."""
    path = tmp_path / "stays.sqlite"
    with Ledger.open(path, dataset="stays", unit=user("patient_id"), budget=Budget(1, 1e-6), who="Ada") as ledger:
        receipt = ledger.charge(Laplace(20), purpose="patients in 2025", who="Ada")
        ledger.record(receipt, 1402, keep=True)
        ledger.charge(2 * Laplace(40), purpose="患者 [bold]not bold[/bold]", who="Grace")
    return path


def test_show_prints_terms_entries_and_what_is_left(defocus: Callable[..., Any], where: Path) -> None:
    ran = defocus("ledger", "show", where)
    assert ran.code == 0
    for text in ("stays", "patient_id", "Budget(epsilon=1, delta=1e-06)", "laplace(20)", "Ada", "Grace", "1402"):
        assert text in ran.out
    assert "[bold]" in ran.out
    assert "left" in ran.out


def test_show_prints_the_newest_entries_only_when_asked(defocus: Callable[..., Any], where: Path) -> None:
    out = defocus("ledger", "show", where, "--last", 1).out
    assert "Grace" in out
    assert "1402" not in out
    assert defocus("ledger", "show", where, "--last", 0).code == 2


def test_show_says_what_each_charge_cost_and_how_much_is_used(defocus: Callable[..., Any], where: Path) -> None:
    out = defocus("ledger", "show", where).out
    assert "epsilon  of each release alone, at delta 1e-06 where it is not pure" in out
    first, second = map(float, re.findall(r"0\.05 +([.\d]+) %", out))
    assert 0 < first < second < 10  # less than the sum of the epsilons, since the filter counts in what suits best
    assert max(map(len, out.splitlines())) <= 80


def test_show_as_json_labels_its_numbers(defocus: Callable[..., Any], where: Path) -> None:
    answer = defocus("ledger", "show", where, "--json").json
    measures = {row["measure"]: row for row in answer["spent"]}
    assert measures["epsilon"]["spent"] == pytest.approx(0.1)
    assert measures["epsilon"]["limit"] == pytest.approx(1)
    assert {"delta", "squared mu"} < measures.keys()
    least = min(row["spent"] / row["limit"] for row in answer["spent"] if row["measure"] != "delta")
    assert answer["used"] == answer["charges"][-1]["used"] == {"epsilon": least, "delta": 0}
    assert answer["charges"][0]["used"]["epsilon"] < least
    assert [(row["sequence"], row["what"]) for row in answer["charges"]] == [(1, "laplace(20)"), (3, "2 * laplace(40)")]
    assert [row["epsilon"] for row in answer["charges"]] == pytest.approx([0.05, 0.05], rel=1e-3)


def test_many_kinds_of_releases_are_shown_without_asking_an_accountant_for_each(
    defocus: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "many.sqlite"
    with Ledger.open(path, dataset="stays", unit=user("patient_id"), budget=Budget(1, 1e-6)) as ledger:
        for i in range(65):
            ledger.charge(Laplace(1000 + i), purpose="one of many")
    assert "--last 20" in defocus("ledger", "show", path).out
    assert defocus("ledger", "show", path, "--json").json["charges"][0]["epsilon"] is None
    assert "of each release alone" in defocus("ledger", "show", path, "--last", 20).out


def test_show_as_json_has_every_entry(defocus: Callable[..., Any], where: Path) -> None:
    answer = defocus("ledger", "show", where, "--json").json
    assert [entry["kind"] for entry in answer["entries"]] == ["genesis", "charge", "release", "charge"]
    assert answer["terms"]["dataset"] == "stays"
    assert answer["anchor"].startswith("3:")


def test_an_honest_ledger_verifies(defocus: Callable[..., Any], where: Path) -> None:
    ran = defocus("ledger", "verify", where)
    assert ran.code == 0
    assert "no problem found" in ran.out
    anchor = defocus("ledger", "show", where, "--json").json["anchor"]
    assert f"anchor: {anchor}" in ran.out
    answer = defocus("ledger", "verify", where, "--anchor", anchor, "--json").json
    assert answer["ok"] is True
    assert answer["anchored"] is True


def test_an_edited_ledger_exits_with_one(defocus: Callable[..., Any], where: Path) -> None:
    with sqlite3.connect(where) as database:
        database.execute("DROP TRIGGER ledger_entries_update")
        database.execute("UPDATE ledger_entries SET body = replace(body, 'Ada', 'Eve') WHERE sequence = 1")
    database.close()
    ran = defocus("ledger", "verify", where)
    assert ran.code == 1
    assert "problem" in ran.out
    assert "anchor: " not in ran.out  # nobody should keep it
    assert defocus("ledger", "verify", where, "--json").json["ok"] is False
    ran = defocus("ledger", "show", where)
    assert (ran.code, ran.out) == (1, "")  # no header that looks like that of an honest ledger
    assert "defocus ledger verify" in ran.err


def test_a_ledger_older_than_its_anchor_exits_with_one(defocus: Callable[..., Any], where: Path) -> None:
    assert defocus("ledger", "verify", where, "--anchor", "99:" + "0" * 64).code == 1
    assert defocus("ledger", "verify", where, "--anchor", "3:" + "0" * 64).code == 1


@pytest.mark.parametrize("anchor", ["", "nonsense", "3:xyz", "\x1b[31m"])
def test_an_anchor_that_is_none_is_not_understood(defocus: Callable[..., Any], where: Path, anchor: str) -> None:
    assert defocus("ledger", "verify", where, "--anchor", anchor).code == 2


def test_an_anchor_file_notices_an_older_copy(defocus: Callable[..., Any], where: Path, tmp_path: Path) -> None:
    file = tmp_path / "stays.anchor"
    with Ledger.open(where, read_only=True) as ledger:
        ledger.anchor().save(file)
    assert defocus("ledger", "verify", where, "--anchor-file", file, "--json").json["anchored"] is True
    file.write_text(f"defocus ledger anchor 1\n99:{'0' * 64}\n", encoding="ascii")
    assert defocus("ledger", "verify", where, "--anchor-file", file).code == 1
    ran = defocus("ledger", "verify", where, "--anchor-file", tmp_path / "none")
    assert ran.code == 1
    assert "no anchor file" in ran.err


def test_a_missing_ledger_is_refused_and_not_made(defocus: Callable[..., Any], tmp_path: Path) -> None:
    for command in ("show", "verify"):
        ran = defocus("ledger", command, tmp_path / "none.sqlite")
        assert ran.code == 1
    assert not (tmp_path / "none.sqlite").exists()


def test_a_file_that_is_no_ledger_is_refused(defocus: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear \x1b[31mreader,\n" * 100, encoding="utf-8")
    for command in ("show", "verify"):
        ran = defocus("ledger", command, path)
        assert ran.code == 1
        assert "\x1b" not in ran.out + ran.err
        assert "Traceback" not in ran.out + ran.err


def test_escapes_that_were_smuggled_into_a_ledger_are_neutralised(defocus: Callable[..., Any], where: Path) -> None:
    with sqlite3.connect(where) as database:
        database.execute("DROP TRIGGER ledger_entries_update")
        database.execute("UPDATE ledger_entries SET hash = '\x1b[2J' WHERE sequence = 1")
    database.close()
    for command in ("show", "verify"):
        ran = defocus("ledger", command, where)
        assert ran.code == 1
        assert "\x1b" not in ran.out + ran.err


def test_looking_changes_nothing_and_opens_for_reading_only(
    defocus: Callable[..., Any], where: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Any] = []
    original = Ledger.open

    def spy(*words: Any, **options: Any) -> Ledger:
        opened.append(options)
        return original(*words, **options)

    monkeypatch.setattr(Ledger, "open", spy)
    before = where.read_bytes(), sorted(where.parent.iterdir())
    defocus("ledger", "show", where)
    defocus("ledger", "verify", where)
    assert (where.read_bytes(), sorted(where.parent.iterdir())) == before
    assert opened == [{"read_only": True}]

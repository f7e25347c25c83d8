"""Reading and verifying a ledger from a terminal."""

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from defocus import Budget, user
from defocus.cli.ledgers import _apart
from defocus.ledger import Ledger
from defocus.privacy import Laplace
from defocus.privacy.filters import Used


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


QUESTION = "SELECT ward, COUNT(*) AS stays FROM visits GROUP BY ward"


def test_the_budget_burns_down(defocus: Callable[..., Any], home: Path) -> None:
    assert "all of it" in defocus("budget").out
    assert defocus("budget", "--json").json["used"] == {}
    defocus("query", QUESTION, "--epsilon", 1, "--purpose", "report")
    ran = defocus("budget", "--plot", "burn.png")
    assert "report" in ran.out
    assert "█" in ran.out
    assert (home / "burn.png").read_bytes().startswith(b"\x89PNG")
    assert defocus("budget", "--json").json["used"]["epsilon"] == pytest.approx(0.5, abs=0.01)
    assert "report" in defocus("history").out


def test_the_plot_shows_epsilon_and_not_shares(
    defocus: Callable[..., Any], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr("defocus.cli.ledgers.save", lambda figure, _: drawn.append(figure))
    for _ in range(2):
        defocus("query", QUESTION, "--epsilon", 0.5)
    assert defocus("budget", "--plot", home / "burn.png").code == 0
    axes, deltas = drawn[0].axes
    assert (axes.get_ylabel(), deltas.get_ylabel()) == ("epsilon left", "delta left")
    assert axes.patches[0].get_data().values == pytest.approx([2, 1.5, 1], abs=1e-6)


@pytest.mark.usefixtures("home")
def test_a_plot_that_cannot_be_written_is_told(defocus: Callable[..., Any]) -> None:
    assert defocus("budget", "--plot", "burn.xyz").code == 2


def test_a_ledger_can_be_given_instead_of_a_file(defocus: Callable[..., Any], home: Path) -> None:
    defocus("query", QUESTION, "--epsilon", 1, "--purpose", "report")
    for command in ("budget", "history"):
        assert "report" in defocus(command, "--dataset", home / "visits.ledger").out


def test_the_address_of_a_database_is_kept_as_it_is(
    defocus: Callable[..., Any], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = "postgresql://host/books?schema=visits.toml"
    defocus("query", QUESTION, "--epsilon", 1)
    seen: list[str] = []

    def opened(where: str, **_options: object) -> Ledger:
        seen.append(where)
        return real(home / "visits.ledger")

    real = Ledger.open
    monkeypatch.setattr("defocus.cli.ledgers.Ledger.open", opened)
    for command in ("history", "budget"):
        assert defocus(command, "-d", address).code == 0
    assert seen == [address, address]


def test_only_the_newest_of_many_releases_are_listed(defocus: Callable[..., Any], home: Path) -> None:
    assert defocus("query", QUESTION, "--epsilon", 0.01, "--purpose", "number 0").code == 0
    with Ledger.open(home / "visits.ledger") as ledger:
        for number in range(1, 22):
            ledger.charge(Laplace(100), purpose=f"number {number}")
    out = defocus("budget").out
    assert "the last 20 of 22 releases" in out
    assert "number 21" in out
    assert "number 1 " not in out
    assert len(defocus("budget", "--json").json["releases"]) == 22


@pytest.fixture
def days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of daily partitions, with the dataset file of a stream of events."""
    for day in (13, 14, 15):
        folder = tmp_path / "visits" / f"day=2026-11-{day}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"ward": ["A", "B"] * day}), folder / "0.parquet")
    text = 'name = "visits"\ndata = "visits"\nunit.rows = true\nbudget.epsilon = 1\n'
    (tmp_path / "defocus.toml").write_text(f'{text}[parts]\ncolumn = "day"\n[columns.day]\nkind = "date"\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("days")
def test_each_day_is_asked_and_charged_alone(defocus: Callable[..., Any]) -> None:
    count = "SELECT COUNT(*) AS n FROM visits"
    assert "parts by day (date); each row is in one part" in " ".join(defocus("check").out.split())
    for day in ("2026-11-13", "2026-11-14"):
        assert defocus("query", count, "--epsilon", 0.75, "--part", day).code == 0
    refused = defocus("query", count, "--epsilon", 0.75, "--part", "2026-11-15", "--part", "2026-11-14")
    assert refused.code == 1
    assert "from the part 2026-11-14" in refused.err
    assert defocus("query", count, "--epsilon", 0.75).code == 1
    assert defocus("preview", count, "--epsilon", 0.75, "--part", "2026-11-15", "--json").json["fits"]
    assert not defocus("preview", count, "--epsilon", 0.75, "--json").json["fits"]
    for command in ("budget", "history"):
        said = " ".join(defocus(command).out.split())
        assert "2 parts were charged, the heaviest 75 % of epsilon" in said
    found = defocus("budget", "--json").json
    assert found["parts"]["column"] == "day"
    assert [release["parts"] for release in found["releases"]] == [["2026-11-13"], ["2026-11-14"]]
    for day, share in (("2026-11-13", 0.25), ("2026-11-15", 1.0)):
        alone = defocus("budget", "--part", day, "--json").json
        assert [round(1 - release["used"]["epsilon"], 3) for release in alone["releases"]] == [share] * (share < 1)
        assert f"left for {day}" in defocus("budget", "--part", day).out
    told = defocus("history", "--json").json
    assert told["charges"][1]["parts"] == ["2026-11-14"]
    assert told["terms"]["parts"] == {"column": "day", "kind": "date", "apart": "rows"}


@pytest.mark.usefixtures("days")
def test_a_day_that_is_no_day_is_told_before_anything_is_charged(defocus: Callable[..., Any], days: Path) -> None:
    ran = defocus("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", 0.5, "--part", "14.11.2026")
    assert ran.code == 2
    assert "is no value of the date column 'day'" in " ".join(ran.err.split())
    file = days / "defocus.toml"
    file.write_text(file.read_text().replace('column = "day"', 'column = "day"\npeople = "in one part"'))
    checked = defocus("check")
    assert checked.code == 1
    assert "changes nothing where the unit is one row" in " ".join(checked.out.split())


def test_what_is_left_and_used_is_explained_where_it_does_not_add_up() -> None:
    ((_, why),) = _apart(2.4, Budget(3, 1e-6), Used("epsilon", 0.17, None))
    assert "do not add up" in why
    assert not _apart(2.5, Budget(3, 1e-6), Used("epsilon", 1 / 6, None))
    assert not _apart(0.0, Budget(rho=1), Used("rho", 0.5, None))

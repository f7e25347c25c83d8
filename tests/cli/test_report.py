"""A page of everything that was kept, and options about how answers are bounded and shown."""

import csv
import io
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import typer
from openpyxl import load_workbook

from defocus.cli.app import app
from defocus.ledger import Ledger
from defocus.ledger.entries import CHARGE
from defocus.mechanisms import Laplace
from defocus.release import release

QUESTION = "SELECT ward, COUNT(*) AS stays, AVG(days) AS mean FROM visits GROUP BY ward"


class Page(HTMLParser):
    """Headings, and the texts of images."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.heads: list[str] = []
        self.alts: list[str] = []
        self._in = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in = tag in {"h1", "h2"}
        if tag == "img":
            self.alts.append(str(dict(attrs)["alt"]))

    def handle_data(self, data: str) -> None:
        if self._in:
            self.heads.append(data)
            self._in = False


@pytest.mark.slow
def test_a_report_has_every_answer_that_was_kept_and_is_free(defocus: Callable[..., Any], home: Path) -> None:
    assert defocus("query", QUESTION, "--epsilon", 0.4, "--request", "weekly", "--purpose", "<b>week</b>").code == 0
    assert defocus("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", 0.1, "--request", "all").code == 0
    assert defocus("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", 0.1).code == 0
    with Ledger.open(home / "visits.ledger") as ledger:
        release(Laplace(scale=20), 3, ledger=ledger, purpose="a number", request="bare")
        before = len(ledger)
    ran = defocus("report", "page.html", "--title", "<i>May</i>")
    assert ran.code == 0
    assert "page.html, with 2 answers" in ran.out
    assert "no table of numbers: bare" in ran.err
    page = Page((home / "page.html").read_text("utf-8"))
    assert page.heads == ["<i>May</i>", "<b>week</b>", "SELECT COUNT(*) AS n FROM visits", "Where the budget went"]
    assert len(page.alts) == 3
    assert re.search(r"A: stays \d.*\(.* to .*\), mean \d", page.alts[0])
    with Ledger.open(home / "visits.ledger", read_only=True) as ledger:
        assert len(ledger) == before
    assert defocus("report", "one.html", "--only", "all", "-d", "visits.ledger").code == 0
    assert len(Page((home / "one.html").read_text("utf-8")).alts) == 2
    assert defocus("report", "one.html", "--only", "other").code == 2


@pytest.mark.usefixtures("home")
def test_a_report_that_cannot_be_made_says_why(defocus: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no ledger" in defocus("report").err
    assert defocus("report", "page.pdf").code == 2
    missing: Any = None
    monkeypatch.setitem(sys.modules, "matplotlib.figure", missing)
    assert "matplotlib" in defocus("report").err


def test_csv_is_exact_on_the_terminal_and_in_files(defocus: Callable[..., Any], home: Path) -> None:
    ran = defocus("query", QUESTION, "--epsilon", 1, "--format", "csv", "--out", "a.csv", "--request", "r")
    assert ran.out.replace("\r\n", "\n") == (home / "a.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    again = defocus("query", QUESTION, "--epsilon", 1, "--request", "r", "--format", "json").json["rows"]
    assert [float(row["mean"]) for row in rows] == [row["mean"] for row in again]
    assert defocus("query", QUESTION, "--epsilon", 1, "--request", "r", "--json").json["rows"] == again


def test_a_kept_answer_becomes_an_excel_file(defocus: Callable[..., Any], home: Path) -> None:
    assert defocus("query", QUESTION, "--epsilon", 1, "--request", "r", "--out", "a.xlsx").code == 0
    assert defocus("export", "r", "b.xlsx", "--confidence", 0.95).code == 0
    first, again = (list(load_workbook(home / name)["answer"].values) for name in ("a.xlsx", "b.xlsx"))
    assert first == again
    assert first[0][:2] == ("ward", "stays")


def test_without_openpyxl_nothing_is_charged(
    defocus: Callable[..., Any], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing: Any = None
    monkeypatch.setitem(sys.modules, "openpyxl", missing)
    assert "defocus[excel]" in defocus("query", QUESTION, "--epsilon", 1, "--out", "a.xlsx").err
    assert not (home / "visits.ledger").exists()


def test_intervals_of_another_confidence_are_asked_for(defocus: Callable[..., Any], home: Path) -> None:
    asked = ["query", QUESTION, "--epsilon", 1, "--request", "r", "--rows", 3]
    usual, sure = defocus(*asked, "--json").json, defocus(*asked, "--json", "--confidence", 0.999).json
    assert sure["confidence"] == 0.999
    widths = [answer["rows"][0]["stays_high"] - answer["rows"][0]["stays_low"] for answer in (usual, sure)]
    assert widths[1] > 1.3 * widths[0]
    assert sure["rows"][0]["mean_low"] is None  # not known for means, whose tails are not
    assert "99.9 % interval" in defocus(*asked, "--confidence", 0.999, "--plot", "a.svg").out
    assert "99.9 % intervals" in (home / "a.svg").read_text("utf-8")
    for bad in (0, 1, "nan", 2):
        assert defocus(*asked, "--confidence", bad).code == 2


def test_what_one_person_counts_with_is_bounded_as_asked(defocus: Callable[..., Any], home: Path) -> None:
    few, many = (
        defocus("preview", "SELECT COUNT(*) AS n FROM visits", "--epsilon", 1, "--rows", rows, "--json").json
        for rows in (1, 20)
    )
    assert many["columns"][0]["error"] == pytest.approx(20 * few["columns"][0]["error"], rel=0.01)
    assert any("at most 20 rows" in rule for rule in many["rules"])
    found = defocus("preview", QUESTION, "--epsilon", 1, "--rows", "find", "--groups", 1, "--explain")
    assert "found privately" in found.out
    for bad in ("none", "0", "-3", "2.5", "9" * 30):
        assert defocus("query", QUESTION, "--epsilon", 1, "--rows", bad).code == 2
    with Ledger.open(home / "visits.ledger", read_only=True) as ledger:
        assert len(ledger) == 1  # nothing was charged
    people = "SELECT ward, COUNT(DISTINCT patient) AS n FROM visits GROUP BY ward"
    one, two = (
        defocus("preview", people, "--epsilon", 1, "--groups", groups, "--json").json["columns"][0]["error"]
        for groups in (1, 2)
    )
    assert two > 1.5 * one


def test_the_history_has_the_question_as_it_was_asked(defocus: Callable[..., Any], home: Path) -> None:
    assert defocus("query", QUESTION, "--epsilon", 1, "--purpose", "weekly").code == 0
    told = re.sub(r"\s+", "", defocus("history").out)
    assert "weekly" in told
    with Ledger.open(home / "visits.ledger", read_only=True) as ledger:
        (charge,) = [entry for entry in ledger.entries() if entry.kind == CHARGE]
        assert charge.content["question"] == QUESTION


def commands() -> Iterator[tuple[str, Any]]:
    group: Any = typer.main.get_command(app)
    for name, command in group.commands.items():
        inner = getattr(command, "commands", None)
        yield from ((f"{name} {part}", each) for part, each in inner.items()) if inner else [(name, command)]


@pytest.mark.parametrize(("name", "command"), list(commands()))
def test_the_help_of_every_command_has_an_example_that_it_understands(name: str, command: Any) -> None:
    assert command.epilog is not None, name
    words = shlex.split(command.epilog.removeprefix("Example: "))
    parts = name.split()
    assert words[: 1 + len(parts)] == ["defocus", *parts]
    command.make_context(name, words[1 + len(parts) :], resilient_parsing=False)

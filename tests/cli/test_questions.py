"""Asking a data set from a terminal: preview, query, export."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, final

import pyarrow.parquet as pq
import pytest

from defocus.cli.questions import show, write, writer
from defocus.errors import InvalidParameterError
from defocus.ledger import Ledger
from defocus.ledger.entries import CHARGE

QUESTION = "SELECT ward, COUNT(*) AS stays, AVG(days) AS mean FROM visits GROUP BY ward"


def test_a_preview_is_free(defocus: Callable[..., Any], home: Path) -> None:
    ran = defocus("preview", QUESTION, "--epsilon", 1)
    assert ran.code == 0
    assert "stays" in ran.out
    assert "rows" in ran.out
    assert {path.name for path in home.iterdir()} == {"defocus.toml", "visits.parquet"}
    assert defocus("preview", QUESTION, "--epsilon", 1, "--json").json["fits"] is True
    assert defocus("query", QUESTION, "--epsilon", 1.5).code == 0
    assert defocus("preview", QUESTION, "--epsilon", 1, "--json").json["fits"] is False
    with Ledger.open(home / "visits.ledger", read_only=True) as ledger:
        assert len(ledger) == 3


def test_a_query_is_charged_printed_and_written(defocus: Callable[..., Any], home: Path) -> None:
    ran = defocus("query", QUESTION, "--epsilon", 1, "--purpose", "report", "--out", "answer.csv", "--explain")
    assert ran.code == 0
    assert "95 % interval" in ran.out
    assert "protected" in ran.out
    lines = (home / "answer.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith('"ward","stays","stays_error"')
    assert len(lines) == 3
    with Ledger.open(home / "visits.ledger", read_only=True) as ledger:
        assert ledger.remaining().epsilon == pytest.approx(1, abs=1e-6)


@pytest.mark.usefixtures("home")
def test_json_is_json_and_a_refusal_has_its_own_exit_code(defocus: Callable[..., Any]) -> None:
    answer = defocus("query", QUESTION, "--epsilon", 1, "--json").json
    assert [group["ward"] for group in answer["rows"]] == ["A", "B"]
    refused = defocus("query", QUESTION, "--epsilon", 1.5)
    assert refused.code == 1
    assert "remaining" in refused.err
    wrong = defocus("query", "SELECT * FROM visits", "--epsilon", 0.1)
    assert wrong.code == 2
    assert "To fix" in wrong.err


@pytest.mark.parametrize(
    "words",
    [
        ["--out", "answer.ods"],
        ["--out", "nowhere/answer.csv"],
        ["--plot", "answer.xyz"],
        ["--plot", "nowhere/answer.png"],
    ],
)
def test_where_to_write_is_checked_before_anything_is_charged(
    defocus: Callable[..., Any], home: Path, words: list[str]
) -> None:
    assert defocus("query", QUESTION, "--epsilon", 1, *words).code == 2
    assert not (home / "visits.ledger").exists()


def test_a_missing_matplotlib_is_told_before_anything_is_charged(
    defocus: Callable[..., Any], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing: Any = None
    monkeypatch.setitem(sys.modules, "matplotlib.figure", missing)
    ran = defocus("query", QUESTION, "--epsilon", 1, "--plot", "answer.png")
    assert ran.code == 1
    assert "matplotlib" in ran.err
    assert not (home / "visits.ledger").exists()


def test_an_answer_that_was_paid_for_is_written_and_shown_whatever_else_fails(
    defocus: Callable[..., Any], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise InvalidParameterError("The plot could not be written.", fix="try again.")

    monkeypatch.setattr("defocus.cli.questions.save", fails)
    ran = defocus("query", QUESTION, "--epsilon", 0.5, "--out", "answer.csv", "--plot", "answer.png")
    assert ran.code == 2
    assert (home / "answer.csv").exists()
    (home / "taken.csv").mkdir()
    ran = defocus("query", QUESTION, "--epsilon", 0.5, "--out", "taken.csv")
    assert ran.code == 2
    assert "stays" in ran.out


@pytest.mark.parametrize("command", ["query", "preview"])
@pytest.mark.parametrize("data", ["visits.parquet", "visits.csv", "*.parquet", "visits.duckdb", "visits"])
def test_only_a_dataset_file_is_asked(defocus: Callable[..., Any], home: Path, command: str, data: str) -> None:
    assert defocus("query", QUESTION, "--epsilon", 0.5).code == 0  # so the ledger beside the data is there
    ran = defocus(command, QUESTION, "--epsilon", 0.5, "-d", data)
    assert ran.code == 2
    assert "no dataset file" in ran.err
    with Ledger.open(home / "visits.ledger", read_only=True) as ledger:
        assert ledger.remaining().epsilon == pytest.approx(1.5, abs=1e-6)


def test_how_a_question_is_read_and_who_asks_can_be_said(defocus: Callable[..., Any], home: Path) -> None:
    text = "SELECT COUNT(DISTINCT ward) AS wards, AVG(SQRT(patient)) AS root FROM visits"
    assert defocus("preview", text, "--epsilon", 1).code == 2
    how = ["--bounds", "find", "--at-most", 2, "--dialect", "postgres"]
    assert "found privately" in defocus("preview", text, "--epsilon", 1, *how, "--explain").out
    ran = defocus("query", text, "--epsilon", 1, *how, "--who", "Ada", "--json")
    assert ran.code == 0
    assert any("at most 2 different values" in rule for rule in ran.json["rules"])
    with Ledger.open(home / "visits.ledger", read_only=True) as ledger:
        assert [entry.who for entry in ledger.entries() if entry.kind == CHARGE] == ["Ada"]
    assert defocus("preview", QUESTION, "--epsilon", 1, "--bounds", "guess").code == 2
    assert defocus("preview", QUESTION, "--epsilon", 1, "--dialect", "klingon").code == 2
    assert defocus("preview", text, "--epsilon", 1, *how[:2], "--at-most", 0).code == 2


def test_a_kept_answer_is_exported_for_free(defocus: Callable[..., Any], home: Path) -> None:
    first = defocus("query", QUESTION, "--epsilon", 0.5, "--request", "weekly", "--json").json
    again = defocus("query", QUESTION, "--epsilon", 0.5, "--request", "weekly", "--json").json
    assert first["rows"] == again["rows"]
    assert defocus("export", "weekly", "weekly.parquet").code == 0
    assert pq.read_table(home / "weekly.parquet")["stays"].to_pylist() == [row["stays"] for row in first["rows"]]
    assert defocus("export", "monthly", "monthly.csv").code == 2


@final
class Told:
    """Stands for an answer."""

    def __str__(self) -> str:
        return "12\x1b[2J"

    def explain(self) -> str:
        return "twelve"

    def to_dict(self) -> dict[str, Any]:
        return {"n": 12}

    def to_csv(self, out: Path) -> None:
        out.write_text("12", encoding="utf-8")


def test_an_answer_is_printed_and_explained_if_asked(capsys: pytest.CaptureFixture[str]) -> None:
    show(Told(), explain=False, as_json=False)
    assert capsys.readouterr().out == "12\\x1b[2J\n"
    show(Told(), explain=True, as_json=False, spoken=str.upper)
    assert capsys.readouterr().out == "12\\x1b[2J\n\nTWELVE\n"
    show(Told(), explain=True, as_json=True)
    assert json.loads(capsys.readouterr().out) == {"n": 12}


def test_the_ending_decides_the_format(tmp_path: Path) -> None:
    write(Told(), tmp_path / "a.CSV")
    assert (tmp_path / "a.CSV").read_text(encoding="utf-8") == "12"
    assert [writer(tmp_path / f"a{ending}") for ending in (".parquet", ".json")] == ["to_parquet", "to_json"]


@pytest.mark.parametrize(
    ("out", "what"), [("a.ods", r"ends in \.ods"), ("a", "ends in nothing"), ("nowhere/a.csv", "no folder 'nowhere'")]
)
def test_where_nothing_can_be_written_is_refused_beforehand(out: str, what: str) -> None:
    with pytest.raises(InvalidParameterError, match=what):
        writer(Path(out))

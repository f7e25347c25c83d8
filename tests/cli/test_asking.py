"""Asking a data set from a terminal: init, check, preview, query, export, budget, history."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from defocus.ledger import Ledger

QUESTION = "SELECT ward, COUNT(*) AS stays, AVG(days) AS mean FROM visits GROUP BY ward"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table and its dataset file, which is where commands are typed."""
    rng = np.random.default_rng(5)
    visits = {
        "patient": rng.integers(0, 300, 2000),
        "ward": rng.choice(["A", "B"], 2000),
        "days": rng.gamma(2, 3, 2000),
    }
    pq.write_table(pa.table(visits), tmp_path / "visits.parquet")
    (tmp_path / "defocus.toml").write_text(
        'name = "visits"\ndata = "visits.parquet"\n[unit]\ncolumn = "patient"\n[budget]\nepsilon = 2\ndelta = 1e-6\n'
        '[columns.days]\nlow = 0\nhigh = 30\n[columns.ward]\nvalues = ["A", "B"]\n',
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_preview_is_free(defocus: Callable[..., Any], home: Path) -> None:
    ran = defocus("preview", QUESTION, "--epsilon", 1)
    assert ran.code == 0
    assert "stays" in ran.out
    assert "rows" in ran.out
    with Ledger.open(home / "visits.ledger", read_only=True) as ledger:
        assert len(ledger) == 1
    assert defocus("preview", QUESTION, "--epsilon", 1, "--json").json["fits"] is True


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
    assert [group["ward"] for group in answer["groups"]] == ["A", "B"]
    refused = defocus("query", QUESTION, "--epsilon", 1.5)
    assert refused.code == 1
    assert "remaining" in refused.err
    wrong = defocus("query", "SELECT * FROM visits", "--epsilon", 0.1)
    assert wrong.code == 2
    assert "To fix" in wrong.err


def test_where_to_write_is_checked_before_anything_is_charged(defocus: Callable[..., Any], home: Path) -> None:
    assert defocus("query", QUESTION, "--epsilon", 1, "--out", "answer.xlsx").code == 2
    assert not (home / "visits.ledger").exists()


def test_a_kept_answer_is_exported_for_free(defocus: Callable[..., Any], home: Path) -> None:
    first = defocus("query", QUESTION, "--epsilon", 0.5, "--request", "weekly", "--json").json
    again = defocus("query", QUESTION, "--epsilon", 0.5, "--request", "weekly", "--json").json
    assert first["groups"] == again["groups"]
    assert defocus("export", "weekly", "weekly.parquet").code == 0
    assert pq.read_table(home / "weekly.parquet")["stays"].to_pylist() == [row["stays"] for row in first["groups"]]
    assert defocus("export", "monthly", "monthly.csv").code == 2


def test_the_budget_burns_down(defocus: Callable[..., Any], home: Path) -> None:
    assert "all of it" in defocus("budget").out
    assert defocus("budget", "--json").json["share_left"] == 1
    defocus("query", QUESTION, "--epsilon", 1, "--purpose", "report")
    ran = defocus("budget", "--plot", "burn.png")
    assert "report" in ran.out
    assert "█" in ran.out
    assert (home / "burn.png").read_bytes().startswith(b"\x89PNG")
    assert defocus("budget", "--json").json["share_left"] == pytest.approx(0.5, abs=0.01)
    assert "report" in defocus("history").out


def test_init_writes_a_draft_that_says_what_is_left_to_decide(defocus: Callable[..., Any], home: Path) -> None:
    assert defocus("init", "visits.parquet").code == 2  # the file is there already
    ran = defocus("init", "visits.parquet", "--out", "draft.toml")
    assert ran.code == 1
    assert "left to decide" in ran.out
    text = (home / "draft.toml").read_text(encoding="utf-8")
    assert "patient" in text
    assert "epsilon" in text
    done = defocus("init", "visits.parquet", "--out", "draft.toml", "--force", "--unit", "patient", "--epsilon", 1)
    assert done.code == 0
    assert defocus("check", "--dataset", "draft.toml").code == 0
    assert defocus("init", "visits.parquet", "--out", "x.toml", "--unit", "patient", "--rows").code == 2


def test_check_names_what_does_not_fit(defocus: Callable[..., Any], home: Path) -> None:
    file = home / "defocus.toml"
    file.write_text(file.read_text(encoding="utf-8").replace("columns.days", "columns.dayz"), encoding="utf-8")
    ran = defocus("check")
    assert ran.code == 1
    assert "days" in ran.out

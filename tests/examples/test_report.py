"""The demo: a private report of a synthetic hospital."""

import runpy
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from defocus.ledger import Ledger
from defocus.ledger import verify as examine

EXAMPLE = Path(__file__).parents[2] / "examples" / "report.py"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


@pytest.mark.slow
def test_the_report_runs_until_it_is_refused_leaves_a_page_and_other_files_alone_and_can_be_run_again(
    example: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "demo"
    folder.mkdir()
    others = [folder / name for name in ("thesis.txt", "visits.ledger.backup")]
    for other in others:
        other.write_text("the only copy", encoding="utf-8")
    for _ in range(2):
        example["main"](folder)
        out = capsys.readouterr().out
        for text in ("Cardiology", "expected", "pneumonia", "add up", "SELECT", "refused", "remaining", "To fix"):
            assert text in out
        assert "rare disease" not in out
        with Ledger.open(folder / "visits.ledger", read_only=True) as ledger:
            assert len(ledger) >= 10
            assert ledger.remaining().epsilon < 0.2
        assert examine(folder / "visits.ledger").ok
        page = (folder / "report.html").read_text(encoding="utf-8")
        assert page.count("data:image/svg+xml") >= 4
        assert "http" not in page.replace("http-equiv", "")
        assert all(other.read_text(encoding="utf-8") == "the only copy" for other in others)


@pytest.mark.parametrize("name", ["visits.ledger", "defocus.toml", "visits.parquet", "report.html"])
def test_files_that_the_demo_did_not_make_are_refused_and_kept(
    example: dict[str, Any], tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text("the only copy", encoding="utf-8")
    with pytest.raises(SystemExit, match="did not make"):
        example["main"](tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text(encoding="utf-8") == "the only copy"


def test_the_command_it_recommends_can_be_typed(
    example: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / ".venv" / "bin"
    tools.mkdir(parents=True)
    (tools / "defocus").touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.executable", str(tools / "python"))
    monkeypatch.setenv("PATH", "")
    assert example["command"]() == ".venv/bin/defocus"
    monkeypatch.setenv("PATH", str(tools))
    assert example["command"]() == "defocus"


def test_some_patients_come_far_more_often_than_the_bound(example: dict[str, Any], tmp_path: Path) -> None:
    example["generate"](tmp_path, patients=2000, seed=7)
    visits = pq.read_table(tmp_path / "visits.parquet")
    most = visits.group_by("patient_id").aggregate([("diagnosis", "count")])["diagnosis_count"].to_numpy().max()
    assert most > 10

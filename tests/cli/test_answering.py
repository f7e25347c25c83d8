"""Answers as the commands show and write them."""

import json
from pathlib import Path
from typing import Any, final

import pytest

from defocus.cli.answering import show, write, writer
from defocus.errors import InvalidParameterError


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
    ("out", "what"), [("a.xlsx", r"ends in \.xlsx"), ("a", "ends in nothing"), ("nowhere/a.csv", "no folder 'nowhere'")]
)
def test_where_nothing_can_be_written_is_refused_beforehand(out: str, what: str) -> None:
    with pytest.raises(InvalidParameterError, match=what):
        writer(Path(out))

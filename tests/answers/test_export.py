import csv
import io
import json
import re
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.answers.making import HOSTILE

from defocus.answers.export import (
    csv_text,
    described,
    disarmed,
    frame,
    json_rows,
    json_text,
    write_bytes,
    write_parquet,
)
from defocus.errors import InvalidParameterError, MissingExtraError

FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")


def armed(text: str) -> str:
    """Undo the rule as its documentation says."""
    return text[1:] if text.startswith("'") and FORMULA.match(text.lstrip("'")) else text


@given(st.one_of(st.text(), st.text(alphabet="'=+-@ \t\r\nx＝")))
def test_disarmed_text_is_no_formula_and_can_be_undone(text: str) -> None:
    safe = disarmed(text)
    assert not FORMULA.match(safe)
    assert armed(safe) == text


def test_hostile_keys_survive_csv_as_text_and_none_is_a_formula() -> None:
    text = csv_text(pa.table({"=key": HOSTILE, "n": pa.array(range(len(HOSTILE)))}))
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows[0] == ["'=key", "n"]
    assert [armed(row[0]) for row in rows[1:]] == HOSTILE
    assert all(len(row) == 2 for row in rows)
    assert not any(FORMULA.match(row[0]) for row in rows)


def test_negative_numbers_are_numbers_and_missing_is_empty() -> None:
    table = pa.table({"k": pa.array(["", None]), "n": [-3, 5], "x": [-1.5, float("nan")], "b": [True, None]})
    assert csv_text(table) == '"k","n","x","b"\n"",-3,-1.5,true\n,5,,\n'


def test_an_engine_reads_the_csv_back() -> None:
    table = pa.table({"k": ["a", 'b"c'], "x": [0.1, 2.0]})
    read = pyarrow.csv.read_csv(io.BytesIO(csv_text(table).encode()))
    assert read.to_pylist() == table.to_pylist()


def test_json_has_text_for_dates_and_null_for_what_is_not_finite() -> None:
    table = pa.table({"day": [date(2026, 1, 2)], "x": [float("nan")], "y": [float("inf")], "b": [True], "n": [None]})
    assert json_rows(table) == [{"day": "2026-01-02", "x": None, "y": None, "b": True, "n": None}]


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_missing_package_is_named_with_the_extra(package: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"defocus\[frames\]"):
        frame(pa.table({"n": [1]}), package)


def test_what_is_written_is_what_is_returned_and_says_what_it_is_about(tmp_path: Path) -> None:
    table = described(pa.table({"n": [1]}), question="how many?", rules="a\nb")
    assert table.schema.metadata[b"defocus.rules"] == b"a\nb"
    text = csv_text(table, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text(encoding="utf-8") == text
    text = json_text({"ü": [None]}, tmp_path / "a.json")
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == text
    write_parquet(table, tmp_path / "a.parquet")
    read = pyarrow.parquet.read_table(tmp_path / "a.parquet")
    assert read.schema.metadata[b"defocus.question"] == b"how many?"
    assert frame(table, "pandas")["n"].tolist() == frame(table, "polars")["n"].to_list() == [1]


@pytest.mark.parametrize("path", ["no/such/folder/x.csv", ".", 5, "a\0b"])
def test_a_path_that_cannot_be_written_is_refused(
    path: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidParameterError, match="choose another path"):
        write_bytes(path, b"x")  # type: ignore[arg-type]


def test_bytes_and_lists_are_text_in_csv() -> None:
    table = pa.table({"key": pa.array([b"\xff=", None]), "several": pa.array([[1, 2], None])})
    assert csv_text(table) == '"key","several"\n"b\'\\xff=\'","[1, 2]"\n,\n'


def test_halves_of_characters_are_spelt_in_json() -> None:
    assert json.loads(json_text({"name": "\ud800"})) == {"name": "\ud800"}
    assert json_text({"name": "\ud800"}).encode()

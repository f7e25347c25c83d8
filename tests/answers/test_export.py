import csv
import io
import json
import re
import sys
import zipfile
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import load_workbook
from tests.answers.making import HOSTILE, column, released

from defocus.answers import Tails
from defocus.answers.export import (
    csv_text,
    described,
    disarmed,
    frame,
    json_rows,
    json_text,
    write_bytes,
    write_excel,
    write_parquet,
)
from defocus.answers.tables import visible
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


def read_back(path: Path) -> Any:
    return load_workbook(path, read_only=False)


def test_an_excel_file_has_the_numbers_and_a_sheet_that_says_what_they_are(tmp_path: Path) -> None:
    answer = released(tmp_path, {"ward": ["surgery", None, "oncology"]}, column(values=[1041.25, -3.7, np.nan]))
    answer.to_excel(tmp_path / "a.xlsx")
    book = read_back(tmp_path / "a.xlsx")
    assert book.sheetnames == ["answer", "notes"]
    head, *rows = book["answer"].iter_rows(values_only=True)
    assert list(head) == answer.to_arrow().column_names
    assert [row[:2] for row in rows] == [("surgery", 1041.25), (None, -3.7), ("oncology", None)]
    assert rows[0][2:5] == pytest.approx([14.1, 1041.25 - 28.2, 1041.25 + 28.2])
    assert book["answer"].freeze_panes == "A2"
    notes = "\n".join(" ".join(str(cell) for cell in row) for row in book["notes"].iter_rows(values_only=True))
    for words in ("question visits", "patient_id", "epsilon 0.5", "charged beforehand as entry 1", "standard error"):
        assert words in notes
    assert "95 % intervals" in notes
    answer.to_excel(tmp_path / "a.xlsx", exact=False)
    rounded = list(read_back(tmp_path / "a.xlsx")["answer"].iter_rows(values_only=True))
    assert rounded[1][1] == 1041


def test_no_text_of_an_excel_file_is_a_formula_and_none_is_changed(tmp_path: Path) -> None:
    keys = {"=1+1": HOSTILE, "@SUM": ["\ud800", *HOSTILE[1:]]}
    answer = replace(released(tmp_path, keys, column("=v", range(len(HOSTILE)))), question="=HYPERLINK(2)")
    answer.to_excel(tmp_path / "a.xlsx")
    book = read_back(tmp_path / "a.xlsx")
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    assert {cell.data_type for cell in cells} <= {"s", "n", "inlineStr"}
    assert all(cell.quotePrefix for cell in cells if cell.data_type != "n" and cell.value)
    shown = [row[0] for row in book["answer"].iter_rows(min_row=2, values_only=True)]
    assert shown == [visible(key) or None for key in HOSTILE]
    with zipfile.ZipFile(tmp_path / "a.xlsx") as archive:
        for name in archive.namelist():
            text = archive.read(name).decode()
            assert "<f>" not in text
            assert "\x1b" not in text
            hosts = set(re.findall(r'Target="(https?:[^"]*)"', text))
            assert not hosts


@pytest.mark.parametrize(
    ("value", "held"),
    [
        (2**53, str(2**53)),
        (-(2**53) + 1, -(2**53) + 1),
        (date(1899, 12, 31), "1899-12-31"),
        (date(2024, 2, 29), datetime(2024, 2, 29)),  # noqa: DTZ001
        (datetime(2024, 2, 29, 12, tzinfo=UTC), "2024-02-29T12:00:00+00:00"),
        (True, True),
        (b"=1", "b'=1'"),
        (float("inf"), "inf"),
    ],
)
def test_values_that_excel_cannot_hold_are_text(value: Any, held: Any, tmp_path: Path) -> None:
    write_excel(pa.table({"x": [value]}), {}, tmp_path / "a.xlsx")
    assert read_back(tmp_path / "a.xlsx")["answer"]["A2"].value == held


def test_without_openpyxl_the_extra_is_named_and_too_many_rows_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("defocus.answers.export._MOST_ROWS", 1)
    with pytest.raises(InvalidParameterError, match="holds 1"):
        write_excel(pa.table({"x": [1, 2]}), {}, tmp_path / "a.xlsx")
    missing: Any = None
    monkeypatch.setitem(sys.modules, "openpyxl", missing)
    with pytest.raises(MissingExtraError, match=r"defocus\[excel\]"):
        write_excel(pa.table({"x": [1]}), {}, tmp_path / "a.xlsx")
    assert not (tmp_path / "a.xlsx").exists()


def test_files_have_intervals_of_any_confidence(tmp_path: Path) -> None:
    made = replace(column(), tails=Tails.NORMAL)
    answer = released(tmp_path, {"ward": ["a", "b", "c"]}, made)
    wide = answer.to_arrow(confidence=0.99)
    assert wide["visits_high"].to_pylist() == pytest.approx(answer.interval(0.99)[1].tolist())
    assert b"with 99 %" in wide.schema.metadata[b"defocus.intervals"]
    assert answer.to_dict(confidence=0.99)["confidence"] == 0.99
    assert "99 % interval" in answer.to_text(confidence=0.99)
    assert answer.to_csv(confidence=0.99) != answer.to_csv()
    answer.to_excel(tmp_path / "a.xlsx", confidence=0.99)
    assert read_back(tmp_path / "a.xlsx")["answer"]["E2"].value == pytest.approx(wide["visits_high"][0].as_py())
    with pytest.raises(InvalidParameterError):
        answer.to_text(confidence=1)

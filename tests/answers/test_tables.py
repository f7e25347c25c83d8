"""Every value has a text that files can hold."""

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from tests.answers.making import HOSTILE, column, released

from defocus.answers.tables import (
    ERRORS,
    arrow,
    cells,
    html_page,
    labels,
    line,
    notes,
    plain,
    shortened,
    spelt,
    text_facts,
    text_page,
    text_table,
    visible,
)

KEYS = {"ward": pa.array(["a", "b", None]), "year": pa.chunked_array([[2024, 2025], [2026]])}


def test_the_table_has_keys_then_five_columns_for_each_statistic() -> None:
    made = arrow(KEYS, [column()], 0.1, exact=True)
    assert made.column_names == [
        "ward",
        "year",
        "visits",
        "visits_error",
        "visits_low",
        "visits_high",
        "visits_reliable",
    ]
    assert made["visits"].to_pylist() == [1041.2, -3.7, 220.0]
    assert made["visits_reliable"].to_pylist() == [True, False, True]


def test_flags_follow_the_threshold() -> None:
    one = column(values=[100.0, 60.0, 40.0], errors=10)
    assert arrow(KEYS, [one], 0.1, exact=True)["visits_reliable"].to_pylist() == [True, False, False]
    assert arrow(KEYS, [one], 0.2, exact=True)["visits_reliable"].to_pylist() == [True, True, False]


def test_rounded_counts_are_integers_and_means_share_their_decimals() -> None:
    stay = column("stay", [4.1234, 12.0, np.nan], [0.3, 3, 0.6], integral=False)
    made = arrow(KEYS, [column(values=[1041.2, -3.7, np.nan]), stay], 0.1, exact=False)
    assert made["visits"].type == pa.int64()
    assert made["visits"].to_pylist() == [1041, -4, None]
    assert made["visits_error"].to_pylist() == [14, 14, 14]
    assert made["stay"].to_pylist()[:2] == [4.1, 12.0]


def test_cells_mark_what_the_noise_drowns_and_share_their_decimals() -> None:
    stay = column("stay", [4.1234, 12.0, 7.0], [0.3, 3, 0.6], integral=False)
    heads, rows, right = cells(KEYS, [column(), stay], 0.1)
    assert [head.strip() for head in heads] == ["ward", "year", "visits", "95 % interval", "stay", "95 % interval"]
    assert rows[1] == ["b", "2025", "-4 *", "-32 to 24", "12.0 *", "6.0 to 18.0"]
    assert rows[2][0] == "NULL"
    assert right == [False, True, True, True, True, True]


def test_long_tables_are_shortened_in_the_middle() -> None:
    n = 1000
    heads, rows, _ = cells({"k": range(n)}, [column(values=range(n))], 0.1)
    assert len(rows) == 31
    assert rows[15] == ["⋮"] * len(heads)
    assert (rows[0][0], rows[-1][0]) == ("0", "999")


def test_labels_name_groups_and_the_whole() -> None:
    assert labels(KEYS, [0, 2]) == ["a, 2024", "NULL, 2026"]
    assert labels({}, [0]) == ["all"]
    assert labels({}, [0], whole="edges") == ["edges"]


def test_keys_are_ranges_lists_or_arrays_and_of_mixed_types_text() -> None:
    mixed = {"node": ["ada", 7, (1, 2)], "rank": range(3), "n": pa.array([1, 2, 3])}
    made = arrow(mixed, [column()], None, exact=True)
    assert made["node"].to_pylist() == ["ada", "7", "(1, 2)"]
    assert made["rank"].to_pylist() == [0, 1, 2]
    assert made["n"].type == pa.int64()
    assert cells(mixed, [column()])[2] == [False, True, True, True, True]


def test_without_a_threshold_nothing_is_flagged() -> None:
    assert "visits_reliable" not in arrow(KEYS, [column()], None, exact=True).column_names
    heads, rows, _ = cells(KEYS, [column()])
    assert heads[2] == "visits"
    assert rows[1][2] == "-4"
    assert notes([column(values=[1.0])], None, []) == []


def test_notes_say_what_is_not_shown_and_what_the_star_means() -> None:
    assert notes([column(values=[1000.0])], 0.1, ["why"]) == ["why"]
    assert notes([column(values=[1.0])], 0.1, []) == ["* the noise is more than 10 % of the value"]
    assert notes([column(values=[1e6] * 99)], 0.1, [])[0] == "99 groups, 69 of them not shown"
    assert notes([column(values=[1e6] * 99)], None, [], things="entries")[0] == "99 entries, 69 of them not shown"


def test_the_metadata_says_which_errors_are_standard_errors() -> None:
    both = [column(), replace(column(), name="sum", absolute=True)]
    told = arrow(KEYS, both, None, exact=True).schema.metadata[ERRORS.encode()]
    assert told == b"visits_error: standard error\nsum_error: expected absolute error"


@pytest.mark.parametrize(
    ("keys", "texts"),
    [
        (["ada", b"\xff"], ["ada", "b'\\xff'"]),
        ([(1, 2), (3, 4)], ["(1, 2)", "(3, 4)"]),
        (["\ud800", None], ["\\ud800", None]),
        ([1, 10**5000], ["1", hex(10**5000)]),
    ],
    ids=["bytes", "tuples", "half", "huge"],
)
def test_keys_that_have_no_type_in_common_are_spelt(keys: list[Any], texts: list[Any]) -> None:
    table = arrow({"node": keys}, [column("n", [1.0, 2.0])], None, exact=True)
    assert table.column("node").to_pylist() == texts


@pytest.mark.parametrize("key", HOSTILE)
def test_a_key_is_one_visible_line(key: str) -> None:
    seen = plain(key)
    assert seen.isprintable()
    assert seen.strip()
    assert len(seen) <= 40


@given(st.text())
def test_no_text_reaches_a_terminal_with_control_characters(text: str) -> None:
    assert plain(text).isprintable()
    assert line(text).isprintable()
    assert visible(text).isprintable()


def test_missing_is_told_from_empty_and_long_is_cut() -> None:
    assert plain(None) == "NULL"
    assert plain("") == "''"
    assert plain("  ") == "'  '"
    assert plain("x" * 100) == "x" * 39 + "…"


@given(st.integers(0, 500), st.integers(2, 60))
def test_shortened_tables_show_the_first_and_the_last(count: int, most: int) -> None:
    shown, left_out = shortened(count, most=most)
    assert len(shown) + left_out == count
    assert len(shown) <= max(most, 1)
    assert shown == sorted(set(shown))
    if count:
        assert shown[0] == 0
        assert shown[-1] == count - 1


def test_columns_end_together_also_with_wide_characters() -> None:
    text = text_table(["ward", "n"], [["患者", "5"], ["a", "1 000"]], right=[False, True])
    lines = text.split("\n")
    assert len({cell_len(each) for each in lines if each[-1] != "n"}) == 1
    assert [each[-1] for each in lines] == ["n", "─", "5", "0"]


@pytest.mark.parametrize("key", HOSTILE)
def test_pages_escape_every_cell(key: str) -> None:
    page = html_page(([key], [[key]], [False]), [key], title=key)
    assert "<script" not in page
    assert page.count("&amp;amp;") == 4 * key.count("&amp;")


def test_facts_put_sentences_below_each_other() -> None:
    assert text_facts({"a": ["one", "two"], "long": ["three"]}) == "a:    one\n      two\nlong: three"
    assert "\x1b" not in text_facts({"a": ["\x1b[2J"]})


def test_a_page_has_its_title_above_and_its_notes_below() -> None:
    cells = (["ward", "n"], [["a", "5"]], [False, True])
    assert text_page(cells, ["why\x1b"], title="visits") == "visits\nward  n\n────  ─\na     5\nwhy\\x1b"
    assert text_page(cells, []).startswith("ward")
    page = html_page(cells, ["why"], title="visits")
    assert '<table><caption style="text-align:left">visits</caption>' in page
    assert page.endswith("</table></div><p>why</p></div>")


class Refusing:
    def __str__(self) -> str:
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("ada", "ada"),
        ("", ""),
        (-3, "-3"),
        (True, "True"),
        (2.5, "2.5"),
        (np.int64(7), "7"),
        (b"x", "b'x'"),
        (dt.date(2024, 1, 1), "2024-01-01"),
        (UUID(int=3), "00000000-0000-0000-0000-000000000003"),
        ((1, "a"), "(1, 'a')"),
        ("\ud800x", "\\ud800x"),
        (10**999, "1" + "0" * 999),
        (10**5000, hex(10**5000)),
        (-(10**5000), hex(-(10**5000))),
        ((10**5000, "a"), f"({hex(10**5000)}, a)"),
        (Fraction(10**5000, 3), f"{hex(10**5000)}/3"),
        (Decimal("1e999999"), "1E+999999"),
        (Refusing(), "<Refusing>"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_value_has_a_text_that_files_hold(value: Any, text: str) -> None:
    assert spelt(value) == text
    assert spelt(value).encode() == text.encode()
    assert plain(value, widest=10**6) == (text or "''")
    assert visible(value) == text


def test_a_column_about_another_stands_alone_with_two_digits() -> None:
    part = replace(column("noise", [0.12345, 2.0, 31.0]), error_of="")
    assert arrow(KEYS, [column(), part], 0.1, exact=True).column_names[-2:] == ["visits_reliable", "noise"]
    heads, body, right = cells(KEYS, [column(), part])
    assert heads[-2:] == ["95 % interval", "noise"]
    assert [row[-1] for row in body] == ["0.12", "2.0", "31"]
    assert len(right) == len(heads)


def test_a_page_shows_hundreds_of_groups_and_a_terminal_thirty(tmp_path: Path) -> None:
    answer = released(tmp_path, {"k": range(200)}, column(values=[1e6] * 200))
    assert answer._repr_html_().count("<tr>") == 201
    assert "200 entries, 170 of them not shown" in str(answer)
    assert "not shown" not in answer._repr_html_()

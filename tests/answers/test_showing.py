import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from tests.answers.making import HOSTILE

from defocus.answers.showing import html_page, line, plain, shortened, text_facts, text_page, text_table, visible


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
    assert page.startswith("<div><p>visits</p><table>")
    assert page.endswith("</table><p>why</p></div>")

"""What is printed cannot move a cursor, and bounds are rounded to their own side."""

import json
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.cli.terminal import above, below, console, plain, table, tell, to_json
from defocus.errors import DefocusError, InvalidParameterError

positive = st.floats(1e-12, 1e12)


@given(positive, st.integers(1, 12))
def test_an_upper_bound_is_rounded_up_and_a_lower_one_down(value: float, digits: int) -> None:
    last_bits = Fraction(value) / 2**46
    assert Fraction(below(value, digits)) - last_bits <= Fraction(value) <= Fraction(above(value, digits)) + last_bits
    assert Fraction(above(value, digits)) <= Fraction(value) * (1 + Fraction(10, 10**digits))
    assert Fraction(below(value, digits)) >= Fraction(value) * (1 - Fraction(10, 10**digits))


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.8282376, "1.82824"), (0.0, "0"), (20.0, "20"), (1e-30, "1e-30"), (math.inf, "inf"), (123456789.0, "123457000")],
)
def test_numbers_look_like_numbers(value: float, text: str) -> None:
    assert above(value) == text


@given(st.text())
def test_nothing_that_is_not_printable_gets_through(text: str) -> None:
    assert plain(text).isprintable()


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126)))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert plain(text) == text


def test_escape_sequences_in_a_table_are_shown_as_their_codes(capsys: pytest.CaptureFixture[str]) -> None:
    console().print(table(("a\x1b[2J",), [("\x1b]0;owned\x07[red]x[/red]",)]))
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\\x1b[2J" in out
    assert "[red]x[/red]" in out


def test_json_is_strict(capsys: pytest.CaptureFixture[str]) -> None:
    to_json({"a": 1.5, "b": None, "c": "\x1b é"})
    out = capsys.readouterr().out
    assert out.isascii()
    assert json.loads(out) == {"a": 1.5, "b": None, "c": "\x1b é"}
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json(math.nan)


def test_a_refusal_is_told_with_its_remedy_and_without_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    tell(InvalidParameterError("It is \x1b[31mred.\nTwo lines.", fix="paint it."))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "It is \\x1b[31mred.\nTwo lines.\nTo fix: paint it.\n"


def test_a_long_refusal_is_not_broken_in_the_middle_of_a_path(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    tell(DefocusError("a" * 200, fix="b" * 200))
    assert capsys.readouterr().err.splitlines() == ["a" * 200, "To fix: " + "b" * 200]


def test_markup_in_a_line_is_taken_literally(capsys: pytest.CaptureFixture[str]) -> None:
    console().print("[red]x[/red] :smile:")
    assert capsys.readouterr().out == "[red]x[/red] :smile:\n"

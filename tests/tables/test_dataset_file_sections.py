from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import DatasetFileError
from defocus.tables.dataset_draft import heading, key, value
from defocus.tables.dataset_file import parse

names = st.text(min_size=1, max_size=10).filter(lambda text: not any(0xD800 <= ord(c) < 0xE000 for c in text))


@given(st.lists(names, min_size=1, max_size=3), names)
def test_a_refusal_names_the_line_whatever_the_names_are(path: list[str], name: str) -> None:
    text = f"# a comment\n{heading(*path)}\n\n{key(name)} = 5\n"
    section = parse(text)
    for part in path:
        section = section.section(part)
    with pytest.raises(DatasetFileError, match=r"line 4\)"):
        section.refuse(name, "no", "yes.")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("= 1", "line 1"),
        ("a = 1\na = 2", "overwrite|line 2"),
        ("a = [", "line 1|end of document"),
        ("a = " + "[" * 3000, "nested too deeply|end of document"),
        ("a = 99999-99-99", "line 1|not TOML"),
        ('a = "\\ud800"', "not TOML"),
    ],
)
def test_what_is_no_toml_is_refused_with_the_line(text: str, line: str) -> None:
    with pytest.raises(DatasetFileError, match=line):
        parse(text)


def test_a_giant_file_is_refused() -> None:
    with pytest.raises(DatasetFileError, match="10 MB"):
        parse("#" * 10_000_001)


def test_unknown_keys_are_named_with_what_was_meant() -> None:
    with pytest.raises(DatasetFileError, match=r"'epsilom' means nothing \(at the top, line 2\)") as caught:
        parse("# x\nepsilom = 1").only("epsilon", "delta")
    assert caught.value.fix == "did you mean epsilon? It can be epsilon, delta."


@pytest.mark.parametrize("bad", [5, "", " ", "a\nb", "\x7f", ["a"], True, {}])
def test_a_word_is_text_on_one_line(bad: Any) -> None:
    section = parse(f"w = {value(bad)}" if not isinstance(bad, dict) else "w = {}")
    with pytest.raises(DatasetFileError, match="line 1"):
        section.word("w")


@pytest.mark.parametrize("bad", [5, [], ["a", "a"], ["a", 5], [""], True])
def test_words_are_different_texts(bad: Any) -> None:
    with pytest.raises(DatasetFileError, match="line 1"):
        parse(f"w = {value(bad)}").words("w")


@pytest.mark.parametrize("bad", ["0", "-1", "1.0", "true", '"5"', "9223372036854775808", "[1]", "nan"])
def test_a_whole_number_is_one(bad: str) -> None:
    with pytest.raises(DatasetFileError, match="line 1"):
        parse(f"n = {bad}").whole("n")


@pytest.mark.parametrize("bad", ["nan", "inf", "-inf", "true", '"x"', '"1/0"', '"1/3/5"', "[1]", "2020-01-01"])
def test_a_number_is_finite(bad: str) -> None:
    with pytest.raises(DatasetFileError, match="line 1"):
        parse(f"n = {bad}").number("n")


@given(names, st.one_of(names, st.integers(), st.floats(allow_nan=False), st.booleans(), st.lists(names, max_size=3)))
def test_what_is_written_is_read_back_and_stays_on_its_line(name: str, thing: Any) -> None:
    line = f"{key(name)} = {value(thing)}"
    assert "\n" not in line
    assert "\r" not in line
    assert parse(line).values == {name: thing}

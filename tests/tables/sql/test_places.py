"""A refusal says where: the line, the column and the words, as they were written."""

from typing import Any

import pytest

from defocus.errors import InvalidParameterError
from defocus.tables import Table


def refused(visits: Table, text: str, **how: Any) -> str:
    with pytest.raises(InvalidParameterError) as caught:
        visits.sql_query(text, **how)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "column", "marked"),
    [
        ("SELECT COUNT(*)\nFROM visits\nWHERE agee > 3", 3, 7, "agee"),
        ("SELECT COUNT(*) FROM visits WHERE SOUNDEX(ward) = 'A'", 1, 35, "SOUNDEX(ward"),
        ("SELECT ward, age, COUNT(*) FROM visits GROUP BY ward", 1, 14, "age"),
        ("SELECT AVG(days + ward) FROM visits", 1, 12, "days + ward"),
        ("SELECT COUNT(*) FROM visits WHERE day > CURRENT_DATE", 1, 41, "CURRENT_DATE"),
        ("SELECT COUNT(*) FROM visits WHERE (age > 3", 1, 42, "3"),
        ("SELECT STRFTIME(day, '%q') AS q,\n COUNT(*) FROM visits GROUP BY q", 1, 8, "STRFTIME(day"),
        ("SELECT COUNT(*) FROM visits v WHERE v.nothing = 1", 1, 37, "v.nothing"),
    ],
)
def test_the_words_are_marked(visits: Table, text: str, line: int, column: int, marked: str) -> None:
    said = refused(visits, text).split("\n")
    place = next(i for i, words in enumerate(said) if words.startswith("  line "))
    assert said[place] == f"  line {line}, column {column}:"
    assert said[place + 1] == "  " + text.split("\n")[line - 1]
    assert said[place + 2] == " " * (1 + column) + "^" * len(marked)
    assert said[place + 3].startswith("To fix: ")


def test_a_long_line_is_shown_around_the_place(visits: Table) -> None:
    text = f"SELECT COUNT(*) FROM visits WHERE {'age > 1 AND ' * 40}agee > 3 {'AND age > 1 ' * 40}"  # noqa: S608  # refused
    shown, marks = refused(visits, text).split("\n")[2:4]
    assert shown[marks.index("^") : marks.index("^") + 4] == "agee"
    assert len(shown) <= 110


def test_names_are_those_that_were_written_and_of_no_other_dialect(visits: Table) -> None:
    assert "LISTAGG" in refused(visits, "SELECT LISTAGG(ward) FROM visits")
    assert "function REGEXP_EXTRACT" in refused(
        visits, "SELECT COUNT(*) FROM visits WHERE regexp_extract(ward, 'a') = 'a'"
    )
    assert (
        "line" not in refused(visits, "SELECT COUNT(*) FROM visits WHERE agee > 3", dialect="postgres").split("\n")[0]
    )


def test_what_a_text_holds_cannot_act(visits: Table) -> None:
    said = refused(visits, "SELECT COUNT(*) FROM visits WHERE '\x1b[31m\t' = ward AND agee > 3")
    assert "\x1b" not in said
    assert "agee" in said


def test_the_format_of_a_date_is_kept(visits: Table) -> None:
    query = visits.sql_query("SELECT TO_CHAR(day, 'MM') AS m, COUNT(*) AS n FROM visits GROUP BY m")
    assert query.query.keys is not None
    assert query.query.keys.number == 12
    assert "'%m'" in query.question
    assert "cannot be written" not in refused(visits, "SELECT COUNT(*) FROM visits WHERE TO_CHAR(day, 'Mon') = 'Jan'")

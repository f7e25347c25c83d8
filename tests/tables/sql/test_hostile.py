"""Hostile SQL: no text does more than ask or be refused, and what is refused leaves no trace in the ledger."""
# ruff: noqa: S608  # hostile text is what is tested

import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables.sql.hospital import exact, hospital
from tests.tables.sql.test_refusals import MISTAKEN, REFUSED

from defocus import Budget, user
from defocus.errors import DefocusError, EngineError, NotFinishedError, QuestionFailedError
from defocus.tables import Table
from defocus.tables import open as open_table

GOOD = (
    """SELECT ward, COUNT(*) AS n, AVG(days) FROM visits WHERE age >= 18 AND ward IN ('A', 'B') GROUP BY ward
    HAVING n > 3 ORDER BY n DESC LIMIT 5""",
    """WITH a AS (SELECT *, CASE WHEN age < 30 THEN 'y' ELSE 'o' END AS band FROM visits) SELECT band, MEDIAN(days),
    SUM(days) / COUNT(*) AS r FROM a v JOIN wards w USING (ward) LEFT JOIN patients p ON v.patient = p.patient
    GROUP BY 1 ORDER BY 2""",
    """SELECT EXTRACT(month FROM day) AS m, COUNT(DISTINCT patient), STDDEV(CLAMP(age, 0, 99)),
    PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY days) FILTER (WHERE smoker) FROM visits GROUP BY m""",
)
PIECES = sorted({piece for text in (*GOOD, *REFUSED, *MISTAKEN) for piece in re.findall(r"'[^']*'|\w+|[^\w\s]", text)})


def pieces(text: str) -> list[str]:
    return re.findall(r"'[^']*'|\w+|[^\w\s]", text)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A query that was right, with some pieces taken out, put in or exchanged."""
    words = pieces(draw(st.sampled_from(GOOD)))
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(words) - 1))
        match draw(st.sampled_from(["cut", "put", "exchange", "repeat"])):
            case "cut" if len(words) > 1:
                del words[place]
            case "put":
                words.insert(place, draw(st.sampled_from(PIECES)))
            case "repeat":
                words[place:place] = words[place : place + draw(st.integers(1, 8))]
            case _:
                words[place] = draw(st.sampled_from(PIECES))
    return " ".join(words)


def is_answered_or_refused(table: Table, text: str, dialect: str = "duckdb") -> None:
    before = table.ledger.spent()
    try:
        table.sql_query(text, dialect=dialect).plan(epsilon=1)
    except (EngineError, QuestionFailedError, NotFinishedError):
        raise
    except DefocusError as refusal:
        told = refusal.what and refusal.fix
    else:
        told = "read"
    assert told
    assert table.ledger.spent() == before


@settings(max_examples=150)
@given(text=mutated())
def test_mutated_queries_are_read_or_refused(visits: Table, text: str) -> None:
    is_answered_or_refused(visits, text)


@settings(max_examples=60)
@given(text=mutated(), dialect=st.sampled_from(["postgres", "mysql", "spark", "bigquery", "tsql", "clickhouse"]))
def test_mutated_queries_in_other_dialects_are_read_or_refused(visits: Table, text: str, dialect: str) -> None:
    is_answered_or_refused(visits, text, dialect)


@settings(max_examples=120)
@given(words=st.lists(st.sampled_from(PIECES), max_size=30))
def test_random_words_are_read_or_refused(visits: Table, words: list[str]) -> None:
    is_answered_or_refused(visits, "SELECT " + " ".join(words))


@settings(max_examples=50)
@given(text=st.text(max_size=80))
def test_random_text_is_refused(visits: Table, text: str) -> None:
    is_answered_or_refused(visits, text)
    is_answered_or_refused(visits, f"SELECT COUNT(*) FROM visits WHERE {text}")
    is_answered_or_refused(visits, f'SELECT COUNT(*) AS "{text}" FROM visits')


@settings(max_examples=40)
@given(text=mutated())
def test_what_is_read_is_released_for_one_charge(visits: Table, text: str) -> None:
    try:
        query = visits.sql_query(text)
        query.plan(epsilon=1, delta=1e-6)
    except DefocusError:
        return
    before = visits.ledger.anchor().sequence + 1
    answer = query.release(epsilon=1, delta=1e-6, request=f"{before}")
    added = list(visits.ledger.entries())[before:]
    assert [entry.kind for entry in added][:1] == ["charge"]
    assert sum(entry.kind == "charge" for entry in added) == 1
    assert answer.event == query.plan(epsilon=1, delta=1e-6).event


INJECTIONS = (
    "'; DROP TABLE visits; --",
    "' OR 1 = 1 --",
    "') UNION SELECT * FROM patients --",
    "\"; ATTACH 'x.db'; --",
    "\\'; SELECT 1; --",
    "*/ DROP TABLE visits /*",
    "x' || (SELECT secret FROM patients) || '",
    "＇; DROP TABLE visits",
)


@pytest.mark.parametrize("value", INJECTIONS)
def test_literals_aliases_and_quoted_names_stay_what_they_are(visits: Table, value: str) -> None:
    literal, name = value.replace("'", "''"), value.replace('"', '""')
    text = f"SELECT ward AS \"{name}\", COUNT(*) AS n FROM visits WHERE ward IN ('{literal}', 'A') GROUP BY ward"
    found = exact(visits, text)
    assert found == {value: sorted(["A", value]), "n": [20.0 if ward == "A" else 0.0 for ward in sorted(["A", value])]}
    derived = f'SELECT COUNT(*) AS n FROM (SELECT ward AS "{name}" FROM visits) WHERE "{name}" <> \'{literal}\''
    assert exact(visits, derived) == {"n": [60.0]}


def test_hostile_column_names_are_asked_about_like_others(tmp_path: Path) -> None:
    name = '"; DROP TABLE t; --'
    table = pa.table(
        {"id": [1, 2, 3], name: ["a", "a", "b"], "select": [1, 2, 3], "a.b": [1, 2, 3], "Größe": [1, 2, 3]}
    )
    where = tmp_path / "l"
    with open_table(table, unit=user("id"), budget=Budget(10**9), ledger=where, name="my table") as opened:
        quoted = name.replace('"', '""')
        text = f"""SELECT "{quoted}" AS k, COUNT(*) AS n, SUM(CLAMP("select", 0, 9)) AS s, SUM(CLAMP("a.b", 0, 9)) AS d,
            SUM(CLAMP(größe, 0, 9)) AS g FROM "my table" WHERE "{quoted}" IN ('a', 'b') GROUP BY "{quoted}" """
        assert exact(opened, text) == {"k": ["a", "b"], "n": [2, 1], "s": [3, 3], "d": [3, 3], "g": [3, 3]}


def test_look_alikes_of_names_are_other_names(visits: Table) -> None:
    with pytest.raises(DefocusError, match="There is no column"):
        visits.sql_query("SELECT COUNT(*) FROM visits WHERE аge > 3")  # a Cyrillic а
    with pytest.raises(DefocusError, match="There is no table"):
        visits.sql_query("SELECT COUNT(*) FROM vіsits")  # a Cyrillic і


@pytest.mark.parametrize("letter", ["\x07", "\x1b[31m", "\u2028", "\u202e", "\n", "\r", "\t"])
def test_control_characters_reach_neither_the_ledger_nor_the_screen(visits: Table, letter: str) -> None:
    answer = visits.sql(f"SELECT COUNT(*) AS \"a{letter}b\" FROM visits WHERE ward <> '{letter}'", epsilon=1)
    assert answer.receipt.purpose.isprintable()
    assert answer.columns[0].name == f"a{letter}b"
    assert all(line.isprintable() for line in str(answer).split("\n"))


def test_comments_hide_nothing(visits: Table) -> None:
    text = "SELECT COUNT(*) AS n FROM visits WHERE age >= 0 -- AND ward = 'A'\n AND smoker /* OR TRUE */"
    query = visits.sql_query(text)
    assert query.text == "SELECT COUNT(*) AS n FROM visits WHERE age >= 0 AND smoker"
    assert exact(visits, text) == {"n": [15.0]}


def test_the_rows_are_not_looked_at_before_the_charge() -> None:
    with hospital() as table:
        before = len(list(table.ledger.entries()))
        table.rows.engine.close()  # whatever looks at a row now fails
        query = table.sql_query("SELECT smoker, COUNT(*) AS n, MEDIAN(days) FROM visits GROUP BY smoker ORDER BY n")
        query.preview(epsilon=1)
        assert len(list(table.ledger.entries())) == before
        with pytest.raises(QuestionFailedError):
            query.release(epsilon=1)
        assert len(list(table.ledger.entries())) == before + 1

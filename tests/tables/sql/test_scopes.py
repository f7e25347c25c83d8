"""Names mean the columns that SQL says they mean."""
# ruff: noqa: S608  # hostile text is what is tested

import pytest
from tests.tables.sql.hospital import exact

from defocus.errors import InvalidParameterError, UnknownColumnError, UnsupportedSqlError
from defocus.tables import Table
from defocus.tables.sql.scopes import plain, unused


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("FROM visits WHERE AGE = 25", 3),
        ('FROM visits WHERE "age" = 25', 3),
        ("FROM visits v WHERE v.age = 25", 3),
        ('FROM Visits AS "V" WHERE "V".Age = 25', 3),
        ("FROM (SELECT age AS years FROM visits) WHERE years = 25", 3),
        ("FROM (SELECT age + 1 AS age FROM visits) WHERE age = 25", 3),
        ("FROM (SELECT age AS ward, ward AS age FROM visits) WHERE ward = 25 AND age = 'C'", 1),
        ("FROM (SELECT *, age * 2 AS twice FROM (SELECT age FROM visits WHERE smoker) x) WHERE twice = 48", 3),
        ("FROM (SELECT v.* FROM visits v) WHERE smoker", 15),
        ('FROM visits WHERE "order" = 3 AND "length of stay" = 3', 1),
        ("FROM (SELECT CASE WHEN smoker THEN 'y' ELSE 'n' END AS s FROM visits) t WHERE t.s = 'y'", 15),
    ],
)
def test_a_column_is_found_under_the_name_it_has_there(visits: Table, text: str, count: int) -> None:
    assert exact(visits, f"SELECT COUNT(*) AS n {text}") == {"n": [float(count)]}


def test_the_latest_with_hides_what_it_is_called_after(visits: Table) -> None:
    text = (
        "WITH visits AS (SELECT * FROM visits WHERE smoker), v AS (SELECT age FROM visits) SELECT COUNT(*) AS n FROM v"
    )
    assert exact(visits, text) == {"n": [15.0]}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM (SELECT age FROM visits) WHERE ward = 'A'",
        'SELECT COUNT(*) FROM visits WHERE "Age" = 25',
        "SELECT COUNT(*) FROM visits WHERE a.b.age = 25",
        "SELECT COUNT(*) AS n FROM visits WHERE n > 3",
    ],
)
def test_a_column_that_is_not_there_is_unknown(visits: Table, text: str) -> None:
    with pytest.raises((UnknownColumnError, UnsupportedSqlError)):
        visits.sql_query(text)


def test_a_hidden_table_name_cannot_be_used(visits: Table) -> None:
    with pytest.raises(UnsupportedSqlError, match="before a dot"):
        visits.sql_query("SELECT COUNT(*) FROM visits v WHERE visits.age = 25")


def test_a_name_that_two_tables_have_must_be_told_apart(visits: Table) -> None:
    with pytest.raises(InvalidParameterError, match="Several tables have a column 'age'"):
        visits.sql_query("SELECT COUNT(*) FROM visits a JOIN visits b USING (patient) WHERE age > 1")
    visits.sql_query("SELECT COUNT(*) FROM visits a JOIN visits b USING (patient) WHERE a.age > 1 AND patient > 3")


@pytest.mark.parametrize("name", ["date", "left", "a b", "a.b", "Größe", "1x", "", "current_date", "interval", "end"])
def test_names_that_could_be_read_otherwise_are_quoted(name: str) -> None:
    assert plain(name).this.args["quoted"]


def test_plain_names_are_not_quoted_and_taken_ones_numbered() -> None:
    assert not plain("age").this.args["quoted"]
    assert unused("age", ["Age", "age_2"]) == "age_3"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM visits v " + " ".join(f"JOIN visits v{i} USING (patient)" for i in range(40)),
        "SELECT COUNT(*) FROM visits GROUP BY " + ", ".join(f"age + {i}" for i in range(300)),
        "SELECT COUNT(*) FROM (SELECT " + ", ".join(f"age + {i} AS x{i}" for i in range(300)) + " FROM visits)",
        "WITH "
        + ", ".join(f"c{i} AS (SELECT age FROM {f'c{i - 1}' if i else 'visits'} WHERE age > {i})" for i in range(300))
        + " SELECT COUNT(*) FROM c299",
    ],
)
def test_a_query_of_very_many_steps_is_refused(visits: Table, text: str) -> None:
    with pytest.raises(UnsupportedSqlError, match="more than 48 filters, derived columns and joins"):
        visits.sql_query(text)


ONE = "CASE WHEN age = 25 THEN 'aaaa' ELSE '' END"
LONGER = f"REPLACE(z, 'a', '{'a' * 64}')"


def nested(*steps: str) -> str:
    """Sub-queries in each other, each of which makes z anew."""
    text = f"SELECT patient, {ONE} AS z FROM visits"
    for step in steps:
        text = f"SELECT patient, {step} AS z FROM ({text})"
    return text


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT COUNT(DISTINCT z) FROM ({nested(*[LONGER] * 4)})",
        f"SELECT COUNT(*) FROM ({nested(LONGER, LONGER)}) WHERE {LONGER} <> 'b'",
        f"SELECT COUNT(*) FROM ({nested(*['z || z'] * 20)}) WHERE z <> 'b'",
        f"SELECT COUNT(*) FROM ({nested(LONGER, 'UPPER(z)', LONGER, 'LOWER(z)')}) GROUP BY {LONGER}",
        f"SELECT COUNT(DISTINCT CONCAT({', '.join(['z'] * 16)})) FROM ({nested(LONGER, LONGER)})",
        (
            f"WITH a AS ({nested(LONGER)}), b AS (SELECT z AS y FROM a), c AS (SELECT {LONGER} AS z FROM (SELECT y AS z"
            f" FROM b)), d AS (SELECT {LONGER} AS z FROM c) SELECT COUNT(DISTINCT z) FROM d"
        ),
        (
            f"SELECT COUNT(*) FROM visits v JOIN ({nested(LONGER, LONGER)}) j USING (patient)"
            f" WHERE {LONGER.replace('z', 'j.z')} <> 'b'"
        ),
        f"SELECT COUNT(*) FROM (SELECT {LONGER} AS z FROM (SELECT ward || 'a' AS z FROM visits)) WHERE z || z <> 'b'",
    ],
)
def test_a_text_does_not_grow_without_end_through_sub_queries(visits: Table, text: str) -> None:
    with pytest.raises(UnsupportedSqlError, match=r"A text that can grow so long|An expression of so many long texts"):
        visits.sql_query(text)


@pytest.mark.parametrize(
    "text",
    [
        "FROM (SELECT UPPER(z) AS z FROM (SELECT CONCAT(ward, '-', ward) AS z FROM visits)) WHERE z = 'C-C'",
        (
            "FROM (SELECT REPLACE(z, '-', ' to ') AS z FROM (SELECT ward || '-' || ward AS z FROM visits))"
            " WHERE z = 'C to C'"
        ),
        "FROM (SELECT ward AS z FROM visits) a WHERE z || z || z = 'CCC'",
    ],
)
def test_texts_may_grow_a_little_through_sub_queries(visits: Table, text: str) -> None:
    assert exact(visits, f"SELECT COUNT(*) AS n {text}") == exact(
        visits, "SELECT COUNT(*) AS n FROM visits WHERE ward = 'C'"
    )


def test_steps_before_a_query_count_as_well(visits: Table) -> None:
    for _ in range(47):
        visits = visits.where("age > 0")
    visits.sql_query("SELECT COUNT(*) FROM visits WHERE age > 1")
    with pytest.raises(UnsupportedSqlError, match="more than 48 filters"):
        visits.sql_query("SELECT COUNT(*) FROM (SELECT age + 1 AS x FROM visits) WHERE x > 1")

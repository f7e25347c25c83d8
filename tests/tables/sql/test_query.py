"""A query in SQL is previewed, planned, released and remembered like any other."""

import pytest
from tests.tables.sql.hospital import exact, hospital

from defocus.errors import (
    BudgetExceededError,
    InvalidParameterError,
    NotDeclaredError,
    UnknownColumnError,
    UnsupportedSqlError,
)
from defocus.noise.testing import seeded
from defocus.privacy.units import rows
from defocus.tables import Table
from defocus.tables.sql.query import plain, unused

QUERY = "SELECT smoker, COUNT(*) AS n, MAX(days) AS most FROM visits GROUP BY smoker HAVING n > -1000 ORDER BY n DESC"


def test_a_preview_is_free_and_tells_what_the_release_costs(visits: Table) -> None:
    before = visits.ledger.spent()
    query = visits.sql_query(QUERY)
    seen = query.preview(epsilon=0.5)
    assert visits.ledger.spent() == before
    assert [column.name for column in seen.columns] == ["n", "most"]
    assert seen.event == query.plan(epsilon=0.5).event == query.release(epsilon=0.5).event
    assert seen.question == query.question == query.text
    assert "MAX is the quantile of 99.5 %: the very last value belongs to one person" in seen.rules


def test_one_select_is_one_charge(visits: Table) -> None:
    before = visits.ledger.anchor().sequence + 1
    answer = visits.sql(QUERY, epsilon=0.5)
    kinds = [entry.kind for entry in list(visits.ledger.entries())[before:]]
    assert kinds.count("charge") == 1
    assert answer.question == answer.receipt.purpose == " ".join(QUERY.split())


def test_the_same_bits_give_the_same_answer(visits: Table) -> None:
    one, two = (visits.sql(QUERY, epsilon=0.5, bits=seeded(7)) for _ in range(2))
    assert one["n"].values.tolist() == two["n"].values.tolist()


def test_a_request_is_answered_again_for_nothing(visits: Table) -> None:
    first = visits.sql(QUERY, epsilon=0.5, request="monthly report")
    before = visits.ledger.spent()
    again = visits.sql(QUERY, epsilon=0.5, request="monthly report")
    assert again.to_pandas().equals(first.to_pandas())
    assert again.processing == first.processing
    assert visits.ledger.spent() == before
    with pytest.raises(InvalidParameterError, match="another question"):
        visits.sql("SELECT COUNT(*) FROM visits", epsilon=0.5, request="monthly report")


def test_keys_that_nobody_knows_are_refused_before_the_charge(visits: Table) -> None:
    query = visits.sql_query("SELECT smoker, ward, COUNT(*) FROM visits GROUP BY smoker, ward")
    assert query.unknown == ("ward",)
    for ask in (query.preview, query.plan, query.release):
        with pytest.raises(NotDeclaredError, match="Nobody said which values of ward there are"):
            ask(epsilon=1)
    assert query.preview(epsilon=1, delta=1e-6).columns


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), True, "1", None])
def test_a_price_that_is_none_is_refused(visits: Table, epsilon: object) -> None:
    before = visits.ledger.spent()
    with pytest.raises(InvalidParameterError):
        visits.sql("SELECT COUNT(*) FROM visits", epsilon=epsilon)  # type: ignore[arg-type]  # bad input is the point
    assert visits.ledger.spent() == before


def test_a_spent_budget_refuses_sql_too() -> None:
    with hospital(unit=rows()) as table, pytest.raises(BudgetExceededError):
        table.sql("SELECT COUNT(*) FROM visits", epsilon=2 * 10**12)


def test_the_notes_tell_where_sql_means_something_else(visits: Table) -> None:
    asked = "SELECT STDDEV(days), MIN(days), COUNT(DISTINCT age) FROM visits"
    said = visits.sql(asked, epsilon=1, at_most=1).explain()
    assert "STDDEV divides by the number of rows" in said
    assert "MIN is the quantile of 0.5 %" in said
    assert "brings at most 1 different value of age" in said


def test_epsilon_must_be_given(visits: Table) -> None:
    with pytest.raises(NotDeclaredError, match="what this may cost"):
        visits.sql("SELECT COUNT(*) FROM visits")


# ruff: noqa: S608  # hostile text is what is tested


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


def test_a_preview_in_sql_tells_how_far_off_a_quantile_is_in_rank(visits: Table) -> None:
    seen = visits.sql_query("SELECT MEDIAN(days) AS middle FROM visits").preview(epsilon=0.5)
    assert seen.columns[0].rank is not None
    assert "rows in rank" in str(seen)

"""Everything that is not understood is refused by its name, with a remedy, and nothing is charged."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from tests.tables.sql.hospital import VISITS, hospital

from defocus import rows
from defocus.errors import DefocusError, InvalidParameterError, UnsupportedSqlError
from defocus.tables import Table

REFUSED = {
    "SELECT * FROM visits": "SELECT *",
    "SELECT COUNT(*) FROM visits WHERE (ward, age) IN (('A', 1), ('B', 2))": "Several values in brackets",
    "SELECT visits.* FROM visits": "SELECT *",
    "SELECT COLUMNS(*) FROM visits": "SELECT *",
    "SELECT * EXCLUDE (age) FROM visits": "SELECT *",
    "FROM visits": "SELECT *",
    "SELECT age FROM visits": "The raw column age in SELECT",
    "SELECT ward, COUNT(*) FROM visits": "The raw column ward in SELECT",
    "SELECT age + 1, COUNT(*) FROM visits GROUP BY ward": "The raw column age in SELECT",
    "SELECT UPPER(ward), COUNT(*) FROM visits GROUP BY ward": "UPPER(ward) among the selected columns",
    "SELECT 1, COUNT(*) FROM visits": "1 among the selected columns",
    "SELECT RANDOM(), COUNT(*) FROM visits": "RANDOM() among the selected columns",
    "SELECT RANDOM() * COUNT(*) FROM visits": "The function RAND",
    "SELECT ward FROM visits GROUP BY ward": "A SELECT without an aggregate",
    "SELECT DISTINCT ward FROM visits": "SELECT DISTINCT",
    "SELECT DISTINCT ON (ward) ward FROM visits": "SELECT DISTINCT",
    "SELECT COUNT(*) FROM visits UNION SELECT COUNT(*) FROM visits": "UNION",
    "SELECT COUNT(*) FROM visits INTERSECT SELECT COUNT(*) FROM visits": "INTERSECT",
    "SELECT COUNT(*) FROM visits EXCEPT SELECT COUNT(*) FROM visits": "EXCEPT",
    "SELECT COUNT(*) FROM (SELECT age FROM visits UNION ALL SELECT age FROM visits)": "UNION",
    "SELECT ROW_NUMBER() OVER (ORDER BY age) FROM visits": "A window function",
    "SELECT SUM(days) OVER () FROM visits": "A window function",
    "SELECT COUNT(*) FROM visits WINDOW w AS (ORDER BY age)": "A window function",
    "SELECT ward, COUNT(*), SUM(days) OVER () FROM visits GROUP BY ward": "A window function",
    "SELECT COUNT(*) OVER () FROM visits": "A window function",
    "SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY RANK() OVER (ORDER BY age)": "A window function",
    "SELECT COUNT(*) FROM visits QUALIFY ROW_NUMBER() OVER (ORDER BY age) = 1": "A window function",
    "SELECT COUNT(*) FROM visits HAVING RANK() OVER (ORDER BY COUNT(*)) = 1": "A window function in HAVING",
    "SELECT COUNT(*) FROM (SELECT age FROM visits QUALIFY ROW_NUMBER() OVER () = 1)": "QUALIFY in a sub-query",
    "SELECT COUNT(*) FROM visits TABLESAMPLE 10%": "SAMPLE",
    "SELECT COUNT(*) FROM visits USING SAMPLE 3": "SAMPLE",
    "SELECT COUNT(*) FROM (SELECT patient FROM visits GROUP BY CUBE (patient, ward))": "CUBE, ROLLUP, GROUPING SETS",
    "SELECT COUNT(*) FROM (SELECT patient FROM visits GROUP BY ROLLUP (patient))": "CUBE, ROLLUP, GROUPING SETS",
    "SELECT SUM(GROUPING(ward)) FROM visits GROUP BY ROLLUP (ward)": "CUBE, ROLLUP, GROUPING SETS",
    "SELECT ward, GROUPING(ward), COUNT(*) FROM visits GROUP BY ward": "GROUPING(ward)",
    "SELECT ward, GROUPING(age), COUNT(*) FROM visits GROUP BY ROLLUP (ward)": "GROUPING(age)",
    "SELECT COUNT(*) FROM visits WHERE age > (SELECT AVG(age) FROM visits)": "A sub-query inside an expression",
    "SELECT COUNT(*) FROM visits v WHERE age > (SELECT w.beds FROM wards w WHERE w.ward = v.ward)": "A sub-query",
    "SELECT COUNT(*), (SELECT MAX(age) FROM visits) FROM visits": "A sub-query inside an expression",
    "SELECT COUNT(*) FROM visits LIMIT (SELECT 1)": "A sub-query inside an expression",
    "SELECT COUNT(*) FROM visits WHERE age IN (SELECT patient FROM patients)": "A sub-query about other people",
    "SELECT COUNT(*) FROM visits WHERE patient IN (SELECT age FROM visits)": "A sub-query about other people",
    "SELECT COUNT(*) FROM visits WHERE patient + 0 IN (SELECT patient FROM patients)": "A sub-query about other people",
    "SELECT COUNT(*) FROM visits WHERE patient IN (SELECT patient FROM visits LIMIT 5)": "LIMIT in a sub-query",
    "SELECT AVG(CASE WHEN patient IN (SELECT patient FROM patients) THEN 1 ELSE 0 END) FROM visits": "A sub-query",
    "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM patients p WHERE p.patient > v.patient)": "EXISTS",
    "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM patients p WHERE p.patient = v.patient AND p.sex ="
    " v.ward)": "EXISTS without",
    "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM patients p WHERE p.patient = v.patient AND p.sex >"
    " v.ward)": "A column from outside",
    "SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward, building FROM wards)": "IN with several",
    "SELECT COUNT(*) FROM wards LEFT JOIN visits USING (ward)": "LEFT JOIN of a public",
    "SELECT COUNT(*) FROM visits, wards": "A comma or a join",
    "SELECT COUNT(*) FROM (SELECT DISTINCT ON (ward) patient FROM visits ORDER BY ward)": "DISTINCT ON anything",
    "SELECT DISTINCT COUNT(*) FROM visits GROUP BY ward": "DISTINCT without all keys",
    "SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM patients)": "EXISTS",
    "SELECT COUNT(*) FROM visits WHERE age > ANY (SELECT age FROM visits)": "ANY or ALL",
    "SELECT COUNT(*) FROM visits, patients": "A comma or a join without ON",
    "SELECT COUNT(*) FROM visits CROSS JOIN patients": "CROSS JOIN",
    "SELECT COUNT(*) FROM visits RIGHT JOIN patients USING (patient)": "RIGHT JOIN",
    "SELECT COUNT(*) FROM visits FULL JOIN patients USING (patient)": "FULL JOIN",
    "SELECT COUNT(*) FROM visits SEMI JOIN patients USING (patient)": "SEMI JOIN",
    "SELECT COUNT(*) FROM visits ANTI JOIN patients USING (patient)": "ANTI JOIN",
    "SELECT COUNT(*) FROM visits ASOF JOIN patients ON visits.age >= patients.patient": "ASOF JOIN",
    "SELECT COUNT(*) FROM visits POSITIONAL JOIN patients": "POSITIONAL JOIN",
    "SELECT COUNT(*) FROM visits v JOIN patients p ON v.age = p.patient": "A join of private tables on other columns",
    "SELECT COUNT(*) FROM visits v JOIN (SELECT sex AS patient FROM patients) p USING (patient)": "A join of private",
    "SELECT COUNT(*) FROM visits v JOIN patients p ON v.patient = p.patient AND p.sex = 'f'": "A join condition other",
    "SELECT COUNT(*) FROM visits v JOIN patients p ON v.patient > p.patient": "A join condition other",
    "SELECT COUNT(*) FROM visits v JOIN wards w ON v.ward = w.ward AND v.ward = w.building": "A join with one column",
    "SELECT COUNT(*) FROM wards": "FROM wards first",
    "SELECT COUNT(*) FROM (SELECT ward FROM wards)": "FROM wards first",
    "SELECT AVG(n) FROM (SELECT ward, age AS n FROM visits GROUP BY ward)": "GROUP BY in a sub-query without",
    "SELECT AVG(n) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) w JOIN wards USING (ward)": "GROUP BY",
    "SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM visits) v WHERE RANK() OVER () = 1": "An aggregate or a window",
    "SELECT AVG(SUM(n)) FROM (SELECT COUNT(*) AS n FROM visits)": "An aggregate inside an aggregate",
    "SELECT n, COUNT(*) FROM (SELECT COUNT(*) AS n FROM visits)": "The raw column n in SELECT",
    "SELECT COUNT(*) FROM (SELECT age FROM visits HAVING TRUE)": "HAVING in a sub-query",
    "SELECT COUNT(*) FROM (SELECT age FROM visits LIMIT 10)": "LIMIT in a sub-query",
    "WITH v AS (SELECT age FROM visits LIMIT 10) SELECT COUNT(*) FROM v": "LIMIT in a sub-query",
    "SELECT COUNT(*) FROM (SELECT age FROM visits OFFSET 3)": "OFFSET in a sub-query",
    "SELECT COUNT(*) FROM (SELECT age FROM visits ORDER BY age)": "ORDER BY in a sub-query",
    "SELECT COUNT(*) FROM (SELECT DISTINCT age FROM visits)": "SELECT DISTINCT",
    "SELECT COUNT(*) FROM (SELECT * EXCLUDE (age) FROM visits)": "A star with",
    "WITH RECURSIVE c AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM c) SELECT COUNT(*) FROM c": "WITH RECURSIVE",
    "WITH c(x) AS (SELECT age FROM visits) SELECT COUNT(*) FROM c": "A name in WITH with COLUMN NAMES",
    "SELECT COUNT(*) FROM visits AS v(a, b)": "An alias with COLUMN NAMES",
    "SELECT COUNT(*) FROM read_csv('/etc/passwd')": "The table function READ_CSV",
    "SELECT COUNT(*) FROM read_text('/etc/passwd')": "The table function read_text",
    "SELECT COUNT(*) FROM glob('*')": "The table function glob",
    "SELECT COUNT(*) FROM sniff_csv('x')": "The table function sniff_csv",
    "SELECT COUNT(*) FROM duckdb_settings()": "The table function duckdb_settings",
    "SELECT COUNT(*) FROM information_schema.tables": "A name with a dot in FROM",
    "SELECT COUNT(*) FROM (VALUES (1)) AS t(a)": "VALUES",
    "SELECT COUNT(*) FROM UNNEST([1, 2])": "LATERAL or UNNEST",
    "SELECT COUNT(*) FROM visits, LATERAL (SELECT 1)": "LATERAL or UNNEST",
    "SELECT COUNT(*) FROM visits PIVOT (SUM(age) FOR ward IN ('A'))": "PIVOT or UNPIVOT",
    "SELECT COUNT(*) INTO x FROM visits": "INTO",
    "SELECT COUNT(*) FROM visits FOR UPDATE": "FOR UPDATE",
    "SELECT COUNT(*) FROM visits AT (VERSION => 1)": "A table in FROM with TIME TRAVEL",
    "SELECT COUNT(*) FROM visits WHERE age > $1": "A parameter",
    "SELECT COUNT(*) FROM visits WHERE age > ?": "A parameter",
    "SELECT COUNT(*) FROM visits WHERE age > :x": "A parameter",
    "CREATE TABLE x AS SELECT 1": "CREATE",
    "DROP TABLE visits": "DROP",
    "INSERT INTO visits VALUES (1)": "INSERT",
    "UPDATE visits SET age = 1": "UPDATE",
    "DELETE FROM visits": "DELETE",
    "ALTER TABLE visits ADD x INT": "ALTER",
    "TRUNCATE visits": "TRUNCATE",
    "ATTACH 'x.db'": "ATTACH",
    "COPY visits TO 'x.csv'": "COPY",
    "PRAGMA database_list": "PRAGMA",
    "SET threads = 1": "SET",
    "INSTALL httpfs": "INSTALL",
    "LOAD httpfs": "LOAD",
    "CALL pragma_version()": "CALL",
    "EXPLAIN SELECT COUNT(*) FROM visits": "EXPLAIN",
    "DESCRIBE visits": "DESCRIBE",
    "SHOW TABLES": "SHOW",
    "SUMMARIZE visits": "SUMMARIZE",
    "PIVOT visits ON age": "PIVOT",
    "VALUES (1)": "VALUES",
    "SELECT COUNT(*) FROM visits; DROP TABLE visits": "A second statement",
    "SELECT COUNT(*) FROM visits; SELECT COUNT(*) FROM visits": "A second statement",
    "SELECT COUNT(*)": "SELECT without FROM",
    "SELECT COUNT(*) FROM visits WHERE COUNT(*) > 3": "An aggregate in WHERE",
    "SELECT COUNT(*) FROM visits GROUP BY COUNT(*)": "An aggregate in GROUP BY",
    "SELECT COUNT(*) FROM visits GROUP BY 'x'": "GROUP BY 'x'",
    "SELECT COUNT(*) FROM visits GROUP BY (ward, age)": "A tuple in GROUP BY",
    "SELECT COUNT(*) FROM visits ORDER BY age": "The raw column age in ORDER BY",
    "SELECT COUNT(*) FROM visits ORDER BY 'x'": "ORDER BY 'x'",
    "SELECT COUNT(*) FROM visits ORDER BY ALL": "ORDER BY ALL",
    "SELECT COUNT(*) FROM visits HAVING age > 3": "The raw column age in HAVING",
    "SELECT COUNT(*) FROM visits LIMIT 10%": "LIMIT with PERCENT",
    "SELECT COUNT(*) FROM visits LIMIT 1 + 1": "LIMIT with anything but a whole number",
    "SELECT COUNT(*) FROM visits OFFSET -1": "OFFSET with anything but a whole number",
    "SELECT SUM(DISTINCT days) FROM visits": "DISTINCT inside SUM",
    "SELECT SUM(days ORDER BY age) FROM visits": "ORDER BY inside an aggregate",
    "SELECT SUM(COUNT(*)) FROM visits": "An aggregate inside an aggregate",
    "SELECT SUM(days) FILTER (WHERE COUNT(*) > 1) FROM visits": "An aggregate inside an aggregate",
    "SELECT STRING_AGG(ward, ',') FROM visits": "The aggregate STRING_AGG",
    "SELECT ANY_VALUE(ward) FROM visits": "The aggregate ANY_VALUE",
    "SELECT FIRST(age) FROM visits": "The aggregate FIRST",
    "SELECT LIST(age) FROM visits": "The aggregate LIST",
    "SELECT ARG_MAX(age, days) FROM visits": "The aggregate ARG_MAX",
    "SELECT MODE(age) FROM visits": "The aggregate MODE",
    "SELECT BOOL_OR(smoker) FROM visits": "The aggregate BOOL_OR",
    "SELECT HISTOGRAM(age) FROM visits": "The aggregate HISTOGRAM",
    "SELECT APPROX_TOP_K(age, 3) FROM visits": "The aggregate APPROX_TOP_K",
    "SELECT COUNT(DISTINCT age, ward) FROM visits": "COUNT(DISTINCT x, y)",
    "SELECT QUANTILE_CONT(days, [0.1, 0.9]) FROM visits": "A quantile without one constant level",
    "SELECT QUANTILE_CONT(days, age) FROM visits": "A quantile without one constant level",
    "SELECT AVG(CLAMP(CLAMP(age, 0, 5), 0, 9) + 1) FROM visits": "CLAMP inside CLAMP",
    "SELECT COUNT(*) FROM visits WHERE x.age > 3": "The name 'x' before a dot",
    "SELECT p.patient, COUNT(*) FROM visits v LEFT JOIN patients p USING (patient) GROUP BY p.patient": "The column",
    "SELECT COUNT(*) FROM visits WHERE regexp_matches(ward, 'x')": "A regular expression",
    "SELECT COUNT(*) FROM visits WHERE RANDOM() < 0.5": "The function RAND",
    "SELECT COUNT(*) FROM visits WHERE age > 3 -- x\n; SELECT 1": "A second statement",
}
MISTAKEN = {
    "": "empty",
    " ;; ": "empty",
    "-- nothing": "empty",
    "SELECT": "selects 1 to",
    "SELECT COUNT(* FROM visits": "cannot be read",
    "SELECT COUNT(*) FROM visits GROUP BY 7": "names no selected column",
    "SELECT COUNT(*) FROM visits GROUP BY ward, ward": "twice in GROUP BY",
    "SELECT ward, ward, COUNT(*) FROM visits GROUP BY ward": "selected twice",
    "SELECT COUNT(*) FROM visits ORDER BY 2": "names no selected column",
    "SELECT COUNT(*) FROM visits HAVING COUNT(*)": "HAVING needs a condition",
    "SELECT COUNT(*) FROM visit": "There is no table 'visit'",
    "SELECT COUNT(*) FROM '/etc/passwd'": "There is no table",
    "SELECT COUNT(*) FROM visits WHERE agee > 3": "There is no column 'agee'",
    'SELECT COUNT(*) FROM visits WHERE "AGE" > 3': "There is no column 'AGE'",
    "SELECT nosuch, COUNT(*) FROM visits GROUP BY nosuch": "There is no column 'nosuch'",
    "SELECT COUNT(*) AS a, SUM(days) AS a FROM visits": "would be called 'a'",
    "SELECT COUNT(*) AS a, SUM(days) AS a_error FROM visits": "would be called 'a_error'",
    "SELECT ward, COUNT(*) AS ward FROM visits GROUP BY ward": "would be called 'ward'",
    "SELECT AVG(ward) FROM visits": "needs numbers",
    "SELECT MIN(day) FROM visits": "needs numbers",
    "SELECT AVG(age) FROM visits": "Nobody declared between which bounds 'age'",
    "SELECT AVG(CLAMP(age, 5, 5)) FROM visits": "The bounds of 'age' are 5 and 5",
    "SELECT QUANTILE_CONT(days, 1.5) FROM visits": "level of a quantile is 1.5",
    "SELECT CASE WHEN COUNT(*) > 1 THEN 'many' END FROM visits": "is of kind text",
    "SELECT days, COUNT(*) FROM visits GROUP BY days": "cannot be grouped by 'days'",
    "SELECT ward, COUNT(*) FROM visits GROUP BY ward": "Nobody said which values of ward",
    "SELECT ward, COUNT(*) FROM visits WHERE ward IN ('A') AND ward IN ('B') GROUP BY ward": "No group can fulfil",
    "SELECT COUNT(*) FROM (SELECT age + 1 FROM visits)": "has no name",
    "SELECT COUNT(*) FROM (SELECT age, days AS age FROM visits)": "two columns called 'age'",
    "WITH v AS (SELECT age FROM visits), V AS (SELECT age FROM visits) SELECT COUNT(*) FROM v": "twice",
    "SELECT COUNT(*) FROM visits v JOIN visits v USING (patient)": "Two tables are called 'v'",
    "SELECT COUNT(*) FROM visits v JOIN patients p USING (patient) WHERE wrd = 'A'": "There is no column 'wrd'",
    "SELECT COUNT(*) FROM visits a JOIN visits b USING (patient) WHERE age > 3": "Several tables have a column 'age'",
    "SELECT COUNT(*) FROM visits JOIN wards USING (wardd)": "There is no column 'wardd'",
    "SELECT COUNT(*) FROM visits GROUP BY 1": "aggregate in GROUP BY",
}


@pytest.fixture(scope="module")
def neighbours() -> Iterator[list[Table]]:
    """The same table with a patient, without, and with nobody at all."""
    kept = VISITS.filter([i % 20 != 3 for i in range(60)])
    with hospital() as one, hospital(kept) as other, hospital(VISITS.slice(0, 0)) as empty:
        yield [one, other, empty]


def refusal(table: Table, text: str) -> DefocusError:
    before = table.ledger.anchor()
    with pytest.raises(DefocusError) as caught:
        table.sql(text, epsilon=1)
    assert table.ledger.anchor() == before
    return caught.value


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_answered_privately_is_refused_by_name_and_free_of_charge(visits: Table, text: str) -> None:
    error = refusal(visits, text)
    assert isinstance(error, UnsupportedSqlError)
    assert error.what.startswith(REFUSED[text])
    assert "is not allowed here: " in error.what
    assert error.fix


@pytest.mark.parametrize("text", MISTAKEN)
def test_a_mistake_is_told_with_a_remedy_and_free_of_charge(visits: Table, text: str) -> None:
    error = refusal(visits, text)
    assert isinstance(error, InvalidParameterError)
    assert MISTAKEN[text] in error.what
    assert error.fix


@pytest.mark.parametrize("text", [*REFUSED, *MISTAKEN])
def test_refusals_do_not_depend_on_the_rows(neighbours: list[Table], text: str) -> None:
    first, *others = (str(refusal(table, text)) for table in neighbours)
    assert all(other == first for other in others)


def test_names_that_are_nearly_right_are_corrected(visits: Table) -> None:
    assert "did you mean visits?" in refusal(visits, "SELECT COUNT(*) FROM visit").fix
    assert "did you mean 'ward'?" in refusal(visits, "SELECT wrd, COUNT(*) FROM visits GROUP BY wrd").fix


def test_unknown_keys_are_refused_with_three_ways_to_know_them(visits: Table) -> None:
    fix = refusal(visits, "SELECT ward, COUNT(*) FROM visits GROUP BY ward").fix
    assert "WHERE ward IN" in fix
    assert "declare(" in fix
    assert "delta=" in fix


def test_unknown_bounds_are_refused_with_three_ways_to_know_them(visits: Table) -> None:
    fix = refusal(visits, "SELECT AVG(age) FROM visits").fix
    assert "CLAMP(age, low, high)" in fix
    assert "declare(" in fix
    assert 'bounds="find"' in fix


def test_tables_of_rows_cannot_be_joined_with_themselves() -> None:
    with hospital(unit=rows()) as table:
        error = refusal(table, "SELECT COUNT(*) FROM visits a JOIN visits b ON a.patient = b.patient")
    assert error.what.startswith("A join of private tables on other columns than the person")


def test_an_unknown_function_in_select_is_named(visits: Table) -> None:
    fix = refusal(visits, "SELECT MEAN_SQUARE(CLAMP(days, 0, 30)) FROM visits").fix
    assert fix.endswith("MEAN_SQUARE is not an aggregate here.")


def test_tables_and_columns_with_hyphens_are_told_with_their_quotes() -> None:
    with hospital(VISITS.append_column("week-day", pa.array([1] * len(VISITS)))) as table:
        few = 'WITH "few-visits" AS (SELECT age FROM visits) SELECT COUNT(*) FROM few'
        assert '"few-visits"' in refusal(table, few).fix
        assert "In SQL, write it in double quotes" in refusal(table, "SELECT SUM(week-day) FROM visits").fix

"""Features of a person in SQL: what sub-queries and windows say is what the database says, and others are refused."""

import re
from typing import Any

import duckdb
import pytest
from tests.tables.sql.hospital import PATIENTS, VISITS, WARDS, exact, hospital

import defocus as dp
from defocus.errors import DefocusError, NotDeclaredError, UnsupportedSqlError
from defocus.tables import Bound, Table

GAP = "DATE_DIFF('day', LAG(day) OVER (PARTITION BY patient ORDER BY day), day)"
SAME = """
SELECT AVG(CLAMP(n, 0, 10)) AS a, COUNT(*) AS c FROM (SELECT patient, COUNT(*) AS n FROM visits GROUP BY
patient) v

WITH v AS (SELECT patient, SUM(days) AS s, AVG(days) AS m, MAX(age) - MIN(age) AS r, COUNT(DISTINCT ward) AS w
FROM visits WHERE age > 22 GROUP BY patient) SELECT SUM(CLAMP(s, 0, 100)) AS s, AVG(m) AS m, AVG(CLAMP(w, 0,
3)) AS w, AVG(CLAMP(r, 0, 9)) AS r FROM v WHERE s > 5

SELECT COUNT(*) AS c FROM (SELECT patient FROM visits GROUP BY patient HAVING COUNT(*) FILTER (WHERE days > 4)
> 1)

SELECT COUNT(*) AS c FROM (SELECT patient, SUM(days) AS s FROM visits GROUP BY 1 HAVING s > 12 AND NOT
BOOL_OR(smoker))

SELECT sex, AVG(CLAMP(n, 0, 9)) AS n FROM (SELECT patient AS p, COUNT(*) AS n FROM visits GROUP BY
visits.patient) v JOIN patients ON v.p = patients.patient WHERE sex IN ('f', 'm') GROUP BY sex

SELECT ward, SUM(CLAMP(n, 0, 9)) AS n FROM visits JOIN (SELECT patient, COUNT(*) AS n FROM visits GROUP BY
patient) v USING (patient) WHERE ward IN ('A', 'B') GROUP BY ward ORDER BY ward

SELECT ward, SUM(CLAMP(n, 0, 9)) AS n FROM (SELECT patient, ward, COUNT(*) AS n FROM visits WHERE ward IN
('A', 'B') GROUP BY ALL) GROUP BY ward

SELECT AVG(CLAMP(m, 0, 9)) AS m FROM (SELECT patient, MAX(n) AS m FROM (SELECT patient, MONTH(day) AS mo,
COUNT(*) AS n FROM visits GROUP BY patient, mo) GROUP BY patient)

SELECT AVG(CASE WHEN gap <= 220 THEN 1 ELSE 0 END) AS a FROM (SELECT patient, DATE_DIFF('day', LAG(day) OVER
(PARTITION BY patient ORDER BY day), day) AS gap FROM visits) g

SELECT AVG(CASE WHEN gap <= 220 THEN 1 ELSE 0 END) AS a FROM (SELECT v.*, DATE_DIFF('day', LAG(day) OVER
(PARTITION BY patient ORDER BY day), day) AS gap FROM visits v) WHERE gap > 0

SELECT SUM(CLAMP(r, 0, 9)) AS r, SUM(CLAMP(s, 0, 99)) AS s, AVG(m) AS m, SUM(CLAMP(k, 0, 9)) AS k FROM (SELECT
ROW_NUMBER() OVER (PARTITION BY patient ORDER BY day DESC) AS r, SUM(days) OVER (PARTITION BY patient ORDER BY
day) AS s, AVG(days) OVER (PARTITION BY patient) AS m, RANK() OVER (PARTITION BY patient, ward ORDER BY days)
AS k FROM visits)

SELECT COUNT(*) AS c, AVG(days) AS d FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY patient ORDER BY day) AS
no FROM visits) WHERE no = 1

SELECT building, COUNT(*) AS c FROM (SELECT patient, ANY_VALUE(first) AS ward FROM (SELECT patient,
FIRST_VALUE(ward) OVER (PARTITION BY patient ORDER BY day) AS first FROM visits) GROUP BY patient) f JOIN
wards USING (ward) GROUP BY building ORDER BY building

SELECT COUNT(*) AS c FROM (SELECT patient AS "feature 1", COUNT(*) AS patient FROM visits GROUP BY 1)

SELECT SUM(CLAMP("a;b", 0, 9)) AS c FROM (SELECT patient, MAX("length of stay") AS "a;b" FROM visits GROUP BY
patient)
"""


@pytest.mark.parametrize("text", SAME.strip().split("\n\n"))
def test_features_are_what_the_database_says(text: str) -> None:
    with duckdb.connect() as bare:
        for name, held in {"visits": VISITS, "patients": PATIENTS, "wards": WARDS}.items():
            bare.register(name, held)
        clamped = re.sub(r"CLAMP\(([^,]+),\s(\d+),\s(\d+)\)", r"LEAST(GREATEST(\1, \2), \3)", text)
        wanted = bare.sql(clamped).to_arrow_table()
    with hospital() as visits:
        found = exact(visits, text)
    for name in wanted.column_names:
        plain = [value if isinstance(value, str) else float(value) for value in wanted[name].to_pylist()]
        assert found[name] == (plain if isinstance(plain[0], str) else pytest.approx(plain, abs=0.06)), name


def test_a_window_inside_an_aggregate_is_one_in_a_sub_query() -> None:
    inside = "SELECT AVG(CASE WHEN {} <= 220 THEN 1 ELSE 0 END) AS a FROM visits ORDER BY AVG({} > 0)"
    outside = "SELECT AVG(CASE WHEN g <= 220 THEN 1 ELSE 0 END) AS a FROM (SELECT {} AS g FROM visits)"
    longest = "SELECT AVG(g) AS a FROM (SELECT MAX(CLAMP({}, 0, 400)) AS g FROM visits GROUP BY patient)"
    with hospital() as visits:
        assert exact(visits, inside.format(GAP, GAP)) == exact(visits, outside.format(GAP))
        assert exact(visits, longest.format(GAP), bounds="find") == {"a": [220.0]}


def test_one_row_for_each_person_is_bounded_by_one() -> None:
    with hospital(bound=Bound(rows=7)) as visits:
        one = visits.sql_query("SELECT COUNT(*) AS c FROM (SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient)")
        several = visits.sql_query(
            "SELECT COUNT(*) AS c FROM (SELECT patient, ward FROM visits GROUP BY patient, ward)"
        )
        assert (one.query.bound, several.query.bound) == (Bound(rows=1), Bound(rows=7))
        errors = [asked.preview(epsilon=1).columns[0].error for asked in (one, several)]
        assert errors[1] == pytest.approx(7 * (errors[0] or 0), rel=0.01)


def test_a_count_needs_a_bound_that_is_declared_or_found() -> None:
    text = "SELECT AVG(n) AS a FROM (SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient)"
    with hospital() as visits:
        with pytest.raises(NotDeclaredError, match="CLAMP"):
            visits.sql_query(text)
        assert exact(visits, text, bounds="find") == {"a": [3.0]}
        bounded = "SELECT AVG(d) AS a FROM (SELECT patient, MAX(days) AS d FROM visits GROUP BY patient)"
        assert visits.sql_query(bounded).preview(epsilon=1).columns


def test_conditions_on_other_columns_of_the_same_name_are_forgotten() -> None:
    """A condition about the wards of rows says nothing about a feature that is called ward."""
    text = (
        "SELECT ward, COUNT(*) AS c FROM (SELECT patient, MIN(ward || 'x') AS ward FROM visits WHERE ward IN ('A')"
        " GROUP BY patient) GROUP BY ward"
    )
    with hospital() as visits, pytest.raises(NotDeclaredError, match="ward"):
        visits.sql_query(text).preview(epsilon=1)


REFUSED = """
without the person
SELECT COUNT(*) FROM (SELECT ward, MAX(day) AS n FROM visits GROUP BY ward) JOIN wards USING (ward)

keys
SELECT COUNT(*) FROM (SELECT ward AS patient FROM visits) GROUP BY patient

without the person
SELECT COUNT(*) FROM (SELECT patient FROM (SELECT ward AS patient FROM visits) GROUP BY patient)

without the person
SELECT COUNT(*) FROM (SELECT patient FROM (SELECT 1 AS patient, ward FROM visits) GROUP BY patient)

does not contain patient
SELECT AVG(x) FROM (SELECT LAG(days) OVER (PARTITION BY patient ORDER BY day) AS x FROM (SELECT ward AS
patient, day, days FROM visits))

PARTITION BY patient
SELECT AVG(x) FROM (SELECT LAG(days) OVER (ORDER BY day) AS x FROM visits)

mix the rows
SELECT AVG(x) FROM (SELECT AVG(days) OVER (PARTITION BY ward) AS x FROM visits)

mix
SELECT AVG(x) FROM (SELECT AVG(days) OVER (PARTITION BY patient + 0) AS x FROM visits)

mix the rows
SELECT AVG(AVG(days) OVER (PARTITION BY ward)) FROM visits

inside|sub-query|goes into
SELECT ROW_NUMBER() OVER (PARTITION BY patient ORDER BY day) FROM visits

A window function
(SELECT ROW_NUMBER() OVER (PARTITION BY patient ORDER BY day) FROM visits)

A window function
SELECT COUNT(*) FROM visits GROUP BY ROW_NUMBER() OVER (PARTITION BY patient ORDER BY day)

A window function
SELECT COUNT(*) FROM visits WHERE LAG(day) OVER (PARTITION BY patient ORDER BY day) > day

sub-query
SELECT COUNT(*) FROM (SELECT day FROM visits WHERE LAG(day) OVER (PARTITION BY patient ORDER BY day) > day)

ANY_VALUE
SELECT COUNT(*) FROM (SELECT patient, days FROM visits GROUP BY patient)

star
SELECT COUNT(*) FROM (SELECT * FROM visits GROUP BY patient)

no name
SELECT COUNT(*) FROM (SELECT patient, COUNT(*) FROM visits GROUP BY patient)

two columns
SELECT COUNT(*) FROM (SELECT patient, COUNT(*) AS n, SUM(days) AS N FROM visits GROUP BY patient)

beside GROUP BY
SELECT COUNT(*) FROM (SELECT patient, RANK() OVER (PARTITION BY patient ORDER BY COUNT(*)) AS n FROM visits
GROUP BY patient)

LIMIT
SELECT COUNT(*) FROM (SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient LIMIT 3)

ROLLUP
SELECT COUNT(*) FROM (SELECT patient, COUNT(*) AS n FROM visits GROUP BY ROLLUP (patient))

floats
SELECT COUNT(*) FROM (SELECT patient FROM visits GROUP BY patient, days)

window
SELECT COUNT(*) FROM (SELECT SUM(days) OVER w AS x FROM visits WINDOW w AS (PARTITION BY patient))

GROUP BY
SELECT n, COUNT(*) FROM (SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient)
"""
"""What a refusal says, and what is refused."""


@pytest.mark.parametrize("case", REFUSED.strip().split("\n\n"))
def test_what_would_mix_people_is_refused_free_of_charge(case: str) -> None:
    words, text = case.split("\n", 1)
    with hospital() as visits:
        before = str(visits.remaining())
        with pytest.raises(DefocusError, match=f"(?s){words}"):
            visits.sql(text, epsilon=1)
        assert str(visits.remaining()) == before


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM (SELECT patient FROM visits GROUP BY patient)",
        "SELECT COUNT(x) FROM (SELECT LAG(day) OVER (PARTITION BY patient ORDER BY day) AS x FROM visits)",
    ],
)
@pytest.mark.parametrize("unit", [dp.rows(), dp.rows(per_person=3)], ids=str)
def test_where_rows_are_protected_the_remedy_is_named(text: str, unit: Any) -> None:
    with hospital(unit=unit) as visits, pytest.raises(UnsupportedSqlError, match=r"dp\.user"):
        visits.sql(text, epsilon=1)


def test_python_and_sql_say_the_same() -> None:
    with hospital() as visits:
        made: Table = visits.per_person("ward", n="COUNT(*)").per_person(most="MAX(n)", wards="COUNT(*)")
        asked = made.agg(most=dp.sum("most", 0, 9), wards=dp.sum("wards", 0, 9)).release(epsilon=10**5)
        text = (
            "SELECT SUM(CLAMP(most, 0, 9)) AS most, SUM(CLAMP(wards, 0, 9)) AS wards FROM (SELECT patient, MAX(n) AS"
            " most, COUNT(*) AS wards FROM (SELECT patient, ward, COUNT(*) AS n FROM visits GROUP BY patient, ward)"
            " GROUP BY patient)"
        )
        assert exact(visits, text) == {c.name: [round(v, 1) + 0.0 for v in c.values] for c in asked.columns}

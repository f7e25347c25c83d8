"""Joins under any names keep every row with its person."""

from pathlib import Path

import pyarrow as pa
import pytest
from tests.tables.sql.hospital import exact

from defocus import Budget, user
from defocus.errors import SourceError, UnsupportedSqlError, WrongKindError
from defocus.tables import Table
from defocus.tables import open as open_table

FEMALE = "(SELECT patient AS who, sex AS ward FROM patients WHERE sex = 'f')"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("FROM visits JOIN patients USING (patient)", 60),
        ("FROM visits NATURAL JOIN patients WHERE sex = 'm'", 30),
        ("FROM visits v, patients p WHERE v.patient = p.patient AND p.sex = 'm'", 30),
        ("FROM visits v CROSS JOIN patients p WHERE p.patient = v.patient AND sex = 'm'", 30),
        ("FROM visits v, wards w, patients p WHERE w.ward = v.ward AND p.patient = v.patient AND beds > 10", 40),
        ("FROM wards JOIN visits USING (ward) WHERE building = 'north'", 40),
        ("FROM wards w RIGHT JOIN visits v ON w.ward = v.ward", 60),
        ("FROM wards w, visits v WHERE v.ward = w.ward AND beds = 30", 20),
        ("FROM visits v JOIN patients p ON v.patient = p.patient", 60),
        ("FROM visits v JOIN patients p ON p.patient = v.patient WHERE p.sex = 'm'", 30),
        ("FROM visits v INNER JOIN patients p ON (p.patient = v.patient) WHERE sex = 'm'", 30),
        (f"FROM visits v JOIN {FEMALE} f ON v.patient = f.who", 30),
        (f"FROM visits v LEFT JOIN {FEMALE} f ON v.patient = f.who", 60),
        (f"FROM visits v LEFT OUTER JOIN {FEMALE} f ON v.patient = f.who WHERE f.ward IS NULL", 30),
        (f"FROM visits v JOIN {FEMALE} f ON v.patient = f.who WHERE v.ward = 'A' AND f.ward = 'f'", 10),
        ("FROM patients p JOIN visits v USING (patient) WHERE sex = 'f'", 30),
        ("FROM visits a JOIN visits b USING (patient)", 180),
        ("FROM visits a JOIN visits b ON a.patient = b.patient AND a.ward = b.ward", 60),
        ("FROM visits JOIN wards USING (ward) WHERE building = 'north'", 40),
        ("FROM visits v JOIN wards w ON v.ward = w.ward WHERE w.beds > 10 AND w.ward <> 'C'", 20),
        ("FROM visits v JOIN wards w ON v.ward = w.building", 0),
        ("FROM visits v LEFT JOIN wards w ON v.ward = w.building WHERE beds IS NULL", 60),
        (
            "FROM visits JOIN patients USING (patient) JOIN wards USING (ward) WHERE sex = 'f' AND building = 'south'",
            10,
        ),
        ("FROM (SELECT patient, ward AS place FROM visits) v JOIN wards w ON v.place = w.ward", 60),
    ],
)
def test_joins_are_those_of_sql(visits: Table, text: str, count: int) -> None:
    if "v.ward = w.building" in text:
        with pytest.raises(SourceError, match="several rows for the same"):
            visits.sql_query(f"SELECT COUNT(*) {text}")
        return
    assert exact(visits, f"SELECT COUNT(*) AS n {text}") == {"n": [float(count)]}


def test_other_columns_never_meet(visits: Table) -> None:
    with pytest.raises(UnsupportedSqlError, match="other columns than the person"):
        visits.sql_query("SELECT COUNT(*) FROM visits a JOIN visits b ON a.ward = b.ward")
    with pytest.raises(UnsupportedSqlError, match="other columns than the person"):
        visits.sql_query(
            "SELECT COUNT(*) FROM visits v JOIN (SELECT sex AS patient, 1 AS x FROM patients) p USING (patient)"
        )


def test_a_renamed_person_is_still_the_person(visits: Table) -> None:
    text = """SELECT COUNT(DISTINCT a.who) AS n FROM (SELECT patient AS who FROM visits WHERE ward = 'A') a
        JOIN (SELECT patient AS whom FROM visits WHERE smoker) b ON a.who = b.whom"""
    query = visits.sql_query(text).query
    assert query.rows.unit == "patient"
    assert (
        query.arrangement.aggregates[0][1]
        == visits.sql_query("SELECT COUNT(DISTINCT patient) FROM visits").query.arrangement.aggregates[0][1]
    )
    assert exact(visits, text) == {"n": [5.0]}


def test_columns_of_different_kinds_are_not_compared(visits: Table) -> None:
    with pytest.raises(WrongKindError):
        visits.sql_query("SELECT COUNT(*) FROM visits v JOIN wards w ON v.age = w.ward")


def test_values_of_a_public_table_are_keys_and_bounds(visits: Table) -> None:
    text = "SELECT building, SUM(beds) AS beds FROM visits JOIN wards USING (ward) GROUP BY building"
    assert exact(visits, text) == {"building": ["north", "south"], "beds": [600.0, 600.0]}
    query = visits.sql_query(text).query
    assert query.arrangement.splits[0].values[0].low == 10
    assert query.arrangement.splits[0].values[0].high == 30


def test_keys_of_an_inner_join_with_a_public_table_are_known_and_of_a_left_join_not(visits: Table) -> None:
    inner = visits.sql_query("SELECT ward, COUNT(*) FROM visits JOIN wards USING (ward) GROUP BY ward")
    left = visits.sql_query("SELECT ward, COUNT(*) FROM visits LEFT JOIN wards USING (ward) GROUP BY ward")
    assert (inner.unknown, left.unknown) == ((), ("ward",))


def test_a_public_table_of_one_row_twice_is_refused(tmp_path: Path) -> None:
    twice = pa.table({"ward": ["A", "A"], "x": [1, 2]})
    people = pa.table({"id": [1, 2], "ward": ["A", "B"]})
    opened = open_table(
        people, unit=user("id"), budget=Budget(1), ledger=tmp_path / "l", name="people", public={"twice": twice}
    )
    with opened, pytest.raises(SourceError, match="several rows for the same"):
        opened.sql_query("SELECT COUNT(*) FROM people p JOIN twice t ON p.ward = t.ward")

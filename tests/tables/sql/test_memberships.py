"""IN (SELECT …) and EXISTS keep a row by public values, or by rows of its own person."""

import itertools
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from tests.tables.attacks.exact import table
from tests.tables.sql.hospital import PATIENTS, VISITS, WARDS, exact

import defocus as dp
from defocus.engines.syntax import column, named
from defocus.tables import Table

CONDITIONS = [
    "ward IN (SELECT ward FROM wards WHERE beds > 10)",
    "ward NOT IN (SELECT ward FROM wards WHERE building = 'north')",
    "ward IN (SELECT ward FROM wards WHERE beds > 100)",
    "NOT ward IN (SELECT ward FROM wards WHERE beds > 100)",
    "UPPER(ward) IN (SELECT UPPER(w.ward) FROM wards w WHERE w.building LIKE 'n%') AND age > 25",
    "EXISTS (SELECT 1 FROM wards w WHERE w.ward = v.ward AND w.beds >= 20)",
    "NOT EXISTS (SELECT * FROM wards w WHERE v.ward = w.ward AND w.beds >= 20)",
    "patient IN (SELECT patient FROM patients WHERE sex = 'f')",
    "patient NOT IN (SELECT patient FROM patients WHERE sex = 'f')",
    "patient IN (SELECT patient FROM patients WHERE sex = 'f') OR ward = 'A'",
    "EXISTS (SELECT 1 FROM patients p WHERE p.patient = v.patient AND p.sex = 'm')",
    "NOT EXISTS (SELECT 1 FROM patients p WHERE p.patient = v.patient AND p.sex = 'm')",
    "patient IN (SELECT patient FROM visits WHERE smoker)",
    "patient IN (SELECT DISTINCT patient FROM visits WHERE age > 30)",
    "patient IN (SELECT patient FROM visits GROUP BY patient HAVING MAX(days) > 8)",
    "patient IN (SELECT patient FROM visits WHERE ward IN (SELECT ward FROM wards WHERE beds = 30))",
    (
        "patient IN (SELECT patient FROM patients WHERE sex = 'f') AND patient IN (SELECT patient FROM visits v WHERE"
        " v.smoker)"
    ),
    "EXISTS (SELECT 1 FROM (SELECT patient AS who FROM patients WHERE sex = 'f') p WHERE p.who = v.patient)",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_rows_that_are_kept_are_those_of_duckdb(visits: Table, condition: str) -> None:
    with duckdb.connect() as bare:
        for name, held in (("visits", VISITS), ("patients", PATIENTS), ("wards", WARDS)):
            bare.register(name, held)
        (wanted,) = bare.execute(f"SELECT COUNT(*), SUM(days) FROM visits v WHERE {condition}").fetchall()  # noqa: S608  # the conditions above
    found = exact(visits, f"SELECT COUNT(*) AS n, SUM(days) AS d FROM visits v WHERE {condition}")  # noqa: S608  # the conditions above
    assert (found["n"], found["d"]) == ([wanted[0]], [wanted[1] or 0])


def test_values_of_a_public_table_are_keys(visits: Table) -> None:
    text = "SELECT ward, COUNT(*) AS n FROM visits WHERE ward IN (SELECT ward FROM wards WHERE beds > 10) GROUP BY ward"
    assert exact(visits, text) == {"ward": ["B", "C"], "n": [20, 20]}


def test_a_null_among_public_values_means_what_it_means_in_sql(tmp_path: Path) -> None:
    data = pa.table({"u": [1, 2, 3], "k": ["a", "b", None]})
    public = {"p": pa.table({"k": ["a", None]})}
    opened = dp.open(data, unit=dp.user("u"), budget=dp.Budget(10**9), ledger=tmp_path / "l", name="t", public=public)
    with opened as small:
        for condition, rows in (
            ("k IN (SELECT k FROM p)", 1),
            ("k NOT IN (SELECT k FROM p)", 0),
            ("EXISTS (SELECT 1 FROM p WHERE p.k = t.k)", 1),
            ("NOT EXISTS (SELECT 1 FROM p WHERE p.k = t.k)", 2),
        ):
            answer = small.bound(rows=1).sql(f"SELECT COUNT(*) AS n FROM t WHERE {condition}", epsilon=10**5)  # noqa: S608
            assert round(float(answer["n"].values[0])) == rows, condition


@pytest.mark.slow
def test_a_person_decides_about_rows_of_that_person_only(tmp_path: Path) -> None:
    """All small data sets: with one person more, no row of another comes or goes."""
    queries = (
        "SELECT COUNT(*) AS n FROM t WHERE u IN (SELECT u FROM t WHERE x > 1)",
        "SELECT COUNT(*) AS n FROM t a WHERE NOT EXISTS (SELECT 1 FROM t b WHERE b.u = a.u AND b.x > 1)",
        "SELECT COUNT(*) AS n FROM (SELECT DISTINCT ON (u) u, x FROM t ORDER BY u, x DESC) f WHERE x > 1",
        "SELECT COUNT(*) AS n FROM (SELECT DISTINCT u, x FROM t) d WHERE x > 1",
    )
    own: dict[int | None, list[tuple[int, int]]] = {
        None: [],
        1: [(1, 1)],
        2: [(1, 2)],
        12: [(1, 1), (1, 2)],
        22: [(1, 2), (1, 2)],
    }
    beside: list[list[tuple[int | None, int]]] = [[], [(2, 1)], [(2, 2), (3, 1), (None, 2)]]
    for number, (text, others) in enumerate(itertools.product(queries, beside)):
        counts = {}
        for name, rows in own.items():
            made = [*others, *rows]
            data = pa.table(
                {"u": pa.array([u for u, _ in made], pa.int64()), "x": pa.array([x for _, x in made], pa.int64())}
            )
            ledger = tmp_path / f"{number} {name}"
            with dp.open(data, unit=dp.user("u"), budget=dp.Budget(10**9), ledger=ledger, name="t") as small:
                answer = small.bound(rows=4).sql(text, epsilon=10**5)
                counts[name] = round(float(answer["n"].values[0]))
        assert all(0 <= counts[name] - counts[None] <= len(rows) for name, rows in own.items()), text


KEPT: dict[str, list[tuple[int, str | None]]] = {
    "WHERE u IN (SELECT u FROM small WHERE x > 1)": [(1, "a"), (1, "b"), (4, "A")],
    "v WHERE NOT EXISTS (SELECT 1 FROM small w WHERE w.u = v.u AND w.k ILIKE 'a')": [(2, "é"), (3, None)],
    "WHERE k IN (SELECT key FROM keys WHERE key <> 'b')": [(1, "a"), (2, "é")],
    "WHERE u IN (SELECT u FROM small GROUP BY u HAVING COUNT(*) > 1) AND k NOT IN (SELECT key FROM keys)": [],
}


@pytest.mark.parametrize("clause", KEPT)
def test_every_engine_keeps_the_same_rows(any_engine: str, clause: str) -> None:
    assert any_engine
    cells = [(1, "a", 0.5), (1, "b", 2.0), (2, "é", 1.0), (3, None, None), (4, "A", 9.0), (None, "a", 7.0)]
    rows = [{"u": u, "k": k, "y": 0, "x": x, "z": 0.0, "s": ""} for u, k, x in cells]
    small = replace(table(rows), public={"keys": pa.table({"key": ["a", "b", "é"]})})
    asked = small.sql_query(f"SELECT COUNT(*) AS n FROM small {clause}").query.rows  # noqa: S608  # the clauses above
    found = asked.engine.run(asked.select([named(column("u"), "u"), named(column("k"), "k")])).to_pylist()
    assert sorted(((row["u"], row["k"]) for row in found), key=str) == sorted(KEPT[clause], key=str)


def test_every_engine_takes_the_same_first_row(any_engine: str) -> None:
    assert any_engine
    cells = [(1, "a", 0.5), (1, "b", 2.0), (1, "c", 2.0), (2, "é", None), (2, "e", 1.0), (None, "a", 7.0)]
    small = table([{"u": u, "k": k, "y": 0, "x": x, "z": 0.0, "s": ""} for u, k, x in cells])
    text = "SELECT COUNT(*) AS n FROM (SELECT DISTINCT ON (u) u, k, x FROM small ORDER BY u, x DESC NULLS LAST, k) f"
    asked = small.sql_query(text).query.rows
    found = asked.engine.run(asked.select([named(column("u"), "u"), named(column("k"), "k")])).to_pylist()
    assert sorted((row["u"], row["k"]) for row in found) == [(1, "b"), (2, "e")]
    assert asked.single


@pytest.mark.parametrize(
    "text",
    [
        (
            "WITH v AS (SELECT patient, days AS place FROM visits)"
            " SELECT AVG(place) AS d"
            " FROM (SELECT DISTINCT ON (patient) patient, place FROM v ORDER BY patient, place) f"
        ),
        (
            "SELECT AVG(place) AS d FROM"
            " (SELECT DISTINCT ON (patient) patient, days AS place FROM visits ORDER BY patient, days) f"
        ),
    ],
)
def test_a_column_called_place_is_not_taken_for_the_number_of_a_row(visits: Table, text: str) -> None:
    with duckdb.connect() as bare:
        bare.register("visits", VISITS)
        (wanted,) = bare.execute(text).fetchall()
    assert exact(visits, text)["d"] == [round(wanted[0], 1)]


def test_where_a_person_has_one_row_no_bound_is_needed(visits: Table) -> None:
    text = "SELECT AVG(days) AS d FROM (SELECT DISTINCT ON (patient) patient, days FROM visits ORDER BY patient, day) f"
    query = visits.sql_query(text).query
    assert query.bound is not None
    assert (query.bound.rows, query.bound.find) == (1, False)
    with duckdb.connect() as bare:
        bare.register("visits", VISITS)
        (wanted,) = bare.execute(text).fetchall()
    assert exact(visits, text)["d"] == [round(wanted[0], 1)]

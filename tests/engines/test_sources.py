"""Tables that live in different places have no engine in common."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from sqlglot import exp
from tests.tables.opening import SORTS, column, made, rows, write_csv

from defocus.engines.origins import origin_of
from defocus.engines.schema import Column, Kind
from defocus.engines.sources import engine_for, fits, literal, source, together
from defocus.errors import InvalidParameterError, SourceError, UnknownColumnError, WrongKindError

TYPES = {"id": "integer", "name": "text", "days": "number"}


def people(*extra: tuple[int | None, str | None, float | None]) -> Any:
    records = [(1, "ann", 1.5), (2, "bob", 2.5), *extra]
    return pa.table(
        {
            "id": pa.array([one[0] for one in records], pa.int64()),
            "name": pa.array([one[1] for one in records], pa.string()),
            "days": pa.array([one[2] for one in records], pa.float64()),
        }
    )


@pytest.mark.parametrize("sort", SORTS)
def test_all_sorts_of_data_are_the_same_table(sort: str, tmp_path: Path) -> None:
    data, more = made(sort, people((None, "cy'", None)), tmp_path)
    opened = source(data, types=TYPES, **more)  # type: ignore[arg-type]  # a table name
    assert [(one.name, str(one.kind)) for one in opened.schema] == list(TYPES.items())
    wanted = people((None, "cy'", None)).to_pylist()
    assert sorted(rows(opened), key=repr) == sorted(wanted, key=repr)


HOSTILE = [
    (2**63 - 1, "'; DROP TABLE t; --", float("inf")),
    (-(2**63), "\u202eabc\u0000x", float("-inf")),
    (None, None, float("nan")),
    (0, "", -0.0),
    (1, "NULL", 1e308),
    (3, "𝕒" * 5000, 5e-324),
]


@pytest.mark.parametrize("sort", SORTS)
def test_more_rows_change_neither_the_schema_nor_another_row(sort: str, tmp_path: Path) -> None:
    types = TYPES if sort == "pandas" else {}  # pandas itself makes floats of integers when one of them is missing
    tables = [people(), people(*HOSTILE)]
    opened = []
    for i, table in enumerate(tables):
        (tmp_path / str(i)).mkdir()
        data, more = made(sort, table, tmp_path / str(i))
        opened.append(source(data, types=types, **more))  # type: ignore[arg-type]  # a table name
    before, after = opened
    assert after.schema == before.schema
    assert after.description == before.description
    left = rows(after)
    for row in rows(before):
        left.remove(row)
    assert len(left) == len(HOSTILE)


@pytest.mark.parametrize("sort", SORTS)
def test_an_empty_table_has_the_same_schema(sort: str, tmp_path: Path) -> None:
    data, more = made(sort, people().slice(0, 0), tmp_path)
    opened = source(data, types=TYPES, **more)  # type: ignore[arg-type]  # a table name
    assert [(one.name, str(one.kind)) for one in opened.schema] == list(TYPES.items())
    assert rows(opened) == []


NAMES = ['"', "'; DROP TABLE t; --", "a b", "ward.x", "SELECT", "*", "ünï", "{x}", "%s", "$1", "?", "a--b", "/*", "\\"]


@pytest.mark.parametrize("sort", SORTS)
def test_strange_column_names_are_names(sort: str, tmp_path: Path) -> None:
    table = pa.table({name: [str(i)] for i, name in enumerate(NAMES)})
    data, more = made(sort, table, tmp_path)
    opened = source(data, types={"'; DROP TABLE t; --": "integer"}, **more)  # type: ignore[arg-type]  # a table name
    assert opened.schema.names == NAMES
    assert list(rows(opened)[0].values())[:3] == ["0", 1, "2"]


def test_a_table_of_a_database_is_named_exactly(tmp_path: Path) -> None:
    path = tmp_path / "hospital.duckdb"
    connection = duckdb.connect(str(path))
    connection.execute("CREATE SCHEMA other")
    connection.execute("CREATE TABLE other.visits AS SELECT 2 AS x")
    connection.execute("CREATE TABLE visits AS SELECT 1 AS x")
    connection.execute("""CREATE TABLE "v'; --" AS SELECT 3 AS x""")
    connection.execute("CREATE VIEW seen AS SELECT * FROM main.visits")
    connection.close()
    for name, x in (("main.visits", 1), ("other.visits", 2), ("v'; --", 3), ("seen", 1)):
        opened = source(path, table=name)
        assert column(opened) == [x]
    for table, why in (
        ("visits", "2 tables are called"),
        ("nothing", "There is no table 'nothing'"),
        (None, "none was named"),
        ("VISITS", "There is no table"),
    ):
        with pytest.raises(SourceError, match=why) as caught:
            source(path, table=table)
        assert "main.visits" in caught.value.fix


def test_a_view_that_reaches_beyond_its_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    write_csv(tmp_path / "secret.csv", ["x"], [[1]])
    connection = duckdb.connect(str(path))
    connection.sql(f"SELECT * FROM read_csv('{tmp_path}/secret.csv')").create_view("v")  # noqa: S608 - a test's own path
    connection.close()
    with pytest.raises(SourceError, match="calls a function for its rows"):
        source(path, table="v")


def test_a_database_that_this_program_has_open_is_refused_with_a_hint(tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    connection = duckdb.connect(str(path))
    connection.execute("CREATE TABLE t AS SELECT 1 AS x")
    with pytest.raises(SourceError, match="pass that connection"):
        source(path, table="t")
    assert column(source(connection, table="t")) == [1]


@pytest.mark.parametrize("data", [None, 5, object(), {"a": [1]}, b"x", [1, 2], (), "x.duckdb"])
def test_what_is_no_data_is_refused_with_help(data: object) -> None:
    with pytest.raises(SourceError) as caught:
        source(data)
    assert caught.value.fix


def test_a_table_name_without_a_database_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="table= belongs to a database"):
        source(people(), table="t")
    with pytest.raises(SourceError, match="could not be opened"):
        source(write_csv(tmp_path / "t.csv", ["x"], []), table="t")
    with pytest.raises(SourceError, match="not a name"):
        source(people(), table=5)  # type: ignore[arg-type]  # on purpose


def test_declared_types_are_checked() -> None:
    with pytest.raises(UnknownColumnError, match="did you mean 'name'"):
        source(people(), types={"nam": "text"})
    with pytest.raises(InvalidParameterError, match="declare one of boolean"):
        source(people(), types={"name": "varchar; DROP TABLE t"})
    with pytest.raises(InvalidParameterError, match="declare one of boolean"):
        source(people(), types={"name": "other"})
    with pytest.raises(WrongKindError):
        source(pa.table({"x": [[1]]}), types={"x": "integer"})


def test_values_that_stand_for_a_missing_one_are_missing() -> None:
    opened = source(people((-1, "unknown", 999.0)), missing={"id": [-1], "name": ["unknown", "'"], "days": [999, -1.5]})
    assert {"id": None, "name": None, "days": None} in rows(opened)
    assert [str(one.kind) for one in opened.schema] == ["integer", "text", "number"]
    for bad in (
        {"id": ["x"]},
        {"id": [1.5]},
        {"id": [True]},
        {"id": [2**63]},
        {"days": [float("nan")]},
        {"name": ["\0"]},
    ):
        with pytest.raises(InvalidParameterError, match="is no value of the"):
            source(people(), missing=bad)
    with pytest.raises(UnknownColumnError):
        source(people(), missing={"nobody": [1]})


def test_sources_come_together_on_one_engine_so_that_they_can_be_joined(tmp_path: Path) -> None:
    pq.write_table(people(), tmp_path / "p.parquet")
    write_csv(tmp_path / "w.csv", ["id", "ward"], [[1, "A"], [2, "B"]])
    connection = duckdb.connect(str(tmp_path / "d.duckdb"))
    connection.execute("CREATE TABLE t AS SELECT 1 AS id, 'x' AS y")
    connection.close()
    a = source(tmp_path / "p.parquet")
    b = source(tmp_path / "w.csv", types={"id": "integer"}, missing={"ward": ["B"]})
    c = source(tmp_path / "d.duckdb", table="t")
    d = source(people())
    joined = together(a, b, c, d)
    assert len({id(one.engine) for one in joined}) == 1
    assert [one.schema for one in joined] == [one.schema for one in (a, b, c, d)]
    query = exp.select("ward").from_(joined[0].relation.subquery("a"))
    query = query.join(joined[1].relation.subquery("b"), using=["id"]).join(
        joined[3].relation.subquery("d"), using=["id"]
    )
    assert sorted(joined[0].engine.run(query).column("ward").to_pylist(), key=repr) == ["A", None]
    assert rows(joined[2]) == [{"id": 1, "y": "x"}]


def test_tables_of_two_connections_cannot_come_together() -> None:
    connections = [duckdb.connect(), duckdb.connect()]
    for one in connections:
        one.execute("CREATE TABLE t AS SELECT 1 AS x")
    a, b = (source(one, table="t") for one in connections)
    with pytest.raises(SourceError, match="different databases"):
        together(a, b)
    same = together(a, a, source(people()))
    assert column(same[1]) == [1]
    assert len(rows(same[2])) == 2


def test_an_arrow_dataset_whose_types_duckdb_does_not_know_is_refused(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([1], pa.int64()).view(pa.timestamp("ms", "UTC"))})
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(SourceError, match="has the type timestamp"):
        source(pads.dataset(tmp_path / "t.parquet"))
    assert len(rows(source(table))) == len(rows(source(pads.dataset(table)))) == 1


def test_constants_are_literals_of_their_kind() -> None:
    assert literal("'; --", Column("x", Kind.TEXT)).sql("duckdb") == "'''; --'"
    assert literal(-1, Column("x", Kind.INTEGER)).sql("duckdb") == "CAST('-1' AS BIGINT)"
    assert not fits(True, Kind.INTEGER)
    assert not fits(1, Kind.BOOLEAN)
    assert fits(1, Kind.NUMBER)
    assert not fits("x", Kind.OTHER)


def test_servers_of_spark_connect_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "visits.parquet")
    kind = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})

    def connected(endpoint: str) -> Any:
        session: Any = kind()
        session.client = SimpleNamespace(_builder=SimpleNamespace(endpoint=endpoint))
        return origin_of(tmp_path / "visits.parquet", engine=session)

    monkeypatch.setattr("defocus.engines.sources.SparkEngine", lambda session, own: (session, own))
    engine_for([connected("one:15002"), connected("one:15002")])
    with pytest.raises(SourceError, match="different Sparks"):
        engine_for([connected("one:15002"), connected("two:15002")])


def test_opening_tells_when_it_is_done() -> None:
    told: list[float] = []
    source(pa.table({"age": [30]}), progress=told.append).engine.close()
    assert told == [100.0]

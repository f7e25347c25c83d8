"""The PostgreSQL engine: what it promises, on a real server."""

# ruff: noqa: S608 the tables are made here

import traceback
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from sqlglot import exp
from tests.tables.opening import unlooked
from tests.waiting import again_and_again

import defocus as dp
from defocus import Budget, count, count_units, mean, median, user
from defocus.engines.postgresql import PostgreSqlEngine
from defocus.engines.schema import Kind
from defocus.engines.sources import source
from defocus.errors import EngineError, NotDeclaredError, QuestionFailedError, SourceError
from defocus.noise.testing import seeded
from defocus.tables.table import Table

pytestmark = pytest.mark.slow
SECRET = "s3cret-password"  # noqa: S105  # nobody's


@pytest.fixture(scope="module")
def owner(server: str) -> Iterator[Any]:
    """A connection of somebody who may do everything."""
    with psycopg.connect(server, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def engine(server: str) -> Iterator[PostgreSqlEngine]:
    made = PostgreSqlEngine(server)
    yield made
    made.close()


@pytest.fixture(scope="module")
def visits(owner: Any) -> str:
    owner.execute("CREATE TABLE visits (patient INT, ward TEXT, days DOUBLE PRECISION)")
    owner.execute(
        "INSERT INTO visits SELECT i % 50, CHR(65 + i % 3), CASE WHEN i % 7 > 0 THEN i % 30 END"
        " FROM GENERATE_SERIES(1, 1000) AS i"
    )
    return "visits"


def opened(server: str, folder: Path, table: str, **more: Any) -> Table:
    return dp.open(
        server, table=table, unit=user("patient"), budget=Budget(100), ledger=folder / "v.ledger", name="v", **more
    )


def column(name: str) -> exp.Column:
    return exp.column(name, quoted=True)


def test_sums_beyond_64_bits_stay_exact(engine: PostgreSqlEngine) -> None:
    table = engine.publish("big", pa.table({"x": [2**63 - 1] * 1000}))
    total = engine.run(exp.select(exp.alias_(exp.Sum(this=column("x")), "s")).from_(table)).column("s")
    assert total.type == pa.decimal128(38, 0)
    assert total[0].as_py() == Decimal(1000 * (2**63 - 1))


def test_published_tables_are_known_until_they_are_withdrawn(engine: PostgreSqlEngine) -> None:
    given = pa.table({"a": [1, None], 'b "%s" $1': ["é'", None], "c": [float("inf"), None], "d": [True, None]})
    table = engine.publish('a "name"', given)
    asked = exp.select("*").from_(table)
    assert engine.run(asked).to_pydict() == given.to_pydict()
    engine.withdraw(table)
    engine.withdraw(table)
    with pytest.raises(EngineError, match="a table is gone"):
        engine.run(asked)


TYPES: list[tuple[str, str, Kind, Any]] = [
    ("smallint", "-7", Kind.INTEGER, -7),
    ("numeric(20, 0)", "'9223372036854775807'", Kind.INTEGER, 2**63 - 1),
    ("numeric(20, 0)", "'9223372036854775808'", Kind.INTEGER, None),
    ("numeric(20, 0)", "'NaN'", Kind.INTEGER, None),
    ("numeric", "'1.5'", Kind.NUMBER, 1.5),
    ("numeric", "'NaN'", Kind.NUMBER, None),
    ("numeric", "'-Infinity'", Kind.NUMBER, float("-inf")),
    ("numeric", "1e400", Kind.NUMBER, float("inf")),
    ("numeric", "'1e-400'", Kind.NUMBER, 0.0),
    ("real", "0.1", Kind.NUMBER, 0.10000000149011612),
    ("char(4)", "'A'", Kind.TEXT, "A"),
    ("varchar", "'é ; --'", Kind.TEXT, "é ; --"),
    ("uuid", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", Kind.TEXT, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("date", "'infinity'", Kind.DATE, None),
    ("date", "'0044-03-15 BC'", Kind.DATE, None),
    ("timestamp", "'10000-01-01'", Kind.TIMESTAMP, None),
    ("timestamptz", "'2024-06-01 12:00:00+02'", Kind.TIMESTAMP, "2024-06-01 10:00:00"),
    ("timestamptz", "'-infinity'", Kind.TIMESTAMP, None),
    ("pg_temp.mood", "'bad'", Kind.TEXT, "bad"),
    ("pg_temp.age", "18", Kind.INTEGER, 18),
    ("text[]", "'{a}'", Kind.OTHER, "{a}"),
    ("json", "'{}'", Kind.OTHER, "{}"),
    ("money", "1", Kind.OTHER, "$1.00"),
]


@pytest.fixture(scope="module")
def with_types(engine: PostgreSqlEngine) -> PostgreSqlEngine:
    engine._connect().execute("SET default_transaction_read_only = off")
    engine._connect().execute("CREATE TYPE pg_temp.mood AS ENUM ('good', 'bad')")
    engine._connect().execute("CREATE DOMAIN pg_temp.age AS INT CHECK (VALUE > 0)")
    return engine


@pytest.mark.parametrize(("type_", "value", "kind", "expected"), TYPES)
def test_every_type_becomes_the_one_of_its_kind(
    with_types: PostgreSqlEngine, type_: str, value: str, kind: Kind, expected: Any
) -> None:
    name = f"one {abs(hash((type_, value)))}"
    with_types._connect().execute(f'CREATE TEMPORARY TABLE "{name}" (x {type_})')
    with_types._connect().execute(f'INSERT INTO "{name}" VALUES ({value})')
    table = exp.Table(this=exp.to_identifier(name, quoted=True), db=exp.to_identifier("pg_temp", quoted=True))
    assert with_types.schema(table)["x"].kind is kind
    if kind is not Kind.OTHER:
        found = with_types.run(with_types.canonical(table, {}))["x"][0].as_py()
        assert str(found) == str(expected)
        as_text = with_types.canonical(table, {"x": Kind.TEXT}) if kind is not Kind.NUMBER else None
        assert as_text is None or with_types.run(as_text).num_rows == 1


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("12", Kind.INTEGER, 12),
        ("x", Kind.INTEGER, None),
        ("9223372036854775808", Kind.INTEGER, None),
        ("1e5000", Kind.NUMBER, None),
        ("1e400", Kind.NUMBER, float("inf")),
        ("-inf", Kind.NUMBER, float("-inf")),
        ("2021-02-29", Kind.DATE, None),
        ("2020-02-29", Kind.DATE, "2020-02-29"),
        ("2020-02-29T12:30:15.25Z", Kind.TIMESTAMP, "2020-02-29 12:30:15.250000"),
        ("2020-02-29 25:00", Kind.TIMESTAMP, None),
        ("Yes", Kind.BOOLEAN, True),
        ("2", Kind.BOOLEAN, None),
    ],
)
def test_text_declared_as_another_kind_is_read_or_missing(
    engine: PostgreSqlEngine, text: str, kind: Kind, expected: Any
) -> None:
    table = engine.publish("texts", pa.table({"x": [text]}))
    assert str(engine.run(engine.canonical(table, {"x": kind}))["x"][0].as_py()) == str(expected)


def test_a_number_cannot_be_declared_to_be_text(engine: PostgreSqlEngine) -> None:
    table = engine.publish("numbers", pa.table({"x": [1.5]}))
    with pytest.raises(SourceError, match="cannot be read as text alike"):
        engine.canonical(table, {"x": Kind.TEXT})


def test_one_release_sees_one_state_of_the_table(owner: Any, engine: PostgreSqlEngine) -> None:
    owner.execute("CREATE TABLE moving (x INT)")
    number = exp.select(exp.alias_(exp.Count(this=exp.Star()), "n")).from_(exp.table_("moving", db="public"))
    with engine.snapshot(), engine.snapshot():
        before = engine.run(number)["n"][0].as_py()
        owner.execute("INSERT INTO moving VALUES (1)")
        assert engine.run(number)["n"][0].as_py() == before
    assert engine.run(number)["n"][0].as_py() == before + 1


def test_nothing_can_be_written(server: str, owner: Any) -> None:
    owner.execute("CREATE TABLE kept (x INT)")
    engine = PostgreSqlEngine(server)
    with pytest.raises(EngineError):
        engine.run(exp.insert(exp.select(exp.Literal.number(1)), exp.table_("kept", db="public")))
    assert owner.execute("SELECT COUNT(*) FROM kept").fetchone() == (0,)
    engine.close()


def long_query() -> exp.Select:
    return exp.select(exp.alias_(exp.Anonymous(this="PG_SLEEP", expressions=[exp.Literal.number(3600)]), "s"))


def test_a_query_is_cancelled_from_another_thread_and_another_can_be_asked(engine: PostgreSqlEngine) -> None:
    with again_and_again(engine.cancel), pytest.raises(EngineError, match="it was cancelled"):
        engine.run(long_query())
    assert engine.run(exp.select(exp.alias_(exp.Literal.number(1), "one"))).num_rows == 1


def test_a_query_that_takes_too_long_ends(server: str) -> None:
    engine = PostgreSqlEngine(server, timeout=1)  # a busy machine needs a while to start
    with pytest.raises(EngineError, match="took too long"):
        engine.run(long_query())
    engine.close()
    engine.close()
    with pytest.raises(EngineError, match="was closed"):
        engine.run(long_query())


@pytest.mark.parametrize("told", ["", "a b", "@nowhere.invalid"])
def test_an_address_that_does_not_work_is_refused_without_its_password(told: str) -> None:
    address = f"postgresql://reader:{SECRET}@127.0.0.1:1/{told}?connect_timeout=2"
    with pytest.raises(SourceError, match="could not be reached") as caught:
        source(address, table="visits")
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


def test_the_password_is_neither_in_the_table_nor_in_its_ledger(server: str, visits: str, tmp_path: Path) -> None:
    address = server.replace("postgres:@", f"postgres:{SECRET}@")
    assert address != server
    table = opened(address, tmp_path, visits)
    answer = table.agg(n=count()).release(epsilon=1)
    shown = [repr(table), str(table), answer.explain(), repr(source(address, table=visits))]
    table.close()
    assert not any(SECRET in text for text in shown)
    assert not any(SECRET.encode() in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_an_error_quotes_neither_values_nor_what_the_server_said(
    owner: Any, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlooked(monkeypatch)
    owner.execute(
        "CREATE FUNCTION fails(x INT) RETURNS INT LANGUAGE plpgsql AS $$ BEGIN"
        " RAISE NOTICE 'patient %', x; RAISE EXCEPTION 'patient % has secrets', x; END $$"
    )
    owner.execute("CREATE TABLE hidden AS SELECT 4711 AS patient")
    owner.execute("CREATE VIEW failing AS SELECT patient, public.fails(patient) AS x FROM hidden")
    table = opened(server, tmp_path, "failing")
    with pytest.raises(QuestionFailedError) as caught:
        table.agg(x=mean("x", 0, 1)).release(epsilon=1)
    shown = "".join(traceback.format_exception(caught.value))
    assert "4711" not in shown
    assert "secrets" not in shown
    assert len(list(table.ledger.entries())) >= 1
    table.close()


def test_a_connection_lost_in_the_middle_keeps_the_charge_and_the_table_works_again(
    owner: Any, server: str, visits: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlooked(monkeypatch)
    owner.execute("CREATE TABLE naps AS SELECT 3600 AS length")
    nap = "WITH s AS MATERIALIZED (SELECT PG_SLEEP(naps.length) FROM naps)"
    owner.execute(f"CREATE VIEW slowly AS {nap} SELECT v.* FROM {visits} AS v, s")
    table = opened(server, tmp_path, "slowly")
    spent = table.ledger.spent()

    def kill() -> None:
        with psycopg.connect(server, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")

    with again_and_again(kill), pytest.raises(QuestionFailedError, match="connection was lost"):
        table.group_by("ward", keys=["A"]).agg(n=count()).release(epsilon=1)
    owner.execute("UPDATE naps SET length = 0")
    assert table.ledger.spent() != spent
    assert table.group_by("ward", keys=["A"]).agg(n=count()).release(epsilon=1).to_arrow().num_rows == 1
    table.close()


@pytest.mark.parametrize("name", ['a"b', "a'; DROP TABLE hidden; --", "é%s$1", "Visits", "x\\y", "漢字 {0}"])
def test_names_of_tables_schemas_and_columns_are_names_and_nothing_else(
    owner: Any, server: str, tmp_path: Path, name: str
) -> None:
    quoted = exp.to_identifier(name, quoted=True).sql("postgres")
    owner.execute(f"CREATE SCHEMA {quoted}")
    owner.execute(f"CREATE TABLE {quoted}.{quoted} AS SELECT 1 AS patient, 'x' AS {quoted}")
    table = opened(server, tmp_path, name)
    answer = table.group_by(name, keys=[name, "x"]).agg(n=count()).release(epsilon=50, bits=seeded(1))
    assert set(answer.to_arrow().column(name).to_pylist()) == {name, "x"}
    table.close()


def test_a_role_without_rights_sees_no_table_or_is_refused(owner: Any, server: str, visits: str) -> None:
    owner.execute("CREATE ROLE stranger LOGIN")
    owner.execute("CREATE TABLE half (patient INT, x INT)")
    owner.execute("GRANT INSERT ON half TO stranger")
    address = server.replace("postgres:@", "stranger:@")
    with pytest.raises(SourceError, match="There is no table"):
        source(address, table=visits)
    with pytest.raises(SourceError, match="could not be read"):
        source(address, table="half")


def test_rows_that_a_policy_hides_are_not_in_the_table(owner: Any, server: str, tmp_path: Path) -> None:
    owner.execute("CREATE ROLE nurse LOGIN")
    owner.execute("CREATE TABLE wards AS SELECT i AS patient, i % 2 AS ward FROM GENERATE_SERIES(1, 1000) AS i")
    owner.execute("ALTER TABLE wards ENABLE ROW LEVEL SECURITY")
    owner.execute("CREATE POLICY own ON wards FOR SELECT TO nurse USING (ward = 1)")
    owner.execute("GRANT SELECT ON wards TO nurse")
    table = opened(server.replace("postgres:@", "nurse:@"), tmp_path, "wards")
    answer = table.agg(n=count()).release(epsilon=50, bits=seeded(1)).to_arrow()
    assert abs(answer.column("n")[0].as_py() - 500) < 20
    table.close()


def test_a_table_is_asked_for_by_the_name_it_has(server: str, visits: str) -> None:
    with pytest.raises(SourceError, match="none was named"):
        source(server)
    with pytest.raises(SourceError, match="There is no table 'vists'"):
        source(server, table="vists")
    assert source(server, table=f"public.{visits}").schema.names == ["patient", "ward", "days"]
    with pytest.raises(SourceError, match="memory="):
        source(server, table=visits, memory="1GB")
    with pytest.raises(NotDeclaredError, match="no place of its own"):
        dp.open(server, table=visits, unit=user("patient"), budget=Budget(1))


def test_a_dataset_file_names_the_server(server: str, visits: str, tmp_path: Path) -> None:
    file = tmp_path / "defocus.toml"
    file.write_text(
        f'name = "visits"\ndata = "{server}"\ntable = "{visits}"\nunit.column = "patient"\nbudget.epsilon = 60\n'
        "[columns]\ndays = { low = 0, high = 30 }\n"
    )
    table = dp.open(file)
    answer = table.group_by("ward", keys=["A", "B", "Z"]).agg(
        n=count(), people=count_units(), stay=mean("days"), half=median("days")
    )
    found = answer.release(epsilon=50, bits=seeded(3)).to_arrow()
    assert found.num_rows == 3
    assert table.sql("SELECT COUNT(*) AS n FROM visits WHERE days > 3", epsilon=1).to_arrow().num_rows == 1
    table.close()


def test_joins_and_private_keys_work_there_too(server: str, owner: Any, visits: str, tmp_path: Path) -> None:
    owner.execute(f"CREATE TABLE patients AS SELECT DISTINCT patient, patient % 2 = 0 AS even FROM {visits}")
    file = tmp_path / "defocus.toml"
    file.write_text(
        f'name = "visits"\ndata = "{server}"\ntable = "{visits}"\nunit.column = "patient"\n'
        "budget = { epsilon = 200, delta = 1e-3 }\n"
        f'[private.patients]\ndata = "{server}"\ntable = "patients"\nunit = "patient"\n'
    )
    table = dp.open(file)
    wards = pa.table({"ward": ["A", "B"], "floor": [1, 2]})
    floors = table.join(wards, on="ward", how="inner").group_by("floor", keys=None).agg(n=count())
    assert set(floors.release(epsilon=50, delta=1e-4).to_arrow().column("floor").to_pylist()) == {1, 2}
    both = table.join("patients", on="patient").group_by("even").agg(n=count())
    assert both.release(epsilon=50).to_arrow().num_rows == 2
    table.close()


def test_a_kept_answer_is_recalled_whatever_was_published_before(server: str, visits: str, tmp_path: Path) -> None:
    """Names of published tables are new each time; what is asked is not."""
    wards = pa.table({"ward": ["A", "B"], "floor": [1, 2]})
    kept = []
    for before in range(3):
        table = opened(server, tmp_path, visits)
        for _ in range(before):
            table.join(wards.slice(0, 1), on="ward")
        question = table.join(wards, on="ward", how="inner").agg(n=count())
        kept.append(question.release(epsilon=1, request="floors").to_arrow().column("n")[0].as_py())
        table.close()
    assert kept[0] == kept[1] == kept[2]


@pytest.mark.slow
def test_a_connection_that_died_while_nobody_asked_is_made_again(server: str, tmp_path: Path, visits: str) -> None:
    """The charge comes first, so a stale connection must not cost one."""
    table = opened(server, tmp_path, visits)
    with psycopg.connect(server, autocommit=True) as other:
        gone = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'defocus'"
        assert other.execute(gone).fetchall()
    assert table.group_by("ward", keys=["A"]).agg(n=count()).release(epsilon=1).to_arrow().num_rows == 1
    table.close()

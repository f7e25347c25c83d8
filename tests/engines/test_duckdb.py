import gc
import stat
import tempfile
import threading
import traceback
import weakref
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp, parse_one
from tests.waiting import again_and_again

from defocus.engines import DuckDbEngine, Engine, integers
from defocus.engines.schema import Kind
from defocus.errors import EngineError, SourceError

names = st.text(min_size=1, max_size=12).filter(lambda name: "\0" not in name and not name.isspace())
LONG = "SELECT SUM(SIN(a.range * b.range)) AS s FROM RANGE(100000000) AS a, RANGE(1000) AS b"


def sql(text: str) -> exp.Expression:
    parsed = parse_one(text, dialect="duckdb")
    assert isinstance(parsed, exp.Expression)
    return parsed


@pytest.fixture(scope="module")
def engine() -> Engine:
    return DuckDbEngine()


def test_sums_beyond_64_bits_stay_exact(engine: Engine) -> None:
    table = engine.publish("big", pa.table({"x": [2**63 - 1] * 1000}))
    total = engine.run(exp.select(exp.alias_(exp.Sum(this=exp.column("x")), "s")).from_(table)).column("s")
    assert total.type == pa.decimal128(38, 0)
    assert int(total[0].as_py()) == 1000 * (2**63 - 1)


def test_a_table_that_is_withdrawn_is_gone_and_its_memory_given_back() -> None:
    gc.freeze()  # what other tests left is not looked at: in a long run that takes seconds each time
    engine = DuckDbEngine()
    tables = [pa.table({"x": [1]}), pa.table({"x": [2]})]
    references = [weakref.ref(table) for table in tables]
    first, second = (engine.publish('a "name"', table) for table in tables)
    del tables
    for _ in range(2):
        engine.withdraw(first)
    gc.collect()
    assert engine.run(exp.select("x").from_(second)).to_pylist() == [{"x": 2}]
    with pytest.raises(EngineError, match="a table is gone"):
        engine.run(exp.select("x").from_(first))
    engine.withdraw(second)
    gc.collect()
    assert [reference() for reference in references] == [None, None]


@settings(max_examples=30)
@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=30), st.randoms())
def test_a_sum_does_not_depend_on_the_order_of_rows(engine: Engine, values: list[int], random: Any) -> None:
    shuffled = random.sample(values, len(values))
    query = exp.select(exp.alias_(exp.Sum(this=exp.column("x")), "s"))
    sums = {
        int(engine.run(query.from_(engine.publish("x", pa.table({"x": some})))).column("s")[0].as_py())
        for some in (values, shuffled)
    }
    assert sums == {sum(values)}


@settings(max_examples=60)
@given(names, st.text(max_size=20).filter(lambda text: "\0" not in text))
def test_names_and_values_stay_names_and_values(engine: Engine, name: str, value: str) -> None:
    name, value = (text.encode("utf-8", "ignore").decode() or "x" for text in (name, value))
    table = engine.publish(name, pa.table({name: [value, "other"]}))
    column = exp.Column(this=exp.to_identifier(name, quoted=True))
    query = exp.select(column.copy()).from_(table).where(column.eq(exp.Literal.string(value)))
    assert value in engine.run(query).column(0).to_pylist()


def test_a_failure_quotes_nothing_and_carries_nothing(engine: Engine) -> None:
    with pytest.raises(EngineError, match="may quote the data") as caught:
        engine.run(sql("SELECT CAST('Ada has gout' AS BIGINT)"))
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    shown = "".join(traceback.format_exception(caught.value))
    assert "gout" not in shown.replace("""CAST('Ada has gout' AS BIGINT)""", "")


@pytest.mark.parametrize(
    "failing",
    [
        "SELECT CAST('x' AS BIGINT)",
        "SELECT CAST(300 AS TINYINT)",
        "SELECT 9223372036854775807 + 1",
        "SELECT ERROR('x')",
    ],
)
def test_failures_that_a_value_can_cause_are_all_told_alike(engine: Engine, failing: str) -> None:
    with pytest.raises(EngineError, match=r"^DuckDB could not compute\. What it said is not repeated"):
        engine.run(sql(failing))


@pytest.mark.parametrize(
    ("failing", "reason"),
    [
        ("SELECT a FROM nowhere", "does not understand the query"),
        ("SELECT * FROM READ_CSV('/etc/passwd')", "out of its reach"),
        ("SELECT * FROM READ_TEXT('/etc/hostname')", "out of its reach"),
        ("SELECT nonsense(1)", "does not understand the query"),
    ],
)
def test_reasons_that_say_nothing_about_a_value_are_told(engine: Engine, failing: str, reason: str) -> None:
    with pytest.raises(EngineError, match=reason):
        engine.run(sql(failing))


def test_an_own_connection_reads_the_named_files_and_no_others(tmp_path: Path) -> None:
    for name in ("mine", "yours"):
        pq.write_table(pa.table({"x": [1]}), tmp_path / f"{name}.parquet")
    engine = DuckDbEngine(files=[tmp_path / "mine.parquet"])

    def reading(path: str) -> exp.Expression:
        return exp.select("*").from_(exp.Anonymous(this="READ_PARQUET", expressions=[exp.Literal.string(path)]))

    assert engine.run(reading(f"{tmp_path}/mine.parquet")).num_rows == 1
    for other in (f"{tmp_path}/yours.parquet", f"{tmp_path}/*.parquet"):
        with pytest.raises(EngineError, match="out of its reach"):
            engine.run(reading(other))


def test_its_settings_cannot_be_changed_and_nothing_can_be_written(tmp_path: Path) -> None:
    engine = DuckDbEngine()
    for setting in ("enable_external_access = true", "lock_configuration = false", "allowed_paths = ['/etc/passwd']"):
        with pytest.raises(duckdb.Error):
            engine._connection.execute(f"SET {setting}")
    for statement in (f"COPY (SELECT 1) TO '{tmp_path}/out.csv'", "INSTALL httpfs", f"ATTACH '{tmp_path}/a.db'"):
        with pytest.raises(duckdb.Error):
            engine._connection.execute(statement)
    assert list(tmp_path.iterdir()) == []


def test_python_variables_are_not_tables(engine: Engine) -> None:
    secret_frame = pa.table({"x": [1]})
    assert secret_frame.num_rows
    with pytest.raises(EngineError, match="does not understand"):
        engine.run(sql("SELECT x FROM secret_frame"))


def test_what_does_not_fit_in_memory_is_spilled_where_only_the_user_reads_and_removed() -> None:
    engine = DuckDbEngine(memory="100MB", threads=1)
    spill = Path(engine._connection.sql("SELECT CURRENT_SETTING('temp_directory') AS d").fetchall()[0][0])
    assert stat.S_IMODE(spill.stat().st_mode) == 0o700
    many = "SELECT COUNT(*) AS n FROM (SELECT range, COUNT(*) AS c FROM RANGE(5000000) GROUP BY range)"
    assert integers(engine.run(sql(many)).column("n")).tolist() == [5_000_000]
    engine.close()
    engine.close()
    assert not spill.exists()


def test_a_forgotten_engine_gives_everything_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gc.freeze()  # likewise
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    engine = DuckDbEngine()
    assert list(tmp_path.iterdir())
    del engine
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_running_out_of_memory_is_told_as_such() -> None:
    engine = DuckDbEngine(memory="20MB", threads=1)
    with pytest.raises(EngineError, match="ran out"):
        engine.run(sql("SELECT LIST(range ORDER BY SIN(range)) AS x FROM RANGE(20000000)"))


def test_a_query_can_be_cancelled_from_another_thread_and_the_next_one_runs() -> None:
    engine = DuckDbEngine()
    with again_and_again(engine.cancel), pytest.raises(EngineError, match="cancelled") as caught:
        engine.run(sql(LONG))
    assert caught.value.__context__ is None
    engine.cancel()  # nothing runs: nothing happens
    assert engine.run(sql("SELECT 1 AS one")).num_rows == 1


@pytest.mark.slow
def test_a_long_query_tells_how_far_it_is() -> None:
    engine = DuckDbEngine(threads=1)
    rows = pa.table({"x": pa.array(range(2_000_000), pa.int64())})
    table = engine.publish("rows", rows)
    seen: list[float] = []
    waves = " + ".join(f"SIN(x + {i})" for i in range(40))
    select = sql(f"SELECT SUM({waves}) AS s").from_(table)  # type: ignore[attr-defined]  # a Select
    for _ in range(50):  # until it happens to be looked at in the middle
        engine.run(select, progress=seen.append)
        if seen:
            break
    assert all(0 <= percent <= 100 for percent in seen)
    assert seen, "no progress was told"
    assert threading.active_count() == 1 or not any(t.name == "defocus-progress" for t in threading.enumerate())


def test_threads_may_share_an_engine(engine: Engine) -> None:
    table = engine.publish("rows", pa.table({"x": list(range(1000))}))
    wrong: list[object] = []

    def work(number: int) -> None:
        for _ in range(10):
            got = engine.run(exp.select(exp.alias_(exp.convert(number), "n"), "x").from_(table))
            if set(got.column("n").to_pylist()) != {number} or got.num_rows != 1000:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_given_connection_keeps_its_settings_and_stays_open() -> None:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'Asia/Tokyo'")
    before = connection.sql("SELECT name, value FROM DUCKDB_SETTINGS() ORDER BY name").fetchall()
    engine = DuckDbEngine(connection)
    engine.run(sql("SELECT 1 AS one"), progress=lambda _: None)
    engine.close()
    assert connection.sql("SELECT name, value FROM DUCKDB_SETTINGS() ORDER BY name").fetchall() == before
    connection.close()
    with pytest.raises(EngineError, match=r"connection is closed|What it said"):
        engine.run(sql("SELECT 1 AS one"))


@pytest.mark.parametrize("collation", ["NOCASE", "NOACCENT", "nocase.noaccent"])
def test_a_given_connection_on_which_texts_equal_other_texts_is_refused_now_and_later(collation: str) -> None:
    connection = duckdb.connect()
    engine = DuckDbEngine(connection)
    connection.execute(f"SET default_collation = '{collation}'")
    with pytest.raises(SourceError, match="RESET default_collation"):
        engine.run(sql("SELECT 1 AS x"))
    with pytest.raises(SourceError, match="several keys"):
        DuckDbEngine(connection)
    connection.execute("RESET default_collation")
    assert engine.run(sql("SELECT 'a' = 'A' AS x")).to_pylist() == [{"x": False}]


@pytest.mark.parametrize(
    "made",
    [
        "CREATE MACRO Least(x, y) AS x",
        "CREATE TEMP MACRO sum(x) AS 5",
        'CREATE MACRO "+"(x, y) AS x',
        "CREATE MACRO duckdb_functions() AS TABLE SELECT 'x' AS function_name",
        None,
    ],
)
def test_a_given_connection_whose_functions_are_not_the_built_in_ones_is_refused_now_and_later(made: Any) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE MACRO own(x) AS x + 1")
    engine = DuckDbEngine(connection)
    assert engine.run(sql("SELECT LEAST(5, 3) AS x")).to_pylist() == [{"x": 3}]
    if made is None:
        connection.create_function("least", lambda x, _: x, ["DOUBLE", "DOUBLE"], "DOUBLE")
    else:
        connection.execute(made)
    for work in (lambda: engine.run(sql("SELECT LEAST(5, 3) AS x")), lambda: DuckDbEngine(connection)):
        with pytest.raises(SourceError, match="name of a built-in one"):
            work()


def test_a_given_connection_with_types_that_are_not_of_arrow_is_refused_now_and_later() -> None:
    connection = duckdb.connect()
    engine = DuckDbEngine(connection)
    connection.execute("SET arrow_lossless_conversion = true")
    for work in (lambda: engine.run(sql("SELECT 1 AS x")), lambda: DuckDbEngine(connection)):
        with pytest.raises(SourceError, match="RESET arrow_lossless_conversion"):
            work()


@pytest.mark.parametrize("collation", ["", "C", "POSIX", "binary"])
def test_a_given_connection_that_compares_bytes_is_taken(collation: str) -> None:
    connection = duckdb.connect()
    connection.execute(f"SET default_collation = '{collation}'")
    assert DuckDbEngine(connection).run(sql("SELECT 'a' = 'A' AS x")).to_pylist() == [{"x": False}]


def test_columns_that_lose_digits_when_they_are_read_are_known() -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t (a TIMESTAMP_NS, b DOUBLE, c FLOAT, d DECIMAL(9, 2), e DECIMAL(9, 0), f TIMESTAMP, g HUGEINT,"
        " h TIMESTAMP_S, i TIMESTAMPTZ, j VARCHAR, k UUID, l DATE, m BOOLEAN)"
    )
    assert DuckDbEngine(connection).finer(exp.to_table("t")) == set("abcd")


def test_a_database_file_is_opened_for_reading_only(tmp_path: Path) -> None:
    path = tmp_path / "it's; a -- file.duckdb"
    made = duckdb.connect(str(path))
    made.execute("CREATE TABLE t AS SELECT 1 AS x")
    made.close()
    engine = DuckDbEngine(attached={'a "strange" alias': path})
    assert engine.run(sql('SELECT x FROM "a ""strange"" alias".main.t')).to_pylist() == [{"x": 1}]
    with pytest.raises(duckdb.Error):
        engine._connection.execute('INSERT INTO "a ""strange"" alias".main.t VALUES (2)')


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.duckdb"
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(SourceError, match="could not be opened for reading") as caught:
        DuckDbEngine(attached={"x": path})
    assert caught.value.__context__ is None


def test_the_kinds_of_all_types() -> None:
    engine = DuckDbEngine()
    types = {
        Kind.BOOLEAN: ["BOOLEAN"],
        Kind.INTEGER: [
            "TINYINT",
            "UTINYINT",
            "SMALLINT",
            "INTEGER",
            "UBIGINT",
            "HUGEINT",
            "UHUGEINT",
            "DECIMAL(20, 0)",
        ],
        Kind.NUMBER: ["FLOAT", "DOUBLE", "DECIMAL(10, 2)"],
        Kind.TEXT: ["VARCHAR", "UUID", "ENUM('a', 'b')"],
        Kind.DATE: ["DATE"],
        Kind.TIMESTAMP: ["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMPTZ"],
        Kind.OTHER: [
            "TIME",
            "INTERVAL",
            "BLOB",
            "INTEGER[]",
            "STRUCT(a INTEGER)",
            "MAP(INTEGER, INTEGER)",
            "BIT",
            "JSON",
        ],
    }
    for kind, all_of_it in types.items():
        for one in all_of_it:
            select = sql(f"SELECT CAST(NULL AS {one}) AS x")
            assert [column.kind for column in engine.schema(select)] == [kind], one
            assert [column.kind for column in engine.schema(engine.canonical(select, {}))] == [kind], one
            assert engine.run(engine.canonical(select, {})).to_pylist() == [{"x": None}]


def test_rows_that_are_kept_stay_as_they_were_until_they_are_done_with(engine: Engine) -> None:
    drawn = exp.select("*").from_(exp.Subquery(this=parse_one("SELECT random() AS x FROM range(40)", dialect="duckdb")))
    with engine.kept(drawn) as kept:
        assert engine.run(kept).equals(engine.run(kept))
        assert engine.run(kept).num_rows == 40
    with pytest.raises(EngineError):
        engine.run(kept)

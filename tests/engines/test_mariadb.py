"""The MariaDB engine: what it promises, on a real server."""

# ruff: noqa: S608 the tables are made here

import threading
import traceback
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pymysql
import pytest
from sqlglot import exp
from tests.tables.expressions.places import DuckDbPlace, MariaDbPlace
from tests.waiting import again_and_again

import defocus as dp
from defocus import Budget, count, mean, user
from defocus.engines import mariadb as module
from defocus.engines.mariadb import MariaDbEngine
from defocus.engines.schema import Column, Kind, Schema
from defocus.engines.sources import source
from defocus.errors import EngineError, QuestionFailedError, SourceError
from defocus.noise.testing import seeded
from defocus.tables.expressions import expression
from defocus.tables.table import Table

pytestmark = pytest.mark.slow
SECRET = "s3cret-password"  # noqa: S105  # nobody's


@pytest.fixture(scope="module")
def owner(mariadb: str) -> Iterator[Any]:
    """A cursor of somebody who may do everything."""
    socket = mariadb.partition("unix_socket=")[2]
    with (
        pymysql.connect(unix_socket=socket, user="root", database="hospital", autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        yield cursor


@pytest.fixture(scope="module")
def engine(mariadb: str) -> Iterator[MariaDbEngine]:
    made = MariaDbEngine(mariadb)
    yield made
    made.close()


@pytest.fixture(scope="module")
def visits(owner: Any) -> str:
    owner.execute("CREATE TABLE visits (patient INT, ward VARCHAR(9), days DOUBLE)")
    owner.execute(
        "INSERT INTO visits SELECT seq % 50, CHAR(65 + seq % 3), CASE WHEN seq % 7 > 0 THEN seq % 30 END"
        " FROM seq_1_to_1000"
    )
    return "visits"


def opened(server: str, folder: Path, table: str, **more: Any) -> Table:
    return dp.open(
        server, table=table, unit=user("patient"), budget=Budget(100), ledger=folder / "v.ledger", name="v", **more
    )


def column(name: str) -> exp.Column:
    return exp.column(name, quoted=True)


def test_sums_beyond_64_bits_stay_exact(engine: MariaDbEngine) -> None:
    table = engine.publish("big", pa.table({"x": [2**63 - 1] * 1000}))
    total = engine.run(exp.select(exp.alias_(exp.Sum(this=column("x")), "s")).from_(table)).column("s")
    assert total.type == pa.decimal128(38, 0)
    assert total[0].as_py() == Decimal(1000 * (2**63 - 1))


def test_published_tables_are_known_until_they_are_withdrawn(engine: MariaDbEngine) -> None:
    given = pa.table({"a": [1, None], 'b "%s" $1 `': ["é'\\", None], "c": [float("inf"), None], "d": [True, None]})
    table = engine.publish('a "name`', given)
    asked = engine.canonical(table, {})
    assert engine.run(asked).to_pydict() == given.to_pydict()
    engine.withdraw(table)
    engine.withdraw(table)
    with pytest.raises(EngineError, match="a table is gone"):
        engine.run(asked)


TYPES: list[tuple[str, str, Kind, Any]] = [
    ("tinyint", "-7", Kind.INTEGER, -7),
    ("boolean", "5", Kind.BOOLEAN, True),
    ("bit(1)", "b'0'", Kind.BOOLEAN, False),
    ("bigint unsigned", "18446744073709551615", Kind.INTEGER, None),
    ("bigint unsigned", "9223372036854775807", Kind.INTEGER, 2**63 - 1),
    ("decimal(20, 0)", "-9223372036854775809", Kind.INTEGER, None),
    ("decimal(20, 0)", "9223372036854775807", Kind.INTEGER, 2**63 - 1),
    ("decimal(5, 2)", "1.5", Kind.NUMBER, 1.5),
    ("float", "0.1", Kind.NUMBER, 0.10000000149011612),
    ("double", "1.7976931348623157e308", Kind.NUMBER, float("inf")),
    ("year", "2024", Kind.INTEGER, 2024),
    ("varchar(20) character set latin1", "'é ; -- '", Kind.TEXT, "é ; -- "),
    ("longtext", "REPEAT('é', 40000)", Kind.TEXT, None),
    ("enum('good', 'bad')", "'bad'", Kind.TEXT, "bad"),
    ("uuid", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", Kind.TEXT, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("date", "'2024-00-10'", Kind.DATE, None),
    ("date", "'0000-00-00'", Kind.DATE, None),
    ("date", "'0999-12-31'", Kind.DATE, "0999-12-31"),
    ("datetime(6)", "'2024-06-01 12:00:00.123456'", Kind.TIMESTAMP, "2024-06-01 12:00:00.123456"),
    ("timestamp", "'2024-06-01 12:00:00'", Kind.TIMESTAMP, "2024-06-01 10:00:00"),
    ("varbinary(4)", "'abc'", Kind.OTHER, b"abc"),
]


@pytest.mark.parametrize(("type_", "written", "kind", "value"), TYPES)
def test_every_type_becomes_the_one_of_its_kind(  # noqa: PLR0917  # a table of cases
    owner: Any, mariadb: str, type_: str, written: str, kind: Kind, value: Any
) -> None:
    owner.execute("SET sql_mode = '', time_zone = '+02:00'")
    owner.execute(f"CREATE OR REPLACE TABLE typed (x {type_})")
    owner.execute(f"INSERT INTO typed VALUES ({written}), (NULL)")
    opened = source(mariadb, table="typed")
    assert opened.schema["x"].kind is kind
    found = opened.engine.run(opened.relation).column("x").to_pylist()
    opened.engine.close()
    shown = found[0] if value is None or kind not in {Kind.DATE, Kind.TIMESTAMP} else str(found[0])
    assert (shown, found[1]) == (value, None if type_ != "timestamp" else found[1])


def test_a_small_integer_that_is_declared_to_be_one_is_no_truth_value(owner: Any, mariadb: str) -> None:
    owner.execute("CREATE OR REPLACE TABLE typed (x TINYINT(1))")
    owner.execute("INSERT INTO typed VALUES (5)")
    opened = source(mariadb, table="typed", types={"x": "integer"})
    assert opened.engine.run(opened.relation).column("x").to_pylist() == [5]
    opened.engine.close()


def test_people_whose_names_begin_alike_are_not_mistaken(owner: Any, mariadb: str) -> None:
    """By default MariaDB partitions windows by the first 1024 bytes of a text."""
    owner.execute("CREATE OR REPLACE TABLE long_names (p LONGTEXT)")
    owner.execute(
        "INSERT INTO long_names SELECT CONCAT(REPEAT('é', 20000), seq % 7, REPEAT(' ', seq % 2)) FROM seq_1_to_56"
    )
    opened = source(mariadb, table="long_names")
    number = exp.Window(this=exp.Count(this=exp.Star()), partition_by=[column("p")])
    select = exp.select(exp.alias_(number, "n", quoted=True)).from_(opened.relation.subquery("t"))
    assert set(opened.engine.run(select).column("n").to_pylist()) == {4}
    opened.engine.close()


def test_one_release_sees_one_state_of_the_table(owner: Any, mariadb: str) -> None:
    owner.execute("CREATE OR REPLACE TABLE moving AS SELECT 1 AS x")
    opened = source(mariadb, table="moving")
    engine = opened.engine
    with engine.snapshot(), engine.snapshot():
        assert engine.run(opened.relation).num_rows == 1
        owner.execute("INSERT INTO moving VALUES (2)")
        assert engine.run(opened.relation).num_rows == 1
    assert engine.run(opened.relation).num_rows == 2
    owner.execute("ALTER TABLE moving ADD COLUMN y INT")
    with pytest.raises(EngineError, match="not what it was when it was opened"):
        engine.run(opened.relation)
    engine.close()


def test_nothing_can_be_written(mariadb: str, owner: Any) -> None:
    owner.execute("CREATE OR REPLACE TABLE kept AS SELECT 1 AS x")
    engine = MariaDbEngine(mariadb)
    with engine.snapshot(), pytest.raises(pymysql.err.MySQLError, match="READ ONLY"):
        engine._connect().query("DELETE FROM kept")
    with pytest.raises(pymysql.err.MySQLError, match="READ ONLY"):
        engine._connect().query("DELETE FROM kept")
    engine.close()
    owner.execute("SELECT COUNT(*) FROM kept")
    assert owner.fetchone() == (1,)


def test_a_query_is_cancelled_from_another_thread_and_another_can_be_asked(engine: MariaDbEngine) -> None:
    endless = exp.select(exp.alias_(exp.Anonymous(this="SLEEP", expressions=[exp.Literal.number(60)]), "s"))
    many = endless.from_(engine.publish("rows", pa.table({"x": [1, 2, 3]})))
    failures: list[EngineError] = []

    def ask() -> None:
        try:
            engine.run(many)
        except EngineError as error:
            failures.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    with again_and_again(engine.cancel):
        asking.join()
    assert not failures or "cancelled" in str(failures[0])
    assert engine.run(exp.select(exp.alias_(exp.Literal.number(1), "x"))).to_pydict() == {"x": [1]}


@pytest.mark.parametrize("told", ["mysql://ann:{}@127.0.0.1:1/x", "mariadb://ann:{}@127.0.0.1/x?odd=1"])
def test_an_address_that_does_not_work_is_refused_without_its_password(told: str) -> None:
    with pytest.raises(SourceError) as refused:
        source(told.format(SECRET), table="t")
    assert SECRET not in "".join(traceback.format_exception(refused.value))


def test_without_the_driver_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pymysql", None)
    with pytest.raises(SourceError, match=r"defocus\[mysql\]"):
        source("mysql://reader@host/hospital", table="visits")


@pytest.mark.parametrize(
    ("made", "why"),
    [
        ("VIEW odd AS SELECT patient, RAND() AS r FROM visits", "RAND"),
        ("VIEW odd AS SELECT patient, days / 0 AS r FROM visits", "DIV"),
        ("VIEW odd AS SELECT COUNT(*) AS n FROM visits", "COUNT"),
        ("VIEW odd AS SELECT v.patient FROM visits AS v JOIN visits AS w", "TABLE|JOIN"),
        ("VIEW odd AS SELECT CAST(ward AS SIGNED) AS w FROM visits", "cast"),
        ("TABLE odd (x INT) ENGINE = MyISAM", "InnoDB"),
        ("TABLE odd (x INT, y INT AS (x + 1) VIRTUAL)", "computed"),
    ],
)
@pytest.mark.usefixtures("visits")
def test_what_is_no_stored_table_and_no_plain_selection_is_refused(
    owner: Any, mariadb: str, made: str, why: str
) -> None:
    owner.execute(f"CREATE {made}")
    try:
        with pytest.raises(SourceError, match=why):
            source(mariadb, table="odd")
    finally:
        owner.execute(f"DROP {made.split(maxsplit=1)[0]} odd")


@pytest.mark.usefixtures("visits")
def test_a_view_that_is_a_plain_selection_is_read(owner: Any, mariadb: str, tmp_path: Path) -> None:
    owner.execute(
        "CREATE OR REPLACE VIEW some AS SELECT patient, days FROM visits WHERE ward IN ('A', 'B') AND days > 3"
    )
    owner.execute("SELECT COUNT(*) FROM some")
    (number,) = owner.fetchone()
    with opened(mariadb, tmp_path, "some") as table:
        answer = table.agg(n=count()).release(epsilon=50)
        assert answer.to_arrow().to_pylist()[0]["n"] == pytest.approx(number, abs=20)


def test_an_error_quotes_neither_values_nor_what_the_server_said(
    owner: Any, mariadb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner.execute("CREATE OR REPLACE TABLE failing AS SELECT 1 AS patient, 'ward of secrets' AS ward")
    with opened(mariadb, tmp_path, "failing") as table:
        broken = "SELECT EXP(CAST(710 + CHAR_LENGTH(ward) AS DOUBLE)) AS ward FROM hospital.failing"
        monkeypatch.setattr(MariaDbEngine, "written", lambda _self, _select: broken)
        with pytest.raises(QuestionFailedError) as failed:
            table.agg(n=count()).release(epsilon=1)
    told = "".join(traceback.format_exception(failed.value))
    assert "ward of secrets" not in told
    assert "DOUBLE value" not in told


@pytest.mark.usefixtures("visits")
def test_a_connection_that_died_while_nobody_asked_is_made_again(owner: Any, mariadb: str, tmp_path: Path) -> None:
    with opened(mariadb, tmp_path, "visits") as table:
        owner.execute("SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND user = 'root'")
        for (number,) in owner.fetchall():
            owner.execute(f"KILL {number}")
        assert table.agg(n=count()).release(epsilon=1).columns


def test_names_of_tables_and_columns_are_names_and_nothing_else(owner: Any, mariadb: str, tmp_path: Path) -> None:
    name = "t`; DROP TABLE visits; -- %s"
    owner.execute(f'CREATE OR REPLACE TABLE `{name.replace("`", "``")}` (patient INT, `a" ``\\ %(x)s ?` DOUBLE)')
    with opened(mariadb, tmp_path, name) as table:
        answer = table.agg(m=mean('"a"" `\\ %(x)s ?"', 0, 1)).release(epsilon=1)
        assert answer.columns


def test_a_name_that_mariadb_cannot_hold_is_refused_before_the_charge(
    mariadb: str, visits: str, tmp_path: Path
) -> None:
    with opened(mariadb, tmp_path, visits) as table:
        before = table.ledger.spent()
        with pytest.raises(EngineError, match="cannot name"):
            table.derive(**{"x" * 70: "days + 1"}).agg(m=mean("x" * 70, 0, 1)).release(epsilon=1)
        assert table.ledger.spent() == before


def test_it_answers_as_duckdb_does(mariadb: str, visits: str, tmp_path: Path) -> None:
    answers = []
    (tmp_path / "here").mkdir()
    with opened(mariadb, tmp_path, visits) as there:
        rows = there.rows.engine.run(there.rows.relation)
        here = dp.open(rows, unit=user("patient"), budget=Budget(100), ledger=tmp_path / "here" / "v.ledger", name="v")
        for table in (there, here):
            asked = table.bound(rows=7).group_by("ward", keys=["A", "B"]).agg(n=count(), m=mean("days", 0, 30))
            answers.append(asked.release(epsilon=2, bits=seeded(7)).to_arrow().to_pylist())
        here.close()
    assert answers[0] == answers[1]


def test_a_server_that_is_too_old_or_another_is_refused(mariadb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_OLDEST", (99, 0))
    with pytest.raises(SourceError, match="or later"):
        MariaDbEngine(mariadb)


def test_a_dataset_file_names_the_server(mariadb: str, visits: str, tmp_path: Path) -> None:
    (tmp_path / "visits.toml").write_text(
        f'name = "visits"\ndata = "{mariadb}"\ntable = "{visits}"\nunit.column = "patient"\nbudget.epsilon = 3\n',
        "utf-8",
    )
    with dp.open(tmp_path / "visits.toml") as table:
        assert table.agg(n=count()).release(epsilon=1).columns


@pytest.mark.parametrize(
    "text",
    [
        *("LAST_DAY(d)", "d + INTERVAL 1 MONTH", "t - INTERVAL 3 HOUR", "t + INTERVAL 1 YEAR", "STRFTIME(t, '%Y-%m')"),
        *("MONTHNAME(d)", "DAYNAME(t)", "s ILIKE 'ABC%'", "UPPER(s)", "LOWER(s)", "TRUNC(x)", "CAST(t AS TEXT)"),
        *("CAST(b AS TEXT)", "TO_CHAR(d, 'YYYY-MM')", "DATE_DIFF('week', d, t)", "DATE_TRUNC('quarter', t)"),
        *("x * x / 3", "POWER(x, 0.5)", "ROUND(x, 1)", "x % 2", "-7 // 2", "EXTRACT(week FROM d)"),
    ],
)
def test_functions_are_those_of_duckdb(mariadb: str, text: str) -> None:
    kinds = {"d": Kind.DATE, "t": Kind.TIMESTAMP, "s": Kind.TEXT, "x": Kind.NUMBER, "b": Kind.BOOLEAN}
    read = expression(text, Schema(Column(name, kind) for name, kind in kinds.items()))
    days = (date(9999, 12, 5), date(1, 1, 1), date(2024, 2, 29), date(2023, 1, 31))
    rows = [[day, datetime(day.year, day.month, day.day, 23, 59, 59, 120), "aBc ßÉς", 2.65, True] for day in days]  # noqa: DTZ001  # without a zone
    rows.append([None] * 5)
    there, here = MariaDbPlace(kinds, mariadb), DuckDbPlace(kinds)
    assert there.ask(rows, read) == here.ask(rows, read)
    there.close()

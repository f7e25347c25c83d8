"""Databases that were never tested: what would be sent to them, kept in files, and what it means by DuckDB's reading.

No server is asked. Statements are read back by sqlglot in the dialect of their database, and computed by DuckDB in
what sqlglot makes of them, so that at least our own changes of the tree are known to keep its meaning. To write the
files anew after a change: ``python tests/engines/test_untested.py``.
"""

import tempfile
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot
from sqlglot import exp

import defocus as dp
from defocus.engines.schema import lasting
from defocus.engines.sources import source
from defocus.engines.untested import ALL
from defocus.errors import EngineError, SourceError
from defocus.noise.testing import seeded

KEPT = Path(__file__).with_name("untested")
ROWS = (
    "SELECT CAST(i % 7 AS BIGINT) AS patient, CASE WHEN i % 5 > 0 THEN CHR(CAST(65 + i % 3 AS INT)) END AS ward,"
    " CASE WHEN i % 11 = 0 THEN 'NaN'::DOUBLE WHEN i % 7 > 0 THEN (i % 30)::DOUBLE END AS days, NULL::BLOB AS photo"
    " FROM RANGE(1, 100) AS r(i)"
)
TYPES = [("patient", "bigint"), ("ward", "varchar"), ("days", "double"), ("photo", "blob")]


class Connection:
    """Speaks one dialect, with a catalogue of one table, and lets DuckDB compute."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect
        self.rows = duckdb.connect(config={"threads": 1})
        self.rows.execute(f"CREATE TABLE visits AS {ROWS}")
        if dialect == "tsql":  # SQL Server has no NaN
            self.rows.execute("UPDATE visits SET days = NULL WHERE ISNAN(days)")
        self.found: list[Any] = []
        self.sent: list[str] = []

    def cursor(self) -> "Connection":
        return self

    def close(self) -> None:
        pass

    def execute(self, statement: str) -> None:
        if "information_schema" in statement.lower():
            words: dict[str, list[Any]] = {"table_type": [("BASE TABLE",)], "data_type": TYPES}
            self.found = next(
                (rows for word, rows in words.items() if word in statement.lower()), [("c", "public", "visits")]
            )
            return
        self.sent.append(statement)
        tree = sqlglot.parse_one(statement, dialect=self.dialect)
        for table in tree.find_all(exp.Table):
            table.set("db", None)
            table.set("catalog", None)
        while (changed := tree.transform(_as_duckdb)) != tree:  # it does not look into what it made
            tree = changed
        self.found = self.rows.execute(tree.sql("duckdb")).fetchall()

    def fetchall(self) -> list[Any]:
        return self.found


def _as_duckdb(node: Any) -> Any:  # noqa: PLR0911  # one line for each
    """What sqlglot leaves as it is: digests, which DuckDB gives in hexadecimal."""
    inner = node.this if isinstance(node, exp.Lower | exp.Hex | exp.LowerHex) else None
    if isinstance(node, exp.Lower) and isinstance(inner, exp.Convert):
        return inner.expression
    if isinstance(inner, exp.Hex | exp.LowerHex | exp.SHA2 | exp.SHA2Digest | exp.Encode):
        return inner
    if isinstance(node, exp.Add) and any(one.is_string for one in node.find_all(exp.Literal)):
        return exp.DPipe(this=node.this, expression=node.expression)
    if isinstance(node, exp.DataType) and (node.expressions or node.is_type("float")):
        return exp.DataType.build("DOUBLE" if node.is_type("float") else "TEXT")  # VARCHAR(MAX); floats have 64 bits
    if isinstance(node, exp.SHA2Digest):
        return exp.SHA2(this=node.this, length=exp.Literal.number(256))
    if isinstance(node, exp.Anonymous) and node.name.upper() == "TO_UTF8":
        return node.expressions[0]
    if isinstance(node, exp.Encode):
        return node.this
    if isinstance(node, exp.Div) and node.args.get("typed") and not isinstance(node.expression, exp.Cast):
        return exp.IntDiv(this=node.this, expression=node.expression)  # of integers, which sqlglot does not see
    return node


def asked(table: Any, *, by_sampling: bool) -> Any:
    groups = table.where("days > 2 OR days IS NULL").bound(rows=3, by="sampling" if by_sampling else "weights")
    groups = groups.group_by("patient", keys=[1, 2, 9])
    return groups.agg(n=dp.count(), m=dp.mean("days", 0, 30), people=dp.count_units())


def opened(connection: Any, folder: Path, **more: Any) -> Any:
    return dp.open(
        connection, unit=dp.user("patient"), budget=dp.Budget(99), ledger=folder / "v.ledger", name="v", **more
    )


def written(database: str, folder: Path) -> str:
    connection = Connection(ALL[database].dialect)
    with opened(connection, folder, table="visits", engine=f"untested:{database}") as table:
        plans = [asked(table, by_sampling=sampling).plan(epsilon=1) for sampling in (False, True)]
        texts = [statement.sql for plan in plans for statement in plan.statements]
    return (
        "\n\n".join(
            sqlglot.parse_one(lasting(one), dialect=ALL[database].dialect).sql(
                ALL[database].dialect, pretty=True, identify=True
            )
            + ";"
            for one in texts
        )
        + "\n"
    )


@pytest.mark.parametrize("database", ALL)
def test_statements_are_those_that_were_read_by_people(database: str, tmp_path: Path) -> None:
    assert written(database, tmp_path) == (KEPT / f"{database}.sql").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("database", ALL)
@pytest.mark.parametrize("by_sampling", [False, True])
def test_they_mean_the_integers_of_duckdb(database: str, by_sampling: bool, tmp_path: Path) -> None:
    connection = Connection(ALL[database].dialect)
    answers = []
    for place, data, more in (
        ("here", connection.rows, {}),
        ("there", connection, {"engine": f"untested:{database}"}),
    ):
        (tmp_path / place).mkdir()
        with opened(data, tmp_path / place, table="visits", **more) as table:
            answer = asked(table, by_sampling=by_sampling).release(epsilon=50, bits=seeded(3))
            answers.append([[row["n"], row["people"]] for row in answer.to_arrow().to_pylist()])
    assert answers[0] == answers[1]


@pytest.mark.parametrize("database", ALL)
def test_previews_and_answers_say_that_it_is_untested(database: str, tmp_path: Path) -> None:
    connection = Connection(ALL[database].dialect)
    with opened(connection, tmp_path, table="visits", engine=f"untested:{database}") as table:
        assert "never run" in str(asked(table, by_sampling=False).preview(epsilon=1))
        assert "never run" in asked(table, by_sampling=False).release(epsilon=1).explain()


@pytest.mark.parametrize("database", ALL)
def test_it_must_be_asked_for(database: str) -> None:
    with pytest.raises(SourceError, match=f'engine="untested:{database}"'):
        source(Connection("duckdb"), table="visits", engine=database)
    with pytest.raises(SourceError, match="connection"):
        source("visits.csv", table="visits", engine=f"untested:{database}")


@pytest.mark.parametrize(
    "text", ["days * 2", "days / patient", "LOWER(ward)", "CAST(ward AS BIGINT)", "EXP(days)", "ROUND(days)"]
)
def test_what_rests_on_the_server_is_refused_before_the_charge(text: str, tmp_path: Path) -> None:
    with opened(Connection("trino"), tmp_path, table="visits", engine="untested:trino") as table:
        before = table.ledger.spent()
        with pytest.raises(EngineError, match="nothing was ever tested"):
            table.derive(x=text).where("x IS NOT NULL").agg(n=dp.count()).release(epsilon=1)
        assert table.ledger.spent() == before


def test_what_cannot_be_compared_exactly_cannot_be_asked_about(tmp_path: Path) -> None:
    with opened(Connection("tsql"), tmp_path, table="visits", engine="untested:sqlserver") as table:
        assert {one.name for one in table.rows.schema if one.kind == "other"} == {"ward", "photo"}


if __name__ == "__main__":
    for each in ALL:
        with tempfile.TemporaryDirectory() as home:
            (KEPT / f"{each}.sql").write_text(written(each, Path(home)), "utf-8")

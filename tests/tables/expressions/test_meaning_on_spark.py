"""Random expressions on random rows in Spark, many in one statement: they say what the plain reference says."""

# ruff: noqa: DTZ001 tables hold moments without a zone

import math
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlglot import exp
from tests.tables.expressions.reference import value, write
from tests.tables.expressions.test_meaning import COLUMNS, ROWS, as_read, read_within_limits, trees

from defocus.engines.spark import SparkEngine
from defocus.engines.syntax import column, named
from defocus.tables import Column, Kind, Schema
from defocus.tables.expressions import Expression, expression

pytestmark = pytest.mark.slow
TYPES = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.NUMBER: pa.float64(),
    Kind.TEXT: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
}
DAYS = {"infinity": 2**31 - 1, "-infinity": -(2**31), "10000-01-01": 2_932_897, "0044-03-15 (BC)": -735_160}
DAY = 86_400_000_000
AT_ONCE = 40
Tree = tuple[Any, ...]


@pytest.fixture(scope="module")
def engine(spark: Any) -> Iterator[SparkEngine]:
    made = SparkEngine(spark)
    yield made
    made.close()


def drawn(strategy: st.SearchStrategy[Any], number: int) -> list[Any]:
    """Examples of a strategy, the same on every run."""
    found: list[Any] = []

    @settings(max_examples=number, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(strategy)
    def keep(one: Any) -> None:
        found.append(one)

    keep()
    return found


def stored(kind: Kind, cell: Any) -> Any:
    """A cell as Arrow holds it; moments that Python does not have as numbers."""
    if kind is Kind.DATE and isinstance(cell, str):
        return DAYS[cell]
    if kind is Kind.TIMESTAMP and isinstance(cell, str):
        return max(-(2**63), min(2**63 - 1, DAYS[cell] * DAY))
    if kind is Kind.DATE and cell is not None:
        return (cell - date(1970, 1, 1)).days
    if kind is Kind.TIMESTAMP and cell is not None:
        passed = cell - datetime(1970, 1, 1)
        return (passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds
    return cell


def table_of(rows: Sequence[dict[str, Any]]) -> pa.Table:
    through = {Kind.DATE: pa.int32(), Kind.TIMESTAMP: pa.int64()}
    columns = {
        name: pa.array([stored(kind, row[name]) for row in rows], through.get(kind, TYPES[kind])).cast(TYPES[kind])
        for name, kind in COLUMNS.items()
    }
    return pa.table({"place": pa.array(range(len(rows)), pa.int64()), **columns})


def asked(engine: SparkEngine, table: pa.Table, reads: Sequence[Expression]) -> list[tuple[list[Any], list[bool]]]:
    """Of every expression its values on all rows, and whether its condition keeps them."""
    known = engine.publish("rows", table)
    made: list[exp.Expression] = [column("place")]
    for i, read in enumerate(reads):
        made.append(named(read.sql, f"v{i}"))
        if read.kind is Kind.BOOLEAN:
            made.append(named(exp.Case(ifs=[exp.If(this=read.condition, true=exp.true())]), f"c{i}"))
    found = engine.run(exp.select(*made).from_(engine.canonical(known, {}).subquery("r"))).sort_by("place")
    engine.withdraw(known)
    return [
        (
            found[f"v{i}"].to_pylist(),
            [one is True for one in found[f"c{i}"].to_pylist()] if read.kind is Kind.BOOLEAN else [],
        )
        for i, read in enumerate(reads)
    ]


def check(engine: SparkEngine, wanted: Sequence[Tree], rows: Sequence[dict[str, Any]], *, roughly: bool) -> None:
    readable = [(tree, read) for tree in wanted if (read := read_within_limits(write(tree))) is not None]
    table = table_of(rows)
    for batch in (readable[i : i + AT_ONCE] for i in range(0, len(readable), AT_ONCE)):
        for (tree, read), (values, kept) in zip(batch, asked(engine, table, [r for _, r in batch]), strict=True):
            expected = [value(tree, as_read(row)) for row in rows]
            for row, got, right in zip(rows, values, expected, strict=True):
                if roughly and isinstance(right, float) and got is not None:
                    assert got == pytest.approx(right, rel=1e-12), (write(tree), row)
                else:
                    assert (got, type(got)) == (right, type(right)), (write(tree), row)
            if read.kind is Kind.BOOLEAN:
                assert kept == [right is True for right in expected], write(tree)


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return [row for some in drawn(ROWS, 25) for row in some][:40]


@pytest.mark.parametrize("number", [17, pytest.param(60, marks=pytest.mark.long)])
def test_an_expression_means_in_spark_what_the_reference_says(
    engine: SparkEngine, rows: list[dict[str, Any]], number: int
) -> None:
    kinds = [kind for kind in Kind if kind is not Kind.OTHER]
    check(engine, [tree for kind in kinds for tree in drawn(trees(kind), number)], rows, roughly=False)


def test_transcendental_functions_are_null_outside_their_domains(
    engine: SparkEngine, rows: list[dict[str, Any]]
) -> None:
    numbers = [tree for kind in (Kind.INTEGER, Kind.NUMBER) for tree in drawn(trees(kind, 1), 8)]
    wanted: list[Tree] = [(function, tree) for function in ("ln", "log10", "exp", "sqrt") for tree in numbers]
    wanted += [("power", a, b) for a in numbers[::2] for b in numbers[1::2]]
    check(engine, wanted[::2], rows, roughly=True)


PLAIN = Schema([Column("x", Kind.NUMBER), Column("s", Kind.TEXT)])


def of_text(engine: SparkEngine, written: str, texts: list[str]) -> list[Any]:
    known = engine.publish("texts", pa.table({"place": range(len(texts)), "s": texts}))
    read = named(expression(written, PLAIN).sql, "v")
    return list(engine.run(exp.select(column("place"), read).from_(known)).sort_by("place")["v"].to_pylist())


SPELLINGS: list[tuple[str, int | None, float | None]] = [
    ("1.0d", None, None),
    ("1f", None, None),
    ("0x10", None, None),
    ("1_000", None, None),
    ("NaN", None, None),
    ("-Infinity", None, -math.inf),
    ("+inf", None, math.inf),
    (" \t1e3\n", 1000, 1000.0),
    ("1e400", None, math.inf),
    ("1e-400", 0, 0.0),
    ("0.5", 1, 0.5),
    ("-2.5", -3, -2.5),
    ("9223372036854775807.4", 2**63 - 1, 2.0**63),
    ("9223372036854775807.5", None, 2.0**63),
    ("0.49999999999999999999999999999999999999999999", 0, 0.5),
    ("0" * 990 + "7", 7, 7.0),
    ("0" * 1001 + "7", None, None),
    ("١", None, None),
    ("7\u2028", None, None),  # line breaks that Java's $ passes over
    ("inf\x85", None, None),
    ("", None, None),
]


def test_texts_are_read_as_numbers_by_one_rule(engine: SparkEngine) -> None:
    texts = [text for text, _, _ in SPELLINGS]
    assert of_text(engine, "CAST(s AS BIGINT)", texts) == [whole for _, whole, _ in SPELLINGS]
    assert of_text(engine, "CAST(s AS DOUBLE)", texts) == [number for _, _, number in SPELLINGS]


MOMENTS: list[tuple[str, date | None, datetime | None]] = [
    ("2020-02-29", date(2020, 2, 29), datetime(2020, 2, 29)),
    ("2021-02-29", None, None),
    ("0-1-1", None, None),
    ("1-1-1", date(1, 1, 1), datetime(1, 1, 1)),
    ("10000-01-01", None, None),
    ("2020/2/9", date(2020, 2, 9), datetime(2020, 2, 9)),
    ("2020-2/9", None, None),
    ("2020-02-09 24:00", date(2020, 2, 9), datetime(2020, 2, 10)),
    ("2020-02-09 24:01", None, None),
    ("2020-02-09T23:59:59.1234567Z", date(2020, 2, 9), datetime(2020, 2, 9, 23, 59, 59, 123456)),
    ("2020-02-09 07:08", date(2020, 2, 9), datetime(2020, 2, 9, 7, 8)),
    ("2020-02-09 07:60", None, None),
    ("epoch", None, None),
    ("2020", None, None),
    ("2020-01-01\u2028", None, None),  # line breaks that Java's $ passes over
    ("2020-01-01\x85", None, None),
    ("2020-01-01 07:08\u2029", None, None),
]


def test_texts_are_read_as_dates_and_moments_by_one_rule(engine: SparkEngine) -> None:
    texts = [text for text, _, _ in MOMENTS]
    assert of_text(engine, "CAST(s AS DATE)", texts) == [day for _, day, _ in MOMENTS]
    assert of_text(engine, "CAST(s AS TIMESTAMP)", texts) == [moment for _, _, moment in MOMENTS]


@pytest.mark.parametrize("function", ["LOWER", "UPPER"])
def test_upper_and_lower_case_are_those_of_each_character(engine: SparkEngine, function: str) -> None:
    from tests.tables.expressions.asking import answer  # noqa: PLC0415  # DuckDB's own

    texts = ["ΣΑΣ", "İI", "straße", "ǆ", "ﬁ", "Ⅷ", "𐐀", "ẞ", "ŉ", "aB" * 40, "İ" * 3 + "é"]
    assert of_text(engine, f"{function}(s)", texts) == [answer(f"{function}(ward)", ward=text) for text in texts]


@pytest.mark.parametrize(
    "text",
    ["\\", "\\\\", "\\'", "'", "\\n", "\n", "\\u0041", "${env:HOME}", "${spark.app.name}", "%s", "`", '"', "\\%"],
)
def test_a_constant_means_itself(engine: SparkEngine, text: str) -> None:
    quoted = "'" + text.replace("'", "''") + "'"
    assert of_text(engine, f"s = {quoted}", [text, text + " "]) == [True, False]
    assert of_text(engine, f"s || {quoted}", ["x"]) == ["x" + text]

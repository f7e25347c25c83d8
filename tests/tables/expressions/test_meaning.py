"""Random expressions on random rows: every engine says what the plain reference says, and never fails."""

# ruff: noqa: DTZ001 tables hold moments without a zone

import functools
import math
import sys
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.tables.expressions.places import DuckDbPlace, MariaDbPlace, Place, PostgreSqlPlace
from tests.tables.expressions.reference import value, write

from defocus.errors import EngineError, UnsupportedSqlError
from defocus.tables import Column, Kind, Schema
from defocus.tables.expressions import Expression, expression

COLUMNS = {
    "b": Kind.BOOLEAN,
    "i": Kind.INTEGER,
    "j": Kind.INTEGER,
    "x": Kind.NUMBER,
    "y": Kind.NUMBER,
    'the "text"': Kind.TEXT,
    "s;--": Kind.TEXT,
    "spelled": Kind.TEXT,
    "d": Kind.DATE,
    "e": Kind.DATE,
    "t": Kind.TIMESTAMP,
}
SCHEMA = Schema(Column(name, kind) for name, kind in COLUMNS.items())
BEYOND = ["infinity", "-infinity", "10000-01-01", "0044-03-15 (BC)"]
"""Dates that Python does not have; they are missing."""

INTEGERS = st.one_of(
    st.integers(-9, 9), st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1, -(2**53) - 1, 2**31, -(2**31), 2**62])
)
NUMBERS = st.one_of(
    st.sampled_from([0.0, -0.0, 0.5, -0.5, 2.5, -2.5, 1e308, -1e308, 5e-324, 2.0**63, 0.49999999999999994, 1.005]),
    st.integers(-9, 9).map(float),
    st.floats(allow_nan=False, allow_infinity=False),
)
TEXTS = st.one_of(
    st.sampled_from(["", " ", "'", '"', "a' OR '1'='1", "-- x", "; DROP", "a%b", "a_b", "é", "漢字", "😀", "A", "a\n"]),
    st.text("aAbBé %_'\"漢😀", max_size=6),
)
SPELLED = st.sampled_from(
    ["12", "-3", "", "abc", "9223372036854775808", "1.4", "1e3", " 7 ", "nan", "inf", "2020-02-29", "2021-02-29", "x1"]
)
DATES = st.one_of(st.dates(), st.sampled_from([date(1, 1, 1), date(9999, 12, 31), date(2020, 2, 29), date(1970, 1, 1)]))
MOMENTS = st.one_of(
    st.datetimes(),
    st.sampled_from([datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(1970, 1, 1)]),
)
CELLS: dict[str, st.SearchStrategy[Any]] = {
    "b": st.booleans(),
    "i": INTEGERS,
    "j": INTEGERS,
    "x": NUMBERS | st.sampled_from([math.nan, math.inf, -math.inf]),
    "y": NUMBERS | st.sampled_from([math.nan, math.inf, -math.inf]),
    'the "text"': TEXTS,
    "s;--": TEXTS,
    "spelled": SPELLED,
    "d": DATES | st.sampled_from(BEYOND),
    "e": DATES,
    "t": MOMENTS | st.sampled_from(BEYOND),
}
ROWS = st.lists(st.fixed_dictionaries({name: cell | st.none() for name, cell in CELLS.items()}), min_size=1, max_size=5)
CONSTANTS: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.BOOLEAN: st.booleans(),
    Kind.INTEGER: INTEGERS,
    Kind.NUMBER: NUMBERS,
    Kind.TEXT: TEXTS,
    Kind.DATE: DATES,
    Kind.TIMESTAMP: MOMENTS,
}
ORDERED = [Kind.INTEGER, Kind.NUMBER, Kind.TEXT, Kind.DATE, Kind.TIMESTAMP]
PATTERNS = st.text("aAé%_'", max_size=5)
UNITS = ["year", "quarter", "month", "week", "day"]
TIMES = ["hour", "minute", "second"]
FORMATS = ["%Y-%m-%d", "%H:%M:%S", "%B %-d, %Y", "%b %a 100%%", "%A %j", "x"]
STEPS = st.sampled_from([0, 1, -1, 3, -3, 12, -12, 13, 29, -366, 1000])


@st.composite
def trees(draw: st.DrawFn, kind: Kind, depth: int = 3) -> tuple[Any, ...]:  # noqa: C901 a branch for each kind
    """A random tree of a kind."""
    leaves = [name for name, its in COLUMNS.items() if its is kind and name != "spelled"]
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        if draw(st.booleans()):
            return ("column", draw(st.sampled_from(leaves)))
        return ("constant", draw(CONSTANTS[kind]))

    def sub(its: Kind) -> tuple[Any, ...]:
        return draw(trees(its, depth - 1))

    number = draw(st.sampled_from([Kind.INTEGER, Kind.NUMBER]))
    moment = draw(st.sampled_from([Kind.DATE, Kind.TIMESTAMP]))
    ordered = draw(st.sampled_from(ORDERED))
    units = draw(st.sampled_from(UNITS if moment is Kind.DATE else UNITS + TIMES))
    choices: list[Any] = [
        lambda: ("case", sub(Kind.BOOLEAN), sub(kind), sub(kind)),
        lambda: ("coalesce", sub(kind), sub(kind)),
        lambda: ("nullif", sub(kind), sub(kind)),
    ]
    if kind in ORDERED:
        choices.append(lambda: (draw(st.sampled_from(["least", "greatest"])), sub(kind), sub(kind), sub(kind)))
    if kind is Kind.BOOLEAN:
        sign = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
        choices += [
            lambda: (sign, sub(ordered), sub(ordered)),
            lambda: (sign, sub(Kind.INTEGER), sub(Kind.NUMBER)),
            lambda: (sign, sub(Kind.DATE), sub(Kind.TIMESTAMP)),
            lambda: (draw(st.sampled_from(["and", "or"])), sub(kind), sub(kind)),
            lambda: ("not", sub(kind)),
            lambda: ("is null", sub(ordered)),
            lambda: ("distinct", sub(ordered), sub(ordered)),
            lambda: ("between", sub(ordered), sub(ordered), sub(ordered)),
            lambda: ("in", sub(ordered), draw(st.lists(CONSTANTS[ordered] | st.none(), min_size=1, max_size=3))),
            lambda: (draw(st.sampled_from(["like", "not like"])), sub(Kind.TEXT), draw(PATTERNS)),
            lambda: (draw(st.sampled_from(["starts_with", "contains"])), sub(Kind.TEXT), sub(Kind.TEXT)),
            lambda: ("ilike", sub(Kind.TEXT), draw(PATTERNS)),
            lambda: ("ends_with", sub(Kind.TEXT), draw(st.text("aAé漢😀", max_size=2))),
            lambda: ("cast", sub(Kind.INTEGER), "BOOLEAN"),
        ]
    if kind in {Kind.INTEGER, Kind.NUMBER}:
        other = kind if kind is Kind.INTEGER else number
        digits = draw(st.integers(-3, 3))
        choices += [
            lambda: (draw(st.sampled_from(["+", "-", "*", "%"])), sub(kind), sub(other)),
            lambda: ("negate", ("column", draw(st.sampled_from(leaves)))),
            lambda: ("abs", sub(kind)),
            lambda: ("floor", sub(kind)),
            lambda: (draw(st.sampled_from(["ceil", "cut"])), sub(kind)),
            lambda: ("round", sub(kind), digits),
        ]
    if kind is Kind.INTEGER:
        divisor = draw(st.integers(2, 100) | st.integers(-100, -2))
        choices += [
            lambda: ("//", sub(kind), ("column", "j")),
            lambda: (draw(st.sampled_from(["exact %", "exact //"])), sub(kind), ("constant", divisor)),
            lambda: ("bucket", sub(kind), abs(divisor)),
            lambda: ("sign", sub(number)),
            lambda: ("length", sub(Kind.TEXT)),
            lambda: ("position", sub(Kind.TEXT), sub(Kind.TEXT)),
            lambda: ("days between", sub(Kind.DATE), sub(Kind.DATE)),
            lambda: ("cast", sub(draw(st.sampled_from([Kind.NUMBER, Kind.BOOLEAN]))), "BIGINT"),
            lambda: ("cast", ("column", "spelled"), "BIGINT"),
            lambda: ("extract", sub(moment), draw(st.sampled_from([units, "dow", "isodow", "doy"]))),
            lambda: ("date_diff", draw(st.sampled_from(UNITS)), sub(Kind.DATE), sub(moment)),
            lambda: ("date_diff", draw(st.sampled_from(TIMES)), sub(moment), sub(Kind.TIMESTAMP)),
        ]
    if kind is Kind.NUMBER:
        choices += [
            lambda: ("/", sub(number), sub(draw(st.sampled_from([Kind.INTEGER, Kind.NUMBER])))),
            lambda: ("sqrt", sub(number)),
            lambda: ("bucket", sub(number), draw(st.sampled_from([0.5, 2.5, 1e-300]))),
            lambda: ("cast", sub(Kind.INTEGER), "DOUBLE"),
            lambda: ("cast", ("column", "spelled"), "DOUBLE"),
        ]
    if kind is Kind.TEXT:
        n, m = draw(st.integers(0, 4)), draw(st.integers(1, 4))
        choices += [
            lambda: (draw(st.sampled_from(["lower", "upper", "trim", "ltrim", "rtrim"])), sub(kind)),
            lambda: ("||", sub(kind), sub(kind)),
            lambda: ("concat", sub(kind), sub(kind)),
            lambda: (draw(st.sampled_from(["left", "right"])), sub(kind), n),
            lambda: ("substring", sub(kind), m, n),
            lambda: (
                "replace",
                sub(kind),
                draw(st.sampled_from(["a", "é", "aA", "'"])),
                draw(st.sampled_from(["", "b''"])),
            ),
            lambda: ("cast", sub(draw(st.sampled_from([Kind.INTEGER, Kind.BOOLEAN, Kind.DATE]))), "TEXT"),
            lambda: (draw(st.sampled_from(["month name", "day name"])), sub(moment)),
            lambda: ("strftime", sub(moment), draw(st.sampled_from(FORMATS))),
        ]
    if kind is Kind.DATE:
        choices += [
            lambda: ("trunc", sub(kind), draw(st.sampled_from(UNITS))),
            lambda: ("cast", sub(Kind.TIMESTAMP), "DATE"),
            lambda: ("cast", ("column", "spelled"), "DATE"),
            lambda: ("days later", sub(kind), draw(STEPS)),
            lambda: ("last day", sub(moment)),
        ]
    if kind is Kind.TIMESTAMP:
        choices += [
            lambda: ("trunc", sub(kind), draw(st.sampled_from(UNITS + TIMES))),
            lambda: ("cast", sub(Kind.DATE), "TIMESTAMP"),
            lambda: ("later", sub(moment), draw(STEPS), draw(st.sampled_from(UNITS + TIMES))),
        ]
    made: tuple[Any, ...] = draw(st.sampled_from(choices))()
    return made


@functools.cache
def embedded() -> Place:
    return DuckDbPlace(COLUMNS)


@pytest.fixture(
    scope="module", params=["duckdb", *(pytest.param(one, marks=pytest.mark.slow) for one in ("postgresql", "mariadb"))]
)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Where expressions are computed."""
    if request.param == "duckdb":
        yield embedded()
        return
    server = (
        PostgreSqlPlace(COLUMNS, request.getfixturevalue("server"))
        if request.param == "postgresql"
        else MariaDbPlace(COLUMNS, request.getfixturevalue("mariadb"))
    )
    yield server
    server.close()


def as_read(row: dict[str, Any]) -> dict[str, Any]:
    return {name: None if cell in BEYOND else cell for name, cell in row.items()}


def read_within_limits(written: str) -> Expression | None:
    try:
        return expression(written, SCHEMA)
    except UnsupportedSqlError as error:
        if "so many steps" in str(error) or "grow so long" in str(error):
            return None
        raise


def is_too_large(tree: Any, row: dict[str, Any]) -> bool:
    """Whether a number on the way, or read, is so large that a sum of two of its size is infinite."""
    if not isinstance(tree, tuple) or tree[0] == "constant":
        return False
    found = value(tree, row)
    large = isinstance(found, float) and abs(found) > sys.float_info.max / 2
    return large or any(is_too_large(part, row) for part in tree[1:])


def check(
    place: Place, tree: tuple[Any, ...], kind: Kind, rows: list[dict[str, Any]], *, roughly: bool = False
) -> None:
    written = write(tree)
    read = read_within_limits(written)
    if read is None:
        return
    assert read.kind is kind
    if isinstance(place, MariaDbPlace) and "e+308" in written:
        return  # MariaDB rounds the largest floats to infinity, in what it reads and in what it shows
    if isinstance(place, MariaDbPlace):  # no column of its holds infinity, and no result on the way to another
        rows = [{name: None if cell in {math.inf, -math.inf} else cell for name, cell in row.items()} for row in rows]
        rows = [row for row in rows if not is_too_large(tree, as_read(row))]
    expected = [value(tree, as_read(row)) for row in rows]
    try:
        found, kept = place.ask([[row[name] for name in COLUMNS] for row in rows], read)
    except EngineError as refused:
        assert "too many steps in MariaDB" in str(refused)  # noqa: PT017  # an expression it cannot hold
        return
    for got, wanted in zip(found, expected, strict=True):
        if roughly and isinstance(wanted, float) and got is not None:
            assert got == pytest.approx(wanted, rel=1e-12), written
        else:
            assert (got, type(got)) == (wanted, type(wanted)), written
    if kind is Kind.BOOLEAN:
        assert kept == [i for i, wanted in enumerate(expected) if wanted is True], written


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.OTHER])
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), rows=ROWS)
def test_an_expression_means_in_the_engine_what_the_reference_says(
    place: Place, kind: Kind, data: st.DataObject, rows: list[dict[str, Any]]
) -> None:
    check(place, data.draw(trees(kind)), kind, rows)


@pytest.mark.long
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), rows=ROWS, kind=st.sampled_from([kind for kind in Kind if kind is not Kind.OTHER]))
def test_many_more_expressions_mean_what_the_reference_says(
    data: st.DataObject, rows: list[dict[str, Any]], kind: Kind
) -> None:
    check(embedded(), data.draw(trees(kind)), kind, rows)


@settings(max_examples=40, deadline=None)
@given(
    rows=ROWS,
    function=st.sampled_from(["ln", "log10", "exp", "sqrt"]),
    kind=st.sampled_from([Kind.INTEGER, Kind.NUMBER]),
    data=st.data(),
)
def test_logarithms_and_exponentials_are_null_outside_their_domain(
    place: Place, rows: list[dict[str, Any]], function: str, kind: Kind, data: st.DataObject
) -> None:
    check(place, (function, data.draw(trees(kind, 1))), Kind.NUMBER, rows, roughly=True)


@settings(max_examples=50, deadline=None)
@given(rows=ROWS, data=st.data())
def test_powers_are_null_where_they_are_not_real(place: Place, rows: list[dict[str, Any]], data: st.DataObject) -> None:
    kinds = st.sampled_from([Kind.INTEGER, Kind.NUMBER])
    base, exponent = data.draw(trees(data.draw(kinds), 1)), data.draw(trees(data.draw(kinds), 1))
    rows = [row for row in rows if value(base, as_read(row)) != -math.inf]  # NULL, or infinite as in C: both are meant
    if rows:
        check(place, ("power", base, exponent), Kind.NUMBER, rows, roughly=True)

"""What each database is told, word for word: real servers show elsewhere that it means the same, but they are slow.

``written.json`` holds the texts. After a change that is meant ``python -m tests.engines.test_dialects`` writes it anew,
and then the tests on servers must pass.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlglot import exp, parse_one

from defocus.engines import mariadb, postgresql
from defocus.engines.mariadb import dialect as mariadb_dialect
from defocus.engines.mariadb import types as mariadb_types
from defocus.engines.postgresql import dialect as postgresql_dialect
from defocus.engines.postgresql import types as postgresql_types
from defocus.engines.schema import Kind
from defocus.engines.spark import dialect as spark_dialect
from defocus.engines.spark import types as spark_types
from defocus.errors import DefocusError

WRITTEN = Path(__file__).with_name("written.json")
X, Y, N, M = 'CAST("x" AS DOUBLE)', 'CAST("y" AS DOUBLE)', 'CAST("n" AS BIGINT)', 'CAST("m" AS BIGINT)'
K, T, D = 'CAST("k" AS TEXT)', 'CAST("t" AS TIMESTAMP)', 'CAST("d" AS DATE)'
EXPRESSIONS = (
    *(f"{X} {sign} {Y}" for sign in "+-*/%"), *(f"{N} {sign} {M}" for sign in ("+", "-", "*", "%", "//")),
    f"{X} + 1", f"{X} * 2.5", f"{K} + {N}", f"POWER({X}, {Y})", f"POWER({X}, 2)", f"ROUND({X})", f"ROUND({X}, 2)",
    f"ROUND({X}, -1)", f"FLOOR({X})", f"CEIL({X})", f"TRUNC({X})", f"EXP({X})", f"LN({X})", f"SQRT({X})", f"-{X}",
    f"CAST(FLOOR({X}) AS BIGINT)", f"TRY_CAST({X} AS BIGINT)", f"TRY_CAST({N} AS DOUBLE)", f"TRY_CAST({X} AS TEXT)",
    *(f"TRY_CAST({K} AS {type_})" for type_ in ("BIGINT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP")),
    f"CAST({N} AS TEXT)", f"UPPER({K})", f"LOWER({K})", f"LENGTH({K})", f"SUBSTRING({K}, 2, 3)", f"SHA256({K})",
    f"LEAST({X}, {Y})", f"GREATEST({N}, {M})", f"{K} LIKE 'a%'", f"{K} = 'a'", f"DATE_TRUNC('WEEK', {T})",
    f"DATE_TRUNC('MONTH', {T})", f"DATE_TRUNC('QUARTER', {T})", f"DATE_DIFF('DAY', {D}, {D})",
    f"DATE_DIFF('HOUR', {T}, {T})", f"EXTRACT(YEAR FROM {T})", f"EXTRACT(DOW FROM {T})", f"STRFTIME({T}, '%Y-%m')",
    'ROW_NUMBER() OVER (PARTITION BY "k")', 'ROW_NUMBER() OVER (PARTITION BY "k" ORDER BY "n")', f"SUM({N})",
    f"AVG({X})", f"COUNT(DISTINCT {K})", 'CAST("b" AS BOOLEAN)', f"CASE WHEN {X} > 0.5 THEN {N} ELSE 0 END",
    f"NULLIF({X}, CAST('NaN' AS DOUBLE))", "CAST('Infinity' AS DOUBLE)", f"CAST({D} AS TIMESTAMP)",
)  # fmt: skip
"""What the core asks for, in DuckDB's words."""
ENGINES: dict[str, Callable[[exp.Expression], exp.Expression]] = {
    "postgres": postgresql_dialect.lowered,
    "mysql": lambda tree: mariadb_dialect.lowered(tree, {}),
    "spark": spark_dialect.lowered,
}
TYPES: dict[str, tuple[Any, ...]] = {
    "postgres": (
        *(postgresql_types.Typed(name, "N", None) for name in ("bool", "int4", "int8", "float4", "float8", "money")),
        *(postgresql_types.Typed("numeric", "N", scale) for scale in (0, 2)),
        *(postgresql_types.Typed(name, "S", None) for name in ("text", "varchar")),
        *(postgresql_types.Typed(name, "D", None) for name in ("date", "timestamp", "timestamptz")),
        postgresql_types.Typed("", "E", None),
    ),
    "mysql": tuple(
        mariadb_types.Typed(*type_)
        for type_ in (
            ("tinyint(1)",),
            ("bigint(20)",),
            ("bigint(20) unsigned",),
            ("double",),
            ("decimal(9,0)", 0),
            ("decimal(9,2)", 2),
            ("varchar(9)",),
            ("longtext",),
            ("date",),
            ("datetime(6)",),
            ("blob",),
        )
    ),
}


def written(engine: str) -> dict[str, str]:
    """Everything that an engine writes: expressions, and columns of each type as each kind."""
    found = {}
    for text in EXPRESSIONS:
        tree = parse_one(text, dialect="duckdb")
        assert isinstance(tree, exp.Expression)
        found[text] = _text(lambda tree=tree: ENGINES[engine](tree), engine)  # type: ignore[misc]
    convert: Any = postgresql_types.convert if engine == "postgres" else mariadb_types.convert
    for type_ in TYPES.get(engine, ()):
        for kind in Kind:
            made = _text(lambda type_=type_, kind=kind: convert("c", type_, kind), engine)  # type: ignore[misc]
            found[f"{type_} as {kind.value}"] = made
    return found


def _text(make: Callable[[], exp.Expression], engine: str) -> str:
    try:
        return make().sql(engine, identify=True)
    except DefocusError as refusal:
        return f"refused: {refusal}"


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_writes_what_servers_were_shown_to_mean(engine: str) -> None:
    before, now = json.loads(WRITTEN.read_text("utf-8"))[engine], written(engine)
    assert list(now) == list(before)
    assert {text: said for text, said in now.items() if said != before[text]} == {}


def test_addresses_are_told_apart() -> None:
    assert postgresql.is_address("postgres://a@b/c")
    assert mariadb.is_address("mariadb://a@b/c")
    assert not postgresql.is_address("mysql://a@b/c")
    assert not mariadb.is_address("postgresql://a@b/c")
    assert not postgresql.is_address(7)
    assert spark_types.READERS.keys() == postgresql_types.READERS.keys() == mariadb_types.READERS.keys()


if __name__ == "__main__":
    everything = {engine: written(engine) for engine in ENGINES}
    WRITTEN.write_text(json.dumps(everything, indent=1, ensure_ascii=False) + "\n", "utf-8")

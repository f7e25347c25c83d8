"""Floats in PostgreSQL are those of IEEE 754, as Python has them, at every edge, for columns and for constants."""

import itertools
import math
import struct
import sys
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import psycopg
import pytest
from sqlglot import exp
from tests.tables.expressions import reference

from defocus.engines.postgresql import floats
from defocus.engines.postgresql.dialect import lowered
from defocus.errors import EngineError

pytestmark = pytest.mark.slow
EDGES = [
    0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 0.1, 0.49999999999999994, 1.005, sys.float_info.max, -sys.float_info.max,
    1e308, 5e-324, -5e-324, 2.0**-537, 2.0**-538, 2.0**512, 2.0**1023, 2.0**970, 2.0**-1022, 2.0**-50, 1e-200, 2.0**63,
    -(2.0**63), 2.0**53 + 2, 709.782712893384, -745.1332191019412, math.inf, -math.inf, math.nan,
]  # fmt: skip
A, B = (exp.cast(exp.column(name, quoted=True), "double") for name in ("a", "b"))
Way = Callable[[Any, Any], exp.Expression]


def pairs() -> list[tuple[float, float]]:
    random = Random(7)
    any_float = [struct.unpack("<d", random.randbytes(8))[0] for _ in range(2000)]
    return [*itertools.product(EDGES, EDGES), *itertools.pairwise(any_float)]


def ieee(function: Callable[[Any, Any], Any]) -> Callable[[float, float], float]:
    def apply(a: float, b: float) -> float:
        with np.errstate(all="ignore"):
            return float(function(np.float64(a), np.float64(b)))

    return apply


def quotient(a: float, b: float) -> float | None:
    return None if b == 0 else ieee(lambda x, y: x / y)(a, b)


def remainder(a: float, b: float) -> float | None:
    return None if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0 else math.fmod(a, b)


OPERATIONS: dict[str, tuple[Way, Callable[[float, float], Any]]] = {
    "sum": (floats.add, ieee(lambda a, b: a + b)),
    "difference": (floats.sub, ieee(lambda a, b: a - b)),
    "product": (floats.mul, ieee(lambda a, b: a * b)),
    "quotient": (floats.div, quotient),
    "remainder": (floats.mod, remainder),
    "integer": (lambda a, _: floats.to_integer(a), lambda a, _: reference.whole(a)),
    "rounded": (lambda a, _: floats.rounded(a, 2), lambda a, _: a if math.isnan(a) else reference.rounded(a, 2)),
    "hundreds": (lambda a, _: floats.rounded(a, -2), lambda a, _: a if math.isnan(a) else reference.rounded(a, -2)),
}


@pytest.fixture(scope="module")
def cursor(server: str) -> Iterator[Any]:
    with psycopg.connect(server, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
        yield connection.cursor()


def computed(cursor: Any, tree: exp.Expression, rows: list[tuple[float, float]]) -> list[Any]:
    table = "FROM UNNEST($1::float8[], $2::float8[]) AS t(a, b)"
    text = exp.select(tree).sql("postgres")
    return [value for (value,) in cursor.execute(f"{text} {table}", [[a for a, _ in rows], [b for _, b in rows]])]


def same(found: Any, wanted: Any) -> bool:
    return found == wanted or (found is not None and wanted is not None and math.isnan(found) and math.isnan(wanted))


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_on_columns_never_fails_and_gives_what_python_gives(cursor: Any, name: str) -> None:
    way, expected = OPERATIONS[name]
    rows = pairs()
    found = computed(cursor, way(A, B), rows)
    wrong = [(row, one) for row, one in zip(rows, found, strict=True) if not same(one, expected(*row))]
    assert not wrong[:3]


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_planner_does_not_fail_on_constants_either(cursor: Any, name: str) -> None:
    way, expected = OPERATIONS[name]
    for a, b in pairs()[: len(EDGES) ** 2 : 97]:
        one, other = (exp.cast(exp.Literal.string(repr(value)), "double") for value in (a, b))
        for tree in (way(one, other), way(A, other), way(one, B)):
            (found,) = computed(cursor, tree, [(a, b)])
            assert same(found, expected(a, b)), (a, b)


def test_exponentials_and_powers_end_in_infinity_and_zero(cursor: Any) -> None:
    exponents = [709.78, 709.79, -745.1, -745.2, 1e308, -1e308, math.inf, -math.inf, 3.0, 1023.0, -1074.0]
    found = computed(cursor, floats.exponential(A), [(exponent, 0.0) for exponent in exponents])
    assert found == pytest.approx([reference.exponential(exponent) for exponent in exponents], rel=1e-12)
    rows = list(itertools.product((2.0, -2.0, 0.5, 1e308, 5e-324, math.inf, -math.inf, -1.0), exponents))
    for row, one in zip(rows, computed(cursor, floats.power(A, B), rows), strict=True):
        wanted = reference.power(*row)
        assert one is wanted is None or one == pytest.approx(wanted, rel=1e-12), row


def test_an_operation_on_columns_of_unknown_type_is_refused() -> None:
    x = exp.column("x", quoted=True)
    with pytest.raises(EngineError, match="mixes numbers"):
        lowered(exp.Mul(this=x, expression=x.copy()))


def test_nested_roundings_grow_no_faster_than_they_are_nested() -> None:
    sizes: list[int] = []
    x: exp.Expression = exp.cast(exp.column("x", quoted=True), "double")
    for _ in range(6):
        x = floats.rounded(x, 2)
        sizes.append(len(x.sql("postgres")))
    steps = [after - before for before, after in itertools.pairwise(sizes[1:])]
    assert max(steps) < 1.1 * min(steps)

"""What the tree becomes for Spark, seen without Spark."""

import pytest
from sqlglot import exp

from defocus.engines.spark.dialect import lowered
from defocus.engines.syntax import wide
from defocus.tables import Column, Kind, Schema
from defocus.tables.expressions import expression

SCHEMA = Schema([Column("x", Kind.NUMBER), Column("s", Kind.TEXT), Column("t", Kind.TIMESTAMP)])


def written(tree: exp.Expression) -> str:
    return lowered(tree).sql("spark", identify=True)


def test_the_floor_of_a_product_of_the_core_is_an_integer_at_once() -> None:
    product = exp.Mul(this=exp.cast(exp.column("w"), "double"), expression=exp.column("v"))
    assert written(exp.cast(exp.Floor(this=product), "bigint")) == "FLOOR(CAST(`w` AS DOUBLE) * `v`)"


def test_the_floor_of_a_users_number_never_goes_through_an_integer() -> None:
    assert "FLOOR" not in written(expression("FLOOR(x)", SCHEMA).sql)


@pytest.mark.parametrize(
    "function", ["FLOOR({})", "CEIL({})", "ROUND({})", "ROUND({}, 2)", "ROUND({}, -2)", "LOWER({})"]
)
def test_nested_functions_grow_no_faster_than_they_are_nested(function: str) -> None:
    sizes = []
    for depth in (4, 8, 12):
        text = "s" if "LOWER" in function else "x"
        for _ in range(depth):
            text = function.format(text)
        sizes.append(len(written(expression(text, SCHEMA).sql)))
    assert sizes[2] - sizes[1] <= 1.1 * (sizes[1] - sizes[0])


def test_no_cast_can_fail_that_was_written_to_be_tried() -> None:
    for kind in ("BIGINT", "DOUBLE", "DATE", "TIMESTAMP"):
        text = written(expression(f"CAST(s AS {kind})", SCHEMA).sql)
        assert "TRY_CAST" in text
        assert f" CAST(`s` AS {kind}" not in text


def test_moments_have_no_zone() -> None:
    text = written(expression("DATE_TRUNC('month', t)", SCHEMA).sql)
    assert text.endswith("AS TIMESTAMP_NTZ)")


def test_rows_numbered_in_no_order_are_numbered_in_one_that_says_nothing() -> None:
    window = exp.Window(this=exp.RowNumber(), partition_by=[exp.column("u", quoted=True)])
    assert written(window) == "ROW_NUMBER() OVER (PARTITION BY `u` ORDER BY `u`)"


def test_a_sum_that_may_be_beyond_64_bits_is_one_of_decimals() -> None:
    total = exp.Sum(this=exp.column("n", quoted=True))
    assert written(total) == "SUM(`n`)"
    assert written(wide(total)) == "SUM(CAST(`n` AS DECIMAL(38, 0)))"


def test_a_backslash_is_a_backslash() -> None:
    assert written(exp.Literal.string("\\'\n")) == "'\\\\\\'\\n'"

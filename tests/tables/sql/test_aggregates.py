"""Aggregates are asked once, under names that do not meet, and found again in the answer."""

from fractions import Fraction

from tests.tables.sql.hospital import hospital

from defocus.tables.aggregates import Quantile, quantile
from defocus.tables.sql.aggregates import Asked, free
from defocus.tables.statistics import count, mean


def test_equal_aggregates_have_one_reference_and_the_first_name() -> None:
    asked = Asked()
    first = asked.reference(count(), "n", ["said"])
    assert asked.reference(count(), "m", ["said", "more"]) == first
    assert asked.reference(mean("x", 0, 1), "n", []) != first
    aggregates, held = asked.arranged([])
    assert list(aggregates) == ["n", "n_2"]
    assert held == {"a0": "n", "a1": "n_2"}
    assert list(asked.notes) == ["said", "more"]


def test_quantiles_of_one_column_are_put_together_in_rising_order() -> None:
    asked = Asked()
    for level in (0.9, 0.1, 0.5):
        asked.reference(quantile("x", level, 0, 1), f"p{level}_x", [])
    asked.reference(quantile("y", 0.5, 0, 1), "p50_y", [])
    aggregates, held = asked.arranged(["quantiles_x_10"])
    together = aggregates["quantiles_x_2"]
    assert isinstance(together, Quantile)
    assert together.levels == (Fraction(1, 10), Fraction(1, 2), Fraction(9, 10))
    assert not together.single
    assert held == {"a0": "quantiles_x_2_90", "a1": "quantiles_x_2_10", "a2": "quantiles_x_2_50", "a3": "p50_y"}


def test_each_quantile_is_found_in_the_answer_whatever_the_order() -> None:
    text = (
        "SELECT QUANTILE_CONT(days, 0.9) AS high, MEDIAN(days) AS middle, QUANTILE_CONT(days, 0.1) AS low FROM visits"
    )
    with hospital() as table:
        answer = table.sql(text, epsilon=200)
    assert answer.names == ["high", "middle", "low"]
    high, middle, low = (column.values[0] for column in answer.columns)
    assert low < 3 < middle < 7 < high


def test_a_name_is_free_if_none_of_its_columns_meets_another() -> None:
    assert free("n", []) == "n"
    assert free("n", ["n"]) == "n_2"
    assert free("n", ["n_error", "n_2"]) == "n_3"

"""Errors of what is computed from released numbers are those of the noise that was drawn, and no others."""

import math
from collections.abc import Callable
from dataclasses import replace

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.answers.released import answer, column, exact

from defocus.answers import Released, Tails
from defocus.answers.columns import Floats
from defocus.ledger import Receipt

BLOCKS = 4_000
IN_BLOCK = "(PARTITION BY block ORDER BY place"
LINEAR = {
    "n + s": 1,
    "n - 2 * p + 3": 1,
    "s - 4 * n": 1,
    f"SUM(n) OVER {IN_BLOCK})": 1,
    "SUM(n + p) OVER (PARTITION BY block)": 1,
    f"n - LAG(n) OVER {IN_BLOCK})": 1,
    f"AVG(s) OVER {IN_BLOCK} ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)": 1,
    "n - AVG(n) OVER (PARTITION BY block)": 1,
    f"s - FIRST_VALUE(n) OVER {IN_BLOCK})": 1,
    "CASE WHEN place < 3 THEN n ELSE s - p END": 1,
    "SUM(n) FILTER (WHERE place > 2) OVER (PARTITION BY block) / 2": 1,
    "COALESCE(n, 0) * place + p": 1,
}
SMOOTH = {
    "n / SUM(n) OVER (PARTITION BY block)": "Fieller",
    "s / n": "Fieller",
    f"100 * (n / LAG(n) OVER {IN_BLOCK}) - 1)": "Fieller",
    f"m - LAG(m) OVER {IN_BLOCK})": "delta",
    "AVG(m) OVER (PARTITION BY block)": "delta",
    "n * p": "arithmetic",
    "SQRT(n) + LN(s)": "arithmetic",
    "ROUND(n / p, 2)": "arithmetic",
    "POWER(n, 2) / 100": "arithmetic",
    "GREATEST(n, p, 0)": "arithmetic",
    "CASE WHEN n > 250 THEN n ELSE 0 END": "arithmetic",
    "MAX(n) OVER (PARTITION BY block)": "arithmetic",
    f"LAG(n / p) OVER {IN_BLOCK})": "arithmetic|Fieller",
}
RANKS = [
    "RANK() OVER (PARTITION BY block ORDER BY n DESC)",
    "DENSE_RANK() OVER (PARTITION BY block ORDER BY m)",
    "ROW_NUMBER() OVER (PARTITION BY block ORDER BY s)",
    "NTILE(2) OVER (PARTITION BY block ORDER BY p DESC)",
    "PERCENT_RANK() OVER (PARTITION BY block ORDER BY n)",
    "CUME_DIST() OVER (PARTITION BY block ORDER BY n / p)",
]


def truth(formula: str, true: dict[str, Floats]) -> Floats:
    """The formula of the true numbers, as plain DuckDB computes it."""
    size = len(true["n"])
    keys = {"i": np.arange(size), "block": np.arange(size) // 5, "place": np.arange(size) % 5}
    table = pa.table(keys | true | {"m": true["s"] / true["n"]})
    database = duckdb.connect(":memory:")
    database.register("t", table)
    found = database.sql(f"SELECT ({formula})::DOUBLE AS x FROM t ORDER BY i").to_arrow_table()  # noqa: S608
    return np.array(found.column("x").to_numpy(), float)


def derived(receipt: Receipt, formula: str, law: str = "normal", blocks: int = BLOCKS) -> tuple[Released, Floats]:
    true = exact(blocks, 1)
    return answer(receipt, true, 2, law).derive(y=formula), truth(formula, true)


def spread(receipt: Receipt, formula: str, law: str) -> float:
    """The variance of errors, in units of the variance that was told."""
    made, true = derived(receipt, formula, law)
    scaled = (made["y"].values - true) / made["y"].errors
    return float(np.mean(np.square(scaled[np.isfinite(scaled)])))


@pytest.mark.parametrize("law", ["normal", "laplace"])
@pytest.mark.parametrize("formula", LINEAR)
def test_the_variance_of_a_linear_formula_is_exact_and_no_other(receipt: Receipt, formula: str, law: str) -> None:
    told = spread(receipt, formula, law)
    assert 0.94 < told < 1.06
    assert not 0.94 < 1.1**2 * told < 1.06
    assert not 0.94 < told / 1.1**2 < 1.06


@pytest.mark.parametrize("formula", [each for each in SMOOTH if not each.startswith(("MAX", "ROUND", "CASE"))])
def test_the_delta_method_is_right_where_noise_is_small(receipt: Receipt, formula: str) -> None:
    assert 0.9 < spread(receipt, formula, "normal") < 1.1


@pytest.mark.parametrize("law", ["normal", "laplace"])
@pytest.mark.parametrize("formula", [*LINEAR, *SMOOTH, *RANKS])
def test_intervals_hold_what_they_say(receipt: Receipt, formula: str, law: str) -> None:
    made, true = derived(receipt, formula, law, blocks=1_000)
    y = made["y"]
    known = np.isfinite(true)
    slack = 1e-9 * (1 + np.abs(true))
    held = (y.low - slack <= true) & (true <= y.high + slack)
    assert np.isfinite(y.low[known]).mean() > 0.99
    assert held[known].mean() >= 0.94
    if formula in LINEAR:
        assert held[known].mean() <= 0.965


@pytest.mark.parametrize("formula", LINEAR)
def test_linear_formulas_say_that_their_error_is_exact(receipt: Receipt, formula: str) -> None:
    made, _ = derived(receipt, formula, blocks=2)
    assert "exact error" in made["y"].how
    assert made["y"].tails is Tails.LOG_CONCAVE


@pytest.mark.parametrize("formula", SMOOTH)
def test_other_formulas_say_by_which_rule_their_errors_follow(receipt: Receipt, formula: str) -> None:
    made, _ = derived(receipt, formula, blocks=2)
    assert any(word in made["y"].how for word in SMOOTH[formula].split("|"))
    assert made["y"].tails is Tails.UNKNOWN


def test_columns_of_one_measurement_are_not_taken_for_independent(receipt: Receipt) -> None:
    """A count has 1 of each of three noises and a sum 10 of the second: their covariance is 10."""
    made, _ = derived(receipt, "n - s", blocks=1)
    apart, _ = derived(receipt, "n - p", blocks=1)
    assert np.allclose(made["y"].errors, 4 * math.sqrt(1 + 81 + 1))
    assert np.allclose(apart["y"].errors, 4 * math.sqrt(3 + 1))


def test_a_formula_may_use_the_one_before_it(receipt: Receipt) -> None:
    made = answer(receipt, exact(3, 1), 2).derive(
        total="SUM(n) OVER (PARTITION BY block)", rest="total - n", all="rest + n", share="n / total"
    )
    assert np.allclose(made["rest"].errors, 4 * math.sqrt(3 * 4))
    assert np.allclose(made["all"].errors, made["total"].errors)
    assert np.allclose(made["share"].errors, made.derive(y="n / SUM(n) OVER (PARTITION BY block)")["y"].errors)


def test_errors_follow_the_entries_that_are_left(receipt: Receipt) -> None:
    whole = answer(receipt, exact(2, 1), 2).derive(total="SUM(n) OVER ()")
    some = whole.take(np.array([7, 1, 3]), "some").derive(rest="total - n", sum="SUM(n) OVER ()")
    assert np.allclose(some["rest"].errors, 4 * math.sqrt(3 * 9))
    assert np.allclose(some["sum"].errors, 4 * math.sqrt(3 * 3))


def test_shares_add_up_to_one_without_noise(receipt: Receipt) -> None:
    made = answer(receipt, exact(2, 1), 2).derive(share="n / SUM(n) OVER ()", one="SUM(share) OVER ()")
    assert np.allclose(made["one"].values, 1)
    assert np.allclose(made["one"].errors, 0, atol=1e-9)


def test_shares_of_many_groups_take_little_memory(receipt: Receipt) -> None:
    made = answer(receipt, exact(20_000, 1), 2).derive(share="n / SUM(n) OVER ()")
    matrix = made["share"].noise.matrix  # type: ignore[union-attr]  # a mixture
    assert matrix.size < 2_000_000
    assert np.isfinite(made["share"].errors).all()


def test_an_order_that_noise_decides_is_named(receipt: Receipt) -> None:
    made = answer(receipt, exact(2, 1), 2).derive(
        run="SUM(n) OVER (ORDER BY n DESC)", fixed="SUM(n) OVER (ORDER BY place)"
    )
    assert "fewer than 95 %" in made["run"].how
    assert any("run: as noisy numbers decide the order" in said for said in made.processing)
    assert "fewer than 95 %" not in made["fixed"].how


def test_where_no_interval_follows_that_is_said_below_the_numbers(receipt: Receipt) -> None:
    made = answer(receipt, exact(2, 1), 2).derive(y="n % 7", z="MEDIAN(n) OVER ()")
    assert np.isnan(made["y"].low).all()
    assert np.isnan(made["z"].errors).all()
    assert made.processing[0].startswith("y has no interval: computed from n")
    assert "z has no interval" in str(made)


def test_a_share_of_what_may_be_nothing_has_no_interval(receipt: Receipt) -> None:
    true = {name: np.zeros(5) for name in ("n", "s", "p")}
    made = answer(receipt, true | {"s": np.ones(5)}, 2).derive(y="s / n")
    few = np.abs(made["n"].values) < 1.96 * made["n"].errors
    assert few.any()
    assert np.isnan(made["y"].low[few]).all()
    assert np.isnan(made["y"].errors[few]).all()


def test_ranks_of_numbers_far_apart_are_certain_and_of_close_ones_are_not(receipt: Receipt) -> None:
    true = {"n": np.array([0.0, 1.0, 1000.0, 2000.0, 2001.0]), "s": np.ones(5), "p": np.ones(5)}
    y = answer(receipt, true, 2).derive(y="RANK() OVER (ORDER BY n)")["y"]
    assert (y.low.tolist(), y.high.tolist()) == ([1, 1, 3, 4, 4], [2, 2, 3, 5, 5])
    assert y.integral
    dense = answer(receipt, true, 2).derive(y="DENSE_RANK() OVER (ORDER BY n)")["y"]
    assert (dense.low.tolist(), dense.high.tolist()) == ([1, 1, 2, 3, 3], [2, 2, 3, 5, 5])


def test_ranks_by_keys_are_exact(receipt: Receipt) -> None:
    y = answer(receipt, exact(1, 1), 2).derive(y="RANK() OVER (ORDER BY place)")["y"]
    assert (y.errors.tolist(), y.low.tolist()) == ([0] * 5, [1, 2, 3, 4, 5])
    assert y.how == "without noise"


def test_a_constant_that_noise_decided_for_has_no_standard_error(receipt: Receipt) -> None:
    made, _ = derived(receipt, "CASE WHEN n > 250 THEN n ELSE 0 END", blocks=20)
    y = made["y"]
    assert np.isnan(y.errors[y.values == 0]).all()
    assert np.isfinite(y.errors[y.values != 0]).all()
    assert (y.low == 0).all()
    assert (y.high >= made["n"].high - 1e-9).all()


# Columns that do not know their noise.

FUNCTIONS: dict[str, Callable[[float, float], float]] = {
    "x + y": lambda x, y: x + y,
    "x - 2 * y": lambda x, y: x - 2 * y,
    "x * y": lambda x, y: x * y,
    "x / y": lambda x, y: x / y,
    "ROUND(x / NULLIF(y, 0), 1)": lambda x, y: round(x / y, 1),
    "(x - y) / (x + 100)": lambda x, y: (x - y) / (x + 100),
    "ABS(x) + SQRT(y)": lambda x, y: abs(x) + math.sqrt(y),
    "EXP(x / 100) - LN(y + 1)": lambda x, y: math.exp(x / 100) - math.log(y + 1),
}


@pytest.mark.parametrize("formula", FUNCTIONS)
@settings(max_examples=5)
@given(
    x=st.floats(-50, 50),
    y=st.floats(0.5, 50),
    half=st.tuples(st.floats(0.01, 5), st.floats(0.01, 0.4), st.floats(-1, 1), st.floats(-1, 1)),
)
def test_an_interval_holds_the_formula_of_everything_in_the_columns(
    receipt: Receipt, formula: str, x: float, y: float, half: tuple[float, ...]
) -> None:
    halves, at = half[:2], half[2:]
    columns = column("x", np.array([x]), None, halves[0]), column("y", np.array([y]), None, halves[1])
    made = Released({}, columns, "q", receipt).derive(z=formula)["z"]
    true = FUNCTIONS[formula](x + at[0] * halves[0], y + at[1] * halves[1])
    if not math.isnan(made.low[0]):
        assert made.low[0] - 1e-9 <= true <= made.high[0] + 1e-9
        assert made.low[0] <= made.values[0] <= made.high[0]


def test_columns_without_known_noise_are_widened_so_that_both_hold(receipt: Receipt) -> None:
    columns = column("x", np.array([10.0]), None, 3), column("y", np.array([5.0]), None, 3)
    made = Released({}, columns, "q", receipt).derive(z="x + y")["z"]
    half = (made.high[0] - made.low[0]) / 2
    assert np.isclose(half, 6 * (1 + math.log(2) / math.log(20)))
    rate = math.log(20) / 3  # of Laplace noise whose 95 % interval has the half-width 3
    assert np.isclose(2 * math.exp(-rate * half / 2), 0.05)
    assert made.noise is None


@given(value=st.floats(-1e3, 1e3), factor=st.sampled_from([2.0, -3.0, 0.5]))
@settings(max_examples=8)
def test_a_multiple_has_the_error_and_the_ends_scaled(receipt: Receipt, value: float, factor: float) -> None:
    one = replace(column("x", np.array([value]), None, 2.0), high=np.array([value + 7]))
    made = Released({}, (one,), "q", receipt).derive(y=f"{factor} * x + 1")["y"]
    assert made.errors[0] == abs(factor)
    assert np.isclose(made.high[0] - made.low[0], abs(factor) * 9)
    assert made.how == "computed from x: noise"
    assert made.tails is Tails.LOG_CONCAVE

"""Tests claim falsely no more often than they say, notice what they should, and name noise and sampling apart."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from scipy import stats

import defocus as dp
from defocus.noise.testing import seeded
from defocus.tables.hypothesis_tests import ChiSquared, RankTest, means_tested
from defocus.tables.power import Law
from defocus.tables.splits import Argument, Split
from defocus.tables.table import Table

RUNS = 600
VALUE = Split((Argument("x", 0, 1, missing=0),), (2,))
Floats = npt.NDArray[np.float64]


def most(level: float, runs: int = RUNS) -> float:
    """What the rate of false claims stays below with a probability of 99.9 % if it is ``level`` at most."""
    return float(stats.binom.ppf(0.999, runs, level)) / runs


def claims(p_values: Any) -> float:
    return float((np.asarray(p_values) <= 0.05).mean())


# --- Means ----------------------------------------------------------------------------------------------------------


def cells(x: Floats) -> Floats:
    return np.array([((1 - x) ** 2).sum(), (2 * x * (1 - x)).sum(), (x * x).sum()])


def outcome(groups: list[Floats], scale: float, rng: np.random.Generator, null: float | None, gaussian: bool) -> Any:
    draw = rng.normal if gaussian else rng.laplace
    noisy = np.stack([cells(x) + draw(0, scale, 3) for x in groups])
    n, x, xx = (noisy @ VALUE.moment((power,)) for power in (0, 1, 2))

    def law(coefficients: Floats) -> Law:
        felt = np.abs(coefficients) * scale
        return Law(float(np.linalg.norm(felt))) if gaussian else Law(0.0, tuple(felt[felt > 0].tolist()))

    return means_tested((n, x, xx), VALUE, law, null)


def beta(rng: np.random.Generator, n: int) -> Floats:
    return rng.beta(2, 5, n)


def rare(rng: np.random.Generator, n: int) -> Floats:
    return (rng.random(n) < 0.1).astype(float)


def even(rng: np.random.Generator, n: int) -> Floats:
    return (rng.random(n) < 0.5).astype(float)


FEWER = 200
"""Runs of the tests of means, whose laws take longer."""


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("first", "second", "scale", "draw", "gaussian"),
    [
        (10, 10, 0.1, even, False),
        (30, 30, 1, beta, False),
        (25, 200, 1, rare, False),
        (1500, 300, 10, even, False),
        (500, 500, 1, rare, True),
        (30, 60, 1, even, True),
    ],
)
def test_two_equal_means_are_called_different_no_more_often_than_the_level(
    first: int, second: int, scale: float, draw: Any, gaussian: bool
) -> None:
    rng = np.random.default_rng(1)
    found = [outcome([draw(rng, first), draw(rng, second)], scale, rng, None, gaussian) for _ in range(FEWER)]
    assert claims([each.p_value for each in found]) <= most(0.05, FEWER)
    held = [abs(each.difference) <= each.interval for each in found if not math.isnan(each.difference)]
    assert not held or np.mean(held) >= 1 - most(0.05, len(held))


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("n", "scale", "draw", "mean"),
    [(10, 0.1, even, 0.5), (30, 1, beta, 2 / 7), (500, 10, rare, 0.1), (500, 1, even, 0.5)],
)
def test_a_mean_is_called_another_value_no_more_often_than_the_level(
    n: int, scale: float, draw: Any, mean: float
) -> None:
    rng = np.random.default_rng(2)
    found = [outcome([draw(rng, n)], scale, rng, mean, gaussian=False) for _ in range(FEWER)]
    assert claims([each.p_value for each in found]) <= most(0.05, FEWER)


@pytest.mark.statistical
def test_large_groups_claim_as_often_as_a_t_test_does() -> None:
    """Not only below the level: a test that never claims would be as valid, and no use."""
    rng = np.random.default_rng(3)
    null = [outcome([even(rng, 2000), even(rng, 2000)], 1, rng, None, gaussian=True).p_value for _ in range(RUNS)]
    assert claims(null) >= 0.03
    both = [(even(rng, 500), even(rng, 500) * 0.8) for _ in range(FEWER)]
    private = claims([outcome([x, y], 1, rng, None, gaussian=False).p_value for x, y in both])
    plain = claims([stats.ttest_ind(x, y, equal_var=False).pvalue for x, y in both])
    assert plain - 0.1 < private <= plain + 0.02


def test_a_group_that_noise_could_hide_says_nothing() -> None:
    found = outcome([np.zeros(3), np.ones(500)], 10, np.random.default_rng(4), None, gaussian=False)
    assert found.p_value == 1
    assert math.isinf(found.interval)


# --- Counts ---------------------------------------------------------------------------------------------------------


def counted(rng: np.random.Generator, world: Floats, n: int, scale: float) -> Floats:
    rows = rng.multinomial(n, world.ravel()).reshape(world.shape)
    return np.asarray(rows + rng.laplace(0, scale, world.shape))


def noise(scale: float) -> Any:
    return lambda rng, shape: rng.laplace(0.0, scale, shape)


SKEW = [0.9, 0.025, 0.025, 0.025, 0.025]


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("rows", "columns", "n", "scale"),
    [
        ([0.5, 0.5], [0.8, 0.2], 60, 2),
        ([0.9, 0.1], [0.9, 0.1], 200, 5),
        ([0.8, 0.15, 0.05], [0.7, 0.2, 0.05, 0.05], 1000, 10),
        ([0.5, 0.5], [1 / 6] * 6, 400, 2),
        (SKEW, SKEW, 3000, 10),
        ([0.5, 0.5], [0.9, 0.1], 30, 0.1),
        ([0.5, 0.5], [0.5, 0.5], 20, 5),
    ],
    ids=str,
)
def test_independent_columns_are_called_dependent_no_more_often_than_the_level(
    rows: list[float], columns: list[float], n: int, scale: float
) -> None:
    world = np.outer(rows, columns)
    test, rng = ChiSquared(("a", "b"), (len(rows), len(columns)), None, 0.05), np.random.default_rng(5)
    found = [
        test.tested(counted(rng, world, n, scale), None, noise(scale), 2 * scale**2, runs=199)[0] for _ in range(RUNS)
    ]
    assert claims(found) <= most(0.05)


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "scale"), [(30, 0.1), (100, 3), (1000, 10)])
def test_right_shares_are_called_wrong_no_more_often_than_the_level(n: int, scale: float) -> None:
    shares = np.array([[0.7], [0.2], [0.05], [0.05]])
    test = ChiSquared(("a",), (4, 1), tuple(zip("abcd", shares[:, 0].tolist(), strict=True)), 0.05)
    rng = np.random.default_rng(6)
    found = [
        test.tested(counted(rng, shares, n, scale), shares, noise(scale), 2 * scale**2, runs=199)[0]
        for _ in range(RUNS)
    ]
    assert claims(found) <= most(0.05)


@pytest.mark.statistical
def test_dependence_is_noticed_nearly_as_often_as_in_the_bare_counts() -> None:
    world = np.array([[0.3, 0.2], [0.2, 0.3]])
    test, rng = ChiSquared(("a", "b"), (2, 2), None, 0.05), np.random.default_rng(7)
    bare = [rng.multinomial(250, world.ravel()).reshape(2, 2) for _ in range(RUNS)]
    plain = claims([stats.chi2_contingency(each, correction=False).pvalue for each in bare])
    private = claims([test.tested(each + rng.laplace(0, 1, (2, 2)), None, noise(1), 2.0, runs=199)[0] for each in bare])
    assert plain - 0.1 < private <= plain + 0.02


# --- Ranks ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("steps", "first", "second", "scale", "spread"),
    [(16, 30, 30, 0.1, 1), (16, 150, 150, 1, 1), (16, 500, 500, 5, 0.1), (32, 500, 100, 1, 0.05), (8, 300, 100, 5, 1)],
)
def test_equal_laws_are_called_different_no_more_often_than_the_level(
    steps: int, first: int, second: int, scale: float, spread: float
) -> None:
    test, rng = RankTest("x", ("A", "B"), "g", 0.05), np.random.default_rng(8)
    found = []
    for _ in range(RUNS):
        world = rng.dirichlet(np.full(steps, spread))
        both = np.stack([counted(rng, world, n, scale) for n in (first, second)])
        found.append(test.tested(both, noise(scale), 2 * scale**2, runs=199)[0])
    assert claims(found) <= most(0.05)


# --- Whole releases -------------------------------------------------------------------------------------------------

PEOPLE = 3000
RNG = np.random.default_rng(9)
WARD = RNG.choice(["A", "B"], PEOPLE)
STAY = np.minimum(RNG.gamma(2, 3, PEOPLE) + 0.8 * (WARD == "A"), 29.9)
CODE = np.array([RNG.choice(["x", "y", "z"], p=[0.2, 0.5, 0.3] if ward == "A" else [0.3, 0.5, 0.2]) for ward in WARD])
DATA = pa.table({"u": range(PEOPLE), "ward": WARD, "stay": STAY, "code": CODE})


def opened(where: Path, **more: Any) -> Table:
    ledger = where / f"{len(list(where.iterdir()))}.ledger"
    table = dp.open(DATA, unit=dp.user("u"), budget=dp.Budget(10**6, 1e-3), ledger=ledger, name="t", **more)
    return table.declare(ward=["A", "B"], code=["x", "y", "z"], stay=(0, 30))


@pytest.mark.slow
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_with_much_budget_the_numbers_are_those_of_the_bare_data(tmp_path: Path, delta: float | None) -> None:
    one, two = STAY[WARD == "A"], STAY[WARD == "B"]
    price: dict[str, Any] = {"epsilon": 1000, "delta": delta, "bits": seeded(1)}
    with opened(tmp_path) as table:
        welch = table.ttest("stay", by="ward").release(**price)
        plain: Any = stats.ttest_ind(one, two, equal_var=False)
        assert welch["difference"].values[0] == pytest.approx(one.mean() - two.mean(), abs=1e-3)
        assert welch["statistic"].values[0] == pytest.approx(plain.statistic, rel=0.02)
        assert welch["p_value"].values[0] == pytest.approx(plain.pvalue + 0.001, abs=5e-4)
        assert welch["sampling"].values[0] == pytest.approx(
            math.sqrt(one.var() / len(one) + two.var() / len(two)), rel=0.01
        )
        assert welch["noise"].values[0] < 0.001
        ends: Any = plain.confidence_interval()
        assert (welch["difference"].low[0], welch["difference"].high[0]) == pytest.approx(
            (ends.low, ends.high), rel=0.05
        )
        single = table.ttest("stay", mean=6.5).release(**price)
        assert single["p_value"].values[0] == pytest.approx(stats.ttest_1samp(STAY, 6.5).pvalue + 0.001, abs=2e-3)
        chi = table.chi2("ward", "code").release(**price)
        bare = np.array([[np.sum((w == WARD) & (c == CODE)) for c in "xyz"] for w in "AB"])
        right: Any = stats.chi2_contingency(bare, correction=False)
        assert chi["statistic"].values[0] == pytest.approx(right.statistic, rel=0.01)
        assert chi["cramers_v"].values[0] == pytest.approx(math.sqrt(right.statistic / PEOPLE), abs=0.02)
        assert chi["cramers_v"].low[0] < chi["cramers_v"].values[0] < chi["cramers_v"].high[0]
        fit = table.chi2("code", expected={"x": 1, "y": 2, "z": 1}).release(**price)
        counts = bare.sum(0)
        known: Any = stats.chisquare(counts, PEOPLE * np.array([0.25, 0.5, 0.25]))
        assert fit["statistic"].values[0] == pytest.approx(known.statistic, rel=0.05, abs=0.02)
        assert fit["p_value"].values[0] == pytest.approx(known.pvalue, abs=0.03)
        rank = table.rank_test("stay", by="ward", steps=200).release(**price)
        whitney: Any = stats.mannwhitneyu(one, two)
        assert rank["superiority"].values[0] == pytest.approx(whitney.statistic / len(one) / len(two), abs=0.005)
        assert rank["p_value"].values[0] <= 0.01


def test_a_test_is_one_charge_a_verdict_and_the_same_whenever_it_is_recalled(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        for number, query in enumerate(
            (
                table.ttest("stay", by="ward", keys=["B", "A"]),
                table.chi2("ward", "code"),
                table.rank_test("stay", by="ward"),
            )
        ):
            before = len(table.ledger.history())
            answer = query.release(epsilon=1, bits=seeded(number), request=f"test {number}")
            charges = [each for each in table.ledger.history()[before:] if each["kind"] == "charge"]
            assert len(charges) == 1
            assert "is at most the level 0.05" in answer.explain()
            again = query.release(epsilon=1, request=f"test {number}")
            assert str(again) == str(answer)
            assert again.to_json() == answer.to_json()
            assert answer.plot() is not None
            assert "the same noise" in answer.explain() or "law of the noise" in answer.explain()
        difference = table.ttest("stay", by="ward", keys=["B", "A"]).release(epsilon=10, bits=seeded(0))["difference"]
        assert difference.values[0] < 0  # B less A
        weak = table.where("code = 'q'").ttest("stay", by="ward").release(epsilon=1, bits=seeded(1))
        assert "nothing is shown: p = 1" in weak.explain()


def test_a_filter_and_a_derived_column_are_part_of_the_question(tmp_path: Path) -> None:
    with opened(tmp_path) as table:
        half = table.where("stay < 10").derive(long="CAST(stay > 5 AS INTEGER)")
        answer = half.ttest("long", 0, 1, by="ward").release(epsilon=1000, bits=seeded(2))
        few = STAY < 10
        truth = (STAY[few & (WARD == "A")] > 5).mean() - (STAY[few & (WARD == "B")] > 5).mean()
        assert answer["difference"].values[0] == pytest.approx(truth, abs=0.002)


@pytest.mark.statistical
def test_previews_tell_the_power_and_releases_have_it(tmp_path: Path) -> None:
    """The effect that a preview says is noticed with 80 % power, in groups of the size it says."""
    with opened(tmp_path) as table:
        said = table.ttest("stay", by="ward").preview(epsilon=1).foretold
        assert len(said) == 4
        shift = float(said[1].split("difference of ")[1].split(" ")[0]) / 30
        rng = np.random.default_rng(10)

        def draw(mean: float) -> Floats:
            return (rng.random(1000) < mean).astype(float)

        found = [outcome([draw(0.5 + shift), draw(0.5)], 1, rng, None, gaussian=False).p_value for _ in range(FEWER)]
        assert claims(found) == pytest.approx(0.8, abs=0.09)
        for query in (table.chi2("ward", "code"), table.chi2("code"), table.rank_test("stay", by="ward")):
            assert all("with a power of 80 %" in each for each in query.preview(epsilon=1).foretold)

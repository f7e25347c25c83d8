import json
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError
from defocus.mechanisms import Gaussian, Laplace
from defocus.noise import Bits
from defocus.noise.testing import seeded
from defocus.privacy.budgets import Budget
from defocus.tables.sizing import Power, power

GRID = 2**10
RUNS = 20_000


def private(totals: NDArray[np.float64], plan: Power, bits: Bits) -> tuple[Any, Any]:
    """Means on [0, 1] and counts, released by the real mechanism: two integer sums under one sensitivity."""
    hi = np.floor(totals * GRID).astype(np.int64)
    both = np.concatenate([hi, plan.n * GRID - hi])
    if plan.mechanism == "Laplace":
        noisy = Laplace.calibrated(epsilon=plan.epsilon, sensitivity=GRID).sample(both, bits)
    else:
        sigma = Gaussian.calibrated(Budget(plan.epsilon, plan.plan.delta), sensitivity=GRID, dimension=2).sigma
        noisy = Gaussian(sigma=sigma, sensitivity=GRID, dimension=len(both)).sample(both, bits)
    up, down = np.split(noisy / GRID, 2)
    return up / (up + down), up + down


def rate(plan: Power, means: tuple[float, ...], draw: Any, seed: int) -> float:
    """How often the rule of the plan claims a difference where the groups have these means, on [0, 1]."""
    bits, rng = seeded(seed), np.random.default_rng(seed)
    found = [private(draw(rng, plan.n, mean), plan, bits) for mean in means]
    released = [
        [(plan.plan.low + width(plan) * mean, count) for mean, count in zip(*each, strict=True)] for each in found
    ]
    return float(np.mean([plan.claims(*each) for each in zip(*released, strict=True)]))


def width(plan: Power) -> float:
    return plan.plan.high - plan.plan.low


def binomial(rng: np.random.Generator, n: int, mean: float) -> NDArray[np.float64]:
    return rng.binomial(n, mean, RUNS).astype(float)


def beta(rng: np.random.Generator, n: int, mean: float) -> NDArray[np.float64]:
    """Sums of n values with a standard deviation of 0.2: bell-shaped, by the central limit theorem."""
    k = mean * (1 - mean) / 0.04 - 1
    return np.array([rng.beta(mean * k, (1 - mean) * k, n).sum() for _ in range(RUNS)])


def near(seen: float, predicted: float) -> bool:
    return abs(seen - predicted) < 4 * math.sqrt(predicted * (1 - predicted) / RUNS) + 0.003


@pytest.mark.statistical
@pytest.mark.parametrize(
    "asked",
    [
        {"proportion": 0.3, "effect": 0.05, "epsilon": 0.1},
        {"proportion": 0.5, "effect": -0.1, "epsilon": 0.02},
        {"proportion": 0.1, "effect": 0.05, "epsilon": 1},
        {"proportion": 0.5, "effect": 0.3, "epsilon": 0.03},
        {"proportion": 0.02, "effect": 0.3, "epsilon": 0.03},
        {"proportion": 0.3, "effect": 0.1, "epsilon": 0.02, "delta": 0.01},
        {"proportion": 0.3, "effect": 0.05, "epsilon": 0.1, "groups": 2},
        {"proportion": 0.5, "effect": 0.1, "epsilon": 0.03, "groups": 2},
    ],
    ids=str,
)
def test_the_real_mechanism_errs_as_rarely_and_notices_as_often_as_predicted(asked: dict[str, Any]) -> None:
    plan = power(power=0.8, **asked)
    null, shift = plan.plan.null, plan.effect
    without: tuple[float, ...]
    within: tuple[float, ...]
    if plan.plan.groups == 1:
        without, within = (null,), (null + shift,)
    else:
        without, within = (null + shift / 2,) * 2, (null, null + shift)
    assert near(rate(plan, without, binomial, 5), 0.05)
    assert near(rate(plan, within, binomial, 6), plan.power)
    assert not near(rate(plan, within, binomial, 6), 1.1 * plan.power)


@pytest.mark.statistical
def test_means_of_other_values_behave_as_predicted_too() -> None:
    plan = power(mean=9, low=0, high=30, std=6, effect=1, epsilon=0.3, power=0.8)
    assert near(rate(plan, (0.3,), beta, 7), 0.05)
    assert near(rate(plan, (0.3 + 1 / 30,), beta, 8), plan.power)


@pytest.mark.statistical
def test_a_plain_z_test_claims_too_much_where_noise_prevails() -> None:
    """Why the critical value is that of the sum of normal and Laplace errors, at a mean near an end."""
    plan = power(proportion=0.02, effect=0.2, epsilon=0.02, n=4000)
    plain = 1.959964 * math.hypot(plan.noise, plan.sampling)
    assert plan.critical > 1.02 * plain
    means, counts = private(binomial(np.random.default_rng(1), plan.n, 0.02), plan, seeded(1))
    assert np.mean(np.abs(means - 0.02) * counts > plain * plan.n) > 0.058
    assert near(rate(plan, (0.02,), binomial, 1), 0.05)


def test_a_decision_needs_every_group_and_people_in_it() -> None:
    plan = power(proportion=0.3, effect=0.05, epsilon=0.1, power=0.8, groups=2)
    assert plan.claims((0.3, plan.n), (0.34, plan.n))
    assert plan.claims((0.34, plan.n), (0.3, plan.n))
    assert not plan.claims((0.3, plan.n), (0.33, plan.n))
    assert not plan.claims((0.1, plan.n), (0.9, -3.0))
    assert not plan.claims((0.1, plan.n), (0.9, math.nan))
    assert not plan.claims((0.1, 5.0), (0.9, -5.0))
    with pytest.raises(InvalidParameterError, match="each group"):
        plan.claims((0.3, plan.n))


def test_the_published_sample_size_without_noise() -> None:
    """0.3 against 0.35, 80 %, two-sided 5 %: 1377 in each group (Fleiss, Levin, Paik 2003, uncorrected formula)."""
    p, q, middle = 0.3, 0.35, 0.325
    z = 1.959964 * math.sqrt(2 * middle * (1 - middle)) + 0.841621 * math.sqrt(p * (1 - p) + q * (1 - q))
    assert math.ceil(z**2 / 0.05**2) == 1377
    assert power(proportion=p, effect=0.05, epsilon=0.1, power=0.8, groups=2).n_without_noise == 1377
    assert power(proportion=p, effect=0.05, epsilon=50, power=0.8, groups=2).n == 1377


@settings(max_examples=15)
@given(
    null=st.floats(0.05, 0.6),
    shift=st.floats(0.02, 0.3),
    epsilon=st.floats(0.02, 2),
    wanted=st.floats(0.3, 0.95),
    groups=st.sampled_from([1, 2]),
)
def test_each_number_is_found_from_the_others(
    null: float, shift: float, epsilon: float, wanted: float, groups: int
) -> None:
    plan = power(proportion=null, effect=shift, epsilon=epsilon, power=wanted, groups=groups)
    assert plan.power >= wanted
    assert plan.n * epsilon >= 10 * (1 - 1e-9)
    if plan.n > max(10, math.ceil(10 / epsilon)):
        assert plan.at(plan.n - 1) < wanted
    same: dict[str, Any] = {"proportion": null, "groups": groups, "n": plan.n}
    assert power(effect=shift, epsilon=epsilon, **same).power == plan.power
    assert power(effect=shift, power=wanted, **same).epsilon <= epsilon * (1 + 1e-5)
    assert power(epsilon=epsilon, power=wanted, **same).effect <= shift * (1 + 1e-5)


def test_an_effect_too_small_to_see_is_claimed_as_often_as_none() -> None:
    """Both sides count: half of the claims have the wrong sign."""
    assert power(proportion=0.3, effect=1e-9, epsilon=0.1, n=500).power == pytest.approx(0.05, abs=1e-5)


def test_more_epsilon_more_people_and_larger_effects_are_noticed_more_often() -> None:
    def chance(**more: Any) -> float:
        return power(**({"proportion": 0.3, "effect": 0.05, "n": 500, "epsilon": 0.1} | more)).power

    base = chance()
    assert chance(epsilon=0.2) > base
    assert chance(n=600) > base
    assert chance(effect=0.06) > base
    assert chance(alpha=0.1) > base
    assert chance(groups=2) < base


def test_scale_and_place_of_the_values_do_not_matter() -> None:
    one = power(mean=0.3, low=0, high=1, effect=0.05, epsilon=0.1, power=0.8)
    other = power(mean=-70, low=-100, high=0, effect=5, epsilon=0.1, power=0.8)
    assert other.n == one.n == power(proportion=0.3, effect=0.05, epsilon=0.1, power=0.8).n
    assert other.critical == pytest.approx(100 * one.critical)


def test_known_spread_needs_fewer_people_than_the_worst() -> None:
    worst = power(mean=5, low=0, high=30, effect=1, epsilon=0.5, power=0.8)
    known = power(mean=5, low=0, high=30, std=4, effect=1, epsilon=0.5, power=0.8)
    assert known.n < worst.n
    assert "largest variance" in str(worst)
    assert "largest variance" not in str(known)


def test_a_delta_brings_gaussian_noise_only_where_it_is_less() -> None:
    assert power(proportion=0.3, effect=0.05, epsilon=0.1, n=2000, delta=1e-6).mechanism == "Laplace"
    with_delta = power(proportion=0.3, effect=0.05, epsilon=0.01, n=2000, delta=0.01)
    assert with_delta.mechanism == "Gaussian"
    assert "delta 0.01" in str(with_delta)
    assert with_delta.power > power(proportion=0.3, effect=0.05, epsilon=0.01, n=2000).power


def test_the_plan_can_be_read_drawn_and_stored() -> None:
    plan = power(proportion=0.3, effect=0.05, epsilon=0.1, power=0.8, groups=2)
    for words in ("1 773 in each of two groups", "epsilon 0.1", "80 %", "5 %", "0.03505", "1.29 times as many"):
        assert words in str(plan), words
    assert "<table>" in plan._repr_html_()
    assert json.loads(json.dumps(plan.to_dict()))["found"] == "n"
    figure = plan.plot()
    private_line, bare_line = figure.axes[0].lines[:2]
    assert all(a <= b + 1e-9 for a, b in zip(private_line.get_ydata(), bare_line.get_ydata(), strict=True))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"effect": None}, "2 were left out: effect, n"),
        ({"n": 1000}, "0 were left out."),
        ({"proportion": None}, "about a proportion or about a mean"),
        ({"mean": 0.3}, "about a proportion or about a mean"),
        ({"proportion": None, "mean": 5}, "bounds of its values"),
        ({"proportion": None, "mean": 5, "low": 6, "high": 30}, "low < mean < high"),
        ({"proportion": None, "mean": 5, "low": 0, "high": 30, "std": 20}, "std up to 11.1803"),
        ({"proportion": None, "mean": 10**400, "low": 0, "high": 30}, "mean must lie between"),
        ({"low": 0}, "follow from it"),
        ({"proportion": 0}, "proportion must lie in (0, 1)"),
        ({"proportion": 1.0}, "proportion must lie in (0, 1)"),
        ({"proportion": math.nan}, "finite"),
        ({"proportion": "0.3"}, "finite"),
        ({"effect": 0}, "other than 0"),
        ({"effect": 0.8}, "move the mean to 1.1"),
        ({"effect": math.inf}, "finite"),
        ({"epsilon": 0}, "epsilon must lie between"),
        ({"epsilon": -1}, "epsilon must lie between"),
        ({"epsilon": True}, "finite"),
        ({"epsilon": 10**400}, "epsilon must lie between"),
        ({"power": 1}, "power must lie in (0, 1)"),
        ({"power": 0.05}, "power > alpha"),
        ({"alpha": 0}, "alpha must lie in (0, 1)"),
        ({"delta": 1}, "delta must lie in [0, 1)"),
        ({"groups": 3}, "two groups"),
        ({"groups": 0}, "groups must be a whole number"),
        ({"power": None, "n": 9}, "n must be a whole number of at least 10"),
        ({"power": None, "n": 100.0}, "n must be a whole number"),
        ({"power": None, "n": 10**13}, "n must lie between"),
        ({"power": None, "n": 50}, "at least 100 people, or epsilon 0.2"),
        ({"epsilon": None, "n": 100}, "even without noise"),
        ({"effect": None, "n": 110, "epsilon": 0.1, "proportion": 0.999}, "within the bounds"),
        ({"effect": 1e-12}, "Not even"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_remedy(changed: dict[str, Any], words: str) -> None:
    asked = {"proportion": 0.3, "effect": 0.05, "epsilon": 0.1, "power": 0.8} | changed
    with pytest.raises(InvalidParameterError, match=re.escape(words)) as refusal:
        power(**asked)
    assert refusal.value.fix

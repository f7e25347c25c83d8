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
from defocus.noise import Bits, discrete_laplace
from defocus.noise.testing import seeded
from defocus.privacy import gaussian_sigma
from defocus.privacy.budgets import Budget
from defocus.tables.power import Design, Law, Plan, Power, least, power

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


@pytest.mark.slow
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


PLAN = Plan(null=5.0, low=0.0, high=30.0, std=None, groups=1, alpha=0.05, delta=0.0)


def test_noise_is_that_of_one_person_against_the_whole_epsilon() -> None:
    assert PLAN.noise(0.5) == (2.0, 0.0)
    assert PLAN.noise(math.inf) == (0.0, 0.0)
    other = Plan(5.0, 0.0, 30.0, None, 1, 0.05, 0.01)
    assert other.noise(0.01) == (0.0, gaussian_sigma(0.01, 0.01))
    assert other.noise(2.0) == (0.5, 0.0)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("delta", [1e-6, 1e-3, 0.01, 0.05, 0.1])
def test_the_noise_with_less_variance_is_taken(epsilon: float, delta: float) -> None:
    laplace, gaussian = Plan(5.0, 0.0, 30.0, None, 1, 0.05, delta).noise(epsilon)
    taken = 2 * laplace**2 + gaussian**2
    assert taken == pytest.approx(min(2 / epsilon**2, gaussian_sigma(epsilon, delta) ** 2))


def test_the_design_is_on_the_unit_interval_with_the_largest_variance() -> None:
    design = PLAN.design(100, 1.0, 3.0)
    assert design.null == pytest.approx(1 / 6)
    assert design.shift == pytest.approx(0.1)
    assert design.variance(0.25) == 0.1875


@pytest.mark.parametrize("found", ["n", "epsilon", "effect", "power"])
def test_every_number_can_be_the_one_that_is_found(found: str) -> None:
    every = {"n": 2000.0, "epsilon": 0.2, "effect": 1.0, "power": 0.9}
    known = {name: value for name, value in every.items() if name != found}
    solved = PLAN.solved(known, found)
    assert solved.keys() == every.keys()
    assert solved["power"] == PLAN.power(solved["n"], solved["epsilon"], solved["effect"])
    if found != "power":
        assert solved["power"] >= 0.9


def test_fewest_is_the_least_number_without_noise() -> None:
    fewest = PLAN.fewest(1.0, 0.9)
    assert PLAN.power(fewest, math.inf, 1.0) >= 0.9 > PLAN.power(fewest - 1, math.inf, 1.0)


SCALES = st.lists(st.floats(0.01, 10), min_size=1, max_size=4).map(tuple)


def exact(normal: float, scale: float, t: float) -> float:
    """Normal plus one Laplace variable in closed form."""

    def phi(x: float) -> float:
        return 0.5 * math.erfc(-x / math.sqrt(2))

    a = normal / scale
    grown = math.exp(a * a / 2)
    return phi(-t / normal) + grown / 2 * (
        math.exp(-t / scale) * phi(t / normal - a) - math.exp(t / scale) * phi(-t / normal - a)
    )


@pytest.mark.parametrize("normal", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("t", [0.0, 0.1, 1.0, 4.0])
def test_one_laplace_variable_agrees_with_the_closed_form(normal: float, scale: float, t: float) -> None:
    assert Law(normal, (scale,)).tail(t) == pytest.approx(exact(normal, scale, t), abs=1e-8)


@pytest.mark.parametrize("t", [0.0, 0.5, 3.0, 10.0])
def test_two_equal_laplace_variables_agree_with_the_closed_form(t: float) -> None:
    """The density of the sum is (1 + x) e^-x / 4, so the tail is (2 + t) e^-t / 4."""
    assert Law(0.0, (1.0, 1.0)).tail(t) == pytest.approx((2 + t) * math.exp(-t) / 4, abs=1e-8)


@given(normal=st.floats(0, 10), scales=SCALES, t=st.floats(-50, 50))
def test_tails_are_symmetric_probabilities_that_fall(normal: float, scales: tuple[float, ...], t: float) -> None:
    law = Law(normal, scales)
    assert 0 <= law.tail(t) <= 1
    assert law.tail(t) + law.tail(-t) == pytest.approx(1, abs=1e-7)
    assert law.tail(t + 0.1) <= law.tail(t) + 1e-7


@settings(max_examples=30)
@given(normal=st.floats(0, 5), scales=SCALES, alpha=st.floats(0.001, 0.5))
def test_the_critical_value_has_the_level_it_was_asked_for(
    normal: float, scales: tuple[float, ...], alpha: float
) -> None:
    law = Law(normal, scales)
    c = law.critical(alpha)
    assert 2 * law.tail(c) <= alpha
    assert 2 * law.tail(0.999 * c) >= alpha * (1 - 1e-5)


@pytest.mark.statistical
def test_the_tail_is_that_of_real_noise_and_no_other() -> None:
    n, b = 200_000, 1000
    bits, rng = seeded(3), np.random.default_rng(3)
    noise = 0.3 * discrete_laplace(b, n, bits) - 0.7 * discrete_laplace(b, n, bits) + 500 * rng.standard_normal(n)
    seen = float(np.mean(noise > 1500))
    assert seen == pytest.approx(Law(500, (300, 700)).tail(1500), abs=0.0025)
    assert seen != pytest.approx(Law(550, (330, 770)).tail(1500), abs=0.0025)


def test_without_any_spread_the_tail_is_a_step() -> None:
    assert [Law(0.0).tail(t) for t in (-1, 0, 1)] == [1, 0, 0]


def test_noise_weighs_most_at_the_ends_and_half_in_the_middle() -> None:
    def noise(p: float) -> float:
        return Design(p, 0.0, 100, 1, lambda _: 0.0, laplace=1.0).null_law.deviation ** 2

    assert noise(0.5) == pytest.approx(noise(1e-9) / 2)
    assert noise(1e-9) == pytest.approx(2 / 100**2)


def test_two_groups_add_their_variances() -> None:
    one = Design(0.5, 0.0, 100, 1, lambda _: 0.25, gaussian=3.0)
    two = Design(0.5, 0.0, 100, 2, lambda _: 0.25, gaussian=3.0)
    assert two.null_law.deviation**2 == pytest.approx(2 * one.null_law.deviation**2)
    assert one.without_noise.null_law.deviation == pytest.approx(0.05)


def test_the_least_number_is_rounded_up() -> None:
    assert least(lambda x: x * x >= 2, 0, 1) == pytest.approx(math.sqrt(2), rel=1e-8)
    assert least(lambda x: x * x >= 2, 0, 1) ** 2 >= 2

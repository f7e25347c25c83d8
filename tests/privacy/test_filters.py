"""Filters against analysts who choose on the way: exact laws of small adaptive games, and the interface."""

import json
import math
import operator
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from defocus.errors import InvalidParameterError, UnsupportedEventError
from defocus.privacy import classical, filters
from defocus.privacy.accounting import rdp
from defocus.privacy.accounting.renyi.conversion import epsilon_at
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import calibrate
from defocus.privacy.elementary_filters import GaussianSum, PureSum, RenyiSum
from defocus.privacy.events import (
    NOTHING,
    Approximate,
    Concentrated,
    DiscreteGaussian,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    Pure,
    Sampled,
    Selected,
)
from defocus.privacy.filters import Cost, Filter, Used, odometer
from defocus.privacy.filters import filter as filter_for
from defocus.privacy.units import Adjacency

Policy = Callable[[tuple[int, ...]], Event | None]


def branches(event: Event) -> list[tuple[float, float]]:
    """The worst law of a release on two neighbours: randomised response, with a revealing outcome of its delta."""
    assert isinstance(event, Pure | Approximate)
    e = math.exp(float(event.epsilon))
    delta = float(event.delta) if isinstance(event, Approximate) else 0.0
    keep = 1 - delta
    found = [(keep * e / (1 + e), keep / (1 + e)), (keep / (1 + e), keep * e / (1 + e))]
    return [*found, (delta, 0.0), (0.0, delta)] if delta else found


def play(rule: Filter, policy: Policy, depth: int) -> list[tuple[float, float]]:
    """The laws of the final transcript on the two data sets, for an analyst who follows ``policy``."""
    leaves: list[tuple[float, float]] = []

    def go(history: tuple[int, ...], p: float, q: float, spent: Cost) -> None:
        event = policy(history) if len(history) < depth else None
        if event is None:
            leaves.append((p, q))
        elif not rule.admits(spent, event):
            go((*history, -1), p, q, spent)
        else:
            after = spent + rule.cost(event)
            for i, (a, b) in enumerate(branches(event)):
                if p * a or q * b:
                    go((*history, i), p * a, q * b, after)

    go((), 1.0, 1.0, rule.start)
    return leaves


def excess(leaves: list[tuple[float, float]], epsilon: float) -> float:
    one = math.fsum(max(0.0, p - math.exp(epsilon) * q) for p, q in leaves)
    other = math.fsum(max(0.0, q - math.exp(epsilon) * p) for p, q in leaves)
    return max(one, other)


def random_policy(seed: int, choices: list[Event]) -> Policy:
    """A data-dependent analyst: each history leads to a release of its own, or to the end."""

    def choose(history: tuple[int, ...]) -> Event | None:
        rng = np.random.default_rng([seed, *(x + 1 for x in history)])
        return None if rng.random() < 0.03 else choices[int(rng.integers(len(choices)))]

    return choose


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([(1.0, 0.0), (1.0, 0.01), (2.0, 0.05), (0.6, 0.2)]))
def test_no_adaptive_analyst_exceeds_the_budget(seed: int, terms: tuple[float, float]) -> None:
    epsilon, delta = terms
    choices: list[Event] = [Pure(x) for x in (0.05, 0.1, 0.2, 0.35, 0.5)]
    if delta:
        choices += [Approximate(0.1, delta / 40), Approximate(0.3, delta / 20)]
    leaves = play(filter_for(Budget(epsilon, delta)), random_policy(seed, choices), 8)
    assert math.fsum(p for p, _ in leaves) == pytest.approx(1)
    assert excess(leaves, epsilon * (1 + 1e-9)) <= delta + 1e-12


def greedy(history: tuple[int, ...]) -> Event:
    """Doubles the stakes while the evidence points one way, as an attacker of adaptive composition would."""
    lead = sum(1 if x == 0 else -1 for x in history if x >= 0)
    return Pure(0.4 if lead > 0 else 0.1)


def test_an_analyst_who_doubles_the_stakes_when_ahead_stays_within_the_budget() -> None:
    for epsilon, delta in ((1.0, 0.1), (1.5, 0.3), (0.8, 0.0)):
        assert excess(play(filter_for(Budget(epsilon, delta)), greedy, 13), epsilon * (1 + 1e-9)) <= delta + 1e-12


def test_the_game_catches_a_filter_that_allows_too_much() -> None:
    honest = filter_for(Budget(0.8))
    lenient = replace(honest, parts=(PureSum(1.6),))
    assert excess(play(lenient, greedy, 13), 0.8) > 0.05
    loose = replace(filter_for(Budget(1.0, 0.01)), parts=(RenyiSum(1.5, 3.0),))
    assert excess(play(loose, lambda _: Pure(0.5), 12), 1.0) > 0.01


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.floats(0.2, 2), st.floats(0.0, 3.0))
def test_gaussian_noise_chosen_after_the_first_answer_keeps_the_gaussian_bound(
    seed: int, mu: float, epsilon: float
) -> None:
    """Two releases, the second one's noise any function of the first answer with the squares within the limit."""
    rng = np.random.default_rng(seed)
    first = mu * rng.uniform(0.1, 0.95)
    y = np.linspace(-9, 9 + first, 40_001)
    knots = rng.uniform(0, 1, 12)
    second = math.sqrt(mu * mu - first * first) * knots[(np.floor(y * 2).astype(int)) % 12]
    loss = first * y - first * first / 2
    rest = epsilon - loss
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        a, b = rest / second - second / 2, rest / second + second / 2
        inner = np.where(second > 1e-9, ndtr(-a) - np.exp(rest) * ndtr(-b), np.maximum(0.0, -np.expm1(rest)))
    density = np.exp(-((y - first) ** 2) / 2) / math.sqrt(2 * math.pi)
    found = float(np.trapezoid(density * inner, y))
    allowed = float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))
    assert found <= allowed + 1e-6
    rule = filter_for(Budget(mu=mu))
    spent = rule.cost(Gaussian(1 / first))
    assert all(rule.admits(spent, Gaussian(1 / x)) for x in set(second[second > 1e-6].tolist()))


@pytest.mark.parametrize(
    ("budget", "event", "least_share"),
    [
        (Budget(1, 1e-6), Gaussian(50), 0.9),
        (Budget(1, 1e-6), DiscreteGaussian(500, 10), 0.9),
        (Budget(1, 1e-6), Laplace(100), 0.75),
        (Budget(1, 1e-6), Laplace(10), 0.9),
        (Budget(1, 1e-6), Exponential(0.02), 0.75),
        (Budget(1, 1e-6), Sampled(Gaussian(4), 0.01), 0.75),
        (Budget(6, 1e-5), Sampled(Gaussian(1), 0.01), 0.75),
        (Budget(2, 1e-5), Sampled(Gaussian(1), 0.01), 0.5),
    ],
)
def test_adaptivity_costs_little_against_a_fixed_sequence(budget: Budget, event: Event, least_share: float) -> None:
    rule = filter_for(budget)
    steps = 1
    while rule.fits(rule.cost(2 * steps * event)):
        steps *= 2
    while rule.fits(rule.cost((steps + max(1, steps // 100)) * event)):
        steps += max(1, steps // 100)
    assert budget.epsilon is not None
    assert rdp.account(math.ceil(steps / least_share + 1) * event).epsilon(budget.delta) > budget.epsilon


def test_runs_of_different_kinds_are_each_judged_by_what_suits_them() -> None:
    rule = filter_for(Budget(1, 1e-6))
    measure = {}
    for event in (Gaussian(50), Pure(0.3), Sampled(Gaussian(3), 0.01), Laplace(100)):
        spent = rule.start
        while rule.admits(spent, event):
            spent += rule.cost(event)
        measure[type(event).__name__] = rule.compare(spent, event).measure.split(" of ")[0]
    assert measure == {
        "Gaussian": "squared mu",
        "Pure": "epsilon",
        "Sampled": "Rényi divergence",
        "Laplace": "Rényi divergence",
    }


def test_ten_charges_of_a_tenth_fit_in_one_and_an_eleventh_does_not() -> None:
    for budget, event in (
        (Budget(1), Pure(0.1)),
        (Budget(1, 1e-6), Pure(0.1)),
        (Budget(rho=1), Concentrated(0.1)),
        (Budget(rho=1), Concentrated(Fraction(1, 10))),
    ):
        rule = filter_for(budget)
        spent = rule.start
        for _ in range(10):
            assert rule.admits(spent, event)
            spent += rule.cost(event)
        if budget.delta == 0:
            assert not rule.admits(spent, event)


def test_releases_with_a_delta_of_their_own_use_up_its_share() -> None:
    rule = filter_for(Budget(1, 1e-6))
    assert rule.admits(rule.start, Approximate(0.1, 4e-7))
    assert not rule.admits(rule.start, Approximate(0.1, 6e-7))
    assert rule.compare(rule.start, Approximate(0.1, 6e-7)).measure == "delta"
    mixed = rule.cost(Approximate(0.1, 1e-7)) + rule.cost(Gaussian(50))
    assert rule.fits(mixed)
    plain = filter_for(Budget(1, 1e-6), method="basic")
    assert plain.admits(plain.start, Approximate(1, 1e-6))
    assert not plain.admits(plain.cost(Approximate(0.5, 9e-7)), Approximate(0.1, 2e-7))
    sampled = rule.cost(Sampled(Approximate(1, 1e-6), 0.1))
    assert sampled.amounts[0] == pytest.approx(1e-7)


def test_a_composed_charge_costs_its_parts() -> None:
    rule = filter_for(Budget(1, 1e-6))
    whole = rule.cost(3 * Laplace(30) + 2 * Gaussian(40))
    parts = rule.start
    for event in [Laplace(30)] * 3 + [Gaussian(40)] * 2:
        parts += rule.cost(event)
    assert whole.amounts == pytest.approx(parts.amounts, rel=1e-12)
    assert rule.cost(NOTHING) == rule.start
    assert rule.admits(rule.start, NOTHING)
    assert not rule.admits(rule.start, 10**400 * Pure(1))


@given(st.lists(st.floats(0, 1e3), min_size=2, max_size=2), st.lists(st.floats(0, 1e3), min_size=2, max_size=2))
def test_costs_are_added_upwards(a: list[float], b: list[float]) -> None:
    total = Cost(a) + Cost(b)
    assert all(Fraction(s) >= Fraction(x) + Fraction(y) for s, x, y in zip(total, a, b, strict=True))
    assert Cost(json.loads(json.dumps(total.to_json()))) == total


def test_an_inexpressible_amount_survives_json_and_stays_infinite() -> None:
    cost = filter_for(Budget(1, 1e-6)).cost(Gaussian(10))
    assert cost.amounts[1] == math.inf
    assert Cost(json.loads(json.dumps(cost.to_json(), allow_nan=False))) == cost
    assert (cost + Cost(cost)).amounts[1] == math.inf


def test_what_remains_is_said_in_words_and_really_fits() -> None:
    rule = filter_for(Budget(1, 1e-6))
    spent = rule.cost(60 * Gaussian(50))
    left = rule.remaining(spent)
    assert rule.admits(spent, Pure(left.epsilon))
    assert not rule.admits(spent, Pure(left.epsilon * 1.001))
    assert rule.admits(spent, Gaussian(left.ratio))
    assert not rule.admits(spent, Gaussian(left.ratio / 1.001))
    assert "one release of epsilon" in str(left)
    assert "Gaussian noise" in str(left)
    assert left.certain <= left.epsilon
    gone = rule.remaining(rule.cost(10_000 * Gaussian(10)))
    assert str(gone) == "nothing"
    assert str(filter_for(Budget(1)).remaining(filter_for(Budget(1)).start)) == "one release of epsilon 1"


BEFORE: list[Event] = [
    NOTHING,
    Pure(0.3),
    7 * Gaussian(50),
    Sampled(Gaussian(1), 0.01),
    DiscreteGaussian(30) + Pure(0.1),
]


@pytest.mark.parametrize("budget", [Budget(1, 1e-6), Budget(0.3, 1e-9), Budget(7), Budget(rho=0.1), Budget(mu=0.7)])
@pytest.mark.parametrize("before", BEFORE, ids=str)
def test_what_is_printed_as_left_is_admitted_when_it_is_followed(budget: Budget, before: Event) -> None:
    rule = filter_for(budget)
    try:
        spent = rule.cost(before)
    except UnsupportedEventError:
        spent = rule.start
    printed = str(rule.remaining(spent))
    for pattern, make in ((r"epsilon ([-+.e\d]+)", Pure), (r"noise of ([-+.e\d]+) times", Gaussian)):
        for number in re.findall(pattern, printed):
            assert rule.admits(spent, make(float(number))), printed


@pytest.mark.parametrize(
    ("budget", "steps"),
    [
        (Budget(1), [Pure(0.4), Pure(0.4), Pure(0.2)]),
        (Budget(1, 1e-6), [Pure(0.4), Pure(0.4), Pure(0.2)]),
        (Budget(1), 10 * [Pure(0.1)]),
        (Budget(rho=0.5), [Concentrated(0.1), Concentrated(0.4)]),
        (Budget(mu=1), [Gaussian(1)]),
    ],
)
def test_a_budget_that_was_spent_to_the_last_has_nothing_left(budget: Budget, steps: list[Event]) -> None:
    rule = filter_for(budget)
    spent = rule.start
    for step in steps:
        assert rule.admits(spent, step)
        spent += rule.cost(step)
    assert str(rule.remaining(spent)) == "nothing"
    assert rule.compare(spent, Pure(1e-3)).remaining == 0


def test_a_little_more_than_the_tolerance_is_still_offered() -> None:
    rule = filter_for(Budget(1))
    assert rule.remaining(rule.cost(Pure(1 - 1e-7))).epsilon == pytest.approx(1e-7, rel=0.02)


@pytest.mark.parametrize("method", ["union", "gaussian", "renyi"])
def test_planned_releases_are_all_admitted_one_by_one_and_no_further_one(method: str) -> None:
    budget = Budget(1, 1e-6)
    rule = filter_for(budget, method=method)
    ratio = rule.calibrate(lambda x: 50 * Gaussian(x))
    assert ratio >= calibrate(lambda x: 50 * Gaussian(x), budget)
    spent = rule.start
    for _ in range(50):
        assert rule.admits(spent, Gaussian(ratio))
        spent += rule.cost(Gaussian(ratio))
    assert not rule.admits(spent, Gaussian(ratio))
    assert not rule.admits(rule.start, 50 * Gaussian(ratio * (1 - 1e-4)))


def test_a_plan_takes_what_was_spent_before_into_account() -> None:
    rule = filter_for(Budget(1, 1e-6))
    spent = rule.cost(10 * Gaussian(40))
    ratio = rule.calibrate(lambda x: 5 * Gaussian(x), spent=spent)
    assert ratio > rule.calibrate(lambda x: 5 * Gaussian(x))
    assert rule.admits(spent, 5 * Gaussian(ratio))
    with pytest.raises(InvalidParameterError, match="another filter"):
        rule.calibrate(Gaussian, spent=filter_for(Budget(1)).start)
    with pytest.raises(InvalidParameterError, match="prices events"):
        rule.calibrate(lambda x: x)  # type: ignore[arg-type,return-value] # refused


def test_a_comparison_gives_requested_remaining_and_difference() -> None:
    rule = filter_for(Budget(1))
    found = rule.compare(rule.cost(Pure(0.75)), Pure(0.5))
    assert (found.requested, found.measure) == (0.5, "epsilon")
    assert found.remaining == pytest.approx(0.25)
    assert found.difference == pytest.approx(0.25)
    assert rule.compare(rule.start, Pure(0.5)).difference < 0


def test_a_run_of_any_length_is_summed_up_in_as_few_numbers() -> None:
    rule = filter_for(Budget(10, 1e-6))
    spent = rule.start
    for i in range(2000):
        spent += rule.cost(Gaussian(1000 + i % 7))
    assert len(spent.amounts) == len(rule.start.amounts) == 1 + len(rule.parts)
    assert rule.admits(spent, Gaussian(1000))


def test_adjacency_reaches_the_price_of_sampled_releases() -> None:
    event = Sampled(Gaussian(2), 0.1)
    add, swap = (filter_for(Budget(4, 1e-6), a).cost(event) for a in Adjacency)
    assert all(x < y for x, y in zip(add.amounts[3:], swap.amounts[3:], strict=True))


@pytest.mark.parametrize(
    ("budget", "event"),
    [
        (Budget(1), Gaussian(1)),
        (Budget(1), Approximate(0.5, 1e-9)),
        (Budget(rho=1), Sampled(Gaussian(1), 0.5)),
        (Budget(mu=1), Concentrated(0.1)),
        (Budget(mu=1), DiscreteGaussian(100)),
        (Budget(1, 1e-6), Selected(Approximate(1, 1e-9), 0.5)),
    ],
)
def test_releases_a_budget_cannot_measure_are_refused_by_name(budget: Budget, event: Event) -> None:
    rule = filter_for(budget)
    if isinstance(event, Approximate):
        assert not rule.admits(rule.start, event)
        return
    with pytest.raises(UnsupportedEventError, match=rf"^The union filter cannot express {type(event).__name__}"):
        rule.admits(rule.start, event)


def test_filters_can_be_asked_for_by_name() -> None:
    budget = Budget(1, 1e-6)
    for method in ("basic", "renyi", "zcdp", "gaussian", "union", "first"):
        rule = filter_for(budget, method=method)
        assert rule.definition == (f"{method}/2:1/2" if method in ("union", "first") else f"{method}/1")
        assert rule.admits(rule.start, Pure(0.01))
    assert [filter_for(budget, method=name).definition for name in ("RDP", "GDP")] == ["renyi/1", "gaussian/1"]
    alone, union = filter_for(budget, method="gaussian"), filter_for(budget)
    assert alone.parts[0].limit > union.parts[1].limit
    with pytest.raises(InvalidParameterError, match="union, first, basic, renyi, zcdp, gaussian"):
        filter_for(budget, method="hope")
    with pytest.raises(InvalidParameterError, match="union, basic"):
        filter_for(Budget(1), method="renyi")


@pytest.mark.parametrize("bad", [None, 1.0, "1", (1, 1e-6), True])
def test_something_that_is_no_budget_or_no_event_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameterError, match="Budget"):
        filter_for(bad)
    with pytest.raises(InvalidParameterError, match="prices events"):
        filter_for(Budget(1)).cost(bad)


@pytest.mark.parametrize("bad", [[], [-1.0], [float("nan")], [0.0, -1e-9]])
def test_a_cost_that_is_no_cost_is_refused(bad: list[Any]) -> None:
    with pytest.raises(InvalidParameterError, match="at least zero"):
        Cost(bad)


def test_costs_of_another_filter_are_refused() -> None:
    small, large = filter_for(Budget(1)), filter_for(Budget(1, 1e-6))
    with pytest.raises(InvalidParameterError, match="another filter"):
        small.fits(large.start)
    with pytest.raises(InvalidParameterError, match="different filters"):
        small.start + large.start
    with pytest.raises(TypeError):
        operator.add(small.start, (0.0, 0.0))


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 50, 1000])
@pytest.mark.parametrize("delta", [1e-100, 1e-6, 0.5])
def test_extreme_budgets_have_a_filter(epsilon: float, delta: float) -> None:
    rule = filter_for(Budget(epsilon, delta))
    assert all(part.limit >= 0 for part in rule.parts)
    assert rule.admits(rule.start, Pure(epsilon))
    assert not rule.admits(rule.start, Pure(4 * epsilon + 20))


def test_the_part_used_is_that_of_the_measure_that_suits_best() -> None:
    rule = filter_for(Budget(1, 1e-6))
    assert rule.used(rule.start) == Used("epsilon", 0, 0)
    assert rule.used(rule.cost(Pure(0.5))).share == pytest.approx(0.5)
    assert rule.used(rule.cost(Gaussian(rule.remaining(rule.start).ratio))).share == pytest.approx(1)
    assert rule.used(rule.cost(Pure(3))).share > 1
    found = rule.used(rule.cost(Approximate(0.001, 1e-7)))
    assert [found.share, found.delta] == pytest.approx([2.4638e-5, 0.2], rel=1e-3)
    assert str(found) == "0.00246 % of epsilon and 20 % of delta"
    assert found.to_dict() == {"epsilon": found.share, "delta": found.delta}
    assert str(filter_for(Budget(rho=1)).used(Cost([0, 0.5]))) == "50 % of rho"
    assert [name for name, _ in rule.measures(rule.start)][:3] == ["delta", "epsilon", "squared mu"]
    assert len(rule.measures(rule.start)) == len(rule.start.amounts)


def test_costs_too_small_for_a_float_still_add_up() -> None:
    rule = filter_for(Budget(1, 1e-6))
    assert not rule.admits(rule.start, 10**500 * Pure(Fraction(1, 10**200)))
    assert rule.admits(rule.start, 10**6 * Pure(Fraction(1, 10**200)))


@pytest.mark.parametrize(
    "budget", [Budget(10**400), Budget(10**400, Fraction(1, 10**400)), Budget(rho=10**400), Budget(mu=10**400)]
)
def test_a_budget_beyond_floats_still_admits_no_infinite_cost(budget: Budget) -> None:
    rule = filter_for(budget)
    assert rule.admits(rule.start, Pure(1))
    assert not rule.fits(Cost([0.0] + [math.inf] * len(rule.parts)))


def test_a_first_release_may_spend_all_of_delta_where_the_first_release_decides() -> None:
    rule = filter_for(Budget(1, 1e-6), method="first")
    assert rule.admits(rule.start, Approximate(1, 1e-6))
    assert not rule.admits(rule.start, Approximate(1, 1.001e-6))
    assert not rule.admits(rule.start, Approximate(1.001, 1e-6))
    assert not rule.admits(rule.start, Approximate(0.1, 6e-7) + Gaussian(50))  # only what can be added up
    spent = rule.start
    for _ in range(5):
        assert rule.admits(spent, Approximate(0.2, 2e-7))
        spent = rule.add(spent, rule.cost(Approximate(0.2, 2e-7)))
    assert not rule.admits(spent, Pure(0.001))
    assert str(rule.remaining(spent)) == "nothing"


def test_the_rule_that_the_first_release_chose_is_kept() -> None:
    rule = filter_for(Budget(1, 1e-6), method="first")
    plain = rule.add(rule.start, rule.cost(Approximate(0.1, 2e-7)))
    assert not rule.admits(plain, Gaussian(1000))
    assert rule.admits(plain, Approximate(0.9, 8e-7))
    assert rule.remaining(plain).ratio == math.inf
    assert rule.remaining(plain).delta == pytest.approx(8e-7)
    assert (
        rule.remaining(rule.add(rule.start, rule.cost(Approximate(0.1, 1e-6)))).delta == 0
    )  # the tolerance is never offered
    for begun in (Pure(0.1), Gaussian(1000), Approximate(0.1, 1e-9), Pure(Fraction(1, 10**300))):
        spent = rule.add(rule.start, rule.cost(begun))
        assert rule.admits(spent, Approximate(0.1, 4.9e-7))
        assert not rule.admits(spent, Approximate(0.1, 5.1e-7)), begun
        assert rule.remaining(spent).delta <= 5e-7
        refused = rule.compare(spent, Approximate(0.1, 6e-7))
        assert (refused.measure, refused.requested) == ("delta", 6e-7)
        assert refused.remaining <= 5e-7
    assert rule.admits(rule.cost(NOTHING), Approximate(1, 1e-6))  # nothing was learnt from nothing


@given(
    st.lists(
        st.sampled_from(
            [
                Pure(0.1),
                Gaussian(20),
                Laplace(50),
                Approximate(0.1, 1e-7),
                Approximate(0.3, 3e-7),
                Approximate(0.01, 1e-9),
                Gaussian(40) + Approximate(0.01, 1e-8),
            ]
        ),
        max_size=12,
    )
)
def test_a_run_of_a_first_decision_is_one_of_the_two_filters_from_its_first_release_to_its_last(
    steps: list[Event],
) -> None:
    budget = Budget(1, 1e-6)
    rule, union, basic = (filter_for(budget, method=method) for method in ("first", "union", "basic"))
    alone = basic if steps and union.cost(steps[0]).amounts[0] > 1.25e-7 else union
    spent, other = rule.start, alone.start
    for step in steps:
        try:
            admitted = alone.admits(other, step)
        except UnsupportedEventError:
            admitted = False
        assert rule.admits(spent, step) == admitted
        if not admitted and spent == rule.start:
            return  # the next proposal is again a first one
        if admitted:
            spent, other = rule.add(spent, rule.cost(step)), other + alone.cost(step)


def test_everything_that_the_union_admits_is_admitted_where_the_first_release_decides() -> None:
    budget = Budget(1, 1e-6)
    rule, union = filter_for(budget, method="first"), filter_for(budget)
    for event in (Pure(0.1), Gaussian(50), Laplace(100), Exponential(0.02), Sampled(Gaussian(4), 0.01)):
        assert rule.cost(event) == union.cost(event)
        spent = union.start
        for _ in range(500):
            assert rule.admits(spent, event) == union.admits(spent, event)
            spent += union.cost(event)
    left, same = rule.remaining(rule.start), union.remaining(union.start)
    assert (left.epsilon, left.ratio) == (same.epsilon, same.ratio)


def test_what_is_planned_where_the_first_release_decides_is_admitted_in_one_charge_and_in_several() -> None:
    rule = filter_for(Budget(1, 1e-6), method="first")
    x = rule.calibrate(lambda x: 4 * Approximate(0.2, 1e-6 / x), low=1, high=1e6)
    assert x == pytest.approx(8, rel=1e-5)
    spent = rule.start
    for _ in range(4):
        assert rule.admits(spent, Approximate(0.2, 1e-6 / x))
        spent = rule.add(spent, rule.cost(Approximate(0.2, 1e-6 / x)))
    plain = rule.add(rule.start, rule.cost(Approximate(0.2, 2e-7)))
    assert rule.calibrate(lambda x: 4 * Approximate(0.2, 1e-6 / x), spent=plain, low=1, high=1e6) < 5.1


def test_the_part_used_and_the_limits_follow_the_rule_that_was_chosen() -> None:
    rule = filter_for(Budget(1, 1e-6), method="first")
    plain, mixed = (
        rule.add(rule.start, rule.cost(event)) for event in (Approximate(0.25, 5e-7), Approximate(0.25, 1e-8))
    )
    assert [rule.used(plain).share, rule.used(plain).delta] == pytest.approx([0.25, 0.5])
    assert [rule.used(mixed).share, rule.used(mixed).delta] == pytest.approx([0.25, 0.02])
    assert rule.used(rule.start) == Used("epsilon", 0, 0)
    assert [limit for _, limit in rule.measures(plain)][2:] == [None] * 5
    assert rule.measures(plain)[0][1] == pytest.approx(1e-6)
    assert rule.measures(mixed)[0][1] == pytest.approx(5e-7)
    assert all(limit for _, limit in rule.measures(rule.start))


def test_a_choice_after_an_answer_would_break_the_budget() -> None:
    # Two rules, each within delta: noise of so much squared mu, or half of that and then deltas added up. Who looks at
    # half of the noise first, and buys delta where it told nothing, loses more than delta: only the first may decide.
    from scipy.stats import norm  # noqa: PLC0415 - integrates a run by hand

    from defocus.privacy import classical  # noqa: PLC0415

    epsilon, delta = 1.0, 1e-6
    mu = classical.mu_for(epsilon, delta)
    half = mu / math.sqrt(2)
    losses = np.linspace(half**2 / 2 - 12 * half, half**2 / 2 + 12 * half, 200_001)
    weight = norm.pdf(losses, half**2 / 2, half) * (losses[1] - losses[0])

    def failing(loss: float) -> float:
        """What the second half adds after the first half had this loss: the delta at what is left of epsilon."""
        a, b = half / 2 - (epsilon - loss) / half, -half / 2 - (epsilon - loss) / half
        return float(norm.cdf(a) - math.exp(epsilon - loss) * norm.cdf(b))

    going_on = np.array([failing(loss) for loss in losses[::200]])
    later = np.interp(losses, losses[::200], going_on)
    assert float(weight @ later) == pytest.approx(delta, rel=0.01)
    assert float(weight @ np.maximum(later, delta)) > 1.5 * delta


def test_equal_budgets_are_worked_out_once_and_keep_how_they_were_written() -> None:
    whole, point = filter_for(Budget(1, 1e-6)), filter_for(Budget(1.0, 1e-6), Adjacency.REPLACE)
    assert all(one is other for one, other in zip(whole.parts[1:], point.parts[1:], strict=True))
    assert (str(whole.budget), str(point.budget)) == (
        "Budget(epsilon=1, delta=1e-06)",
        "Budget(epsilon=1.0, delta=1e-06)",
    )


@pytest.mark.parametrize("method", ["first", "union", "basic"])
@given(st.floats(1e-12, 1e-6))
def test_the_delta_that_is_left_fits_to_the_last(method: str, delta: float) -> None:
    rule = filter_for(Budget(1, 1e-6), method=method)
    if not rule.admits(rule.start, Approximate(0.1, delta)):
        return
    spent = rule.add(rule.start, rule.cost(Approximate(0.1, delta)))
    left = rule.remaining(spent).delta
    if left:
        assert rule.admits(spent, Approximate(0.1, left))
        assert not rule.admits(spent, Approximate(0.1, left * (1 + 1e-6)))
        refused = rule.compare(spent, Approximate(0.1, left * (1 + 1e-6)))
        assert refused.measure == "delta"
        assert refused.difference > 0


def test_the_shares_of_delta_add_up_to_the_budget() -> None:
    assert filters._GAUSSIAN_SHARE + sum(share for _, share in filters._RENYI_SHARES) == 1
    for direct in (0, 0.1, 0.5, 0.99):
        assert filter_for(Budget(1, 1e-6, direct=direct)).slack == pytest.approx(direct * 1e-6)


def test_each_limit_is_what_its_share_of_delta_buys() -> None:
    rule = filter_for(Budget(2, 1e-6))
    _, gaussian, *renyi = rule.parts
    assert isinstance(gaussian, GaussianSum)
    assert classical.log_delta(math.sqrt(gaussian.limit), 2 - 1e-9) <= math.log(0.5e-6 * filters._GAUSSIAN_SHARE)
    for part, (_, share) in zip(renyi, filters._RENYI_SHARES, strict=True):
        assert isinstance(part, RenyiSum)
        assert epsilon_at(np.array([part.limit]), np.array([part.order]), 0.5e-6 * float(share))[0] <= 2 * (1 + 1e-11)


@pytest.mark.parametrize("parts", [2, 3, 4, 7, 12])
def test_a_budget_can_be_divided_into_equal_releases_that_find_groups(parts: int) -> None:
    rule = filter_for(Budget(1, 1e-6), method="first")
    spent = rule.start
    for _ in range(min(parts, 7)):
        event = Approximate(Fraction(1, parts), Fraction(1, parts * 10**6))
        assert rule.admits(spent, event) == (parts <= 7 or rule.slack >= (spent + rule.cost(event)).amounts[0])
        spent = rule.add(spent, rule.cost(event))


def test_the_union_never_comes_to_a_sum_that_looks_like_basic_composition() -> None:
    rule = filter_for(Budget(1, 1e-6), method="first")
    blind = Cost([1e-7, 0.1, *[math.inf] * (len(rule.parts) - 1)])  # events that only epsilon can express
    assert rule.fits(rule.add(rule.start, blind), before=rule.start)
    assert not rule.fits(rule.add(blind, blind), before=blind)


def test_the_filter_of_earlier_ledgers_is_the_same_as_ever() -> None:
    rule = filter_for(Budget(1, 1e-6, direct=Fraction(1, 8)), method="first")
    assert rule.definition == "first/1"
    assert rule.slack == 1.25e-7
    limits = [1.000000001, 0.05112972040297382, 0.5295465292418851, 0.4062686810729719, 0.18971429597707049]
    assert [part.limit for part in rule.parts] == [*limits, 0.7853719887605162]
    first = rule.add(rule.start, rule.cost(Approximate(0.1, 2e-7)))
    assert first == rule.cost(Approximate(0.1, 2e-7))  # as earlier versions wrote it
    assert rule.admits(first, Approximate(0.9, 8e-7))
    assert not rule.admits(first, Gaussian(1000))
    assert filter_for(Budget(1, 1e-6), method="first").definition == "first/2:1/2"


def test_more_for_releases_themselves_is_less_for_composition() -> None:
    ratios = [filter_for(Budget(1, 1e-6, direct=part)).calibrate(Gaussian) for part in (0, 1 / 8, 1 / 2, 0.9)]
    assert ratios == sorted(ratios)
    assert ratios[2] < 1.03 * ratios[1]


def test_readings_grow_with_the_run_and_start_at_zero() -> None:
    meter = odometer(1e-6)
    spent, before = meter.start, 0.0
    assert meter.read(spent) == 0.0
    for _ in range(40):
        spent = meter.after(spent, Gaussian(15))
        assert meter.read(spent) >= before
        before = meter.read(spent)
    assert 1 < before < 4


def test_a_pure_run_is_read_at_the_level_above_its_sum() -> None:
    meter = odometer(0, levels=(0.5, 1, 2))
    spent = meter.after(meter.start, 3 * Pure(0.25))
    assert meter.read(spent) == 1.0
    assert meter.read(meter.after(spent, Pure(5))) == math.inf


def test_an_analyst_who_stops_when_ahead_is_still_within_the_reading() -> None:
    """Exact law of a run of randomised responses stopped at the first lead of two."""
    meter = odometer(0.05, levels=(0.25, 0.5, 1.0, 2.0, 4.0))
    epsilon, leaves = 0.2, []

    def go(lead: int, steps: int, p: float, q: float, spent: Any) -> None:
        if abs(lead) >= 2 or steps == 10:
            leaves.append((p, q, meter.read(spent)))
            return
        after = meter.after(spent, Pure(epsilon))
        e = math.exp(epsilon)
        go(lead + 1, steps + 1, p * e / (1 + e), q / (1 + e), after)
        go(lead - 1, steps + 1, p / (1 + e), q * e / (1 + e), after)

    go(0, 0, 1.0, 1.0, meter.start)
    for level in {reading for *_, reading in leaves}:
        excess = math.fsum(max(0.0, p - math.exp(level) * q) for p, q, reading in leaves if reading == level)
        assert excess <= 0.05 / 5 + 1e-12


def test_an_odometer_without_levels_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="at least one level"):
        odometer(1e-6, levels=())
    for bad in (0, -1, float("nan"), True):
        with pytest.raises(InvalidParameterError):
            odometer(1e-6, levels=(bad,))


def test_a_level_beyond_floats_is_a_level() -> None:
    meter = odometer(1e-6, levels=(1, 10**400))
    assert meter.read(meter.after(meter.start, Pure(5))) > 1e300


@pytest.mark.parametrize("spent", [1, 3, 7, 9, 10])
def test_what_is_certainly_left_is_never_above_what_was_stated(spent: int) -> None:
    rule = filter_for(Budget(1))
    left = rule.remaining(rule.cost(spent * Pure(Fraction(1, 10))))
    assert Fraction(left.certain) + Fraction(spent, 10) <= 1
    assert left.certain == pytest.approx(1 - spent / 10, abs=1e-8)
    concentrated = filter_for(Budget(rho=1))
    kept = concentrated.remaining(concentrated.cost(spent * Pure(Fraction(1, 10))))
    total = [
        amount for amount in concentrated.cost(spent * Pure(Fraction(1, 10)) + Pure(kept.certain)).amounts if amount
    ]
    assert max(total) <= 1

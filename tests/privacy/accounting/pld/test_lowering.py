"""From events to profiles: every rule checked against enumeration of what really happens."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy.accounting.pld import oracles

from defocus.errors import DefocusError, InvalidParameterError, UnsupportedEventError
from defocus.privacy.accounting.pld import account
from defocus.privacy.accounting.pld.discrete import DiscreteGaussianProfile, DiscreteLaplaceProfile
from defocus.privacy.accounting.pld.lowering import lower, smoothed
from defocus.privacy.accounting.pld.profiles import Atoms, GaussianProfile, LaplaceProfile
from defocus.privacy.accounting.pld.sampling import Batched, SampledProfile
from defocus.privacy.events import (
    NOTHING,
    Approximate,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    Sampled,
    SampledBatch,
    Selected,
    SelectedPoisson,
)
from defocus.privacy.units import Adjacency

ADD, REPLACE = Adjacency.ADD_REMOVE, Adjacency.REPLACE


def _named(value: object) -> str:
    """A name for a case that is the same in every process: no address."""
    return type(value).__name__ if type(value) is Event else repr(value)


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event",
    [
        Concentrated(0.1),
        Selected(Gaussian(1), 0.1),
        SelectedPoisson(Gaussian(1), 3),
        Gaussian(1) + Concentrated(0.1),
        Sampled(Concentrated(0.1), 0.1),
        Event(),
    ],
    ids=_named,
)
@pytest.mark.parametrize("adjacency", Adjacency)
def test_events_without_a_known_dominating_pair_are_refused(event: Event, adjacency: Adjacency) -> None:
    with pytest.raises(UnsupportedEventError, match="no pair of laws is known") as refusal:
        account(event, adjacency)
    assert "rdp" in str(refusal.value)


@pytest.mark.parametrize(
    "event",
    [
        Sampled(Gaussian(1) + Laplace(1), 0.1),
        Sampled(2 * Laplace(1), 0.1),
        Sampled(Laplace(1) + Laplace(2), 0.1),
        SampledBatch(2 * RandomizedResponse(1), 3, 10),
        Sampled(2 * Sampled(Gaussian(1), 0.5), 0.1),
    ],
    ids=_named,
)
def test_several_releases_on_one_sample_are_refused_unless_they_merge(event: Event) -> None:
    with pytest.raises(UnsupportedEventError, match="share one sample") as refusal:
        account(5 * event)
    assert "sample for each release" in str(refusal.value)


def test_a_coarse_grid_in_many_dimensions_is_refused_with_the_sigma_it_needs() -> None:
    with pytest.raises(
        UnsupportedEventError, match=r"100 entries at sensitivity 10 it needs sigma at least 2\.99"
    ) as refusal:
        account(DiscreteGaussian(2, 10, 1000))
    assert "finer grid" in str(refusal.value)


@pytest.mark.parametrize(
    "event", [Gaussian(1e-200), Laplace(Fraction(1, 10**400)), 10**400 * Gaussian(1), Sampled(Gaussian(1e-300), 0.5)]
)
def test_noise_that_protects_nothing_is_refused_in_words(event: Event) -> None:
    with pytest.raises(InvalidParameterError, match="protects nothing") as refusal:
        account(event)
    assert "add more noise" in str(refusal.value)


# -- how parameters become floats --------------------------------------------------------------------------------------


@given(st.fractions(min_value=Fraction(1, 1000), max_value=1000))
def test_parameters_are_rounded_to_the_side_that_loses_more(ratio: Fraction) -> None:
    ((gaussian, _, below, _),) = lower(Gaussian(ratio), ADD)
    assert isinstance(gaussian, GaussianProfile)
    assert isinstance(below, GaussianProfile)
    assert Fraction(gaussian.mu) >= 1 / ratio >= Fraction(below.mu)
    ((laplace, _, under, pure),) = lower(Laplace(ratio), ADD)
    assert isinstance(laplace, LaplaceProfile)
    assert isinstance(under, LaplaceProfile)
    assert Fraction(laplace.epsilon) >= 1 / ratio >= Fraction(under.epsilon)
    assert pure == 1 / ratio
    ((discrete, _, _, _),) = lower(DiscreteLaplace(ratio), ADD)
    assert isinstance(discrete, DiscreteLaplaceProfile)
    assert Fraction(discrete.scale) <= ratio
    ((coin, _, _, _),) = lower(Pure(ratio), ADD)
    assert Fraction(coin.top) >= ratio


@given(rate=st.fractions(min_value=Fraction(1, 10**9), max_value=Fraction(999, 1000)))
def test_rates_are_rounded_up(rate: Fraction) -> None:
    ((profile, _, witness, _),) = lower(Sampled(Gaussian(1), rate), ADD)
    assert isinstance(profile, SampledProfile)
    assert isinstance(witness, SampledProfile)
    assert Fraction(profile.rate) >= rate >= Fraction(witness.rate)
    ((batched, _, _, _),) = lower(Sampled(Gaussian(1), rate), REPLACE)
    assert isinstance(batched, Batched)
    assert Fraction(batched.rate) >= rate


def test_exact_parameters_stay_exact() -> None:
    ((_, _, _, pure),) = lower(DiscreteLaplace(Fraction(3), 2), ADD)
    assert pure == Fraction(2, 3)
    assert account(3 * Pure(Fraction(1, 3))).epsilon(0) == 1.0
    assert account(10**6 * Pure(Fraction(1, 10**6))).epsilon() == 1.0
    assert Fraction(account(Pure(Fraction(1, 3))).epsilon(0)) >= Fraction(1, 3)


# -- merging -----------------------------------------------------------------------------------------------------------


def test_gaussians_of_any_kind_merge_into_one() -> None:
    terms = lower(100 * Gaussian(20) + 3 * Gaussian(7) + Sampled(Gaussian(2), 1), ADD)
    assert len(terms) == 1
    profile = terms[0].profile
    assert isinstance(profile, GaussianProfile)
    exact = mp.sqrt(mp.mpf(100) / 400 + mp.mpf(3) / 49 + mp.mpf(1) / 4)
    assert exact <= profile.mu <= exact * (1 + 1e-14)
    assert isinstance(terms[0].witness, GaussianProfile)
    assert exact * (1 - 1e-14) <= terms[0].witness.mu <= exact


def test_gaussians_on_one_sample_merge_before_sampling() -> None:
    ((profile, times, _, _),) = lower(7 * Sampled(4 * Gaussian(2), 0.1), ADD)
    assert times == 7
    assert isinstance(profile, SampledProfile)
    assert isinstance(profile.inner, GaussianProfile)
    assert profile.inner.mu == pytest.approx(1.0)


def test_nothing_and_harmless_events_have_no_terms() -> None:
    harmless = NOTHING + Pure(0) + 3 * RandomizedResponse(0, 4) + Exponential(0) + Approximate(0, 0)
    for event in (NOTHING, harmless, Sampled(Pure(0), 0.5), SampledBatch(NOTHING, 2, 5)):
        assert lower(event, ADD) == []
        assert account(event).epsilon(0) == account(event).epsilon(1e-5) == account(event).delta(0) == 0.0


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("inner", [Gaussian(1.5), Laplace(2), RandomizedResponse(1, 3), Exponential(1)], ids=_named)
def test_a_sample_of_everyone_is_no_sample(inner: Event, adjacency: Adjacency) -> None:
    plain = account(inner, adjacency).interval(1e-5)
    for event in (Sampled(inner, 1), SampledBatch(inner, 8, 8)):
        assert account(event, adjacency).interval(1e-5) == pytest.approx(plain, rel=1e-12)


def test_responses_have_the_masses_of_their_definition() -> None:
    for epsilon, categories in ((0.5, 2), (3.0, 7), (700.0, 2)):
        profile = lower(RandomizedResponse(epsilon, categories), ADD)[0].profile
        assert isinstance(profile, Atoms)
        exact = sorted(oracles.response(epsilon, categories), key=lambda pair: pair[0] / pair[1])
        for p, q, (a, b) in zip(profile.p, profile.q, exact, strict=True):
            assert abs(mp.mpf(p) / a - 1) <= profile.error
            assert abs(mp.mpf(q) / b - 1) <= profile.error


# -- discrete Gaussians of several entries -----------------------------------------------------------------------------


def summed_delta(sigma: float, shift: Sequence[int], epsilon: float) -> float:
    """Over a box of 13 sigma on each side, beyond which less than 1e-35 is left."""
    n = math.ceil(13 * sigma) + max(shift)
    x = np.arange(-n, n + 1).astype(np.float64)
    weight = np.exp(-x * x / (2 * sigma * sigma))
    weight /= weight.sum()
    p = q = np.ones(())
    for step in shift:
        p = np.multiply.outer(p, weight)
        q = np.multiply.outer(
            q, np.exp(-((x - step) ** 2) / (2 * sigma * sigma)) / np.exp(-x * x / (2 * sigma**2)).sum()
        )
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


@pytest.mark.parametrize(
    ("sigma", "sensitivity", "dimension"),
    [
        (3.0, 1, 2),
        (3.0, 1.4142135623730952, 2),
        (3.0, 2, 2),
        (4.5, 3, 2),
        (3.25, 5, 2),
        (3.0, 1.7320508075688774, 3),
        (3.0, 2, 3),
    ],
)
def test_no_shift_of_integers_within_the_sensitivity_costs_more(
    sigma: float, sensitivity: float, dimension: int
) -> None:
    loss = account(DiscreteGaussian(sigma, sensitivity, dimension))
    for epsilon in (0.0, 0.3, 1.5, 4.0):
        worst = max(summed_delta(sigma, v, epsilon) for v in oracles.shifts(dimension, sensitivity))
        bound = loss.delta(epsilon)
        assert worst <= bound * (1 + 1e-9) + 1e-18
        # The price of smoothing is a variance smaller by two at most.
        assert bound <= 1.0
    worst = max(summed_delta(sigma, v, 1.0) for v in oracles.shifts(dimension, sensitivity))
    assert loss.epsilon(worst * (1 - 1e-6)) >= 1.0


def test_whole_sensitivities_in_several_dimensions_have_a_lower_bound_too() -> None:
    sigma, shift = 5.0, 3
    found = account(DiscreteGaussian(sigma, shift, 2)).interval(1e-4)
    # Any shift that occurs is bounded by the worst, and a lower bound by what some shift attains.
    worst = max(summed_delta(sigma, v, found.lower) for v in oracles.shifts(2, shift))
    assert worst >= 1e-4 * (1 - 1e-9)
    assert found.lower < found.upper < 1.2 * found.lower
    with pytest.raises(DefocusError, match="no certified lower bound"):
        account(DiscreteGaussian(sigma, 2.5, 2)).interval(1e-4)


def test_smoothing_is_tight_for_wide_noise_and_brackets_the_nominal_value() -> None:
    around = smoothed(DiscreteGaussian(1000, 300, 50))
    assert around.mu_below < 0.3 < around.mu
    assert around.mu - around.mu_below < 1e-5
    assert 0 < around.blur < 1e-15


def test_one_entry_at_a_time_needs_no_smoothing() -> None:
    for event in (
        DiscreteGaussian(2, 1, 1000),
        DiscreteGaussian(2, 1.4, 9),
        DiscreteGaussian(2, 0.5, 3),
        DiscreteGaussian(2, 7.9),
    ):
        profile = lower(event, ADD)[0].profile
        assert isinstance(profile, DiscreteGaussianProfile)
        assert profile.shift == max(1, int(event.sensitivity))
    assert isinstance(lower(DiscreteGaussian(5000, 1), ADD)[0].profile, GaussianProfile)
    assert isinstance(lower(DiscreteGaussian(2000, 5000), ADD)[0].profile, GaussianProfile)


@pytest.mark.parametrize("shift", [1, 3, 10])
def test_table_and_smoothing_agree_where_both_apply(shift: int) -> None:
    sigma = 40.0
    table = account(DiscreteGaussian(sigma, shift)).epsilon(1e-6)
    around = smoothed(DiscreteGaussian(sigma, shift))
    assert oracles.gaussian_epsilon(around.mu_below, 1e-6) * 0.999 <= table
    assert table <= oracles.gaussian_epsilon(around.mu, 1e-6) * (1 + 1e-9) + 0.5 * shift / sigma**2


# -- sampling, enumerated ----------------------------------------------------------------------------------------------

Output = dict[object, mp.mpf]


def noisy_sum(values: Sequence[int], scale: float) -> Output:
    """Discrete Laplace noise on a sum of a few small integers; both tails gathered far out, where losses are flat."""
    a = mp.exp(-1 / mp.mpf(scale))
    at, total = (1 - a) / (1 + a), sum(values)
    law: Output = {x: at * a ** abs(x - total) for x in range(-11, 12)}
    law["left"], law["right"] = a ** (12 + total) / (1 + a), a ** (12 - total) / (1 + a)
    return law


def response(value: int, epsilon: float, categories: int) -> Output:
    e = mp.exp(mp.mpf(epsilon))
    return {k: (e if k == value else 1) / (e + categories - 1) for k in range(categories)}


def mixture(laws: Sequence[tuple[mp.mpf, Output]]) -> Output:
    found: Output = {}
    for weight, law in laws:
        for outcome, p in law.items():
            found[outcome] = found.get(outcome, mp.mpf(0)) + weight * p
    return found


def batch(data: Sequence[int], size: int, run: Callable[[Sequence[int]], Output]) -> Output:
    """Every sample without replacement, equally likely."""
    chosen = list(itertools.combinations(data, size))
    return mixture([(mp.mpf(1) / len(chosen), run(sample)) for sample in chosen])


def poisson(data: Sequence[int], rate: float, run: Callable[[Sequence[int]], Output]) -> Output:
    """Every subset, each unit in it independently."""
    q, laws = mp.mpf(rate), []
    for keep in itertools.product((0, 1), repeat=len(data)):
        weight = mp.fprod(q if bit else 1 - q for bit in keep)
        laws.append((weight, run([v for v, bit in zip(data, keep, strict=True) if bit])))
    return mixture(laws)


def hockey(laws: Sequence[Mapping[Any, mp.mpf]], epsilon: float) -> mp.mpf:
    p, q = laws
    e = mp.exp(mp.mpf(epsilon))
    return mp.fsum(max(mp.mpf(0), p[o] - e * q[o]) for o in p)


def replaced(values: Sequence[int], n: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All data sets of n units, up to order, and all with one unit replaced."""
    for rest in itertools.combinations_with_replacement(values, n - 1):
        for old, new in itertools.permutations(values, 2):
            yield (old, *rest), (new, *rest)


def added(values: Sequence[int], n: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All data sets of n units and all with one more, both ways round."""
    for rest in itertools.combinations_with_replacement(values, n):
        for new in values:
            yield rest, (new, *rest)
            yield (new, *rest), rest


EPSILONS = (0.0, 0.05, 0.3, 0.8)


@pytest.mark.parametrize(("n", "size"), [(2, 1), (3, 1), (3, 2), (4, 2)])
@pytest.mark.parametrize(("values", "shift"), [((0, 1), 1), ((-1, 0, 1), 2)])
def test_batches_with_one_unit_replaced_cost_no_more_than_said(
    n: int, size: int, values: tuple[int, ...], shift: int
) -> None:
    scale = 1.5
    loss = account(SampledBatch(DiscreteLaplace(scale, shift), size, n), REPLACE)
    for epsilon in EPSILONS:
        worst = max(
            hockey([batch(d, size, lambda s: noisy_sum(s, scale)) for d in pair], epsilon)
            for pair in replaced(values, n)
        )
        assert worst <= loss.delta(epsilon) * (1 + 1e-12)
        assert worst >= 0.3 * loss.delta(epsilon)


@pytest.mark.parametrize(("n", "size"), [(1, 1), (2, 1), (2, 2), (3, 2)])
@pytest.mark.parametrize(("values", "shift"), [((0, 1), 1), ((-1, 0, 1), 2)])
def test_batches_with_one_unit_more_or_less_cost_no_more_than_said(
    n: int, size: int, values: tuple[int, ...], shift: int
) -> None:
    """Whether the population counts the unit or not; counting it, the bound is attained."""
    scale = 1.5
    with_unit = account(SampledBatch(DiscreteLaplace(scale, shift), size, n + 1))
    without = account(SampledBatch(DiscreteLaplace(scale, shift), size, n))
    for epsilon in EPSILONS:
        worst = max(
            hockey([batch(d, size, lambda s: noisy_sum(s, scale)) for d in pair], epsilon) for pair in added(values, n)
        )
        assert worst <= with_unit.delta(epsilon) * (1 + 1e-12)
        assert worst <= without.delta(epsilon) * (1 + 1e-12)
        assert worst == pytest.approx(with_unit.delta(epsilon), rel=1e-9)


@pytest.mark.parametrize("categories", [2, 3])
@pytest.mark.parametrize("n", [2, 3])
def test_one_unit_drawn_and_asked_costs_no_more_than_said(n: int, categories: int) -> None:
    epsilon = 1.2
    run = lambda s: response(s[0], epsilon, categories)  # noqa: E731  # short enough to read
    for adjacency, pairs in ((REPLACE, replaced(range(categories), n)), (ADD, added(range(categories), n - 1))):
        loss = account(SampledBatch(RandomizedResponse(epsilon, categories), 1, n), adjacency)
        laws = [[batch(d, 1, run) for d in pair] for pair in pairs]
        for at in EPSILONS:
            worst = max(hockey(both, at) for both in laws)
            assert worst <= loss.delta(at) * (1 + 1e-12)
            if adjacency is ADD:
                assert worst == pytest.approx(loss.delta(at), rel=1e-9)


@pytest.mark.parametrize("rate", [0.2, 0.7])
@pytest.mark.parametrize(("values", "shift"), [((0, 1), 1), ((-1, 0, 1), 2)])
def test_poisson_samples_cost_no_more_than_said_under_either_adjacency(
    rate: float, values: tuple[int, ...], shift: int
) -> None:
    """Sums of values in [-1, 1]: adding a unit moves them by 1, replacing one by up to 2."""
    scale, n = 1.5, 2
    run = lambda s: noisy_sum(s, scale)  # noqa: E731  # short enough to read
    for adjacency, pairs, inner in ((REPLACE, replaced(values, n), shift), (ADD, added(values, n), 1)):
        loss = account(Sampled(DiscreteLaplace(scale, inner), rate), adjacency)
        laws = [[poisson(d, rate, run) for d in pair] for pair in pairs]
        for at in EPSILONS:
            worst = max(hockey(both, at) for both in laws)
            assert worst <= loss.delta(at) * (1 + 1e-12)
            if adjacency is ADD:
                assert worst == pytest.approx(loss.delta(at), rel=1e-9)


@pytest.mark.parametrize("adjacency", Adjacency)
def test_a_poisson_sample_of_a_batch_sees_units_replaced(adjacency: Adjacency) -> None:
    """A batch of fixed size has one unit exchanged, also where the data has one more: what runs inside must bear it."""
    scale, rate, n, size = 1.5, 0.6, 3, 2
    event = SampledBatch(Sampled(DiscreteLaplace(scale, 1), rate), size, n)
    profile = lower(event, adjacency)[0].profile
    assert isinstance(profile, SampledProfile | Batched)
    assert isinstance(profile.inner, Batched)
    loss = account(event, adjacency)
    pairs = replaced((0, 1), n) if adjacency is REPLACE else added((0, 1), n - 1)
    laws = [[batch(d, size, lambda s: poisson(s, rate, lambda t: noisy_sum(t, scale))) for d in pair] for pair in pairs]
    for at in EPSILONS:
        assert max(hockey(both, at) for both in laws) <= loss.delta(at) * (1 + 1e-12)


def test_two_poisson_samples_in_a_row_cost_no_more_than_said() -> None:
    """Composition: the joint law of two independent runs, enumerated."""
    rate, scale, n = 0.4, 1.5, 2
    run = lambda s: noisy_sum(s, scale)  # noqa: E731  # short enough to read
    for adjacency, pairs in ((REPLACE, replaced((0, 1), n)), (ADD, added((0, 1), n))):
        loss = account(2 * Sampled(DiscreteLaplace(scale, 1), rate), adjacency)
        for pair in pairs:
            p, q = (poisson(d, rate, run) for d in pair)
            joint_p = {(a, b): p[a] * p[b] for a in p for b in p}
            joint_q = {(a, b): q[a] * q[b] for a in q for b in q}
            for at in (0.0, 0.5):
                assert hockey([joint_p, joint_q], at) <= loss.delta(at) * (1 + 1e-12)


@pytest.mark.parametrize("ratio", [10**100, 10**170, 10**400])
def test_a_gaussian_loses_something_however_wide_it_is(ratio: int) -> None:
    assert len(lower(Gaussian(ratio), ADD)) == 1
    assert account(Gaussian(ratio)).epsilon(0) == math.inf
    assert 0 < account(Gaussian(ratio)).delta(0) < 1e-14
    assert account(Gaussian(ratio) + Laplace(3)).epsilon(0) == math.inf

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from defocus.audit.bounds import below, bound, detectable, promise, upto

runs = st.integers(1, 5000)


@given(n=runs, p=st.floats(1e-6, 1 - 1e-6), alpha=st.floats(1e-9, 0.4))
def test_limits_fail_with_at_most_the_stated_probability_whatever_the_truth(n: int, p: float, alpha: float) -> None:
    counts = np.arange(n + 1)
    weights = binom.pmf(counts, n, p)
    assert weights[below(counts, n, alpha) > p].sum() <= alpha * (1 + 1e-6)
    assert weights[upto(counts, n, alpha) < p].sum() <= alpha * (1 + 1e-6)


@given(n=runs, share=st.floats(0, 1), alpha=st.floats(1e-9, 0.4))
def test_limits_are_ordered_mirror_images(n: int, share: float, alpha: float) -> None:
    k = round(share * n)
    assert 0 <= below(k, n, alpha) <= k / n <= upto(k, n, alpha) <= 1
    assert upto(k, n, alpha) == pytest.approx(1 - below(n - k, n, alpha), abs=1e-8)


def test_limits_are_those_of_the_published_table() -> None:
    # Clopper, Pearson (1934): 95 % limits for 10 of 20 are 0.272 and 0.728, for 1 of 10 0.0025 and 0.445.
    assert below(10, 20, 0.025) == pytest.approx(0.272, abs=5e-4)
    assert upto(10, 20, 0.025) == pytest.approx(0.728, abs=5e-4)
    assert below(1, 10, 0.025) == pytest.approx(0.0025, abs=5e-5)
    assert upto(1, 10, 0.025) == pytest.approx(0.445, abs=5e-4)


def test_never_and_always_have_the_closed_form() -> None:
    assert upto(0, 1000, 1e-3) == pytest.approx(1 - 1e-3 ** (1 / 1000), rel=1e-8)
    assert below(1000, 1000, 1e-3) == pytest.approx(1e-3 ** (1 / 1000), rel=1e-8)


@given(k=st.integers(0, 1000), j=st.integers(0, 1000), delta=st.floats(0, 0.99), claimed=st.floats(0, 50))
def test_the_bound_is_never_above_the_ratio_that_was_seen(k: int, j: int, delta: float, claimed: float) -> None:
    proven = bound((k, j), 1000, 1e-3, delta=delta, claimed=claimed)
    assert proven.epsilon >= 0
    if k / 1000 > delta and j:
        assert proven.epsilon <= max(0.0, math.log((k / 1000 - delta) / (j / 1000)))
    assert 0 <= proven.delta <= max(0.0, k / 1000 - math.exp(claimed) * j / 1000)


@given(k=st.integers(0, 1000), j=st.integers(0, 1000), delta=st.floats(0, 0.5))
def test_the_bound_falls_with_delta_and_rises_with_alpha(k: int, j: int, delta: float) -> None:
    strict = bound((k, j), 1000, 1e-6, delta=delta, claimed=None).epsilon
    assert strict <= bound((k, j), 1000, 1e-2, delta=delta, claimed=None).epsilon
    assert strict <= bound((k, j), 1000, 1e-6, delta=delta / 2, claimed=None).epsilon


@pytest.mark.parametrize(("p", "q", "delta"), [(0.5, 0.2, 0.0), (0.9, 0.05, 0.1), (0.3, 0.3, 0.0), (0.2, 0.01, 0.05)])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_the_bound_exceeds_the_truth_with_at_most_the_stated_probability(
    p: float, q: float, delta: float, alpha: float
) -> None:
    counts = range(41)
    truth = max(0.0, math.log((p - delta) / q))
    wrong = sum(
        binom.pmf(k, 40, p) * binom.pmf(j, 40, q)
        for k in counts
        for j in counts
        if bound((k, j), 40, alpha, delta=delta, claimed=None).epsilon > truth
    )
    assert wrong <= alpha


def test_each_probability_gets_half_of_the_error() -> None:
    p, q = float(below(600, 1000, 0.005)), float(upto(200, 1000, 0.005))
    assert bound((600, 200), 1000, 0.01, delta=0.1, claimed=None).epsilon == pytest.approx(math.log((p - 0.1) / q))


def test_a_huge_claim_does_not_overflow() -> None:
    assert bound((1000, 0), 1000, 1e-3, delta=0.0, claimed=1e6).delta == 0


def test_the_approximation_used_for_choosing_is_close_to_the_bound() -> None:
    for k, j in ((30_000, 10_000), (500, 20), (49_999, 1)):
        exact = bound((k, j), 50_000, 1e-3, delta=0.0, claimed=None).epsilon
        assert float(promise(k, j, 50_000, 1e-3, 0.0)) == pytest.approx(exact, abs=0.3)


@pytest.mark.parametrize(("runs", "claimed", "delta"), [(500, 1.0, 0.0), (50_000, 1.0, 0.0), (20_000, 0.5, 0.01)])
def test_a_loss_at_the_detectable_level_is_called_nine_times_in_ten(runs: int, claimed: float, delta: float) -> None:
    level = detectable(runs, 1e-3, delta=delta, claimed=claimed)
    rng = np.random.default_rng(5)

    def called(loss: float) -> float:
        hits = rng.binomial(runs, 0.5, 400), rng.binomial(runs, (0.5 - delta) * math.exp(-loss), 400)
        found = [
            bound((int(k), int(j)), runs, 1e-3, delta=delta, claimed=None).epsilon for k, j in zip(*hits, strict=True)
        ]
        return float(np.mean(np.array(found) > claimed))

    assert called(level) > 0.9
    assert called((level + claimed) / 2) < 0.9


def test_more_runs_detect_less_and_hopeless_runs_say_so() -> None:
    levels = [detectable(n, 1e-3, delta=0.0, claimed=1.0) for n in (100, 1000, 10_000, 100_000)]
    assert levels == sorted(levels, reverse=True)
    assert detectable(10, 1e-3, delta=0.0, claimed=3.0) == math.inf
    assert detectable(1000, 1e-3, delta=0.5, claimed=1.0) == math.inf

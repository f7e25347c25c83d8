import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from defocus.errors import DefocusError, UnfitDataError
from defocus.mechanisms import PartitionSelection
from defocus.mechanisms.partition_selection import _rule
from defocus.noise.enclosures import exp_bounds
from defocus.noise.testing import replay, seeded
from defocus.privacy import Budget, events
from defocus.privacy.accounting import account

epsilons = st.fractions(Fraction(1, 50), 5, max_denominator=1000)
deltas = st.sampled_from([Fraction(1, 10**9), Fraction(1, 10**5), Fraction(1, 97), Fraction(1, 3), Fraction(19, 20)])


@given(epsilon=epsilons, delta=deltas)
def test_every_step_of_the_rule_keeps_the_promise_exactly(epsilon: Fraction, delta: Fraction) -> None:
    """Both inequalities, divided by e^epsilon, which is enclosed from the unfavourable side: no rounding is trusted."""
    rule = _rule(epsilon, delta)
    one = 1 << rule.precision
    _, high = exp_bounds(epsilon.numerator, epsilon.denominator, 600)
    shrink = Fraction(high, 1 << 600)
    p = [Fraction(x, one) for x in rule.scaled]
    assert p[0] == 0
    assert p[-1] == 1
    for now, then in itertools.pairwise(p):
        assert now <= then, "so the other two inequalities follow"
        assert shrink * max(Fraction(0), then - delta) <= now
        assert shrink * max(Fraction(0), 1 - now - delta) <= 1 - then


@given(epsilon=epsilons, delta=deltas)
def test_no_rule_could_keep_more(epsilon: Fraction, delta: Fraction) -> None:
    """Every probability is within 2**-150 of the most that its predecessor allows."""
    rule = _rule(epsilon, delta)
    with mpmath.workdps(80):
        grow, d = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator), mpmath.mpf(delta.numerator)
        d /= delta.denominator
        p = [mpmath.mpf(x) / (1 << rule.precision) for x in rule.scaled]
        for now, then in itertools.pairwise(p):
            most = min(grow * now + d, 1 - (1 - now - d) / grow, mpmath.mpf(1))
            assert most - then <= mpmath.mpf(2) ** -150


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-5), (0.1, 1e-8), (3, 1e-2)])
def test_the_published_closed_form_agrees(epsilon: float, delta: float) -> None:
    """Desfontaines, Voss, Gipson, Mandayam (2022), Theorem 1, with its two turning points n1 and n2."""
    rule = _rule(Fraction(epsilon), Fraction(delta))
    with mpmath.workdps(50):
        e, d = mpmath.mpf(epsilon), mpmath.mpf(delta)
        n1 = 1 + mpmath.floor(mpmath.log((mpmath.exp(e) + 2 * d - 1) / (d * (mpmath.exp(e) + 1))) / e)

        def rising(n: Any) -> Any:
            return (mpmath.exp(n * e) - 1) / (mpmath.exp(e) - 1) * d

        at = rising(n1)
        n2 = n1 + mpmath.floor(mpmath.log(1 + (mpmath.exp(e) - 1) / d * (1 - at)) / e)
        for n, scaled in enumerate(rule.scaled):
            m = n - n1
            falling = (1 - mpmath.exp(-m * e)) * (1 + d / (mpmath.exp(e) - 1)) + mpmath.exp(-m * e) * at
            expected = rising(n) if n <= n1 else falling if n <= n2 else mpmath.mpf(1)
            assert abs(mpmath.mpf(scaled) / (1 << rule.precision) - expected) < 1e-30
        assert len(rule.scaled) == n2 + 2


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 7, 40])
def test_all_keys_of_a_unit_fit_the_budget_and_fill_it(groups: int, replace: bool) -> None:
    keys = PartitionSelection(epsilon=1, delta=1e-6, groups=groups, replace=replace)
    assert keys.event == groups * (2 if replace else 1) * keys.each
    loss = account(keys.event)
    assert Budget(1, 1e-6).covers(loss)
    assert loss.epsilon(1e-6) > 0.999


def test_replacing_a_unit_touches_the_keys_of_both() -> None:
    one = PartitionSelection(epsilon=1, delta=1e-6, groups=6)
    both = PartitionSelection(epsilon=1, delta=1e-6, groups=3, replace=True)
    assert one.event == both.event


def test_many_groups_gain_from_advanced_composition() -> None:
    keys = PartitionSelection(epsilon=1, delta=1e-6, groups=100)
    even = _rule(Fraction(1, 100), Fraction(1, 10**8))
    half = next(n for n, p in enumerate(even.scaled) if 2 * p >= 1 << even.precision)
    assert keys.threshold() < 0.6 * half


def test_the_law_of_two_keys_together_stays_within_the_composed_event() -> None:
    """All outcomes of two keys that one unit is in, before and after, in both directions."""
    keys = PartitionSelection(epsilon=1, delta=0.05, groups=2)
    for a in range(12):
        for b in range(12):
            laws = []
            for x, y in ((a, b), (a + 1, b + 1)):
                p, q = keys.probability(x), keys.probability(y)
                laws.append([p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q)])
            for first, second in (laws, laws[::-1]):
                lost = math.fsum(max(0.0, x - math.e * y) for x, y in zip(first, second, strict=True))
                assert lost <= 0.05 + 1e-12


def test_previews_follow_from_the_rule() -> None:
    keys = PartitionSelection(epsilon=1, delta=1e-3)
    p = [keys.probability(n) for n in range(30)]
    assert p[0] == 0
    assert p == sorted(p)
    assert keys.threshold() == next(n for n in range(30) if p[n] >= 0.5)
    assert keys.interval(0.9) == keys.threshold(0.9) == next(n for n in range(30) if p[n] >= 0.9)
    assert keys.error == pytest.approx(sum(1 - x for x in p))
    assert keys.probability(10**30) == 1


def test_keys_that_nobody_has_are_never_kept_and_large_ones_always() -> None:
    keys = PartitionSelection(epsilon=10, delta=0.9)
    kept = keys.keep(np.array([0, -1, -(2**63), 2**63 - 1, 1000] * 400), seeded(1)).reshape(400, 5)
    assert kept.all(axis=0).tolist() == [False, False, False, True, True]
    assert not kept[:, :3].any()


@pytest.mark.statistical
def test_keys_are_kept_as_often_as_declared_and_not_ten_per_cent_more() -> None:
    keys, bits = PartitionSelection(epsilon=Fraction(1, 2), delta=1e-3), seeded(6)
    for n in (3, 8, 12, 17):
        seen, p = int(keys.keep(np.full(40_000, n), bits).sum()), keys.probability(n)
        assert stats.binomtest(seen, 40_000, p).pvalue > 1e-4
        others = [float(_at(n, 0.5 * off)) for off in (1.1, 1 / 1.1)]
        assert max(stats.binomtest(seen, 40_000, other).pvalue for other in others) < 1e-6 or n == 3


def _at(n: int, epsilon: float) -> Fraction:
    rule = _rule(Fraction(epsilon), Fraction(1e-3))
    return Fraction(rule.scaled[min(n, len(rule.scaled) - 1)], 1 << rule.precision)


def test_a_word_that_ties_is_settled_by_further_bits() -> None:
    keys = PartitionSelection(epsilon=1, delta=1e-3)
    rule = _rule(Fraction(keys.each.epsilon), Fraction(keys.each.delta))
    tie = int(rule.leading[4])
    rest = rule.precision - 64
    exact = rule.scaled[4] & ((1 << rest) - 1)
    for word, following, kept in (
        (tie - 1, 2**64 - 1, True),
        (tie + 1, 0, False),
        (tie, 0, True),
        (tie, 2**64 - 1, False),
    ):
        assert keys.keep([4], replay([word, following], seeded(1))).tolist() == [kept]
    words = [exact >> (rest - 64 * (i + 1)) & (2**64 - 1) for i in range(rest // 64)]
    assert keys.keep([4], replay([tie, *words], seeded(1))).tolist() == [False], "equal to the last bit is not below"


@settings(max_examples=20)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=50))
def test_no_counts_are_refused(counts: list[int]) -> None:
    kept = PartitionSelection(epsilon=1, delta=1e-6).keep(counts, seeded(1))
    assert kept.dtype == np.bool_
    assert len(kept) == len(counts)


@pytest.mark.parametrize(
    ("what", "match"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 1e-12}, "epsilon"),
        ({"epsilon": 1e5}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"delta": 1}, "delta"),
        ({"delta": 1e-50}, "delta"),
        ({"groups": 0}, "groups"),
        ({"groups": 1.5}, "groups"),
        ({"replace": 1}, "replace"),
    ],
)
def test_parameters_out_of_range_are_refused(what: dict[str, Any], match: str) -> None:
    with pytest.raises(DefocusError, match=match) as refusal:
        PartitionSelection(**{"epsilon": 1, "delta": 1e-6, "groups": 2, **what})
    assert refusal.value.fix


@pytest.mark.parametrize("counts", [[0.5], [True], "3", None, [[1], [2]], []])
def test_counts_that_are_none_are_refused(counts: Any) -> None:
    with pytest.raises(UnfitDataError):
        PartitionSelection(epsilon=1, delta=1e-6).keep(counts)


def test_the_event_of_one_key_is_read_from_the_fields() -> None:
    each = PartitionSelection(epsilon=1, delta=1e-6, groups=2).each
    assert isinstance(each, events.Approximate)
    assert float(each.epsilon) == pytest.approx(0.5)
    assert float(each.delta) == pytest.approx(5e-7)

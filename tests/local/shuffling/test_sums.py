import math
from fractions import Fraction

import numpy as np
import pytest

from defocus.errors import (
    InvalidParameterError,
    TooFewUsersError,
    UnfitDataError,
    UnsupportedEventError,
)
from defocus.local.domains import Interval
from defocus.local.shuffling import MultiMessageSum
from defocus.local.shuffling.sums import chance_for, delta_of
from defocus.noise.testing import seeded
from defocus.privacy import account

ASKED = MultiMessageSum(Interval(-1, 3), users=1600, epsilon=1, delta=1e-6)


def test_the_event_keeps_what_was_promised() -> None:
    loss = account(ASKED.event, "basic", "replace")
    assert loss.epsilon(1e-6) <= 1 + 1e-9
    assert loss.delta(1.001) > 5e-7
    with pytest.raises(UnsupportedEventError, match="replace=True"):
        account(ASKED.event)


@pytest.mark.statistical
def test_sums_are_unbiased_with_no_more_than_the_stated_error() -> None:
    """Numbers half-way between levels, where rounding is worst, and numbers on a level, where it adds nothing."""
    source = seeded(4)
    step = 4 / ASKED.levels
    for number, error in ((-1 + 2.5 * step, ASKED.error), (-1 + 2 * step, ASKED.noise)):
        values = np.full(1600, number)
        off = np.array([ASKED.sum(ASKED.encode(values, source)) - values.sum() for _ in range(400)])
        assert abs(off.mean()) < 4 * error / 20
        ratio = off.var() / error**2
        assert abs(ratio - 1) < 4 * math.sqrt(2 / 400)
        assert abs(ratio / 1.3**2 - 1) > 4 * math.sqrt(2 / 400)


def test_the_error_does_not_grow_with_the_users() -> None:
    few, many = (MultiMessageSum(Interval(0, 1), n, 1, 1e-6).error for n in (1000, 10**5))
    assert many < 1.3 * few


def test_bad_data_is_refused() -> None:
    for bad in ([1.0] * 1599, [[1.0] * 1600], []):
        with pytest.raises(UnfitDataError):
            ASKED.encode(bad)
    assert ASKED.mean(ASKED.encode([99.0] * 1600, seeded(1))) == pytest.approx(3, abs=6 * ASKED.error / 1600)


def test_fewer_users_than_were_counted_on_are_refused_and_cost_more() -> None:
    with pytest.raises(TooFewUsersError, match=r"too few coins[^\n]*\nTo fix: .*event_among"):
        ASKED.sum(7, users=1599)
    with pytest.raises(TooFewUsersError):
        ASKED.mean(7, users=200)
    with pytest.raises(TooFewUsersError):
        ASKED.server().mean()
    assert account(ASKED.event_among(800), "basic", "replace").delta(1.001) > 1e-5
    assert ASKED.event_among(1600) == ASKED.event


@pytest.mark.parametrize("change", [{"users": 0}, {"epsilon": -1}, {"delta": 0}, {"delta": 1}, {"levels": 10**6}])
def test_bad_parameters_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(InvalidParameterError):
        MultiMessageSum(**({"domain": Interval(0, 1), "users": 10, "epsilon": 1, "delta": 0.1} | change))  # type: ignore[arg-type]  # one of them is bad


def masses(trials: int, chance: Fraction) -> list[Fraction]:
    return [math.comb(trials, c) * chance**c * (1 - chance) ** (trials - c) for c in range(trials + 1)]


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
@pytest.mark.parametrize("shift", [1, 3])
def test_one_count_agrees_with_exact_sums(epsilon: float, shift: int) -> None:
    law = masses(12, Fraction(1, 3))
    moved = [Fraction(0)] * shift + law
    still = law + [Fraction(0)] * shift
    grown = Fraction(math.exp(epsilon))
    truth = max(
        sum(max(Fraction(0), a - grown * b) for a, b in zip(one, other, strict=True))
        for one, other in ((moved, still), (still, moved))
    )
    assert float(truth) <= delta_of(12, Fraction(1, 3), (shift,), epsilon) <= float(truth) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_two_counts_agree_with_exact_sums(epsilon: float) -> None:
    law = masses(9, Fraction(1, 4))
    up, still = [Fraction(0), *law], [*law, Fraction(0)]
    grown = Fraction(math.exp(epsilon))
    truth = sum(
        max(Fraction(0), up[i] * still[j] - grown * still[i] * up[j]) for i in range(len(up)) for j in range(len(up))
    )
    assert float(truth) <= delta_of(9, Fraction(1, 4), (1, -1), epsilon) <= float(truth) * (1 + 1e-9) + 1e-12


def test_the_chance_found_suffices_and_a_smaller_one_does_not() -> None:
    found = chance_for(5000, (1, -1), 1, 1e-6)
    assert delta_of(5000, found, (1, -1), 1) <= 1e-6
    assert delta_of(5000, found * Fraction(99, 100), (1, -1), 1) > 1e-6
    assert 2**32 % found.denominator == 0

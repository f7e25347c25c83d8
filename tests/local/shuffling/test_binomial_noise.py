import math
from fractions import Fraction

import pytest

from defocus.errors import CannotCalibrateError
from defocus.local.shuffling.binomial_noise import chance_for, delta_of


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


def test_too_few_coins_are_refused() -> None:
    with pytest.raises(CannotCalibrateError, match="more users"):
        chance_for(10, (1, -1), 0.1, 1e-9)

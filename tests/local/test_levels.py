import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError
from defocus.local.levels import Levels, checked_epsilon, growth
from defocus.noise.testing import replay, seeded

epsilons = st.fractions(Fraction(1, 1024), 32, max_denominator=10**6)


@given(epsilons)
def test_e_to_the_epsilon_is_enclosed(epsilon: Fraction) -> None:
    low, high = growth(epsilon)
    assert low < high < low * (1 + Fraction(1, 1 << 120))
    assert float(low) == pytest.approx(math.exp(epsilon), rel=1e-14)


@given(epsilons, st.integers(1, 10**6), st.integers(1, 10**6))
def test_weights_never_exceed_epsilon_and_fit_a_word(epsilon: Fraction, favoured: int, others: int) -> None:
    try:
        levels = Levels.of(favoured=favoured, others=others, epsilon=epsilon)
    except InvalidParameterError:
        assert (others + favoured * math.exp(epsilon)) * 2**12 > 2**63
        return
    below, above = growth(epsilon)
    assert levels.high <= levels.low * below
    assert levels.high >= levels.low * above * (1 - Fraction(1, 2**11))
    assert levels.total <= 2**64
    assert levels.total > 2**64 - 2**53


def test_each_cell_has_as_many_words_as_it_weighs() -> None:
    """The words at both ends of every cell name it, and the words between two ends cannot name another."""
    for favoured in (1, 3):
        levels = Levels.of(favoured=favoured, others=4, epsilon=1)
        ends, expected = [], []
        at = 0
        for i in range(favoured):
            ends += [at, at + levels.high - 1]
            expected += [(True, i)] * 2
            at += levels.high
        for i in range(4):
            ends += [at, at + levels.low - 1]
            expected += [(False, i)] * 2
            at += levels.low
        assert at == levels.total
        hit, index = levels.draw(len(ends), replay(ends, seeded(1)))
        assert list(zip(hit.tolist(), index.tolist(), strict=True)) == expected


def test_a_word_beyond_the_total_is_drawn_again() -> None:
    levels = Levels.of(favoured=1, others=4, epsilon=1)
    assert levels.total < 2**64
    hit, index = levels.draw(2, replay([2**64 - 1, 0, 2**64 - 1, levels.total - 1], seeded(1)))
    assert (hit.tolist(), index.tolist()) == ([False, True], [3, 0])


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, True, "1", 33, 2**-11, 10**400])
def test_an_epsilon_without_meaning_is_refused(epsilon: object) -> None:
    with pytest.raises(InvalidParameterError, match="epsilon"):
        checked_epsilon(epsilon)


@pytest.mark.statistical
def test_draws_have_the_declared_weights_and_no_others() -> None:
    levels = Levels.of(favoured=2, others=3, epsilon=1)
    hit, _ = levels.draw(40_000, seeded(3))
    sd = math.sqrt(0.25 / 40_000)
    assert abs(np.mean(hit) - float(levels.chance)) < 4 * sd
    assert abs(np.mean(hit) - 1.1 * float(levels.chance)) > 6 * sd

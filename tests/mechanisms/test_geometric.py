import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError
from defocus.mechanisms import Geometric, Laplace
from defocus.noise.testing import seeded


@given(st.fractions(Fraction(1, 100), 20), st.integers(1, 50))
def test_it_is_laplace_noise_of_scale_sensitivity_over_epsilon(epsilon: Fraction, bound: int) -> None:
    g, m = Geometric(epsilon=epsilon, sensitivity=bound), Laplace(scale=bound / epsilon, sensitivity=bound)
    assert g.event == m.event
    assert (g.error, g.variance, g.interval(0.9)) == (m.error, m.variance, m.interval(0.9))
    assert g.sample([1, 2, 3], seeded(4)).tolist() == m.sample([1, 2, 3], seeded(4)).tolist()


def test_alpha_of_the_classical_definition() -> None:
    """Ghosh, Roughgarden, Sundararajan (2012): P(0) = (1−α)/(1+α) with α = e^−ε; P(|X| > 0) is the rest."""
    alpha = math.exp(-0.5)
    g = Geometric(epsilon=0.5)
    assert g.error == pytest.approx(2 * alpha / (1 - alpha**2))
    assert g.variance == pytest.approx(2 * alpha / (1 - alpha) ** 2)
    assert g.interval((1 - alpha) / (1 + alpha) - 1e-9) == 0
    assert g.interval((1 - alpha) / (1 + alpha) + 1e-9) == 1


def test_an_epsilon_too_small_for_the_samplers_is_refused_when_it_is_made() -> None:
    with pytest.raises(InvalidParameterError, match="2\\*\\*40"):
        Geometric(epsilon=1e-15)

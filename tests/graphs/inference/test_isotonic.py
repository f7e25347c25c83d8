import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from defocus.graphs.inference import falling, rising

numbers = st.lists(st.integers(-50, 50), min_size=1, max_size=12)


@given(numbers)
def test_the_result_never_falls_and_keeps_the_sum(values: list[int]) -> None:
    fit = rising(values)
    assert (np.diff(fit) >= -1e-9).all()
    assert abs(fit.sum() - sum(values)) < 1e-6


@given(numbers, numbers)
def test_no_rising_vector_is_nearer(values: list[int], other: list[int]) -> None:
    size = min(len(values), len(other))
    given_values, rival = np.array(values[:size]), np.sort(other[:size])
    assert ((rising(given_values) - given_values) ** 2).sum() <= ((rival - given_values) ** 2).sum() + 1e-6


def test_a_rising_vector_stays_as_it_is_and_an_empty_one_is_empty() -> None:
    assert rising([1, 1, 5]).tolist() == [1, 1, 5]
    assert rising([]).tolist() == []


@given(numbers)
def test_falling_is_rising_upside_down(values: list[int]) -> None:
    assert np.allclose(falling(values), -rising([-v for v in values]))


def test_runs_of_equal_degrees_are_averaged_over() -> None:
    """Hay, Rastogi, Miklau, Suciu (2010): the squared error falls from n to the order of the number of runs."""
    generator = np.random.default_rng(3)
    truth = np.repeat([1.0, 40.0, 300.0], 500)
    noise = generator.laplace(0, 2, truth.size)
    before, after = (noise**2).sum(), ((rising(truth + noise) - truth) ** 2).sum()
    assert after < before / 40

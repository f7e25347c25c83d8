import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.graphs.inference import plausible_counts, rising
from defocus.mechanisms import Laplace
from defocus.noise.testing import seeded


def power_law(nodes: int, largest: int) -> np.ndarray:
    """Degrees that fall as a power, with the scatter that real ones have."""
    generator = np.random.default_rng(5)
    weights = np.arange(1, largest + 1) ** -1.6
    degrees = generator.choice(np.arange(1, largest + 1), size=nodes, p=weights / weights.sum())
    return np.bincount(degrees, minlength=nodes)


@pytest.mark.parametrize(("nodes", "epsilon"), [(4000, 1.0), (4000, 0.2), (20_000, 1.0)])
def test_it_errs_less_than_isotonic_regression(nodes: int, epsilon: float) -> None:
    counts = power_law(nodes, 300)
    mechanism, bits = Laplace(scale=2 / epsilon, sensitivity=2), seeded(11)
    plain, better = 0.0, 0.0
    for _ in range(5):
        noisy = mechanism.sample(np.cumsum(counts)[:-1], bits)
        fit = np.diff(np.concatenate([[0], np.clip(rising(noisy), 0, nodes), [nodes]]))
        plain += np.abs(fit - counts).sum()
        better += np.abs(plausible_counts(noisy, nodes, scale=2 / epsilon) - counts).sum()
    assert better < 0.9 * plain


def test_gaussian_noise_is_read_as_such() -> None:
    counts = power_law(4000, 300)
    noisy = np.rint(np.cumsum(counts)[:-1] + np.random.default_rng(1).normal(0, 6, 3999))
    fit = np.diff(np.concatenate([[0], np.clip(rising(noisy), 0, 4000), [4000]]))
    better = plausible_counts(noisy, 4000, scale=6, gaussian=True)
    assert np.abs(better - counts).sum() < 0.9 * np.abs(fit - counts).sum()


@given(st.lists(st.integers(0, 9), min_size=3, max_size=20))
def test_without_noise_the_truth_comes_back(counts: list[int]) -> None:
    total = sum(counts)
    found = plausible_counts(np.cumsum(counts)[:-1], total, scale=0.01)
    assert found.tolist() == counts


@given(
    st.lists(st.integers(-200, 300), min_size=0, max_size=30), st.integers(0, 100), st.sampled_from([0.5, 2.0, 20.0])
)
def test_whatever_comes_in_counts_that_are_not_negative_go_out(noisy: list[int], total: int, scale: float) -> None:
    found = plausible_counts(noisy, total, scale=scale)
    assert found.shape == (len(noisy) + 1,)
    assert np.isfinite(found).all()
    assert (found >= 0).all()


def test_too_much_work_gives_the_simple_answer() -> None:
    noisy = np.arange(3000.0)
    found = plausible_counts(noisy, 3000, scale=1000.0)
    assert np.allclose(found[1:], 1)

"""Discrete noise: the formulas against plain sums over the integers, at every scale."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.privacy.accounting.pld import oracles

from defocus.privacy.accounting.pld.discrete import DiscreteGaussianProfile, DiscreteLaplaceProfile


@settings(max_examples=80)
@given(scale=st.floats(-2, 2.5).map(lambda t: 10**t), shift=st.integers(1, 40), share=st.floats(-1.05, 1.05))
def test_discrete_laplace_of_any_scale_is_within_its_pad(scale: float, shift: int, share: float) -> None:
    l = share * shift / scale
    if l < -690:
        return
    profile = DiscreteLaplaceProfile(scale, shift)
    curve = profile.curve(np.array([l]))
    exact = oracles.finite(oracles.discrete_laplace(scale, shift)).excess(l)
    assert abs(float(curve.excess[0]) - exact) <= curve.pad[0]


@given(scale=st.floats(0.2, 50), shift=st.integers(1, 8))
def test_the_atoms_of_discrete_laplace_are_its_law(scale: float, shift: int) -> None:
    atoms = DiscreteLaplaceProfile(scale, shift).atoms()
    assert atoms is not None
    exact = sorted(oracles.discrete_laplace(scale, shift), key=lambda pair: pair[0] / pair[1])
    for loss, p, q, (a, b) in zip(atoms.losses, atoms.p, atoms.q, exact, strict=True):
        assert abs(mp.mpf(p) / a - 1) <= atoms.error
        assert abs(mp.mpf(q) / b - 1) <= atoms.error
        assert loss == pytest.approx(float(mp.log(a / b)), rel=1e-13, abs=1e-15)


def test_a_wide_discrete_laplace_is_the_continuous_one() -> None:
    n = 2**40
    l = np.linspace(-0.099, 0.099, 21)
    discrete = DiscreteLaplaceProfile(10.0 * n, float(n)).curve(l).excess
    continuous = [float(oracles.laplace(0.1).excess(x)) for x in l.tolist()]
    assert discrete.tolist() == pytest.approx(continuous, rel=1e-9)


def test_a_discrete_laplace_of_many_values_has_no_atoms() -> None:
    assert DiscreteLaplaceProfile(10.0, 9.0).atoms() is None
    assert DiscreteLaplaceProfile(10.0, 255.0).atomic
    assert not DiscreteLaplaceProfile(10.0, 256.0).atomic
    assert len(DiscreteLaplaceProfile(10.0, 255.0).grid(0.1, -30)) == 256


@settings(max_examples=60)
@given(sigma=st.floats(0.2, 6), shift=st.integers(1, 12), z=st.floats(-37, 37))
def test_a_discrete_gaussian_of_any_sigma_is_within_its_pad(sigma: float, shift: int, z: float) -> None:
    l = z * shift / sigma
    if abs(l) > 690:
        return
    curve = DiscreteGaussianProfile(sigma, shift).curve(np.array([l]))
    exact = oracles.finite(oracles.discrete_gaussian(sigma, shift)).excess(l)
    assert abs(float(curve.excess[0]) - exact) <= curve.pad[0]


@settings(max_examples=60)
@given(sigma=st.floats(0.2, 6), shift=st.integers(1, 5), x=st.integers(-20, 20), nudge=st.integers(-3, 3))
def test_at_its_own_losses_a_discrete_gaussian_is_within_its_pad(sigma: float, shift: int, x: int, nudge: int) -> None:
    """Rounding decides on which side an atom falls, and the atom may outweigh all beyond it."""
    l = (shift * shift - 2 * x * shift) / (2 * sigma * sigma)
    for _ in range(abs(nudge)):
        l = math.nextafter(l, math.copysign(math.inf, nudge))
    if abs(l) > 690:
        return
    curve = DiscreteGaussianProfile(sigma, shift).curve(np.array([l]))
    exact = oracles.finite(oracles.discrete_gaussian(sigma, shift)).excess(l)
    assert abs(float(curve.excess[0]) - exact) <= curve.pad[0]


def test_the_distribution_function_is_right_at_every_integer() -> None:
    sigma = 60.0
    profile = DiscreteGaussianProfile(sigma, 1)
    weight = [mp.exp(-(mp.mpf(x) ** 2) / (2 * mp.mpf(sigma) ** 2)) for x in range(-2400, 2401)]
    total, running = mp.fsum(weight), mp.mpf(0)
    places = np.arange(-2300, 2301).astype(np.float64)
    computed = dict(zip(places.tolist(), profile._cdf(places).tolist(), strict=True))
    for x, w in zip(range(-2400, 2401), weight, strict=True):
        running += w
        if x in computed and x % 7 == 0:
            log = float(mp.log(running / total))
            assert computed[x] == pytest.approx(log, rel=1e-15, abs=1e-15)
    assert profile._cdf(np.array([-1e9])).tolist() == [-math.inf]
    assert profile._cdf(np.array([1e9])).tolist() == [0.0]


def test_a_wide_discrete_gaussian_is_the_continuous_one() -> None:
    """To within the width of an atom."""
    profile = DiscreteGaussianProfile(1000.0, 1000)
    l = np.linspace(-6, 6, 25)
    continuous = [float(oracles.gaussian(1.0).excess(x)) for x in l.tolist()]
    assert profile.curve(l).excess.tolist() == pytest.approx(continuous, rel=1e-4)
    assert not profile.atomic
    assert np.all(np.diff(profile.grid(0.1, -30.0)) > 0)


def test_the_pad_grows_with_the_table_that_was_summed() -> None:
    small, large = (DiscreteGaussianProfile(s, int(s)) for s in (2.0, 4000.0))
    l = np.array([0.3333])
    assert float(large.curve(l).pad[0]) > float(small.curve(l).pad[0])


def test_shifting_further_is_never_harder_to_see() -> None:
    """Log-concave noise: a threshold test only gains from a larger shift."""
    l = np.linspace(0, 5, 40)
    for sigma in (0.4, 1.0, 3.3):
        curves = [DiscreteGaussianProfile(sigma, n).curve(l) for n in (1, 2, 3, 5)]
        for near, far in itertools.pairwise(curves):
            assert np.all(near.excess - near.pad <= far.excess + far.pad)

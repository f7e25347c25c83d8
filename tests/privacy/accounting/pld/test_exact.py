"""Enumerated compositions against enumeration in many digits."""

import math

import mpmath as mp
import numpy as np
import pytest
from tests.privacy.accounting.pld import oracles
from tests.privacy.accounting.pld.cases import atoms_of

from defocus.privacy.accounting.pld.atoms import Atoms
from defocus.privacy.accounting.pld.continuous import LaplaceProfile
from defocus.privacy.accounting.pld.exact import enumerated
from defocus.privacy.accounting.pld.profiles import Profile
from defocus.privacy.accounting.pld.sampling import SampledProfile
from defocus.privacy.events import Approximate, DiscreteLaplace, Pure, RandomizedResponse


def within(made: Atoms | None, pairs: oracles.Pairs, places: list[float]) -> None:
    assert made is not None
    curve = made.curve(np.array(places))
    for l, value, pad in zip(places, curve.excess.tolist(), curve.pad.tolist(), strict=True):
        assert abs(value - oracles.delta_of(pairs, l)) <= pad, l
        assert pad <= 1e-9


@pytest.mark.parametrize("epsilon", [1e-4, 0.3, 3.0, 40.0, 800.0])
@pytest.mark.parametrize("times", [2, 10, 60])
def test_repeated_coins_are_within_their_pad(epsilon: float, times: int) -> None:
    made = enumerated([(atoms_of(RandomizedResponse(epsilon)), times)])
    pairs = oracles.repeated(oracles.response(epsilon), times)
    within(made, pairs, [0.0, 0.3 * epsilon, epsilon, 0.31 * times * epsilon, 0.9 * times * epsilon])


def test_a_thousand_coins_match_the_binomial() -> None:
    made = enumerated([(atoms_of(Pure(0.1)), 1000)])
    p, q = oracles.response(0.1)[0]
    pairs = [
        (mp.binomial(1000, k) * p**k * q ** (1000 - k), mp.binomial(1000, k) * q**k * p ** (1000 - k))
        for k in range(1001)
    ]
    within(made, pairs, [0.0, 1.0, 10.0, 19.0, 40.0])


def test_many_categories_and_mixtures_are_within_their_pad() -> None:
    five, coin = oracles.response(1.0, 5), oracles.response(0.5)
    made = enumerated([(atoms_of(RandomizedResponse(1.0, 5)), 4), (atoms_of(RandomizedResponse(0.5)), 3)])
    within(made, oracles.both(oracles.repeated(five, 4), oracles.repeated(coin, 3)), [0.0, 0.7, 1.5, 3.0, 5.4])


def test_sampled_coins_and_discrete_laplace_are_within_their_pad() -> None:
    sampled = SampledProfile(atoms_of(RandomizedResponse(2.0)), 0.1)
    laplace = atoms_of(DiscreteLaplace(2.5, 3))
    made = enumerated([(sampled, 5), (laplace, 2)])
    exact = oracles.both(
        oracles.repeated(oracles.sampled(oracles.response(2.0), 0.1), 5),
        oracles.repeated(oracles.discrete_laplace(2.5, 3), 2),
    )
    within(made, exact, [0.0, 0.4, 1.0, 2.0, 3.5])


@pytest.mark.parametrize("failing", [1e-30, 1e-20, 1e-16, 1e-9, 0.3])
@pytest.mark.parametrize("times", [2, 7, 900])
def test_open_failures_add_up_however_small(failing: float, times: int) -> None:
    made = enumerated([(atoms_of(Approximate(1e-3, failing)), times)])
    assert made is not None
    lost = -mp.expm1(times * mp.log1p(-mp.mpf(failing)))
    beyond = made.curve(np.array([times * 1e-3 + 1.0]))
    assert abs(float(beyond.excess[0]) - lost) <= beyond.pad[0]
    assert float(beyond.excess[0] + beyond.pad[0]) >= lost
    assert float(beyond.pad[0]) <= 1e-9 * lost + 1e-299


def test_failures_without_any_other_loss_are_enumerated_too() -> None:
    made = enumerated([(atoms_of(Approximate(0, 0.01)), 5)])
    assert made is not None
    assert made.losses == (0.0,)
    assert made.at_infinity == pytest.approx(1 - 0.99**5, rel=1e-12)


def test_coins_whose_masses_underflow_are_still_seen() -> None:
    made = enumerated([(atoms_of(Pure(800)), 2)])
    assert made is not None
    assert not np.any(np.isnan(made.p))
    assert made.losses == (-1600.0, 0.0, 1600.0)
    assert made.p == pytest.approx((0.0, 0.0, 1.0))
    assert float(made.curve(np.array([1000.0])).excess[0]) == pytest.approx(1.0)


def test_what_cannot_be_enumerated_is_left_to_the_lattice() -> None:
    coin = atoms_of(RandomizedResponse(1.0))
    continuous: Profile = LaplaceProfile(1.0)
    assert enumerated([(continuous, 2)]) is None
    assert enumerated([(coin, 3), (continuous, 1)]) is None
    assert enumerated([(coin, 3999)]) is not None
    assert enumerated([(coin, 4000)]) is None
    assert enumerated([(coin, 63), (atoms_of(RandomizedResponse(0.5)), 62)]) is None


def test_nothing_is_one_atom_at_zero() -> None:
    made = enumerated([])
    assert made is not None
    assert (made.losses, made.p, made.at_infinity) == ((0.0,), (1.0,), 0.0)
    assert math.isclose(float(made.curve(np.array([0.0])).excess[0]), 0.0)

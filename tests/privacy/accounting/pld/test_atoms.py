"""Losses of finitely many values: sums over atoms, also where masses underflow."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy.accounting.pld import oracles

from defocus.privacy.accounting.pld.atoms import Atoms
from defocus.privacy.accounting.pld.profiles import U

coins = st.lists(st.tuples(st.floats(0.01, 1), st.floats(0.01, 1)), min_size=2, max_size=5)


def profile_of(weights: list[tuple[float, float]], lost: float = 0.0) -> tuple[Atoms, oracles.Pairs]:
    """Any pair of laws on a few outcomes; each puts ``lost`` where the other has none."""
    p_total, q_total = (mp.fsum(pair[side] for pair in weights) for side in (0, 1))
    kept = 1 - mp.mpf(lost)
    pairs = [(kept * a / p_total, kept * b / q_total) for a, b in weights]
    pairs.sort(key=lambda pair: pair[0] / pair[1])
    losses = tuple(float(mp.log(a / b)) for a, b in pairs)
    made = Atoms(losses, tuple(float(a) for a, _ in pairs), tuple(float(b) for _, b in pairs), lost, symmetric=False)
    return made, pairs + ([(mp.mpf(lost), mp.mpf(0)), (mp.mpf(0), mp.mpf(lost))] if lost else [])


@given(weights=coins, lost=st.sampled_from([0.0, 1e-40, 1e-9, 0.3]), l=st.floats(-6, 6))
def test_any_pair_of_laws_on_a_few_outcomes_is_within_its_pad(
    weights: list[tuple[float, float]], lost: float, l: float
) -> None:
    profile, pairs = profile_of(weights, lost)
    curve = profile.curve(np.array([l]))
    assert abs(float(curve.excess[0]) - oracles.finite(pairs).excess(l)) <= curve.pad[0]


@given(weights=coins, l=st.floats(-5, 5))
def test_tails_sum_to_one_and_split_at_the_threshold(weights: list[tuple[float, float]], l: float) -> None:
    profile, _ = profile_of(weights, 0.1)
    tails = profile.tails(np.array([l]))
    assert tails.p_above + tails.p_below == pytest.approx(1, abs=1e-12)
    assert tails.q_above + tails.q_below == pytest.approx(1, abs=1e-12)
    assert float(tails.p_above[0]) >= 0.1
    assert float(tails.q_below[0]) >= 0.1


def test_masses_too_small_for_a_float_do_not_hide_the_other_law() -> None:
    """At a loss of -800 P's mass underflows to zero, and Q's is nearly one."""
    profile = Atoms((-800.0, 800.0), (0.0, 1.0), (1.0, 0.0))
    l = np.array([-700.0, -10.0, -1.0, 1.0, 799.0])
    expected = [math.exp(-700), math.exp(-10), math.exp(-1), 1.0, -math.expm1(-1)]
    assert profile.curve(l).excess.tolist() == pytest.approx(expected, rel=1e-12)


def test_the_ends_are_the_outermost_atoms_unless_mass_lies_beyond() -> None:
    profile, _ = profile_of([(1, 2), (2, 1)])
    assert profile.top == profile.losses[-1] == pytest.approx(math.log(2))
    assert profile.bottom == profile.losses[0]
    assert profile_of([(1, 2), (2, 1)], 0.1)[0].bottom == -math.inf
    assert profile.atoms() is profile
    assert profile.grid(0.1, -5).tolist() == list(profile.losses)
    assert profile.atomic


def test_a_pad_covers_the_error_its_masses_declare() -> None:
    sure, unsure = (Atoms((-1.0, 1.0), (0.3, 0.7), (0.7, 0.3), error=error) for error in (0.0, 1e-6))
    l = np.array([0.0, 0.5])
    gap = unsure.curve(l).pad - sure.curve(l).pad
    assert gap == pytest.approx(1e-6 * sure.curve(l).excess, rel=1e-6)
    assert unsure.tails(l).error == pytest.approx(1e-6, rel=1e-6)
    assert np.all(sure.curve(l).pad < 200 * U)

import math
from fractions import Fraction

import numpy as np
import pytest

from defocus.privacy.accounting.shuffling import binomials
from defocus.privacy.accounting.shuffling.binomials import binomial, lower_half


@pytest.mark.parametrize(("trials", "odds"), [(1, 0.25), (7, 1.0), (60, 3.0), (400, 0.01)])
def test_masses_are_those_of_the_binomial_law_to_the_stated_error(trials: int, odds: float) -> None:
    window = binomial(trials, odds, 60.0)
    p = Fraction(odds) / (1 + Fraction(odds))
    for value, mass in zip(window.values.astype(int).tolist(), window.masses.tolist(), strict=True):
        exact = math.comb(trials, value) * p**value * (1 - p) ** (trials - value)
        assert abs(Fraction(mass) - exact) <= Fraction(window.error) * exact


def test_what_the_window_leaves_out_is_no_more_than_it_says() -> None:
    p, trials = Fraction(1, 5), 300
    window = binomial(trials, 0.25, 12.0)
    below = sum(math.comb(trials, c) * p**c * (1 - p) ** (trials - c) for c in range(window.first))
    beyond = sum(math.comb(trials, c) * p**c * (1 - p) ** (trials - c) for c in range(window.last + 1, trials + 1))
    assert 0 < below <= window.rest
    assert 0 < beyond <= window.rest


def test_tilted_pieces_agree_with_the_plain_convolution(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (40_000, 0.05), (30_000, 20.0)
    plain = lower_half(first, second, 90.0)
    monkeypatch.setattr(binomials, "_DIRECT", 1.0)
    pieces = lower_half(first, second, 60.0)
    at = np.arange(pieces.first, pieces.last + 1)
    reference = plain.masses[at - plain.first]
    assert np.all(np.abs(pieces.masses - reference) <= (pieces.error + plain.error) * reference)
    assert pieces.error < 1e-8


def test_no_trials_and_no_odds_leave_nothing_to_chance() -> None:
    assert binomial(0, 0.5, 30.0).masses.tolist() == binomial(9, 0.0, 30.0).masses.tolist() == [1.0]

"""Rows on an integer grid: never longer than the radius, and each a function of itself alone."""

from itertools import combinations_with_replacement, product
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from defocus.errors import InvalidParameterError
from defocus.learning.estimators import grid
from defocus.learning.estimators.grid import (
    Ball,
    Held,
    Persons,
    moment_error,
    moment_sum,
    moments,
    noisy_moments,
    squares,
    summed,
    tallied,
)
from defocus.mechanisms import Gaussian
from defocus.noise.testing import seeded

anything = arrays(
    np.float64,
    array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.floats(allow_nan=True, allow_infinity=True),
)


@given(rows=anything, norm=st.floats(1e-6, 1e6), constant=st.sampled_from([0.0, 0.25, 1.0]))
@settings(max_examples=150, deadline=None)
def test_no_row_is_longer_than_the_radius_whatever_it_holds(
    rows: np.ndarray,
    norm: float,
    constant: float,
) -> None:
    held = Ball(norm, 13, constant).hold(rows)
    assert (held == np.rint(held)).all()
    assert (squares(held) <= 4**13).all()


@given(rows=anything, norm=st.floats(1e-3, 1e3))
@settings(max_examples=60, deadline=None)
def test_a_row_becomes_the_same_whoever_is_beside_it_and_however_it_is_kept(
    rows: np.ndarray,
    norm: float,
) -> None:
    ball = Ball(norm, 13, 0.25)
    together = ball.hold(rows)
    for i, row in enumerate(rows):
        assert (ball.hold(row[np.newaxis])[0] == together[i]).all()
    assert (ball.hold(sp.csr_matrix(np.nan_to_num(rows, nan=0.0))).toarray() == together).all()


def test_rows_inside_the_ball_are_rounded_and_rows_outside_keep_their_direction() -> None:
    held = Ball(2.0, 13).hold(np.array([[0.5, -1.0], [30.0, 40.0], [0.0, 0.0]]))
    assert held[0].tolist() == pytest.approx([2048, -4096], abs=1)
    assert held[1].tolist() == pytest.approx([0.6 * 8192, 0.8 * 8192], abs=2)
    assert held[2].tolist() == [0, 0]


def test_missing_is_zero_and_infinity_is_the_edge() -> None:
    held = Ball(1.0, 13).hold(np.array([[np.nan, 0.5], [np.inf, 0.0], [-np.inf, 1.0]]))
    assert held[0, 0] == 0
    assert held[1, 0] == pytest.approx(8192, abs=1)
    assert held[2, 0] == pytest.approx(-8192, abs=1)


def test_mostly_empty_rows_are_kept_sparse_and_give_the_same_sums() -> None:
    dense = np.zeros((700, 100))
    dense[np.arange(700), np.arange(700) % 100] = 0.7
    ball = Ball(1.0, 13)
    held = ball.hold(dense)
    assert sp.issparse(held)
    weights = np.arange(1400.0).reshape(700, 2)
    assert (tallied(held, weights) == tallied(held.toarray(), weights)).all()
    assert (Held(held).times(np.ones((100, 1))) == held.toarray() @ np.ones((100, 1))).all()


def test_sums_of_rows_are_exact() -> None:
    rows = np.full((1000, 1), 8192.0)
    assert tallied(rows, np.full((1000, 1), 8191.0)).tolist() == [[1000 * 8192 * 8191]]


@pytest.mark.parametrize("norm", [5e-324, 1e-300, float("nan"), 1e200])
def test_a_norm_whose_inverse_or_square_is_no_float_is_refused(norm: float) -> None:
    with pytest.raises(InvalidParameterError, match="norm"):
        Ball(norm, 13)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_row_of_which_the_norm_is_not_known_is_zero(monkeypatch: pytest.MonkeyPatch, wrong: float) -> None:
    monkeypatch.setattr(grid, "squares", lambda rows: np.full(rows.shape[0], wrong))
    for rows in (np.array([[0.5, 0.1]]), sp.csr_matrix([[0.5, 0.1]])):
        held = Ball(1.0, 13).hold(rows)
        assert (squares(held) == 0).all()


def test_an_entry_that_is_no_number_is_zero_even_at_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "trunc", lambda values: np.full_like(values, np.nan))
    assert not Ball(1.0, 13).hold(np.array([[0.5, 0.1]])).any()


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=6))
def test_one_row_measures_at_most_five_times_its_squared_length(row: list[int]) -> None:
    vector = moments(np.array([row], dtype=np.float64)).astype(object)
    assert (vector**2).sum() <= 25 * sum(x * x for x in row) ** 2


def test_a_row_of_too_large_an_l1_norm_keeps_its_direction() -> None:
    ball = Ball(1.0, 13, l1_norm=0.5)
    (held,) = ball.hold(np.array([[0.6, -0.2]]))
    assert held.tolist() == pytest.approx([0.375 * ball.radius, -0.125 * ball.radius], abs=1.0)


def test_no_small_row_moves_second_moments_farther_in_l1_norm_than_is_charged() -> None:
    for width, bits in ((1, 3), (2, 3), (3, 2)):
        side = 2**bits
        found = [
            int(abs(moments(np.array([row], dtype=float))).sum())
            for row in product(range(-side, side + 1), repeat=width)
            if sum(x * x for x in row) <= 4**bits
        ]
        bound = moment_sum(width, bits, 1.0).l1_sensitivity
        assert max(found) <= bound
        assert max(found) > 0.75 * bound


@given(rows=anything, norm=st.floats(1e-6, 1e6), l1_norm=st.floats(0.1, 5), constant=st.sampled_from([0.0, 0.25]))
@settings(max_examples=150, deadline=None)
def test_no_row_is_longer_in_l1_norm_than_is_declared(
    rows: np.ndarray, norm: float, l1_norm: float, constant: float
) -> None:
    ball = Ball(norm, 13, constant, l1_norm * norm)
    held = ball.hold(rows)
    assert (held == np.rint(held)).all()
    assert (squares(held) <= 4**13).all()
    assert (abs(held).sum(axis=1) <= ball.length(held.shape[1]) * 2**13 * (1 + 1e-12)).all()
    alone = [ball.hold(row[np.newaxis])[0] for row in rows]
    assert (np.array(alone) == held).all()
    assert (ball.hold(sp.csr_matrix(np.nan_to_num(rows, nan=0.0))).toarray() == held).all()


def test_without_noise_to_speak_of_the_matrix_is_the_sum_of_products() -> None:
    rows = np.array([[3.0, -2.0, 1.0], [5.0, 5.0, 0.0]])
    found = noisy_moments(rows, Gaussian(sigma=1e-6, sensitivity=5, dimension=6), seeded(1))
    assert (found == rows.T @ rows).all()
    assert moment_sum(3, 10, 1.0).dimension == 6


def test_the_stated_error_bounds_the_eigenvalues_of_the_noise() -> None:
    noise = Gaussian(sigma=7000, sensitivity=5, dimension=60 * 61 // 2)
    values = np.linalg.eigvalsh(noisy_moments(np.zeros((1, 60)), noise, seeded(2)))
    assert 0.7 * moment_error(noise, 60) < np.abs(values).max() < 1.3 * moment_error(noise, 60)


@pytest.mark.parametrize("bits", [4, 20])
def test_rows_without_a_constant_have_nothing_beside_them(bits: int) -> None:
    assert Ball(1.0, bits).intercept == 0
    beside = Ball(1.0, bits, 1.0)
    assert 0 < beside.radius**2 + beside.intercept**2 <= 4**bits
    assert beside.intercept >= beside.radius


def test_no_person_adds_more_than_one_row_may_on_any_small_grid() -> None:
    ball = [np.array(v, dtype=float) for v in product(range(-3, 4), repeat=2) if v[0] ** 2 + v[1] ** 2 <= 9]
    for owned in combinations_with_replacement(ball, 3):
        for k in (1, 2, 3):
            added = summed(np.array(owned[:k]), Persons(np.zeros(k, np.int64)))
            assert (added**2).sum() <= 9
            assert added.tolist() == [int(sum(entry) / k) for entry in zip(*owned[:k], strict=True)]


whole = st.integers(-(2**13), 2**13)


@given(
    rows=st.lists(st.tuples(whole, whole, whole, st.integers(-1, 3), st.integers(-(2**13), 2**13)), min_size=1),
    sparse=st.booleans(),
    few=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_persons_are_averaged_exactly_towards_zero_however_rows_are_kept(
    rows: list[tuple[int, ...]], sparse: bool, few: bool
) -> None:
    expected = np.zeros((3, 1), object)
    for person in range(4):
        own = [row for row in rows if row[3] == person]
        for entry in range(3):
            total = sum(row[entry] * row[4] for row in own)
            expected[entry, 0] += (abs(total) // max(1, len(own))) * (1 if total > 0 else -1)
    matrix = np.array([row[:3] for row in rows], dtype=np.float64)
    kept = sp.csr_matrix(matrix) if sparse else matrix
    weights = np.array([[float(row[4])] for row in rows])
    with mock.patch.object(grid, "_AT_ONCE", 1 if few else grid._AT_ONCE):
        found = tallied(kept, weights, Persons(np.array([row[3] for row in rows])))
    assert found.tolist() == expected.tolist()
    alone = tallied(kept, weights, Persons(np.arange(len(rows))))
    assert (alone == tallied(kept, weights)).all()


@given(
    rows=arrays(np.int64, (5, 3), elements=st.integers(-(2**12), 2**12)),
    weights=arrays(np.int64, (5,), elements=st.integers(-(2**13), 2**13)),
    owners=st.lists(st.integers(0, 2), min_size=5, max_size=5),
)
@settings(max_examples=60, deadline=None)
def test_weighted_rows_and_what_units_add_are_whole_and_no_longer(
    rows: np.ndarray, weights: np.ndarray, owners: list[int]
) -> None:
    whole = rows.astype(np.float64)
    for matrix in (whole, sp.csr_matrix(whole)):
        alone = Held(matrix)
        weighted = alone.weighted(weights.astype(np.float64), 13)
        dense = weighted.toarray() if sp.issparse(weighted) else weighted
        assert (dense == np.trunc(rows * weights[:, np.newaxis] / 2**13)).all()
        assert (squares(dense) <= squares(whole)).all()
        persons = Held(matrix, Persons(np.array(owners))).units(weights.astype(np.float64), 11)
        added = persons.toarray() if sp.issparse(persons) else persons
        for who in range(max(owners) + 1):
            own = np.array(owners) == who
            if own.any():
                total = (rows[own] * weights[own, np.newaxis]).sum(axis=0)
                average = np.sign(total) * (abs(total) // own.sum())
                assert (added[who] == np.trunc(average / 2**11)).all()
    assert Held(whole, Persons(np.full(5, -1))).units(weights.astype(np.float64), 11).shape == (0, 3)

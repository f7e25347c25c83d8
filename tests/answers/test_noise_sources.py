"""Factored matrices are the plain ones they stand for, and noises survive being written down."""

import json
import math

import numpy as np
import pytest
from scipy import sparse

from defocus.answers.noise_sources import Atoms, Mix, Mixture, Noise, atoms_of, matrix_of


def mix(seed: int, rows: int = 6, atoms: int = 8, shared: int = 2) -> Mix:
    chance = np.random.default_rng(seed)

    def part(*shape: int) -> sparse.csr_array:
        return sparse.csr_array(np.round(chance.normal(size=shape) * (chance.random(shape) < 0.5), 2))

    return Mix(part(rows, atoms), part(rows, shared), part(shared, atoms))


def dense(one: Mix) -> np.ndarray:
    return np.asarray((one.own + one.shared @ one.common).toarray())


@pytest.mark.parametrize("seed", range(5))
def test_a_factored_matrix_is_the_plain_one(seed: int) -> None:
    one, other, by = mix(seed), mix(seed + 50, shared=3), np.arange(6.0) - 2
    weights = sparse.csr_array(np.random.default_rng(seed).integers(0, 2, (4, 6)).astype(float))
    members = sparse.csr_array(np.eye(4)[[0, 1, 2, 3, 0, 1]])
    assert np.allclose(one.dot(other), (dense(one) * dense(other)).sum(axis=1))
    assert np.allclose(dense(one + other), dense(one) + dense(other))
    assert np.allclose(dense(one.scaled(by)), by[:, None] * dense(one))
    assert np.allclose(dense(one.mixed(weights)), weights.toarray() @ dense(one))
    assert np.allclose(dense(one.pooled(weights, members)), members.toarray() @ weights.toarray() @ dense(one))


def test_what_cancels_is_nothing() -> None:
    one = mix(3)
    assert (one + one.scaled(-np.ones(6))).dot(one + one.scaled(-np.ones(6))).tolist() == [0] * 6


def test_entries_are_apart_if_no_noise_is_in_two() -> None:
    assert Mix.of(sparse.csr_array(np.eye(3))).apart
    assert not Mix.of(sparse.csr_array(np.ones((3, 1)))).apart
    assert not mix(1).apart


def test_columns_of_different_releases_of_numbers_meet_by_measurement_entry_and_cell() -> None:
    count = Noise({"a": np.array([[1.0, 1.0]])}, 1.96, linear=True)
    other = Noise({"b": np.array([[1.0], [2.0], [3.0]]), "a": np.array([[0.0, 5.0]])}, 1.96, linear=True)
    atoms = atoms_of([(count, 3), (other, 3)])
    assert atoms == Atoms({"a": 2, "b": 1}, 3)
    first, second = matrix_of(count, 3, atoms), matrix_of(other, 3, atoms)
    assert first.dot(second).tolist() == [5, 5, 5]
    kept = Mixture(matrix_of(count, 3, atoms_of([(count, 3)])), atoms_of([(count, 3)]), 1.96, linear=True)
    assert np.array_equal(dense(kept.over(atoms)), dense(first))
    assert dense(kept.taken([2, 0]).over(atoms)).tolist() == dense(matrix_of(count.taken([2, 0]), 2, atoms)).tolist()


def test_a_noise_is_read_as_it_was_written() -> None:
    factors = {"sums 0": np.array([[1.5, math.nan], [1e-300, -math.inf]]), "column x": np.array([[0.1]])}
    again = Noise.read(json.loads(json.dumps(Noise(factors, 2.1183, linear=False).out())))
    assert all(np.array_equal(again.factors[name], each, equal_nan=True) for name, each in factors.items())
    assert (again.width, again.linear, again.entries) == (2.1183, False, None)

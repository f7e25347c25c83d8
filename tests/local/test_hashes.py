from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError
from defocus.local import oracle
from defocus.local.clients import Client
from defocus.local.designs import design, from_json, to_json
from defocus.local.domains import Categories
from defocus.local.hashes import bloom_bits, bloom_positions, coordinates, field, points, prime_power, rank, vectors
from defocus.local.servers.supports import incidences, multiples
from defocus.noise.testing import seeded


def test_no_label_is_mistaken_for_the_bucket_of_others() -> None:
    """Whatever it is called: the bucket's number is a label like any other."""
    for label in ("3", "other", "", "/", "0"):
        asked = oracle("rappor", Categories(4, (label, "a", "b")), 4)
        found = asked.estimate(asked.encode([label, "zzz"] * 50, seeded(1)))
        assert len(found) == 4
        positions = bloom_positions(asked.domain, 16, 64, 2)
        assert (positions[:, 0] != positions[:, 3]).any()


def test_a_device_hashes_its_own_category_and_not_all_of_them() -> None:
    """So a description of many candidates does not keep a phone busy: a million hashes take seconds."""
    made = from_json(to_json(design("rappor", (1 << 16) - 1, 1, width=64, cohorts=64)))
    before = bloom_positions.cache_info().misses
    assert len(Client(made).report(12_345)) > 10
    assert bloom_positions.cache_info().misses == before


def test_bits_of_some_are_those_of_all() -> None:
    domain = Categories.of(["x", "y", "z"], outside="other")
    cohorts, codes = np.array([3, 0, 3, 1]), np.array([3, 1, 3, 0])
    found = bloom_bits(domain, cohorts, codes, 32, 3)
    assert np.array_equal(found, bloom_positions(domain, 5, 32, 3)[cohorts, codes])


ORDERS = [2, 3, 4, 5, 7, 8, 9, 16, 25, 27]


@pytest.mark.parametrize("q", ORDERS)
def test_a_field_obeys_the_laws_of_fields(q: int) -> None:
    f = field(q)
    a, b, c = (np.array(x, np.int16) for x in zip(*product(range(min(q, 9)), repeat=3), strict=True))
    assert np.array_equal(f.add(a, b), f.add(b, a))
    assert np.array_equal(f.multiply(a, b), f.multiply(b, a))
    assert np.array_equal(f.multiply(a, f.add(b, c)), f.add(f.multiply(a, b), f.multiply(a, c)))
    assert np.array_equal(f.multiply(a, f.multiply(b, c)), f.multiply(f.multiply(a, b), c))
    every = np.arange(q, dtype=np.int16)
    assert not f.add(every, f.negative(every)).any()
    assert np.array_equal(f.multiply(every[1:], f.inverses[1:]), np.ones(q - 1))


@pytest.mark.parametrize("q", [0, 1, 6, 12, 100, 1 << 15, 23**2, 10**4000])
def test_orders_that_no_field_here_has_are_refused(q: int) -> None:
    with pytest.raises(InvalidParameterError, match="no field"):
        field(q)


def test_powers_of_primes_are_told_from_other_numbers() -> None:
    found = [q for q in range(40) if prime_power(q)]
    assert found == [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32, 37]


@pytest.mark.parametrize(("q", "t"), [(2, 5), (3, 4), (4, 3), (5, 2), (9, 2)])
def test_points_are_directions_and_have_one_number_each(q: int, t: int) -> None:
    f, number = field(q), np.arange(points(q, t))
    x = vectors(number, q, t)
    assert np.array_equal(rank(f, x), number)
    assert len(set(zip(*(c.tolist() for c in x), strict=True))) == len(number)
    for scale in range(1, q):
        assert np.array_equal(rank(f, [f.multiply(c, np.array([scale], np.int16)) for c in x]), number)


@given(st.sampled_from([(2, 4), (3, 3), (4, 2), (5, 2), (8, 2), (9, 2)]), st.data())
def test_incidences_are_those_counted_one_by_one(shape: tuple[int, int], data: st.DataObject) -> None:
    q, t = shape
    f = field(q)
    counts = np.array(data.draw(st.lists(st.integers(0, 10**9), min_size=q**t, max_size=q**t)))
    every = coordinates(np.arange(q**t), q, t)
    found = incidences(f, counts, lambda c: multiples(f, c, q**t))
    for v in range(0, q**t, max(1, q**t // 9)):
        total = np.zeros(q**t, np.int16)
        for each in every:
            total = f.add(total, f.multiply(each, each[v : v + 1])).astype(np.int16)
        assert found[v] == counts[total == 0].sum()

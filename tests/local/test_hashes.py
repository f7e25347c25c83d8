import numpy as np

from defocus.local import oracle
from defocus.local.clients import Client
from defocus.local.designs import design, from_json, to_json
from defocus.local.domains import Categories
from defocus.local.hashes import bloom_bits, bloom_positions
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

from fractions import Fraction

import pytest
from tests.local.making import small

from defocus.errors import InvalidParameterError, NotShuffledError
from defocus.local import oracle
from defocus.local.designs import NAMES, Frequency, design, numeric
from defocus.local.shuffling import amplified, local_epsilon, local_event
from defocus.privacy import Pure, RandomizedResponse, Shuffled, SubsetResponse, account


def epsilon_of(event: Shuffled) -> float:
    return account(event, "basic", "replace").epsilon(1e-6)


@pytest.mark.parametrize("name", ["secure-aggregation", "prio", "none", 3])
def test_amplification_is_refused_where_nobody_shuffles(name: str) -> None:
    with pytest.raises(NotShuffledError, match="no amplification"):
        amplified(oracle("k-rr", 2, 1).design, 100, deployment=name)  # type: ignore[arg-type]  # names that are none


@pytest.mark.parametrize(
    ("name", "inside", "both"),
    [
        ("oue", 1 / (2.718281828 + 1), 1 / (2.718281828 + 1) ** 2),
        ("hadamard", 1 / 2, 1 / 4),
        ("olh", 1 / 4, 1 / 16),
    ],
)
def test_designs_are_described_by_their_sets(name: str, inside: float, both: float) -> None:
    event = local_event(design(name, 64, 1))
    assert isinstance(event, SubsetResponse)
    assert float(event.epsilon) == pytest.approx(1, rel=1e-3)
    assert float(event.inside) == pytest.approx(inside, rel=6e-2)
    assert float(event.both) == pytest.approx(both, rel=12e-2)


def test_what_is_not_two_level_counts_as_any_randomiser() -> None:
    assert local_event(numeric("hybrid", 0, 1, 1)) == Pure(1)
    assert local_event(numeric("duchi", 0, 1, 1)) == RandomizedResponse(1)
    assert local_event(design("k-rr", 5, 1)) == RandomizedResponse(1, 6)


@pytest.mark.parametrize("name", ["k-rr", "sue", "oue", "olh", "subset", "hadamard", "pgr", "cms", "hcms", "d-bit"])
def test_every_oracle_is_amplified_and_never_worse_than_any_randomiser(name: str) -> None:
    made = design(name, 50, 1)
    found, worst = epsilon_of(amplified(made, 800)), epsilon_of(Shuffled(Pure(1), 800))
    assert found <= worst * (1 + 1e-3)


@pytest.mark.parametrize("name", ["piecewise", "square-wave"])
def test_windows_over_numbers_hide_better_than_any_randomiser(name: str) -> None:
    made = numeric(name, 0, 1, 2, cells=64)
    event = local_event(made)
    assert isinstance(event, SubsetResponse)
    assert event.inside == Fraction(made.law["window"], 64)
    assert epsilon_of(amplified(made, 1000)) < 0.95 * epsilon_of(Shuffled(Pure(2), 1000))


def test_the_local_epsilon_found_fits_and_a_larger_one_does_not() -> None:
    found = local_epsilon(lambda e: design("k-rr", 2, e), 2000, 0.5, 1e-6)
    assert epsilon_of(amplified(design("k-rr", 2, found), 2000)) <= 0.5
    assert epsilon_of(amplified(design("k-rr", 2, found * 1.01), 2000)) > 0.5


@pytest.mark.parametrize("size", [3, 5, 6, 10, 100])
def test_sets_of_all_categories_but_one_are_amplified_too(size: int) -> None:
    """No category is in neither of two such sets, exactly, which no pair of floats says for every size."""
    event = local_event(design("subset", size, 1, outside="refuse", members=size - 1))
    assert isinstance(event, SubsetResponse)
    assert event.both == 2 * Fraction(event.inside) - 1
    assert epsilon_of(Shuffled(event, 100)) < 1


def test_every_design_of_counts_says_which_sets_it_favours() -> None:
    said = {name: getattr(small(name, 40, 1), "overlap", None) for name in NAMES}
    alike, varied = {"hadamard", "olh", "oue", "pgr", "subset", "sue"}, {"cms", "hcms"}
    assert {name for name in NAMES if said[name] == "alike"} == alike
    assert {name for name in NAMES if said[name] == "varied"} == varied
    for name in alike | varied:
        assert isinstance(local_event(small(name, 40, 1)), SubsetResponse)
    assert Frequency.overlap in {getattr(Frequency, each) for each in Frequency.__abstractmethods__}


def test_a_local_epsilon_stays_within_what_the_design_takes() -> None:
    found = local_epsilon(lambda e: numeric("duchi", 0, 1, e), 100, 14, 1e-6, at_most=16)
    assert 13 < found <= 16
    with pytest.raises(InvalidParameterError, match="at_most"):
        local_epsilon(lambda e: numeric("duchi", 0, 1, e), 100, 14, 1e-6, at_most=0)

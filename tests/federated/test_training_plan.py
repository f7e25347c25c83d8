"""Terms of a federated training: integers of bounded norm whatever floats did, and the noise that is charged."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from defocus.errors import InvalidParameterError
from defocus.federated.training_plan import TrainingPlan
from defocus.mechanisms import Gaussian
from defocus.mechanisms.noise_shares import NoiseShare
from defocus.privacy import account
from defocus.privacy.events import SampledGaussian

FACTS: dict[str, Any] = {"clients": 10, "rounds": 5, "clip": 1.5, "noise_multiplier": 2.0}
PLAN = TrainingPlan(**FACTS)
updates = arrays(np.float64, st.integers(1, 90), elements=st.floats(width=64))


@given(updates, st.sampled_from([1e-3, 1.0, 1.5, 3.0, 1e200]), st.sampled_from([None, 0.01, 0.5, 0.99]))
@settings(max_examples=300, deadline=None)
def test_no_client_brings_a_longer_vector_than_is_charged_for(
    update: np.ndarray, clip: float, quantile: float | None
) -> None:
    plan = TrainingPlan(**(FACTS | {"clip": clip, "quantile": quantile}))
    for now in [clip] if quantile is None else [clip, clip * 2**40, clip / 2**40, clip / 3]:
        vector = plan.encoded([update], now)
        assert sum(int(x) ** 2 for x in vector) <= plan.radius**2
        assert vector.dtype == np.int64
        assert len(vector) == plan.length(len(update)) == len(update) + (quantile is not None)


@given(st.floats(0.01, 0.99), st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=30))
@settings(max_examples=100, deadline=None)
def test_a_clip_that_follows_goes_to_where_so_many_changes_are_shorter(quantile: float, norms: list[float]) -> None:
    """Without noise. It goes down where more are short than should be; whoever could not train pulls it nowhere."""
    plan = TrainingPlan(**(FACTS | {"clients": 40, "quantile": quantile}))
    brought = [plan.encoded([np.array([norm, 0.0])]) for norm in norms]
    total = np.sum([*brought, plan.encoded([np.array([np.nan, 0.0])])], axis=0)
    mean, after = plan.decoded(total, 40)
    more = sum(norm <= 1.5 for norm in norms) - quantile * len(norms)
    assert np.log(after / 1.5) == pytest.approx(-0.2 * more / 40, abs=1e-6)
    assert mean[0] == pytest.approx(sum(min(norm, 1.5) for norm in norms) / 40, abs=1e-5)


def test_rounding_that_carries_a_vector_too_far_is_taken_back() -> None:
    """A vector at the bound of which every entry is rounded up."""
    plan = TrainingPlan(**(FACTS | {"clip": 1.0, "clients": 2**17, "noise_multiplier": 1.0}))
    assert plan.radius < 2**15
    sides = np.full(4096, (np.floor(plan.radius / 64) + 0.6) / plan.radius)
    assert np.linalg.norm(sides) <= 1.05
    rounded = np.rint(sides / max(1.0, np.linalg.norm(sides)) * plan.radius)
    vector = plan.encoded([sides])
    assert sum(int(x) ** 2 for x in vector) <= plan.radius**2
    assert np.abs(vector - rounded).max() <= 1


def test_what_is_left_of_an_update_is_its_direction_and_its_norm_up_to_the_clip() -> None:
    update = np.array([0.3, -0.4, 0.0])
    assert PLAN.decoded(PLAN.encoded([update[:1], update[1:]]), 1)[0] == pytest.approx(update, abs=1e-6)
    assert np.linalg.norm(PLAN.decoded(PLAN.encoded([100 * update]), 1)[0]) == pytest.approx(1.5, abs=1e-5)
    assert not PLAN.encoded([np.array([1.0, np.nan])]).any()
    assert not PLAN.encoded([np.array([1.0, np.inf])]).any()
    assert PLAN.encoded([np.array([1e308, 1e308])])[0] == PLAN.encoded([np.array([2.0, 2.0])])[0] > 0


@given(st.lists(st.integers(-(2**30), 2**30), min_size=1, max_size=200))
@settings(max_examples=200, deadline=None)
def test_norms_are_compared_in_integers(entries: list[int]) -> None:
    vector = np.array(entries, np.int64)
    for x in (vector, np.resize(vector, 400), vector // 2**8):
        assert PLAN.within(x) == (sum(int(each) ** 2 for each in x) <= PLAN.radius**2)


def test_sums_of_all_clients_and_their_noise_do_not_wrap() -> None:
    for number, z in ((10, 1.0), (5000, 0.5), (4, 40.0)):
        plan = TrainingPlan(**(FACTS | {"clients": number, "noise_multiplier": z}))
        share = plan.noise(7)
        assert isinstance(share, NoiseShare)
        assert number * plan.radius + 12 * share.variance**0.5 < 2.01**31


def test_noise_and_charge_are_those_of_the_plan() -> None:
    share = PLAN.noise(100)
    assert isinstance(share, NoiseShare)
    assert (share.honest, share.parties) == (9, 10)
    assert share.variance**0.5 == pytest.approx(2 * PLAN.radius * (10 / 9) ** 0.5, rel=1e-6)
    trusted = TrainingPlan(**FACTS, trusted=True, sampling=0.1)
    noise = trusted.noise(100)
    assert isinstance(noise, Gaussian)
    assert noise.variance**0.5 == pytest.approx(2 * trusted.radius)
    apart = account(5 * SampledGaussian(2.0, 0.1)).epsilon(1e-5)
    assert account(trusted.event(100)).epsilon(1e-5) == pytest.approx(apart, rel=1e-6)
    several = TrainingPlan(**FACTS, per_person=3)
    assert several.honest == 7  # a person with three clients knows three shares
    assert several.noise(9).sensitivity == 3 * several.radius
    assert account(several.event(9)).epsilon(1e-5) == pytest.approx(account(PLAN.event(9)).epsilon(1e-5), rel=1e-6)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sampling": 0.5}, "Sampling hides nobody"),
        ({"sampling": 0.5, "trusted": True, "per_person": 2}, "Sampling hides nobody"),
        ({"dropouts": 5}, "too few"),
        ({"bits": 16}, "32 or 64"),
        ({"per_person": 9, "dropouts": 1}, "too few"),
        ({"quantile": 0.0}, "quantile"),
        ({"quantile": 1.0}, "between 0 and 1"),
        ({"clip": 0}, "clip"),
        ({"rounds": 0}, "rounds"),
        ({"clients": 10**7, "trusted": True}, "too coarse"),
    ],
)
def test_terms_that_promise_nothing_are_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameterError, match=words):
        TrainingPlan(**(FACTS | change))

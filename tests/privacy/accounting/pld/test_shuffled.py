import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from defocus.errors import DefocusError
from defocus.privacy import account
from defocus.privacy.accounting.pld.shuffled import ShuffledProfile
from defocus.privacy.accounting.shuffling import amplification
from defocus.privacy.events import Pure, RandomizedResponse, Shuffled


def profile_of(epsilon: float, users: int) -> ShuffledProfile:
    found = amplification(Shuffled(Pure(epsilon), users))
    assert found is not None
    return ShuffledProfile(found)


@settings(max_examples=20, deadline=None)
@given(epsilon=st.floats(0.1, 5), users=st.integers(1, 2000), share=st.floats(0.01, 0.99))
def test_the_curve_is_symmetric_and_its_tails_are_those_of_one_pair(epsilon: float, users: int, share: float) -> None:
    profile = profile_of(epsilon, users)
    l = np.array([share * epsilon])
    above, below = profile.curve(l), profile.curve(-l)
    assert below.excess[0] == pytest.approx(np.exp(-l[0]) * above.excess[0], rel=1e-12)
    tails = profile.tails(l)
    assert tails.p_above - np.exp(l) * tails.q_above == pytest.approx(above.excess, rel=1e-9, abs=1e-14)
    mirrored = profile.tails(-l)
    assert mirrored.q_below == pytest.approx(tails.p_above)


def test_nothing_is_lost_beyond_the_local_epsilon() -> None:
    profile = profile_of(1, 100)
    assert profile.curve(np.array([1.0, 2.0, 50.0])).excess.tolist() == [0, 0, 0]
    assert (profile.bottom, profile.top) == (-1, 1)


def test_the_grid_rises_and_a_finer_one_has_more_points() -> None:
    profile = profile_of(2, 1000)
    coarse, fine = (profile.grid(step, -30.0) for step in (0.1, 0.005))
    assert np.all(np.diff(coarse) > 0)
    assert np.all(np.diff(fine) > 0)
    assert len(fine) > 3 * len(coarse)


def test_without_shuffling_one_user_loses_what_the_report_tells() -> None:
    for epsilon in (0.2, 0.9):
        alone = account(Pure(1)).delta(epsilon)
        assert account(Shuffled(Pure(1), 1), adjacency="replace").delta(epsilon) == pytest.approx(alone, rel=1e-6)


def test_there_is_no_lower_bound_to_promise() -> None:
    with pytest.raises(DefocusError, match="no certified lower bound"):
        account(Shuffled(RandomizedResponse(1), 100), adjacency="replace").interval(1e-6)

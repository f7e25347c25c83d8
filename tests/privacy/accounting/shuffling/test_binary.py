import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.privacy.accounting.shuffling.brute import k_rr, worst_delta

from defocus.errors import FormulaOutOfRangeError, InvalidParameterError
from defocus.privacy import Pure, Shuffled, account
from defocus.privacy.accounting.shuffling import binary
from defocus.privacy.accounting.shuffling.binary import CLOSED_FORMS, shuffled_epsilon
from defocus.privacy.accounting.shuffling.reports import reports_of
from defocus.privacy.events import RandomizedResponse

LOSSES = np.array([0.0, 0.05, 0.1, 0.3, 0.6, 0.95])


@pytest.mark.parametrize("users", range(1, 9))
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_the_exact_loss_of_few_users_is_found(users: int, epsilon: float) -> None:
    losses = LOSSES * epsilon
    truths = [worst_delta(k_rr(epsilon, 2), users, l) for l in losses]
    assert np.exp(binary.log_deltas(reports_of(RandomizedResponse(epsilon)), users, losses)) == pytest.approx(
        truths, rel=1e-9, abs=1e-300
    )


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_no_choice_of_the_others_bits_exceeds_the_bound(epsilon: float) -> None:
    """Blocks of many k at once, against every k by itself."""
    users, reports = 1500, reports_of(RandomizedResponse(epsilon))
    losses = np.linspace(0, 0.3, 7) * epsilon
    bound = binary.log_deltas(reports, users, losses)
    each = np.array([binary._block(reports, users, k, 0, losses) for k in range(0, users, 7)])
    assert np.all(each.max(axis=0) <= bound + 1e-9)
    assert np.all(bound <= each.max(axis=0) + 2e-3 * (1 + np.abs(bound)))


def test_beyond_the_largest_number_of_users_the_bound_still_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    reports, losses = reports_of(RandomizedResponse(1)), np.array([0.02])
    truth = float(binary.log_deltas(reports, 20_000, losses)[0])
    monkeypatch.setattr(binary, "MOST_USERS", 4000)
    many, more = (float(binary.log_deltas(reports, n, losses)[0]) for n in (4000, 20_000))
    assert truth < more < many


@pytest.mark.parametrize(("epsilon", "method", "value"), [(1, "feldman-2021", 0.214), (3, "feldman-2021", 0.824)])
def test_published_numbers_for_ten_thousand_users(epsilon: float, method: str, value: float) -> None:
    assert shuffled_epsilon(epsilon, 10_000, 1e-6, method=method) == pytest.approx(value, abs=5e-4)


@pytest.mark.parametrize("method", CLOSED_FORMS)
@settings(max_examples=15, deadline=None)
@given(epsilon=st.floats(0.1, 4), users=st.integers(1000, 10**6), delta=st.floats(1e-9, 1e-3))
def test_no_formula_is_below_the_bound_that_is_computed(method: str, epsilon: float, users: int, delta: float) -> None:
    try:
        found = shuffled_epsilon(epsilon, users, delta, method=method)
    except FormulaOutOfRangeError:
        return
    assert found >= account(Shuffled(Pure(epsilon), users), "basic", "replace").epsilon(delta) * (1 - 1e-3)


@pytest.mark.parametrize(
    ("epsilon", "users", "delta", "method"),
    [(1, 10_000, 1e-6, "erlingsson-2019"), (0.1, 999, 1e-6, "erlingsson-2019"), (5, 1000, 1e-6, "feldman-2023")],
)
def test_outside_its_range_a_formula_is_refused(epsilon: float, users: int, delta: float, method: str) -> None:
    with pytest.raises(FormulaOutOfRangeError, match="holds for"):
        shuffled_epsilon(epsilon, users, delta, method=method)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "1", True, None])
def test_what_is_no_positive_number_is_refused(bad: float) -> None:
    for given_ in ((bad, 1000, 1e-6), (0.1, bad, 1e-6), (0.1, 1000, bad)):
        with pytest.raises(InvalidParameterError):
            shuffled_epsilon(*given_)
    with pytest.raises(InvalidParameterError, match="choose one of"):
        shuffled_epsilon(1, 1000, 1e-6, method="guess")

import numpy as np
import pytest
from tests.privacy.accounting.shuffling.brute import k_rr, worst_delta

from defocus.privacy.accounting.shuffling import binary
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

"""Each limit is recomputed from first principles."""

import math

import numpy as np

from defocus.privacy import classical, limits
from defocus.privacy.accounting.renyi.conversion import epsilon_at
from defocus.privacy.budgets import Budget
from defocus.privacy.elementary import GaussianSum, RenyiSum
from defocus.privacy.filters import filter as filter_for


def test_the_shares_of_delta_add_up_to_the_budget() -> None:
    total = limits._SLACK_SHARE + limits._GAUSSIAN_SHARE + sum(share for _, share in limits._RENYI_SHARES)
    assert total == 1.0


def test_each_limit_is_what_its_share_of_delta_buys() -> None:
    rule = filter_for(Budget(2, 1e-6))
    _, gaussian, *renyi = rule.parts
    assert isinstance(gaussian, GaussianSum)
    assert classical.log_delta(math.sqrt(gaussian.limit), 2 - 1e-9) <= math.log(1e-6 * limits._GAUSSIAN_SHARE)
    for part, (_, share) in zip(renyi, limits._RENYI_SHARES, strict=True):
        assert isinstance(part, RenyiSum)
        assert epsilon_at(np.array([part.limit]), np.array([part.order]), 1e-6 * share)[0] <= 2 * (1 + 1e-11)

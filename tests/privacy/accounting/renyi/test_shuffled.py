import math

import numpy as np
import pytest

from defocus.errors import UnsupportedEventError
from defocus.privacy.accounting.renyi import curve
from defocus.privacy.events import Pure, RandomizedResponse, Shuffled
from defocus.privacy.units import Adjacency

ORDERS = np.array([1.01, 1.5, 2.0, 8.0, 64.0])


def test_one_user_has_the_divergence_of_the_report_itself() -> None:
    found = curve(Shuffled(Pure(1), 1), ORDERS, Adjacency.REPLACE)
    truth = curve(Pure(1), ORDERS, Adjacency.REPLACE)
    assert np.all(found >= truth * (1 - 1e-12))
    assert np.all(found <= truth * 1.01)


def test_many_users_have_nearly_the_divergence_of_a_gaussian() -> None:
    """Its variance of the loss is (e^ε-1)²/(e^ε n); half of that times the order."""
    users = 100_000
    found = curve(Shuffled(RandomizedResponse(1), users), ORDERS, Adjacency.REPLACE)
    limit = ORDERS / 2 * math.expm1(1) ** 2 / (math.e * users)
    assert np.all(found >= limit * 0.99)
    assert np.all(found <= limit * 1.03)


def test_divergences_rise_with_the_order_up_to_the_local_epsilon() -> None:
    orders = np.geomspace(1.01, 1e8, 60)
    found = curve(Shuffled(Pure(2), 500), orders, Adjacency.REPLACE)
    assert np.all(np.diff(found) >= -1e-9 * found[:-1])
    assert found[-1] == pytest.approx(2)


def test_a_user_added_or_removed_is_refused() -> None:
    with pytest.raises(UnsupportedEventError, match="can be counted"):
        curve(Shuffled(Pure(2), 500), ORDERS, Adjacency.ADD_REMOVE)

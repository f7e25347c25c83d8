"""Differences without differences, against many digits."""

import math

import mpmath as mp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from defocus.privacy.accounting.renyi.special import log_bernoulli, log_expm1, log_sum


@settings(max_examples=400, deadline=None)
@given(
    st.one_of(st.floats(1.0001, 2000), st.floats(-2000, -0.0001)),
    st.one_of(st.floats(-12, 2), st.floats(-3, 300)),
    st.booleans(),
)
def test_bernoulli_s_excess_keeps_its_digits(beta: float, size: float, negative: bool) -> None:
    base = (-(10**size) if negative else 10**size) if size <= 2 else size
    if base < -3:
        return
    with mp.workdps(80):
        u = mp.expm1(mp.mpf(base))
        truth = mp.log(mp.power(1 + u, beta) - 1 - mp.mpf(beta) * u)
    found = float(log_bernoulli(np.array(beta), np.array(base)))
    assert abs(found - truth) <= 1e-11 + 1e-14 * abs(truth)


@given(st.floats(1e-300, 1e300))
def test_log_expm1_never_overflows(x: float) -> None:
    found = float(log_expm1(np.array(x)))
    with mp.workdps(40):
        truth = x if x > 1000 else float(mp.log(mp.expm1(mp.mpf(x))))
    assert math.isclose(found, truth, rel_tol=1e-13, abs_tol=1e-13)


def test_sums_of_nothing_vanish() -> None:
    assert log_sum(np.zeros(0)) == -np.inf
    assert log_sum(np.array([-np.inf, -np.inf])) == -np.inf
    assert np.allclose(log_sum(np.array([[1000.0, 1000.0], [0.0, -np.inf]])), [1000 + math.log(2), 0.0])

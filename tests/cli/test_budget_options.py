"""Budgets from options."""

from collections.abc import Callable
from typing import Any

import pytest

from defocus import Budget
from defocus.cli.budget_options import price_of
from defocus.errors import InvalidParameterError


def test_each_vocabulary_makes_its_budget() -> None:
    assert price_of(epsilon=1, delta=None, rho=None) == Budget(1, 1e-6)
    assert price_of(epsilon=1, delta=0, rho=None) == Budget(1)
    assert price_of(epsilon=1, delta=None, rho=None, usual=0.0) == Budget(1)
    assert price_of(epsilon=None, delta=None, rho=0.5) == Budget(rho=0.5)
    assert price_of(epsilon=None, delta=None, rho=None, mu=1) == Budget(mu=1)


@pytest.mark.parametrize(
    "given", [{}, {"epsilon": 1, "rho": 1}, {"rho": 1, "mu": 1}, {"rho": 1, "delta": 1e-6}, {"epsilon": -1}]
)
def test_what_is_no_budget_is_refused(given: dict[str, Any]) -> None:
    none: dict[str, Any] = {"epsilon": None, "delta": None, "rho": None}
    with pytest.raises(InvalidParameterError):
        price_of(**none | given)


@pytest.mark.parametrize("words", [("calibrate", "gaussian(x)"), ("advise",)])
def test_a_missing_budget_is_asked_for_by_its_options(defocus: Callable[..., Any], words: tuple[str, ...]) -> None:
    ran = defocus(*words)
    assert ran.code == 2
    assert "--epsilon 1 --delta 1e-6" in ran.err
    assert "Budget(" not in ran.err
    assert ("--mu" in ran.err) == (words[0] == "calibrate")  # each command names the options it has

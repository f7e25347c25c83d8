"""Prices and budgets from options."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from defocus import Budget
from defocus.cli.options import price_of, total
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


@pytest.mark.parametrize(("budget", "delta", "words"), [(-1, 0, "budget must"), (1, 1.0, "budget_delta must")])
def test_the_budget_of_a_ledger_has_options_of_its_own(budget: float, delta: float, words: str) -> None:
    assert total(None, 1e-6) is None
    assert total(3, 0.0) == Budget(3)
    with pytest.raises(InvalidParameterError, match=words):
        total(budget, delta)


def test_a_wrong_budget_is_refused_by_the_name_of_its_option(defocus: Callable[..., Any], tmp_path: Path) -> None:
    ran = defocus("init", "visits.parquet", "--out", tmp_path / "x.toml", "--rows", "--budget", -1)
    assert ran.code == 2
    assert "--budget > 0" in ran.err

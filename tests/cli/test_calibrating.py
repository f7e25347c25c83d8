"""The least noise that meets a budget, from a terminal."""

from collections.abc import Callable
from typing import Any

import pytest

RUN = "sampled(gaussian(x), 0.01) * 1000"


def test_the_least_ratio_is_found_with_its_interval(defocus: Callable[..., Any]) -> None:
    """Published: the prototype and dp-accounting's PLD find 1.41471."""
    answer = defocus("calibrate", RUN, "--epsilon", 1, "--delta", "1e-5", "--json").json
    assert answer["x"] == pytest.approx(1.41471, abs=2e-4)
    lower, upper = answer["interval"]
    assert lower <= upper <= 1
    assert upper > 0.999
    assert answer["budget"] == {"epsilon": 1, "delta": 1e-5}
    assert answer["expression"].startswith("1000 * sampled(gaussian(1.414")


def test_the_table_says_the_same(defocus: Callable[..., Any]) -> None:
    ran = defocus("calibrate", RUN, "--epsilon", 1, "--delta", "1e-5")
    assert ran.code == 0
    assert "1.414" in ran.out
    assert "certified" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_a_budget_may_be_rho(defocus: Callable[..., Any]) -> None:
    answer = defocus("calibrate", "10 * gaussian(x)", "--rho", "0.5", "--by", "zcdp", "--json").json
    assert answer["x"] == pytest.approx(10**0.5, rel=1e-3)
    assert answer["epsilon"] is None
    assert answer["budget"] == {"rho": 0.5}


def test_the_unknown_may_occur_more_than_once(defocus: Callable[..., Any]) -> None:
    answer = defocus("calibrate", "laplace(x) + laplace(2 * x)", "--epsilon", "1.5", "--by", "basic", "--json").json
    assert answer["x"] == pytest.approx(1, rel=1e-3)


def test_what_cannot_be_met_is_refused(defocus: Callable[..., Any]) -> None:
    ran = defocus("calibrate", "gaussian(x)", "--epsilon", 1)
    assert ran.code in {1, 2}
    assert "To fix: " in ran.err


def test_an_unknown_that_makes_no_sense_is_refused(defocus: Callable[..., Any]) -> None:
    ran = defocus("calibrate", "x * gaussian(1)", "--epsilon", 1, "--delta", "1e-6")
    assert ran.code == 2
    assert "x is not a count" in ran.err

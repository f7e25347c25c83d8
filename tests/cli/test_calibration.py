"""The least noise that meets a budget, from a terminal."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from defocus import Budget, rows
from defocus.ledger import Ledger
from defocus.privacy import Gaussian

RUN = "sampled(gaussian(x), 0.01) * 1000"


def test_the_least_ratio_is_found_with_its_interval(defocus: Callable[..., Any]) -> None:
    """Published: the prototype and dp-accounting's PLD find 1.41471."""
    answer = defocus("calibrate", RUN, "--epsilon", 1, "--delta", "1e-5", "--json").json
    assert answer["x"] == pytest.approx(1.41471, abs=2e-4)
    lower, upper = answer["interval"]
    assert lower <= upper <= 1
    assert upper > 0.999
    assert answer["price"] == {"epsilon": 1, "delta": 1e-5}
    assert answer["expression"].startswith("1000 * sampled(gaussian(1.414")


def test_the_table_says_the_same(defocus: Callable[..., Any]) -> None:
    ran = defocus("calibrate", RUN, "--epsilon", 1, "--delta", "1e-5")
    assert ran.code == 0
    assert "1.414" in ran.out
    assert "certified" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_a_budget_may_be_rho(defocus: Callable[..., Any]) -> None:
    answer = defocus("calibrate", "10 * gaussian(x)", "--rho", "0.5", "--method", "zcdp", "--json").json
    assert answer["x"] == pytest.approx(10**0.5, rel=1e-3)
    assert answer["epsilon"] is None
    assert answer["price"] == {"rho": 0.5}


def test_the_unknown_may_occur_more_than_once(defocus: Callable[..., Any]) -> None:
    answer = defocus("calibrate", "laplace(x) + laplace(2 * x)", "--epsilon", "1.5", "--method", "basic", "--json").json
    assert answer["x"] == pytest.approx(1, rel=1e-3)


def test_what_cannot_be_met_without_a_delta_says_so_in_the_words_of_the_terminal(defocus: Callable[..., Any]) -> None:
    for words in (("gaussian(x)",), ("10 * gaussian(x)", "--method", "rdp")):
        ran = defocus("calibrate", *words, "--epsilon", 1, "--delta", 0)
        assert ran.code == 1
        assert "To fix: add a delta, for example --delta 1e-06" in ran.err
        assert "high=" not in ran.err


def test_the_delta_is_the_one_that_account_uses(defocus: Callable[..., Any]) -> None:
    answer = defocus("calibrate", "gaussian(x)", "--epsilon", 1, "--json").json
    assert answer["price"] == {"epsilon": 1, "delta": 1e-6}
    assert defocus("account", answer["expression"], "--method", "pld", "--json").json["delta"] == 1e-6


def test_an_answer_for_a_fixed_sequence_says_so(defocus: Callable[..., Any]) -> None:
    assert "fixed sequence" in defocus("calibrate", "gaussian(x)", "--epsilon", 1).out
    assert "fixed sequence" in defocus("calibrate", "gaussian(x)", "--epsilon", 1, "--json").json["holds_for"]


def test_adaptive_releases_planned_here_are_admitted_by_a_ledger(defocus: Callable[..., Any], tmp_path: Path) -> None:
    fixed = defocus("calibrate", "50 * gaussian(x)", "--epsilon", 1, "--json").json["x"]
    answer = defocus("calibrate", "50 * gaussian(x)", "--epsilon", 1, "--adaptive", "--json").json
    assert answer["x"] > fixed
    assert "adaptive" in answer["holds_for"]
    with Ledger.open(tmp_path / "a", dataset="d", unit=rows(), budget=Budget(1, 1e-6)) as ledger:
        for step in range(50):
            ledger.charge(Gaussian(answer["x"]), purpose=f"step {step}")
        assert not ledger.admits(Gaussian(answer["x"]))
    assert "adaptive" in defocus("calibrate", "50 * gaussian(x)", "--epsilon", 1, "--adaptive").out
    assert defocus("calibrate", "gaussian(x)", "--epsilon", 1, "--adaptive", "--method", "rdp").code == 2
    assert defocus("calibrate", "gaussian(x)", "--epsilon", 1, "--delta", 0, "--adaptive").code == 1


def test_an_answer_at_the_end_of_the_range_says_so(defocus: Callable[..., Any]) -> None:
    for words in ((), ("--adaptive",)):
        assert "least value searched" in defocus("calibrate", "laplace(x)", "--epsilon", "1e300", *words).out
    assert "least value searched" not in defocus("calibrate", "laplace(x)", "--epsilon", "1").out


def test_an_unknown_that_makes_no_sense_is_refused(defocus: Callable[..., Any]) -> None:
    ran = defocus("calibrate", "x * gaussian(1)", "--epsilon", 1, "--delta", "1e-6")
    assert ran.code == 2
    assert "x is not a count" in ran.err

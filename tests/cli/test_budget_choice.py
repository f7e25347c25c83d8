"""Choosing a budget from a terminal."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from defocus import choose_budget, power, rows
from defocus.ledger import Ledger
from defocus.privacy import Budget


def test_a_budget_is_chosen_and_explained(defocus: Callable[..., Any]) -> None:
    words = ("choose-budget", "--posterior", 0.5, 0.75, "--error", 20, "--releases", 10)
    ran = defocus(*words)
    assert ran.code == 0
    assert ran.out == f"{choose_budget(posterior=(0.5, 0.75), error=20, releases=10)}\n"
    assert "holds for:" in defocus(*words, "--explain").out


def test_json_is_the_choice(defocus: Callable[..., Any]) -> None:
    answer = defocus(
        "choose-budget", "--attack", 0.05, 0.2, "--kind", "approximate", "--delta", 1e-6, "--error", 2, "--bounds", 0,
        100, "--people", 5000, "--json",
    ).json  # fmt: skip
    asked = choose_budget(
        attack=(0.05, 0.2), kind="approximate", delta=1e-6, error=2, bounds=(0, 100), people=5000
    )  # fmt: skip
    assert answer == asked.to_dict()


def test_a_test_is_planned(defocus: Callable[..., Any]) -> None:
    answer = defocus(
        "choose-budget", "--power", 0.8, "--effect", 0.05, "--people", 1100, "--proportion", 0.3, "--json"
    ).json
    assert answer == choose_budget(power=power(proportion=0.3, effect=0.05, n=1100, power=0.8)).to_dict()
    words = ("choose-budget", "--power", 0.8, "--effect", 1, "--people", 4000, "--mean", 5, "--bounds", 0, 30)
    assert defocus(*words, "--json").json["power"]["null"] == 5


def test_what_does_not_meet_says_so_and_leaves_with_one(defocus: Callable[..., Any]) -> None:
    ran = defocus("choose-budget", "--attack", 0.05, 0.1, "--error", 1)
    assert ran.code == 1
    assert "either accept an error of 1.443" in ran.out


def test_a_choice_is_signed_into_a_ledger(defocus: Callable[..., Any], tmp_path: Path) -> None:
    where, words = tmp_path / "l", ("choose-budget", "--error", 20, "--releases", 10)
    Ledger.open(where, budget=Budget(0.5), unit=rows(), dataset="visits").close()
    assert defocus(*words, "--sign", where, "--who", "Ada").code == 0
    assert "budget chosen: epsilon 0.5" in defocus("ledger", "show", where, "--json").out
    assert defocus("choose-budget", "--error", 3, "--sign", where).code == 1


def test_a_plot_is_written(defocus: Callable[..., Any], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    where = tmp_path / "frontier.svg"
    assert defocus("choose-budget", "--posterior", 0.5, 0.75, "--error", 20, "--plot", where).code == 0
    assert where.stat().st_size > 1000
    assert defocus("choose-budget", "--error", 20, "--plot", "curve.txt").code == 2


def test_refusals_name_options(defocus: Callable[..., Any]) -> None:
    for words, fix in (
        ((), "pass --posterior 0.5 0.75, --attack 0.01 0.05, or --error 10."),
        (("--posterior", 0.5, 0.75, "--kind", "gaussian"), "--exception 1e-06"),
        (("--power", 0.8), "pass --power 0.8, --effect 0.05 and --people 1000."),
        (("--error", 1, "--bounds", 0, 1), "pass --people 1000."),
        (("--posterior", 0.5, 0.4), "choose the largest belief above the prior."),
    ):
        ran = defocus("choose-budget", *words)
        assert ran.code == 2
        assert fix in ran.err


def test_both_commands_that_choose_name_each_other(defocus: Callable[..., Any]) -> None:
    assert "choose-budget" in defocus("choose", "--help").out
    assert "defocus choose" in " ".join(defocus("choose-budget", "--help").out.split())

"""Accountants side by side."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RUN = "1000 * sampled(gaussian(1.0), 0.01)"


def epsilons(out: str) -> dict[str, float]:
    return {name: float(value) for name, value in re.findall(r"^ *([a-z]+) +([0-9.]+)\b", out, re.MULTILINE)}


def test_every_accountant_has_a_row(defocus: Callable[..., Any]) -> None:
    """Published: dp-accounting's RDP gives 2.1014 and the true value is 1.82824."""
    ran = defocus("account", RUN, "--delta", "1e-5")
    assert ran.code == 0
    found = epsilons(ran.out)
    assert found["pld"] == pytest.approx(1.82824, abs=1e-4)
    assert found["pld"] < found["rdp"] < 2.11
    for name in ("pld", "rdp", "zcdp", "gdp", "advanced", "basic"):
        assert re.search(rf"^ *{name} ", ran.out, re.MULTILINE)
    assert "certified: the truth lies in [" in " ".join(ran.out.split())
    assert "cannot express" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_the_certified_interval_is_in_the_json(defocus: Callable[..., Any]) -> None:
    answer = defocus("account", RUN, "--delta", "1e-5", "--json").json
    assert answer["expression"] == "1000 * sampled(gaussian(1.0), rate=0.01)"
    assert answer["adjacency"] == "add_remove"
    rows = {row["accountant"]: row for row in answer["accountants"]}
    lower, upper = rows["pld"]["interval"]
    assert lower <= 1.8282370 <= upper == rows["pld"]["epsilon"]
    assert upper - lower < 1e-3
    assert rows["gdp"]["epsilon"] is None
    assert "cannot express" in rows["gdp"]["note"]
    assert rows["rdp"]["interval"] is None


def test_an_infinite_epsilon_is_null_in_json_and_said_in_words(defocus: Callable[..., Any]) -> None:
    answer = defocus("account", "gaussian(1)", "--delta", "0", "--by", "pld", "--json").json
    assert answer["accountants"] == [
        {"accountant": "pld", "epsilon": None, "interval": None, "note": "no finite epsilon at this delta"}
    ]
    assert "inf" in defocus("account", "gaussian(1)", "--delta", "0", "--by", "pld").out


@pytest.mark.parametrize("event", ["10 * pure(0.1)", "gaussian(1)"])
def test_an_accountant_that_refuses_a_delta_keeps_its_row_and_the_others_answer(
    defocus: Callable[..., Any], event: str
) -> None:
    ran = defocus("account", event, "--delta", 0)
    assert ran.code == 0
    assert re.search(r"advanced +- +Advanced composition needs a delta", ran.out)
    rows = {row["accountant"]: row for row in defocus("account", event, "--delta", 0, "--json").json["accountants"]}
    assert rows["advanced"]["epsilon"] is None
    assert (rows["basic"]["epsilon"] is None) == (event == "gaussian(1)")


def test_a_plot_at_delta_zero_leaves_out_who_cannot_answer(defocus: Callable[..., Any], tmp_path: Path) -> None:
    assert defocus("account", "10 * pure(0.1)", "--delta", 0, "--plot", tmp_path / "growth.png").code == 0


def test_one_accountant_can_be_asked_alone(defocus: Callable[..., Any]) -> None:
    assert set(epsilons(defocus("account", "10 * pure(0.1)", "--by", "basic", "--by", "zcdp").out)) == {"basic", "zcdp"}


def test_the_adjacency_changes_the_answer_where_it_should(defocus: Callable[..., Any]) -> None:
    def ask(adjacency: str) -> float:
        answer = defocus("account", RUN, "--delta", "1e-5", "--by", "pld", "--adjacency", adjacency, "--json").json
        assert answer["adjacency"] == adjacency.replace("-", "_")
        return float(answer["accountants"][0]["epsilon"])

    assert ask("add-remove") < ask("replace")


def test_nothing_costs_nothing(defocus: Callable[..., Any]) -> None:
    ran = defocus("account", "nothing", "--delta", "0")
    assert ran.code == 0
    assert epsilons(ran.out)["pld"] == 0


def test_a_plot_is_written_where_it_was_asked_for(defocus: Callable[..., Any], tmp_path: Path) -> None:
    where = tmp_path / "growth.png"
    ran = defocus("account", "64 * laplace(20)", "--plot", where, "--by", "pld", "--by", "basic")
    assert ran.code == 0
    assert where.read_bytes()[:4] == b"\x89PNG"
    assert "plot written to" in ran.out


def test_json_and_a_plot_go_together(defocus: Callable[..., Any], tmp_path: Path) -> None:
    ran = defocus("account", "64 * laplace(20)", "--plot", tmp_path / "growth.svg", "--by", "basic", "--json")
    assert ran.json["accountants"][0]["accountant"] == "basic"
    assert (tmp_path / "growth.svg").read_text(encoding="utf-8").startswith("<?xml")


@pytest.mark.parametrize("name", ["growth.exe", "growth", "missing/growth.png"])
def test_a_plot_that_cannot_be_written_is_refused(defocus: Callable[..., Any], tmp_path: Path, name: str) -> None:
    ran = defocus("account", "laplace(20)", "--by", "basic", "--plot", tmp_path / name)
    assert ran.code == 2
    assert "--plot" in ran.err

"""Budgets from risks and needs: what is offered holds, what is said to help does, and the ledger keeps the reasons."""

import json
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import defocus as dp
from defocus.errors import InvalidParameterError, LedgerMismatchError
from defocus.ledger import Ledger
from defocus.mechanisms import Laplace
from defocus.privacy import DiscreteLaplace
from defocus.privacy.budgets import Budget
from defocus.privacy.filters import filter as filter_for
from defocus.privacy.risk import budget_of, size
from defocus.tables import Choice, choose_budget, power
from defocus.tables.budget_choice import Need

TEST = power(proportion=0.3, effect=0.05, n=1100, power=0.8)
KINDS: list[dict[str, Any]] = [{"kind": "pure"}, {"kind": "gaussian"}, {"kind": "approximate", "delta": 1e-6}]
NEEDS: list[dict[str, Any]] = [{"error": 5}, {"error": 0.5, "bounds": (0, 100), "people": 5000}, {"power": TEST}]


def admitted(found: Choice, budget: Budget) -> bool:
    """Whether a new ledger with this budget admits the releases, with the noise that was counted on."""
    assert found.need is not None
    assert found.noise is not None
    rule = filter_for(budget)
    return rule.admits(rule.start, found.need.event(found.noise, found.need.noise(found.noise)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind["kind"]))
@pytest.mark.parametrize("need", NEEDS, ids="-".join)
@pytest.mark.parametrize("releases", [1, 40])
def test_the_least_budget_admits_all_releases_and_one_percent_less_does_not(
    kind: dict[str, Any], need: dict[str, Any], releases: int
) -> None:
    found = choose_budget(**kind, **need, releases=releases)
    assert found.needed == found.budget
    assert found.needed is not None
    assert admitted(found, found.needed)
    assert not admitted(found, budget_of(found.kind, size(found.needed) * 0.99, found.needed.delta))


def test_pure_budgets_add_up_and_mu_grows_with_the_square_root() -> None:
    assert choose_budget(error=20, releases=10).budget == Budget(0.5)
    one, many = (size(choose_budget(kind="gaussian", error=20, releases=n).budget or Budget(1)) for n in (4, 400))
    assert many / one == pytest.approx(10, rel=1e-4)


def test_more_error_more_people_and_fewer_releases_need_less() -> None:
    errors = [size(choose_budget(error=error).budget or Budget(1)) for error in (1, 2, 10, 100)]
    assert errors == sorted(errors, reverse=True)
    people = [size(choose_budget(error=1, bounds=(0, 50), people=n).budget or Budget(1)) for n in (500, 1000, 10_000)]
    assert people == sorted(people, reverse=True)
    times = [size(choose_budget(error=1, releases=n).budget or Budget(1)) for n in (1, 2, 50)]
    assert times == sorted(times)


def test_the_error_of_a_mean_is_that_of_the_released_sums() -> None:
    need = Need(error=1, people=2000, bounds=(10, 60))
    noise = need.noise("Laplace")
    rng, grid = np.random.default_rng(3), 2**10
    up, down = rng.laplace(0, noise, (2, 400_000))
    for mean, largest in ((10, True), (35, False), (60, True)):
        share = (mean - 10) / 50
        a, b = 2000 * share + up, 2000 * (1 - share) + down
        off = np.abs(10 + 50 * a / (a + b) - mean).mean()
        assert off == pytest.approx(1, abs=0.01) if largest else off < 0.8
    assert need.at("Laplace", noise) == pytest.approx(1)
    assert Laplace(scale=Fraction(noise) * grid).error / grid == pytest.approx(noise, rel=1e-3)


def test_the_power_of_a_test_is_that_of_its_plan() -> None:
    found = choose_budget(power=TEST)
    assert size(found.budget or Budget(1)) == pytest.approx(TEST.epsilon, rel=1e-4)
    assert found.need is not None
    assert found.need.at("Laplace", 1 / TEST.epsilon) == pytest.approx(0.8, abs=1e-4)


@pytest.mark.slow
def test_gaussian_noise_is_taken_where_it_needs_less() -> None:
    few, many = (choose_budget(error=10, releases=n, kind="approximate", delta=1e-6).noise for n in (1, 200))
    assert (few, many) == ("Laplace", "Gaussian")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind["kind"]))
def test_a_range_is_offered_and_its_lower_end_taken(kind: dict[str, Any]) -> None:
    found = choose_budget(attack=(0.05, 0.6), error=50, releases=3, **kind)
    assert found.meets
    assert found.remedies == {}
    assert found.budget == found.needed
    assert size(found.needed or Budget(1)) < size(found.allowed or Budget(1))
    middle = budget_of(
        found.kind, (size(found.needed or Budget(1)) + size(found.allowed or Budget(1))) / 2, kind.get("delta", 0)
    )
    assert found.take(middle).budget == middle
    for wrong in (
        budget_of(found.kind, size(found.allowed or Budget(1)) * 1.01, kind.get("delta", 0)),
        budget_of(found.kind, size(found.needed or Budget(1)) * 0.99, kind.get("delta", 0)),
        Budget(0.5, 1e-3),
        0.5,
    ):
        with pytest.raises(InvalidParameterError, match="not within this choice"):
            found.take(wrong)  # type: ignore[arg-type]


def test_a_budget_that_leaves_less_for_composition_is_not_within_a_need() -> None:
    found = choose_budget(error=20, releases=50, kind="approximate", delta=1e-6)
    assert found.take(Budget(5, 1e-6, direct=0.25)).budget == Budget(5, 1e-6, direct=0.25)
    with pytest.raises(InvalidParameterError, match="not within this choice"):
        found.take(Budget(5, 1e-6, direct=0.9))


def asked(**changed: Any) -> Choice:
    basis: dict[str, Any] = {"posterior": (0.5, 0.6), "attack": (0.05, 0.1), "releases": 12}
    return choose_budget(**basis | changed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind["kind"]))
@pytest.mark.parametrize("need", NEEDS, ids="-".join)
def test_what_is_said_to_make_them_meet_does(kind: dict[str, Any], need: dict[str, Any]) -> None:
    setting = kind | ({} if kind["kind"] == "pure" else {"exception": 1e-5})
    found = asked(**setting, **need)
    assert not found.meets
    assert found.budget is None
    ways = found.remedies
    if "error" in need:
        assert asked(**setting, **need | {"error": ways["error"]}).meets
        assert not asked(**setting, **need | {"error": ways["error"] * 0.99}).meets
    elif "power" in ways:
        assert asked(**setting, power=power(proportion=0.3, effect=0.05, n=1100, power=ways["power"])).meets
    if "people" in need:
        assert asked(**setting, **need | {"people": ways["people"]}).meets
        assert not asked(**setting, **need | {"people": int(ways["people"] * 0.99)}).meets
    if "power" in need:
        assert asked(**setting, power=power(proportion=0.3, effect=0.05, n=int(ways["people"]) + 1, power=0.8)).meets
    if "releases" in ways:
        assert asked(**setting, **need, releases=ways["releases"]).meets
        assert not asked(**setting, **need, releases=int(ways["releases"]) + 1).meets
    raised = {"posterior": (0.5, ways.get("posterior", 0.6)), "attack": (0.05, ways.get("attack", 0.1))}
    assert asked(**setting, **need, **raised).meets
    assert "either accept" in str(found)
    assert found.frontier()[0].keys() >= {"amount", "posterior", "attack"}


def test_a_count_does_not_get_better_with_people() -> None:
    assert "people" not in choose_budget(attack=(0.05, 0.1), error=1).remedies


def test_the_choice_reads_well() -> None:
    found = choose_budget(posterior=(0.01, 0.1), attack=(0.05, 0.2), error=20, releases=10)
    text = found.explain()
    for words in (
        "budget:    epsilon 0.5",
        "a belief of 0.01 that somebody is in the data rises to at most 0.1",
        "a test for somebody with a false-positive rate of 0.05 finds at most 0.2",
        "allows at most epsilon 1.38629",
        "takes at least epsilon 0.5, with Laplace noise",
        "who was 1 % sure that somebody is in the data is at most 1.639 % sure afterwards",
        "whether one unit of the ledger",
    ):
        assert words in text
    assert str(found) in found.explain() or "holds for" not in str(found)
    page = found._repr_html_()
    assert page.startswith("<table>")
    assert "epsilon 0.5" in page


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind["kind"]))
def test_a_choice_is_written_in_json(kind: dict[str, Any]) -> None:
    found = choose_budget(attack=(0.05, 0.2), power=TEST, releases=3, **kind)
    written = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert written["meets"] is found.meets
    assert written["attack"] == [0.05, 0.2]
    assert written["power"]["n"] == 1100
    assert written["reasons"] == list(found.reasons)


@pytest.mark.parametrize(
    ("given", "x", "y", "marks"),
    [
        ({"posterior": (0.5, 0.75), "error": 20}, "largest belief", "expected absolute error", 3),
        ({"posterior": (0.5, 0.6), "attack": (0.05, 0.051), "power": TEST}, "largest true-positive rate", "power", 2),
        ({"attack": (0.05, 0.2), "kind": "gaussian"}, "mu", "largest true-positive rate", 2),
        ({"error": 20}, "epsilon", "expected absolute error", 2),
    ],
)
def test_the_frontier_is_drawn_with_both_limits(given: dict[str, Any], x: str, y: str, marks: int) -> None:
    pytest.importorskip("matplotlib")
    (axes,) = choose_budget(**given).plot().axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == (x, y)
    assert len(axes.get_legend().get_texts()) == marks


def test_the_frontier_trades_risk_for_error() -> None:
    points = choose_budget(posterior=(0.5, 0.75), error=20).frontier()
    risks, errors = [point["posterior"] for point in points], [point["error"] for point in points]
    assert risks == sorted(risks)
    assert errors == sorted(errors, reverse=True)


def test_the_ledger_keeps_who_chose_and_why(tmp_path: Path) -> None:
    found = choose_budget(posterior=(0.5, 0.75), error=20, releases=10)
    with Ledger.open(tmp_path / "l", budget=found.budget, unit=dp.user("patient"), dataset="visits") as ledger:
        found.sign(ledger, who="Ada")
    with Ledger.open(tmp_path / "l") as ledger:
        (*_, entry) = ledger.entries()
        assert ledger.verify().ok
        assert entry.who == "Ada"
        assert entry.purpose == "budget chosen: epsilon 0.5; " + "; ".join(found.reasons)
        for _ in range(10):
            assert ledger.admits(DiscreteLaplace(20 * 2**24, 2**24))
            ledger.charge(DiscreteLaplace(20 * 2**24, 2**24), purpose="a count")
        assert not ledger.admits(DiscreteLaplace(20 * 2**24, 2**24))


def test_another_budget_or_none_is_not_signed(tmp_path: Path) -> None:
    found = choose_budget(posterior=(0.5, 0.75), error=20)
    with Ledger.open(tmp_path / "l", budget=Budget(1), unit=dp.rows(), dataset="visits") as ledger:
        entries = len(ledger)
        with pytest.raises(LedgerMismatchError, match=r"Budget\(epsilon=1\), but Budget\(epsilon=0.05\) was chosen"):
            found.sign(ledger)
        with pytest.raises(InvalidParameterError, match="no budget to sign"):
            choose_budget(posterior=(0.5, 0.51), error=1).sign(ledger)
        with pytest.raises(InvalidParameterError, match="written into a ledger"):
            found.sign(str(tmp_path))  # type: ignore[arg-type]
        assert len(ledger) == entries
        assert len(found.take(Budget(1)).sign(ledger)) == entries + 1


def test_needs_are_not_signed_where_people_are_replaced(tmp_path: Path) -> None:
    unit = dp.rows(replace=True)
    with Ledger.open(tmp_path / "l", budget=Budget(0.5), unit=unit, dataset="visits") as ledger:
        with pytest.raises(LedgerMismatchError, match="replaced"):
            choose_budget(error=20, releases=10).sign(ledger)
        choose_budget(posterior=(0.5, 0.75)).take(Budget(0.5)).sign(ledger)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "x", True])
def test_an_error_that_is_none_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidParameterError, match="error must"):
        choose_budget(error=bad)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "Neither a risk nor a need"),
        ({"exception": 1e-6, "error": 1}, "belongs to a posterior"),
        ({"error": 1, "power": TEST}, "Both an error and a power"),
        ({"power": 0.8}, "must be a test that was planned"),
        ({"power": TEST, "people": 10}, "of its own"),
        ({"power": TEST, "bounds": (0, 1)}, "of its own"),
        ({"error": 1, "bounds": (0, 1)}, "pass people=1000"),
        ({"error": 1, "bounds": (1, 1), "people": 10}, "hold no interval"),
        ({"error": 1, "bounds": (0, math.nan), "people": 10}, "the upper bound must"),
        ({"error": 1, "bounds": 5, "people": 10}, "two numbers"),
        ({"error": 1, "bounds": (0, 1), "people": 1.5}, "people must be"),
        ({"error": 1, "people": 10}, "People belong to a mean"),
        ({"attack": (0.1, 0.2), "people": 10}, "People belong to a mean"),
        ({"error": 1, "releases": 0}, "releases must"),
        ({"attack": (0.1, 0.2), "releases": 3}, "No error was given"),
        ({"attack": (0.1, 0.2), "bounds": (0, 1), "people": 9}, "No error was given"),
        ({"error": 1e-9}, "too little"),
        ({"error": 1e12}, "too much"),
        ({"error": 1, "kind": "approximate"}, "none was given"),
        ({"error": 1, "delta": 1e-6}, "has no delta"),
        ({"error": 1, "kind": "approximate", "delta": math.nan}, "delta"),
        ({"error": 1, "kind": "approximate", "delta": 1e-3, "bounds": (0, 1), "people": 2000}, "at least 1/n"),
    ],
)
def test_what_does_not_fit_together_is_refused_with_a_remedy(given: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidParameterError, match=rf"(?s){re.escape(why)}") as refused:
        choose_budget(**given)
    assert refused.value.fix

import io
import re
from collections.abc import Callable

import pytest
from rich.console import Console

from defocus.ledger import Ledger
from defocus.ledger.display import MOST_EVENTS, Prices
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Approximate, Gaussian, Laplace, Pure, Selected

pytestmark = pytest.mark.parametrize("where", ["sqlite"], indirect=True)


def printed(ledger: Ledger, newest: int = 20) -> str:
    console = Console(width=200, file=io.StringIO(), record=True)
    console.print(ledger.table(newest=newest))
    return console.export_text()


def test_purposes_are_shown_as_text_and_never_as_markup(opened: Callable[..., Ledger]) -> None:
    ledger = opened()
    ledger.charge(Laplace(10), purpose="[bold]loud[/] <b>& more</b>", who="[link=x]Eve[/link]")
    assert "[bold]loud[/]" in printed(ledger)
    assert "[link=x]Eve[/link]" in printed(ledger)
    assert "&lt;b&gt;&amp; more&lt;/b&gt;" in ledger._repr_html_()


def test_the_newest_entries_are_shown_and_long_ones_are_cut(opened: Callable[..., Ledger]) -> None:
    ledger = opened()
    for number in range(5):
        long = sum((Laplace(10_000 + i) for i in range(30)), start=Laplace(100))
        ledger.record(ledger.charge(long, purpose=f"step {number}"), 1)
    text = printed(ledger, newest=4)
    assert "step 4" in text
    assert "step 2" not in text
    assert "…" in text


def test_each_charge_is_shown_with_its_epsilon_and_the_budget_used_by_then(opened: Callable[..., Ledger]) -> None:
    ledger = opened()
    ledger.charge(Laplace(4), purpose="first")
    ledger.charge(Laplace(2), purpose="second")
    text = printed(ledger)
    assert "epsilon" in text
    assert re.search(r"first.*laplace\(4\).* 0\.25 .* 25\.0 %", text)
    assert re.search(r"second.*laplace\(2\).* 0\.5 .* 75\.0 %", text)
    assert re.search(r">0\.25</td><td [^>]*>25\.0 %</td>", ledger._repr_html_())


def test_an_event_that_no_accountant_expresses_has_no_epsilon_and_does_not_hide_the_others(
    opened: Callable[..., Ledger],
) -> None:
    ledger = opened(budget=Budget(1, 1e-6))
    ledger.charge(Approximate(0.01, 1e-9) + Selected(Pure(0.01), 0.1), purpose="odd")
    ledger.charge(Laplace(4), purpose="plain")
    text = printed(ledger)
    assert "odd" in text
    assert re.search(r"plain.* 0\.25", text)


def test_the_summary_names_data_unit_budget_and_what_is_left(opened: Callable[..., Ledger]) -> None:
    text = printed(opened())
    for words in (
        "visits",
        "everything about one patient",
        "Budget(epsilon=1)",
        "one release of epsilon 1",
        "1 entries",
    ):
        assert words in text


def test_a_kept_table_is_mentioned_and_not_spread_over_a_hundred_lines(opened: Callable[..., Ledger]) -> None:
    ledger = opened()
    for value in (1402, {"keys": list(range(1000))}):
        ledger.record(ledger.charge(Laplace(20), purpose="count"), value, keep=True)
    text = printed(ledger)
    assert "released for #1: 1402" in text
    assert "released for #3, kept" in text


def test_a_charge_is_priced_by_itself_and_beside_the_whole_budget(opened: Callable[..., Ledger]) -> None:
    ledger = opened(budget=Budget(1, 1e-6))
    ledger.charge(Gaussian(50), purpose="noisy")
    genesis, charge = ledger.entries()
    prices = Prices.of(ledger.terms, [genesis, charge])
    found = prices.to_dict(charge)
    assert (found["sequence"], found["what"], found["delta"]) == (1, "gaussian(50)", 1e-6)
    assert 0.05 < found["epsilon"] <= float(prices.epsilon(charge))
    assert found["used"] == prices.used(ledger.spent()).to_dict()
    assert 0 < found["used"]["epsilon"] < 1
    assert found["used"]["delta"] == 0
    assert (prices.epsilon(genesis), prices.shares(genesis)) == ("", ("", ""))
    assert [row["measure"] for row in prices.labelled(ledger.spent())][:2] == ["delta", "epsilon"]


def test_too_many_kinds_of_releases_are_not_asked_for(opened: Callable[..., Ledger]) -> None:
    ledger = opened()
    for number in range(MOST_EVENTS + 1):
        ledger.charge(Laplace(1000 + number), purpose="one of many")
    entries = list(ledger.entries())
    prices = Prices.of(ledger.terms, entries)
    assert prices.epsilon(entries[1]) == ""
    assert prices.to_dict(entries[1])["epsilon"] is None
    assert prices.shares(entries[1])[0] == "0.1 %"

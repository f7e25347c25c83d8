import io
from collections.abc import Callable

import pytest
from rich.console import Console

from defocus.ledger import Ledger
from defocus.privacy.events import Laplace

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
        ledger.record(ledger.charge(Laplace(100), purpose=f"step {number}"), "long " * 100, keep=True)
    text = printed(ledger, newest=4)
    assert "step 4" in text
    assert "step 2" not in text
    assert "…" in text


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

"""What was spent on a data set, and what is left."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from defocus.cli.budgets import ledger_of

QUESTION = "SELECT ward, COUNT(*) AS stays FROM visits GROUP BY ward"


def test_the_budget_burns_down(defocus: Callable[..., Any], home: Path) -> None:
    assert "all of it" in defocus("budget").out
    assert defocus("budget", "--json").json["share_left"] == 1
    defocus("query", QUESTION, "--epsilon", 1, "--purpose", "report")
    ran = defocus("budget", "--plot", "burn.png")
    assert "report" in ran.out
    assert "█" in ran.out
    assert (home / "burn.png").read_bytes().startswith(b"\x89PNG")
    assert defocus("budget", "--json").json["share_left"] == pytest.approx(0.5, abs=0.01)
    assert "report" in defocus("history").out


def test_the_plot_shows_epsilon_and_not_shares(
    defocus: Callable[..., Any], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr("defocus.cli.budgets.save", lambda figure, _: drawn.append(figure))
    for _ in range(2):
        defocus("query", QUESTION, "--epsilon", 0.5)
    assert defocus("budget", "--plot", home / "burn.png").code == 0
    (axes,) = drawn[0].axes
    assert axes.get_ylabel() == "epsilon left"
    assert axes.patches[0].get_data().values == pytest.approx([2, 1.5, 1], abs=1e-6)


@pytest.mark.usefixtures("home")
def test_a_plot_that_cannot_be_written_is_told(defocus: Callable[..., Any]) -> None:
    assert defocus("budget", "--plot", "burn.xyz").code == 2


def test_a_ledger_can_be_given_instead_of_a_file(defocus: Callable[..., Any], home: Path) -> None:
    defocus("query", QUESTION, "--epsilon", 1, "--purpose", "report")
    for command in ("budget", "history"):
        assert "report" in defocus(command, "--dataset", home / "visits.ledger").out


def test_the_address_of_a_database_is_kept_as_it_is(
    defocus: Callable[..., Any], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = "postgresql://host/books?schema=visits.toml"
    assert ledger_of(address) == address
    assert ledger_of(str(home / "defocus.toml")) == str(home / "visits.ledger")
    seen: list[str] = []
    monkeypatch.setattr("defocus.cli.ledgers.show", lambda where, **_: seen.append(where))
    assert defocus("history", "-d", address).code == 0
    assert seen == [address]


@pytest.mark.usefixtures("home")
def test_only_the_newest_of_many_releases_are_listed(defocus: Callable[..., Any]) -> None:
    for number in range(22):
        assert defocus("query", QUESTION, "--epsilon", 0.01, "--purpose", f"number {number}").code == 0
    out = defocus("budget").out
    assert "the last 20 of 22 releases" in out
    assert "number 21" in out
    assert "number 1 " not in out
    assert len(defocus("budget", "--json").json["releases"]) == 22

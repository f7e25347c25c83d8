"""What was spent on a data set, and what is left."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from defocus.ledger import Ledger

QUESTION = "SELECT ward, COUNT(*) AS stays FROM visits GROUP BY ward"


def test_the_budget_burns_down(defocus: Callable[..., Any], home: Path) -> None:
    assert "all of it" in defocus("budget").out
    assert defocus("budget", "--json").json["used"] == {}
    defocus("query", QUESTION, "--epsilon", 1, "--purpose", "report")
    ran = defocus("budget", "--plot", "burn.png")
    assert "report" in ran.out
    assert "█" in ran.out
    assert (home / "burn.png").read_bytes().startswith(b"\x89PNG")
    assert defocus("budget", "--json").json["used"]["epsilon"] == pytest.approx(0.5, abs=0.01)
    assert "report" in defocus("history").out


def test_the_plot_shows_epsilon_and_not_shares(
    defocus: Callable[..., Any], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr("defocus.cli.budget.save", lambda figure, _: drawn.append(figure))
    for _ in range(2):
        defocus("query", QUESTION, "--epsilon", 0.5)
    assert defocus("budget", "--plot", home / "burn.png").code == 0
    axes, deltas = drawn[0].axes
    assert (axes.get_ylabel(), deltas.get_ylabel()) == ("epsilon left", "delta left")
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
    defocus("query", QUESTION, "--epsilon", 1)
    seen: list[str] = []

    def opened(where: str, **_options: object) -> Ledger:
        seen.append(where)
        return real(home / "visits.ledger")

    real = Ledger.open
    monkeypatch.setattr("defocus.cli.ledgers.Ledger.open", opened)
    for command in ("history", "budget"):
        assert defocus(command, "-d", address).code == 0
    assert seen == [address, address]


@pytest.mark.usefixtures("home")
def test_only_the_newest_of_many_releases_are_listed(defocus: Callable[..., Any]) -> None:
    for number in range(22):
        assert defocus("query", QUESTION, "--epsilon", 0.01, "--purpose", f"number {number}").code == 0
    out = defocus("budget").out
    assert "the last 20 of 22 releases" in out
    assert "number 21" in out
    assert "number 1 " not in out
    assert len(defocus("budget", "--json").json["releases"]) == 22


@pytest.fixture
def days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of daily partitions, with the dataset file of a stream of events."""
    for day in (13, 14, 15):
        folder = tmp_path / "visits" / f"day=2026-11-{day}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"ward": ["A", "B"] * day}), folder / "0.parquet")
    text = 'name = "visits"\ndata = "visits"\nunit.rows = true\nbudget.epsilon = 1\n'
    (tmp_path / "defocus.toml").write_text(f'{text}[parts]\ncolumn = "day"\n[columns.day]\nkind = "date"\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("days")
def test_each_day_is_asked_and_charged_alone(defocus: Callable[..., Any]) -> None:
    count = "SELECT COUNT(*) AS n FROM visits"
    assert "parts by day (date); each row is in one part" in " ".join(defocus("check").out.split())
    for day in ("2026-11-13", "2026-11-14"):
        assert defocus("query", count, "--epsilon", 0.75, "--part", day).code == 0
    refused = defocus("query", count, "--epsilon", 0.75, "--part", "2026-11-15", "--part", "2026-11-14")
    assert refused.code == 1
    assert "from the part 2026-11-14" in refused.err
    assert defocus("query", count, "--epsilon", 0.75).code == 1
    assert defocus("preview", count, "--epsilon", 0.75, "--part", "2026-11-15", "--json").json["fits"]
    assert not defocus("preview", count, "--epsilon", 0.75, "--json").json["fits"]
    for command in ("budget", "history"):
        said = " ".join(defocus(command).out.split())
        assert "2 parts were charged, the heaviest 75 % of epsilon" in said
    found = defocus("budget", "--json").json
    assert found["parts"]["column"] == "day"
    assert [release["parts"] for release in found["releases"]] == [["2026-11-13"], ["2026-11-14"]]
    for day, share in (("2026-11-13", 0.25), ("2026-11-15", 1.0)):
        alone = defocus("budget", "--part", day, "--json").json
        assert [round(1 - release["used"]["epsilon"], 3) for release in alone["releases"]] == [share] * (share < 1)
        assert f"left for {day}" in defocus("budget", "--part", day).out
    told = defocus("history", "--json").json
    assert told["charges"][1]["parts"] == ["2026-11-14"]
    assert told["terms"]["parts"] == {"column": "day", "kind": "date", "apart": "rows"}


@pytest.mark.usefixtures("days")
def test_a_day_that_is_no_day_is_told_before_anything_is_charged(defocus: Callable[..., Any], days: Path) -> None:
    ran = defocus("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", 0.5, "--part", "14.11.2026")
    assert ran.code == 2
    assert "is no value of the date column 'day'" in " ".join(ran.err.split())
    file = days / "defocus.toml"
    file.write_text(file.read_text().replace('column = "day"', 'column = "day"\npeople = "in one part"'))
    checked = defocus("check")
    assert checked.code == 1
    assert "changes nothing where the unit is one row" in " ".join(checked.out.split())

"""Commands of the terminal that look at data: everything they print, and how they end."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.soundness.sources import WAYS, Added, both, neighbours
from tests.soundness.watching import Base, Difference, compared, no_differences

from defocus.cli import main

DATASET = """
name = "v"
data = "v.csv"
[unit]
column = "person"
[budget]
epsilon = 100
delta = 1e-3
[columns.x]
kind = "number"
low = 0
high = 1
[columns.k]
kind = "text"
values = ["a", "b"]
[columns.person]
kind = "integer"
"""
TRAINING = """
data = "v.csv"
epsilon = 1
delta = 1e-6
[unit]
rows = true
[model]
kind = "logistic"
[target]
column = "k"
values = ["a", "b"]
[features]
x = [0, 1]
n = [0, 4]
"""
SQL = "SELECT k, COUNT(*) AS c, AVG(x) AS m FROM v GROUP BY k"

COMMANDS: Mapping[str, Sequence[str]] = {
    "check": ["check", "--dataset", "{home}/defocus.toml"],
    "preview": ["preview", SQL, "--epsilon", "2", "--dataset", "{home}/defocus.toml"],
    "query": ["query", SQL, "--epsilon", "2", "--dataset", "{home}/defocus.toml"],
    "init": ["init", "{home}/v.csv", "--out", "{home}/new.toml", "--unit", "person", "--budget", "1"],
    "synthesise": [
        *("synthesise", "--out", "{home}/made.csv", "--epsilon", "2", "--delta", "1e-6", "--only", "k", "--only", "x"),
        *("--dataset", "{home}/defocus.toml"),
    ],
    "train": ["train", "{home}/train.toml"],
}


def tried(name: str) -> list[Difference]:
    way = WAYS["csv"]

    def drive(home: Path, added: Sequence[Added]) -> Any:
        rows, line = both(added)
        way.put(home, rows, line)
        (home / "defocus.toml").write_text(DATASET, "utf-8")
        (home / "train.toml").write_text(TRAINING, "utf-8")
        code = main([word.format(home=home) for word in COMMANDS[name]])
        assert code == 0 or added, "the command itself is wrong"
        files = {each.name: each.read_text("utf-8") for each in sorted(home.glob("*.toml"))}
        return [code, files]

    found, first = [], Base(f"defocus {name}", lambda home: drive(home, ()))
    for whose, odds in neighbours(way).items():
        one = whose == "one person" and name != "train"
        units: Callable[[Sequence[Added]], int] = (
            (lambda _: 1) if one else lambda added: sum(max(1, len(rows)) for rows, _ in added)
        )
        found += compared(f"defocus {name}", drive, odds, units=units, runs=20, first=first)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_no_row_is_told_by_a_command(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(key, value)
    no_differences(tried(name))


def test_no_edge_is_told_by_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    def drive(home: Path, added: Sequence[str]) -> Any:
        lines = ["from,to", "0,1", "1,2", "2,0", *added]
        (home / "e.csv").write_bytes(("\n".join(lines) + "\n").encode())
        code = main(f"graph {home}/e.csv edges --unit edge --nodes 4 --budget 10 --epsilon 2".split())
        assert code == 0 or added, "the command itself is wrong"
        return code

    odds = {
        "an edge": "1,3",
        "again": "0,1",
        "backwards": "1,0",
        "a loop": "1,1",
        "unknown": "1,9",
        "huge": f"1,{2**70}",
    }
    odds |= {"text": "a,b", "one end": "1", "three ends": "1,2,3", "blank": "", "a quote": '"1,2', "fraction": "1.5,2"}
    no_differences(compared("defocus graph", drive, odds))

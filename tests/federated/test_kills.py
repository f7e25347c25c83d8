"""Sites killed before and after everything they do: the sum of the others, or a clear failure, and the charge stays.

Each site writes down its vector with its share of noise, so that an answer is compared integer by integer.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.federated.processes import POINTS, Sites, declared, sites_in
from tests.waiting import HANGS

import defocus as dp
from defocus.errors import TooFewPartiesError

GRID = 1 << 24
SQL = "SELECT COUNT(*) AS n FROM visits"


def charges(home: Path, name: str) -> int:
    with dp.Ledger.open(home / f"{name}.ledger", read_only=True) as ledger:
        return sum(entry.kind == "charge" for entry in ledger.entries())


def asked_while_some_die(home: Path, sites: Sites, names: tuple[str, ...], dying: tuple[str, ...], point: str) -> None:
    """Ask once, and check what comes out against what each site wrote down."""
    sites.kill(*dying)
    sites.start(*dying, dies=point)
    had = {name: (charges(home, name), len(sites.sent(name))) for name in names}
    answer = dp.federation(home / "federation.toml").sql(SQL, epsilon=10)
    for name in dying:
        sites.gone(name)
    told = " ".join(map(str, answer.rules))
    out = [name for name in names if f"{name} took no part to the end, and its rows are not in these numbers" in told]
    assert set(out) <= set(dying)
    last: dict[str, dict[str, Any]] = {name: sites.sent(name)[-1] for name in names if name not in out}
    dropouts = 1 if len(names) == 5 else 5
    spare = sum(sites.spare(name, len(out), dropouts) for name in last)  # for those that are gone, and no others
    assert answer["n"].values[0] == (sum(one["noisy"][0] for one in last.values()) + spare) / GRID, point
    assert [one["exact"] for one in last.values()] == [[200 * GRID]] * len(last)
    assert {one["honest"] for one in last.values()} == {len(names) - dropouts - 1}  # of what law each drew its share
    assert len(last) >= len(names) - dropouts
    assert sum(one["noisy"] != one["exact"] for one in last.values()) > len(names) / 5  # of many, most shares are 0
    for name in names:
        spent, sent = charges(home, name) - had[name][0], len(sites.sent(name)) - had[name][1]
        assert sent <= spent == (point not in {"offer-", "offer+", "charge-"} or name not in dying), (point, name)
    late = {"sum4-", "sum4+", "sum5-", "sum5+", "done-", "done+"}
    maybe = {"sum3+"}  # what it sent last may have arrived, or not
    if point not in maybe:
        assert set(out) == (set() if point in late else set(dying)), point
    assert np.isfinite(answer["n"].errors[0])


@pytest.mark.slow
def test_one_of_five_is_killed_before_and_after_everything_it_does(tmp_path: Path) -> None:
    names = ("north", "south", "east", "west", "centre")
    declared(tmp_path, names, dropouts=1, patience=300)
    with sites_in(tmp_path, names) as sites:
        for point in POINTS:
            asked_while_some_die(tmp_path, sites, names, ("centre",), point)
        for point in ("offer+", "sum1+", "sum3-"):
            sites.kill("east", "west", "centre")
            sites.start("centre")
            sites.start("east", "west", dies=point)
            with pytest.raises(TooFewPartiesError):
                dp.federation(tmp_path / "federation.toml").sql(SQL, epsilon=10)


@pytest.mark.slow
def test_after_a_coordinator_that_is_killed_before_whatever_it_sends_the_next_one_is_answered(tmp_path: Path) -> None:
    """What sites were told to begin is paid for, and none waits for a coordinator that is gone."""
    names = ("north", "south", "east", "west")
    declared(tmp_path, names, patience=300)
    frames = len(names) * (2 + 4 + 1)  # a question, a beginning, four messages of a sum, and the sum
    with sites_in(tmp_path, names) as sites:
        for dies in range(frames + 1):
            before = {name: (charges(tmp_path, name), len(sites.sent(name))) for name in names}
            sites.ask(SQL, 10, dies=dies)
            answer = answered(tmp_path)
            last = [sites.sent(name)[-1] for name in names]
            assert answer["n"].values[0] == sum(one["noisy"][0] for one in last) / GRID
            for name in names:
                spent, sent = charges(tmp_path, name) - before[name][0], len(sites.sent(name)) - before[name][1]
                # one for the answer; one for the question before it, from where a site heard that all begin
                assert sent <= spent in ({1} if dies <= len(names) else {1, 2} if dies < 2 * len(names) else {2})


def answered(home: Path) -> Any:
    """The answer of all, once all have noticed that the last coordinator is gone; before that, nobody is charged."""
    until = time.monotonic() + HANGS
    while True:
        try:
            return dp.federation(home / "federation.toml").sql(SQL, epsilon=10)
        except TooFewPartiesError as problem:
            if "it is answering another question" not in str(problem) or time.monotonic() > until:
                raise
            time.sleep(0.05)


@pytest.mark.long
def test_five_of_fifty_are_killed_before_and_after_everything_they_do(tmp_path: Path) -> None:
    names = tuple(f"site-{i}" for i in range(50))
    declared(tmp_path, names, dropouts=5, patience=300)
    with sites_in(tmp_path, names) as sites:
        for point in POINTS:
            asked_while_some_die(tmp_path, sites, names, names[20:25], point)

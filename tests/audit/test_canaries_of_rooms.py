"""The same interface for every room: canaries in streams, federations, estimators and synthetic rows."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.audit.attacks.attack import AMPLE, less_noise

import defocus as dp
from defocus import audit
from defocus import workloads as w
from defocus.audit import OneRun
from defocus.noise.testing import seeded

MANY = 200
DELTA = 1e-5


def streamed(folder: Path) -> OneRun:
    """Each canary is in the first step of an entry of its own; all running sums are seen."""
    plan = w.RunningSum(4, epsilon=4, delta=1e-6, entries=MANY)

    def release(planted: list[int]) -> Any:
        first = np.bincount(planted, minlength=MANY)
        with dp.Ledger.open(folder / "stream", budget=AMPLE, unit=dp.rows(), dataset="visits") as ledger:
            running = plan.start(ledger=ledger, purpose="visits so far", bits=seeded(1))
            return sum(running.add(first * (step == 0)).value for step in range(4))

    return audit.run(release, range(MANY), event=plan.event, delta=DELTA, independent=True, bits=seeded(2))


def federated(folder: Path) -> OneRun:
    """Each canary is one more person of a village, at one of two sites."""

    def release(planted: list[int]) -> Any:
        sites = {}
        for name, people in {"north": planted[::2], "south": planted[1::2]}.items():
            data = pa.table({"person": pa.array(people, pa.int64()), "village": pa.array(people, pa.int64())})
            facts: dict[str, Any] = {"unit": dp.user("person"), "budget": AMPLE, "name": "villages"}
            sites[name] = dp.open(data, ledger=folder / name, bound=dp.tables.Bound(rows=1), **facts)
        return dp.federation(sites).group_by("village", keys=range(MANY)).agg(n=dp.count()).release(epsilon=3)

    def in_it(answer: Any, village: int) -> float:
        return float(answer.columns[0].values[village])

    return audit.run(release, range(MANY), in_it, delta=DELTA, independent=True, bits=seeded(3))


def fitted(folder: Path) -> OneRun:
    """Each canary is large in one feature of many, and the mean of that feature is looked at."""
    bits = seeded(4)
    model = dp.learning.StandardScaler(epsilon=3, delta=1e-6, bounds=(-1, 1), bits=bits)

    def release(planted: list[int]) -> Any:
        with dp.Ledger.open(folder / "fits", budget=AMPLE, unit=dp.rows(), dataset="examples") as ledger:
            return model.set_params(ledger=ledger).fit(np.vstack([np.zeros((100, 40)), np.eye(40)[planted]])).mean_

    release([0])
    return audit.run(release, range(40), event=model.event_, delta=DELTA, runs=4, bits=seeded(5))


def synthesised(folder: Path) -> OneRun:
    """Each canary has a value of its own, and what is known about rows of that value is looked at."""
    bits, words = seeded(6), [f"value {i}" for i in range(40)]

    def release(planted: list[int]) -> Any:
        data = pa.table({"a": [words[i] for i in (*planted, *list(range(40)) * 100)]})
        place = folder / str(len(list(folder.iterdir())))
        with dp.open(data, unit=dp.rows(), budget=AMPLE, ledger=place, name="rows") as table:
            return dp.synthesise(table, epsilon=3, delta=1e-6, columns={"a": words}, bits=bits)

    def rows(made: Any, value: int) -> float:
        return float(made.fitted.within[0][value])

    return audit.run(release, range(40), rows, delta=DELTA, runs=4, bits=seeded(8))


ROOMS: dict[str, tuple[Callable[[Path], OneRun], Fraction | None]] = {
    "a stream": (streamed, Fraction(1, 3)),
    "a federation": (federated, None),  # shares of noise are drawn elsewhere: see the attacks on rooms
    "an estimator": (fitted, Fraction(1, 100)),
    "synthetic rows": (synthesised, Fraction(1, 100)),
}


@pytest.mark.parametrize("room", ROOMS)
def test_canaries_of_a_room_show_no_more_than_was_charged(room: str, tmp_path: Path) -> None:
    found = ROOMS[room][0](tmp_path)
    assert not found.violation, found
    assert 0 < float(found.claimed or 0) < 20


@pytest.mark.parametrize("room", [room for room, (_, part) in ROOMS.items() if part])
def test_and_less_noise_is_called(room: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release, part = ROOMS[room]
    assert part is not None
    less_noise(part)(monkeypatch)
    found = release(tmp_path)
    assert found.violation, found

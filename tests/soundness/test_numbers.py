"""Mechanisms, workloads and streams: what is given to them as numbers, at the ends of what numbers can be."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.soundness.odd_rows import VALUES
from tests.soundness.watching import Difference, attempt, compared, no_differences

import defocus as dp
from defocus import mechanisms, workloads
from defocus.mechanisms import (
    AboveThreshold,
    Exponential,
    Gaussian,
    Geometric,
    Laplace,
    PartitionSelection,
    PermuteAndFlip,
    Quantiles,
    RangeFinding,
    ReportNoisyMax,
    SubsetChoice,
)

MECHANISMS: Mapping[str, tuple[Any, Callable[[int], Any]]] = {
    "Laplace": (Laplace(scale=2), lambda n: n),
    "Laplace, a vector": (Laplace(scale=2), lambda n: [0, n]),
    "Laplace, an array": (Laplace(scale=2), lambda n: np.array([0, n], dtype=object)),
    "Geometric": (Geometric(epsilon=1), lambda n: n),
    "Gaussian": (Gaussian(sigma=5), lambda n: n),
    "Exponential": (Exponential(epsilon=1, candidates=2), lambda n: [0, n]),
    "PermuteAndFlip": (PermuteAndFlip(epsilon=1, candidates=2), lambda n: [0, n]),
    "ReportNoisyMax": (ReportNoisyMax(epsilon=1, candidates=2), lambda n: [0, n]),
    "SubsetChoice": (SubsetChoice(epsilon=1, candidates=3, size=1), lambda n: [0, n, 1]),
    "Quantiles": (Quantiles(levels=[0.5], epsilon=1, buckets=4), lambda n: [0, n, 1, 0]),
    "RangeFinding": (RangeFinding(epsilon=1), lambda n: [n] + [0] * (RangeFinding(epsilon=1).buckets - 1)),
    "AboveThreshold": (AboveThreshold(epsilon=1, threshold=5), lambda n: [0, n]),
    "PartitionSelection": (PartitionSelection(epsilon=1, delta=1e-5), lambda n: [1, n]),
}
"""Each mechanism, and data in which one count is n."""

COUNTS = [0, 1, -1, 2**31 - 1, 2**53, 2**62, 2**63 - 2, 2**63 - 1, -(2**63)]
"""Counts with a neighbour that is one more."""


def book(home: Path) -> dp.Ledger:
    return dp.Ledger.open(home / "v.ledger", budget=dp.Budget(100, 1e-2), unit=dp.rows(), dataset="v")


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_no_count_is_told_by_a_release(name: str) -> None:
    mechanism, data = MECHANISMS[name]
    found: list[Difference] = []
    for n in COUNTS:

        def drive(home: Path, more: Sequence[int], n: int = n) -> Any:
            with book(home) as ledger:
                value = data(n + sum(more))
                return attempt(lambda: dp.release.release(mechanism, value, ledger=ledger, purpose="p"))

        found += compared(f"release({name}) of {n}", drive, {"one more": 1}, works=False)
    no_differences(found)


def test_every_mechanism_is_here() -> None:
    """What has a sample and is public is driven above, or in graphs, which alone use it."""
    driven = {name.split(",")[0] for name in MECHANISMS}
    graphs = {"Ladder", "NoisyLocalSensitivity", "Ramp"}
    local = {"RandomizedResponse"}
    every = {name for name in mechanisms.__all__ if hasattr(getattr(mechanisms, name), "sample")} - {"Mechanism"}
    assert every == driven | graphs | local


RECORDS = [[i % 3, i % 2] for i in range(9)]


def test_no_record_is_told_by_a_workload() -> None:
    plan = workloads.plan(workloads.marginals([3, 2], up_to=2), epsilon=2, delta=1e-4)

    def drive(home: Path, added: Sequence[Any]) -> Any:
        with book(home) as ledger:
            made = attempt(lambda: repr(workloads.records([*RECORDS, *added])))
            released = attempt(
                lambda: str(plan.release(workloads.records([*RECORDS, *added]), ledger=ledger, purpose="p"))
            )
            return [made, released, str(plan)]

    odds: dict[str, Any] = {
        "an ordinary record": [1, 1],
        "a short record": [1],
        "a long record": [1, 1, 1],
        "none": None,
    }
    for name, make in VALUES.items():
        odds[f"{name} in a record"] = [1, make()]
        odds[f"{name} as a record"] = make()
    no_differences(compared("workloads.records", drive, odds))


def test_no_record_is_told_by_grids() -> None:
    grid = mechanisms.Grid(step=0.25)

    def drive(home: Path, added: Sequence[Any]) -> Any:
        del home
        values = [0.5, 1.0, *added]
        return [
            attempt(lambda: type(grid.total(values, low=0, high=2)).__name__),
            attempt(lambda: [str(grid.contributions(values, low=0, high=2).dtype), "made"]),
        ]

    no_differences(compared("mechanisms.Grid", drive, {name: make() for name, make in VALUES.items()}))


@pytest.mark.parametrize("method", ["square root", "binned", "banded", "tree"])
def test_no_step_is_told_by_a_stream(method: str) -> None:
    stream = workloads.RunningSum(4, epsilon=2, delta=1e-4, method=method)

    def drive(home: Path, added: Sequence[Any]) -> Any:
        value = added[0] if added else 2**24
        with book(home) as ledger:
            running = stream.start(ledger=ledger, purpose="p")
            steps = [attempt(lambda each=each: str(running.add(each))) for each in (3, value, 1)]  # type: ignore[misc]
            return [steps, attempt(lambda: str(running))]

    whole = {"one more": 2**24 + 1, "many more": 2**60, "2**63": 2**63, "10**400": 10**400, "numpy": np.int64(7)}
    no_differences(compared(f"RunningSum, {method}", drive, {**whole, "uint64": np.uint64(2**64 - 1)}, apart=True))

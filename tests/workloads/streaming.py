"""The matrix that a strategy really applies, read off its memory one unit step at a time."""

from typing import Any

import numpy as np

from defocus.workloads.streams.run import FactorMemory, TreeMemory
from defocus.workloads.streams.shaped import Shaped
from defocus.workloads.streams.strategies import Factor, Tree

FACTORS: list[dict[str, Any]] = [
    {},
    {"normalised": True},
    {"bandwidth": 5},
    {"spread": 1},
    {"spread": 2, "normalised": True},
    {"spread": 3},
]


def factor(steps: int, bits: tuple[int, int] = (18, 16), **kind: Any) -> Factor:
    return Factor(steps, bits=bits if kind.get("normalised") else (bits[0], 0), **kind)


def noisy_rows(strategy: Factor | Shaped | Tree, x: list[int]) -> list[int]:
    """What meets the noise at each step, caught where the noise is asked for. Python integers, so nothing wraps."""
    if isinstance(strategy, Tree):
        tree = TreeMemory(strategy, 1)
        rows: list[int] = []
        for value in x:
            before = tree._exact[:, 0].copy()

            def none(k: int, before: Any = before, value: int = value) -> Any:
                rows.extend(strategy.scale * (int(b) + value) for b in before[:k])
                return np.zeros((k, 1), dtype=np.int64)

            tree.advance(np.array([value]), none)
        return rows
    memory = FactorMemory(strategy, 1)
    found = []
    for t, value in enumerate(x):
        memory.advance(np.array([value]), lambda k: np.zeros((k, 1), dtype=np.int64))
        m = memory._m
        g = strategy.row(t, memory._first[:m])
        found.append(sum(int(c) * int(e) for c, e in zip(g, memory._exact[:m, 0], strict=True)))
    return found


def matrix(strategy: Factor | Shaped | Tree) -> np.ndarray:
    columns = [noisy_rows(strategy, [int(t == s) for t in range(strategy.steps)]) for s in range(strategy.steps)]
    return np.array(columns, dtype=object).T

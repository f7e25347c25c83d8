"""All small lists of edges with weights or times, and how far neighbours among them differ: for certificates."""

import itertools
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from defocus.graphs.data import Data
from defocus.graphs.pairs import MISSING_TIME, Pairs
from defocus.privacy.units import Adjacency, Unit

__all__ = ["MOMENTS", "event_steps", "weight_steps"]

MOMENTS = (MISSING_TIME, -7, 0, 5, 10)
"""When an interaction may have been: not known, before the start, in the first step, in the second, after the end."""


def weight_steps(statistic: Any, nodes: int, unit: Unit) -> Iterator[NDArray[np.int64]]:
    """How far the vectors of two lists differ of which one weight is replaced, for all lists of two lines.

    Ends are all pairs of nodes, or nobody; weights are zero, half the bound, the bound, above it, and no number.
    """
    bound = float(unit.bound or 0)
    weights = (0.0, 0.5 * bound, bound, 9 * bound, float("nan"))
    for ends in itertools.product(_ends(nodes), repeat=2):
        every = np.array([[statistic.exact(_data(nodes, ends, weights=(a, b))) for b in weights] for a in weights])
        for one, other in itertools.combinations(range(len(weights)), 2):
            yield every[one] - every[other]
            yield every[:, one] - every[:, other]


def event_steps(statistic: Any, nodes: int, unit: Unit) -> Iterator[NDArray[np.int64]]:
    """How far the vectors of two lists differ of which one has one line more, or another line; of up to two lines."""
    lines = list(itertools.product(_ends(nodes), MOMENTS))

    def vector(*listed: tuple[tuple[int, int], int]) -> NDArray[np.int64]:
        found: NDArray[np.int64] = statistic.exact(
            _data(nodes, [ends for ends, _ in listed], times=[moment for _, moment in listed])
        )
        return found

    alone = np.array([vector(one) for one in lines])
    if unit.adjacency is Adjacency.REPLACE:
        for each in alone:
            yield alone - each
        return
    yield alone - vector()
    for place, one in enumerate(lines):
        both = np.array([vector(one, other) for other in lines[:: max(1, nodes)]])
        yield both - alone[place]
        yield both - alone[:: max(1, nodes)]


@cache
def _ends(nodes: int) -> tuple[tuple[int, int], ...]:
    """All pairs of nodes, the same one twice too; -1 is nobody."""
    return tuple(itertools.product(range(-1, nodes), range(-1, nodes)))


def _data(
    nodes: int,
    ends: Sequence[tuple[int, int]],
    *,
    weights: Sequence[float] | None = None,
    times: Sequence[int] | None = None,
) -> Data:
    left, right = (np.array([pair[side] for pair in ends], np.int64) for side in (0, 1))
    made = Pairs(
        left,
        right,
        None if weights is None else np.array(weights, np.float64),
        None if times is None else np.array(times, np.int64),
    )
    return Data(lambda: (made, range(nodes)))

"""The noise that a release was planned with, kept beside its answer, for whoever compares it with the charge."""

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from defocus.errors import UnsupportedEventError
from defocus.privacy.accounting import tightest_at
from defocus.privacy.events import Approximate, DiscreteGaussian, DiscreteLaplace, Event, compose
from defocus.privacy.units import Adjacency
from defocus.privacy.wire import from_wire, to_wire

__all__ = ["PlannedNoise", "contradictions"]

_SLACK = 1e-6
"""Deviations are floats: more than this apart they are different ones."""


@final
@dataclass(frozen=True, slots=True)
class PlannedNoise:
    """The noise of one measurement of a release: what it owes, and how many of its steps make one in the answer.

    ``grid`` is None where no noise is added to numbers, as where keys are found, or the grid is found privately.

    >>> from defocus.privacy.events import DiscreteLaplace
    >>> round(PlannedNoise("sums 0", DiscreteLaplace(40, 10), 10).deviation, 2)
    5.66
    """

    measurement: str
    event: Event
    grid: int | None = None
    sources: tuple[str, ...] = ()
    """By which names columns of the answer refer to its noise, where that is not the name of the measurement."""

    @property
    def deviation(self) -> float | None:
        r"""The standard deviation of the noise in the answer; None where the event does not tell.

        Discrete Laplace noise of scale b has the variance :math:`1 / 2\sinh^2(1/2b)`; discrete Gaussian noise of one
        step and more has that of the normal law up to a millionth.
        """
        if self.grid is None:
            return None
        if isinstance(self.event, DiscreteLaplace):
            return 1 / (math.sqrt(2) * math.sinh(1 / (2 * float(self.event.scale)))) / self.grid
        if isinstance(self.event, DiscreteGaussian) and self.event.sigma >= 1:
            return float(self.event.sigma) / self.grid
        return None

    def to_dict(self) -> dict[str, Any]:
        """The noise with JSON types only."""
        named = {"measurement": self.measurement, "event": to_wire(self.event), "grid": self.grid}
        return {**named, **({"sources": list(self.sources)} if self.sources else {})}

    @classmethod
    def read(cls, written: Any) -> "PlannedNoise":
        """The noise that :meth:`to_dict` wrote."""
        grid, sources = written["grid"], tuple(map(str, written.get("sources", ())))
        return cls(
            str(written["measurement"]), from_wire(written["event"]), None if grid is None else int(grid), sources
        )


def contradictions(record: Any, charged: Event, adjacency: Adjacency) -> tuple[int, list[str]]:
    """How many measurements the plan in a kept answer has, and what in it does not agree with the charge.

    Guarantee:
        If nothing is found, the events of all measurements compose to the one that was charged, or cost no more than
        the pair that was charged instead; and what the answer says about the noise of its counts is the scale of these
        events. A keeper who states one noise and charges for another is found out.
    """
    if not isinstance(record, dict) or not record.get("plan"):
        return 0, []
    planned = [PlannedNoise.read(each) for each in record["plan"]]
    found = []
    if not _pays(charged, compose([each.event for each in planned]), adjacency):
        found.append("the noise in its plan is not the noise that was charged")
    deviations = {source: each.deviation for each in planned for source in each.sources or (each.measurement,)}
    counts = [
        column for column in record["columns"] if column["integral"] and (column.get("noise") or {}).get("linear")
    ]
    if not all(_agrees(column, deviations) for column in counts):
        found.append("its answer states another noise than its plan has")
    return len(planned), found


def _pays(charged: Event, planned: Event, adjacency: Adjacency) -> bool:
    if charged == planned:
        return True
    if not isinstance(charged, Approximate):
        return False
    try:
        least = tightest_at(planned, charged.delta, adjacency).epsilon(charged.delta)
    except UnsupportedEventError:
        return False
    return least <= float(Fraction(charged.epsilon)) * (1 + _SLACK)


def _agrees(column: Any, deviations: Mapping[str, float | None]) -> bool:
    """Whether a count has the noise of its measurements and no other, and errors that follow from it."""
    size = len(column["errors"])
    squares: Any = 0.0
    for source, packed in column["noise"]["factors"].items():
        deviation, cells = deviations.get(source), int(packed["cells"])
        if source not in deviations:
            return False
        factors = np.frombuffer(base64.b64decode(packed["floats"], validate=True), "<f8").reshape(-1, cells)
        if deviation is not None and not np.all((factors == 0) | np.isclose(np.abs(factors), deviation, _SLACK, 0)):
            return False
        squares = squares + np.broadcast_to(np.square(factors).sum(axis=1), size)
    errors = np.array([float(x) for x in column["errors"]])
    return bool(np.allclose(errors, np.sqrt(squares), _SLACK, 0))

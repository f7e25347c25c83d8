"""Means and distributions of numbers: both sides of a numeric design in one object."""

import math
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, Number
from defocus.local.aggregation import Countable, counted
from defocus.local.clients import Client
from defocus.local.designs import Design, Numeric, from_json, numeric, to_json
from defocus.local.designs.numeric import LocalLaplace, Window
from defocus.local.domains import Interval
from defocus.local.estimates import Collected, estimated
from defocus.local.reports import Reports
from defocus.local.servers import Server, State
from defocus.local.servers.supports import expectation_maximisation
from defocus.noise import Bits
from defocus.privacy import events

__all__ = ["BothSides", "Mean", "mean", "moments"]


class BothSides:
    """What every oracle does with its design."""

    __slots__ = ()
    design: Design

    @property
    def name(self) -> str:
        """What it is called."""
        return self.design.name

    @property
    def epsilon(self) -> Number:
        """What one report costs, as declared; the exact law costs no more."""
        return self.design.epsilon

    @property
    def event(self) -> events.Event:
        """What one report costs its person, for a ledger whose unit is the person."""
        return self.design.event

    def client(self) -> Client:
        """The device's side."""
        return Client(self.design)

    def server(self, *, replays: int = 0) -> Server:
        """The collector's side."""
        return Server(self.design, replays=replays)

    def encode(self, values: Any, bits: Bits | None = None) -> Reports:
        """One report for each value, each of another person."""
        return self.client().encode(values, bits)

    def to_json(self) -> str:
        """The public description."""
        return to_json(self.design)


@final
@dataclass(frozen=True, slots=True)
class Mean(BothSides):
    """A numeric oracle.

    >>> asked = mean("hybrid", 0, 100, epsilon=1)
    >>> estimate = asked.estimate(asked.encode([20.0] * 5000))
    >>> bool(abs(estimate.value - 20) < 8 * estimate.error)
    True
    """

    design: Numeric

    @property
    def domain(self) -> Interval:
        """Between which ends the numbers lie."""
        return self.design.domain

    @property
    def worst_variance(self) -> float:
        """The variance of one report's guess where it is largest; that of the mean of n is this over n, at most."""
        return self.design.worst_variance

    def estimate(self, reports: Countable) -> Collected:
        """The mean, from reports, messages, or what a server counted, with the error that the noise has on average.

        The error is about the mean of those who reported, whose numbers are what they are: their spread is no part of
        it. For *duchi*, whose single bits do not tell spread from noise, it is the largest that fits the reports.
        """
        state = counted(self.design, reports)
        n = state.reports
        if n < 2:
            raise InvalidParameterError(f"{n} reports have no mean with an error.", fix="collect two or more.")
        first, second = moments(self.design, state)
        noise = max(self.design.mean_variance(first / n, second / n), 0.0)
        width = float(self.domain.width)
        mean, error = float(self.domain.low) + width * (first / n), width * math.sqrt(noise / n)
        return Collected(
            {},
            estimated("mean", np.array([mean]), np.array([error]), f"unbiased, from {n} reports"),
            "the mean of everybody's numbers",
            ("number", "numbers"),
            n,
            sum(state.rejected.values()),
            self.design.promise,
        )

    def distribution(
        self,
        reports: Countable,
        bins: int = 64,
        *,
        smooth: bool = True,
    ) -> NDArray[np.float64]:
        """The shares of ``bins`` equal parts of the interval, by expectation-maximisation. Not unbiased.

        Made for square wave; works for piecewise, too.
        """
        if not isinstance(self.design, Window):
            raise InvalidParameterError(
                f"{self.name} tells the mean only.", fix="collect with the square-wave oracle for a distribution."
            )
        return expectation_maximisation(self.design, counted(self.design, reports).tally, bins, smooth=smooth)

    @staticmethod
    def from_json(text: str | bytes) -> "Mean":
        """Read a description."""
        design = from_json(text)
        if not isinstance(design, Numeric):
            raise InvalidParameterError(f"{design.name} is about categories.", fix="read it with Oracle.from_json.")
        return Mean(design)


def mean(
    name: str,
    low: Number,
    high: Number,
    epsilon: Number,
    *,
    outside: Literal["clip", "refuse"] = "clip",
    **options: Any,
) -> Mean:
    """A numeric oracle by name: hybrid (the best mean), piecewise, duchi, laplace, or square-wave (the distribution).

    >>> mean("hybrid", -1, 1, 4).worst_variance < mean("piecewise", -1, 1, 4).worst_variance
    True
    """
    return Mean(numeric(name, low, high, epsilon, outside=outside, **options))


def moments(design: Numeric, state: State) -> tuple[float, float]:
    """The sum of all guesses, as shares of the interval, and of their squares: what was seen, without any theory."""
    if isinstance(design, LocalLaplace):
        _, total, low, high = (int(x) for x in state.tally)
        return total / design.steps, (low + (high << 32)) / design.steps**2
    guesses = design.guesses
    return float(state.tally @ guesses), float(state.tally @ guesses**2)

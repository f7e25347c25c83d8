"""Interactions over time, where one of them is protected."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.answers.columns import Tails, noisy
from defocus.errors import InvalidParameterError, NotDeclaredError, whole
from defocus.graphs.data import Data
from defocus.graphs.noise import ByStrategy, VectorNoise, noises
from defocus.graphs.public import IntVector, Public
from defocus.graphs.question import TIME, Method, Result
from defocus.graphs.statistics.weights import Interactions
from defocus.noise import Bits
from defocus.privacy.budgets import Budget
from defocus.workloads import Plan, plan, prefix

__all__ = ["AskInteractions", "Running"]

_UNITS = {"us": 1, "ms": 10**3, "s": 10**6, "min": 6 * 10**7, "h": 36 * 10**8, "d": 864 * 10**8, "w": 6048 * 10**8}
_LENGTH = re.compile(r"([0-9]{1,9}) ?(us|ms|s|min|h|d|w)")
_MOST = 100_000
"""So many steps are released in a moment; more are likely to be a slip in their length."""
_RULES = (
    "interactions outside of the steps, or without a time, are left out",
    "every line is an interaction: one that is listed twice counts twice",
)
_PLANNED = 2048
"""Up to so many steps the best strategy for running totals is found in a moment."""


@final
@dataclass(frozen=True, slots=True)
class AskInteractions:
    r"""How many interactions there were in each step of time, from ``start`` to before ``end``, in steps ``every``.

    All three are public: nothing about time is read off the data. With ``running``, totals since the start.

    Guarantee:
        Event privacy: one interaction is in one step, so :math:`\Delta_1 = \Delta_2 = 1` for the whole series, however
        many steps there are: nothing is composed over time. Interactions outside of the steps, without a time, of a
        node with itself, or with an end that is no node are left out.
    """

    every: Any
    start: Any
    end: Any
    running: bool = False

    def __post_init__(self) -> None:
        _ = self.bounds

    @property
    def words(self) -> str:
        """What is asked."""
        what = "interactions since the start" if self.running else "interactions"
        return f"{what} every {self.every}, from {self.start} to before {self.end}"

    @property
    def bounds(self) -> NDArray[np.int64]:
        """Where steps begin, and the end of the last: whole microseconds, or whatever times are counted in."""
        every, start, end = _length(self.every), _moment("start", self.start), _moment("end", self.end)
        steps = -(-(end - start) // every)
        if steps < 1 or steps > _MOST:
            raise InvalidParameterError(
                f"From start to end there are {max(steps, 0)} steps, and there must be 1 to {_MOST}.",
                fix="pass start before end, or longer steps.",
            )
        return np.minimum(start + every * np.arange(steps + 1, dtype=np.int64), end)

    @property
    def statistic(self) -> Interactions:
        """What is counted, with how far one interaction moves it."""
        return Interactions(tuple(self.bounds.tolist()))

    def check(self, public: Public) -> None:
        """Refuse graphs of which it cannot be asked."""
        self.statistic.sensitivity(public)

    def methods(self, public: Public, budget: Budget) -> Sequence[Method]:
        """Noise on every step; for totals, on what serves all of them best."""
        steps = self.statistic.length(public)
        if not self.running:
            return noises(self.statistic, public, budget, self._by_step, rules=_RULES, of_data=True)
        if steps <= _PLANNED:
            strategy = plan(prefix(steps), epsilon=budget.epsilon, delta=budget.delta, unit=public.unit)
            return [Running(self, strategy)]
        middle = math.sqrt(max(steps / 2, 1))
        return noises(
            self.statistic,
            public,
            budget,
            self._added_up,
            expected=lambda mechanism: mechanism.error * middle,
            width=lambda _: math.nan,
            rules=_RULES,
            of_data=True,
        )

    def _by_step(self, method: VectorNoise, values: IntVector, _data: Data) -> Result:
        """Independent noise on every step."""
        half, tails = method.interval, Tails.LOG_CONCAVE
        column = noisy("interactions", values, error=method.mechanism.error, half=half, how=method.how, tails=tails)
        return Result((column,), keys={TIME: _shown(self.bounds[:-1], self)})

    def _added_up(self, method: VectorNoise, values: IntVector, _data: Data) -> Result:
        """The same, added up for totals."""
        totals = np.cumsum(values).astype(np.float64)
        spread = np.sqrt(method.mechanism.variance * np.arange(1, len(values) + 1))
        half = math.sqrt(20) * spread  # Chebyshev's inequality at 5 %
        column = noisy("interactions", totals, error=0.8 * spread, half=half, how=method.how)
        keys = {TIME: _shown(self.bounds[:-1], self)}
        return Result((column,), keys=keys, processing=("noisy numbers of steps were added up",))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Running(ByStrategy):
    """Totals since the start, from a strategy that serves all of them: see :mod:`defocus.workloads`."""

    question: AskInteractions
    plan: Plan
    name: str = "matrix mechanism"
    rules: tuple[str, ...] = _RULES

    @property
    def how(self) -> str:
        """The strategy, in words."""
        return f"{self.plan.noise} noise on the strategy {self.plan.measurement.name}"

    def run(self, data: Data, bits: Bits) -> Result:
        """Count, measure, reconstruct all totals."""
        measurement, workload = self.plan.measurement, self.plan.workload
        rows = measurement.sample(self.question.statistic.exact(data), bits)
        totals = np.asarray(measurement.strategy.answers(workload, rows), dtype=np.float64)
        half = self.plan.intervals(0.95)
        errors = np.sqrt(2 / math.pi * self.plan.variances())
        column = noisy("interactions", totals, error=errors, half=half, how=self.how, integral=False)
        done = ("totals were reconstructed from noisy sums of several steps by least squares",)
        return Result((column,), keys={TIME: _shown(self.question.bounds[:-1], self.question)}, processing=done)


def _length(every: Any) -> int:
    """A step in microseconds, or in whatever whole numbers times are counted in."""
    if isinstance(every, timedelta):
        return whole("every", every // timedelta(microseconds=1), at_least=1)
    if isinstance(every, str):
        matched = _LENGTH.fullmatch(every.strip())
        if matched is None or int(matched[1]) == 0:
            raise InvalidParameterError(
                f"every={every!r:.60} is not a length of time.", fix='pass for example "1d", "12h", "15min" or "30s".'
            )
        return int(matched[1]) * _UNITS[matched[2]]
    return _fitting("every", whole("every", every, at_least=1))


def _moment(name: str, moment: Any) -> int:
    """A moment in microseconds since 1970, or a whole number as it is."""
    if moment is None:
        raise NotDeclaredError(
            f"The {name} of the series is not declared, and it is not read off the data.",
            fix=f'pass {name}="2024-01-01", or a whole number if times are whole numbers.',
        )
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            raise InvalidParameterError(
                f"{name}={moment!r:.60} is not a date.", fix='pass for example "2024-01-31" or "2024-01-31 12:00".'
            ) from None
    if isinstance(moment, date) and not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    if isinstance(moment, datetime):
        zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (zoned - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    if isinstance(moment, bool) or not isinstance(moment, int | np.integer):
        raise InvalidParameterError(
            f"{name} has type {type(moment).__name__}.", fix="pass a date, a text that is one, or a whole number."
        )
    return _fitting(name, int(moment))


def _fitting(name: str, number: int) -> int:
    if not -(2**62) < number < 2**62:
        raise InvalidParameterError(f"{name} does not fit in 62 bits.", fix="pass a smaller number.")
    return number


def _shown(bounds: NDArray[np.int64], question: AskInteractions) -> list[Any]:
    """When steps begin: as dates where dates were given."""
    if isinstance(question.start, int | np.integer):
        return [int(bound) for bound in bounds]
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return [(epoch + timedelta(microseconds=int(bound))).replace(tzinfo=None) for bound in bounds]

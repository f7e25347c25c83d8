"""Noise for global sensitivities: one vector, one noise, whatever the graph is like."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

import numpy as np

from defocus.answers.columns import Tails, noisy
from defocus.errors import CannotCalibrateError, DefocusError, InvalidParameterError, UnsupportedEventError
from defocus.graphs.data import Data
from defocus.graphs.public import IntVector, Public, Statistic
from defocus.graphs.question import Method, Result
from defocus.graphs.statistics import registered
from defocus.mechanisms import Gaussian, Laplace
from defocus.noise import Bits
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event

__all__ = ["Finish", "VectorNoise", "attempted", "noises", "numbers", "offered"]

Finish: TypeAlias = Callable[["VectorNoise", IntVector, Data], Result]
"""From noisy numbers to a result: titles, keys and post-processing."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class VectorNoise:
    """Discrete Laplace or Gaussian noise on every entry of a statistic.

    A statistic counts in whole numbers. Where the answer does not, ``grain`` is what one of them stands for; errors,
    intervals and words are those of the answer.

    Guarantee:
        That of the mechanism: its sensitivity is the statistic's own sensitivity under the unit of the graph.
    """

    name: str
    statistic: Statistic
    mechanism: Laplace | Gaussian
    finish: Finish
    directed: bool = False
    expected: float | None = None
    """The error to expect after post-processing, where that is less than the noise."""
    rules: tuple[str, ...] = ()
    grain: Fraction = Fraction(1)
    width: float | None = None
    """The half-width at 95 % after post-processing, where that is not the one of the noise."""
    foretold: tuple[str, ...] = ()
    """What a preview says besides."""

    @property
    def event(self) -> Event:
        """What one release owes."""
        return self.mechanism.event

    @property
    def error(self) -> float:
        """The expected absolute error of an entry."""
        return self.mechanism.error * float(self.grain) if self.expected is None else self.expected

    @property
    def interval(self) -> float:
        """The half-width at 95 %."""
        return self.mechanism.interval(0.95) * float(self.grain) if self.width is None else self.width

    @property
    def how(self) -> str:
        """The kind and size of the noise."""
        if isinstance(self.mechanism, Laplace):
            return f"discrete Laplace noise of scale {float(self.mechanism.scale * self.grain):.6g}"
        return f"discrete Gaussian noise of standard deviation {float(self.mechanism.sigma * self.grain):.6g}"

    def run(self, data: Data, bits: Bits) -> Result:
        """Count, add noise, finish."""
        exact = self.statistic.exact(data.directed if self.directed else data.graph)
        return self.finish(self, np.asarray(self.mechanism.sample(exact, bits)), data)


def numbers(*titles: str) -> Finish:
    """A result of single numbers, one column each."""

    def finish(method: VectorNoise, values: IntVector, _data: Data) -> Result:
        error, half = method.mechanism.error, method.interval
        parts = zip(titles, values, strict=True)
        tails = Tails.LOG_CONCAVE
        return Result(
            tuple(noisy(title, [x], error=error, half=half, how=method.how, tails=tails) for title, x in parts)
        )

    return finish


def noises(
    statistic: Statistic,
    public: Public,
    budget: Budget,
    finish: Finish,
    *,
    prefix: str = "",
    expected: Callable[[Laplace | Gaussian], float] | None = None,
    width: Callable[[Laplace | Gaussian], float] | None = None,
    grain: Fraction = Fraction(1),
    rules: Sequence[str] = (),
    foretold: Sequence[str] = (),
) -> list[Method]:
    """Laplace noise, and Gaussian noise where the budget has a delta, for a statistic that is registered."""
    registered(statistic)
    sensitivity, length = statistic.sensitivity(public), statistic.length(public)

    def method(name: str, mechanism: Laplace | Gaussian) -> VectorNoise:
        known = None if expected is None else expected(mechanism)
        half = None if width is None else width(mechanism)
        called, way = f"{prefix}{name}", public.directed
        return VectorNoise(called, statistic, mechanism, finish, way, known, tuple(rules), grain, half, tuple(foretold))

    ways: list[Callable[[], Method]] = [
        lambda: method("laplace", Laplace.calibrated(Budget(budget.epsilon), sensitivity=sensitivity.l1))
    ]
    if budget.delta:
        ways.append(
            lambda: method("gaussian", Gaussian.calibrated(budget, sensitivity=sensitivity.l2, dimension=length)),
        )
    return attempted(ways)


def attempted(ways: Sequence[Callable[[], Method]]) -> list[Method]:
    """The methods that can be made. If none can, the first one's reason is given."""
    return offered(*((lambda way=way: [way()]) for way in ways))


def offered(*kinds: Callable[[], Sequence[Method]]) -> list[Method]:
    """The methods of all kinds that are not refused. If there are none, the first refusal is."""
    made: list[Method] = []
    failure: DefocusError | None = None
    for kind in kinds:
        try:
            made += kind()
        except (CannotCalibrateError, InvalidParameterError, UnsupportedEventError) as problem:
            failure = failure or problem
    if not made and failure is not None:
        raise failure
    return made

"""Noise for the worst graph, and noise that follows this one: as wide as the statistic can move around it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias, final

import numpy as np

from defocus.answers.columns import Tails, brief, noisy
from defocus.errors import (
    CannotCalibrateError,
    DefocusError,
    InvalidParameterError,
    Number,
    UnsupportedEventError,
    count,
)
from defocus.graphs.data import Data
from defocus.graphs.graph import Graph
from defocus.graphs.public import IntVector, Public, Statistic
from defocus.graphs.question import Method, Result
from defocus.graphs.statistics import registered
from defocus.mechanisms import Gaussian, Ladder, Laplace, NoisyLocalSensitivity, Ramp
from defocus.noise import Bits
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event, compose
from defocus.privacy.groups import group
from defocus.workloads import Plan

__all__ = [
    "MEASURED",
    "UNMEASURED",
    "ByStrategy",
    "Finish",
    "InstanceNoise",
    "Measured",
    "MeasuredRamp",
    "VectorNoise",
    "attempted",
    "guessed",
    "instance_noises",
    "noises",
    "numbers",
    "offered",
]


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
    of: Literal["graph", "directed", "data"] = "graph"
    """What the statistic is computed from: the graph, with or without direction, or the list of edges."""
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
        exact = self.statistic.exact(data if self.of == "data" else getattr(data, self.of))
        mechanism = self.mechanism
        if isinstance(mechanism, Gaussian) and 0 < len(exact) < mechanism.dimension:
            mechanism = replace(mechanism, dimension=len(exact))  # as if zeros were added, and not shown
        return self.finish(self, np.asarray(mechanism.sample(exact, bits)), data)


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
    of_data: bool = False,
) -> list[Method]:
    """Laplace noise, and Gaussian noise where the budget has a delta, for a statistic that is registered.

    ``of_data`` is for statistics of the list of edges, of whose length only a bound may be known before it is read.
    """
    registered(statistic)
    sensitivity = statistic.sensitivity(public)
    length = statistic.length(public)

    def method(name: str, mechanism: Laplace | Gaussian) -> VectorNoise:
        error = None if expected is None else expected(mechanism)
        half = None if width is None else width(mechanism)
        of: Literal["graph", "directed", "data"] = "data" if of_data else "directed" if public.directed else "graph"
        more = (error, tuple(rules), grain, half, tuple(foretold))
        return VectorNoise(f"{prefix}{name}", statistic, mechanism, finish, of, *more)

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
    methods: list[Method] = []
    failure: DefocusError | None = None
    for kind in kinds:
        try:
            methods += kind()
        except (CannotCalibrateError, InvalidParameterError, UnsupportedEventError) as problem:
            failure = failure or problem
    if not methods and failure is not None:
        raise failure
    return methods


MEASURED, UNMEASURED = "ramp, measured", "ramp"
"""The ramp with a bound on its level, and without one."""
_MEASURING = Fraction(1, 10)
"""Which part of epsilon a level takes that is released as well."""

Measured: TypeAlias = Callable[[Graph], Sequence[int]]
"""From a graph to the statistic and what its noise follows: a level, or widths."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class InstanceNoise:
    """Noise that follows a level of the graph, which stays private; what is shown does not depend on it.

    How far off the answer is stays private with it: no interval is shown, unless a bound on the level is released.

    Guarantee:
        That of the mechanism, which hides the level as well: what is assumed about the level is proven in the
        statistic, and checked on all small graphs, for one edge added or removed. Where one edge replaces another,
        those are two such ``changes``, and the event is that of a group of two.
    """

    name: str
    title: str
    mechanism: Ramp | Ladder | NoisyLocalSensitivity
    measured: Measured
    follows: str
    """What the level is, in words."""
    how: str
    changes: int = 1
    largest: int | None = None
    """The largest level that a graph of this size can have."""

    @property
    def event(self) -> Event:
        """What one release owes."""
        return group(self.mechanism.event, self.changes)

    @property
    def error(self) -> float:
        """The expected absolute error if the level is the one guessed."""
        return self.mechanism.error

    @property
    def interval(self) -> float:
        """The half-width at 95 % if the level is the one guessed."""
        return float(self.mechanism.interval(0.95))

    @property
    def rules(self) -> tuple[str, ...]:
        """Nothing is cut."""
        return ()

    @property
    def silent(self) -> bool:
        """Whether the size of the noise stays private, and any interval with it."""
        return not isinstance(self.mechanism, NoisyLocalSensitivity)

    @property
    def foretold(self) -> tuple[str, ...]:
        """On what guess the foretold error rests."""
        told = "stays private" if self.silent else "is released with noise as well"
        ramp = self.mechanism if isinstance(self.mechanism, Ramp) else None
        guess = _guess(self.follows, self.mechanism.typical, ramp, self.largest)
        return (f"{guess}; the noise follows the true one, which {told}",)

    def run(self, data: Data, bits: Bits) -> Result:
        """Count, measure the level, add noise."""
        values = self.measured(data.graph)
        if isinstance(self.mechanism, NoisyLocalSensitivity):
            released = self.mechanism.bounded(values, bits)
            half = float(self.mechanism.interval_for(released.bound, 0.95))
            error = half / math.log(20)
            column = noisy(self.title, [released.value], error=error, half=half, how=self.how)
            return Result((column,), notes=(f"a released bound: {self.follows} is at most {released.bound}",))
        value = self.mechanism.sample(values, bits)
        column = noisy(self.title, [value], error=math.nan, half=math.nan, how=self.how)
        return Result((column,), notes=(_unsaid(self.follows),))


@final
@dataclass(frozen=True, slots=True, eq=False)
class MeasuredRamp:
    r"""The ramp, and beside it a bound on the level it follows, so that the interval rests on no guess.

    Guarantee:
        A tenth of epsilon goes into the level, which moves by at most one, with discrete Laplace noise; the rest into
        the ramp. Both events compose. Where one edge replaces another, those are two ``changes``: the level moves by at
        most two, and the ramp owes what it owes a group of two.

    Error:
        Of what may lie outside of the interval, a fifth is left to the level being above its bound and the rest to the
        noise at that bound: at 95 %, the level is below its bound with probability 99 %, and the noise within the
        half-width with 96 %. Noise at a lower level is narrower, so both together hold with 95 % at least.
    """

    title: str
    ramp: Ramp
    level: Laplace
    measured: Measured
    follows: str
    name: str = MEASURED
    rules: tuple[str, ...] = ()
    confidence: Fraction = Fraction(95, 100)
    changes: int = 1
    largest: int | None = None
    """The largest level that a graph of this size can have."""

    @property
    def event(self) -> Event:
        """Both."""
        return compose([group(self.ramp.event, self.changes), self.level.event])

    @property
    def error(self) -> float:
        """The expected absolute error if the level is the one guessed."""
        return self.ramp.error

    @property
    def interval(self) -> float:
        """The half-width if the level is the one guessed and its bound an average one."""
        return float(self.ramp.interval_at(self.ramp.typical + self._margin, self._within))

    @property
    def foretold(self) -> tuple[str, ...]:
        """On what guess the foretold error rests."""
        guess = _guess(self.follows, self.ramp.typical, self.ramp, self.largest)
        return (f"{guess}; the interval of the answer will rest on no guess",)

    @property
    def _margin(self) -> int:
        """How far a noisy level is raised to bound the true one."""
        return self.level.interval(1 - 2 * (1 - self.confidence) / 5)

    @property
    def _within(self) -> Fraction:
        """How often the noise at the bound is within the half-width."""
        return 1 - 4 * (1 - self.confidence) / 5

    @property
    def how(self) -> str:
        """Both, in words."""
        return f"noise with slowly falling tails, scaled to {self.follows}, a bound of which is released as well"

    def run(self, data: Data, bits: Bits) -> Result:
        """Count, measure the level, add noise to both."""
        value, level = self.measured(data.graph)
        bound = max(0, self.level.sample(level, bits) + self._margin)
        noisy_value = self.ramp.sample((value, level), bits)
        half = float(self.ramp.interval_at(bound, self._within))
        column = noisy(self.title, [noisy_value], error=self.ramp.error_at(bound), half=half, how=self.how)
        sure = 100 * float(1 - (1 - self.confidence) / 5)
        return Result((column,), notes=(f"with {sure:g} % probability, {self.follows} is at most {bound}",))


def _guess(follows: str, typical: int, ramp: Ramp | None, largest: int | None) -> str:
    said = f"the error rests on a guess: {follows} is taken to be {typical}"
    if ramp is None or largest is None or largest <= typical:
        return said
    doubled, most = min(2 * typical, largest), ramp.error_at(largest)
    grown = f"at {doubled} it is {brief(ramp.error_at(doubled) / ramp.error)} times as large"
    return f"{said}; {grown}, and at {largest}, the most on any graph of this size, it is {brief(most)}"


def _unsaid(follows: str) -> str:
    return (
        f'no interval: the noise follows {follows}, which stays private; method="{MEASURED}" gives one, for a tenth of'
        " epsilon"
    )


def guessed(typical: object, public: Public, *, name: str = "typical") -> int:
    """A public guess of a level: what was given, else four times the root of the number of nodes."""
    if typical is not None:
        return count(name, typical)
    return max(1, min(4 * math.isqrt(public.n), public.n - 2))


def instance_noises(
    title: str,
    public: Public,
    budget: Budget,
    *,
    follows: str,
    typical: int,
    level: Measured,
    cap: int,
    power: int = 1,
    factor: Number = 1,
    local: bool = True,
) -> list[Method]:
    """The methods that follow the graph: ramp, ladder, and with a delta a noisy local sensitivity.

    They are proven for one edge added or removed. Where neighbours differ in k edges, each gets what keeps the promise
    to a group of k: a k-th of epsilon, and of delta a part in 1 + exp(epsilon / k) + … + exp(epsilon (k - 1) / k).

    Args:
        title: what the released number is called.
        public: what is public.
        budget: what may be spent.
        follows: what the level is, in words.
        typical: a public guess of it.
        level: the statistic and its level, which moves by at most one.
        cap: the global sensitivity.
        power: the statistic moves by at most ``factor`` times this power of the level.
        factor: see there.
        local: whether the level is how far one edge can move the statistic, as ladders and local noise need it.
    """
    if public.unit.kind != "edge":
        return []
    changes, whole = public.changes, Fraction(budget.epsilon or 0)
    epsilon: Any = budget.epsilon if changes == 1 else whole / changes
    usual = min(cap, max(1, math.floor(factor * typical**power)))
    largest = math.ceil(float(cap / Fraction(factor)) ** (1 / power))

    def made(name: str, mechanism: Any, measured: Measured, how: str) -> Callable[[], Method]:
        return lambda: InstanceNoise(name, title, mechanism(), measured, follows, how, changes, largest)

    ways = [
        made(
            UNMEASURED,
            lambda: Ramp(epsilon=epsilon, typical=typical, power=power, factor=factor),
            level,
            f"noise with slowly falling tails, scaled to {follows}",
        )
    ]
    ways.append(
        lambda: MeasuredRamp(
            title,
            Ramp(epsilon=whole / changes * (1 - _MEASURING), typical=typical, power=power, factor=factor),
            Laplace.calibrated(epsilon=whole * _MEASURING, sensitivity=changes),
            level,
            follows,
            changes=changes,
            largest=largest,
        )
    )
    if local:
        ways.append(
            made(
                "ladder",
                lambda: Ladder(epsilon=epsilon, cap=cap, typical=usual),
                level,
                f"ladder mechanism on {follows}",
            )
        )
    if local and budget.delta:
        delta = budget.delta if changes == 1 else _part(budget.delta, whole / changes, changes)
        ways.append(
            made(
                "noisy local sensitivity",
                lambda: NoisyLocalSensitivity(epsilon=epsilon, delta=delta, cap=cap, typical=usual),
                level,
                f"discrete Laplace noise for a noisy bound on {follows}",
            )
        )
    return attempted(ways)


def _part(delta: Number, epsilon: Fraction, changes: int) -> Fraction:
    """What of a delta one of several changes may take: all owe 1 + exp(epsilon) + … of it, and accountants round."""
    grown = sum((Fraction(math.exp(float(epsilon) * change)) for change in range(changes)), Fraction(0))
    return Fraction(delta) / grown * (1 - Fraction(1, 10**5))


class ByStrategy:
    """What a method says whose noise is added to the sums of a strategy: see :mod:`defocus.workloads`."""

    __slots__ = ()
    plan: Plan

    @property
    def event(self) -> Event:
        """What the measurement owes."""
        return self.plan.event

    @property
    def error(self) -> float:
        """The typical error of an answer, as if noise were normal."""
        return self.plan.error.rmse * math.sqrt(2 / math.pi)

    @property
    def interval(self) -> float:
        """The half-width at 95 % that holds for every answer."""
        return float(self.plan.intervals(0.95).max())

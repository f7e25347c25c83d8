r"""What a user declares of a run, read in the same way everywhere; without PyTorch.

From what a user declares to a plan: steps, sampling, noise and the one event of the whole run. All of it is public.

A step releases several things about one sample: the gradient, and what adaptive clipping and watching need. Each has
Gaussian noise of a ratio of its own. Together they are one Gaussian release whose ratio z satisfies
:math:`z^{-2} = \sum_i z_i^{-2}`, which is what is charged; part i with a share :math:`s_i` of the precision has
:math:`z_i = z/\sqrt{s_i}`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, final

from defocus.errors import InvalidParameterError, Number, UnsupportedEventError, count, positive
from defocus.learning.clipping import AdaptiveClipping, Clipping
from defocus.learning.metrics import Metrics
from defocus.learning.noise_schedule import Banded, Schedule, Strategy, strategy
from defocus.learning.sampling import Cyclic, Sampling, planned
from defocus.privacy.accounting import tightest
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import calibrate, check_budget, check_delta, spoken_delta
from defocus.privacy.events import Event
from defocus.privacy.units import Adjacency, Unit

__all__ = ["Plan", "plan", "protected", "steps_of"]


def protected(unit: object) -> Unit:
    """The unit, if examples can be counted in it."""
    if not isinstance(unit, Unit) or unit.kind not in {"rows", "user"}:
        raise InvalidParameterError(
            f"Training protects rows or users, but the unit is {unit!s:.60}.", fix='pass rows() or user("patient_id").'
        )
    return unit


def steps_of(epochs: object, size: int, batch: Fraction | int) -> int:
    """In how many steps each of ``size`` units is drawn ``epochs`` times on average; at least one.

    >>> steps_of(2, 100, 30), steps_of(0.001, 100, 30)
    (7, 1)
    """
    return max(1, math.ceil(Fraction(positive("epochs", epochs)) * size / batch))


_MOST_STEPS = 10**7


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """What a run will do, and what it owes."""

    unit: Unit
    budget: Budget
    size: int
    sampling: Sampling
    factors: tuple[float, ...] = field(repr=False)
    """The noise of each step, in multiples of the base."""
    ratio: float
    """The base: standard deviation over sensitivity of everything a step releases, taken together."""
    shares: tuple[float, float, float]
    """The parts of the precision for the gradient, the clip and the watch."""
    strategy: Strategy | None
    event: Event
    """What the whole run owes, charged before its first batch."""

    @property
    def steps(self) -> int:
        """How many steps the run may take: as many as were paid for."""
        return self.sampling.steps

    @property
    def batch(self) -> float:
        """The expected number of units in a step."""
        return float(self.sampling.batch)

    @property
    def delta(self) -> float:
        """The delta in which epsilons are told."""
        return spoken_delta(self.budget)

    def ratio_of(self, part: int, step: int) -> float:
        """Standard deviation over sensitivity of one part (0: gradient, 1: clip, 2: watch) of a step."""
        return self.ratio * self.factors[step] / math.sqrt(self.shares[part])

    def noise_in_words(self, part: int | None = None) -> str:
        """Standard deviation over sensitivity in every step, of one part or of all together.

        Where noise is correlated, that of the independent draws it is made of.
        """
        whole = self.ratio if part is None else self.ratio / math.sqrt(self.shares[part])
        base = whole if self.strategy is None else whole * self.strategy.norm
        least, most = base * min(self.factors), base * max(self.factors)
        return f"{base * self.factors[0]:.4g}" if least == most else f"between {least:.4g} and {most:.4g}"

    def event_after(self, steps: int) -> Event:
        """What the first ``steps`` steps owe by themselves."""
        return self.sampling.event([self.ratio * factor for factor in self.factors[:steps]])

    def epsilon_after(self, steps: int) -> float:
        """Epsilon of the first ``steps`` steps by themselves, at the delta of the budget."""
        if not steps:
            return 0.0
        return tightest(self.event_after(steps), self.unit.adjacency).epsilon(self.delta)


def plan(
    *,
    unit: Unit,
    budget: Budget,
    size: int,
    batch: Number,
    epochs: Number | None,
    steps: int | None,
    sampling: object,
    noise: object,
    clipping: Clipping,
    watch: Metrics | str,
) -> Plan:
    """The plan of a run, with the least noise that its budget allows, or with the noise that was asked for."""
    check_budget(_a_budget(budget))
    if budget.delta:
        check_delta(budget.delta, size)
    replace = unit.adjacency is Adjacency.REPLACE
    rows = _batch(batch, size)
    banded = noise if isinstance(noise, Banded) else None
    total = _steps(size, rows, epochs, steps, sampling)
    drawn: Sampling
    how: Strategy | None = None
    if banded is None:
        drawn = planned(sampling, size=size, batch=rows, steps=total, replace=replace, delta=float(budget.delta))
    else:
        if sampling != "poisson":
            raise InvalidParameterError(
                "Correlated noise has a sampling of its own: units take part in turns.",
                fix="leave sampling= out with noise=Banded(…).",
            )
        if isinstance(watch, Metrics) and watch != Metrics():
            raise InvalidParameterError(
                "With correlated noise nothing is shown of losses and norms.",
                fix='leave watch= out with noise=Banded(…), or pass watch="private" as the owner of the data.',
            )
        if isinstance(clipping, AdaptiveClipping):
            raise InvalidParameterError(
                "Correlated noise takes back that of earlier steps, so a unit clipped at one step also moves later"
                " ones; where the clip shrinks in between, their noise would be too small for it.",
                fix="pass a fixed clip= with noise=Banded(…), or leave noise= out with clip=Quantile(…).",
            )
        drawn = _cyclic(banded, size=size, batch=rows, steps=total, replace=replace)
        how = strategy(banded, steps=total, groups=drawn.groups)
    schedule = noise if isinstance(noise, Schedule) else None
    factors = (1.0,) * total if schedule is None else schedule.at(total)
    given = None if noise is None or banded is not None or schedule is not None else positive("noise", noise)

    def event(ratio: float) -> Event:
        return drawn.event([ratio * factor for factor in factors])

    if given is None:
        ratio = _least(event, budget, unit)
    else:
        ratio = float(given)
        _within(event(ratio), budget, unit)
    watched = watch.share if isinstance(watch, Metrics) and banded is None else 0.0
    shares = (1 - clipping.share - watched, clipping.share, watched)
    return Plan(unit, budget, size, drawn, factors, ratio, shares, how, event(ratio))


def _cyclic(banded: Banded, *, size: int, batch: Fraction, steps: int, replace: bool) -> Cyclic:
    if banded.groups is None:
        return Cyclic(size, max(1, round(size / batch)), Fraction(1), steps, replace)
    rate = banded.groups * batch / size
    if rate > 1:
        raise InvalidParameterError(
            f"A batch of {float(batch):g} is more than one of {banded.groups} groups of {size} holds.",
            fix=f"pass groups <= {math.floor(size / batch)}, or a smaller batch=.",
        )
    return Cyclic(size, banded.groups, rate, steps, replace)


def _batch(batch: object, size: int) -> Fraction:
    rows = Fraction(positive("batch", batch))
    if rows < 1:
        raise InvalidParameterError(
            f"A batch of {float(rows):g} is less than one unit in a step.",
            fix="pass the expected number of units, not their share of the data.",
        )
    if rows > size:
        raise InvalidParameterError(
            f"A batch of {float(rows):g} cannot be drawn from {size}.", fix="pass a batch= of at most the size."
        )
    return rows


def _steps(size: int, batch: Fraction, epochs: object, steps: object, sampling: object) -> int:
    if (epochs is None) == (steps is None):
        raise InvalidParameterError(
            "How long to train is told by epochs= or by steps=, one of them.", fix="pass for example epochs=10."
        )
    if steps is not None:
        found = count("steps", steps)
    elif sampling == "balls in bins":
        found = count("epochs", epochs) * max(1, round(size / batch))
    elif sampling == "shuffled":
        found = count("epochs", epochs) * math.ceil(size / batch)
    else:
        found = steps_of(epochs, size, batch)
    if found > _MOST_STEPS:
        raise InvalidParameterError(
            f"A run has at most {_MOST_STEPS} steps, but this one has {found}.",
            fix="train for less, or in larger batches.",
        )
    return found


def _least(event: Callable[[float], Event], budget: Budget, unit: Unit) -> float:
    """The least ratio of noise that the budget allows."""
    try:
        return calibrate(event, budget, adjacency=unit.adjacency, low=1e-3, high=1e7)
    except UnsupportedEventError:
        if budget.epsilon is not None:
            raise
        raise InvalidParameterError(
            f"{budget} cannot be kept by steps on samples, for which its measure has no cost.",
            fix="pass Budget(epsilon, delta), or a batch= of all units, which is no sample.",
        ) from None


def _within(event: Event, budget: Budget, unit: Unit) -> None:
    loss = tightest(event, unit.adjacency)
    if not budget.covers(loss):
        epsilon = loss.epsilon(spoken_delta(budget))
        raise InvalidParameterError(
            f"With this noise the run costs epsilon {epsilon:.4g}, more than {budget}.",
            fix="leave noise= out, so that it is found for the budget; or train for fewer steps.",
        )


def _a_budget(budget: Any) -> Budget:
    if not isinstance(budget, Budget):
        raise InvalidParameterError(
            f"A run is given a Budget, but got {type(budget).__name__}.", fix="pass for example Budget(3, 1e-5)."
        )
    return budget

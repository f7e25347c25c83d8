r"""The plan of a run: its steps, its noise, and the event that it owes.

From what a user declares to a plan: steps, sampling, noise and the one event of the whole run. All of it is public.

A step releases several things about one sample: the gradient, and what adaptive clipping and metrics need. Each has
Gaussian noise of a ratio of its own. Together they are one Gaussian release whose ratio z satisfies
:math:`z^{-2} = \sum_i z_i^{-2}`, which is what is charged; part i with a share :math:`s_i` of the precision has
:math:`z_i = z/\sqrt{s_i}`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from defocus.answers.tables import text_facts
from defocus.errors import InvalidParameterError, Number, UnsupportedEventError, count, positive
from defocus.learning.clipping import AdaptiveClipping, Clipping
from defocus.learning.metrics import Metrics, Paid
from defocus.learning.noise_schedule import Banded, BufferedStrategy, BufferedToeplitz, Schedule, Strategy, strategy
from defocus.learning.sampling import OF_PERSONS, Cyclic, Sampling, owed, planned
from defocus.privacy.accounting import tightest
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import calibrate, check_delta, spoken_delta
from defocus.privacy.events import Event
from defocus.privacy.html import html_facts
from defocus.privacy.units import Adjacency, Unit

__all__ = ["Plan", "plan", "protected", "steps_of"]


def protected(unit: object) -> Unit:
    """The unit, if examples can be counted in it."""
    if not isinstance(unit, Unit) or unit.kind not in {"rows", "user"}:
        raise InvalidParameterError(
            f"Training protects rows or users, but the unit is {unit!s:.60}.", fix='pass rows() or user("patient_id").'
        )
    return unit


def _checked_rows(unit: Unit, sampling: object, noise: object) -> int:
    """How many rows a person has; refused with ways of drawing for which nothing is proven of several at once."""
    if unit.per_person not in {None, 1} and (noise is not None or sampling not in OF_PERSONS):
        raise InvalidParameterError(
            f"Steps draw rows, and of {unit}, nothing is proven where "
            + ("noise is correlated." if noise is not None else "who is drawn depends on the others."),
            fix=f"leave {'noise=' if noise is not None else 'sampling='} out; or say whose each row is, of one user:"
            ' unit=user("patient_id") and users=.',
        )
    return unit.per_person or 1


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
    """What a run will do, and what it owes; ``print`` it to read it."""

    unit: Unit
    price: Budget
    size: int
    sampling: Sampling
    factors: tuple[float, ...]
    """The noise of each step, in multiples of the base."""
    ratio: float
    """The base: standard deviation over sensitivity of everything a step releases, taken together."""
    shares: tuple[float, float, float]
    """The parts of the precision for the gradient, the clip and the metrics."""
    strategy: Strategy | BufferedStrategy | None
    event: Event
    """What the whole run owes, charged before its first batch."""

    @property
    def steps(self) -> int:
        """How many steps the run may take: as many as were paid for."""
        return self.sampling.steps

    @property
    def rows(self) -> int:
        """How many of the units that are drawn one person has at most: rows of ``rows(per_person=…)``, else one."""
        return self.unit.per_person or 1

    @property
    def batch_size(self) -> float:
        """The expected number of units in a step."""
        return float(self.sampling.batch)

    @property
    def delta(self) -> float:
        """The delta in which epsilons are told."""
        return spoken_delta(self.price)

    def ratio_of(self, part: int, step: int) -> float:
        """Standard deviation over sensitivity of one part (0: gradient, 1: clip, 2: metrics) of a step."""
        return self.ratio * self.factors[step] / math.sqrt(self.shares[part])

    @property
    def facts(self) -> dict[str, str]:
        """Names and words."""
        correlated = "" if self.strategy is None else ", of which later steps take back a part"
        moved = "the sensitivity of a step" if self.rows == 1 else "what one row may add to a step"
        return {
            "protected": str(self.unit),
            "steps": f"{self.steps}, {self.batch_size:g} of {self.size} expected in each",
            "cost": f"{self.price} for the whole run",
            "noise": f"{self.noise_in_words()} times {moved}{correlated}",
        }

    def __str__(self) -> str:
        return text_facts({name: [words] for name, words in self.facts.items()})

    def __repr__(self) -> str:
        return f"<plan: {self.steps} steps, {self.price}>"

    def _repr_html_(self) -> str:
        return html_facts(self.facts)

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
        return self.owes([self.ratio * factor for factor in self.factors[:steps]])

    def owes(self, ratios: Sequence[float]) -> Event:
        """What first steps of these ratios of noise owe to one of whom is protected, with all their rows."""
        return owed(self.sampling.event(ratios), self.rows)

    def epsilon_after(self, steps: int) -> float:
        """Epsilon of the first ``steps`` steps by themselves, at the delta of the price."""
        if not steps:
            return 0.0
        return tightest(self.event_after(steps), self.unit.adjacency).epsilon(self.delta)


def plan(
    *,
    unit: Unit,
    price: Budget | None,
    delta: float,
    size: int,
    batch_size: Number,
    epochs: Number | None,
    steps: int | None,
    sampling: object,
    noise: object,
    noise_multiplier: Number | None,
    clipping: Clipping,
    metrics: Paid | str,
) -> Plan:
    """The plan of a run, with the least noise that its price allows, or with the noise that was asked for.

    Where there is no ``price``, it is what the noise that was asked for costs, at ``delta``.
    """
    outright = delta if price is None else float(price.delta)
    if outright:
        check_delta(outright, size)
    replace = unit.adjacency is Adjacency.REPLACE
    rows = _batch(batch_size, size)
    if not isinstance(noise, Banded | BufferedToeplitz | Schedule | None):
        raise InvalidParameterError(
            f"noise= is a Schedule, Banded or BufferedToeplitz noise, but it is of type {type(noise).__name__}.",
            fix="pass its ratio as noise_multiplier=, or leave it to be found for the price.",
        )
    correlated = noise if isinstance(noise, Banded | BufferedToeplitz) else None
    many = _checked_rows(unit, sampling, correlated)
    total = _steps(size, rows, epochs, steps, sampling)
    drawn: Sampling
    how: Strategy | BufferedStrategy | None = None
    if correlated is None:
        drawn = planned(sampling, size=size, batch=rows, steps=total, replace=replace)
    else:
        if sampling != "poisson":
            raise InvalidParameterError(
                "Correlated noise has a sampling of its own: units take part in turns.",
                fix="leave sampling= out with correlated noise.",
            )
        if isinstance(metrics, Paid) and metrics != Metrics():
            raise InvalidParameterError(
                "With correlated noise nothing is shown of losses and norms.",
                fix='leave metrics= out with correlated noise, or pass metrics="private" as the owner of the data.',
            )
        if isinstance(clipping, AdaptiveClipping):
            raise InvalidParameterError(
                "Correlated noise takes back that of earlier steps, so a unit clipped at one step also moves later"
                " ones; where the clip shrinks in between, their noise would be too small for it.",
                fix="pass a number as max_grad_norm= with correlated noise, or leave noise= out.",
            )
        drawn = _cyclic(correlated, size=size, batch=rows, steps=total, replace=replace)
        how = strategy(correlated, steps=total, groups=drawn.groups)
    factors = noise.at(total) if isinstance(noise, Schedule) else (1.0,) * total

    def event(ratio: float) -> Event:
        return owed(drawn.event([ratio * factor for factor in factors]), many)

    if noise_multiplier is None:
        ratio = _least(event, price, unit)
    else:
        ratio = float(positive("noise_multiplier", noise_multiplier))
    asked = _cost(event(ratio), delta, unit) if price is None else price
    if noise_multiplier is not None:
        _within(event(ratio), asked, unit)
    shown = metrics.share if isinstance(metrics, Paid) and correlated is None else 0.0
    shares = _shares(clipping.share, shown)
    return Plan(unit, asked, size, drawn, factors, ratio, shares, how, event(ratio))


def _shares(clip: float, metrics: float) -> tuple[float, float, float]:
    """The parts of the precision of a step: what is left for the gradient, that of the clip and that of metrics."""
    if clip + metrics >= 1:
        raise InvalidParameterError(
            "Adaptive clipping and metrics take all of the precision of a step, and nothing is left for the gradient.",
            fix="pass a smaller precision= to one of them.",
        )
    return 1 - clip - metrics, clip, metrics


def _cyclic(correlated: Banded | BufferedToeplitz, *, size: int, batch: Fraction, steps: int, replace: bool) -> Cyclic:
    if correlated.groups is None:
        return Cyclic(size, max(1, round(size / batch)), Fraction(1), steps, replace)
    rate = correlated.groups * batch / size
    if rate > 1:
        raise InvalidParameterError(
            f"A batch of {float(batch):g} is more than one of {correlated.groups} groups of {size} holds.",
            fix=f"pass groups <= {math.floor(size / batch)}, or a smaller batch_size=.",
        )
    if rate < 1 and isinstance(correlated, BufferedToeplitz):
        raise InvalidParameterError(
            f"With buffers all of a group take part, but {correlated.groups} groups of {size} hold more than a batch of"
            f" {float(batch):g}: nothing is proven for a part of them.",
            fix="leave groups= out, or use noise=Banded(groups=…), which draws a part and accounts for it.",
        )
    return Cyclic(size, correlated.groups, rate, steps, replace)


def _batch(batch: object, size: int) -> Fraction:
    rows = Fraction(positive("batch_size", batch))
    if rows < 1:
        raise InvalidParameterError(
            f"A batch of {float(rows):g} is less than one unit in a step.",
            fix="pass the expected number of units, not their share of the data.",
        )
    if rows > size:
        raise InvalidParameterError(
            f"A batch of {float(rows):g} cannot be drawn from {size}.", fix="pass a batch_size= of at most the size."
        )
    return rows


def _steps(size: int, batch: Fraction, epochs: object, steps: object, sampling: object) -> int:
    if (epochs is None) == (steps is None):
        raise InvalidParameterError(
            "How long to train is told by epochs= or by steps=, one of them.", fix="pass for example epochs=10."
        )
    if steps is not None:
        total = count("steps", steps)
    elif sampling == "balls in bins":
        total = count("epochs", epochs) * max(1, round(size / batch))
    elif sampling == "shuffled":
        total = count("epochs", epochs) * max(1, math.floor((size - 1) / batch))
    else:
        total = steps_of(epochs, size, batch)
    if total > _MOST_STEPS:
        raise InvalidParameterError(
            f"A run has at most {_MOST_STEPS} steps, but this one has {total}.",
            fix="train for less, or in larger batches.",
        )
    return total


def _least(event: Callable[[float], Event], price: Budget | None, unit: Unit) -> float:
    """The least ratio of noise that the price allows."""
    if price is None:
        raise InvalidParameterError(
            "It is not said what the run may cost, nor how much noise it has.",
            fix="pass epsilon=, for which the noise is found; or noise_multiplier=, for which the cost is found.",
        )
    try:
        return calibrate(event, price, adjacency=unit.adjacency, low=1e-3, high=1e7)
    except UnsupportedEventError:
        if price.epsilon is not None:
            raise
        raise InvalidParameterError(
            f"{price} cannot be kept by steps on samples, for which its measure has no cost.",
            fix="pass epsilon= and delta=, or a batch_size= of all units, which is no sample.",
        ) from None


def _cost(event: Event, delta: float, unit: Unit) -> Budget:
    """What an event costs at a delta, rounded up."""
    epsilon = tightest(event, unit.adjacency).epsilon(delta) * (1 + 1e-9)
    if not math.isfinite(epsilon):
        raise InvalidParameterError(
            f"With so little noise the run has no epsilon at delta {delta:g}.", fix="raise noise_multiplier=."
        )
    return Budget(epsilon, delta)


def _within(event: Event, price: Budget, unit: Unit) -> None:
    loss = tightest(event, unit.adjacency)
    if not price.covers(loss):
        epsilon = loss.epsilon(spoken_delta(price))
        raise InvalidParameterError(
            f"With this noise the run costs epsilon {epsilon:.4g}, more than {price}.",
            fix="leave noise_multiplier= out, so that it is found for the price; or train for fewer steps.",
        )

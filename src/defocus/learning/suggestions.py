r"""Settings for private training, proposed from public facts: the size, the price and the number of parameters.

What is compared is the noise of a whole run beside its progress. A step moves along the mean of clipped gradients, of
length at most C, and along noise of length about :math:`\sqrt d\,zC/b`, for d parameters, noise z times the clip C and
batches of b. If T steps pull the same way they go at most TC; their noise, which does not, goes
:math:`\sqrt{Td}\,zC/b`. Their ratio :math:`\sqrt{d/T}\,z/b` does not depend on the clip. For a given z it falls as 1/b,
and its square, the error, as :math:`1/b^2`; but at a given price z grows with b, so that it levels off: beyond some
batch a larger one buys nothing but work.

Reference:
    Ponomareva et al. (2023), How to DP-fy ML, section 5; De et al. (2022), Unlocking high-accuracy differentially
    private image classification through scale; Räisä, Jälkö, Honkela (2024), Subsampling is not magic.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from defocus.answers.plots import DARK, TEAL, blank
from defocus.answers.tables import text_facts, text_table
from defocus.errors import InvalidParameterError, Number, count, positive
from defocus.learning.accountant import protected, steps_of
from defocus.learning.ledgers import price
from defocus.learning.sampling import Poisson, owed
from defocus.privacy.accounting import tightest
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import calibrate, check_delta, spoken_delta
from defocus.privacy.events import Event
from defocus.privacy.html import html_facts, html_lines, html_table
from defocus.privacy.units import Adjacency, Unit, rows

__all__ = ["EPOCHS", "Option", "Suggestion", "suggest"]

EPOCHS = 30
"""How often each unit is drawn by default."""
_NEAR = 1.1
"""How much more noise than the least is accepted for more and smaller steps."""
_FEWEST = 100
"""Fewer steps train hardly anything, however little noise they have."""
_MOST = 10**6
_POINTS = 12


@final
@dataclass(frozen=True, slots=True)
class Option:
    """One batch size with what the price then allows."""

    batch_size: int
    steps: int
    noise_multiplier: float
    """The standard deviation over the clip."""
    error: float
    """The squared length of the noise in the mean gradient of a step, in squares of the clip."""
    ratio: float
    """The noise of all steps beside the furthest that they can go."""


@final
@dataclass(frozen=True, slots=True)
class Suggestion:
    """Settings of a run, with their reasons. Free: nothing here was read from data.

    >>> from defocus.learning import suggest
    >>> found = suggest(size=60_000, epsilon=3, delta=1e-5, parameters=10_000)
    >>> found.batch_size > 100, found.noise_multiplier > 0.5
    (True, True)
    """

    unit: Unit
    price: Budget
    size: int
    parameters: int
    batch_size: int
    max_grad_norm: float
    noise_multiplier: float
    steps: int
    options: tuple[Option, ...]
    """The batches that were compared, at the same work and the same price."""
    growth: tuple[tuple[int, float], ...]
    """Epsilon after so many steps of this batch and noise."""

    @property
    def epochs(self) -> float:
        """How often each unit is looked at on average."""
        return self.steps * self.batch_size / self.size

    @property
    def ratio(self) -> float:
        """The noise of all steps beside the furthest that they can go; above one the noise leads."""
        return math.sqrt(self.parameters / self.steps) * self.noise_multiplier / self.batch_size

    def settings(self) -> dict[str, Any]:
        """What a trainer is given: ``Trainer(model, loss, optimizer, data, ledger=…, **suggestion.settings())``."""
        price = self.price
        return {
            "unit": self.unit,
            **({"rho": price.rho} if price.rho is not None else {"epsilon": price.epsilon, "delta": price.delta}),
            "size": self.size,
            "batch_size": self.batch_size,
            "steps": self.steps,
            "max_grad_norm": self.max_grad_norm,
            "noise_multiplier": self.noise_multiplier,
        }

    def error_at(self, batch_size: Number) -> float:
        """The squared length of the noise in a mean gradient with this noise and another batch: it falls as 1/b²."""
        return self.parameters * (self.noise_multiplier / float(positive("batch_size", batch_size))) ** 2

    def reasons(self) -> dict[str, list[str]]:
        """Each setting with its reasons in words."""
        promise = f"epsilon {self.growth_at(self.steps):.4g} at delta {spoken_delta(self.price):.3g}"
        return {
            "batch_size": [
                f"{self.batch_size} of {self.size} expected in a step",
                "the smallest of those compared whose noise is within 10 % of the least, for the same work and price",
                "smaller batches have more noise in all, larger ones only fewer steps",
            ],
            "steps": [f"{self.steps}, which is {self.epochs:.3g} epochs; together {promise}"],
            "noise_multiplier": [
                f"{self.noise_multiplier:.4g} times the clip on the sum of a step, the least that {self.price} allows",
                f"beside the furthest that all steps can go, the noise goes {self.ratio:.2g} times as far",
                *self._advice(),
            ],
            "max_grad_norm": [
                f"{self.max_grad_norm:g}: for gradients that are longer it only scales the learning rate",
                "the norms are private, so they were not looked at; the progress of a run shows their median, paid for",
            ],
            "learning rate": ["left to you: begin with the one you use without privacy, as steps here are no longer"],
        }

    def growth_at(self, steps: int) -> float:
        """Epsilon of the first ``steps`` steps, at the delta of the price."""
        return _epsilon(
            _event(self.unit, self.size, self.batch_size, self.noise_multiplier), steps, self.unit, self.price
        )

    def plot(self) -> Any:
        """Epsilon against steps, and the error by noise against the batch, as a matplotlib figure."""
        figure = blank(9, 3.6)
        left, right = figure.subplots(1, 2)
        left.plot([n for n, _ in self.growth], [value for _, value in self.growth], color=TEAL, marker="o", ms=3)
        left.axvline(self.steps, color=DARK, linestyle=":")
        left.set(xlabel="steps", ylabel=f"epsilon at delta {spoken_delta(self.price):.3g}")
        batches = [option.batch_size for option in self.options]
        right.plot(batches, [o.error for o in self.options], color=TEAL, marker="o", ms=3, label="at the same price")
        right.plot(batches, [self.error_at(b) for b in batches], color=DARK, ls="--", label="at the same noise, 1/b²")
        right.axvline(self.batch_size, color=DARK, linestyle=":")
        right.set(xscale="log", yscale="log", xlabel="batch", ylabel="squared noise of a mean gradient / clip²")
        right.legend()
        for axes in (left, right):
            axes.grid(visible=True, which="both", alpha=0.3)
        return figure

    def __str__(self) -> str:
        heads, cells = self._table()
        return f"{text_facts(self.reasons())}\n\n{text_table(heads, cells, right=[True] * len(heads))}\n{_FREE}"

    def _repr_html_(self) -> str:
        heads, cells = self._table()
        table = html_table(heads, cells, right=[True] * len(heads))
        return f"<div>{html_facts(self.reasons())}{table}{html_lines([_FREE])}</div>"

    def _advice(self) -> list[str]:
        if self.ratio < 1:
            return []
        return ["that is more noise than signal: train fewer parameters (a last layer, adapters), or more data"]

    def _table(self) -> tuple[list[str], list[list[str]]]:
        heads = ["batch size", "steps", "noise", "error of a step", "error at this noise", "noise / progress", ""]
        return heads, [
            [
                str(option.batch_size),
                str(option.steps),
                f"{option.noise_multiplier:.4g}",
                f"{option.error:.3g}",
                f"{self.error_at(option.batch_size):.3g}",
                f"{option.ratio:.3g}",
                "chosen" if option.batch_size == self.batch_size else "",
            ]
            for option in self.options
        ]


_FREE = "From the size, the price and the number of parameters alone: free, and nothing was looked at."


def suggest(
    *,
    size: int,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    model: Any = None,
    parameters: int | None = None,
    unit: Unit | None = None,
    epochs: Number = EPOCHS,
    max_grad_norm: Number = 1.0,
) -> Suggestion:
    """Propose batch size, noise and steps for a private run, with the reasons. Free.

    Args:
        size: how many units there are; public, as it decides the rate of sampling.
        epsilon: with ``delta``, the price of the whole run.
        delta: 1e-6 by default, or less if there are many units.
        rho: the price, instead of epsilon and delta, for batches of all units.
        model: the model, whose trainable parameters are counted; or pass ``parameters``.
        parameters: how many trainable parameters there are.
        unit: what is protected; ``rows()`` by default.
        epochs: how often each unit is drawn: the work to compare batches at.
        max_grad_norm: how long one gradient may be.

    >>> found = suggest(size=60_000, epsilon=3, delta=1e-5, parameters=26_000)
    >>> found.batch_size, found.steps, round(found.noise_multiplier, 1)
    (4096, 440, 2.2)
    """
    units, work = count("size", size), positive("epochs", epochs)
    cost = price(epsilon=epsilon, delta=delta, rho=rho, size=units)
    if cost.delta:
        check_delta(cost.delta, units)
    person, width = rows() if unit is None else protected(unit), _width(model, parameters)
    options = tuple(
        _option(person, cost, units, batch, steps=steps_of(work, units, batch), width=width)
        for batch in _batches(units, work)
    )
    least = min(option.ratio for option in options)
    chosen = next(option for option in options if option.ratio <= _NEAR * least)
    step = _event(person, units, chosen.batch_size, chosen.noise_multiplier)
    reach = sorted({*_spread(2 * chosen.steps), chosen.steps})
    return Suggestion(
        unit=person,
        price=cost,
        size=units,
        parameters=width,
        batch_size=chosen.batch_size,
        max_grad_norm=float(positive("max_grad_norm", max_grad_norm)),
        noise_multiplier=chosen.noise_multiplier,
        steps=chosen.steps,
        options=options,
        growth=tuple((steps, _epsilon(step, steps, person, cost)) for steps in reach),
    )


def _option(unit: Unit, price: Budget, size: int, batch: int, *, steps: int, width: int) -> Option:
    adjacency = unit.adjacency
    noise = calibrate(lambda z: steps * _event(unit, size, batch, z), price, adjacency=adjacency, low=1e-3, high=1e7)
    error = width * (noise / batch) ** 2
    return Option(batch, steps, noise, error, math.sqrt(error / steps))


def _event(unit: Unit, size: int, batch: int, noise: float) -> Event:
    """One step: what the trainer charges, so many times."""
    one = Poisson(size, Fraction(batch, size), 1, unit.adjacency is Adjacency.REPLACE).event([noise])
    return owed(one, unit.per_person or 1)


def _epsilon(step: Event, steps: int, unit: Unit, price: Budget) -> float:
    return tightest(count("steps", steps) * step, unit.adjacency).epsilon(spoken_delta(price))


def _batches(size: int, epochs: Number) -> list[int]:
    """Powers of two that leave enough steps and not too many.

    If none does, the smallest of them, which leaves the most steps; or all of the data where that is less.
    """
    powers = [2**i for i in range(4, size.bit_length()) if 2**i < size]
    enough = [batch for batch in powers if _FEWEST <= steps_of(epochs, size, batch) <= _MOST]
    return enough or [min([*powers[:1], size])]


def _spread(largest: int) -> Sequence[int]:
    """About a dozen numbers of steps up to the largest."""
    return sorted({max(1, round(largest * i / _POINTS)) for i in range(1, _POINTS + 1)})


def _width(model: Any, parameters: int | None) -> int:
    if (model is None) == (parameters is None):
        raise InvalidParameterError(
            "The noise depends on the number of parameters: pass a model or parameters=, one of them.",
            fix="pass for example model=net, or parameters=26_000.",
        )
    if parameters is not None:
        return count("parameters", parameters)
    if not hasattr(model, "parameters"):
        raise InvalidParameterError(
            f"A model has parameters, but a {type(model).__name__} has none.",
            fix="pass a torch module, or the number of its trainable parameters as parameters=.",
        )
    width = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    return count("the number of trainable parameters", width)

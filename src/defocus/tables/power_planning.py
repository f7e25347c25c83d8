"""The plan of a private test: what is fixed about it, and the search for the number that was left out."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

from defocus.errors import InvalidParameterError, in_range, positive, probability, whole
from defocus.privacy import gaussian_sigma
from defocus.tables.power_laws import Design, least

__all__ = ["FEWEST", "Plan"]

FEWEST = 10
"""Fewer people than this are no sample."""
_ENOUGH = 10
"""People times epsilon must be this many at least: below, the noise is a tenth of the count and more."""
_LARGEST = 10**12
_HUGE = 10**100
_WIDEST = 50.0
"""Beyond this epsilon there is no noise to speak of."""


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """What is fixed about a test: the value without an effect, the bounds and spread of values, and the levels."""

    null: float
    low: float
    high: float
    std: float | None
    groups: int
    alpha: float
    delta: float

    @classmethod
    def checked(
        cls, *, proportion: Any, mean: Any, low: Any, high: Any, std: Any, groups: Any, alpha: Any, delta: Any
    ) -> "Plan":
        """The plan, once what was given makes sense; all of it is public."""
        if (proportion is None) == (mean is None):
            raise InvalidParameterError(
                "A test is about a proportion or about a mean.", fix="pass proportion=0.3, or mean=5, low=0, high=30."
            )
        if whole("groups", groups, at_least=1) > 2:
            raise InvalidParameterError(f"groups is {groups}.", fix="compare one group with a value, or two groups.")
        if proportion is not None:
            if not low is high is std is None:
                raise InvalidParameterError(
                    "A proportion needs no low, high or std: they follow from it.", fix="leave them out."
                )
            low, high, null = 0.0, 1.0, float(probability("proportion", proportion, zero=False, one=False))
        else:
            if low is None or high is None:
                raise InvalidParameterError(
                    "A mean needs the bounds of its values.", fix="pass low= and high=, declared without the data."
                )
            low, high, null = (_number(k, v) for k, v in (("low", low), ("high", high), ("mean", mean)))
            if not low < null < high:
                raise InvalidParameterError(
                    f"The mean {null:.6g} is not between low {low:.6g} and high {high:.6g}.",
                    fix="choose low < mean < high.",
                )
        spread = None if std is None else _number("std", positive("std", std))
        if spread is not None and spread / (high - low) > math.sqrt(
            (null - low) / (high - low) * ((high - null) / (high - low))
        ):
            raise InvalidParameterError(
                f"No values in [{low:.6g}, {high:.6g}] of mean {null:.6g} have a standard deviation of {spread:.6g}.",
                fix=f"pass std up to {math.sqrt((null - low) * (high - null)):.6g}, or leave it out for the largest.",
            )
        return cls(
            null,
            low,
            high,
            spread,
            groups,
            float(probability("alpha", alpha, zero=False, one=False)),
            float(probability("delta", delta, one=False)),
        )

    def given(self, name: str, value: Any) -> float:
        """A number that was given for one of the four, checked."""
        if name == "n":
            size = whole("n", value, at_least=FEWEST)
            return float(in_range("n", size, FEWEST, _LARGEST))
        if name == "epsilon":
            return float(in_range("epsilon", value, 1e-9, _WIDEST))
        if name == "effect":
            return self._effect(value)
        chance = float(probability("power", value, zero=False, one=False))
        if chance <= self.alpha:
            raise InvalidParameterError(
                f"A power of {chance:.4g} at alpha {self.alpha:.4g} needs no data at all.", fix="choose power > alpha."
            )
        return chance

    def _effect(self, effect: Any) -> float:
        shift = _number("effect", effect)
        if shift == 0 or not self.low <= self.null + shift <= self.high:
            raise InvalidParameterError(
                f"An effect of {shift:.6g} would move the mean to {self.null + shift:.6g}, and values lie in"
                f" [{self.low:.6g}, {self.high:.6g}].",
                fix="choose an effect other than 0 that stays within the bounds.",
            )
        return shift

    def solved(self, known: Mapping[str, float], found: str) -> dict[str, float]:
        """All four, the one to be found included; ``power`` is that of the rounded others."""
        finders = {"n": self._n, "epsilon": self._epsilon, "effect": self._effect_found}
        every = dict(known) if found == "power" else {**known, found: finders[found](known)}
        n, epsilon, effect = every["n"], every["epsilon"], every["effect"]
        _enough(n, epsilon)
        return every | {"power": self.power(n, epsilon, effect)}

    def fewest(self, effect: float, chance: float) -> int:
        """How many people would do without noise."""
        return math.ceil(least(lambda n: self.power(n, math.inf, effect) >= chance, 0.5, 1.0, precision=1e-7))

    def noise(self, epsilon: float) -> tuple[float, float]:
        """The scale of Laplace noise or the deviation of Gaussian noise, in people: the one with less variance."""
        if math.isinf(epsilon):
            return 0.0, 0.0
        sigma = gaussian_sigma(epsilon, self.delta) if self.delta else math.inf
        return (1 / epsilon, 0.0) if 2 / epsilon**2 <= sigma**2 else (0.0, sigma)

    def design(self, n: float, epsilon: float, effect: float) -> Design:
        """The test with these numbers, on the unit interval."""
        width = self.high - self.low
        variance = (lambda p: max(0.0, p * (1 - p))) if self.std is None else _constant((self.std / width) ** 2)
        laplace, gaussian = self.noise(epsilon)
        return Design((self.null - self.low) / width, effect / width, n, self.groups, variance, laplace, gaussian)

    def power(self, n: float, epsilon: float, effect: float) -> float:
        """The probability of noticing the effect; ``epsilon`` may be infinite."""
        return self.design(n, epsilon, effect).power(self.alpha)

    def _n(self, known: Mapping[str, float]) -> float:
        epsilon, effect, chance = known["epsilon"], known["effect"], known["power"]
        if self.power(_LARGEST, epsilon, effect) < chance:
            raise InvalidParameterError(
                f"Not even {_LARGEST:.0e} people would do.",
                fix="choose a larger effect, a larger epsilon or less power.",
            )
        low = max(FEWEST, math.ceil(_ENOUGH / epsilon)) - 1
        high = low + 1
        while self.power(high, epsilon, effect) < chance:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.power(middle, epsilon, effect) >= chance else (middle, high)
        return high

    def _epsilon(self, known: Mapping[str, float]) -> float:
        n, effect, chance = known["n"], known["effect"], known["power"]
        if self.power(n, _WIDEST, effect) < chance:
            raise InvalidParameterError(
                f"With {n:.0f} people the power is {self.power(n, math.inf, effect):.4g} even without noise,"
                f" and {chance:.4g} was asked for.",
                fix="find n first: leave out n and pass an epsilon.",
            )
        start = min(_ENOUGH / n, _WIDEST)
        if self.power(n, start, effect) >= chance:
            return start
        return min(_WIDEST, least(lambda e: self.power(n, e, effect) >= chance, start, 2 * start, precision=1e-6))

    def _effect_found(self, known: Mapping[str, float]) -> float:
        n, epsilon, chance = known["n"], known["epsilon"], known["power"]
        _enough(n, epsilon)
        most = self.high - self.null
        if self.power(n, epsilon, most) < chance:
            raise InvalidParameterError(
                f"No effect upwards from {self.null:.6g} within the bounds is noticed with a power of {chance:.4g}.",
                fix="choose more people, a larger epsilon or less power.",
            )
        return least(lambda shift: self.power(n, epsilon, shift) >= chance, 0.0, most, precision=1e-6)


def _enough(n: float, epsilon: float) -> None:
    if n * epsilon < _ENOUGH * (1 - 1e-9):
        raise InvalidParameterError(
            f"With {n:.0f} people at epsilon {epsilon:.4g} the noise is about {100 / (n * epsilon):.0f} % of the count"
            " itself, and this test does not hold.",
            fix=f"choose n * epsilon >= {_ENOUGH}: at least {math.ceil(_ENOUGH / epsilon)} people,"
            f" or epsilon {_ENOUGH / n:.4g}.",
        )


def _number(name: str, value: Any) -> float:
    return float(in_range(name, value, -_HUGE, _HUGE))


def _constant(value: float) -> Callable[[float], float]:
    return lambda _: value

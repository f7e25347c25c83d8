"""Power: how many people, or how much epsilon, a private test needs.

The law of a private test statistic: normal sampling error plus Laplace or Gaussian noise.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, final

import numpy as np

from defocus.answers import plots, tables
from defocus.answers.columns import Floats
from defocus.errors import InvalidParameterError, Number, in_range, positive, probability, whole
from defocus.privacy import gaussian_sigma
from defocus.privacy.html import html_facts

__all__ = ["FEWEST", "Design", "Law", "Plan", "Power", "least", "power"]


_MOST = 100_000


@final
@dataclass(frozen=True, slots=True)
class Law:
    r"""A normal variable of standard deviation ``normal`` plus independent Laplace variables of the scales given.

    Error:
        The tail comes from the characteristic function
        :math:`\varphi(u) = e^{-s^2u^2/2}\prod_i (1+a_i^2u^2)^{-1}` by Davies' sum
        :math:`P(Z>t) = \tfrac12 - \tfrac1\pi\sum_k \varphi((k+\tfrac12)h)\sin((k+\tfrac12)ht)/(k+\tfrac12)`,
        whose error is at most :math:`P(|Z| > 2\pi/h - |t|)`: below 1e-20 here. It is cut off where what is left is
        below 1e-9, or after 100 000 terms.
    Reference:
        Davies (1973), Numerical inversion of a characteristic function.

    >>> round(Law(1.0).tail(1.96), 4), round(Law(0.0, (1.0,)).tail(math.log(50)), 4)
    (0.025, 0.01)
    """

    normal: float
    scales: tuple[float, ...] = ()

    @property
    def deviation(self) -> float:
        """The standard deviation."""
        return math.sqrt(self.normal**2 + 2 * sum(a * a for a in self.scales))

    def tail(self, t: float) -> float:
        """The probability of more than ``t``."""
        total = self.deviation
        if not self.scales or total == 0:
            return 0.5 * math.erfc(t / total / math.sqrt(2)) if total else float(t < 0)
        if t < 0:
            return 1 - self.tail(-t)
        x, s = t / total, self.normal / total
        a = np.array(self.scales) / total
        if x > 40:
            return 0.0
        h = 2 * math.pi / (x + 45)
        u = (np.arange(self._terms(s, a, h)) + 0.5) * h
        phi = np.exp(-0.5 * (s * u) ** 2) / np.prod(1 + np.outer(a, u) ** 2, axis=0)
        return float(np.clip(0.5 - (phi * np.sin(u * x) / (u / h))[::-1].sum() / math.pi, 0.0, 1.0))

    @staticmethod
    def _terms(s: float, a: Floats, h: float) -> int:
        """How many terms leave less than 1e-9: by the normal factor, or by the product of the Laplace factors."""
        by_normal = 6.5 / (s * h) if s else math.inf
        # sum over k > K of 1/(k prod (a u)^2) is at most (prod a^2)^-1 (K h)^-order / order, for any of the factors
        order = 2 * np.arange(1, len(a) + 1)
        log_products = 2 * np.cumsum(np.log(np.sort(a)[::-1]))
        by_laplace = math.exp(min(60.0, float(((np.log(1e9 / order) - log_products) / order).min()))) / h
        return max(50, min(_MOST, math.ceil(min(by_normal, by_laplace))))

    def critical(self, alpha: float) -> float:
        """The least c with P(|Z| > c) <= ``alpha``."""
        return least(lambda c: 2 * self.tail(c) <= alpha, 0.0, 2 * self.deviation)


@final
@dataclass(frozen=True, slots=True)
class Design:
    """A test on the unit interval: ``n`` people in each of one or two groups, of mean ``null`` and ``null + shift``.

    ``variance(p)`` is that of one person's value where the mean is p; ``laplace`` the scale of the noise of each of
    the two sums, or ``gaussian`` its standard deviation, in people.
    """

    null: float
    shift: float
    n: float
    groups: int
    variance: Callable[[float], float]
    laplace: float = 0.0
    gaussian: float = 0.0

    def law(self, means: tuple[float, ...], about: tuple[float, ...]) -> Law:
        """The statistic where the groups have these true means, its noise weighed about those."""
        normal = sum(self.variance(p) for p in means) / self.n
        normal += sum((1 - p) ** 2 + p * p for p in about) * self.gaussian**2 / self.n**2
        scales = tuple(w * self.laplace / self.n for p in about for w in (1 - p, p) if w * self.laplace)
        return Law(math.sqrt(normal), scales)

    @property
    def null_law(self) -> Law:
        """The statistic where there is no effect; two groups then share the mean between theirs."""
        middle = self.null if self.groups == 1 else self.null + self.shift / 2
        return self.law((middle,) * self.groups, (middle,) * self.groups)

    @property
    def law_of_effect(self) -> Law:
        """The statistic around the effect where there is one."""
        if self.groups == 1:
            return self.law((self.null + self.shift,), (self.null,))
        both = (self.null, self.null + self.shift)
        return self.law(both, both)

    @property
    def without_noise(self) -> "Design":
        """The same test on the data itself."""
        return replace(self, laplace=0.0, gaussian=0.0)

    def power(self, alpha: float) -> float:
        """The probability of noticing the effect at level ``alpha``."""
        critical, law, shift = self.null_law.critical(alpha), self.law_of_effect, abs(self.shift)
        return min(1.0, law.tail(critical - shift) + law.tail(critical + shift))


def least(enough: Callable[[float], bool], low: float, high: float, *, precision: float = 1e-9) -> float:
    """The least number from which on ``enough`` holds, rounded up; ``high`` is doubled until it does."""
    while not enough(high):
        low, high = high, 2 * high
    while high - low > precision * max(abs(high), 1e-300):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


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

    def solved(self, given: Mapping[str, float], wanted: str) -> dict[str, float]:
        """All four, the one to be found included; ``power`` is that of the rounded others."""
        finders = {"n": self._n, "epsilon": self._epsilon, "effect": self._effect_found}
        every = dict(given) if wanted == "power" else {**given, wanted: finders[wanted](given)}
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

    def _n(self, given: Mapping[str, float]) -> float:
        epsilon, effect, chance = given["epsilon"], given["effect"], given["power"]
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

    def _epsilon(self, given: Mapping[str, float]) -> float:
        n, effect, chance = given["n"], given["effect"], given["power"]
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

    def _effect_found(self, given: Mapping[str, float]) -> float:
        n, epsilon, chance = given["n"], given["epsilon"], given["power"]
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


@final
@dataclass(frozen=True, slots=True)
class Power:
    """A test that was planned: four numbers of which one was found, and what to do with the released means.

    ``n`` is the number of people in each group. ``critical`` is how far the released mean must be from the null
    value (of two groups: the means from each other) to call it a difference; :meth:`claims` decides exactly.
    """

    found: str
    n: int
    epsilon: float
    effect: float
    power: float
    plan: Plan
    mechanism: str
    critical: float
    noise: float
    sampling: float
    n_without_noise: int

    def __str__(self) -> str:
        return tables.text_facts(self._facts())

    def _repr_html_(self) -> str:
        return html_facts(self._facts())

    def to_dict(self) -> dict[str, Any]:
        """The plan with JSON types only."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "plan"} | asdict(self.plan)

    def claims(self, *released: tuple[float, float]) -> bool:
        """Whether to call it a difference, from what was released: (mean, count) of the group, or of both groups.

        The distance is weighed with the released counts, so that noise in the denominator of a mean does no harm: a
        mean times its count is a sum, whose law is known. Of two groups, twice the product of the counts over
        their sum takes the place of the count.

        >>> plan = power(proportion=0.3, effect=0.05, epsilon=0.1, power=0.8)
        >>> plan.claims((0.36, 1031.2)), plan.claims((0.32, 1031.2))
        (True, False)
        """
        if len(released) != self.plan.groups:
            raise InvalidParameterError(
                f"The plan has {self.plan.groups} group(s), but {len(released)} were given.",
                fix="pass (mean, count) for each group.",
            )
        means, counts = [float(mean) for mean, _ in released], [float(count) for _, count in released]
        if not min(counts) > 0:
            return False  # so few people that the noise took them all
        weight = counts[0] if len(counts) == 1 else 2 * counts[0] * counts[1] / sum(counts)
        apart = abs(means[-1] - (self.plan.null if len(means) == 1 else means[0]))
        return apart * weight > self.critical * self.n

    def at(self, n: float, *, private: bool = True) -> float:
        """The power with ``n`` people in each group, all else the same; without noise if not ``private``."""
        return self.plan.power(n, self.epsilon if private else math.inf, self.effect)

    def plot(self) -> Any:
        """A matplotlib figure: power against the number of people, with and without noise (extra ``plot``)."""
        sizes = [self.n * 2 ** (i / 4) for i in range(-12, 9) if self.n * 2 ** (i / 4) >= FEWEST]
        figure = plots.blank(6, 3.6)
        axes = figure.add_subplot()
        axes.plot(sizes, [self.at(n) for n in sizes], color=plots.TEAL, label=f"epsilon {self.epsilon:.4g}")
        without = [self.at(n, private=False) for n in sizes]
        axes.plot(sizes, without, color="#888888", linestyle="--", label="without noise")
        axes.plot([self.n], [self.power], "o", color=plots.TEAL)
        axes.axhline(self.plan.alpha, color="#888888", linewidth=0.8, linestyle=":")
        who = "people" if self.plan.groups == 1 else "people in each group"
        axes.set(xscale="log", ylim=(0, 1.02), xlabel=who, ylabel=f"power to notice {self.effect:.4g}")
        axes.set_xticks(sizes[::4], [f"{round(n):,}".replace(",", " ") for n in sizes[::4]])
        axes.minorticks_off()
        axes.legend()
        axes.grid(visible=True, alpha=0.3)
        return figure

    def _facts(self) -> dict[str, list[str]]:
        in_each = " in each of two groups" if self.plan.groups == 2 else ""
        against = "between the two means" if self.plan.groups == 2 else f"from {self.plan.null:.6g}"
        noise = f"{self.mechanism} noise at epsilon {self.epsilon:.4g}" + (
            f", delta {self.plan.delta:.3g}" if self.mechanism == "Gaussian" else ""
        )
        more = self.n / self.n_without_noise
        largest = ", at the largest variance that the bounds allow"
        spread = "" if self.plan.std is not None or (self.plan.low, self.plan.high) == (0, 1) else largest
        return {
            "test": [
                f"a difference of {self.effect:.6g} {against}, values in [{self.plan.low:.6g}, {self.plan.high:.6g}]"
            ],
            "people": [f"{self.n:,}{in_each}".replace(",", " ")],
            "privacy": [noise],
            "power": [
                f"{100 * self.power:.3g} % to notice it; {100 * self.plan.alpha:.3g} % to claim one where there is none"
            ],
            "rule": [f"call it a difference where the released mean is more than about {self.critical:.4g} away"],
            "error": [f"{self.sampling:.4g} from the choice of people{spread}", f"{self.noise:.4g} from the noise"],
            "price": [
                f"without noise {self.n_without_noise:,} people{in_each} would do: ".replace(",", " ")
                + (f"privacy takes {more:.3g} times as many" if more > 1.005 else "privacy takes hardly more")
            ],
        }


def power(
    *,
    proportion: Number | None = None,
    mean: Number | None = None,
    low: Number | None = None,
    high: Number | None = None,
    std: Number | None = None,
    effect: Number | None = None,
    n: int | None = None,
    epsilon: Number | None = None,
    power: Number | None = None,
    alpha: Number = 0.05,
    delta: Number = 0,
    groups: int = 1,
) -> Power:
    r"""Plan a test of a private mean or proportion: find the one of ``effect``, ``n``, ``epsilon``, ``power`` left out.

    The test is two-sided and compares one mean with a fixed value, or (``groups=2``) two means with each other. A mean
    is released as two sums, of (v − low) and of (high − v), each with the whole epsilon: their L1 distance is at most
    (high − low) when a person comes or goes. On [0, 1], about the value p, the released mean less p, times the released
    count, is off by :math:`(1-p)X - pY` with X and Y the noise of the two sums, besides the sampling error, which is
    taken as normal. The critical value is that of this very sum: Laplace noise has heavier tails than a normal
    variable of its variance, and a plain z-test would claim too much (6 % in place of 5 where noise prevails).

    Guarantee:
        Public parameters only: no data, no charge.
    Assumes:
        One value for each person, people independent, added or removed; n times epsilon at least 10, else it refuses.
        With two groups nobody is in both.

    Error:
        Of the normal approximation of sampling and, for two groups, of weighing with noisy counts: both vanish as n
        grows. Without ``std`` the largest variance with that mean is taken, (p − low)(high − p): enough people always.
    Reference:
        Kulesza, Suresh, Wang (2024), Mean estimation in the add-remove model of differential privacy;
        Bhatia, Davis (2000), A better bound on the variance.

    Args:
        proportion: the value without an effect, of values 0 and 1.
        mean: the same for values in [``low``, ``high``].
        low: the least value, declared.
        high: the largest value, declared.
        std: standard deviation of one person's value, if something is known about it.
        effect: the difference to notice; may be negative.
        n: people, in each group.
        epsilon: what the release of the mean, or of both means, costs.
        power: the probability to notice the effect.
        alpha: the probability to claim one that is not there.
        delta: above 0, Gaussian noise is used where it is less.
        groups: 1 or 2.

    >>> plan = power(proportion=0.3, effect=0.05, epsilon=0.1, power=0.8)
    >>> plan.n, plan.n_without_noise
    (1027, 677)
    """
    plan = Plan.checked(
        proportion=proportion, mean=mean, low=low, high=high, std=std, groups=groups, alpha=alpha, delta=delta
    )
    given = {"effect": effect, "n": n, "epsilon": epsilon, "power": power}
    missing = [name for name, value in given.items() if value is None]
    if len(missing) != 1:
        raise InvalidParameterError(
            f"Of effect, n, epsilon and power one is found from the others, but {len(missing)} were left out"
            f"{': ' * bool(missing)}{', '.join(missing)}.",
            fix="write for example power(proportion=0.3, effect=0.05, epsilon=0.1, power=0.8) to find n.",
        )
    (wanted,) = missing
    solution = plan.solved(
        {name: plan.given(name, value) for name, value in given.items() if value is not None}, wanted
    )
    size, loss, shift = int(solution["n"]), solution["epsilon"], solution["effect"]
    design, width = plan.design(size, loss, shift), plan.high - plan.low
    law, bare = design.null_law, design.without_noise.null_law
    return Power(
        found=wanted,
        n=size,
        epsilon=loss,
        effect=shift,
        power=solution["power"],
        plan=plan,
        mechanism="Gaussian" if design.gaussian else "Laplace",
        critical=law.critical(plan.alpha) * width,
        noise=math.sqrt(max(0.0, law.deviation**2 - bare.deviation**2)) * width,
        sampling=bare.deviation * width,
        n_without_noise=min(size, plan.fewest(shift, solution["power"])),
    )

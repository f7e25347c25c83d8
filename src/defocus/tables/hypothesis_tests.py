"""Hypothesis tests of released numbers, with p-values that know the noise as well as the choice of people.

Everything here is done to noisy sums and counts that one charge paid for. Simulations are seeded and see released
numbers only, so the same release has the same p-value.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias, final

import numpy as np
import numpy.typing as npt

from defocus.answers import AnswerColumn, PreviewColumn, Released
from defocus.answers.columns import brief
from defocus.tables.noise import CellNoise
from defocus.tables.planner import Plan
from defocus.tables.power import Design, Law, least
from defocus.tables.reading import Reading, histogram_noise
from defocus.tables.splits import Split
from defocus.tables.statistics import SIZES

__all__ = ["ChiSquared", "MeanTest", "RankTest", "means_tested"]

_Floats: TypeAlias = npt.NDArray[np.float64]
_Draw: TypeAlias = Callable[[np.random.Generator, tuple[int, ...]], _Floats]

_UNSURE = 1e-3
"""The part of a p-value that pays for not knowing a variance, so that none is below it."""
_FEW = 5
"""A group whose noisy count is below so many standard errors of its noise says nothing: its p-value is 1."""
_RUNS = 4999
"""Simulations of the null hypothesis: p-values are multiples of 1/5000."""
_SOME = 399
"""Simulations of each alternative, for intervals and power."""
_LOWER = (0.0, 1.0, 2.0)
"""By how many standard errors of their noise the shares of values are lowered, to be on the safe side of them."""
_WANTED = 0.8
"""The power to speak about beforehand."""


class _Test(Reading):
    """What all tests share: one entry, a verdict, and how large an effect would be noticed."""

    __slots__ = ()
    level: float
    errs: ClassVar[str]
    """What it names the errors of, by the choice of people and by the noise."""

    @property
    @abstractmethod
    def claim(self) -> str:
        """What a small p-value says."""

    def _answered(
        self,
        answer: Released,
        tested: tuple[float, float],
        effect: AnswerColumn,
        apart: tuple[float, float],
        how: str,
    ) -> Released:
        p_value, statistic = tested
        columns = (
            _plain("p_value", p_value, f"{how}; noise and the choice of people are both in it"),
            _plain("statistic", statistic, "how far the released numbers are from the null hypothesis"),
            effect,
            _plain("sampling", apart[0], f"standard error of {self.errs} by the choice of people, estimated"),
            _plain("noise", apart[1], f"standard error of {self.errs} by the noise"),
        )
        return replace(
            answer,
            keys={},
            columns=columns,
            threshold=None,
            things=("test", "tests"),
            notes=(*answer.notes, self._verdict(p_value)),
        )

    def _verdict(self, p_value: float) -> str:
        if p_value <= self.level:
            return f"{self.claim}: p = {p_value:.3g} is at most the level {self.level:g}"
        return (
            f"nothing is shown: p = {p_value:.3g} is above the level {self.level:g}, and too little is no proof of none"
        )


def _plain(name: str, value: float, how: str) -> AnswerColumn:
    """A number that is itself about errors."""
    unknown = np.array([math.nan])
    return AnswerColumn(name, np.array([value]), unknown, unknown, unknown, integral=False, how=how)


def _effect(name: str, value: float, ends: tuple[float, float], noise: float, how: str) -> AnswerColumn:
    """The size of an effect, with the error of its noise where that is known, and an interval that holds all errors."""
    both = f"{how}; the interval holds the noise and the choice of people"
    one, error, low, high = (np.array([number]) for number in (value, noise, *ends))
    return AnswerColumn(name, one, error, low, high, integral=False, how=both, absolute=math.isnan(noise))


def _noise(noise: CellNoise, grid: int) -> tuple[_Draw, float]:
    """How to draw the noise of cells as it was drawn, up to their grid, and its variance, in rows."""
    deviation = math.sqrt(noise.variance) / grid
    if noise.is_laplace:
        scale = deviation / math.sqrt(2)
        return lambda rng, shape: rng.laplace(0.0, scale, shape), deviation**2
    return lambda rng, shape: rng.normal(0.0, deviation, shape), deviation**2


def _random() -> np.random.Generator:
    return np.random.default_rng(20261116)


def _share(simulated: _Floats, seen: float) -> float:
    """How often a simulation is as far out: never less often than that, by counting what was seen as well."""
    return (1 + int((simulated >= seen).sum())) / (1 + len(simulated))


# --- Means ----------------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class MeanTest(_Test):
    r"""Whether a mean differs from a value, or two means from each other.

    Values are scaled to [0, 1]. Of each group the noisy sums :math:`N`, :math:`S` and :math:`R` of 1, x and x² were
    released, three combinations of cells under one sensitivity. About the common mean m, what a group is above it,
    :math:`A = S - mN`, has the sampling variance :math:`Q = R - 2mS + m^2N` and noise of a known law. One group: A
    about the null value. Two: :math:`(N_2S_1 - N_1S_2)/(N_1+N_2) = w_2A_1 - w_1A_2`, whatever m is, with the shares
    :math:`w_g = N_g/(N_1+N_2)`; the variances of the groups may differ, as in Welch's test.

    Guarantee:
        Under the null hypothesis, P(p ≤ α) ≤ α for every α: Q is not known, but an upper bound of it is, which fails
        with probability 0.001. The p-value is that of the bound plus 0.001 (Berger and Boos 1994).
    Assumes:
        Rows of different people are independent. That sampling is normal, in a sum that is divided by the root of its
        squares, and that weights by noisy counts are those by exact ones; counts below five standard errors of their
        noise give a p-value of 1. Both are checked by simulation.
    Reference:
        Welch (1947), The generalization of Student's problem; Berger, Boos (1994), P values maximized over a confidence
        set for the nuisance parameter.
    """

    errs = "the difference"
    column: str
    groups: tuple[Any, ...]
    by: str | None
    null: float
    level: float

    @property
    def words(self) -> str:
        """What is asked, in words."""
        if self.by is None:
            return f"t test of the mean of {self.column} against {self.null:g}"
        first, second = self.groups
        return f"t test of the mean of {self.column} where {self.by} is {first} less that where it is {second}"

    @property
    def claim(self) -> str:
        """What a small p-value says."""
        return "the mean differs from the value" if self.by is None else "the means differ"

    def read(self, answer: Released, planned: Plan) -> Released:
        """The p-value and the difference with its interval."""
        split, noise = planned.arrangement.splits[0], planned.splits[0]
        value = split.values[0]
        law = lambda coefficients: noise.law(coefficients, planned.grid)  # noqa: E731  # of noise in each group alone
        order = _places(answer, self.by, self.groups)
        n, s, r = (answer[name].values[order] for name in ("n", "s", "r"))
        x = (s - value.bottom * n) / value.width
        xx = (r - 2 * value.bottom * s + value.bottom**2 * n) / value.width**2
        null = (self.null - value.bottom) / value.width
        found = means_tested((n, x, xx), split, law, None if self.by is not None else null)
        half = found.interval * value.width
        shown = found.difference * value.width
        apart = found.sampling * value.width, found.noise * value.width
        effect = _effect("difference", shown, (shown - half, shown + half), apart[1], "difference of means")
        return self._answered(
            answer, (found.p_value, found.statistic), effect, apart, "t test, by the law of the noise"
        )

    def foreseen(self, columns: Sequence[PreviewColumn], planned: Plan) -> tuple[list[PreviewColumn], tuple[str, ...]]:
        """The error of the difference and the least one that is noticed, at the largest variance within the bounds."""
        del columns
        split, noise = planned.arrangement.splits[0], planned.splits[0]
        width, groups = split.values[0].width, len(self.groups) or 1
        null = 0.5 if self.by is not None else (self.null - split.values[0].bottom) / width
        spent = _upper(noise.law(_squared(split, null), planned.grid))
        scale = math.sqrt(noise.variance / 2) / planned.grid
        kind = {"laplace": scale} if noise.is_laplace else {"gaussian": scale * math.sqrt(2)}
        by_size, said = [], []
        for n in SIZES:
            room = spent / n
            design = Design(null, 0.0, n, groups, lambda p, more=room: p * (1 - p) + more, **kind)  # type: ignore[misc]
            law, bare = design.null_law, design.without_noise.null_law
            noisy = math.sqrt(max(0.0, law.deviation**2 - bare.deviation**2))
            by_size.append((n, noisy * width, law.critical(0.05) * width))
            most = min(1 - null, null) if groups == 1 else 0.5
            shift = _least(lambda s, d=design: replace(d, shift=s).power(self.level), most)  # type: ignore[misc]
            said.append(_sized(n, groups, "a difference", shift and shift * width))
        largest = "what it stays within holds the choice of people, at the largest variance that the bounds allow"
        how = f"difference of means, {noise.words}; {largest}"
        return [PreviewColumn("difference", how, by_size=tuple(by_size))], tuple(said)


@final
@dataclass(frozen=True, slots=True)
class _Means:
    p_value: float
    statistic: float
    difference: float
    interval: float
    sampling: float
    noise: float


def _squared(split: Split, about: float) -> _Floats:
    """What to multiply cells with for the sum of (x - about)²."""
    return split.moment((2,)) - 2 * about * split.moment((1,)) + about**2 * split.moment((0,))


def _beyond(law: Law, chance: float) -> float:
    """What a variable of this law exceeds with this probability, rounded up."""
    return least(lambda t: law.tail(t) <= chance, 0.0, 2 * law.deviation, precision=1e-3) if law.deviation else 0.0


def _upper(law: Law) -> float:
    """What the noise exceeds with a probability of 0.001."""
    return _beyond(law, _UNSURE)


def means_tested(
    sums: tuple[_Floats, _Floats, _Floats], split: Split, law: Callable[[_Floats], Law], null: float | None
) -> _Means:
    """The test of the scaled noisy sums of 1, x and x² of one or two groups, with noise of this ``law``."""
    n, x, xx = sums
    ones, first = split.moment((0,)), split.moment((1,))
    if not min(n) > _FEW * law(ones).deviation:
        return _Means(1.0, 0.0, math.nan, math.inf, math.nan, math.nan)
    means = x / n
    if null is not None:
        signs, about = np.ones(1), null
        above = float(x[0] - null * n[0])
        difference = float(means[0] - null)
    else:
        signs = np.array([n[1], -n[0]]) / n.sum()
        about = float(np.clip(x.sum() / n.sum(), 0.0, 1.0))
        above, difference = float(signs @ x), float(means[0] - means[1])
    # Each group has cells of its own, so that the laws of a combination are those of all cells together.
    spread = float(signs**2 @ (xx - 2 * about * x + about**2 * n))
    unsure = _together([law(sign**2 * _squared(split, about)) for sign in signs])
    felt = _together([law(sign * (first - about * ones)) for sign in signs])
    normal = math.sqrt(max(0.0, spread + _upper(unsure)))
    null_law = Law(math.hypot(normal, felt.normal), felt.scales)
    p_value = min(1.0, 2 * null_law.tail(abs(above)) + _UNSURE)
    statistic = above / null_law.deviation if null_law.deviation else 0.0
    own = np.maximum(0.0, xx - x**2 / n)
    bounds = [own[g] + _upper(law(_squared(split, float(np.clip(means[g], 0, 1))))) for g in range(len(n))]
    sampling = math.sqrt(float((own / n**2).sum()))
    noisy = _together([law((first - np.clip(means[g], 0, 1) * ones) / n[g]) for g in range(len(n))])
    safe = math.sqrt(sum(float(b) / float(size) ** 2 for b, size in zip(bounds, n, strict=True)))
    half = _beyond(Law(math.hypot(safe, noisy.normal), noisy.scales), (0.05 - _UNSURE) / 2)
    return _Means(p_value, statistic, difference, half, sampling, noisy.deviation)


def _together(laws: Sequence[Law]) -> Law:
    """The law of a sum of independent noises."""
    return Law(math.hypot(*(each.normal for each in laws)), tuple(a for each in laws for a in each.scales))


def _places(answer: Released, by: str | None, groups: Sequence[Any]) -> list[int]:
    if by is None:
        return [0]
    listed = answer.keys[by].to_pylist()
    return [listed.index(group) for group in groups]


def _least(power: Callable[[float], float], most: float) -> float | None:
    """The least effect up to ``most`` that is noticed with the wanted power; None if there is none."""
    if power(most * (1 - 1e-9)) < _WANTED:
        return None
    low, high = 0.0, most
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle) >= _WANTED else (middle, high)
    return high


def _sized(n: int, groups: int, what: str, effect: float | None) -> str:
    rows = f"of {n:,} rows{' in each group' if groups == 2 else ''}".replace(",", " ")
    if effect is None:
        return f"{rows}, no effect is noticed with a power of {100 * _WANTED:g} %"
    return f"{rows}, {what} of {brief(effect)} is noticed with a power of {100 * _WANTED:g} %"


# --- Counts ---------------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class ChiSquared(_Test):
    r"""Whether two columns are independent, or the values of one have given shares.

    The statistic is :math:`\sum (N - E)^2/(E + v)` of noisy counts N, what is expected E and the variance v of the
    noise. Its law under the null hypothesis is simulated: as many rows as the noisy total, noise of the same law.

    Guarantee:
        P(p ≤ α) ≤ α under the null hypothesis, as far as the shares of values are known: for independence they are
        estimated from noisy counts. The largest p-value counts of three simulations, with these shares, and with
        shares that are one and two standard errors of their noise less. Checked by simulation.
    Assumes:
        Rows of different people are independent. A noisy total below five standard errors of its noise gives 1.
    Reference:
        Gaboardi, Lim, Rogers, Vadhan (2016), Differentially private chi-squared hypothesis testing; Wang, Lee, Kifer
        (2015), Revisiting differentially private hypothesis tests for categorical data.
    """

    errs = "one count"
    by: tuple[str, ...]
    shape: tuple[int, int]
    expected: tuple[tuple[Any, float], ...] | None
    level: float

    @property
    def words(self) -> str:
        """What is asked, in words."""
        if self.expected is None:
            return f"chi-squared test of independence of {self.by[0]} and {self.by[1]}"
        return f"chi-squared test of the shares of {self.by[0]}"

    @property
    def claim(self) -> str:
        """What a small p-value says."""
        return "the columns are not independent" if self.expected is None else "the shares differ from those expected"

    def read(self, answer: Released, planned: Plan) -> Released:
        """The p-value and the size of the effect with its interval."""
        counts = answer["count"].values.reshape(self.shape)
        draw, variance = _noise(planned.splits[0], planned.grid)
        total = float(counts.sum())
        sampling, noise = math.sqrt(max(0.0, total) / counts.size), math.sqrt(variance)
        shares = self._given(answer)
        p_value, seen = self.tested(counts, shares, draw, variance)
        found, ends = self._sizes(counts, seen, draw, shares, variance)
        effect = self._effect(found, ends)
        return self._answered(answer, (p_value, seen), effect, (sampling, noise), self._how())

    def tested(
        self, counts: _Floats, shares: _Floats | None, draw: _Draw, variance: float, runs: int = _RUNS
    ) -> tuple[float, float]:
        """The p-value and the statistic of noisy counts."""
        seen = float(self._statistic(counts[None], shares, variance)[0])
        total = float(counts.sum())
        if not total > _FEW * math.sqrt(variance * counts.size):
            return 1.0, seen
        worlds = [shares] if shares is not None else [self._fitted(counts, variance, lower) for lower in _LOWER]
        laws = (self._simulated(world, total, (draw, variance), shares, runs) for world in worlds)
        return max(_share(law, seen) for law in laws), seen

    def foreseen(self, columns: Sequence[PreviewColumn], planned: Plan) -> tuple[list[PreviewColumn], tuple[str, ...]]:
        """The error of counts, and the least effect that is noticed where values are equally frequent."""
        draw, variance = _noise(planned.splits[0], planned.grid)
        given = None if self.expected is None else np.array([[share] for _, share in self.expected])
        null = np.full(self.shape, 1 / math.prod(self.shape)) if given is None else given
        slope = [np.linspace(-1.0, 1.0, size) if size > 1 else np.ones(1) for size in self.shape]
        way = np.outer(*slope)
        if given is not None:
            way = way - (way * given).sum()
            way /= np.abs(way).max()

        def power(s: float, n: int) -> float:
            usual = self._simulated(null, n, (draw, variance), given, _SOME)
            there = self._simulated(null * (1 + s * way), n, (draw, variance), given, _SOME)
            return float((there > np.quantile(usual, 1 - self.level)).mean())

        said = []
        for n in SIZES:
            least_way = _least(lambda s, n=n: power(s, n), 1.0)  # type: ignore[misc]
            size = None if least_way is None else self._size(null * (1 + least_way * way), given)
            said.append(_sized(n, 1, self._name, size))
        return [replace(column, how=f"{column.how}; the test is made of these") for column in columns], tuple(said)

    @property
    def _name(self) -> str:
        return "cramers_v" if self.expected is None else "cohens_w"

    def _how(self) -> str:
        return f"chi-squared test, {_RUNS} simulations with the same noise"

    def _effect(self, value: float, ends: tuple[float, float]) -> AnswerColumn:
        return _effect(self._name, value, ends, math.nan, "size of the effect along the one that was found, 0 for none")

    def _given(self, answer: Released) -> _Floats | None:
        if self.expected is None:
            return None
        shares = dict(self.expected)
        return np.array([[shares[value]] for value in answer.keys[self.by[0]].to_pylist()])

    def _fitted(self, counts: _Floats, variance: float, lower: float) -> _Floats:
        """Shares of independent columns, from margins that are lowered by so many standard errors of their noise."""
        rows, columns = counts.sum(1), counts.sum(0)
        margins = []
        for margin, cells in ((rows, counts.shape[1]), (columns, counts.shape[0])):
            less = np.maximum(margin - lower * math.sqrt(variance * cells), 0.0)
            margins.append(less if less.any() else np.maximum(margin, 0.0))
        fitted = np.outer(*margins)
        return np.asarray(fitted / fitted.sum())

    def _statistic(self, counts: _Floats, shares: _Floats | None, variance: float) -> _Floats:
        total = np.maximum(counts.sum((1, 2), keepdims=True), 1.0)
        if shares is not None:
            expected = total * shares
        else:
            rows, columns = (np.maximum(counts.sum(axis, keepdims=True), 0.0) for axis in (2, 1))
            either = (np.maximum(each.sum((1, 2), keepdims=True), 1e-9) for each in (rows, columns))
            expected = total * (rows / next(either)) * (columns / next(either))
        return np.asarray(((counts - expected) ** 2 / (expected + variance)).sum((1, 2)))

    def _simulated(
        self, world: _Floats, total: float, noise: tuple[_Draw, float], shares: _Floats | None, runs: int
    ) -> _Floats:
        rng, (draw, variance) = _random(), noise
        rows = rng.multinomial(round(total), world.ravel() / world.sum(), runs).reshape(runs, *self.shape)
        return self._statistic(rows + draw(rng, (runs, *self.shape)), shares, variance)

    def _size(self, world: _Floats, shares: _Floats | None) -> float:
        null = self._fitted(world, 0.0, 0.0) if shares is None else shares
        ways = 1 if shares is not None else min(self.shape) - 1
        with np.errstate(all="ignore"):
            parts = np.where(null > 0, (world - null) ** 2 / null, 0.0)
        return math.sqrt(float(parts.sum()) / ways)

    def _sizes(
        self, counts: _Floats, seen: float, draw: _Draw, shares: _Floats | None, variance: float
    ) -> tuple[float, tuple[float, float]]:
        """The effect and its interval: which worlds, from none to more than was found, what was seen may come from."""
        total = float(counts.sum())
        if not total > _FEW * math.sqrt(variance * counts.size):
            return math.nan, (0.0, 1.0 if shares is None else math.sqrt(1 / shares.min() - 1))
        null = self._fitted(counts, variance, 0.0) if shares is None else shares
        joint = np.maximum(counts, 0.0)
        way, sizes, quantiles = joint / joint.sum() - null, [], []
        for s in np.linspace(0.0, 3.0, 25):
            world = np.maximum(null + s * way, 0.0)
            world /= world.sum()
            sizes.append(self._size(world, shares))
            law = self._simulated(world, total, (draw, variance), shares, _SOME)
            quantiles.append(np.quantile(law, [0.5, 0.975, 0.025]))
        rising = np.maximum.accumulate(np.array(quantiles))
        middle, low, high = (float(np.interp(seen, each, np.maximum.accumulate(sizes))) for each in rising.T)
        return middle, (low, high)


# --- Ranks ----------------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class RankTest(_Test):
    r"""Whether values of one group tend to be larger than those of another: Mann and Whitney's test on a public grid.

    With the noisy histograms a and b, the statistic is :math:`\sum_i a_i(b_{<i} + b_i/2 - b_{all}/2)/N`. Its law
    under the null hypothesis is simulated with pooled shares, as many rows as the noisy counts, and noise of the same
    law.

    Guarantee:
        P(p ≤ α) ≤ α under the null hypothesis that both groups have the same law, as far as the pooled shares are
        known; the largest p-value of three simulations counts, as for :class:`ChiSquared`. Checked by simulation.
    Assumes:
        Rows of different people are independent; values within one bucket are tied.
    Reference:
        Mann, Whitney (1947), On a test of whether one of two random variables is stochastically larger than the other;
        Couch, Kazan, Shi, Bray, Groce (2019), Differentially private nonparametric hypothesis testing.
    """

    errs = "the superiority"
    column: str
    groups: tuple[Any, ...]
    by: str
    level: float

    @property
    def words(self) -> str:
        """What is asked, in words."""
        first, second = self.groups
        return f"rank test of {self.column} where {self.by} is {first} against where it is {second}"

    @property
    def claim(self) -> str:
        """What a small p-value says."""
        return "one group tends to larger values"

    def read(self, answer: Released, planned: Plan) -> Released:
        """The p-value, and how often the first group has the larger value, with its interval."""
        order = _places(answer, self.by, self.groups)
        both = np.stack([column.values[order] for column in answer.columns], axis=1)
        noise = histogram_noise(planned)
        draw, variance = _noise(noise, planned.grid)
        totals = both.sum(1)
        p_value, seen = self.tested(both, draw, variance)
        superior, ends, apart = 0.5, (0.0, 1.0), (math.nan, math.nan)
        if min(totals) > _FEW * math.sqrt(variance * both.shape[1]):
            own = np.maximum(both, 0.0)
            silent: _Draw = lambda _, shape: np.zeros(shape)  # noqa: E731  # the choice of people alone
            alone, every = (float(np.std(_superior(*_drawn(own, totals, each, _SOME)))) for each in (silent, draw))
            superior, apart = float(_superior(both[0], both[1])), (alone, math.sqrt(max(0.0, every**2 - alone**2)))
            ends = max(0.0, superior - 1.96 * every), min(1.0, superior + 1.96 * every)
        what = "how often a value of the first group is larger, ties half"
        how = f"rank test on {both.shape[1]} steps, {_RUNS} simulations with the same noise"
        return self._answered(
            answer, (p_value, seen), _effect("superiority", superior, ends, apart[1], what), apart, how
        )

    def tested(self, both: _Floats, draw: _Draw, variance: float, runs: int = _RUNS) -> tuple[float, float]:
        """The p-value and the statistic of two noisy histograms."""
        seen, totals = float(_ranks(both[0], both[1])), both.sum(1)
        if not min(totals) > _FEW * math.sqrt(variance * both.shape[1]):
            return 1.0, seen
        p_value, pooled = 0.0, both.sum(0)
        for lower in _LOWER:
            less = np.maximum(pooled - lower * math.sqrt(2 * variance), 0.0)
            world = less if less.any() else np.maximum(pooled, 0.0)
            law = _ranks(*_drawn(np.stack([world, world]), totals, draw, runs))
            p_value = max(p_value, _share(np.abs(law), abs(seen)))
        return p_value, seen

    def foreseen(self, columns: Sequence[PreviewColumn], planned: Plan) -> tuple[list[PreviewColumn], tuple[str, ...]]:
        """The error of counts, and the least effect that is noticed where values are spread evenly."""
        draw, _ = _noise(histogram_noise(planned), planned.grid)
        slope = np.linspace(-1.0, 1.0, len(columns))
        even = np.ones(len(columns))

        def power(s: float, n: int) -> float:
            usual, there = (
                _ranks(*_drawn(np.stack([1 + effect * slope, even]), np.array([n, n]), draw, _SOME))
                for effect in (0.0, s)
            )
            return float((np.abs(there) > np.quantile(np.abs(usual), 1 - self.level)).mean())

        said = []
        for n in SIZES:
            s = _least(lambda s, n=n: power(s, n), 1.0)  # type: ignore[misc]
            size = None if s is None else float(_superior(1 + s * slope, even))
            said.append(_sized(n, 2, "a superiority", size))
        column = columns[0]
        return [replace(column, name="counts", how=f"{column.how}; the test is made of these")], tuple(said)


def _drawn(worlds: _Floats, totals: _Floats, draw: _Draw, runs: int) -> tuple[_Floats, _Floats]:
    """Noisy histograms of two groups of these sizes and shares."""
    rng = _random()
    made = []
    for world, total in zip(worlds, totals, strict=True):
        rows = rng.multinomial(max(1, round(float(total))), world / world.sum(), runs)
        made.append(rows + draw(rng, rows.shape))
    return made[0], made[1]


def _ranks(first: _Floats, second: _Floats) -> _Floats:
    """Mann and Whitney's statistic less its mean, divided by the number of rows."""
    below = np.cumsum(second, -1) - second / 2 - second.sum(-1, keepdims=True) / 2
    return np.asarray((first * below).sum(-1) / np.maximum(first.sum(-1) + second.sum(-1), 1.0))


def _superior(first: _Floats, second: _Floats) -> _Floats:
    pairs = np.maximum(first.sum(-1) * second.sum(-1), 1.0)
    return np.asarray(_ranks(first, second) * np.maximum(first.sum(-1) + second.sum(-1), 1.0) / pairs + 0.5)

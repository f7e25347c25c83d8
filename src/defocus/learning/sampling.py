r"""How batches are drawn, and what each way of drawing is charged as.

What is gained when each unit falls into one secret step of an epoch, uniformly and independently of the others.

Let t be the number of steps, z the ratio of noise, and consider a unit that is removed (law P) or added (law Q without
it). With :math:`L_j` the likelihood ratio of step j if the unit is in it, given what was released before,

.. math:: \frac{dP}{dQ}\Big|_{i \text{ steps}} = 1 - \frac{M_i}{t}, \qquad M_i = \sum_{j \le i} (1 - L_j).

Given the steps before, step i holds the unit with probability :math:`\lambda_i = 1/(t - M_{i-1})`, and is a Gaussian
release on such a sample. Under Q, M is a martingale whose increments x are at most one and have variance at most
:math:`v = e^{1/z^2} - 1`. Since :math:`(e^{sx} - 1 - sx)/x^2` grows with x, and by Doob's inequality,

.. math:: Q(\max_i M_i > \gamma t) \le \big((1 + v(e^s - 1 - s))\, e^{-s\gamma}\big)^t \quad\text{for every } s > 0.

Let B be this event, β the bound of its probability. P(B) is smaller still, since the ratio above is below one on B.
Outside of B every :math:`\lambda_i` is at most :math:`\lambda = 1/(t(1-\gamma))`. So up to B, in either direction, the
epoch is a run of t Poisson-sampled releases at rate λ, and with any other releases beside it

.. math:: \delta(\varepsilon) \le \delta_{\text{Poisson at } \lambda}(\varepsilon) + \beta.

It is charged as that run and ``Approximate(0, 2β)``: where accountants multiply the first term by 1 − 2β, twice β
makes up for it in every statement with a delta of at most 1/2.

Reference:
    Chua et al. (2025), Balls-and-bins sampling for DP-SGD; Feldman, Shenfeld (2025), Privacy amplification by random
    allocation (the decomposition into Poisson steps; the tail bound here is
    simpler); Bennett (1962), Probability inequalities for the sum of independent random variables.

How batches are drawn, and the event that is proven for each way.

A *unit* is what is protected: an example, or a user with all of theirs. The noise of a step is told by its *ratio*, the
standard deviation of the noise on a sum of contributions over the largest L2 norm of one contribution. Under
replace-one adjacency a unit in the sample is exchanged for another one, which moves the sum by twice that norm.
The number of units, and hence the rate, is a public number of the run; it is the same number on neighbouring data.
"""

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from defocus.errors import InvalidParameterError, UnaccountedSamplingError
from defocus.learning.noise import Stream
from defocus.noise import bernoulli, permutation, uniform
from defocus.noise.ranges import Integers
from defocus.privacy.events import Approximate, Event, Gaussian, Sampled, SampledBatch, SampledGaussian, compose

__all__ = [
    "SAMPLINGS",
    "BallsInBins",
    "Cyclic",
    "FixedSize",
    "Poisson",
    "Sampling",
    "Shuffled",
    "allocated_rate",
    "planned",
]


_TILTS = np.geomspace(1e-3, 30, 600)
_PAD = 1 + 1e-9
_HALF = 0.5


def allocated_rate(ratio: float, steps: int, failing: float) -> float | None:
    """The rate λ at which an epoch of ``steps`` steps counts as Poisson-sampled, except with probability ``failing``.

    None where that is no clear gain over counting the epoch as one release: with much noise and many steps it is one.

    >>> round(1000 * allocated_rate(2.0, 1000, 1e-8), 3)
    1.121
    >>> allocated_rate(0.5, 10, 1e-8)
    """
    if steps < 2 or not failing > 0 or ratio < 0.05:
        return None
    variance = math.expm1(1 / ratio**2) * _PAD
    exponents = np.log1p(variance * (np.expm1(_TILTS) - _TILTS)) + math.log(1 / failing) / steps * _PAD
    gamma = float((exponents / _TILTS).min()) * _PAD
    if not gamma < 1:
        return None
    rate = 1 / (steps * (1 - gamma)) * _PAD
    gains = steps * rate**2 * variance < _HALF / ratio**2
    return rate if gains and rate < 1 else None


class Sampling(ABC):
    """A public plan of which units are in which step. Who really is, is decided by a secret stream."""

    __slots__ = ()

    steps: int
    replace: bool

    @property
    @abstractmethod
    def batch(self) -> Fraction:
        """The expected number of units in a step: what sums are divided by."""

    @abstractmethod
    def event(self, ratios: Sequence[float]) -> Event:
        """What these first steps owe, where step t has noise of ``ratios[t]``."""

    @abstractmethod
    def draw(self, step: int, units: int, key: bytes) -> Integers:
        """The numbers of the units in a step, out of range(units)."""

    @abstractmethod
    def words(self) -> str:
        """How batches are drawn and what was proven for it, in a sentence."""

    def noise(self, ratio: float) -> Gaussian:
        """The noise of one step as an event: half the ratio where a unit is replaced by another."""
        return Gaussian(ratio / 2 if self.replace else ratio)

    def sampled(self, ratio: float, rate: Fraction) -> Event:
        """The noise of one step on a Poisson sample as an event."""
        if rate == 1:
            return self.noise(ratio)
        return SampledGaussian(ratio, rate) if self.replace else Sampled(Gaussian(ratio), rate)


@final
@dataclass(frozen=True, slots=True)
class Poisson(Sampling):
    r"""Every unit is in every step independently, with the same probability: the default.

    Guarantee:
        Step t is :class:`~defocus.privacy.events.Sampled` with Gaussian noise: exact coins for a rational rate, drawn
        from the secret stream. For a unit replaced it is :class:`~defocus.privacy.events.SampledGaussian`.
    Reference:
        Abadi et al. (2016), Deep learning with differential privacy; Zhu, Dong, Wang (2022), Theorem 11.
    """

    size: int
    rate: Fraction
    steps: int
    replace: bool = False

    @property
    def batch(self) -> Fraction:
        """See the base class."""
        return self.rate * self.size

    def event(self, ratios: Sequence[float]) -> Event:
        """See the base class."""
        return compose(times * self.sampled(ratio, self.rate) for ratio, times in Counter(ratios).items())

    def draw(self, step: int, units: int, key: bytes) -> Integers:
        """See the base class."""
        return np.flatnonzero(bernoulli(self.rate, units, Stream(key, "poisson", step)))

    def words(self) -> str:
        """See the base class."""
        return f"Poisson sampling: each is in each step with probability {_share(self.rate)}, independently"


@final
@dataclass(frozen=True, slots=True)
class FixedSize(Sampling):
    r"""Each step draws the same number of units, without replacement, afresh.

    Guarantee:
        Step t is :class:`~defocus.privacy.events.SampledBatch`. In a batch of fixed size a unit that comes or goes
        takes the place of another, under either adjacency, so noise is counted for twice the sensitivity.
    Reference:
        Balle, Barthe, Gaboardi (2018), Privacy amplification by subsampling, Theorems 9 and 11.
    """

    size: int
    drawn: int
    steps: int
    replace: bool = False

    @property
    def batch(self) -> Fraction:
        """See the base class."""
        return Fraction(self.drawn)

    def event(self, ratios: Sequence[float]) -> Event:
        """See the base class."""
        return compose(
            times * SampledBatch(Gaussian(ratio / 2), self.drawn, self.size) for ratio, times in Counter(ratios).items()
        )

    def draw(self, step: int, units: int, key: bytes) -> Integers:
        """See the base class."""
        return np.sort(permutation(units, Stream(key, "fixed", step))[: self.drawn])

    def words(self) -> str:
        """See the base class."""
        return (
            f"batches of exactly {self.drawn} out of {self.size}, drawn afresh without replacement; noise is counted"
            " for a unit that takes another's place, which is twice the sensitivity"
        )


@final
@dataclass(frozen=True, slots=True)
class BallsInBins(Sampling):
    r"""In each epoch every unit falls into one of the steps, uniformly and independently of the others.

    Guarantee:
        An epoch is one Gaussian release at the least ratio of its steps. For a fixed place of the unit, the epochs on
        neighbouring data differ in that one step, by one contribution (two where it is replaced), and each later step
        is a function of what was released before; where others fall does not depend on the unit. So the pair of laws
        is dominated by the Gaussian one for every place, and a mixture over places, which is the same on both sides,
        by joint convexity too.
        Where a unit is added or removed, the place is secret as well, and with enough noise and steps an epoch counts
        as Poisson-sampled steps at a rate slightly above one over the number of bins, except with a small probability
        (``failing``), which is charged as delta: see :mod:`defocus.learning.sampling` for the proof.
    Reference:
        Chua et al. (2025), Balls-and-bins sampling for DP-SGD; Feldman, Shenfeld (2025).
    """

    size: int
    bins: int
    steps: int
    replace: bool = False
    failing: float = 0.0

    @property
    def batch(self) -> Fraction:
        """See the base class."""
        return Fraction(self.size, self.bins)

    def event(self, ratios: Sequence[float]) -> Event:
        """See the base class."""
        epochs = Counter(tuple(ratios[start : start + self.bins]) for start in range(0, len(ratios), self.bins))
        return compose(times * self._epoch(epoch) for epoch, times in epochs.items())

    def _epoch(self, ratios: tuple[float, ...]) -> Event:
        rate = None if self.replace else allocated_rate(min(ratios), self.bins, self.failing)
        if rate is None:
            return self.noise(min(ratios))
        steps = (times * Sampled(Gaussian(ratio), rate) for ratio, times in Counter(ratios).items())
        return compose((*steps, Approximate(0, 2 * self.failing)))

    def draw(self, step: int, units: int, key: bytes) -> Integers:
        """See the base class."""
        epoch, place = divmod(step, self.bins)
        return np.flatnonzero(uniform(self.bins, units, Stream(key, "bins", epoch)) == place)

    def words(self) -> str:
        """See the base class."""
        return (
            f"balls in bins: in each epoch each falls into one of {self.bins} steps; an epoch counts as one release,"
            " or as Poisson-sampled steps at a slightly higher rate where that is proven to be less"
        )


@final
@dataclass(frozen=True, slots=True)
class Shuffled(Sampling):
    r"""In each epoch the units are shuffled and cut into batches; the last one may be smaller.

    Guarantee:
        For a unit replaced by another: the same place is taken by the other, so an epoch is one Gaussian release at
        twice the sensitivity, as for :class:`BallsInBins`. A unit added or removed would move others between batches,
        for which nothing is claimed.
    """

    size: int
    length: int
    steps: int
    replace: bool = True

    def __post_init__(self) -> None:
        if not self.replace:
            raise UnaccountedSamplingError(
                "Where a unit is added or removed, shuffled batches of equal size move others between batches.",
                fix='use sampling="balls in bins" or "poisson", or protect a replaced unit: rows(replace=True).',
            )

    @property
    def batch(self) -> Fraction:
        """See the base class."""
        return Fraction(self.length)

    def event(self, ratios: Sequence[float]) -> Event:
        """See the base class."""
        length = -(-self.size // self.length)
        least = Counter(min(ratios[start : start + length]) for start in range(0, len(ratios), length))
        return compose(times * self.noise(ratio) for ratio, times in least.items())

    def draw(self, step: int, units: int, key: bytes) -> Integers:
        """See the base class."""
        epoch, place = divmod(step, -(-self.size // self.length))
        order = permutation(units, Stream(key, "shuffled", epoch))
        return np.sort(order[place * self.length : (place + 1) * self.length])

    def words(self) -> str:
        """See the base class."""
        return f"shuffled batches of {self.length}; an epoch is counted as one release, without amplification"


@final
@dataclass(frozen=True, slots=True)
class Cyclic(Sampling):
    r"""Units fall into groups once; step t draws a Poisson sample of group t mod ``groups``. For correlated noise.

    Guarantee:
        With noise whose strategy has a band of at most ``groups`` steps, one Sampled Gaussian release for every time
        that a group's turn comes. Fix the group of the unit, which depends on nothing else. It can take part in
        every ``groups``-th step only, and a participation meets the rows of the strategy for the next ``groups`` steps
        only, so each row meets at most one. Given what was released before a turn, the rows up to the next one shift
        by (column times gradient) with probability ``rate`` and not otherwise, where the gradient is fixed: one
        release with Gaussian noise on a Poisson sample, at the sensitivity of the longest column.
    Reference:
        Choquette-Choo et al. (2023), (Amplified) banded matrix factorization, Theorem 4.
    """

    size: int
    groups: int
    rate: Fraction
    steps: int
    replace: bool = False

    @property
    def batch(self) -> Fraction:
        """See the base class."""
        return self.rate * self.size / self.groups

    def event(self, ratios: Sequence[float]) -> Event:
        """See the base class."""
        if not ratios:
            return compose(())
        return -(-len(ratios) // self.groups) * self.sampled(min(ratios), self.rate)

    def draw(self, step: int, units: int, key: bytes) -> Integers:
        """See the base class."""
        mine = np.flatnonzero(uniform(self.groups, units, Stream(key, "groups")) == step % self.groups)
        if self.rate == 1:
            return mine
        return mine[bernoulli(self.rate, len(mine), Stream(key, "cyclic", step))]

    def words(self) -> str:
        """See the base class."""
        drawn = "takes part" if self.rate == 1 else f"is drawn with probability {_share(self.rate)}"
        return (
            f"cyclic participation: each falls into one of {self.groups} groups once, and {drawn} when it is its turn"
        )


def _share(rate: Fraction) -> str:
    return f"{rate.numerator}/{rate.denominator}" if rate.denominator < 10**6 else f"{float(rate):.6g}"


SAMPLINGS = ("poisson", "balls in bins", "shuffled", "fixed size")
"""What ``sampling=`` may be."""


def planned(
    name: object, *, size: int, batch: int | Fraction, steps: int, replace: bool, delta: float = 0.0
) -> Poisson | FixedSize | BallsInBins | Shuffled:
    """The plan of the sampling called ``name``; samplers made elsewhere are refused.

    A twentieth of ``delta`` may be spent on failures of a proof, over all epochs.
    """
    if not isinstance(name, str):
        raise UnaccountedSamplingError(
            f"Batches are drawn by Defocus, so that what is charged is what ran, but got {type(name).__name__}.",
            fix=f"choose sampling= from {', '.join(SAMPLINGS)}; weights belong in the loss, where clipping holds.",
        )
    if name not in SAMPLINGS:
        raise InvalidParameterError(
            f"There is no sampling called {name!r:.60}.", fix=f"choose one of {', '.join(SAMPLINGS)}."
        )
    if name == "poisson":
        return Poisson(size, Fraction(batch) / size, steps, replace)
    if name == "balls in bins":
        bins = max(1, round(size / Fraction(batch)))
        return BallsInBins(size, bins, steps, replace, delta / 40 / -(-steps // bins))
    drawn = Fraction(batch)
    if drawn.denominator != 1:
        raise InvalidParameterError("A batch of fixed size holds a whole number.", fix="pass a whole batch=.")
    kind = FixedSize if name == "fixed size" else Shuffled
    return kind(size, int(drawn), steps, replace)

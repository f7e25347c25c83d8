r"""How batches are drawn, and the event that is proven for each way.

A *unit* is what is protected: an example, or a user with all of theirs. The noise of a step is told by its *ratio*, the
standard deviation of the noise on a sum of contributions over the largest L2 norm of one contribution. Under
replace-one adjacency a unit in the sample is exchanged for another one, which moves the sum by twice that norm.
The number of units, and hence the rate, is a public number of the run; it is the same number on neighbouring data.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from defocus.errors import InvalidParameterError, UnaccountedSamplingError
from defocus.learning.noise import Stream
from defocus.noise import bernoulli, permutation, uniform
from defocus.noise.ranges import Integers
from defocus.privacy.events import (
    AllocatedGaussian,
    Event,
    Gaussian,
    Sampled,
    SampledBatch,
    SampledGaussian,
    ShuffledGaussian,
    compose,
    parts_of,
)
from defocus.privacy.groups import group

__all__ = [
    "OF_PERSONS",
    "SAMPLINGS",
    "BallsInBins",
    "Cyclic",
    "FixedSize",
    "Poisson",
    "Sampling",
    "Shuffled",
    "owed",
    "planned",
]


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
        An epoch is one :class:`~defocus.privacy.events.AllocatedGaussian` at the least ratio of its steps, which is
        where the proof is told: the step of the unit is secret, and where others fall does not depend on it. It needs
        slightly less noise than Poisson sampling where a unit is added or removed.
    Reference:
        Chua et al. (2025), Balls-and-bins sampling for DP-SGD; Feldman, Shenfeld (2025).
    """

    size: int
    bins: int
    steps: int
    replace: bool = False

    @property
    def batch(self) -> Fraction:
        """See the base class."""
        return Fraction(self.size, self.bins)

    def event(self, ratios: Sequence[float]) -> Event:
        """See the base class."""
        rate = Fraction(1, self.bins)
        return _by_epoch(
            ratios,
            self.bins,
            lambda ratio, steps: AllocatedGaussian(ratio, rate, steps) if self.bins > 1 else self.noise(ratio),
        )

    def draw(self, step: int, units: int, key: bytes) -> Integers:
        """See the base class."""
        epoch, place = divmod(step, self.bins)
        return np.flatnonzero(uniform(self.bins, units, Stream(key, "bins", epoch)) == place)

    def words(self) -> str:
        """See the base class."""
        return f"balls in bins: in each epoch each falls into one of {self.bins} steps, and nobody learns into which"


@final
@dataclass(frozen=True, slots=True)
class Shuffled(Sampling):
    r"""In each epoch the units are shuffled and cut into batches of equal size; at least one unit is left out.

    Guarantee:
        An epoch is one :class:`~defocus.privacy.events.ShuffledGaussian` at the least ratio of its steps. Another unit
        takes the place of one that is missing, which moves a sum by twice the bound. So it needs twice the noise of
        :class:`BallsInBins`, and there are data for which less would not do.
    """

    size: int
    length: int
    steps: int
    replace: bool = False

    def __post_init__(self) -> None:
        if self.length >= self.size:
            raise UnaccountedSamplingError(
                f"Shuffled batches leave at least one unit out, but a batch of {self.length} holds all {self.size}.",
                fix='pass a smaller batch_size=, or use sampling="poisson".',
            )

    @property
    def batch(self) -> Fraction:
        """See the base class."""
        return Fraction(self.length)

    @property
    def batches(self) -> int:
        """How many an epoch has."""
        return (self.size - 1) // self.length

    def event(self, ratios: Sequence[float]) -> Event:
        """See the base class."""
        return _by_epoch(
            ratios, self.batches, lambda ratio, steps: ShuffledGaussian(ratio, self.length, self.size, steps)
        )

    def draw(self, step: int, units: int, key: bytes) -> Integers:
        """See the base class."""
        epoch, place = divmod(step, self.batches)
        order = permutation(units, Stream(key, "shuffled", epoch))
        return np.sort(order[place * self.length : (place + 1) * self.length])

    def words(self) -> str:
        """See the base class."""
        return (
            f"shuffled batches of {self.length}, of which an epoch has {self.batches} and leaves the rest out; noise is"
            " counted for a unit that takes another's place, which is twice the sensitivity"
        )


def _by_epoch(ratios: Sequence[float], length: int, epoch: Callable[[float, int], Event]) -> Event:
    """What epochs of so many steps owe, each at its least ratio; the last one may have fewer."""
    cut = Counter(
        (min(ratios[start : start + length]), len(ratios[start : start + length]))
        for start in range(0, len(ratios), length)
    )
    return compose(times * epoch(ratio, steps) for (ratio, steps), times in cut.items())


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
        With a buffered strategy, whose columns overlap, the rate is one and all turns together are one Gaussian
        release, which costs as much as one of each: see :class:`~.noise_schedule.BufferedStrategy`.
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


def owed(event: Event, rows: int) -> Event:
    """What steps that draw rows owe a person who has so many, if they owe ``event`` to one row.

    Guarantee:
        Steps add clipped gradients up, and draw rows independently: see :func:`defocus.privacy.groups.group`.

    >>> from fractions import Fraction
    >>> owed(Poisson(100, Fraction(1, 10), 5).event([2.0] * 5), 4)
    Composed(parts=((SampledGaussian(ratio=1.0, rate=Fraction(1, 10)), 20),))
    """
    if rows == 1:
        return event
    return group(compose(_sum(part) * times for part, times in parts_of(event)), rows)


def _sum(event: Event) -> Event:
    """The same of Poisson samples, as the sum that it is here."""
    if isinstance(event, Sampled) and isinstance(event.event, Gaussian):
        return SampledGaussian(event.event.ratio, event.rate)
    return event


def _share(rate: Fraction) -> str:
    return f"{rate.numerator}/{rate.denominator}" if rate.denominator < 10**6 else f"{float(rate):.6g}"


OF_PERSONS = ("poisson", "balls in bins")
"""Ways that draw units independently, so that something is proven of persons who have several."""
SAMPLINGS = (*OF_PERSONS, "shuffled", "fixed size")
"""What ``sampling=`` may be."""


def planned(
    name: object, *, size: int, batch: int | Fraction, steps: int, replace: bool
) -> Poisson | FixedSize | BallsInBins | Shuffled:
    """The plan of the sampling called ``name``; samplers made elsewhere are refused."""
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
        return BallsInBins(size, max(1, round(size / Fraction(batch))), steps, replace)
    drawn = Fraction(batch)
    if drawn.denominator != 1:
        raise InvalidParameterError("A batch of fixed size holds a whole number.", fix="pass a whole batch=.")
    kind = FixedSize if name == "fixed size" else Shuffled
    return kind(size, int(drawn), steps, replace)

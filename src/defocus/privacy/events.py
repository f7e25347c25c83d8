"""What happened: frozen descriptions of releases, whose meaning never changes once released.

An event says which noise met which sensitivity. It holds no composition rule and no
(epsilon, delta): an accountant makes a loss of it. Every parameter is relative to the unit
and adjacency of the ledger it is charged to, so adjacency is stated once, there.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from defocus.errors import (
    InvalidParameterError,
    Number,
    count,
    finite,
    non_negative,
    positive,
    probability,
    storable,
    whole,
)

__all__ = [
    "NOTHING",
    "AllocatedGaussian",
    "Approximate",
    "Composed",
    "Concentrated",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "Exponential",
    "Gaussian",
    "Laplace",
    "Pure",
    "RandomizedResponse",
    "Sampled",
    "SampledBatch",
    "SampledGaussian",
    "Selected",
    "SelectedPoisson",
    "Shuffled",
    "ShuffledGaussian",
    "SubsetResponse",
    "compose",
    "described",
    "parts_of",
]


class Event:
    """One or more releases. ``a + b`` is both, ``1000 * a`` is a thousand independent ones, ``sum`` adds many.

    Parameters are kept as plain int, float or Fraction, whatever numeric type they came in.

    >>> sum([Gaussian(1), Gaussian(1)]) == 2 * Gaussian(1)
    True
    """

    __slots__ = ()

    def __add__(self, other: object) -> "Event":
        return compose((self, other)) if isinstance(other, Event) else NotImplemented

    def __radd__(self, other: object) -> "Event":
        """``0 + a`` is ``a``: where ``sum`` begins."""
        return self if type(other) is int and other == 0 else NotImplemented

    def __mul__(self, times: object) -> "Event":
        return compose((self,), times=whole("the number of repetitions", times))

    __rmul__ = __mul__


@final
@dataclass(frozen=True, slots=True)
class Gaussian(Event):
    r"""Continuous Gaussian noise whose standard deviation is ``ratio`` times the L2 sensitivity.

    Dominated by the pair N(1, ratio²) and N(0, ratio²).

    >>> from defocus.privacy import account
    >>> round(account(100 * Gaussian(20)).epsilon(1e-6), 3)
    2.254
    """

    ratio: Number

    def __post_init__(self) -> None:
        _keep(self, ratio=positive("ratio", self.ratio))


@final
@dataclass(frozen=True, slots=True)
class Laplace(Event):
    r"""Continuous Laplace noise whose scale is ``ratio`` times the L1 sensitivity.

    Dominated by the pair Lap(1, ratio) and Lap(0, ratio): for noise with a log-concave
    density, spreading a shift over several coordinates is never easier to detect than
    putting it in one, since f⊗g ≥ g∘(1−f) for trade-off functions and equality holds for
    one coordinate.

    >>> from defocus.privacy import account
    >>> round(account(Laplace(2)).epsilon(), 3)
    0.5
    """

    ratio: Number

    def __post_init__(self) -> None:
        _keep(self, ratio=positive("ratio", self.ratio))


@final
@dataclass(frozen=True, slots=True)
class DiscreteGaussian(Event):
    r"""Discrete Gaussian noise, P(x) ∝ exp(−x²/2σ²), on each entry of an integer vector.

    ``sensitivity`` is the L2 sensitivity on the same integer grid, ``dimension`` the number of entries.

    >>> from defocus.privacy import account
    >>> round(account(DiscreteGaussian(sigma=10, sensitivity=2)).epsilon(1e-6), 3)
    0.834
    """

    sigma: Number
    sensitivity: Number = 1
    dimension: int = 1

    def __post_init__(self) -> None:
        _keep(self, sigma=positive("sigma", self.sigma))
        _keep(self, sensitivity=positive("sensitivity", self.sensitivity))
        _keep(self, dimension=count("dimension", self.dimension))


@final
@dataclass(frozen=True, slots=True)
class DiscreteLaplace(Event):
    r"""Discrete Laplace noise, P(x) ∝ exp(−|x|/scale), on integers with integer L1 sensitivity.

    >>> from defocus.privacy import account
    >>> round(account(DiscreteLaplace(scale=10, sensitivity=2)).epsilon(), 3)
    0.2
    """

    scale: Number
    sensitivity: int = 1

    def __post_init__(self) -> None:
        _keep(self, scale=positive("scale", self.scale))
        _keep(self, sensitivity=count("sensitivity", self.sensitivity))


@final
@dataclass(frozen=True, slots=True)
class Pure(Event):
    """Any mechanism that is epsilon-DP.

    >>> from defocus.privacy import account
    >>> round(account(3 * Pure(0.5)).epsilon(), 3)
    1.5
    """

    epsilon: Number

    def __post_init__(self) -> None:
        _keep(self, epsilon=non_negative("epsilon", self.epsilon))


@final
@dataclass(frozen=True, slots=True)
class Approximate(Event):
    """Any mechanism that is (epsilon, delta)-DP.

    >>> from defocus.privacy import account
    >>> round(account(2 * Approximate(0.5, 1e-8)).epsilon(1e-6), 3)
    1.0
    """

    epsilon: Number
    delta: Number

    def __post_init__(self) -> None:
        _keep(self, epsilon=non_negative("epsilon", self.epsilon))
        _keep(self, delta=probability("delta", self.delta, one=False))


@final
@dataclass(frozen=True, slots=True)
class Concentrated(Event):
    """Any mechanism that is rho-zCDP.

    >>> from defocus.privacy import tightest
    >>> round(tightest(2 * Concentrated(0.01)).epsilon(1e-6), 3)
    0.9
    """

    rho: Number

    def __post_init__(self) -> None:
        _keep(self, rho=non_negative("rho", self.rho))


@final
@dataclass(frozen=True, slots=True)
class Exponential(Event):
    """Any mechanism whose log-likelihood ratios span a range of at most epsilon: the exponential mechanism.

    Bounded range is stronger than epsilon-DP: rho = epsilon²/8 instead of epsilon²/2.
    Reference: Dong, Durfee, Rogers (2020), Optimal differential privacy composition for exponential mechanisms.

    >>> from defocus.privacy import account
    >>> round(account(20 * Exponential(0.1)).epsilon(1e-6), 3)
    1.046
    """

    epsilon: Number

    def __post_init__(self) -> None:
        _keep(self, epsilon=non_negative("epsilon", self.epsilon))


@final
@dataclass(frozen=True, slots=True)
class RandomizedResponse(Event):
    """The truth with probability e^ε/(e^ε+k−1), else one of the k−1 other categories, uniformly.

    >>> from defocus.privacy import account
    >>> round(account(RandomizedResponse(1, categories=4)).epsilon(), 3)
    1.0
    """

    epsilon: Number
    categories: int = 2

    def __post_init__(self) -> None:
        _keep(self, epsilon=non_negative("epsilon", self.epsilon))
        whole("categories", self.categories, at_least=2)
        _keep(self, categories=count("categories", self.categories))


@final
@dataclass(frozen=True, slots=True)
class SubsetResponse(Event):
    r"""A report names a set of values, and a set that holds the truth is e^ε times as likely as one that does not.

    Among sets drawn by no truth at all, a share of ``inside`` holds a given value, whichever it is, and a share of at
    least ``both`` holds two given values. So are unary encodings, local hashing, subset selection, Hadamard and
    projective-geometry response; and randomised response, with inside 1/k.

    >>> from defocus.privacy import account
    >>> round(account(SubsetResponse(1, inside=0.5, both=0.25)).epsilon(), 3)
    1.0
    """

    epsilon: Number
    inside: Number
    both: Number = 0

    def __post_init__(self) -> None:
        _keep(self, epsilon=non_negative("epsilon", self.epsilon))
        _keep(self, inside=probability("inside", self.inside, zero=False, one=False))
        _keep(self, both=probability("both", self.both, one=False))
        inside, both = Fraction(self.inside), Fraction(self.both)
        if not (2 * inside - 1 <= both <= inside):
            raise InvalidParameterError(
                f"both must be between max(0, 2*inside - 1) and inside, but with inside {self.inside} it is "
                f"{self.both}.",
                fix="pass the share of sets that hold two given values, inside**2 where they fall in independently.",
            )


@final
@dataclass(frozen=True, slots=True)
class Sampled(Event):
    """``event`` run on a Poisson sample: each unit is in it independently with probability ``rate``.

    Under replace-one adjacency the inner event must hold for a unit added, removed or
    replaced in the sample, since the sample may or may not contain it.

    >>> from defocus.privacy import account
    >>> round(account(1000 * Sampled(Gaussian(1.0), rate=0.01)).epsilon(1e-5), 3)
    1.828
    """

    event: Event
    rate: Number

    def __post_init__(self) -> None:
        _inner(self.event)
        _keep(self, rate=probability("rate", self.rate, zero=False))


@final
@dataclass(frozen=True, slots=True)
class SampledBatch(Event):
    """``event`` run on ``size`` units drawn without replacement from ``population``.

    The inner event must hold for one unit of the batch replaced by another: that is what
    happens to a batch of fixed size, under either adjacency. ``population`` is public.

    >>> from defocus.privacy import account
    >>> round(account(100 * SampledBatch(Gaussian(1.0), size=64, population=60_000)).epsilon(1e-5), 3)
    0.06
    """

    event: Event
    size: int
    population: int

    def __post_init__(self) -> None:
        _inner(self.event)
        _keep(self, size=count("size", self.size), population=count("population", self.population))
        if self.population < self.size:
            raise InvalidParameterError(
                f"A batch of {self.size} cannot be drawn without replacement from a population of {self.population}.",
                fix="pass size <= population.",
            )


@final
@dataclass(frozen=True, slots=True)
class SampledGaussian(Event):
    """The sampled Gaussian mechanism: a sum over a Poisson sample, to which each unit adds a vector of bounded norm.

    Each unit is in the sample independently with probability ``rate``. The noise is Gaussian with standard deviation
    ``ratio`` times the bound on the norm of one unit's vector, under either adjacency. Where a unit is added or
    removed this is ``Sampled(Gaussian(ratio), rate)``. Where it is replaced, it says more than
    ``Sampled(Gaussian(ratio / 2), rate)``: a sample without the unit lies between the two with it.

    >>> from defocus.privacy import Adjacency, account
    >>> steps = 1000 * SampledGaussian(1.0, rate=0.01)
    >>> [round(account(steps, adjacency=one).epsilon(1e-5), 3) for one in Adjacency]
    [1.828, 2.843]
    """

    ratio: Number
    rate: Number

    def __post_init__(self) -> None:
        _keep(self, ratio=positive("ratio", self.ratio), rate=probability("rate", self.rate, zero=False))


@final
@dataclass(frozen=True, slots=True)
class AllocatedGaussian(Event):
    """Sums over several steps, to at most one of which each unit adds its vector: random allocation, balls and bins.

    A unit takes part in each of ``steps`` steps with probability ``rate``, in one of them at most, independently of
    where others take part; nobody learns in which. An epoch of balls-and-bins batches is
    ``AllocatedGaussian(ratio, Fraction(1, bins), bins)``, and its first steps alone have a smaller ``steps``. Each step
    has Gaussian noise with standard deviation ``ratio`` times the bound on the norm of one unit's vector, under either
    adjacency, and may depend on the steps before.

    >>> from defocus.privacy import account
    >>> epoch = AllocatedGaussian(1.0, Fraction(1, 100), steps=100)
    >>> round(account(10 * epoch).epsilon(1e-5), 2)
    1.7
    """

    ratio: Number
    rate: Number
    steps: int

    def __post_init__(self) -> None:
        _keep(self, ratio=positive("ratio", self.ratio), rate=probability("rate", self.rate, zero=False))
        _keep(self, steps=count("steps", self.steps))
        if Fraction(self.rate) * self.steps > 1:
            raise InvalidParameterError(
                f"A unit cannot take part in one of {self.steps} steps at most, in each with probability {self.rate}.",
                fix="pass a rate of at most 1/steps, as a Fraction where it is that.",
            )


@final
@dataclass(frozen=True, slots=True)
class ShuffledGaussian(Event):
    """Sums over ``steps`` batches of ``size``, cut from ``population`` units in random order; at least one is left.

    Each step has Gaussian noise with standard deviation ``ratio`` times the bound on the norm of one unit's vector,
    under either adjacency. ``population`` is public, and counts the unit that is added or removed.

    Where no unit is left out, another could not take the place of one that is removed; so an epoch that uses all of
    them is not described by this event.

    >>> from defocus.privacy import account
    >>> round(account(10 * ShuffledGaussian(2.0, size=64, population=6_401, steps=100)).epsilon(1e-5), 2)
    1.7
    """

    ratio: Number
    size: int
    population: int
    steps: int

    def __post_init__(self) -> None:
        _keep(self, ratio=positive("ratio", self.ratio), size=count("size", self.size))
        _keep(self, population=count("population", self.population), steps=count("steps", self.steps))
        if self.size * self.steps >= self.population:
            raise InvalidParameterError(
                f"{self.steps} batches of {self.size} leave none of {self.population} units out.",
                fix="pass fewer steps: at least one unit is left out of an epoch.",
            )

    @property
    def allocated(self) -> AllocatedGaussian:
        r"""The random allocation that dominates it: at half the ratio, and the rate of one batch.

        Draw an order of the units other than the one in question, of which there are enough for all batches, and choose
        one place in every batch. The unit takes one of these places, uniformly, with probability steps * size /
        population, and none otherwise: the result is an epoch of shuffled batches with the unit, as every place is
        equally likely and the others are in random order. Given order and places, which do not depend on the unit, it
        takes part in one step at most, where the sum moves by its vector less that of whom it displaces: at most twice
        the bound. Without the unit the epoch is the same with no one displaced; where it is replaced, the other takes
        its place. By joint convexity the average over orders and places is not further apart.

        It is tight for a unit added or removed: others who all add the opposite of the unit's vector attain it.
        """
        return AllocatedGaussian(Fraction(self.ratio) / 2, Fraction(self.size, self.population), self.steps)


@final
@dataclass(frozen=True, slots=True)
class Selected(Event):
    r"""The best of K independent runs of ``event``; the other runs and K itself stay secret.

    K follows the truncated negative binomial law :math:`P(K = k) \propto (1-\gamma)^k \binom{k+\eta-1}{k}`
    on k >= 1, with ``gamma`` in (0, 1) and ``eta`` above -1: logarithmic at 0, geometric at 1.

    >>> from defocus.privacy import tightest
    >>> round(tightest(Selected(Gaussian(5), gamma=0.1)).epsilon(1e-6), 3)
    1.367
    """

    event: Event
    gamma: Number
    eta: Number = 0

    def __post_init__(self) -> None:
        _inner(self.event)
        _keep(self, gamma=probability("gamma", self.gamma, zero=False, one=False), eta=finite("eta", self.eta))
        if self.eta <= -1:
            raise InvalidParameterError(f"eta must be above -1, but it is {self.eta}.", fix="pass eta > -1, often 0.")


@final
@dataclass(frozen=True, slots=True)
class SelectedPoisson(Event):
    """The best of K independent runs of ``event``, K Poisson with this ``mean``; nothing at all when K is 0.

    >>> from defocus.privacy import tightest
    >>> round(tightest(SelectedPoisson(Gaussian(10), mean=5)).epsilon(1e-6), 3)
    0.708
    """

    event: Event
    mean: Number

    def __post_init__(self) -> None:
        _inner(self.event)
        _keep(self, mean=positive("mean", self.mean))


@final
@dataclass(frozen=True, slots=True)
class Shuffled(Event):
    """The reports of ``users`` users, each randomised by its owner as ``event`` says, released in random order.

    One user's value is replaced by another; who takes part is public, so there is no such event for a user added or
    removed. ``users`` counts the honest ones, whose reports really are in the shuffle and who keep their coins to
    themselves. All run the same randomiser, and nothing but the multiset of reports is seen: a deployment that shows
    sums only (secure aggregation) does not shuffle, and is not described by this event.

    >>> from defocus.privacy import account
    >>> round(account(Shuffled(RandomizedResponse(2), users=10_000), adjacency="replace").epsilon(1e-6), 3)
    0.087
    """

    event: Event
    users: int

    def __post_init__(self) -> None:
        if not isinstance(self.event, _LOCAL):
            raise InvalidParameterError(
                f"What each user sends must have a pure epsilon of its own, but got {type(self.event).__name__}.",
                fix="write for example Shuffled(RandomizedResponse(1), users=1000); Pure(epsilon) for any randomiser.",
            )
        _keep(self, users=count("users", self.users))


_LOCAL = (Laplace, DiscreteLaplace, Pure, Exponential, RandomizedResponse, SubsetResponse)
"""What a user may send into a shuffle."""


@final
@dataclass(frozen=True, slots=True)
class Composed(Event):
    """Several independent releases: pairs of an event and how often it happened. Made by ``+`` and ``*``.

    >>> 2 * Pure(1) + Gaussian(3)
    Composed(parts=((Pure(epsilon=1), 2), (Gaussian(ratio=3), 1)))
    """

    parts: tuple[tuple[Event, int], ...]

    def __post_init__(self) -> None:
        try:
            parts = tuple((part, times) for part, times in self.parts)
        except (TypeError, ValueError):
            raise InvalidParameterError(
                "Composed needs pairs of an event and how often it happened.", fix="build compositions with + and *."
            ) from None
        for part, _ in parts:
            if isinstance(part, Composed) or not isinstance(part, Event):
                raise InvalidParameterError(
                    f"A part of Composed must be a single event, but it is {type(part).__name__}.",
                    fix="build compositions with + and *.",
                )
        object.__setattr__(self, "parts", tuple((part, _times(times, at_least=1)) for part, times in parts))


def compose(events: Iterable[Event], *, times: int = 1) -> Event:
    """All ``events``, ``times`` times over, equal ones counted together and a single one left as it is.

    >>> compose([Pure(1), Gaussian(2), Pure(1)])
    Composed(parts=((Pure(epsilon=1), 2), (Gaussian(ratio=2), 1)))
    """
    counts: dict[Event, int] = {}
    repeated = _times(times)
    for event in events:
        if not isinstance(event, Event):
            raise InvalidParameterError(
                f"Only events can be composed, but one is {type(event).__name__}.",
                fix="write for example compose([Gaussian(1.0), Laplace(2)]).",
            )
        for part, number in parts_of(event):
            counts[part] = counts.get(part, 0) + number * repeated
    kept = tuple((part, number) for part, number in counts.items() if number)
    if len(kept) == 1 and kept[0][1] == 1:
        return kept[0][0]
    return Composed(kept)


def parts_of(event: Event) -> tuple[tuple[Event, int], ...]:
    """The single events that ``event`` is made of, each with how often it happened.

    >>> parts_of(Pure(1)), parts_of(3 * Pure(1))
    (((Pure(epsilon=1), 1),), ((Pure(epsilon=1), 3),))
    """
    return event.parts if isinstance(event, Composed) else ((event, 1),)


NOTHING: Event = Composed(())
"""No release at all: costs nothing, and is the neutral element of ``+``."""


def _keep(event: Event, **checked: Number) -> None:
    """Hold what the checks made of the parameters, if it is of a length that a ledger can store."""
    for name, value in checked.items():
        object.__setattr__(event, name, storable(name, value))


def _times(times: object, *, at_least: int = 0) -> int:
    name = "the number of repetitions"
    return int(storable(name, whole(name, times, at_least=at_least)))


def _inner(event: Any) -> None:
    if not isinstance(event, Event):
        raise InvalidParameterError(
            f"Sampling and selection need the event that runs inside, but got {type(event).__name__}.",
            fix="write for example Sampled(Gaussian(1.0), rate=0.01).",
        )


def described(thing: object) -> str:
    """The kind of ``thing``, told apart from others of the same name. Its value is private and not shown.

    >>> from defocus.privacy.events import Laplace
    >>> described(Laplace), described(Laplace(20)), described(3)
    ('the class Laplace', 'the event privacy.Laplace', 'int')
    """
    name = type(thing).__name__
    if isinstance(thing, type):
        return f"the class {thing.__name__}"
    if isinstance(thing, Event):
        return f"the event privacy.{name}"
    if isinstance(getattr(type(thing), "event", None), property) and callable(getattr(thing, "sample", None)):
        return f"the mechanism {name}"
    return name

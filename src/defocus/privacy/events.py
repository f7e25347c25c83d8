"""What happened: frozen descriptions of releases, whose meaning never changes once released.

An event says which noise met which sensitivity. It holds no composition rule and no
(epsilon, delta): an accountant makes a loss of it. Every parameter is relative to the unit
and adjacency of the ledger it is charged to, so adjacency is stated once, there.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

from defocus.errors import InvalidParameterError, Number, count, finite, non_negative, positive, probability, whole

__all__ = [
    "NOTHING",
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
    "Selected",
    "SelectedPoisson",
    "compose",
]


class Event:
    """One or more releases. ``a + b`` is both, ``1000 * a`` is a thousand independent ones.

    >>> Gaussian(1) + Gaussian(1) == 2 * Gaussian(1)
    True
    """

    __slots__ = ()

    def __add__(self, other: object) -> "Event":
        return compose((self, other)) if isinstance(other, Event) else NotImplemented

    def __mul__(self, times: object) -> "Event":
        return compose((self,), times=whole("the number of repetitions", times))

    __rmul__ = __mul__


@final
@dataclass(frozen=True, slots=True)
class Gaussian(Event):
    r"""Continuous Gaussian noise whose standard deviation is ``ratio`` times the L2 sensitivity.

    Dominated by the pair N(1, ratio²) and N(0, ratio²).
    """

    ratio: Number

    def __post_init__(self) -> None:
        positive("ratio", self.ratio)


@final
@dataclass(frozen=True, slots=True)
class Laplace(Event):
    r"""Continuous Laplace noise whose scale is ``ratio`` times the L1 sensitivity.

    Dominated by the pair Lap(1, ratio) and Lap(0, ratio): for noise with a log-concave
    density, spreading a shift over several coordinates is never easier to detect than
    putting it in one, since f⊗g ≥ g∘(1−f) for trade-off functions and equality holds for
    one coordinate.
    """

    ratio: Number

    def __post_init__(self) -> None:
        positive("ratio", self.ratio)


@final
@dataclass(frozen=True, slots=True)
class DiscreteGaussian(Event):
    r"""Discrete Gaussian noise, P(x) ∝ exp(−x²/2σ²), on each entry of an integer vector.

    ``sensitivity`` is the L2 sensitivity on the same integer grid, ``dimension`` the number of entries.
    """

    sigma: Number
    sensitivity: Number = 1
    dimension: int = 1

    def __post_init__(self) -> None:
        positive("sigma", self.sigma)
        positive("sensitivity", self.sensitivity)
        count("dimension", self.dimension)


@final
@dataclass(frozen=True, slots=True)
class DiscreteLaplace(Event):
    r"""Discrete Laplace noise, P(x) ∝ exp(−|x|/scale), on integers with integer L1 sensitivity."""

    scale: Number
    sensitivity: int = 1

    def __post_init__(self) -> None:
        positive("scale", self.scale)
        count("sensitivity", self.sensitivity)


@final
@dataclass(frozen=True, slots=True)
class Pure(Event):
    """Any mechanism that is epsilon-DP."""

    epsilon: Number

    def __post_init__(self) -> None:
        non_negative("epsilon", self.epsilon)


@final
@dataclass(frozen=True, slots=True)
class Approximate(Event):
    """Any mechanism that is (epsilon, delta)-DP."""

    epsilon: Number
    delta: Number

    def __post_init__(self) -> None:
        non_negative("epsilon", self.epsilon)
        probability("delta", self.delta, one=False)


@final
@dataclass(frozen=True, slots=True)
class Concentrated(Event):
    """Any mechanism that is rho-zCDP."""

    rho: Number

    def __post_init__(self) -> None:
        non_negative("rho", self.rho)


@final
@dataclass(frozen=True, slots=True)
class Exponential(Event):
    """Any mechanism whose log-likelihood ratios span a range of at most epsilon: the exponential mechanism.

    Bounded range is stronger than epsilon-DP: rho = epsilon²/8 instead of epsilon²/2.
    Reference: Dong, Durfee, Rogers (2020), Optimal differential privacy composition for exponential mechanisms.
    """

    epsilon: Number

    def __post_init__(self) -> None:
        non_negative("epsilon", self.epsilon)


@final
@dataclass(frozen=True, slots=True)
class RandomizedResponse(Event):
    """The truth with probability e^ε/(e^ε+k−1), else one of the k−1 other categories, uniformly."""

    epsilon: Number
    categories: int = 2

    def __post_init__(self) -> None:
        non_negative("epsilon", self.epsilon)
        whole("categories", self.categories, at_least=2)


@final
@dataclass(frozen=True, slots=True)
class Sampled(Event):
    """``event`` run on a Poisson sample: each unit is in it independently with probability ``rate``.

    Under replace-one adjacency the inner event must hold for a unit added, removed or
    replaced in the sample, since the sample may or may not contain it.
    """

    event: Event
    rate: Number

    def __post_init__(self) -> None:
        _inner(self.event)
        probability("rate", self.rate, zero=False)


@final
@dataclass(frozen=True, slots=True)
class SampledBatch(Event):
    """``event`` run on ``size`` units drawn without replacement from ``population``.

    The inner event must hold for one unit of the batch replaced by another: that is what
    happens to a batch of fixed size, under either adjacency. ``population`` is public.
    """

    event: Event
    size: int
    population: int

    def __post_init__(self) -> None:
        _inner(self.event)
        count("size", self.size)
        if count("population", self.population) < self.size:
            raise InvalidParameterError(
                f"A batch of {self.size} cannot be drawn without replacement from a population of {self.population}.",
                fix="pass size <= population.",
            )


@final
@dataclass(frozen=True, slots=True)
class Selected(Event):
    r"""The best of K independent runs of ``event``; the other runs and K itself stay secret.

    K follows the truncated negative binomial law :math:`P(K = k) \propto (1-\gamma)^k \binom{k+\eta-1}{k}`
    on k >= 1, with ``gamma`` in (0, 1) and ``eta`` above -1: logarithmic at 0, geometric at 1.
    """

    event: Event
    gamma: Number
    eta: Number = 0

    def __post_init__(self) -> None:
        _inner(self.event)
        probability("gamma", self.gamma, zero=False, one=False)
        if finite("eta", self.eta) <= -1:
            raise InvalidParameterError(f"eta must be above -1, but it is {self.eta}.", fix="pass eta > -1, often 0.")


@final
@dataclass(frozen=True, slots=True)
class SelectedPoisson(Event):
    """The best of K independent runs of ``event``, K Poisson with this ``mean``; nothing at all when K is 0."""

    event: Event
    mean: Number

    def __post_init__(self) -> None:
        _inner(self.event)
        positive("mean", self.mean)


@final
@dataclass(frozen=True, slots=True)
class Composed(Event):
    """Several independent releases: pairs of an event and how often it happened. Made by ``+`` and ``*``."""

    parts: tuple[tuple[Event, int], ...]

    def __post_init__(self) -> None:
        for part, times in self.parts:
            if isinstance(part, Composed) or not isinstance(part, Event):
                raise InvalidParameterError(
                    f"A part of Composed must be a single event, but it is {type(part).__name__}.",
                    fix="build compositions with + and *.",
                )
            whole("the number of repetitions", times, at_least=1)


def compose(events: Iterable[Event], *, times: int = 1) -> Event:
    """All ``events``, ``times`` times over, equal ones counted together and a single one left as it is.

    >>> compose([Pure(1), Gaussian(2), Pure(1)])
    Composed(parts=((Pure(epsilon=1), 2), (Gaussian(ratio=2), 1)))
    """
    counts: dict[Event, int] = {}
    for event in events:
        parts = event.parts if isinstance(event, Composed) else ((event, 1),)
        for part, number in parts:
            counts[part] = counts.get(part, 0) + number * times
    kept = tuple((part, number) for part, number in counts.items() if number)
    if len(kept) == 1 and kept[0][1] == 1:
        return kept[0][0]
    return Composed(kept)


NOTHING: Event = Composed(())
"""No release at all: costs nothing, and is the neutral element of ``+``."""


def _inner(event: Any) -> None:
    if not isinstance(event, Event):
        raise InvalidParameterError(
            f"Sampling and selection need the event that runs inside, but got {type(event).__name__}.",
            fix="write for example Sampled(Gaussian(1.0), rate=0.01).",
        )

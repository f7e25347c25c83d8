r"""Group privacy: what an event means for several units at once, and for a person who owns several of them.

Guarantee:
    If an event describes a release for one unit, ``group(event, k)`` describes the same release for any k units that
    change together. Exact where the event names its noise, since the sensitivity of k units is k times that of one.
Reference:
    Dwork, Roth (2014), Theorem 2.2 (pure); Bun, Steinke (2016), Proposition 1.9 (ρk²); Vadhan (2017), Lemma 2.2
    (approximate).
"""

import math
from fractions import Fraction
from functools import singledispatch

from defocus.errors import FormulaOutOfRangeError, UnsupportedEventError, count
from defocus.privacy import events
from defocus.privacy.numbers import PAD, above

__all__ = ["group", "user_level"]


def group(event: events.Event, size: int) -> events.Event:
    """``event`` for any ``size`` units that change together.

    >>> group(events.Gaussian(10) + events.Pure(0.1), 5)
    Composed(parts=((Gaussian(ratio=Fraction(2, 1)), 1), (Pure(epsilon=Fraction(...)), 1)))
    """
    return event if count("size", size) == 1 else _group(event, size)


def user_level(event: events.Event, *, contributions: int) -> events.Event:
    """``event``, described for single records, for a person who owns at most ``contributions`` of them.

    Assumes:
        No person really owns more; bound the contributions before the release.

    >>> user_level(events.Laplace(30), contributions=3)
    Laplace(ratio=Fraction(10, 1))
    """
    return group(event, count("contributions", contributions))


@singledispatch
def _group(event: events.Event, size: int) -> events.Event:
    raise _refusal(event, size, "no group guarantee is known for it")


@_group.register
def _(event: events.Composed, size: int) -> events.Event:
    return events.compose(group(part, size) * times for part, times in event.parts)


@_group.register
def _(event: events.Gaussian, size: int) -> events.Event:
    return events.Gaussian(Fraction(event.ratio) / size)


@_group.register
def _(event: events.Laplace, size: int) -> events.Event:
    return events.Laplace(Fraction(event.ratio) / size)


@_group.register
def _(event: events.DiscreteGaussian, size: int) -> events.Event:
    return events.DiscreteGaussian(event.sigma, Fraction(event.sensitivity) * size, event.dimension)


@_group.register
def _(event: events.DiscreteLaplace, size: int) -> events.Event:
    return events.DiscreteLaplace(event.scale, event.sensitivity * size)


@_group.register
def _(event: events.Pure | events.SubsetResponse, size: int) -> events.Event:
    return events.Pure(Fraction(event.epsilon) * size)


@_group.register
def _(event: events.Exponential, size: int) -> events.Event:
    """Ranges of log-likelihood ratios add along a chain of neighbours."""
    return events.Exponential(Fraction(event.epsilon) * size)


@_group.register
def _(event: events.Concentrated, size: int) -> events.Event:
    return events.Concentrated(Fraction(event.rho) * size * size)


@_group.register
def _(event: events.RandomizedResponse, size: int) -> events.Event:
    """Each unit's own answer is randomised, so ``size`` of them are so many responses."""
    return event * size


@_group.register
def _(event: events.Approximate, size: int) -> events.Event:
    """Epsilon grows to kε and delta to δ(1 + e^ε + … + e^((k−1)ε))."""
    epsilon = above(event.epsilon)
    whole = above(Fraction(event.epsilon) * size)
    if whole > 700:
        growth = math.inf
    else:
        # The sum has ``size`` terms of at least one; the quotient loses them where epsilon is below the least float.
        growth = max(float(size), math.expm1(whole) / math.expm1(epsilon) * PAD * PAD if epsilon > 0 else 0.0)
    delta = above(event.delta) * growth * PAD
    if not delta < 1:
        raise FormulaOutOfRangeError(
            f"For a group of {size}, ({event.epsilon}, {event.delta})-DP promises nothing: delta grows beyond 1.",
            fix="protect the group directly: give the release the sensitivity of the whole group.",
        )
    return events.Approximate(Fraction(event.epsilon) * size, delta)


@_group.register
def _(event: events.Selected, size: int) -> events.Event:
    """The price of selection holds for any two data sets, so the group acts on the runs."""
    return events.Selected(group(event.event, size), event.gamma, event.eta)


@_group.register
def _(event: events.SelectedPoisson, size: int) -> events.Event:
    return events.SelectedPoisson(group(event.event, size), event.mean)


@_group.register
def _(
    event: events.Sampled
    | events.SampledBatch
    | events.SampledGaussian
    | events.AllocatedGaussian
    | events.ShuffledGaussian,
    size: int,
) -> events.Event:
    raise _refusal(event, size, "a random part of the group is in the sample")


@_group.register
def _(event: events.Shuffled, size: int) -> events.Event:
    raise _refusal(event, size, "the others, who hide one user's report, are fewer")


def _refusal(event: events.Event, size: int, why: str) -> UnsupportedEventError:
    return UnsupportedEventError(
        event,
        who="Group privacy",
        why=why,
        fix=f"account for it at one unit, then use group(Approximate(epsilon, delta), {size}).",
    )

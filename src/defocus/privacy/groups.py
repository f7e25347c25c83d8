r"""Group privacy: what an event means for several units at once, and for a person who owns several of them.

Guarantee:
    If an event describes a release for one unit, ``group(event, k)`` describes the same release for any k units that
    change together. Exact where the event names its noise, since the sensitivity of k units is k times that of one.
    Of sums over random samples, see :func:`_pieces`: exact in the limit of much noise, and never too low.
Reference:
    Dwork, Roth (2014), Theorem 2.2 (pure); Bun, Steinke (2016), Proposition 1.9 (ρk²); Vadhan (2017), Lemma 2.2
    (approximate).
"""

import math
from dataclasses import replace
from fractions import Fraction
from functools import singledispatch

from defocus.errors import FormulaOutOfRangeError, UnsupportedEventError, count
from defocus.privacy import events
from defocus.privacy.numbers import PAD, above, below, root_up

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
def _pieces(event: events.SampledGaussian | events.AllocatedGaussian, size: int) -> events.Event:
    r"""Each of k units in a sum of its own, with a k-th of the noise: k events at the ratio over √k.

    Theorem:
        Let a step release :math:`S + \sum_{i \le k} B_i g_i + Z`, where the coin :math:`B_i` says whether unit i of the
        group takes part, S is what others add, and Z has variance :math:`z^2`. Coins of different units are
        independent; S and the vectors of norm at most one may depend on earlier releases. Then the run is
        post-processing of k releases that the event describes at the ratio :math:`z/\sqrt k`, of one unit each.
        Proof. Z has the law of the sum of k independent parts of variance :math:`z^2/k`. Tell
        :math:`Y_i = B_i g_i + Z_i` apart for each i, and S beside them: that tells more, as the release is their sum.
        Where the units are added or removed, the k runs can be simulated, one step after the other, from k independent
        runs for fixed vectors of length one: what was told so far fixes S and every :math:`g_i`; turn the i-th run
        into the direction of :math:`g_i`, shrink it to its length, and add noise up to the variance. It is the same
        whether the units are there or not. Where they are replaced, the k runs are interactive mechanisms that are
        answered in turns, and concurrent composition costs what composition does.
    Reference:
        Vadhan, Zhang (2023), Concurrent composition theorems for differential privacy, Theorem 1.5. That the exact
        law, a mixture over the binomial number of units in the sample, is not far below: see the tests.
    """
    if Fraction(event.rate) == 1:
        return replace(event, ratio=Fraction(event.ratio) / size)
    return size * replace(event, ratio=below(Fraction(event.ratio) / Fraction(root_up(Fraction(size)))))


@_group.register
def _(event: events.Sampled | events.SampledBatch | events.ShuffledGaussian, size: int) -> events.Event:
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

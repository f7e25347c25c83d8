"""From events to profiles: which pair of laws dominates each kind of event.

Every parameter is rounded to the side that loses more privacy before it becomes a float.
"""

import math
from dataclasses import replace
from fractions import Fraction
from functools import singledispatch
from typing import NamedTuple

from defocus.errors import InvalidParameterError, Number, UnsupportedEventError
from defocus.privacy import events
from defocus.privacy.accounting.pld.allocation import allocated
from defocus.privacy.accounting.pld.discrete import DiscreteGaussianProfile, DiscreteLaplaceProfile
from defocus.privacy.accounting.pld.profiles import Atoms, BoundedRange, GaussianProfile, LaplaceProfile, Profile
from defocus.privacy.accounting.pld.sampling import Batched, ReplacedGaussian, SampledProfile, ShuffledProfile
from defocus.privacy.accounting.shuffling import amplification, replaced_only
from defocus.privacy.losses import Bounded, largest_loss
from defocus.privacy.numbers import above, below, nearest
from defocus.privacy.units import Adjacency

__all__ = ["Smoothed", "Term", "lower", "smoothed"]

_TABLE_SIGMA = 4096
_TABLE_SHIFT = 4096
_RAREST = Fraction(1, 10**290)
"""Rates below this are taken for it: their inverses are no floats."""


class Term(NamedTuple):
    """A profile, how often it occurs, and a pair that really occurs (for lower bounds), if one is known."""

    profile: Profile
    times: int
    witness: Profile | None
    pure: Fraction | None
    """The largest loss, exactly or rounded up; None where it is unbounded."""


class Smoothed(NamedTuple):
    """Continuous Gaussians around a discrete one: ``mu`` and ``blur`` from above, ``mu_below`` from below."""

    mu: float
    mu_below: float
    blur: float


def lower(event: events.Event, adjacency: Adjacency) -> list[Term]:
    """The terms of ``event``; all Gaussians become one, since their compositions are Gaussian."""
    parts = events.parts_of(event)
    terms: list[Term] = []
    squared = squared_below = blur = 0.0
    witnessed = True
    for part, times in parts:
        term = _term(part, adjacency)
        if term is None:
            continue
        profile, witness = term
        if isinstance(profile, GaussianProfile):
            # Never nothing: a Gaussian loses something, however wide it is.
            squared += _protecting(nearest(times * Fraction(profile.mu) ** 2)) or math.ulp(0.0)
            blur += _protecting(nearest(times * Fraction(profile.blur)))
            witnessed &= witness is not None
            squared_below += nearest(times * Fraction(witness.mu) ** 2) if isinstance(witness, GaussianProfile) else 0.0
        else:
            terms.append(Term(profile, times, witness, _pure(part, profile)))
    if squared:
        grown = 1 + 8 * len(parts) * 2.0**-53
        real = GaussianProfile(math.sqrt(squared_below) / grown, blur) if witnessed and squared_below else None
        terms.append(Term(GaussianProfile(math.sqrt(squared) * grown, blur), 1, real, None))
    return terms


def smoothed(event: events.DiscreteGaussian) -> Smoothed:
    r"""Continuous Gaussians that bound a discrete Gaussian of any dimension from both sides.

    Let y be x plus continuous noise of variance σ²−τ², and round y to the lattice point z
    with probability proportional to :math:`e^{-|z-y|^2/2\tau^2}`. The normaliser of that
    rounding lies in :math:`(1\pm c)^d` times a constant, :math:`c = 2\sum_k
    e^{-2\pi^2\tau^2k^2}` (Poisson summation), so z has the discrete Gaussian law up to a
    factor within :math:`\kappa^{\pm1}`, :math:`\kappa = ((1+c)/(1-c))^d`. Rounding is
    post-processing, hence :math:`\delta(\varepsilon) \le \kappa\,\delta_{\sigma^2-\tau^2}
    (\varepsilon - 2\ln\kappa)`. Adding continuous noise of variance τ'² to z gives the
    bound from below with σ²+τ'², for a shift that occurs. τ is chosen so that
    :math:`\ln\kappa < 10^{-16}`; both variances differ from σ² by less than 4.
    """
    sigma2, shift = Fraction(event.sigma) ** 2, Fraction(event.sensitivity)
    tau2 = (math.log(4 * event.dimension) + 38.0) / (2 * math.pi**2)
    if sigma2 < 4 * Fraction(tau2):
        raise UnsupportedEventError(
            event,
            accountant="pld",
            why=f"with {event.dimension} entries at sensitivity {above(shift):g} it needs sigma at least "
            f"{2 * math.sqrt(tau2):.3g}",
            fix="use a finer grid, so that sigma is larger in grid units; or account by rdp or zcdp.",
        )
    blur = event.dimension * 8 * math.exp(-2 * math.pi**2 * tau2)
    mu = _up(shift) / math.sqrt(below(sigma2 - Fraction(tau2)))
    mu_below = below(shift) / math.sqrt(above(sigma2 + Fraction(tau2) * Fraction(4, 3)))
    return Smoothed(mu * (1 + 2.0**-50), mu_below * (1 - 2.0**-50), blur)


def _pure(event: events.Event, profile: Profile) -> Fraction | None:
    if isinstance(event, Bounded):
        return largest_loss(event)
    end = max(profile.top, -profile.bottom)
    return None if profile.at_infinity or math.isinf(end) else Fraction(end)


@singledispatch
def _term(event: events.Event, adjacency: Adjacency) -> tuple[Profile, Profile | None] | None:
    del adjacency
    raise UnsupportedEventError(
        event,
        accountant="pld",
        why="no pair of laws is known that dominates it",
        fix='use account(event, method="rdp") or method="zcdp".',
    )


@_term.register
def _(event: events.Gaussian, adjacency: Adjacency) -> tuple[Profile, Profile | None]:
    del adjacency
    mu = Fraction(1) / Fraction(event.ratio)
    return GaussianProfile(_up(mu)), GaussianProfile(below(mu))


@_term.register
def _(event: events.Laplace, adjacency: Adjacency) -> tuple[Profile, Profile | None]:
    del adjacency
    epsilon = Fraction(1) / Fraction(event.ratio)
    return LaplaceProfile(_up(epsilon)), LaplaceProfile(below(epsilon))


@_term.register
def _(event: events.DiscreteLaplace, adjacency: Adjacency) -> tuple[Profile, Profile | None]:
    del adjacency
    _up(largest_loss(event))
    profile = DiscreteLaplaceProfile(below(Fraction(event.scale)), _up(Fraction(event.sensitivity)))
    exact = Fraction(profile.scale) == Fraction(event.scale) and Fraction(profile.shift) == event.sensitivity
    return profile, profile if exact else None


@_term.register
def _(event: events.DiscreteGaussian, adjacency: Adjacency) -> tuple[Profile, Profile | None]:
    del adjacency
    shift = Fraction(event.sensitivity)
    # Integer vectors within the sensitivity differ in at most floor(shift²) entries, so one entry where that is 1.
    entries = min(event.dimension, max(1, math.floor(shift * shift)))
    if entries == 1 and event.sigma <= _TABLE_SIGMA and shift <= _TABLE_SHIFT:
        profile = DiscreteGaussianProfile(below(Fraction(event.sigma)), max(1, math.floor(shift)))
        return profile, profile if Fraction(profile.sigma) == Fraction(event.sigma) else None
    around = smoothed(replace(event, dimension=entries))
    occurs = shift.denominator == 1 and around.mu_below > 0
    real = GaussianProfile(around.mu_below, around.blur) if occurs else None
    return GaussianProfile(around.mu, around.blur), real


@_term.register
def _(event: events.Pure, adjacency: Adjacency) -> tuple[Profile, Profile | None] | None:
    del adjacency
    return _response(event.epsilon, 2, 0)


@_term.register
def _(event: events.Approximate, adjacency: Adjacency) -> tuple[Profile, Profile | None] | None:
    del adjacency
    return _response(event.epsilon, 2, event.delta)


@_term.register
def _(event: events.RandomizedResponse, adjacency: Adjacency) -> tuple[Profile, Profile | None] | None:
    del adjacency
    return _response(event.epsilon, event.categories, 0)


@_term.register
def _(event: events.SubsetResponse, adjacency: Adjacency) -> tuple[Profile, Profile | None] | None:
    del adjacency
    found = _response(event.epsilon, 2, 0)
    return None if found is None else (found[0], None)


@_term.register
def _(event: events.Shuffled, adjacency: Adjacency) -> tuple[Profile, Profile | None] | None:
    replaced_only(event, adjacency)
    found = amplification(event)
    return None if found is None else (ShuffledProfile(found), None)


@_term.register
def _(event: events.Exponential, adjacency: Adjacency) -> tuple[Profile, Profile | None] | None:
    del adjacency
    if not event.epsilon:
        return None
    return BoundedRange(_up(Fraction(event.epsilon))), BoundedRange(below(Fraction(event.epsilon))).balanced()


@_term.register
def _(event: events.Sampled, adjacency: Adjacency) -> tuple[Profile, Profile | None] | None:
    replaced_only(event, adjacency)
    return _sampled(event, lower(event.event, adjacency), Fraction(event.rate), adjacency)


@_term.register
def _(event: events.SampledBatch, adjacency: Adjacency) -> tuple[Profile, Profile | None] | None:
    # A batch of fixed size sees one unit replaced by another. Where the unit is added to the data, the sample is
    # the old one with probability 1 - size/(population + 1) and one replacement away otherwise, so the two
    # directions are those of Poisson sampling; where it is replaced in the data, the worse of both applies.
    inner = lower(event.event, Adjacency.REPLACE)
    return _sampled(event, inner, Fraction(event.size, event.population), adjacency)


@_term.register
def _(event: events.SampledGaussian, adjacency: Adjacency) -> tuple[Profile, Profile | None] | None:
    rate, mu = max(Fraction(event.rate), _RAREST), 1 / Fraction(event.ratio)
    if adjacency is Adjacency.ADD_REMOVE:
        return _term(events.Sampled(events.Gaussian(event.ratio), event.rate), adjacency)
    if _up(rate) == 1:  # a rate that rounds up to one counts as one, never as the float below it
        return GaussianProfile(_up(2 * mu)), GaussianProfile(below(2 * mu)) if rate == 1 else None
    real = ReplacedGaussian(below(mu), below(rate)) if rate == event.rate and below(mu) else None
    return ReplacedGaussian(_up(mu), _up(rate)), real


@_term.register
def _(event: events.AllocatedGaussian, adjacency: Adjacency) -> tuple[Profile, Profile | None]:
    mu, rate, replaced = _up(1 / Fraction(event.ratio)), _up(Fraction(event.rate)), adjacency is Adjacency.REPLACE
    # Whatever the step, the laws are those of one Gaussian release, and mixtures are not further apart.
    return allocated(mu, rate, event.steps, replaced=replaced) or GaussianProfile(mu * (1 + replaced)), None


@_term.register
def _(event: events.ShuffledGaussian, adjacency: Adjacency) -> tuple[Profile, Profile | None]:
    inner, replaced = event.allocated, adjacency is Adjacency.REPLACE
    mu, rate = _up(1 / Fraction(inner.ratio)), _up(Fraction(inner.rate))
    # For a given place one vector is replaced by another, at most mu away, which is less where there is little noise.
    hidden = not replaced or 4 * inner.steps * rate**2 * math.expm1(min(mu, 20.0) ** 2) < mu**2
    return (allocated(mu, rate, inner.steps, replaced=replaced) if hidden else None) or GaussianProfile(mu), None


def _sampled(
    event: events.Event, terms: list[Term], rate: Fraction, adjacency: Adjacency
) -> tuple[Profile, Profile | None] | None:
    if not terms:
        return None
    if len(terms) > 1 or terms[0].times > 1:
        raise UnsupportedEventError(
            event,
            accountant="pld",
            why="several releases that are not all Gaussian share one sample",
            fix="sample for each release, use Gaussian noise throughout, or account for the releases without sampling.",
        )
    profile, _, witness, _ = terms[0]
    if rate == 1:
        return profile, witness
    wrap = SampledProfile if adjacency is Adjacency.ADD_REMOVE else Batched
    if rate < _RAREST:  # more sampling only loses more
        rate, witness = _RAREST, None
    real = None if witness is None else SampledProfile(witness, below(rate))
    return wrap(profile, _up(rate)), real


def _response(epsilon: Number, categories: int, delta: Number) -> tuple[Profile, Profile | None] | None:
    """Randomised response, optionally failing openly with probability delta: the worst mechanism of its kind."""
    if not epsilon and not delta:
        return None
    e, lost = _up(Fraction(epsilon)), _up(Fraction(delta))
    other = math.exp(-e) / (1 + (categories - 1) * math.exp(-e))
    truth = 1 / (1 + (categories - 1) * math.exp(-e))
    masses = [(1 - lost) * m for m in ([other, truth] if categories == 2 else [other, (categories - 2) * other, truth])]
    losses = [-e, e] if categories == 2 else [-e, 0.0, e]
    if not e:
        losses, masses = [0.0], [1 - lost]
    error = (32 + 2 * min(e, 745.0)) * 2.0**-53
    profile = Atoms(tuple(losses), tuple(masses), tuple(reversed(masses)), lost, error=error)
    exact = Fraction(e) == Fraction(epsilon) and Fraction(lost) == Fraction(delta)
    return profile, profile if exact else None


def _up(value: Fraction) -> float:
    """The least float not below ``value``; refused where it is infinite, since such a loss protects nothing."""
    return _protecting(above(value))


def _protecting(number: float) -> float:
    if math.isinf(number):
        raise InvalidParameterError(
            "A noise parameter is so small that it protects nothing (a loss above 1e308).", fix="add more noise."
        )
    return number

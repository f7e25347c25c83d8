"""One of every kind of profile, each with its law in many digits."""

from collections.abc import Callable
from dataclasses import dataclass

import mpmath as mp
from tests.privacy.accounting.pld import oracles
from tests.privacy.accounting.pld.oracles import Law, Real

from defocus.privacy.accounting.pld.discrete import DiscreteGaussianProfile, DiscreteLaplaceProfile
from defocus.privacy.accounting.pld.lowering import lower
from defocus.privacy.accounting.pld.profiles import Atoms, BoundedRange, GaussianProfile, LaplaceProfile, Profile
from defocus.privacy.accounting.pld.sampling import Batched, ReplacedGaussian, Reversed, SampledProfile
from defocus.privacy.events import Approximate, Event, RandomizedResponse
from defocus.privacy.units import Adjacency


@dataclass(frozen=True)
class Case:
    name: str
    profile: Profile
    excess: Callable[[float], Real]
    law: Law | None
    """The law whose tails the profile reports; None where that is another pair's."""

    def __str__(self) -> str:
        return self.name


def of(name: str, profile: Profile, law: Law) -> Case:
    return Case(name, profile, law.excess, law)


def bounded_range(epsilon: float, l: float) -> Real:
    e, size = mp.mpf(epsilon), abs(mp.mpf(l))
    if size >= e:
        return mp.mpf(0)
    return (mp.exp(e / 2) - mp.exp(size / 2)) ** 2 / (mp.exp(e) - 1) * mp.exp(min(mp.mpf(l), 0))


def worse_of_both(law: Law, l: float) -> Real:
    return law.excess(abs(l)) * mp.exp(min(mp.mpf(l), 0))


def atoms_of(event: Event) -> Profile:
    return lower(event, Adjacency.ADD_REMOVE)[0].profile


def _sampled(inner: Case, rate: float) -> list[Case]:
    if inner.law is None:
        return []
    law = oracles.sampled_law(inner.law, rate)
    profile = SampledProfile(inner.profile, rate)
    return [
        of(f"{inner} sampled at {rate}", profile, law),
        Case(
            f"{inner} sampled at {rate}, reversed",
            Reversed(profile),
            lambda l: mp.exp(mp.mpf(l)) * law.excess(-l),
            oracles.exchanged(law),
        ),
        Case(f"{inner} batched at {rate}", Batched(inner.profile, rate), lambda l: worse_of_both(law, l), None),
    ]


PLAIN = [
    *(of(f"gaussian {mu}", GaussianProfile(mu), oracles.gaussian(mu)) for mu in (1e-6, 0.01, 1.0, 7.5, 40.0)),
    *(of(f"laplace {e}", LaplaceProfile(e), oracles.laplace(e)) for e in (1e-6, 0.1, 1.0, 30.0, 900.0)),
    *(
        of(f"response {e} of {k}", atoms_of(RandomizedResponse(e, k)), oracles.finite(oracles.response(e, k)))
        for e, k in ((1e-6, 2), (1.0, 2), (3.0, 5), (50.0, 2), (800.0, 2))
    ),
    *(
        of(f"approximate {e} {d}", atoms_of(Approximate(e, d)), oracles.finite(oracles.response(e, 2, d)))
        for e, d in ((1.0, 1e-8), (0.0, 0.25), (2.0, 0.5), (0.5, 1e-30))
    ),
    *(
        of(f"discrete laplace {b} {n}", DiscreteLaplaceProfile(b, n), oracles.finite(oracles.discrete_laplace(b, n)))
        for b, n in ((0.3, 1), (1.0, 1), (2.5, 3), (10.0, 40), (0.002, 2))
    ),
    *(
        of(f"discrete gaussian {s} {n}", DiscreteGaussianProfile(s, n), oracles.finite(oracles.discrete_gaussian(s, n)))
        for s, n in ((0.3, 1), (1.0, 1), (2.25, 3), (1.0, 9))
    ),
]
RANGES = [
    Case(f"bounded range {e}", BoundedRange(e), lambda l, e=e: bounded_range(e, l), None)  # type: ignore[misc]  # mypy cannot infer a lambda with a default
    for e in (1e-6, 0.1, 1.0, 30.0)
]
SAMPLED = [
    case
    for inner in PLAIN
    if inner.name
    in {"gaussian 0.01", "gaussian 1.0", "gaussian 7.5", "laplace 1.0", "laplace 30.0", "response 1.0 of 2"}
    | {"response 3.0 of 5", "discrete laplace 2.5 3", "discrete gaussian 2.25 3", "approximate 1.0 1e-08"}
    for rate in (0.5, 1e-3)
    for case in _sampled(inner, rate)
]
REPLACED = [
    of(f"gaussian {mu} sampled at {q}, replaced", ReplacedGaussian(mu, q), oracles.replaced_gaussian(mu, q))
    for mu in (1e-3, 1.0, 7.5)
    for q in (1e-9, 0.01, 0.5, 1 - 2.0**-53)
]
CASES = PLAIN + RANGES + SAMPLED + REPLACED

__all__ = ["CASES", "PLAIN", "RANGES", "SAMPLED", "Atoms", "Case", "bounded_range"]

"""The privacy loss of a composition: its lattice, its two directions, and the loss that answers questions.

How fine a grid a question needs: from a requested tolerance to a lattice and its dots.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import DefocusError, Number, positive
from defocus.privacy import events
from defocus.privacy.accounting.pld.bounds import enumerated, formula_epsilon, lower_epsilon, upper_epsilon, view_of
from defocus.privacy.accounting.pld.formulas import Formula, formula_of
from defocus.privacy.accounting.pld.lowering import Term, lower
from defocus.privacy.accounting.pld.profiles import Profile
from defocus.privacy.accounting.pld.sampling import Reversed
from defocus.privacy.accounting.pld.spectrum import Dots, Part, Saddle, connect, lattice, saddle_at, saddle_for, window
from defocus.privacy.losses import Interval, Loss, checked_delta, checked_epsilon
from defocus.privacy.numbers import above, bisect
from defocus.privacy.units import Adjacency

__all__ = [
    "Plan",
    "PldLoss",
    "account",
    "both_ways",
    "coarse_for",
    "delta_above",
    "epsilon_above",
    "epsilon_below",
    "epsilon_near",
    "plan_at",
    "plan_for",
]


_TAIL = 18.0
"""Mass beyond the grid is e^-18 of delta, shared by all steps."""
_LARGEST_WINDOW = 2**19
_EXACT = 2.0**32
"""Multiples of a number of 20 significant bits are exact floats up to here."""
_FINEST = 5e-4
_COARSE = 0.1
_MOST_DOUBLINGS = 14
_UNSEEN = 30.0
"""Formulas are cut off where they are e^-30 of their size."""
_NORMAL = -690.0
"""Log of the least delta that is resolved; smaller ones are rounded up to it, since one of zero would say more."""


class Plan(NamedTuple):
    """A lattice, the grid points of each term on it, the dominating dots, the tilt, and terms that need no lattice."""

    step: float
    indices: tuple[NDArray[np.int64], ...]
    dots: tuple[Dots, ...]
    found: Saddle
    accuracy: float
    formulas: tuple[Formula, ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        """All that is composed."""
        return (*self.formulas, *self.dots)


def coarse_for(terms: Sequence[Term], log_delta: float, *, formulas: bool = True) -> list[Part]:
    """The formula of each term, or dots on a coarse grid of its own, good enough to find the tilt."""
    tail = log_delta - _TAIL - math.log(sum(term.times for term in terms))
    return [
        (formula_of(term.profile, term.times) if formulas else None)
        or connect(term.profile, _coarse(term.profile, tail), term.times)
        for term in terms
    ]


def plan_for(terms: Sequence[Term], delta: float, tolerance: float, *, formulas: bool = False) -> Plan | None:
    """The plan for epsilon at ``delta``, or None where losses too large for the grid already weigh more.

    With ``formulas``, terms that have one need no lattice.
    """
    log_delta = math.log(delta)
    coarse = coarse_for(terms, log_delta, formulas=formulas)
    if sum(part.times * part.lost for part in coarse) >= delta:
        return None
    return _refine(terms, coarse, saddle_for(coarse, delta, 2.0, 0.05), log_delta, tolerance)


def plan_at(terms: Sequence[Term], epsilon: float, tolerance: float) -> Plan:
    """The plan for delta at ``epsilon``."""
    reached = -30.0
    # The grid must reach the tail that is asked for, whose size is only known once it does.
    while True:
        coarse = coarse_for(terms, reached)
        found = saddle_at(coarse, epsilon)
        log_delta = min(max(found.log_delta, _NORMAL), -0.5)
        if log_delta >= reached - 5:
            return _refine(terms, coarse, found._replace(log_delta=log_delta), log_delta, tolerance)
        reached = log_delta


def _refine(terms: Sequence[Term], coarse: list[Part], found: Saddle, log_delta: float, tolerance: float) -> Plan:
    """Choose the step by the error law of connect-the-dots, then each term's grid by the error that remains.

    Replacing a loss by two grid points h apart raises its variance by about p·h²/6, and
    epsilon by (1+θ)/2 times that under the tilt θ. Atoms at the ends of a law that are grid
    are not replaced, and laws that are formulas neither.
    """
    error = tolerance * max(found.epsilon, 0.05 * found.spread)
    formulas = [part for part in coarse if not isinstance(part, Dots)]
    gridded = [(term, part) for term, part in zip(terms, coarse, strict=True) if isinstance(part, Dots)]
    fastest = _fastest(formulas, found)
    widest = window(coarse, found, max(found.epsilon, 0.0), log_delta).width
    if not gridded and widest * fastest < math.pi * _LARGEST_WINDOW:
        return Plan(math.pi / fastest, (), (), found, 0.1 * error, tuple(formulas))
    if not gridded or fastest == math.inf:  # the formulas fall too slowly to do without a lattice
        return _refine(terms, coarse_for(terms, log_delta, formulas=False), found, log_delta, tolerance)
    total = sum(term.times for term, _ in gridded)
    kept, end = max(_at_ends(term, part, found.theta) for term, part in gridded)
    moved = max(total - kept, 0.01 * total)
    step = math.sqrt(7.2 * error / ((1 + found.theta) * moved))
    step = max(step, widest / _LARGEST_WINDOW)
    reach = max(found.epsilon + widest, 1e3)
    if kept > 0.1 * total and end > step and reach < step * _EXACT:
        step = _rounded(end / math.ceil(end / step), 20, math.ceil)
    else:
        moved, step = total, _rounded(max(step * math.sqrt(moved / total), widest / _LARGEST_WINDOW), 5, math.floor)
    if fastest * step > math.pi:
        return _refine(terms, coarse_for(terms, log_delta, formulas=False), found, log_delta, tolerance)
    error = max(error, (1 + found.theta) * moved * step * step / 7.2)
    tail = log_delta - _TAIL - math.log(total)
    # The rise falls with the square of the resolution, from that of the coarse grid, which may overstate it.
    rise = max(_error(coarse, found.theta), 1e-300)
    resolution, made = min(max(_COARSE * math.sqrt(0.35 * error / rise), 0.004), 0.03), math.inf
    indices: tuple[NDArray[np.int64], ...] = ()
    dots: tuple[Dots, ...] = ()
    terms = [term for term, _ in gridded]
    while made > error and resolution > _FINEST:
        indices = tuple(lattice(term.profile, step, resolution, tail) for term in terms)
        dots = tuple(
            connect(term.profile, np.asarray(places * step), term.times)
            for term, places in zip(terms, indices, strict=True)
        )
        made = _error(dots, found.theta)
        resolution /= max(1.4, min(6.0, math.sqrt(max(made - 0.6 * error, 0.3 * error) / (0.35 * error))))
    return Plan(step, indices, dots, found, 0.1 * error, tuple(formulas))


def _fastest(formulas: Sequence[Formula], found: Saddle) -> float:
    """The frequency beyond which the formulas together are negligible; none where there are none."""
    if not formulas:
        return 0.0
    for doublings in range(_MOST_DOUBLINGS):
        fastest = 2.0**doublings / found.spread
        if sum(form.times * form.envelope(found.theta, fastest) for form in formulas) < -_UNSEEN:
            return fastest
    return math.inf


def _error(parts: Sequence[Part], theta: float) -> float:
    """Estimated rise of epsilon due to the grid."""
    return (1 + theta) / 12 * sum(part.times * part.rise(theta) for part in parts)


def _at_ends(term: Term, part: Dots, theta: float) -> tuple[float, float]:
    """The mass at the largest loss and its opposite, where that is the least, tilted or not; and the largest loss."""
    end = term.profile.top
    if not 0 < end < _FARTHEST or term.profile.bottom != -end:
        return 0.0, 0.0
    # What only the tilt makes heavy is no atom, but a density near the end.
    weights = np.minimum(part.tilted(theta)[0], np.exp(part.log_p))
    return term.times * float(weights[0] + weights[-1]), end


def _rounded(step: float, bits: int, towards: Callable[[float], int]) -> float:
    """Round to a few significant bits, so that multiples are exact floats."""
    mantissa, exponent = math.frexp(step)
    return math.ldexp(towards(math.ldexp(mantissa, bits)), exponent - bits)


def _coarse(profile: Profile, tail: float) -> NDArray[np.float64]:
    """A coarse grid; one that ends at the largest loss reaches beyond it, where rounding can leave nothing behind."""
    losses = _thinned(profile.grid(_COARSE, tail))
    span = max(float(losses[-1] - losses[0]), abs(float(losses[-1])))
    if profile.top - float(losses[-1]) > 1e-9 * span:
        return losses
    return np.append(losses[losses < profile.top], profile.top + 1e-6 * span)


def _thinned(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Drop points that all but coincide, whose slopes would be noise; the last one always stays."""
    if len(losses) < 2:
        return losses
    cells = np.floor((losses - losses[0]) / ((losses[-1] - losses[0]) * 1e-7))
    return np.asarray(losses[np.append(np.diff(cells) > 0, True)])


_MOST_STEPS = 2**43
_FARTHEST = 1e18
"""No loss on a grid is larger than this, so delta is flat beyond it."""


def both_ways(terms: Sequence[Term]) -> list[Sequence[Term]]:
    """The terms, and the terms with each pair exchanged unless that changes nothing."""
    if all(term.profile.symmetric for term in terms):
        return [terms]
    exchanged = (term._replace(profile=Reversed(term.profile), witness=None) for term in terms)
    return [terms, [term if term.profile.symmetric else other for term, other in zip(terms, exchanged, strict=True)]]


def epsilon_above(terms: Sequence[Term], delta: float, tolerance: float) -> float:
    """A certified upper bound on epsilon at ``delta``."""
    whole = _whole(terms)
    if whole is not None:
        return _crossing(whole, delta, 1.0)
    if _too_many(terms):
        return math.inf
    plan = plan_for(terms, delta, tolerance, formulas=True)
    if plan is None:
        return math.inf
    if plan.found.epsilon < 0.3 * plan.found.spread and delta_above(terms, 0.0, tolerance) <= delta:
        return 0.0
    return upper_epsilon(plan.parts, plan.step, plan.found, delta, plan.accuracy)


def epsilon_below(terms: Sequence[Term], delta: float, tolerance: float) -> float:
    """A certified lower bound on epsilon at ``delta`` for these very pairs."""
    whole = _whole(terms)
    if whole is not None:
        return _crossing(whole, delta, -1.0)
    if _too_many(terms):
        return 0.0
    forms = [formula_of(term.profile, term.times) for term in terms]
    plan = plan_for(terms, delta, tolerance, formulas=all(form is not None and not form.blur for form in forms))
    largest = _at_largest(terms, delta)
    if plan is None:
        return largest
    upper = upper_epsilon(plan.parts, plan.step, plan.found, delta, plan.accuracy)
    if not plan.indices:
        tested = formula_epsilon(plan.parts, plan.step, plan.found, delta, upper)
    else:
        bins = [(term.profile, term.times, places) for term, places in zip(terms, plan.indices, strict=True)]
        tested = lower_epsilon(bins, plan.step, plan.found, delta, upper)
    return max(tested, largest)


def _at_largest(terms: Sequence[Term], delta: float) -> float:
    """A lower bound by the event that all losses are their largest, which is what small deltas leave of atoms."""
    least, log_mass = 0.0, 0.0
    for term in terms:
        place = term.profile.top * (1 - 1e-12)
        tails = term.profile.tails(np.array([place]))
        mass = float(tails.p_above[0] * (1 - tails.error[0])) if place < math.inf else 0.0
        if mass <= 0:
            return 0.0
        least += term.times * place
        log_mass += term.times * math.log(mass)
    share = math.log(delta) - log_mass * (1 + 1e-12)
    return max(0.0, (least + math.log(-math.expm1(share))) * (1 - 1e-12)) if share < -1e-9 else 0.0


def epsilon_near(terms: Sequence[Term], delta: float) -> float:
    """A fast saddle-point estimate of epsilon, for searches; carries no guarantee."""
    if len(terms) == 1 and terms[0].times == 1:
        return _crossing(terms[0].profile, delta, 0.0)
    return max(0.0, saddle_for(coarse_for(terms, math.log(delta)), delta, 2.0, 1e-3).epsilon)


def delta_above(terms: Sequence[Term], epsilon: float, tolerance: float) -> float:
    """A certified upper bound on delta at ``epsilon``."""
    whole = _whole(terms)
    if whole is not None:
        curve = whole.curve(np.array([epsilon]))
        return float(curve.excess[0] + curve.pad[0])
    if _too_many(terms):
        return 1.0
    epsilon = min(epsilon, _FARTHEST)
    plan = plan_at(terms, epsilon, tolerance)
    view = view_of(plan.parts, plan.step, plan.found, epsilon, plan.found.log_delta)
    return math.exp(min(max(view.log_delta(epsilon), _NORMAL), 0.0)) * (1 + 1e-12)


def _too_many(terms: Sequence[Term]) -> bool:
    """Whether the rounding of so many steps, some hundred units each, would drown the answer."""
    return sum(term.times for term in terms) > _MOST_STEPS


def _whole(terms: Sequence[Term]) -> Profile | None:
    """The profile of everything, where nothing needs composing or the atoms can be enumerated."""
    if len(terms) == 1 and terms[0].times == 1:
        return terms[0].profile
    return enumerated([(term.profile, term.times) for term in terms])


def _crossing(profile: Profile, delta: float, side: float) -> float:
    """The epsilon at which the profile, padded to one side, falls to ``delta``: bisection to the last bit."""

    def exceeds(epsilon: float) -> bool:
        curve = profile.curve(np.array([epsilon]))
        value = float(curve.excess[0] + side * curve.pad[0])
        return value > delta if side < 0 else not value <= delta

    if not exceeds(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while high < 1e300 and exceeds(high):
        low, high = high, 16 * high
    if high >= 1e300:
        return low if side < 0 else math.inf
    found = bisect(lambda epsilon: not exceeds(epsilon), low, high, steps=200)
    return found.no if side < 0 else found.yes


_TOLERANCE = 5e-6
"""Default half-width of the certified interval, relative to epsilon."""
_ROUGH = 1e-3
_FEW = 256
"""So many releases can be composed in exact fractions."""


def account(
    event: events.Event, adjacency: Adjacency = Adjacency.ADD_REMOVE, *, tolerance: float = _TOLERANCE
) -> "PldLoss":
    """Account for ``event`` by its privacy-loss distribution.

    >>> loss = account(1000 * events.Sampled(events.Gaussian(1), 0.01))
    >>> round(loss.epsilon(1e-5), 3)
    1.828
    """
    return PldLoss(tuple(lower(event, Adjacency(adjacency))), float(positive("tolerance", tolerance)))


@final
@dataclass(frozen=True, slots=True)
class PldLoss(Loss):
    r"""Certified bounds by tilted connect-the-dots, and by formulas where there are any.

    Guarantee:
        ``epsilon`` and ``delta`` are never below the truth, rounding included, and
        ``interval`` contains it. Both directions of the adjacency are evaluated.

    Error:
        Each side of the interval is about ``tolerance`` times epsilon from the truth; a
        requested delta may be as small as 1e-100.

    Reference:
        Doroshenko et al. (2022) for the discretisation; Zhu, Dong, Wang (2022) for sampling.
    """

    terms: tuple[Term, ...]
    tolerance: float = _TOLERANCE
    accountant: ClassVar[str] = "pld"

    def epsilon(self, delta: Number = 0) -> float:
        """The certified upper bound on epsilon at ``delta``."""
        d = checked_delta(delta)
        pure = self._pure()
        if d == 0 or not self.terms:
            return pure
        first, *others = both_ways(self.terms)
        answer = epsilon_above(first, d, self.tolerance)
        for direction in others:
            # Usually one direction is clearly worse, and a rough bound on the other shows it.
            if answer < math.inf and not delta_above(direction, answer, max(self.tolerance, _ROUGH)) <= d:
                answer = max(answer, epsilon_above(direction, d, self.tolerance))
        return min(pure, answer) if answer < math.inf else min(pure, self._unless_failing(d))

    def delta(self, epsilon: Number) -> float:
        """The certified upper bound on delta at ``epsilon``."""
        return max(self.directions(epsilon))

    def directions(self, epsilon: Number) -> tuple[float, float]:
        """The certified upper bounds on delta at ``epsilon``, one for each direction of a change."""
        e = checked_epsilon(epsilon)
        if not self.terms or e >= self._pure():
            return 0.0, 0.0
        found = [min(1.0, delta_above(direction, e, self.tolerance)) for direction in both_ways(self.terms)]
        return found[0], found[-1]

    def interval(self, delta: Number) -> Interval:
        """Certified bounds on the true epsilon at ``delta``."""
        d = checked_delta(delta)
        upper = self.epsilon(d)
        if any(term.witness is None for term in self.terms):
            raise DefocusError(
                "There is no certified lower bound for this event: no single mechanism is known to attain it.",
                fix="use epsilon(delta), which is certified from above.",
            )
        if d == 0 or upper in {0.0, math.inf}:
            # The largest loss was rounded up, by a few hundred units at most.
            return Interval(upper * (1 - 1e-12) if d == 0 and upper < math.inf else 0.0, upper)
        best = 0.0
        for direction in both_ways([term._replace(profile=term.witness or term.profile) for term in self.terms]):
            if best == 0 or delta_above(direction, best, max(self.tolerance, _ROUGH)) > d:
                best = max(best, epsilon_below(direction, d, self.tolerance))
        return Interval(min(upper, best), upper)

    def estimate(self, delta: float) -> float:
        """A fast saddle-point estimate of epsilon, for searches; carries no guarantee."""
        return epsilon_near(self.terms, delta) if self.terms else 0.0

    @property
    def exact(self) -> bool:
        """Whether nothing has to be put on a grid, so that the tolerance hides nothing."""
        return not self.terms or _whole(self.terms) is not None

    def _unless_failing(self, delta: float) -> float:
        """The sum of the largest finite losses, if the rest has no more than ``delta``, exactly: 1 − ∏(1 − δ)."""
        bounded = all(term.profile.symmetric and term.profile.top < math.inf for term in self.terms)
        if not bounded or sum(term.times for term in self.terms) > _FEW:
            return math.inf
        kept = math.prod((1 - Fraction(term.profile.at_infinity)) ** term.times for term in self.terms)
        if 1 - kept > Fraction(delta):
            return math.inf
        return above(sum((term.times * Fraction(term.profile.top) for term in self.terms), Fraction(0)))

    def _pure(self) -> float:
        """The sum of the largest losses: exact where the parameters are."""
        bounds = [term.times * term.pure for term in self.terms if term.pure is not None]
        return above(sum(bounds, Fraction(0))) if len(bounds) == len(self.terms) else math.inf

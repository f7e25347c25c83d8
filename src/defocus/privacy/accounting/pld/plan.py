"""How fine a grid a question needs: from a requested tolerance to a lattice and its dots."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from defocus.privacy.accounting.pld.dots import Dots, connect, lattice
from defocus.privacy.accounting.pld.lowering import Term
from defocus.privacy.accounting.pld.profiles import Profile
from defocus.privacy.accounting.pld.saddle import Saddle, saddle_at, saddle_for, window

__all__ = ["Plan", "coarse_for", "plan_at", "plan_for"]

_TAIL = 18.0
"""Mass beyond the grid is e^-18 of delta, shared by all steps."""
_LARGEST_WINDOW = 2**19
_FINEST = 5e-4
_NORMAL = -690.0
"""Log of the least delta that is resolved; smaller ones are rounded up to it."""


class Plan(NamedTuple):
    """A lattice, the grid points of each term on it, the dominating dots, and the tilt."""

    step: float
    indices: tuple[NDArray[np.int64], ...]
    dots: tuple[Dots, ...]
    found: Saddle
    accuracy: float


def coarse_for(terms: Sequence[Term], log_delta: float) -> list[Dots]:
    """Dots on a coarse grid of each term's own, good enough to find the tilt."""
    tail = log_delta - _TAIL - math.log(sum(term.times for term in terms))
    return [connect(term.profile, _coarse(term.profile, tail), term.times) for term in terms]


def plan_for(terms: Sequence[Term], delta: float, tolerance: float) -> Plan | None:
    """The plan for epsilon at ``delta``, or None where losses too large for the grid already weigh more."""
    log_delta = math.log(delta)
    coarse = coarse_for(terms, log_delta)
    if sum(part.times * part.lost for part in coarse) >= delta:
        return None
    return _refine(terms, coarse, saddle_for(coarse, delta, 2.0, 0.05), log_delta, tolerance)


def plan_at(terms: Sequence[Term], epsilon: float, tolerance: float) -> Plan:
    """The plan for delta at ``epsilon``."""
    previous, log_delta = 0.0, -30.0
    coarse = coarse_for(terms, log_delta)
    found = saddle_at(coarse, epsilon)
    # The grid must reach the tail that is asked for, whose size is only known once it does.
    while log_delta < previous - 5:
        coarse = coarse_for(terms, log_delta)
        found = saddle_at(coarse, epsilon)
        previous, log_delta = log_delta, min(max(found.log_delta, _NORMAL), -0.5)
    found = found._replace(log_delta=log_delta)
    return _refine(terms, coarse, found, log_delta, tolerance)


def _refine(terms: Sequence[Term], coarse: list[Dots], found: Saddle, log_delta: float, tolerance: float) -> Plan:
    """Choose the step by the error law of connect-the-dots, then each term's grid by the error that remains.

    Replacing a loss by two grid points h apart raises its variance by about p·h²/6, and
    epsilon by (1+θ)/2 times that under the tilt θ.
    """
    total = sum(term.times for term in terms)
    error = tolerance * max(found.epsilon, 0.05 * found.spread)
    step = math.sqrt(7.2 * error / ((1 + found.theta) * total))
    widest = window(coarse, found, max(found.epsilon, 0.0), log_delta).width
    step = _short(max(step, widest / _LARGEST_WINDOW))
    error = max(error, (1 + found.theta) * total * step * step / 7.2)
    tail = log_delta - _TAIL - math.log(total)
    resolution, made = 0.03, math.inf
    indices: tuple[NDArray[np.int64], ...] = ()
    dots: tuple[Dots, ...] = ()
    while made > error and resolution > _FINEST:
        indices = tuple(lattice(term.profile, step, resolution, tail) for term in terms)
        dots = tuple(
            connect(term.profile, np.asarray(places * step), term.times)
            for term, places in zip(terms, indices, strict=True)
        )
        made = _error(dots, found.theta)
        resolution /= max(1.4, min(6.0, math.sqrt(max(made - 0.6 * error, 0.3 * error) / (0.35 * error))))
    return Plan(step, indices, dots, found, 0.1 * error)


def _error(dots: Sequence[Dots], theta: float) -> float:
    """Estimated rise of epsilon due to the grid."""
    return (1 + theta) / 12 * sum(part.times * float(part.tilted(theta)[0] @ (part.gaps * part.gaps)) for part in dots)


def _short(step: float) -> float:
    """Round down to five significant bits, so that multiples are exact floats."""
    mantissa, exponent = math.frexp(step)
    return math.ldexp(math.floor(mantissa * 32) / 32, exponent)


def _coarse(profile: Profile, tail: float) -> NDArray[np.float64]:
    """A coarse grid; one that ends at the largest loss reaches beyond it, where rounding can leave nothing behind."""
    losses = _thinned(profile.grid(0.1, tail))
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

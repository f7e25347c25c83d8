r"""Where a tail lives: the exponential tilt under which the loss of interest is typical.

Nothing here needs to be exact. A poor tilt or window costs tightness or time; the bounds
computed with it hold all the same.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from scipy.special import erfcx

from defocus.privacy.accounting.pld.dots import Dots

__all__ = ["Saddle", "Window", "cumulant", "moments", "saddle_at", "saddle_for", "window"]

_SQRT2 = math.sqrt(2.0)
_ALIAS = math.log(1e7)
"""Wrapped mass is kept below this fraction of delta (log of its inverse)."""
_LEAST_TILT = 0.7
"""Least tilt, in units of the spread."""
_DEEPEST = 6.0
"""How much smaller than at the saddle the tail may look under the tilt (log)."""


class Saddle(NamedTuple):
    """A tilt, the loss it makes typical, the spread there, and the estimated log of delta."""

    theta: float
    epsilon: float
    spread: float
    log_delta: float


class Window(NamedTuple):
    """A tilt and width for the transform, and cumulants for Chernoff bounds on what lies beyond."""

    theta: float
    width: float
    cumulants: tuple[tuple[float, float], ...]


def cumulant(parts: Sequence[Dots], theta: float) -> float:
    """Log of the tilted total mass of the composition."""
    return sum(part.times * part.tilted(theta)[1] for part in parts)


def moments(parts: Sequence[Dots], theta: float) -> tuple[float, float, float]:
    """Cumulant, mean and variance of the composition tilted by theta."""
    total = mean = variance = 0.0
    for part in parts:
        weights, value = part.tilted(theta)
        centre = float(weights @ part.losses)
        away = part.losses - centre
        total += part.times * value
        mean += part.times * centre
        variance += part.times * float(weights @ (away * away))
    return total, mean, variance


def _saddle(parts: Sequence[Dots], theta: float) -> Saddle:
    total, mean, variance = moments(parts, theta)
    spread = math.sqrt(max(variance, 1e-300))
    share = 0.5 * (float(erfcx(theta * spread / _SQRT2)) - float(erfcx((1 + theta) * spread / _SQRT2)))
    return Saddle(theta, mean, spread, total - theta * mean + math.log(max(share, 1e-300)))


def saddle_for(parts: Sequence[Dots], delta: float, guess: float = 2.0, tolerance: float = 0.02) -> Saddle:
    """The tilt at which the estimated tail is ``delta``."""
    target = math.log(delta)
    return _search(parts, lambda found: found.log_delta - target, guess, tolerance)


def saddle_at(parts: Sequence[Dots], epsilon: float, guess: float = 2.0) -> Saddle:
    """The tilt at which ``epsilon`` is typical, with delta estimated there."""
    found = _search(parts, lambda found: (epsilon - found.epsilon) / found.spread, guess, 0.05)
    return found._replace(log_delta=found.log_delta - found.theta * (epsilon - found.epsilon))


def _search(parts: Sequence[Dots], excess: Callable[[Saddle], float], guess: float, tolerance: float) -> Saddle:
    """Find a zero of a function that falls as log theta grows: bracket it, then interpolate."""
    below: tuple[float, float] | None = None
    above: tuple[float, float] | None = None
    position = math.log(guess)
    found = _saddle(parts, guess)
    for _ in range(80):
        found = _saddle(parts, math.exp(position))
        value = excess(found)
        if abs(value) < tolerance:
            break
        if value > 0:
            below = (position, value)
        else:
            above = (position, value)
        # Nothing is gained by tilting beyond the last atom, or by hardly tilting at all.
        if value > 0 and found.spread < 1e-9 * max(abs(found.epsilon), 1e-290):
            break
        if value < 0 and found.theta * found.spread < _LEAST_TILT:
            break
        if below and above:
            span = above[0] - below[0]
            if span < 1e-3:
                break
            secant = (below[0] * above[1] - above[0] * below[1]) / (above[1] - below[1])
            position = min(max(secant, below[0] + 0.1 * span), above[0] - 0.1 * span)
        else:
            position += 0.7 if value > 0 else -0.7
            if abs(position) > 40:
                break
    # A tail that is not rare needs no tilt to be seen, but the window does, to be narrow.
    # A law that is all but one atom has no spread of its own to go by.
    spread = max(found.spread, 1e-9 * abs(found.epsilon))
    return found._replace(theta=max(found.theta, _LEAST_TILT / spread))


def window(parts: Sequence[Dots], found: Saddle, epsilon: float, log_delta: float) -> Window:
    """The tilt near the saddle whose window is narrowest while wrapped mass and rounding stay negligible.

    A tilt that is too weak leaves the tail a small part of the tilted law, and rounding,
    which is relative to the whole, shows in it: by convexity of the cumulant the part is
    about exp(-(θ-θ')²spread²/2) of what it is at the saddle.
    """
    theta, need = found.theta, _ALIAS - log_delta
    table: list[tuple[float, float]] = []
    for factor in (1.0, 1.12, 1.25, 1.45, 1.7, 2.0, 2.5, 3.2):
        steeper = theta * factor
        value = cumulant(parts, steeper)
        table.append((steeper, value))
        if factor > 1.2 and value - steeper * epsilon > 3 * need:
            break
    best: tuple[float, float] | None = None
    for factor in (1.1, 1.0, 0.92, 0.85, 0.77, 0.7, 0.62, 0.55, 0.48, 0.4, 0.3):
        tilt = theta * factor
        if best is not None and ((theta - tilt) * found.spread) ** 2 > 2 * _DEEPEST:
            break
        above = min(
            (
                (value - steeper * epsilon + need) / (steeper - tilt)
                for steeper, value in table
                if steeper > tilt * 1.02
            ),
            default=math.inf,
        )
        width = max(need / tilt, above)
        if best is None or width < best[1]:
            best = (tilt, width)
    chosen = best or (theta, need / theta)
    return Window(chosen[0], chosen[1], tuple(table))

"""The least noise that meets a budget, for any family of events that only gets safer."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from defocus.errors import CannotCalibrateError, InvalidParameterError, positive
from defocus.privacy.accounting import account
from defocus.privacy.accounting.pld import PldLoss
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.privacy.losses import Loss
from defocus.privacy.units import Adjacency

__all__ = ["calibrate"]

_LOW, _HIGH = 1e-6, 1e12
_PRECISION = 1e-6
_TOLERANCE = 2e-5
"""How tightly the search itself accounts; the answer is confirmed at the default."""
_SLACK = 1e-3
"""How much an accountant's own tolerance may disturb monotonicity."""


def calibrate(
    make_event: Callable[[float], Event],
    budget: Budget,
    *,
    by: str | None = None,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    low: float = _LOW,
    high: float = _HIGH,
    precision: float = _PRECISION,
) -> float:
    """The least x in [low, high] whose event the budget covers, to a relative ``precision``.

    ``make_event`` must describe a family that loses less privacy as x grows; what is seen
    of it is checked, and a family that goes the other way is refused. The accountant is
    the one that speaks the budget's language unless named: pld for epsilon and delta, zcdp for
    rho, gdp for mu.

    Guarantee:
        ``budget.covers(account(make_event(x)))`` was evaluated and true for the x returned.

    >>> from defocus.privacy.events import Gaussian, Laplace
    >>> round(calibrate(Gaussian, Budget(1, 1e-5)), 3)
    3.731
    >>> calibrate(Laplace, Budget(0.5))
    2.0
    """
    search = _Search(_checked(make_event), budget, _accountant(budget, by), adjacency)
    least, most = float(positive("low", low)), float(positive("high", high))
    if not least < most:
        raise InvalidParameterError(f"low must be below high, but they are {low} and {high}.", fix="pass low < high.")
    return search.run(least, most, float(positive("precision", precision)))


def _accountant(budget: Budget, by: str | None) -> str:
    if by is not None:
        return by
    return "pld" if budget.epsilon is not None else ("zcdp" if budget.rho is not None else "gdp")


def _checked(make_event: Callable[[float], Event]) -> Callable[[float], Event]:
    def make(x: float) -> Event:
        made: Any = make_event(x)
        if not isinstance(made, Event):
            raise InvalidParameterError(
                f"make_event({x:g}) returned {type(made).__name__}, which is not an event.",
                fix="return an event, for example lambda x: 1000 * Sampled(Gaussian(x), 0.01).",
            )
        return made

    return make


class _Search:
    """A bracketing search in t = log x for the zero of log(spent / allowed), which must fall as t grows."""

    def __init__(self, make: Callable[[float], Event], budget: Budget, by: str, adjacency: Adjacency) -> None:
        self._make, self._budget, self._by, self._adjacency = make, budget, by, adjacency
        self._seen: dict[float, float] = {}

    def run(self, low: float, high: float, precision: float) -> float:
        """Bracket the answer around a fast estimate, close the bracket, and check the family beyond it."""
        bottom, top = math.log(low), math.log(high)
        t, slope = self._start(bottom, top)
        below, above = -math.inf, math.inf
        stride = precision
        while above - below > precision:
            value = self._excess(t)
            below, above = (below, min(above, t)) if value <= 0 else (max(below, t), above)
            if math.isfinite(below) and math.isfinite(above):
                t = self._between(below, above, precision)
                continue
            if t >= top and math.isinf(above):
                raise self._unreachable(high)
            if t <= bottom and math.isinf(below):
                break
            # Step by Newton's rule, a little too far so that the other side is met, further each time.
            move = -value / slope if math.isfinite(value) else math.copysign(2.0, value)
            t = min(max(t + min(max(move, -4.0), 4.0) + math.copysign(stride, value), bottom), top)
            stride *= 8
        self._excess(min(above + 1.0, top))
        return self._final(math.exp(above), precision)

    def _start(self, bottom: float, top: float) -> tuple[float, float]:
        """Where to begin and the slope there, from the saddle-point estimate: cheap and nearly right."""
        epsilon, delta = self._budget.epsilon, self._budget.delta
        t = min(max(0.0, bottom), top)
        if self._by != "pld" or epsilon is None or not delta:
            return t, -1.0
        below, above, slope = bottom, top, -1.0
        last: tuple[float, float] | None = None
        for _ in range(60):
            loss = self._loss(t)
            guess = loss.estimate(float(delta)) if isinstance(loss, PldLoss) and loss.terms else 0.0
            value = math.log(guess / float(epsilon)) if guess > 0 else -1.0
            if last is not None and last[0] != t and last[1] != value:
                slope = min(max((value - last[1]) / (t - last[0]), -4.0), -0.25)
            last = (t, value)
            below, above = (t, above) if value > 0 else (below, t)
            if abs(value) < 1e-4 or above - below < 1e-6:
                break
            step = t - min(max(value / slope, -2.0), 2.0)
            t = step if below < step < above else (below + above) / 2
        return t, slope

    def _between(self, below: float, above: float, precision: float) -> float:
        """A point inside the bracket: secant, aimed so that the far end closes too, else the middle."""
        high, low = self._seen[below], self._seen[above]
        width = above - below
        if not (math.isfinite(high) and math.isfinite(low)) or len(self._seen) % 6 == 5:
            return below + width / 2
        secant = below + width * high / (high - low)
        aimed = secant + 0.4 * precision if secant - below < above - secant else secant - 0.4 * precision
        return min(max(aimed, below + 0.1 * precision), above - 0.1 * precision)

    def _loss(self, t: float) -> Loss:
        return account(self._make(math.exp(t)), by=self._by, adjacency=self._adjacency)

    def _excess(self, t: float) -> float:
        """log(spent / allowed) at e^t, certified; remembered, and checked against all that was seen before."""
        budget, loss = self._budget, self._loss(t)
        if isinstance(loss, PldLoss):
            loss = replace(loss, tolerance=max(loss.tolerance, _TOLERANCE))
        if budget.epsilon is not None:
            spent, allowed = loss.epsilon(budget.delta), budget.epsilon
        elif budget.rho is not None:
            spent, allowed = loss.rho(), budget.rho
        else:
            spent, allowed = loss.mu(), budget.mu or 0
        value = -math.inf if spent <= 0 else math.log(spent) - math.log(allowed)
        value = min(value, 0.0) if spent <= allowed else max(value, 5e-324)
        for other, was in self._seen.items():
            if (other < t and was < value - _SLACK) or (other > t and was > value + _SLACK):
                raise _not_monotone(math.exp(min(other, t)), math.exp(max(other, t)))
        self._seen[t] = value
        return value

    def _final(self, answer: float, precision: float) -> float:
        """The answer with as few digits as the precision allows, confirmed at the accountant's own tolerance."""
        candidates = [float(f"{answer:.{digits}g}") for digits in range(1, 8)]
        near = [short for short in candidates if abs(short - answer) <= 2 * precision * answer]
        for x in (*near[:1], *(answer * (1 + k * precision) for k in range(1000))):
            if self._budget.covers(account(self._make(x), by=self._by, adjacency=self._adjacency)):
                return x
        raise self._unreachable(answer)

    def _unreachable(self, high: float) -> CannotCalibrateError:
        return CannotCalibrateError(
            f"No value up to {high:g} meets {self._budget!r} by the {self._by} accountant.",
            fix="raise the budget, release less, or pass a larger high=; the family must get safer as its "
            "parameter grows.",
        )


def _not_monotone(smaller: float, larger: float) -> CannotCalibrateError:
    return CannotCalibrateError(
        f"The family loses more privacy at {larger:.6g} than at {smaller:.6g}.",
        fix="parametrise it so that it gets safer as its parameter grows, for example by the noise ratio.",
    )

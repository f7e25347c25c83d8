"""The least noise that meets a budget, for any family of events that only gets safer.

Which delta to choose.

A mechanism that publishes one random record in full is (0, 1/n)-DP: delta must lie well below one over the number of
people. The default is :math:`n^{-1.1}`; for a million people it needs 4.8 % more Gaussian noise than 1/n would.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from defocus.errors import (
    BudgetOutOfReachError,
    CannotCalibrateError,
    DefocusError,
    InvalidParameterError,
    Number,
    UnsupportedEventError,
    count,
    finite,
    in_range,
    probability,
)
from defocus.privacy.accounting import account, accountant
from defocus.privacy.accounting.pld import PldLoss
from defocus.privacy.budgets import Budget, target
from defocus.privacy.events import Event
from defocus.privacy.numbers import above
from defocus.privacy.numbers import below as rounded_down
from defocus.privacy.units import Adjacency

__all__ = ["calibrate", "check_budget", "check_delta", "delta_for", "spoken_delta"]


_LOW, _HIGH = 1e-6, 1e12
_PRECISION = 1e-6
_TOLERANCE = 2e-5
"""How tightly the search itself accounts; the answer is confirmed at the default."""
_SLACK = 1e-3
"""How much an accountant's own tolerance may disturb monotonicity."""
_CLOSE = 1.5e-5
"""How far below the price a composition may stay: about what a bound to a relative 2e-5 would hide."""
_NEWTON = 0.1
"""How far from the price, in logs, an event may be for Newton's rule to find the answer at once."""
_NEARBY = 1e-4
"""How far apart, in log x, two fast estimates are that show whether the family falls there."""


def calibrate(
    make_event: Callable[[float], Event],
    budget: Budget | None = None,
    /,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    mu: Number | None = None,
    method: str | None = None,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    low: float = _LOW,
    high: float = _HIGH,
    precision: float = _PRECISION,
) -> float:
    """The least x in [low, high] whose event stays within the price, to a relative ``precision``.

    The price is ``epsilon`` with or without ``delta``, or ``rho``, or ``mu``; or a whole budget in their place.
    ``make_event`` must describe a family that loses less privacy as x grows; what is seen
    of it is checked, and a family that goes the other way is refused. ``method`` names the accountant; the
    default is pld for epsilon and delta, zcdp for rho and gdp for mu. Where it cannot express the event of some x,
    such an x is passed over; if that decides the answer, it is refused with the accountant's reason.

    Guarantee:
        ``Budget(…).covers(account(make_event(x)))`` was evaluated and true for the x returned.

    Error:
        x is too large by at most ``precision`` and what the accountant's tolerance hides:
        with pld, the search bounds epsilon to a relative 2e-5 before the answer is confirmed.

    >>> from defocus.privacy.events import Gaussian, Laplace
    >>> round(calibrate(Gaussian, epsilon=1, delta=1e-5), 3)
    3.731
    >>> calibrate(Laplace, epsilon=0.5)
    2.0
    """
    price = target(budget, epsilon=epsilon, delta=delta, rho=rho, mu=mu)
    search = _Search(_checked(make_event), price, _accountant(price, method), adjacency)
    least, most = (float(in_range(name, x, 1e-300, 1e300)) for name, x in (("low", low), ("high", high)))
    if not least < most:
        raise InvalidParameterError(f"low must be below high, but they are {low} and {high}.", fix="pass low < high.")
    return search.run(least, most, float(in_range("precision", precision, 1e-12, 0.5)))


def _accountant(budget: Budget, method: str | None) -> str:
    if method is not None:
        return accountant(method)
    return "pld" if budget.epsilon is not None else ("zcdp" if budget.rho is not None else "gdp")


def _checked(make_event: Any) -> Callable[[float], Event]:
    if not callable(make_event):
        raise InvalidParameterError(
            f"calibrate() needs a function from a number to an event, but got {type(make_event).__name__}.",
            fix="pass for example Gaussian, or lambda x: 1000 * Sampled(Gaussian(x), 0.01).",
        )

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

    def __init__(self, make: Callable[[float], Event], budget: Budget, method: str, adjacency: Adjacency) -> None:
        self._make, self._budget, self._method, self._adjacency = make, budget, method, adjacency
        self._seen: dict[float, float] = {}
        self._inexpressible: dict[float, UnsupportedEventError] = {}

    def run(self, low: float, high: float, precision: float) -> float:
        """Bracket the answer around a fast estimate, close the bracket, and check the family beyond it."""
        bottom, top = math.log(low), math.log(high)
        t, slope = self._start(bottom, top)
        quick = self._quick(t, slope, low, high, precision)
        if quick is not None:
            return quick
        below, above = -math.inf, math.inf
        stride = precision
        while above - below > precision:
            value = self._excess(t)
            below, above = (below, min(above, t)) if value <= 0 else (max(below, t), above)
            if math.isfinite(below) and math.isfinite(above):
                t = self._between(below, above, precision)
                continue
            if t >= top and math.isinf(above):
                raise self._unreachable(bottom, high)
            if t <= bottom and math.isinf(below):
                break
            # Step by Newton's rule, a little too far so that the other side is met, further each time.
            onward = 1.0 if value > 0 else -1.0
            move = -value / slope if math.isfinite(value) else 2.0 * onward
            t = min(max(t + min(max(move, -4.0), 4.0) + stride * onward, bottom), top)
            stride *= 8
        if below in self._inexpressible:
            raise self._inexpressible[below]
        self._excess(min(above + 1.0, top), _SLACK)
        return self._final(min(max(math.exp(above), low), high), low, high, precision)

    def _start(self, bottom: float, top: float) -> tuple[float, float]:
        """Where to begin and the slope there, from the saddle-point estimate: cheap and nearly right."""
        epsilon, delta = rounded_down(self._budget.epsilon or 0), rounded_down(self._budget.delta)
        t = min(max(0.0, bottom), top)
        if self._method != "pld" or not epsilon or not delta:
            return t, -1.0
        lower, upper, slope = bottom, top, -1.0
        last: tuple[float, float] | None = None
        for _ in range(60):
            guess = self._guess(t, delta)
            value = min(math.log(guess) - math.log(epsilon), 8.0) if guess > 0 else -1.0
            if last is not None and last[0] != t and last[1] != value:
                slope = min(max((value - last[1]) / (t - last[0]), -4.0), -0.25)
            last = (t, value)
            lower, upper = (t, upper) if value > 0 else (lower, t)
            if abs(value) < 1e-4 or upper - lower < 1e-6:
                break
            step = t - min(max(value / slope, -2.0), 2.0)
            t = step if lower < step < upper else (lower + upper) / 2
        return t, slope

    def _quick(self, t: float, slope: float, low: float, high: float, precision: float) -> float | None:
        """The answer by Newton's rule alone, where the accountant's tolerance hides more than the precision; else None.

        Each answer is tried at the accountant's own tolerance, and returned if the budget covers it and it costs the
        price but for :data:`_CLOSE`, in a family that falls there: so it is too large by no more than that hides.
        """
        delta = rounded_down(self._budget.delta)
        tight = self._method != "pld" or self._budget.epsilon is None or not delta or precision < _PRECISION
        if tight or not low < math.exp(t) < high:
            return None
        value = self._excess(t)
        if t in self._inexpressible or _exact(self._make(math.exp(t)), self._method, self._adjacency):
            return None
        aim = 0.2 * _TOLERANCE  # the bound comes down by about half of the tolerance when it is made tight
        for _ in range(4):
            if not abs(value) < _NEWTON:
                break
            t -= (value - aim) / slope
            x = _short(math.exp(t), precision)
            if not low <= x <= high:
                break
            t = math.log(x)
            value, aim = self._excess(t, 0.0, x), -_CLOSE / 3
            if -_CLOSE - precision <= value <= 0:
                before, here = self._guess(t - _NEARBY, delta), self._guess(t, delta)
                if not 0 < here * (1 + 0.1 * _NEARBY) < before < math.inf:
                    break
                self._excess(min(t + 1.0, math.log(high)), _SLACK)
                return x
        return None

    def _between(self, below: float, above: float, precision: float) -> float:
        """A point inside the bracket: secant, aimed so that the far end closes too, else the middle."""
        high, low = self._seen[below], self._seen[above]
        width = above - below
        if not (math.isfinite(high) and math.isfinite(low)) or len(self._seen) % 6 == 5:
            return below + width / 2
        secant = below + width * high / (high - low)
        aimed = secant + 0.4 * precision if secant - below < above - secant else secant - 0.4 * precision
        return min(max(aimed, below + 0.1 * precision), above - 0.1 * precision)

    def _guess(self, t: float, delta: float) -> float:
        """About what epsilon is at e^t; infinite where that is not known, or the accountant cannot express it."""
        try:
            return _estimate(self._make(math.exp(t)), self._method, self._adjacency, delta)
        except UnsupportedEventError as error:
            self._inexpressible[t] = error
            return math.inf

    def _excess(self, t: float, tolerance: float = _TOLERANCE, x: float | None = None) -> float:
        """log(spent / allowed) at e^t (``x``), certified; remembered, and checked against all that was seen before."""
        budget = self._budget
        try:
            event = self._make(math.exp(t) if x is None else x)
            spent = _spent(event, self._method, self._adjacency, budget, tolerance)
        except UnsupportedEventError as error:
            self._inexpressible[t] = error
            self._seen[t] = math.inf
            return math.inf
        allowed = next(limit for limit in (budget.epsilon, budget.rho, budget.mu, 0) if limit is not None)
        least = max(rounded_down(allowed), 5e-324)
        value = -math.inf if spent <= 0 else math.log(spent) - math.log(least)
        value = min(value, 0.0) if spent <= allowed else max(value, 5e-324)
        for other, was in self._seen.items():
            higher = (other < t and was < value - _SLACK) or (other > t and was > value + _SLACK)
            if higher and other not in self._inexpressible and self._rises(min(other, t), max(other, t)):
                raise _not_monotone(math.exp(min(other, t)), math.exp(max(other, t)))
        self._seen[t] = value
        return value

    def _rises(self, t: float, further: float) -> bool:
        """Whether the family itself loses more further on, and not only the bound, which may be loose there."""
        delta = rounded_down(self._budget.delta)
        if not delta or self._method != "pld":
            return True
        return self._guess(further, delta) > self._guess(t, delta) * (1 + _SLACK)

    def _final(self, answer: float, low: float, high: float, precision: float) -> float:
        """The answer with as few digits as the precision allows, confirmed at the accountant's own tolerance."""
        near = _short(answer, precision)
        just_above = near * (1 + 1e-11)  # where the accountant's padding spoils a round number
        further = (
            answer * (1 + precision * (math.ldexp(1.0, k) - 1)) for k in range(math.ceil(-math.log2(precision)) + 1)
        )
        for x in (near, just_above, *further):
            if low <= x <= high and _covered(self._make(x), self._method, self._adjacency, self._budget):
                return x
        raise self._unreachable(math.log(low), high)

    def _unreachable(self, bottom: float, high: float) -> DefocusError:
        """Why nothing was found: cannot be expressed, goes the wrong way, has no pure epsilon, or needs more noise."""
        if self._inexpressible.keys() >= self._seen.keys():
            return next(iter(self._inexpressible.values()))
        try:
            self._excess(bottom)
        except CannotCalibrateError as error:
            return error
        pure = self._budget.epsilon is not None and not self._budget.delta
        return BudgetOutOfReachError(
            f"No value up to {high:g} meets {self._budget!r} by the {self._method} accountant.",
            fix="add a delta, for example epsilon=1, delta=1e-6: this noise has no finite epsilon without one."
            if pure and math.inf in self._seen.values()
            else "raise the budget, release less, or pass a larger high=; the family must get safer as its "
            "parameter grows.",
        )


def _short(answer: float, precision: float) -> float:
    """The number with the fewest digits within twice the precision, if seven are enough."""
    candidates = [float(f"{answer:.{digits}g}") for digits in range(1, 8)]
    return next((short for short in candidates if abs(short - answer) <= 2 * precision * answer), answer)


@lru_cache(maxsize=1024)
def _estimate(event: Event, method: str, adjacency: Adjacency, delta: float) -> float:
    """A fast estimate of epsilon, which carries no guarantee; remembered, since plans are often made again."""
    loss = account(event, method, adjacency)
    return loss.estimate(delta) if isinstance(loss, PldLoss) else math.inf


@lru_cache(maxsize=1024)
def _spent(event: Event, method: str, adjacency: Adjacency, budget: Budget, tolerance: float) -> float:
    """What an event costs in the measure of the budget, certified; remembered likewise."""
    loss = account(event, method, adjacency)
    if isinstance(loss, PldLoss):
        loss = replace(loss, tolerance=max(loss.tolerance, tolerance))
    if budget.epsilon is not None:
        return loss.epsilon(budget.delta)
    return loss.rho() if budget.rho is not None else loss.mu()


@lru_cache(maxsize=1024)
def _exact(event: Event, method: str, adjacency: Adjacency) -> bool:
    """Whether the accountant's tolerance hides nothing; remembered likewise."""
    loss = account(event, method, adjacency)
    return not isinstance(loss, PldLoss) or loss.exact


@lru_cache(maxsize=1024)
def _covered(event: Event, method: str, adjacency: Adjacency, budget: Budget) -> bool:
    """Whether the budget covers the event at the accountant's own tolerance; remembered likewise."""
    return budget.covers(account(event, method, adjacency))


def _not_monotone(smaller: float, larger: float) -> CannotCalibrateError:
    return CannotCalibrateError(
        f"The family loses more privacy at {larger:.6g} than at {smaller:.6g}.",
        fix="parametrise it so that it gets safer as its parameter grows, for example by the noise ratio.",
    )


_LARGEST_DELTA = 0.01
"""One in a hundred: with it, publishing one record in a hundred in full would be allowed."""
_CUSTOMARY = 1e-6
"""The delta to speak in when the budget is in rho or mu and names none."""


def check_budget(budget: Budget) -> Budget:
    """Return ``budget`` if it may be promised to people; refuse a delta above 1/100, which is most often a slip.

    >>> check_budget(Budget(1e-6, 0.9))
    Traceback (most recent call last):
    ...
    defocus.errors.base.InvalidParameterError: A budget with delta 0.9 may be broken altogether with that probability.
    To fix: did you mean Budget(0.9, 1e-06)? Epsilon comes first.
    """
    if budget.delta <= _LARGEST_DELTA:
        return budget
    epsilon, delta = above(budget.epsilon or 0), float(budget.delta)
    raise InvalidParameterError(
        f"A budget with delta {delta:g} may be broken altogether with that probability.",
        fix=f"did you mean Budget({delta:g}, {epsilon:g})? Epsilon comes first."
        if epsilon < _LARGEST_DELTA
        else f"choose delta well below one over the number of people, for example Budget({epsilon:g}, 1e-06).",
    )


def spoken_delta(budget: Budget) -> float:
    """The delta at which epsilons are told beside ``budget``: its own, or the customary 1e-6 for rho and mu.

    >>> spoken_delta(Budget(1, 1e-9)), spoken_delta(Budget(rho=1))
    (1e-09, 1e-06)
    """
    return float(budget.delta) if budget.epsilon is not None else _CUSTOMARY


def delta_for(n: int, *, exponent: Number = 1.1) -> float:
    """A delta for a data set of about ``n`` people; ``n`` must be public, so round it if it is not.

    >>> delta_for(10**6)
    2.51...e-07
    """
    people = count("n", n)
    power = above(finite("exponent", exponent))
    if people < 2 or not power > 1:
        raise InvalidParameterError(
            f"No delta below 1/n is sensible for n = {people} and exponent {power:g}.",
            fix="pass n >= 2 and an exponent above 1, or use pure privacy with delta 0.",
        )
    return math.pow(people, -power)


def check_delta(delta: Number, n: int) -> float:
    """Return ``delta`` if it protects each of ``n`` people; refuse one that would allow publishing records at random.

    >>> check_delta(1e-6, 1000)
    1e-06
    """
    value = float(probability("delta", delta, one=False))
    if value * count("n", n) >= 1:
        raise InvalidParameterError(
            f"delta = {value:g} is at least 1/n = {1 / n:g}: publishing one random record in full would be allowed.",
            fix=f"choose delta well below 1/n, for example {delta_for(max(2, n)):.3g}.",
        )
    return value

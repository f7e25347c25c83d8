"""Numbers that err on the safe side: rounding, short text, bisection and the least parameter that a rule allows."""

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import NamedTuple

from defocus.errors import (
    BudgetOutOfReachError,
    CannotCalibrateError,
    InvalidParameterError,
    Number,
    UnsupportedEventError,
    positive,
)

__all__ = [
    "PAD",
    "Bracket",
    "above",
    "at_least",
    "at_most",
    "below",
    "bisect",
    "crossing",
    "least",
    "least_allowed",
    "nearest",
    "product_up",
    "root_up",
    "roughly",
    "sum_up",
    "times_up",
]


PAD = 1 + 1e-12
"""Covers the rounding of a formula of a few dozen float operations without cancellation."""


def above(value: Number) -> float:
    """The least float that is not below ``value``; infinite beyond the range of floats.

    >>> from fractions import Fraction
    >>> above(Fraction(1, 3)) * 3 >= 1, above(10**400)
    (True, inf)
    """
    number = nearest(value)
    return math.nextafter(number, math.inf) if number < value else number


def below(value: Number) -> float:
    """The largest float that is not above ``value``; the largest of all beyond their range.

    >>> from fractions import Fraction
    >>> below(Fraction(1, 10**400)), below(10**400)
    (0.0, 1.7976931348623157e+308)
    """
    number = nearest(value)
    return math.nextafter(number, -math.inf) if number > value else number


def times_up(times: int, amount: float) -> float:
    """``amount``, ``times`` over, for any number of times: nothing, however often, is nothing.

    >>> times_up(10**400, 0.0), times_up(10**400, 1e-300)
    (0.0, inf)
    """
    return above(times) * amount if amount else 0.0


def product_up(times: int, amount: float) -> float:
    """``amount``, ``times`` over, rounded up; one too small for a float may still add up to something."""
    return math.nextafter((amount or math.ulp(0.0)) * above(times), math.inf)


def sum_up(a: float, b: float) -> float:
    """The sum, rounded up."""
    return a + b if a == 0 or b == 0 else math.nextafter(a + b, math.inf)


def root_up(square: Fraction) -> float:
    """The least float found whose square is not below ``square``.

    >>> root_up(Fraction(4)), Fraction(root_up(Fraction(2))) ** 2 >= 2
    (2.0, True)
    """
    root = math.sqrt(above(square))
    return root if math.isinf(root) or Fraction(root) ** 2 >= square else math.nextafter(root, math.inf)


def nearest(value: Number | Decimal) -> float:
    """The nearest float; infinite beyond their range."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


class Bracket(NamedTuple):
    """Two points close to each other, the answer being no at the first and yes at the second."""

    no: float
    yes: float


def bisect(
    holds: Callable[[float], bool],
    no: float,
    yes: float,
    *,
    width: float = 0.0,
    relative: float = 0.0,
    steps: int = 2000,
) -> Bracket:
    """Where ``holds`` turns from no to yes, by bisection, whichever of the two points is the larger.

    Ends when they are ``width`` apart, or ``relative`` to the larger of them, or no float lies between, or after so
    many ``steps``. Take the side that errs as it should: every ``yes`` returned but the first was asked about.

    >>> bisect(lambda x: x * x >= 2, 0, 2, width=1e-9).yes
    1.41421356...
    """
    for _ in range(steps):
        middle = (no + yes) / 2
        if abs(yes - no) <= max(width, relative * max(no, yes)) or middle in {no, yes}:
            break
        no, yes = (no, middle) if holds(middle) else (middle, yes)
    return Bracket(no, yes)


def crossing(function: Callable[[float], float], low: float, high: float, *, width: float) -> float:
    """About where a function that is negative at ``low`` and positive at ``high`` is zero, by the Illinois method.

    In fewer steps than bisection where it is smooth, and with nothing promised: ask at both sides of what it finds.

    >>> round(crossing(lambda x: x * x - 2, 0, 2, width=1e-12), 12)
    1.414213562373
    """
    below_, above_, last = function(low), function(high), math.inf
    for _ in range(100):
        if above_ == below_:
            break
        middle = high - above_ * (high - low) / (above_ - below_)
        if abs(middle - last) <= width:
            return middle
        last, value = middle, function(middle)
        if value * above_ < 0:
            low, below_ = high, above_
        else:
            below_ /= 2
        high, above_ = middle, value
    return high


def least(function: Callable[[float], float], low: float, high: float, *, points: int = 12, steps: int = 32) -> float:
    """The least value found on [low, high]: a coarse scan, then golden-section search around its best point.

    For bounds that hold at every point, so that a missed minimum costs tightness and never soundness;
    where the function is not a number, there is no bound.
    """

    def at(x: float) -> float:
        value = function(x)
        return math.inf if math.isnan(value) else value

    scanned = [low + (high - low) * i / points for i in range(points + 1)]
    values = [at(x) for x in scanned]
    best = min(range(points + 1), key=values.__getitem__)
    a, b = scanned[max(best - 1, 0)], scanned[min(best + 1, points)]
    found = values[best]
    golden = (math.sqrt(5) - 1) / 2
    c, d = b - golden * (b - a), a + golden * (b - a)
    at_c, at_d = at(c), at(d)
    for _ in range(steps):
        found = min(found, at_c, at_d)
        if at_c < at_d:
            b, d, at_d = d, c, at_c
            c = b - golden * (b - a)
            at_c = at(c)
        else:
            a, c, at_c = c, d, at_d
            d = a + golden * (b - a)
            at_d = at(d)
    return min(found, at_c, at_d)


def at_least(value: float, digits: int = 6, *, forgiving: float = 0.0) -> str:
    """The least number of so many digits that is not below ``value``: for noise that suffices, and upper bounds.

    A number that is off by a part of ``forgiving`` only is shown as what it stands for.

    >>> at_least(4.4224501), at_least(7.0), at_least(0.1 + 0.2, forgiving=2**-46)
    ('4.42246', '7', '0.3')
    """
    return _written(value, digits, ROUND_CEILING, forgiving)


def at_most(value: float, digits: int = 6, *, forgiving: float = 0.0) -> str:
    """The largest number of so many digits that is not above ``value``: for what is left, and lower bounds.

    >>> at_most(0.99999999), at_most(0.25)
    ('0.999999', '0.25')
    """
    return _written(value, digits, ROUND_FLOOR, forgiving)


def roughly(value: float, digits: int = 4) -> str:
    """The nearest number of so many digits, for what is an estimate in any case.

    >>> roughly(3.14159), roughly(20000.0)
    ('3.142', '20000')
    """
    return _written(value, digits, ROUND_HALF_EVEN, 0.0)


def _written(value: float, digits: int, rounding: str, forgiving: float) -> str:
    if not math.isfinite(value):
        return str(value)
    exact = Decimal(value)
    nearest = Context(prec=digits, rounding=ROUND_HALF_EVEN).create_decimal(exact)
    # What is typed back as the same float is that number.
    close = float(nearest) == value or abs(nearest - exact) <= abs(exact) * Decimal(forgiving)
    number = (nearest if close else Context(prec=digits, rounding=rounding).create_decimal(exact)).normalize()
    _, figures, exponent = number.as_tuple()
    small_enough = isinstance(exponent, int) and -digits - 2 <= exponent and len(figures) + exponent <= digits + 3
    return f"{number:f}" if small_enough else f"{number:e}"


def least_allowed(allows: Callable[[float], bool], *, low: float, high: float, precision: float, what: str) -> float:
    """The least x in [low, high] that ``allows`` says yes to, to a relative ``precision``, in few digits.

    Guarantee:
        ``allows`` was asked about the x returned, and said yes.
    Assumes:
        Who is allowed at x is allowed at every larger x; a factor above the answer is looked at, and a family that
        is refused there is refused as a whole.

    >>> least_allowed(lambda x: x * x >= 2, low=1e-6, high=1e12, precision=1e-6, what="two")
    1.414214
    """
    bottom, top = math.log(positive("low", low)), math.log(positive("high", high))
    width = float(positive("precision", precision))
    if not bottom < top:
        raise InvalidParameterError(f"low must be below high, but they are {low} and {high}.", fix="pass low < high.")
    rule = _Rule(allows)
    below, above = _bracket(rule, bottom, top, what)
    above = bisect(rule, below, above, width=width).yes
    if not rule(min(above + 1.0, top)):
        raise CannotCalibrateError(
            f"The family is admitted at {math.exp(above):.6g} and refused at {math.exp(min(above + 1.0, top)):.6g}.",
            fix="parametrise it so that it gets safer as its parameter grows, for example by the noise ratio.",
        )
    return _short(allows, math.exp(above), width)


class _Rule:
    """The question in t = log x; what cannot be expressed at all is refused, and remembered."""

    def __init__(self, allows: Callable[[float], bool]) -> None:
        self._allows = allows
        self.refusal: UnsupportedEventError | None = None

    def __call__(self, t: float) -> bool:
        try:
            return self._allows(math.exp(t))
        except UnsupportedEventError as refusal:
            self.refusal = refusal
            return False


def _bracket(rule: _Rule, bottom: float, top: float, what: str) -> tuple[float, float]:
    """A refused t and an allowed one above it, found by growing steps from x = 1."""
    t, step = min(max(0.0, bottom), top), 1.0
    if rule(t):
        while t > bottom:
            lower = max(bottom, t - step)
            if not rule(lower):
                return lower, t
            t, step = lower, 2 * step
        return t, t
    while t < top:
        upper = min(top, t + step)
        if rule(upper):
            return t, upper
        t, step = upper, 2 * step
    if rule.refusal is not None:
        raise rule.refusal
    raise BudgetOutOfReachError(
        f"No value up to {math.exp(top):g} meets {what}.",
        fix="raise the budget or release less; the family must get safer as its parameter grows.",
    )


def _short(allows: Callable[[float], bool], answer: float, precision: float) -> float:
    """The answer with as few digits as the precision allows, if that is allowed as well."""
    for digits in range(1, 8):
        short = float(f"{answer:.{digits}g}")
        if abs(short - answer) <= 2 * precision * answer and allows(short):
            return short
    return answer

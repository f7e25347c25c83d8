"""The least parameter that a yes-or-no rule allows, when the rule only gets more willing as the parameter grows."""

import math
from collections.abc import Callable

from defocus.errors import CannotCalibrateError, InvalidParameterError, UnsupportedEventError, positive
from defocus.privacy.searching import turning

__all__ = ["least_allowed"]


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
    above = turning(rule, below, above, width=width).yes
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
    raise CannotCalibrateError(
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

"""What every mechanism offers, so that a release can hold any of them.

Checks of a mechanism's parameters, and rounding that always lands on the private side.

The data a mechanism accepts: integers of 64 bits, and arithmetic on them that cannot leak by overflowing.

Noise is added as if the sum were unbounded, and the sum is then cut to 64 bits. Cutting is a
function of the noisy sum alone, so it is post-processing: whether it happened says nothing that
the noisy sum did not. No error depends on how large a 64-bit value is.

A value that does not fit in 64 bits is cut to them, before the noise as well: a cut moves neighbouring
values no further apart, and an error that depends on data would be a leak. Types are refused.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, NotExactError, Number, UnfitDataError, positive, probability
from defocus.noise import Bits
from defocus.privacy.budgets import Budget, target
from defocus.privacy.calibration import check_budget
from defocus.privacy.events import Event
from defocus.privacy.numbers import above

__all__ = [
    "LARGEST",
    "LARGEST_SCALE",
    "NOISES",
    "SMALLEST",
    "SMALLEST_SCALE",
    "IntVector",
    "Integers",
    "Mechanism",
    "add",
    "checked_budget",
    "checked_rate",
    "integers",
    "noise_scale",
    "not_by_epsilon",
    "outside",
    "rationals",
    "saturate",
    "scale_for",
]


@runtime_checkable
class Mechanism(Protocol):
    """A value becomes a noisy value. Everything but :meth:`sample` is public and free of charge.

    Guarantee:
        Reading :attr:`event`, :attr:`error` and :meth:`interval`, and calling :meth:`check`,
        draws no random bit. The event describes exactly the noise that :meth:`sample` draws.

    One whose answer is not a number also says so: ``answers_with`` is "candidate" for a position, whose
    error is in units of utility; "crossings" for comparisons, which are off by the error; and "report" for
    an answer that is false with probability ``error``.

    >>> from defocus.mechanisms import Laplace
    >>> isinstance(Laplace(scale=2), Mechanism)
    True
    """

    @property
    def event(self) -> Event:
        """What one release owes to the ledger."""

    @property
    def error(self) -> float:
        """The expected absolute error of one entry, or of one choice in units of its utility."""

    def interval(self, confidence: float) -> float:
        """A half-width that the error stays within with probability of at least ``confidence``.

        Unlike :meth:`defocus.privacy.Loss.interval`, which is two bounds on an epsilon, this is one number.
        """

    def check(self, value: Any) -> None:
        """Refuse data of the wrong type or length; a release calls it before it charges the ledger."""

    def sample(self, value: Any, bits: Bits | None = None) -> Any:
        """One noisy release of ``value``. The ledger has been charged before this is called."""


LARGEST_SCALE = 2**40
"""The widest noise the samplers draw, in steps of the integer grid."""
SMALLEST_SCALE = Fraction(1, 2**40)
"""Narrower noise is zero in every sample that will ever be drawn."""
_RAREST = 1e-300
"""Tails below this are not told apart from nothing."""


NOISES = {"geometric": "laplace", "discretelaplace": "laplace", "discretegaussian": "gaussian"}
"""What others call discrete noise. What is added is always discrete: two-sided geometric noise is discrete Laplace."""


def noise_scale(name: str, value: object) -> Number:
    """Return ``value`` if it is a positive scale that the samplers can draw and that protects anyone at all."""
    number = positive(name, value)
    if number < SMALLEST_SCALE:
        raise InvalidParameterError(
            f"{name} is below 2**-40 steps of the grid, which is no noise and no privacy.",
            fix="use a smaller epsilon, or a larger scale.",
        )
    if number > LARGEST_SCALE:
        raise InvalidParameterError(
            f"{name} is {float(number) if number < 2**1000 else 'above 2**1000'}, but exact noise is drawn for scales "
            f"up to 2**40 steps of the grid.",
            fix="use a coarser grid, a smaller sensitivity or a larger budget.",
        )
    return number


def checked_rate(name: str, value: object) -> Number:
    """Return ``value`` if it is positive and of ordinary size, so that nothing computed from it is zero or infinite."""
    number = positive(name, value)
    if not Fraction(1, 2**60) <= number <= 2**60:
        raise InvalidParameterError(f"{name} must lie between 2**-60 and 2**60.", fix=f"pass {name} of ordinary size.")
    return number


def scale_for(sensitivity: Number, epsilon: Number) -> Number:
    """The least scale of at least sensitivity / epsilon: exact for exact input, else the next float above.

    >>> scale_for(1, 0.8), scale_for(1, Fraction(4, 5))
    (1.25, Fraction(5, 4))
    """
    exact = Fraction(sensitivity) / Fraction(epsilon)
    if exact > LARGEST_SCALE or not (isinstance(epsilon, float) or isinstance(sensitivity, float)):
        return noise_scale("the noise scale sensitivity/epsilon", exact)
    return noise_scale("the noise scale sensitivity/epsilon", above(exact))


def checked_budget(
    budget: object = None,
    /,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    mu: Number | None = None,
) -> Budget:
    """The budget, or the price that the parameters describe, if it may be promised to people."""
    return check_budget(target(budget, epsilon=epsilon, delta=delta, rho=rho, mu=mu))


def not_by_epsilon(kind: str, named: Mapping[str, object], *, usual: str) -> None:
    """Refuse an epsilon where a scale of noise belongs, and say where it can be given."""
    given = [name for name in ("epsilon", "delta", "budget") if name in named]
    if given:
        raise InvalidParameterError(
            f"{kind} is described by its noise, and takes no {given[0]}.",
            fix=f"let the noise be found: {kind}.calibrated({usual}).",
        )


def outside(value: object) -> float:
    """The probability allowed outside an interval of this ``confidence``: 1 − confidence, in (0, 1)."""
    beyond = float(1 - Fraction(probability("confidence", value, zero=False, one=False)))
    if beyond < _RAREST:
        raise InvalidParameterError(
            "confidence is so close to 1 that no half-width can be told for it.", fix="choose confidence <= 1 - 1e-300."
        )
    return beyond


IntVector: TypeAlias = NDArray[np.int64]
Integers: TypeAlias = Sequence[int] | NDArray[np.integer[Any]]

SMALLEST, LARGEST = -(2**63), 2**63 - 1


def integers(value: object, *, length: int | None = None) -> tuple[IntVector, bool]:
    """The data as a vector of 64-bit integers, and whether it was a single number.

    >>> integers([3, 1, 4])
    (array([3, 1, 4]), False)
    """
    single = isinstance(value, Integral | Real | Decimal) or (isinstance(value, np.ndarray) and value.ndim == 0)
    vector = _vector([value] if single and not isinstance(value, np.ndarray) else value)
    if length is not None and len(vector) != length:
        raise UnfitDataError(
            f"The data has {len(vector)} entries, but this mechanism was made for {length}.",
            fix=f"pass {length} entries, or make the mechanism for {len(vector)}; that number must be public.",
        )
    return vector, single


def rationals(values: object, *, length: int) -> list[Fraction]:
    """The utilities of ``length`` candidates as exact numbers: integers or fractions of any size."""
    items = _items(values)
    for item in items:
        if isinstance(item, bool | np.bool_) or not isinstance(item, Rational):
            raise _refusal(type(item))
    if len(items) != length:
        raise UnfitDataError(
            f"There are {len(items)} utilities, but this mechanism was made for {length} candidates.",
            fix=f"pass one utility for each of the {length} candidates; the number of candidates must be public.",
        )
    return [Fraction(int(item.numerator), int(item.denominator)) for item in items]


def add(value: IntVector, noise: IntVector) -> IntVector:
    """The sum, cut to 64 bits where it does not fit."""
    total = value + noise
    wrapped = ((value ^ total) & (noise ^ total)) < 0
    return np.where(wrapped, np.where(value < 0, SMALLEST, LARGEST), total).astype(np.int64)


def saturate(value: int) -> int:
    """The nearest 64-bit integer. Neighbouring values move no further apart."""
    return max(SMALLEST, min(LARGEST, value))


def _vector(value: object) -> IntVector:
    if isinstance(value, np.ndarray) and value.dtype != object:
        array = value
    else:
        items = _items(value)
        for item in items:
            if isinstance(item, bool | np.bool_) or not isinstance(item, Integral):
                raise _refusal(type(item))
        array = np.array([saturate(int(item)) for item in items], dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise _refusal(array.dtype)
    array = np.atleast_1d(array)
    if array.ndim != 1:
        raise UnfitDataError(
            f"The data has {array.ndim} dimensions, but mechanisms take a number or a vector.",
            fix="pass array.ravel() and reshape the result.",
        )
    if not array.size:
        raise UnfitDataError("The data is an empty vector.", fix="release at least one number.")
    if array.dtype.kind == "u":
        array = np.minimum(array, np.uint64(LARGEST))
    return array.astype(np.int64)


def _items(values: object) -> list[Any]:
    if isinstance(values, str | bytes) or not hasattr(values, "__len__") or isinstance(values, dict | set | frozenset):
        raise _refusal(type(values))
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise UnfitDataError(
            f"The data has {values.ndim} dimensions, but mechanisms take a number or a vector.",
            fix="pass array.ravel() and reshape the result.",
        )
    items: list[Any] = list(values)  # type: ignore[call-overload]  # anything with a length that iterates
    if not items:
        raise UnfitDataError("The data is an empty vector.", fix="release at least one number.")
    return items


def _refusal(kind: object) -> UnfitDataError:
    name = kind.__name__ if isinstance(kind, type) else str(kind)
    real = isinstance(kind, type) and kind is not bool and issubclass(kind, Real | Decimal)
    if real or (isinstance(kind, np.dtype) and kind.kind == "f"):
        return NotExactError(name)
    return UnfitDataError(
        f"A mechanism releases integers, but the data has type {name}.",
        fix="pass an int, a sequence of ints or a numpy array of integers; count booleans with sum().",
    )

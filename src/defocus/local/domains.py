"""What a value may be: public facts that a device and a server agree on before anything is collected."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, Number, OutOfDomainError, finite, whole
from defocus.local.numbers import canonical
from defocus.privacy.wire import read_number, write_number

__all__ = ["LARGEST_DOMAIN", "Categories", "Codes", "Domain", "Interval", "domain_from_wire", "listed"]

Codes: TypeAlias = NDArray[np.int64]

LARGEST_DOMAIN = 1 << 28
"""A server keeps a few counts for each category, so there is a limit to how many it can have."""


@final
@dataclass(frozen=True, slots=True)
class Categories:
    """One of ``size`` categories, by number or by label.

    What lies outside follows a declared rule, the same for everybody.

    * ``outside="other"`` counts it in a public last category: whatever is no category, a number or text outside, None,
      or anything else. A report depends on its value only through the category, so the guarantee of the oracle holds
      for *every* value.
    * ``outside="refuse"`` raises before anything is drawn. The guarantee holds among the values of the domain only:
      that a device is silent shows that its value is none of them. It is for domains that hold every value there is,
      and for batches of one's own.

    >>> Categories.of(["red", "blue"], outside="other").codes(["blue", "pink"])
    array([1, 2])
    """

    size: int
    labels: tuple[str, ...] | None = None
    outside: Literal["refuse", "other"] = "refuse"

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole("the size of the domain", self.size, at_least=2))
        if self.size > LARGEST_DOMAIN:
            raise InvalidParameterError(
                f"A domain of {self.size} categories is too large to count: at most {LARGEST_DOMAIN} are.",
                fix="find frequent values first (defocus.local.heavy_hitters), or hash them into fewer categories.",
            )
        if self.outside not in ("refuse", "other"):
            raise InvalidParameterError(
                f"outside must be 'refuse' or 'other', but it is {self.outside!r}.", fix="choose one of the two."
            )
        if self.labels is not None:
            given: Any = self.labels
            if not isinstance(given, tuple) or not all(isinstance(label, str) for label in given):
                raise InvalidParameterError("Labels of a domain are texts.", fix="pass a tuple of str.")
            named = self.size - (self.outside == "other")
            if len(self.labels) != named or len(set(self.labels)) != named:
                raise InvalidParameterError(
                    f"{len(self.labels)} labels do not name {named} categories.", fix="give every category one label."
                )

    @staticmethod
    def of(
        domain: "int | Sequence[str] | Categories", *, outside: Literal["refuse", "other"] = "refuse"
    ) -> "Categories":
        """The domain of so many numbers, or of these labels; the bucket for others comes on top."""
        if isinstance(domain, Categories):
            return domain
        extra = outside == "other"
        if isinstance(domain, Sequence) and not isinstance(domain, str | bytes):
            if not all(isinstance(label, str) for label in domain):
                raise InvalidParameterError("Labels of a domain are texts.", fix="pass a sequence of str, or a number.")
            return Categories(len(domain) + extra, tuple(domain), outside)
        return Categories(whole("the size of the domain", domain, at_least=1) + extra, None, outside)

    def codes(self, values: Any) -> Codes:
        """The category of each value. This runs on the device; the error never quotes a value."""
        known, given = self.size - (self.outside == "other"), listed(values)
        if self.labels is None:
            codes = _whole_numbers(given)
        else:
            place = {label: i for i, label in enumerate(self.labels)}
            items = given.tolist() if isinstance(given, np.ndarray) else given
            codes = np.array([place.get(item, -1) if isinstance(item, str) else -1 for item in items], np.int64)
        if not codes.size or 0 <= int(codes.min()) <= int(codes.max()) < known:
            return codes
        if self.outside == "refuse":
            raise OutOfDomainError(self.described, rule="outside='other'")
        return np.where((codes < 0) | (codes >= known), known, codes)

    @property
    def described(self) -> str:
        """In words."""
        return f"{self.size} categories" if self.labels is None else f"{self.size} labelled categories"

    def to_wire(self) -> dict[str, Any]:
        """The domain with JSON types."""
        return {
            "kind": "categories",
            "size": self.size,
            "labels": None if self.labels is None else list(self.labels),
            "outside": self.outside,
        }


@final
@dataclass(frozen=True, slots=True)
class Interval:
    """A number between ``low`` and ``high``.

    What lies outside follows a declared rule, the same for everybody. ``outside="clip"`` moves it to the nearer end,
    and what is no number at all (NaN, None, a text) to the low one, so that the guarantee of the oracle holds for
    *every* value. ``outside="refuse"`` raises before anything is drawn; that a device is silent is then seen.
    """

    low: Number
    high: Number
    outside: Literal["clip", "refuse"] = "clip"

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", canonical(finite("low", self.low)))
        object.__setattr__(self, "high", canonical(finite("high", self.high)))
        if not self.low < self.high:
            raise InvalidParameterError(
                f"low must be below high, but they are {self.low} and {self.high}.", fix="pass low < high."
            )
        if not (_measured(self.low) and _measured(self.high) and _measured(self.width)) or not float(self.width):
            raise InvalidParameterError(
                "The interval is too narrow, too wide or too far out to be measured in floating-point numbers.",
                fix="choose another unit for the numbers, such that ends and width are ordinary floats.",
            )
        if self.outside not in ("clip", "refuse"):
            raise InvalidParameterError(
                f"outside must be 'clip' or 'refuse', but it is {self.outside!r}.", fix="choose one of the two."
            )

    @property
    def width(self) -> Fraction:
        """High - low, exactly."""
        return Fraction(self.high) - Fraction(self.low)

    def positions(self, values: Any) -> NDArray[np.float64]:
        """Where each value lies between the ends: 0 is low, 1 is high. This runs on the device."""
        numbers = _real_numbers(listed(values))
        with np.errstate(over="ignore", invalid="ignore"):
            shares = (numbers - float(self.low)) / float(self.width)
        if self.outside == "refuse" and not ((shares >= 0) & (shares <= 1)).all():
            raise OutOfDomainError(self.described, rule="outside='clip'")
        return np.fmin(np.fmax(shares, 0.0), 1.0)  # which take the other argument for NaN

    @property
    def described(self) -> str:
        """In words."""
        return f"numbers from {self.low} to {self.high}"

    def to_wire(self) -> dict[str, Any]:
        """The domain with JSON types."""
        return {
            "kind": "interval",
            "low": write_number(self.low),
            "high": write_number(self.high),
            "outside": self.outside,
        }


Domain: TypeAlias = Categories | Interval


def domain_from_wire(data: Any) -> Domain:
    """Read a domain back; whatever is malformed raises one of KeyError, TypeError and ValueError."""
    given = dict(data)
    kind = given.pop("kind")
    if kind == "categories":
        labels = given.pop("labels")
        return Categories(labels=None if labels is None else tuple(labels), **given)
    if kind == "interval":
        return Interval(read_number(given.pop("low")), read_number(given.pop("high")), **given)
    raise ValueError(f"{str(kind)[:40]!r} is not a kind of domain")


def _measured(number: Number) -> bool:
    try:
        return math.isfinite(float(number))
    except OverflowError:
        return False


def listed(values: Any) -> list[Any] | NDArray[Any]:
    """Values one by one, whatever they are; what is no list of values is refused."""
    if hasattr(values, "__array__"):
        array = np.asarray(values)
        if array.ndim == 1:
            return array
    elif not isinstance(values, str | bytes):
        try:
            return list(values)
        except TypeError:
            pass
    raise InvalidParameterError(
        "Values come as a list or an array of one dimension, one for each person.", fix="pass for example [value]."
    )


def _numbers(given: list[Any] | NDArray[Any], kinds: str) -> NDArray[Any] | None:
    """All of them as one array, if numpy has them as numbers of one of these kinds; to numpy, True would be 1."""
    if isinstance(given, list) and not {bool, np.bool_}.isdisjoint(map(type, given)):
        return None
    try:
        array = np.asarray(given)
    except (ValueError, TypeError, OverflowError):
        return None
    return array if array.ndim == 1 and array.dtype.kind in kinds else None


def _whole_numbers(given: list[Any] | NDArray[Any]) -> Codes:
    """Whole numbers as they are where they can be a category; -1 for whatever else there is."""
    array = _numbers(given, "iu")
    if array is None:
        return np.array([_whole_number(item) for item in given], np.int64)
    if array.dtype == np.uint64:
        return np.where(array > np.uint64(LARGEST_DOMAIN), -1, array.astype(np.int64))
    return array.astype(np.int64, copy=False)


def _whole_number(item: Any) -> int:
    if isinstance(item, bool) or not isinstance(item, Integral):
        return -1
    number = int(item)
    return number if 0 <= number <= LARGEST_DOMAIN else -1


def _real_numbers(given: list[Any] | NDArray[Any]) -> NDArray[np.float64]:
    """Numbers as floats; NaN for whatever else there is."""
    array = _numbers(given, "iuf")
    if array is None:
        return np.array([_real_number(item) for item in given], np.float64)
    return array.astype(np.float64)


def _real_number(item: Any) -> float:
    if isinstance(item, bool | np.bool_) or not isinstance(item, Real | Decimal):
        return math.nan
    try:
        return float(item)
    except OverflowError:
        return math.inf if item == abs(item) else -math.inf
    except ValueError:  # a Decimal that signals
        return math.nan

"""Domains of local reports: categories and intervals.

One way to write each number, so that equal descriptions are the same text on every machine.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, Number, OutOfDomainError, SilentDeviceError, finite, whole
from defocus.errors.checks import guarded, plain
from defocus.privacy.numbers import nearest
from defocus.privacy.wire import read_number, write_number

__all__ = [
    "LARGEST_DOMAIN",
    "OTHER",
    "Categories",
    "Codes",
    "Domain",
    "Interval",
    "canonical",
    "domain_from_wire",
    "listed",
    "never_silent",
    "plain_text",
]


_EXACT = 1 << 53
"""Below this, every JSON reader holds an integer exactly."""


def canonical(value: Number) -> Number:
    """The same number as an int, a float or a Fraction, whichever comes first and holds it; ints below 2**53 only.

    >>> from fractions import Fraction
    >>> canonical(1.0), canonical(Fraction(1, 2)), canonical(Fraction(1, 3))
    (1, 0.5, Fraction(1, 3))
    """
    if value == int(value) and -_EXACT < value < _EXACT:
        return int(value)
    near = nearest(value)
    return near if near == value else value


Codes: TypeAlias = NDArray[np.int64]

OTHER = "other"
"""What the last category is called where values outside of the domain are counted."""
LARGEST_DOMAIN = 1 << 28
"""A server keeps a few counts for each category, so there is a limit to how many it can have."""


@final
@dataclass(frozen=True, slots=True)
class Categories:
    """One of ``size`` categories, by number or by label.

    What lies outside follows a declared rule, the same for everybody.

    * ``outside="other"`` counts it in a public last category: whatever is no category, a number or text outside, None,
      or anything else. A report depends on its value only through the category, so the guarantee of the oracle holds
      for *every* value, and the counts of all categories are unbiased.
    * ``outside="refuse"`` raises before anything is drawn, and so tells of a value that it is none of the domain. It
      is for simulations with public values, in batches; devices do not report under it (:func:`never_silent`).

    A category by number is a whole number, also as a float. No code of a value's own runs while it is read.

    >>> Categories.of(["red", "blue"]).codes(["blue", "pink"])
    array([1, 2])
    """

    size: int
    labels: tuple[str, ...] | None = None
    outside: Literal["refuse", "other"] = "other"

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole("the size of the domain", self.size, at_least=2))
        if self.size > LARGEST_DOMAIN:
            raise InvalidParameterError(
                f"A domain of {self.size} categories is too large to count: at most {LARGEST_DOMAIN} are.",
                fix="find frequent values first (defocus.local.frequent_strings), or hash them into fewer categories.",
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
        domain: "int | Sequence[str] | Categories", *, outside: Literal["refuse", "other"] = "other"
    ) -> "Categories":
        """The domain of so many numbers, or of these labels; the bucket for others comes on top."""
        if isinstance(domain, Categories):
            return domain
        extra = outside == "other"
        if isinstance(domain, Sequence) and not isinstance(domain, str | bytes):
            if not all(isinstance(label, str) for label in domain):
                raise InvalidParameterError("Labels of a domain are texts.", fix="pass a sequence of str, or a number.")
            if extra and OTHER in domain:
                raise InvalidParameterError(
                    f"{OTHER!r} is what the category of all values that have no label is called.",
                    fix=f"leave the label {OTHER!r} out: what is none of the others is counted there.",
                )
            return Categories(len(domain) + extra, tuple(domain), outside)
        return Categories(whole("the size of the domain", domain, at_least=1) + extra, None, outside)

    def codes(self, values: Any) -> Codes:
        """The category of each value. This runs on the device; the error never quotes a value."""
        size, given = self.size - (self.outside == "other"), listed(values)
        codes = _whole_numbers(given) if self.labels is None else _places(given, self.labels)
        outside = (codes < 0) | (codes >= size)
        if self.outside == "refuse" and outside.any():
            raise OutOfDomainError(self.described, rule="outside='other'")
        return np.where(outside, size, codes)

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
    *every* value. ``outside="refuse"`` raises before anything is drawn, and is for simulations with public numbers.

    >>> Interval(0, 120)
    Interval(low=0, high=120, outside='clip')
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
    return math.isfinite(nearest(number))


def listed(values: Any) -> list[Any] | NDArray[Any]:
    """Values one by one, whatever they are; what is no list of values is refused."""
    if isinstance(values, np.ma.MaskedArray):
        values = values.tolist()  # with None for what is masked
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


def never_silent(domain: Domain) -> None:
    """Refuse a domain under which a device would report some values and not others; before it looks at one."""
    if domain.outside == "refuse":
        raise SilentDeviceError


def plain_text(item: Any, longest: int) -> str | None:
    """The text of a str of at most so many characters, also of a subclass; None for whatever else there is."""
    return str.__str__(item) if issubclass(type(item), str) and str.__len__(item) <= longest else None


def _places(given: list[Any] | NDArray[Any], labels: tuple[str, ...]) -> Codes:
    """The place of each text among the labels; -1 for whatever else there is."""
    place: dict[str | None, int] = {label: i for i, label in enumerate(labels)}
    longest = max(map(len, labels))
    items = given.tolist() if isinstance(given, np.ndarray) else given
    return np.array([place.get(plain_text(item, longest), -1) for item in items], np.int64)


def _whole_numbers(given: list[Any] | NDArray[Any]) -> Codes:
    """Whole numbers as they are where they can be a category; -1 for whatever else there is."""
    numbers = _real_numbers(given)
    whole = (numbers >= 0) & (numbers <= LARGEST_DOMAIN) & (numbers == np.floor(numbers))
    return np.where(whole, numbers, -1).astype(np.int64)


def _real_numbers(given: list[Any] | NDArray[Any]) -> NDArray[np.float64]:
    """Numbers as floats; NaN for whatever else there is."""
    if isinstance(given, np.ndarray) and given.dtype.kind in "iuf":
        with np.errstate(all="ignore"):
            return given.astype(np.float64)
    return np.array([_real_number(item) for item in given], np.float64)


def _real_number(item: Any) -> float:
    """The nearest float; NaN for what is no number, and for one that cannot be read, such as a Decimal that signals."""
    return guarded(_nearest, item, math.nan)


def _nearest(item: Any) -> float:
    value = plain(item)
    return math.nan if value is None or isinstance(value, bool | str) else nearest(value)

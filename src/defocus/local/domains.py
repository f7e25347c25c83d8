"""What a value may be: public facts that a device and a server agree on before anything is collected."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, Number, OutOfDomainError, finite, whole
from defocus.privacy.wire import read_number, write_number

__all__ = ["LARGEST_DOMAIN", "Categories", "Codes", "Domain", "Interval", "domain_from_wire"]

Codes: TypeAlias = NDArray[np.int64]

LARGEST_DOMAIN = 1 << 28
"""A server keeps a few counts for each category, so there is a limit to how many it can have."""


@final
@dataclass(frozen=True, slots=True)
class Categories:
    """One of ``size`` categories, by number or by label.

    What lies outside follows a declared rule, the same for everybody: ``outside="refuse"`` raises on the device before
    anything is drawn; ``outside="other"`` counts it in a public last category. Either way a report depends on its
    value only through the category, so the guarantee of the oracle holds for every possible value.

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
        known = self.size - (self.outside == "other")
        if self.labels is None:
            codes = _whole_numbers(values)
        else:
            place = {label: i for i, label in enumerate(self.labels)}
            items = values.tolist() if isinstance(values, np.ndarray) else list(values)
            codes = np.array([place.get(item, -1) if isinstance(item, str) else -1 for item in items], np.int64)
        if not codes.size or 0 <= int(codes.min()) <= int(codes.max()) < known:
            return codes
        if self.outside == "refuse":
            raise OutOfDomainError(self.described)
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

    What lies outside is moved to the nearer end (``outside="clip"``) or refused on the device. What is not a number is
    refused under either rule, because there is no nearest one.
    """

    low: Number
    high: Number
    outside: Literal["clip", "refuse"] = "clip"

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", finite("low", self.low))
        object.__setattr__(self, "high", finite("high", self.high))
        if not self.low < self.high:
            raise InvalidParameterError(
                f"low must be below high, but they are {self.low} and {self.high}.", fix="pass low < high."
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
        given = np.asarray(values)
        if given.ndim != 1 or given.dtype.kind not in "iuf" or np.isnan(given).any():
            if given.ndim == 1 and given.size == 0:
                return np.empty(0)
            raise OutOfDomainError(self.described)
        numbers = given.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            shares = (numbers - float(self.low)) / float(self.width)
        if self.outside == "refuse" and ((shares < 0) | (shares > 1)).any():
            raise OutOfDomainError(self.described)
        return np.clip(shares, 0.0, 1.0)

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


def _whole_numbers(values: Any) -> Codes:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        if array.ndim == 1 and array.size == 0:
            return np.empty(0, np.int64)
        raise InvalidParameterError(
            "Values of a numbered domain are whole numbers in one dimension.", fix="pass codes from 0 on."
        )
    if array.dtype == np.uint64:
        return np.where(array > np.uint64(LARGEST_DOMAIN), -1, array.astype(np.int64))
    return array.astype(np.int64, copy=False)

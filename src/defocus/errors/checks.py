"""Checks of parameters, worded once, and values read without running their code.

Checks of parameters, worded once: each returns the value it was given or refuses it.
"""

import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

import numpy as np

from defocus.errors.base import InvalidParameterError

__all__ = [
    "Number",
    "Plain",
    "choice",
    "count",
    "finite",
    "guarded",
    "in_range",
    "non_negative",
    "number",
    "plain",
    "positive",
    "probability",
    "storable",
    "whole",
]


Number: TypeAlias = int | float | Fraction
"""What a parameter may be. Exact types stay exact; a float means the dyadic rational it stores."""


def finite(name: str, value: object) -> Number:
    """Return ``value`` as an int, a Fraction or a finite float; booleans and strings are not numbers.

    >>> finite("sigma", 1.5)
    1.5
    >>> finite("sigma", float("nan"))
    Traceback (most recent call last):
    ...
    defocus.errors.base.InvalidParameterError: sigma must be a finite number, but it is nan.
    To fix: pass an int, a float or a Fraction.
    """
    number: Number | None = None
    if isinstance(value, bool):
        pass
    elif isinstance(value, Integral):
        number = int(value)
    elif isinstance(value, Rational):
        number = Fraction(int(value.numerator), int(value.denominator))
    elif isinstance(value, Real):
        number = _exact(value)
    if number is None or (isinstance(number, float) and not math.isfinite(number)):
        raise InvalidParameterError.about(
            name, f"must be a finite number, but it is {_show(value)}.", "pass an int, a float or a Fraction."
        )
    return number


def positive(name: str, value: object) -> Number:
    """Return ``value`` if it is a finite number above zero.

    >>> positive("scale", 2)
    2
    """
    number = finite(name, value)
    if number <= 0:
        raise InvalidParameterError.about(name, f"must be positive, but it is {_show(value)}.", "pass {} > 0.")
    return number


def non_negative(name: str, value: object) -> Number:
    """Return ``value`` if it is a finite number of at least zero.

    >>> non_negative("epsilon", 0)
    0
    """
    number = finite(name, value)
    if number < 0:
        raise InvalidParameterError.about(name, f"must not be negative, but it is {_show(value)}.", "pass {} >= 0.")
    return number


def in_range(name: str, value: object, low: Number, high: Number) -> Number:
    """Return ``value`` if low <= value <= high.

    >>> in_range("level", 3, 0, 5)
    3
    """
    number = finite(name, value)
    if not low <= number <= high:
        raise InvalidParameterError.about(
            name, f"must lie between {low} and {high}, but it is {_show(value)}.", f"choose {{}} in [{low}, {high}]."
        )
    return number


def probability(name: str, value: object, *, zero: bool = True, one: bool = True) -> Number:
    """Return ``value`` if it is a probability; ``zero`` and ``one`` say whether the ends are allowed.

    >>> probability("delta", 1e-6)
    1e-06
    """
    number = finite(name, value)
    if not ((number >= 0 if zero else number > 0) and (number <= 1 if one else number < 1)):
        bounds = f"{'[' if zero else '('}0, 1{']' if one else ')'}"
        raise InvalidParameterError.about(
            name, f"must lie in {bounds}, but it is {_show(value)}.", f"choose {{}} in {bounds}."
        )
    return number


def whole(name: str, value: object, *, at_least: int = 0) -> int:
    """Return ``value`` if it is an integer of at least ``at_least``; a float is refused even when it is whole.

    >>> whole("k", 2, at_least=1)
    2
    """
    number = None if isinstance(value, bool) or not isinstance(value, Integral) else int(value)
    if number is None or number < at_least:
        raise InvalidParameterError.about(
            name,
            f"must be a whole number of at least {at_least}, but it is {_show(value)}.",
            f"pass an int, {{}} >= {at_least}.",
        )
    return number


def count(name: str, value: object) -> int:
    """Return ``value`` if it is a whole number of at least one and below 2**63.

    >>> count("rows", 5)
    5
    """
    number = whole(name, value, at_least=1)
    if number >= 2**63:
        raise InvalidParameterError.about(
            name, f"must be below 2**63, but it has {number.bit_length()} bits.", "pass {} < 2**63."
        )
    return number


def storable(name: str, value: Number) -> Number:
    """Return ``value`` if it can be written down: numerator and denominator of at most 4096 bits, 1233 digits.

    >>> storable("bound", 1e9)
    1000000000.0
    """
    if not isinstance(value, float) and max(value.numerator.bit_length(), value.denominator.bit_length()) > 4096:
        raise InvalidParameterError.about(
            name, "has too many digits to be stored: more than 4096 bits.", "round {} to fewer digits."
        )
    return value


def choice(what: str, value: object, known: Iterable[str], also: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the ``known`` name that ``value`` stands for: case, spaces, commas, - and _ do not matter.

    ``also`` maps other names in use, written in small letters without separators, to known ones.

    >>> choice("accountant", "PRV", ["pld", "rdp"], {"prv": "pld"})
    'pld'
    >>> choice("accountant", "rpd", ["pld", "rdp"])
    Traceback (most recent call last):
    ...
    defocus.errors.base.InvalidParameterError: There is no accountant named 'rpd'.
    To fix: did you mean rdp? Else choose one of pld, rdp.
    """
    names = {_folded(name): name for name in known}
    spelt = {**{other: name for other, name in also.items() if name in names.values()}, **names}
    text = _folded(value) if isinstance(value, str) else ""
    if text in spelt:
        return spelt[text]
    near = [f"did you mean {_quoted(spelt[each])}? Else " for each in difflib.get_close_matches(text, spelt, n=1)]
    raise InvalidParameterError(
        f"There is no {what} named {_show(value)}.",
        fix=f"{''.join(near)}choose one of {', '.join(map(_quoted, names.values()))}.",
    )


def _quoted(name: str) -> str:
    return f'"{name}"' if "," in name else name


def _folded(name: str) -> str:
    return "".join(name[:60].lower().translate({ord(each): " " for each in "-_,"}).split())


def _exact(value: Real) -> Number:
    """A float where it holds the value, else the fraction: long doubles keep all their digits."""
    number = float(value)
    if number == value or not math.isfinite(number):
        return number
    ratio = getattr(value, "as_integer_ratio", None)
    return number if ratio is None else Fraction(*map(int, ratio()))


def _show(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # an int of more digits than Python prints
        return "a number of very many digits"
    return text if len(text) <= 60 else f"{text[:57]}..."


Plain: TypeAlias = bool | int | float | Fraction | Decimal | str
_Found = TypeVar("_Found")


def plain(value: Any) -> Plain | None:
    """The number or text that a value is, of exactly the type named; None for anything else.

    Guarantee:
        Only methods of the classes that are named here run, never those of a subclass.

    >>> class Odd(float):
    ...     def __floor__(self):
    ...         raise SystemExit
    >>> [plain(value) for value in (Odd(2.5), True, "a", [1], None)]
    [2.5, True, 'a', None, None]
    """
    kind = type(value)
    if kind is int or kind is float or kind is str or kind is bool or kind is Fraction or kind is Decimal:
        found: Plain = value
        return found
    read = next((read for base, read in _READ.items() if type.__subclasscheck__(base, kind)), None)
    with np.errstate(all="ignore"):
        return None if read is None else read(value)


def number(value: Any) -> Plain | None:
    """The same, also of numbers of other makers, which are asked themselves: only for :func:`guarded`."""
    found = plain(value)
    if found is None and not isinstance(value, np.generic) and isinstance(value, Real):
        return int(value) if isinstance(value, Integral) else float(value)
    return found


def guarded(read: Callable[[Any], _Found], value: Any, otherwise: _Found) -> _Found:
    """What ``read`` makes of a value, or ``otherwise`` in whatever way the value refuses: to exit is one of them."""
    try:
        return read(value)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 # whatever it is, it says something about that value alone
        return otherwise


def _fraction(value: Any) -> Fraction:
    slots: Any = Fraction
    above, below = slots._numerator.__get__(value), slots._denominator.__get__(value)  # noqa: SLF001 # a subclass may have properties of the other names
    return Fraction(int.__index__(above), int.__index__(below))


def _nothing(_: Any) -> None:
    """A span of time is no number, though numpy counts it among the whole ones."""


_READ: dict[type, Callable[[Any], Any]] = {
    str: str.__str__,
    float: float.__float__,
    int: int.__index__,
    Fraction: _fraction,
    Decimal: Decimal,
    np.timedelta64: _nothing,
    np.integer: np.generic.item,
    np.bool_: np.generic.item,
    np.floating: np.floating.__float__,
}

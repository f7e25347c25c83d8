"""Numbers and texts as what they are, whatever class was made of them: no code of a value's own decides on others."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, TypeAlias, TypeVar

import numpy as np

__all__ = ["Plain", "guarded", "number", "plain"]

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

"""Values that a device may hold, however odd: each has an outcome, the same as any other's for whoever looks on."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

__all__ = ["ODD"]


def _raises(*_: Any, **__: Any) -> Any:
    raise RuntimeError


_TRAPS = ("__hash__", "__eq__", "__len__", "__str__", "__int__", "__float__", "__index__", "__gt__", "__getitem__")
_METHODS: dict[str, Any] = dict.fromkeys((*_TRAPS, "__array__", "__iter__", "__bool__", "__abs__"), _raises)


class _Liar:
    """Raises whatever it is asked, also what it is."""

    __class__ = property(_raises)


for _name, _method in _METHODS.items():
    setattr(_Liar, _name, _method)

_Meta = type("_Meta", (type,), {"__hash__": _raises, "__eq__": _raises, "__instancecheck__": _raises})
_TEXT = type("_Text", (str,), _METHODS)
_WHOLE = type("_Whole", (int,), _METHODS)
_REAL = type("_Real", (float,), _METHODS)
_RATIO = type("_Ratio", (Fraction,), {"__gt__": _raises, "__float__": _raises})
_SCALAR = type("_Scalar", (np.int64,), {"__int__": _raises, "__float__": _raises, "__array__": _raises})
_nested: Any = []
for _ in range(5000):
    _nested = [_nested]

ODD: dict[str, Any] = {
    "none": None,
    "nan": math.nan,
    "infinite": -math.inf,
    "truth": True,
    "bytes": b"a",
    "empty": "",
    "surrogate": "\ud800",
    "zero character": "\0",
    "long": "a" * 10_000_000,
    "huge": 10**5000,
    "huge negative": -(10**5000),
    "huge fraction": Fraction(10**5000, 3),
    "signalling": Decimal("sNaN"),
    "far decimal": Decimal("-1e999999"),
    "long double": np.longdouble("1e4000"),
    "complex": 1j,
    "duration": np.timedelta64(1, "D"),
    "no time": np.datetime64("NaT"),
    "array": np.array(1),
    "two arrays": np.ones((3, 3)),
    "list": [1],
    "nested": _nested,
    "unhashable": {"a": []},
    "generator": (x for x in "ab"),
    "class": int,
    "text that raises": _TEXT("a"),
    "long text that raises": _TEXT("a" * 10_000),
    "number that raises": _WHOLE(1),
    "huge number that raises": _WHOLE(10**5000),
    "real that raises": _REAL(0.5),
    "ratio that raises": _RATIO(10**5000),
    "scalar that raises": _SCALAR(1),
    "liar": _Liar(),
    "of a class that raises": _Meta("_Odd", (), {})(),
}

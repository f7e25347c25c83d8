"""The catalogue of odd values, and the odd rows that are made of them.

A value is odd where somebody, somewhere, once wrote code that it surprised. Everything in the catalogue is a value that
a person's row can really hold in at least one kind of source. Add to ``VALUES`` what surprised you; every entry point
is then tried with it. A line of text that is no row at all (``LINES``) is what only files of text can hold.
"""

import datetime as dt
import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, final

import numpy as np
import pandas as pd

__all__ = ["LINES", "VALUES", "OddRow", "odd_rows"]


class _Text(str):
    __slots__ = ()


class _Whole(int):
    pass


class _Choice(enum.Enum):
    A = "a"


class _TextChoice(enum.StrEnum):
    A = "a"


@final
class _Hostile:
    """An object that does not want to be looked at."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("private: compared")

    def __str__(self) -> str:
        raise RuntimeError("private: written")

    __repr__ = __str__

    def __float__(self) -> float:
        raise RuntimeError("private: measured")

    def __bool__(self) -> bool:
        raise RuntimeError("private: judged")


VALUES: Mapping[str, Callable[[], Any]] = {
    "None": lambda: None,
    "NaN": lambda: float("nan"),
    "NaT": lambda: pd.NaT,
    "pd.NA": lambda: pd.NA,
    "text": lambda: "surprise",
    "empty text": lambda: "",
    "blank": lambda: " \t ",
    "text NaN": lambda: "NaN",
    "text NULL": lambda: "NULL",
    "a million characters": lambda: "m" * 1_000_000,
    "lone surrogate": lambda: "\ud800",
    "NUL": lambda: "a\x00b",
    "newline": lambda: "a\nb",
    "quote": lambda: "a'\";--",
    "comma": lambda: "1,5",
    "other case": lambda: "A",
    "combining": lambda: "e\u0301",
    "right to left": lambda: "\u202eabc",
    "zero-padded": lambda: "007",
    "number as text": lambda: "1.5",
    "hexadecimal": lambda: "0x10",
    "underscored": lambda: "1_000",
    "Arabic digits": lambda: "\u0661\u0662",
    "str subclass": lambda: _Text("a"),
    "Enum": lambda: _Choice.A,
    "StrEnum": lambda: _TextChoice.A,
    "int subclass": lambda: _Whole(3),
    "True": lambda: True,
    "huge float": lambda: 1e308,
    "negative huge": lambda: -1e308,
    "subnormal": lambda: 5e-324,
    "minus zero": lambda: -0.0,
    "inf": lambda: float("inf"),
    "-inf": lambda: float("-inf"),
    "fraction": lambda: 1.5,
    "2**53+1": lambda: 2**53 + 1,
    "2**63-1": lambda: 2**63 - 1,
    "-2**63": lambda: -(2**63),
    "2**63": lambda: 2**63,
    "2**64": lambda: 2**64,
    "10**400": lambda: 10**400,
    "-1": lambda: -1,
    "numpy int8": lambda: np.int8(3),
    "numpy uint64": lambda: np.uint64(2**64 - 1),
    "numpy float16": lambda: np.float16(1.5),
    "numpy str": lambda: np.str_("a"),
    "numpy array": lambda: np.arange(3),
    "Decimal": lambda: Decimal("1.50"),
    "Decimal NaN": lambda: Decimal("sNaN"),
    "Fraction": lambda: Fraction(1, 3),
    "complex": lambda: 1 + 2j,
    "bytes": lambda: b"\xff\xfe",
    "bytearray": lambda: bytearray(b"a"),
    "memoryview": lambda: memoryview(b"a"),
    "list": lambda: [1, 2],
    "empty list": list,
    "dict": lambda: {"a": 1},
    "tuple": lambda: (1, 2),
    "set": lambda: {1},
    "date": lambda: dt.date(2026, 1, 5),
    "year 1": lambda: dt.datetime(1, 1, 1),  # noqa: DTZ001 -- a time without a zone is one of the odd ones
    "year 9999": lambda: dt.datetime(9999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
    "year 10000": lambda: np.datetime64("10000-01-01T00:00:00", "s"),
    "zoned time": lambda: dt.datetime(2026, 1, 5, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=45))),
    "time of day": lambda: dt.time(12, 0),
    "duration": lambda: dt.timedelta(days=1),
    "hostile object": _Hostile,
    "a type": lambda: int,
    "Ellipsis": lambda: ...,
}

LINES: Mapping[str, bytes] = {
    "a line with fewer fields": b"9,a",
    "a line with more fields": b"9,a,0.5,3,2026-01-05 00:00:00,more,and more",
    "an open quote": b'9,"a,0.5,3,2026-01-05 00:00:00',
    "a quote within": b'9,a"b"c,0.5,3,2026-01-05 00:00:00',
    "invalid UTF-8": b"9,\xff\xfe,0.5,3,2026-01-05 00:00:00",
    "Latin-1": b"9,\xe9,0.5,3,2026-01-05 00:00:00",
    "a NUL byte": b"9,a\x00b,0.5,3,2026-01-05 00:00:00",
    "an empty line": b"",
    "blanks": b"   ",
    "only separators": b",,,,",
    "a carriage return": b"9,a\rb,0.5,3,2026-01-05 00:00:00",
    "a byte order mark": b"\xef\xbb\xbf9,a,0.5,3,2026-01-05 00:00:00",
    "the header again": b"person,k,x,n,t",
    "a comment": b"# nothing",
    "a field of a megabyte": b"9," + b"m" * 1_000_000 + b",0.5,3,2026-01-05 00:00:00",
    "a line of three megabytes": b"9,a,0.5,3," + b"m" * 3_000_000,
}


_OTHERS = frozenset(
    {"an empty line", "blanks", "only separators", "the header again", "a comment", "a byte order mark"}
)
"""Lines that are not about person 9."""


@final
@dataclass(frozen=True, slots=True)
class OddRow:
    """Rows that one more person brings: for each, what it holds instead of the ordinary; or a line of text."""

    name: str
    rows: tuple[Mapping[str, Any], ...] = ()
    line: bytes | None = None
    wholly: bool = True
    """Whether each value must be expressed; otherwise those that a source cannot hold stay ordinary."""
    apart: bool = False
    """Whether it is about somebody else than all the other odd rows are, who are one person."""


def odd_rows(columns: tuple[str, ...], person: str | None) -> list[OddRow]:
    """Every odd row of a table with these columns: the person odd, and everything else odd."""
    others = tuple(name for name in columns if name != person)
    places: list[tuple[str, tuple[str, ...]]] = [("all but the person", others)]
    if person is not None:
        places.append((person, (person,)))
    found = [
        OddRow(f"{what} in {where}", ({name: make() for name in names},), wholly=False, apart=person in names)
        for what, make in VALUES.items()
        for where, names in places
    ]
    found += [OddRow(name, line=line, apart=name in _OTHERS) for name, line in LINES.items()]
    found += [
        OddRow("an ordinary row", ({},)),
        OddRow("a duplicate of a row", ({"duplicate": True},), apart=True),
        OddRow("one person with 1000 rows", tuple({"n": i} if "n" in columns else {} for i in range(1000))),
        OddRow("a new category in 50 rows", tuple({"k": "elsewhere"} if "k" in columns else {} for _ in range(50))),
    ]
    return found

r"""How a column that is declared to be of another kind is read, alike in every engine that has no words of its own.

How numbers, dates and moments are written, where an engine must be told before it reads a text.

Patterns are those of DuckDB as far as people write such texts: decimal numbers with an exponent, dates as year, month,
day, times of a day after them. They are regular expressions that PostgreSQL and Java both read, but for ``\v``.
"""

from functools import cache

import duckdb
from sqlglot import exp

from defocus.engines.schema import CANONICAL, Kind
from defocus.errors import SourceError

__all__ = [
    "CLOCK",
    "DATE",
    "DAY_FIRST",
    "INFINITE",
    "LONGEST_NUMBER",
    "MOMENT",
    "NO",
    "NUMBER",
    "YES",
    "cased",
    "declared",
    "of_kind",
    "within",
]


_WRITTEN = (Kind.INTEGER, Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP)
"""Kinds whose text is the same in every engine."""
_WAYS = {
    *((Kind.TEXT, kind) for kind in CANONICAL),
    *((kind, Kind.TEXT) for kind in _WRITTEN),
    (Kind.NUMBER, Kind.INTEGER),
    (Kind.INTEGER, Kind.NUMBER),
    (Kind.DATE, Kind.TIMESTAMP),
    (Kind.TIMESTAMP, Kind.DATE),
}
"""From which kind to which a column can be declared."""


def declared(value: exp.Expression, name: str, own: Kind, kind: Kind) -> exp.Expression:
    """A value of one kind, in its one type, read as another kind: NULL where it cannot be."""
    if (own, kind) not in _WAYS:
        raise SourceError(
            f"{name!r:.60} holds values of kind {own}, which cannot be read as {kind} alike in every engine.",
            fix="declare another kind, or make a view of the table with a column of that kind.",
        )
    sure = own is not Kind.TEXT and kind is not Kind.INTEGER
    to = exp.DataType.build(CANONICAL[kind])
    return within(exp.Cast(this=value, to=to) if sure else exp.TryCast(this=value, to=to), kind)


def of_kind(value: exp.Expression, kind: Kind) -> exp.Expression:
    """A value in the one type of its kind, by a cast that cannot fail."""
    return exp.Cast(this=value, to=exp.DataType.build(CANONICAL[kind]))


def within(value: exp.Expression, kind: Kind) -> exp.Expression:
    """A date or moment, if it lies in the years 1 to 9999; anything else as it is."""
    if kind not in {Kind.DATE, Kind.TIMESTAMP}:
        return value
    ends = ("0001-01-01", "9999-12-31") if kind is Kind.DATE else ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999")
    low, high = (of_kind(exp.Literal.string(end), kind) for end in ends)
    known = exp.Between(this=value.copy(), low=low, high=high)
    return exp.Case(ifs=[exp.If(this=known, true=value)])


_SPACE = r"[ \t\n\v\f\r]*"
NUMBER = rf"^{_SPACE}[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{{1,3}})?{_SPACE}$"
LONGEST_NUMBER = 1000
"""Texts of more characters are no numbers."""
INFINITE = rf"^{_SPACE}[+-]?(inf|infinity){_SPACE}$"
_DAY = r"([0-9]{1,5})([-/ \\])([0-9]{1,2})\2([0-9]{1,2})"
CLOCK = r"([0-9]{1,2}):([0-9]{1,2})(:([0-9]{1,2})([.]([0-9]*))?)?"
"""A time of day: hours, minutes, seconds (fourth) and their fraction (sixth)."""
DAY_FIRST = rf"^{_SPACE}{_DAY}"
"""What begins with a day: year, month (third), day (fourth)."""
_TIME = rf"[ T]{_SPACE}{CLOCK}( ?(Z|UTC|[+-][0-9]{{2}}(:?[0-9]{{2}})?))?"
DATE = rf"^{_SPACE}{_DAY}(|{_TIME}){_SPACE}$"
MOMENT = rf"^(?:{_DAY}|{_SPACE}{_DAY.replace(chr(92) + '2', chr(92) + '6')}{_TIME}{_SPACE})$"
YES, NO = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")


_SURROGATES = range(0xD800, 0xE000)


@cache
def cased(function: str) -> tuple[str, str]:
    """All characters that LOWER or UPPER changes, and what each becomes.

    Other engines know rules for whole words, by which a text may grow and its last letter matters: Σ is σ, but ς at
    the end of a word. One character for one character is what all engines can do.

    >>> before, after = cased("LOWER")
    >>> after[before.index("É")], len(before) == len(after)
    ('é', True)
    """
    assert function in {"LOWER", "UPPER"}  # noqa: S101  # what the core asks for
    query = f"SELECT chr(i), {function}(chr(i)) FROM (SELECT unnest($1) AS i) WHERE {function}(chr(i)) <> chr(i)"  # noqa: S608  # one of two words
    points = [i for i in range(1, 0x110000) if i not in _SURROGATES and _changes(chr(i), function)]
    with duckdb.connect(config={"threads": 1}) as connection:
        pairs = connection.execute(query, [points]).fetchall()
    single = [(before, after) for before, after in pairs if len(after) == 1]
    return "".join(before for before, _ in single), "".join(after for _, after in single)


def _changes(character: str, function: str) -> bool:
    """Whether Python, which knows at least as much of Unicode, would change it; asking about all takes long."""
    return (character.lower() if function == "LOWER" else character.upper()) != character

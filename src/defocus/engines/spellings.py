r"""How numbers, dates and moments are written, where an engine must be told before it reads a text.

Patterns are those of DuckDB as far as people write such texts: decimal numbers with an exponent, dates as year, month,
day, times of a day after them. They are regular expressions that PostgreSQL and Java both read, but for ``\v``.
"""

__all__ = ["CLOCK", "DATE", "DAY_FIRST", "INFINITE", "LONGEST_NUMBER", "MOMENT", "NO", "NUMBER", "YES"]

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

"""Numbers, dates and moments read from text in Spark, whose own casts know suffixes and forms that others do not.

The patterns are those of ``spellings.py``, so that all engines read the same texts. Everything here is NULL where it
cannot be read, and none of it can fail.
"""

from sqlglot import exp

from defocus.engines.spellings import (
    CLOCK,
    DATE,
    DAY_FIRST,
    INFINITE,
    LONGEST_NUMBER,
    MOMENT,
    NO,
    NUMBER,
    YES,
)
from defocus.engines.templates import fill_spark as fill
from defocus.engines.templates import hoisted

__all__ = ["to_boolean", "to_date", "to_float", "to_integer", "to_timestamp"]

_IS_NUMBER = f"LENGTH(a) <= {LONGEST_NUMBER} AND a RLIKE p"
_WHOLE = "TRY_CAST(REGEXP_EXTRACT(a, p, {}) AS INT)"
_DIGITS = "LPAD(CAST({} AS STRING), {}, '0')"
_DAY = f"CONCAT({_DIGITS.format('y', 4)}, '-', {_DIGITS.format('m', 2)}, '-', {_DIGITS.format('d', 2)})"
_TIME = f"CONCAT({_DIGITS.format('h', 2)}, ':', {_DIGITS.format('i', 2)}, ':', {_DIGITS.format('s', 2)}, '.', u)"


def to_integer(x: exp.Expression) -> exp.Expression:
    """The whole number nearest to the one that a text says, halves away from zero."""
    read = "TRY_CAST(TRY_CAST(a AS DECIMAL(38, 0)) AS BIGINT)"
    return fill(f"CASE WHEN {_IS_NUMBER} THEN {read} END", a=x, p=_pattern(NUMBER))


def to_float(x: exp.Expression) -> exp.Expression:
    """The number that a text says."""
    infinity = "CASE WHEN CONTAINS(a, '-') THEN CAST('-Infinity' AS DOUBLE) ELSE CAST('Infinity' AS DOUBLE) END"
    template = f"CASE WHEN {_IS_NUMBER} THEN TRY_CAST(a AS DOUBLE) WHEN a RLIKE q THEN {infinity} END"
    return fill(template, a=x, p=_pattern(NUMBER), q=_pattern(f"(?i){INFINITE}"))


def to_boolean(x: exp.Expression) -> exp.Expression:
    """Whether a text says yes or no."""
    yes, no = (", ".join(f"'{word}'" for word in words) for words in (YES, NO))
    return fill(f"CASE WHEN LOWER(a) IN ({yes}) THEN TRUE WHEN LOWER(a) IN ({no}) THEN FALSE END", a=x)


def to_date(x: exp.Expression) -> exp.Expression:
    """The date that a text says, if there is such a day in the years 1 to 9999."""
    return _moment(x, DATE, f"TRY_CAST({_DAY} AS DATE)")


def to_timestamp(x: exp.Expression) -> exp.Expression:
    """The moment that a text says; what it says of a zone is passed over, as DuckDB does."""
    midnight = f"CAST(DATE_ADD(TRY_CAST({_DAY} AS DATE), 1) AS TIMESTAMP_NTZ)"
    read = f"TRY_CAST(CONCAT({_DAY}, ' ', {_TIME}) AS TIMESTAMP_NTZ)"
    return _moment(x, MOMENT, f"CASE WHEN h = 24 THEN {midnight} ELSE {read} END")


def _moment(x: exp.Expression, pattern: str, wanted: str) -> exp.Expression:
    """The parts of a text of a known form, checked one by one, then the moment they make."""
    text, day, clock = hoisted("a"), _pattern(DAY_FIRST), _pattern(CLOCK)
    parts = {name: fill(_WHOLE.format(group), a=text, p=day) for name, group in (("y", 1), ("m", 3), ("d", 4))}
    times = {"h": 1, "i": 2, "s": 4}
    parts |= {name: fill(f"COALESCE({_WHOLE.format(group)}, 0)", a=text, p=clock) for name, group in times.items()}
    parts["u"] = fill("RPAD(SUBSTRING(REGEXP_EXTRACT(a, p, 6), 1, 6), 6, '0')", a=text, p=clock)
    last = "(h = 24 AND i = 0 AND s = 0 AND u = '000000')"
    made = fill(
        f"CASE WHEN y BETWEEN 1 AND 9999 AND (h <= 23 OR {last}) AND i <= 59 AND s <= 59 THEN {wanted} END",
        alone=True,
        later=None,
        **parts,
    )
    return fill("CASE WHEN a RLIKE p THEN v END", alone=True, a=x, later={"v": made, "p": _pattern(pattern)})


def _pattern(text: str) -> exp.Expression:
    r"""As Java writes it, to which ``\v`` is a line break of any kind, one of which may follow ``$``."""
    whole = text.removesuffix("$") + (r"\z" if text.endswith("$") else "")
    return exp.Literal.string(whole.replace(r"\v", r"\x0B"))

"""Literals as they are written in an expression: numbers, dates, moments."""

import math
import re
from datetime import date, datetime

from sqlglot import exp

from defocus.engines.kinds import Kind
from defocus.errors import InvalidParameterError
from defocus.tables.expressions.terms import Term, of

__all__ = ["literal", "moment", "negated"]

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?", re.ASCII)
_WHOLE = re.compile(r"0*(\d{1,20})", re.ASCII)


def literal(node: exp.Literal) -> Term:
    """A text or a number; numbers with a point or an exponent are floats."""
    return of(node.name, Kind.TEXT) if node.is_string else _number(node.name, negative=False)


def negated(node: exp.Literal) -> Term:
    """A number after a minus sign, so that the smallest integer can be written."""
    return _number(node.name, negative=True)


def moment(text: str, kind: Kind) -> Term:
    """A date or a time written as text."""
    written = text.strip(" ")
    try:
        if _DATE.fullmatch(written):
            day = date.fromisoformat(written)
            return of(day if kind is Kind.DATE else datetime(day.year, day.month, day.day), kind)  # noqa: DTZ001 zoneless
        if kind is Kind.TIMESTAMP and _MOMENT.fullmatch(written):
            return of(datetime.fromisoformat(written), kind)
    except ValueError:
        pass
    example = "'2024-02-29'" if kind is Kind.DATE else "'2024-02-29 13:45:00'"
    raise InvalidParameterError(
        f"{text[:40]!r} is not a {kind} of the years 1 to 9999.",
        fix=f"write it as {example}, without a time zone (UTC is meant).",
    )


def _number(digits: str, *, negative: bool) -> Term:
    if whole := _WHOLE.fullmatch(digits):
        return of(-int(whole[1]) if negative else int(whole[1]), Kind.INTEGER)
    try:
        value = math.inf if digits.isdigit() else float(digits)
    except ValueError:
        value = math.inf
    if math.isinf(value):
        raise InvalidParameterError(
            f"The number {digits[:40]} is beyond 64-bit integers and floats.", fix="write it with fewer digits."
        )
    return of(-value if negative else value, Kind.NUMBER)

"""Writing a question's SQL once before it is charged, so that no charge is lost to SQL that cannot be written.

SQL is written and read by recursion, and Python bounds how deep calls may nest, those of the caller included. So a
question of many layers that is asked from deep within other calls could fail after the charge. It is refused before.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from defocus.engines.syntax import column, named
from defocus.errors import InvalidParameterError
from defocus.tables.aggregates import Aggregate, Distinct, Histogram, Quantile, Statistic
from defocus.tables.rows import Rows

__all__ = ["rehearse", "texts"]

_T = TypeVar("_T")
_LEADING = 60
"""More calls than lead from here to where expressions are read and SQL is written."""
_AROUND = 250
"""How many calls deeper SQL is written here: more than those, and what writing takes for the layers that measuring
nests around rows and values, a dozen calls for each."""


def rehearse(rows: Rows, by: Sequence[str], wanted: Sequence[str]) -> None:
    """Write the part of every statement that may be deep: the rows, their keys and the expressions that are measured.

    Guarantee:
        If it can be written here, so many calls deeper, every statement of the release can: what those nest around it
        is of a fixed depth. Looks at no row, and sends nothing.
    """
    try:
        values = _deeper(_LEADING, lambda: [rows.values(text).sql for text in wanted])
        select = rows.select([*map(column, by), *(named(value, f"v{i}") for i, value in enumerate(values))])
        _deeper(_AROUND, lambda: rows.engine.written(select))
        written = True
    except (RecursionError, InvalidParameterError):  # the expressions were read before, so only depth can be amiss
        written = False
    if not written:
        raise InvalidParameterError(
            "This question is asked from so deep within other calls that its SQL might not be written; nothing was"
            " charged.",
            fix="ask it from a place with fewer nested calls, ask a smaller question, or raise sys.setrecursionlimit.",
        )


def texts(aggregates: Sequence[tuple[str, Aggregate]]) -> list[str]:
    """The expressions that aggregates are about, each once."""
    found: list[str] = []
    for _, aggregate in aggregates:
        if isinstance(aggregate, Statistic):
            found += [argument.text for argument in aggregate.arguments]
        elif isinstance(aggregate, Quantile):
            found.append(aggregate.argument.text)
        elif isinstance(aggregate, Distinct | Histogram):
            found.append(aggregate.text)
    return list(dict.fromkeys(found))


def _deeper(calls: int, work: Callable[[], _T]) -> _T:
    """What the work gives so many calls deeper."""
    return _deeper(calls - 1, work) if calls else work()

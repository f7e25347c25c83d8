"""A typed piece of SQL, with what is known about the values it can take."""

from dataclasses import dataclass, replace
from typing import Any, final

from sqlglot import exp

from defocus.engines.kinds import Kind, Value
from defocus.errors import UnsupportedSqlError
from defocus.tables.expressions.constants import as_kind, constant

__all__ = ["Term", "known", "made", "null", "of"]

_MOST_WORK = 2_000
_MOST_TEXTS, _MOST_EXTRA = 64, 16_384
_MOST_BETWEEN = 64 * _MOST_TEXTS, 8 * _MOST_EXTRA


@final
@dataclass(frozen=True, slots=True)
class Term:
    """SQL that has a value of ``kind`` on every row.

    ``nan`` and ``infinite`` say whether a float may still be NaN or infinite: guards are placed where they
    are needed only. ``work`` counts nodes after an engine has written out what stands in two places, as it does
    for NULLIF: nesting could double it at each level. A text is at most ``texts`` times the longest text that the
    data has in the row plus ``extra`` bytes, also where it is made of derived columns, and ``between`` bounds all
    texts made on the way together, so that no row makes an engine run out of memory. ``fixed`` terms are
    constants, and ``value`` is theirs. ``bare`` is a column without its guard, and ``where`` a cheaper condition
    that is true on the same rows; see :mod:`defocus.tables.expressions.filters`.
    """

    kind: Kind | None
    sql: exp.Expression
    columns: frozenset[str] = frozenset()
    work: int = 1
    nan: bool = False
    infinite: bool = False
    texts: int = 0
    extra: int = 0
    between: tuple[int, int] = (0, 0)
    fixed: bool = False
    value: Value = None
    bare: exp.Expression | None = None
    where: exp.Expression | None = None


def of(value: Any, kind: Kind) -> Term:
    """A constant."""
    kept = as_kind(value, kind)
    extra = len(kept.encode()) if isinstance(kept, str) else 0
    return Term(kind, constant(kept, kind), extra=extra, fixed=True, value=kept)


def null() -> Term:
    """NULL, whose kind is that of its place."""
    return Term(None, exp.Null(), fixed=True)


def made(
    kind: Kind,
    sql: exp.Expression,
    *parts: Term,
    twice: Term | None = None,
    nan: bool = False,
    infinite: bool = False,
    texts: int | None = None,
    extra: int | None = None,
) -> Term:
    """A term built of parts, within limits; ``twice`` is a part that stands in a second place.

    The sizes of texts are those of the longest part, unless given.
    """
    textual = [part for part in parts if kind is Kind.TEXT]
    if texts is None:
        texts = max((part.texts for part in textual), default=0)
    if extra is None:
        extra = max((part.extra for part in textual), default=0)
    term = Term(
        kind,
        sql,
        columns=frozenset().union(*(part.columns for part in parts)),
        work=1 + sum(part.work for part in parts) + (twice.work if twice else 0),
        nan=nan,
        infinite=infinite,
        texts=texts,
        extra=extra,
        between=(texts + sum(part.between[0] for part in parts), extra + sum(part.between[1] for part in parts)),
    )
    if term.work > _MOST_WORK:
        raise UnsupportedSqlError(
            "An expression of so many steps",
            why="guards against failing rows double at each level of nesting",
            fix="split it: filter with several where() calls and name parts with derive().",
        )
    if term.texts > _MOST_TEXTS or term.extra > _MOST_EXTRA:
        raise UnsupportedSqlError(
            "A text that can grow so long",
            why=f"with all it is made of, it may exceed {_MOST_TEXTS} times a text of the row and {_MOST_EXTRA} bytes",
            fix="use shorter replacements and fewer concatenations.",
        )
    if term.between[0] > _MOST_BETWEEN[0] or term.between[1] > _MOST_BETWEEN[1]:
        raise UnsupportedSqlError(
            "An expression of so many long texts",
            why="all that are made for one row may together exceed memory",
            fix="use fewer replacements and concatenations, or shorter ones.",
        )
    return term


def known(term: Term, **facts: Any) -> Term:
    """The term with facts that its parts do not show."""
    return replace(term, **facts)

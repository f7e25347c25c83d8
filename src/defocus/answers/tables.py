"""Answers as tables: for terminals, notebooks and Arrow.

One text for every value. Keys of answers are written by strangers, and not each of them has a text of its own.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import pyarrow as pa
from rich.cells import cell_len, set_cell_size

from defocus.answers.columns import CLOSED, SUFFIXES, AnswerColumn, brief, decimals, rounded, written
from defocus.privacy.html import html_lines, html_table

__all__ = [
    "ERRORS",
    "PAGE",
    "ROWS",
    "Cells",
    "Keys",
    "arrow",
    "arrow_key",
    "cells",
    "html_page",
    "kinds_of_error",
    "labels",
    "line",
    "notes",
    "plain",
    "shortened",
    "spelt",
    "taken",
    "text_facts",
    "text_page",
    "text_table",
    "visible",
]


_LONGEST = 3321
"""Whole numbers of more bits, about a thousand digits, are spelt in hexadecimal: Python refuses long ones."""


def spelt(value: Any) -> str:
    r"""The value as text that every file, page and terminal can hold. No value can make this fail.

    Halves of characters are spelt out, and so are whole numbers of a thousand digits and more.

    >>> spelt("ada"), spelt(12), spelt("\ud800"), spelt((1, "a")), spelt(-(16**1000))[:6]
    ('ada', '12', '\\ud800', "(1, 'a')", '-0x100')
    """
    return _text(value).encode("utf-8", "backslashreplace").decode()


def _text(value: Any) -> str:
    if isinstance(value, str):
        return str.__str__(value)
    if type(value) is int and value.bit_length() > _LONGEST:
        return hex(value)
    try:
        return str(value)
    except Exception:  # noqa: BLE001  # an object may refuse in any way
        if isinstance(value, Fraction):
            return f"{_text(value.numerator)}/{_text(value.denominator)}"
        return f"({', '.join(map(_text, value))})" if type(value) is tuple else f"<{type(value).__name__}>"


Cells: TypeAlias = tuple[Sequence[str], Sequence[Sequence[str]], Sequence[bool]]
"""Heads, rows, and which columns end together on the right."""

_WIDEST = 40
ROWS, PAGE = 30, 1000
"""How many rows a terminal shows, and a page."""


def visible(text: object) -> str:
    r"""The text with everything that could move a cursor or turn the reading direction spelt out.

    >>> visible("erase\x1b[2J and \u202eturn")
    'erase\\x1b[2J and \\u202eturn'
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in spelt(text))


def plain(value: Any, *, widest: int = _WIDEST) -> str:
    r"""A key as one line of visible text, cut if it is long; what is missing or empty is told.

    >>> plain("ward\x1b[2J\u202e"), plain(None), plain("")
    ('ward\\x1b[2J\\u202e', 'NULL', "''")
    """
    if value is None:
        return "NULL"
    text = spelt(value)
    seen = visible(text if text.strip() else repr(text))
    return seen if len(seen) <= widest else f"{seen[: widest - 1]}…"


def line(text: str) -> str:
    """A sentence as one line, with nothing left in it that acts on a terminal."""
    return plain(text, widest=20_000)


def shortened(count: int, *, most: int = ROWS) -> tuple[list[int], int]:
    """Which of ``count`` rows to show, the first and the last, and how many are left out between them.

    >>> shortened(5), shortened(1000, most=4)
    (([0, 1, 2, 3, 4], 0), ([0, 1, 998, 999], 996))
    """
    if count <= most:
        return list(range(count)), 0
    half = most // 2
    return [*range(half), *range(count - (most - half), count)], count - most


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[bool]) -> str:
    """A table in fixed width, aware of characters that take two cells; columns marked ``right`` end together."""
    lines = [list(head), *map(list, rows)]
    widths = [max(cell_len(cells[i]) for cells in lines) for i in range(len(head))]
    lines.insert(1, ["─" * width for width in widths])

    def cell(text: str, i: int) -> str:
        return " " * (widths[i] - cell_len(text)) + text if right[i] else set_cell_size(text, widths[i])

    return "\n".join("  ".join(cell(text, i) for i, text in enumerate(cells)).rstrip() for cells in lines)


def text_facts(facts: Mapping[str, Sequence[str]]) -> str:
    """Names with one or more sentences each, the sentences below each other."""
    width = max(map(len, facts), default=0) + 2
    return "\n".join(
        f"{name + ':' if i == 0 else '':<{width}}{line(sentence)}"
        for name, sentences in facts.items()
        for i, sentence in enumerate(sentences)
    )


def text_page(cells: Cells, notes: Sequence[str], *, title: str | None = None) -> str:
    """A title, a table and what is to be known beside it, for a terminal."""
    head, rows, right = cells
    above = [] if title is None else [line(title)]
    return "\n".join([*above, text_table(head, rows, right=right), *map(line, notes)])


def html_page(cells: Cells, notes: Sequence[str], *, title: str | None = None, heads: int = 1) -> str:
    """The same for a page, escaped; the first ``heads`` columns say what a row is about."""
    head, rows, right = cells
    about = "" if title is None else line(title)
    return f"<div>{html_table(head, rows, right=right, caption=about, heads=heads)}{html_lines(notes)}</div>"


Keys: TypeAlias = Mapping[str, Any]
"""What each entry is about, by name: ranges, lists or Arrow arrays. Nothing for an answer without groups."""
ERRORS = "defocus.errors"
"""Where the metadata of a table says what its columns of errors are."""


def arrow(keys: Keys, columns: Sequence[AnswerColumn], threshold: float | None, *, exact: bool) -> pa.Table:
    """Keys, then value, error, low and high of each column, and its flags if there is a threshold.

    Rounded as it is shown if not ``exact``. The metadata says what the errors are.
    """
    made = {name: arrow_key(values) for name, values in keys.items()}
    for column in columns:
        if exact:
            parts = [pa.array(part, pa.float64()) for part in (column.values, column.errors, column.low, column.high)]
        else:
            value, low, high = (_rounded(part, column) for part in (column.values, column.low, column.high))
            errors = rounded(column.errors, [decimals(error) for error in column.spread.tolist()])
            parts = [value, pa.array(errors, pa.float64()), low, high]
        if not column.error_of:
            made[column.name] = parts[0]
            continue
        made |= {f"{column.name}{suffix}": part for suffix, part in zip(SUFFIXES, parts, strict=False)}
        if threshold is not None:
            made[f"{column.name}_reliable"] = pa.array(column.reliable(threshold), pa.bool_())
        if column.limits != CLOSED:
            made[f"{column.name}_open"] = pa.array(column.opened, pa.string())
    told = "\n".join(f"{name}: {kind}" for name, kind in kinds_of_error(columns).items())
    return pa.table(made).replace_schema_metadata({ERRORS: told.encode()})


def kinds_of_error(columns: Sequence[AnswerColumn]) -> dict[str, str]:
    """What x_error means for each column x: not all rooms state the same."""
    return {
        f"{column.name}_error": "expected absolute error" if column.absolute else "standard error"
        for column in columns
        if column.error_of
    }


def labels(keys: Keys, chosen: Sequence[int], *, whole: str = "all") -> list[str]:
    """One line for each of the chosen entries; what the ``whole`` is called where there are no keys."""
    return [", ".join(plain(part, widest=24) for part in row) or whole for row in _rows(keys, chosen)]


def cells(
    keys: Keys,
    columns: Sequence[AnswerColumn],
    threshold: float | None = None,
    *,
    interval: str = "95 % interval",
    most: int = ROWS,
) -> Cells:
    """What people read, shortened if long; a star marks a cell whose noise is above the threshold, if there is one.

    A question mark stands where no error is known in units of the value. Each number is rounded by its own noise.
    ``interval`` is what stands above the intervals, which may hold something else than the truth.
    """
    room = "" if threshold is None else "  "
    heads = [plain(name) for name in keys]
    for column in columns:
        heads += [f"{plain(column.name)}{room}", interval] if column.error_of else [plain(column.name)]
    right = [_is_integer(values) for values in keys.values()] + [True] * (len(heads) - len(keys))
    shown, left_out = shortened(len(columns[0].values), most=most)
    body = [[plain(part) for part in row] for row in _rows(keys, shown)]
    for column in columns:
        part = column.taken(shown)
        if not column.error_of:
            for line, value in zip(body, part.values, strict=True):
                line.append(brief(value))
            continue
        flags = [None] * len(shown) if threshold is None else part.reliable(threshold)
        marks = [room if threshold is None else _MARKS[fine] for fine in flags]
        for line, value, low, high, places, mark, opened in zip(
            body, part.values, part.low, part.high, part.places, marks, part.opened, strict=True
        ):
            line += [written(value, places) + mark, f"{_interval(low, high, places, column.rank)}{_OPEN[opened]}"]
    if left_out:
        body.insert(len(shown) // 2, ["⋮"] * len(heads))
    return heads, body, right


def notes(
    columns: Sequence[AnswerColumn],
    threshold: float | None,
    more: Sequence[str],
    *,
    things: str = "groups",
    most: int = ROWS,
) -> list[str]:
    """What to write below the cells: what was left out, what the star means, and ``more``."""
    count = len(columns[0].values)
    said = []
    if left_out := shortened(count, most=most)[1]:
        said.append(f"{count} {things}, {left_out} of them not shown")
    if threshold is not None and any(False in column.reliable(threshold) for column in columns):
        said.append(f"* the noise is more than {100 * threshold:g} % of the value")
    if threshold is not None:
        unsure = (column for column in columns if column.error_of and None in column.reliable(threshold))
        said += [f"? {column.name} has no interval{_ASK if column.rank else ''}: {column.how}" for column in unsure]
    return [*said, *more]


_ASK = " in values, unless intervals=True is asked for"
_MARKS = {True: "  ", False: " *", None: " ?"}
"""What stands behind a number that is reliable, that is not, and of which it is not known."""


_OPEN = {None: "", "above": " or more", "below": " or less", "both": " or beyond"}
"""What stands behind an interval whose ends are open."""


def _interval(low: float, high: float, places: int | None, rank: float | None) -> str:
    if math.isnan(low) and math.isnan(high):
        return "–" if rank is None else f"± {brief(rank)} rows in rank"
    if math.isfinite(low) and high == math.inf:
        return f"{written(low, places)} or more"
    return f"{written(low, places)} to {written(high, places)}"


def arrow_key(values: Any) -> Any:
    """Keys as they are where Arrow has a type for all of them, else as text."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, range):
        return pa.array(values, pa.int64())
    listed = list(values)
    try:
        made = pa.array(listed)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        made = None
    if made is None or pa.types.is_nested(made.type) or _mixed(made, listed):
        return pa.array([None if value is None else spelt(value) for value in listed], pa.string())
    return made


def taken(values: Any, rows: Sequence[int]) -> Any:
    """Some of the values of a key, in the order given."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values.take(pa.array(rows, pa.int64()))
    return [values[i] for i in rows]


def _mixed(made: pa.Array, listed: Sequence[Any]) -> bool:
    """Whether Arrow took text for bytes, because some of it is."""
    return bool(pa.types.is_binary(made.type) and any(isinstance(value, str) for value in listed))


def _is_integer(values: Any) -> bool:
    return isinstance(values, range) or bool(pa.types.is_integer(getattr(values, "type", pa.null())))


def _rows(keys: Keys, chosen: Sequence[int]) -> list[tuple[Any, ...]]:
    return [tuple(_value(values[i]) for values in keys.values()) for i in chosen]


def _value(value: Any) -> Any:
    return value.as_py() if isinstance(value, pa.Scalar) else value


def _rounded(part: Any, column: AnswerColumn) -> pa.Array:
    """Rounded as it is shown; counts as integers."""
    if not column.integral:
        return pa.array(rounded(part, column.places), pa.float64())
    return pa.array([round(x) if abs(x) < 2**63 else None for x in part.tolist()], pa.int64())

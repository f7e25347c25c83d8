"""What the commands print: text that is safe to show, numbers rounded to the safe side, tables, JSON, errors."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from defocus.answers.tables import visible as plain
from defocus.cli.remedies import in_options
from defocus.errors import DefocusError
from defocus.privacy.numbers import at_least, at_most

__all__ = ["above", "below", "console", "facts", "plain", "table", "tell", "to_json"]

_LAST_BITS = 2.0**-46


@final
class _Screen(Console):
    """A console that says so when it cannot write."""

    def print(self, *things: Any, **how: Any) -> None:
        with _writing():
            super().print(*things, **how)


def console(*, error: bool = False) -> Console:
    """A console that takes text literally: no markup, no emoji codes, colour only on a terminal."""
    return _Screen(stderr=error, markup=False, highlight=False, emoji=False)


def above(value: float, digits: int = 6) -> str:
    """The least number of so many digits that is not below ``value``: for upper bounds.

    A number that is off by the last bits of a float only is shown as what it stands for; JSON has all digits.

    >>> above(1.82823701), above(0.1 + 0.2), above(float("inf"))
    ('1.82824', '0.3', 'inf')
    """
    return at_least(value, digits, forgiving=_LAST_BITS)


def below(value: float, digits: int = 6) -> str:
    """The largest number of so many digits that is not above ``value``: for lower bounds.

    >>> below(1.82823999)
    '1.82823'
    """
    return at_most(value, digits, forgiving=_LAST_BITS)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Sequence[str] = ()) -> Table:
    """A table without colour of its own; the columns in ``numbers`` are set to the right."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        right = column in numbers
        made.add_column(Text(plain(column)), justify="right" if right else "left", overflow="fold", no_wrap=right)
    for row in rows:
        made.add_row(*(Text(plain(cell)) for cell in row))
    return made


def facts(rows: Iterable[tuple[str, object]]) -> Table:
    """Names and what they stand for, one below the other."""
    made = table(("", ""), rows)
    made.show_header = False
    made.box = None
    return made


def to_json(value: Any) -> None:
    """Print strict JSON and nothing else."""
    text = json.dumps(value, indent=2, ensure_ascii=True, allow_nan=False)
    with _writing():
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def tell(error: DefocusError, options: Mapping[str, str] | None = None) -> None:
    """Print a refusal: what happened in red, then how to mend it with the command's ``options``. Never a traceback."""
    known = options or {}
    what = "\n".join(plain(in_options(line, known)) for line in error.what.split("\n"))
    screen = console(error=True)
    screen.print(Text(what, style="red"), soft_wrap=True)
    screen.print(
        Text("To fix: ", style="bold") + Text(plain(in_options(error.fix, known)), style="not bold"), soft_wrap=True
    )


@contextmanager
def _writing() -> Iterator[None]:
    """Whatever fails in here is the output, and is told as such."""
    try:
        yield
    except OSError as error:
        raise DefocusError(
            f"The output could not be written: {error.strerror or 'the system refused'}.",
            fix="free some space, or write it elsewhere.",
        ) from error

"""What the commands print: text that is safe to show, numbers rounded to the safe side, tables, JSON, errors."""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from defocus.answers.tables import visible as plain
from defocus.errors import DefocusError, InvalidParameterError
from defocus.privacy.numbers import at_least, at_most

__all__ = ["above", "below", "console", "facts", "in_options", "plain", "table", "tell", "to_json"]

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
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        right = column in numbers
        drawn.add_column(Text(plain(column)), justify="right" if right else "left", overflow="fold", no_wrap=right)
    for row in rows:
        drawn.add_row(*(Text(plain(cell)) for cell in row))
    return drawn


def facts(rows: Iterable[tuple[str, object]]) -> Table:
    """Names and what they stand for, one below the other."""
    drawn = table(("", ""), rows)
    drawn.show_header = False
    drawn.box = None
    return drawn


def to_json(value: Any) -> None:
    """Print strict JSON and nothing else."""
    text = json.dumps(value, indent=2, ensure_ascii=True, allow_nan=False)
    with _writing():
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def tell(error: DefocusError, options: Mapping[str, str] | None = None) -> None:
    """Print a refusal: what happened in red, then how to mend it with the command's ``options``. Never a traceback."""
    names = options or {}
    what, fix = error.what, error.fix if error.command is None else error.command
    if isinstance(error, InvalidParameterError) and error.subject is not None:
        name, said, mended = error.subject
        what, fix = f"{names.get(name, name)} {said}", mended.format(names.get(name, name))
    screen = console(error=True)
    lines = "\n".join(plain(in_options(line, names)) for line in what.split("\n"))
    screen.print(Text(lines, style="red"), soft_wrap=True)
    screen.print(Text("To fix: ", style="bold") + Text(plain(in_options(fix, names)), style="not bold"), soft_wrap=True)


_SETTINGS = ("cap", "side", "at_most", "typical", "damping", "top", "every", "start", "end")
"""Parameters of questions, which a command with ``--set`` takes by it."""
_CODE = re.compile(
    r"""\bBudget\((?P<budget>[^()]*)\)
    | (?<![\w-])(?<!--set\ )(?P<name>[a-z_]+)=
      (?: (?:dp\.)?(?P<unit>[a-z]+)\((?:(?:max_degree|bound)=)?(?P<inside>[^()]*)\)
        | \((?P<pair>"[^"]*",\ "[^"]*")\)
        | \((?P<numbers>[\d.]+,\ [\d.]+)\)
        | (?P<list>\[…\])
        | "(?P<text>[^"]*)" | '(?P<quoted>[^']*)'
        | (?P<plain>…|[\w.+-]*\w) )?""",
    re.VERBOSE,
)
"""Arguments of a call in Python, and budgets."""


def in_options(text: str, options: Mapping[str, str]) -> str:
    """A text in which arguments of Python, such as ``delta=1e-7``, are the ``options`` of a command. Others stay.

    >>> known = {"epsilon": "--epsilon", "delta": "--delta", "bounds": "--bounds", "header": "--header"}
    >>> in_options('pass delta=, or bounds="find"; ask with delta=1e-7: keys=None finds them.', known)
    'pass --delta, or --bounds find; ask with --delta 1e-7: keys=None finds them.'
    >>> in_options("release it again with request='beds in May'.", {"request": "--request"})
    'release it again with --request "beds in May".'
    >>> in_options("did you mean Budget(0.9, 1e-06)?", known), in_options("of Budget(epsilon=1)", known)
    ('did you mean --epsilon 0.9 --delta 1e-06?', 'of Budget(epsilon=1)')
    """

    def written(argument: re.Match[str]) -> str:
        if argument["budget"] is not None:
            return _budget(argument["budget"], options) or argument[0]
        name, value = argument["name"], _value(argument)
        if name in _SETTINGS and "settings" in options:
            return f"--set {name}={value}" if value else f"--set {name}"
        option = options.get(f"no_{name}" if argument["plain"] == "False" else name)
        return argument[0] if option is None else f"{option} {value}".rstrip()

    return _CODE.sub(written, text)


def _budget(inside: str, options: Mapping[str, str]) -> str:
    """A total of a ledger where a command has one, else a price; nothing for a budget that is only shown."""
    names = ("budget", "budget_delta") if "budget" in options else ("epsilon", "delta")
    numbers = inside.split(", ")
    if "=" in inside or not all(name in options for name in names):
        return ""
    return " ".join(f"{options[name]} {number}" for name, number in zip(names, numbers, strict=False))


def _value(argument: re.Match[str]) -> str:
    """What is written after the option; nothing for a switch. ``dp.user("id")`` is named by its column."""
    if (kind := argument["unit"]) is not None:
        inside, name = argument["inside"], "event" if kind == "item" else kind
        return inside.strip('"') if kind == "user" else f"{name} --bound {inside}" if inside else name
    if argument["pair"] is not None:
        return argument["pair"].replace('"', "").replace(", ", ",")
    if argument["numbers"] is not None:
        return argument["numbers"].replace(",", "")
    if argument["list"] is not None:
        return "FILE"
    value = argument["text"] or argument["quoted"] or argument["plain"] or ""
    return "" if value in {"True", "False"} else f'"{value}"' if " " in value else value


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

"""A section of a dataset file, read key by key; whatever it refuses, it says where in the file that stands."""

import difflib
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn, TypeVar, final

from defocus.errors import DatasetFileError, DefocusError, Number, finite

__all__ = ["Section", "parse"]

_T = TypeVar("_T")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*'|\s*\.\s*)+?)\s*=""")
_FRACTION = re.compile(r"\d{1,300}/\d{1,300}")
_LONGEST = 10_000_000


@final
@dataclass(frozen=True, slots=True)
class Section:
    """The keys under one heading, the path to it, and the text it was read from."""

    values: dict[str, Any]
    path: tuple[str, ...]
    text: str

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def only(self, *known: str) -> "Section":
        """This section, if it has no other keys."""
        for key in self.values:
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1)
                hint = f"did you mean {near[0]}? It" if near else "it"
                self.refuse(key, f"{key!r:.60} means nothing", f"{hint} can be {', '.join(known)}.")
        return self

    def word(self, key: str, default: str | None = None) -> str | None:
        """Text on one line."""
        value = self.values.get(key, default)
        if value is not None and (not isinstance(value, str) or not value.strip() or _unprintable(value)):
            self.refuse(key, f"{key} must be text on one line", f'write {key} = "…".')
        return value

    def words(self, key: str) -> tuple[str, ...]:
        """Text, or a list of texts."""
        value = self.values.get(key, [])
        found = [value] if isinstance(value, str) else value
        good = isinstance(found, list) and all(isinstance(w, str) and w.strip() and not _unprintable(w) for w in found)
        if not good or len(set(found)) != len(found) or (key in self and not found):
            self.refuse(key, f"{key} must be one text or a list of different texts", f'write {key} = ["…", "…"].')
        return tuple(found)

    def flag(self, key: str) -> bool:
        """True or false."""
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            self.refuse(key, f"{key} must be true or false", f"write {key} = true.")
        return value

    def whole(self, key: str) -> int | None:
        """A whole number of at least one."""
        value = self.values.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**63):
            self.refuse(key, f"{key} must be a whole number of at least 1", f"write {key} = 5.")
        return value

    def number(self, key: str) -> Number | None:
        """A finite number, or a fraction written as text: "1/3"."""
        value = self.values.get(key)
        if isinstance(value, str) and _FRACTION.fullmatch(value) and int(value.partition("/")[2]):
            return Fraction(value)
        return None if value is None else self.checked(key, lambda: finite(key, value))

    def section(self, key: str) -> "Section":
        """A section inside this one; empty where there is none."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            self.refuse(key, f"{key} must be a section", f"write [{'.'.join((*self.path, key))}] on a line of its own.")
        return Section(value, (*self.path, key), self.text)

    def sections(self, key: str) -> Iterator[tuple[str, "Section"]]:
        """The named sections inside a section."""
        inside = self.section(key)
        return ((name, inside.section(name)) for name in inside.values)

    def checked(self, key: str | None, make: Callable[[], _T]) -> _T:
        """What ``make`` gives, or its refusal with the place in the file."""
        try:
            return make()
        except DefocusError as error:
            refused = error
        raise self._refusal(key, refused.what.rstrip("."), refused.fix)

    def refuse(self, key: str | None, what: str, fix: str) -> NoReturn:
        """Say what is wrong and where."""
        raise self._refusal(key, what, fix)

    def _refusal(self, key: str | None, what: str, fix: str) -> DatasetFileError:
        where = f"in [{'.'.join(self.path)}]" if self.path else "at the top"
        line = _line(self.text, self.path, key)
        return DatasetFileError(f"{what} ({where}{f', line {line}' if line else ''}).", fix=fix)


def parse(text: str) -> Section:
    """The whole file as one section."""
    if len(text) > _LONGEST:
        raise DatasetFileError("The dataset file is larger than 10 MB.", fix="name data files in it, not data.")
    try:
        return Section(tomllib.loads(text), (), text)
    except RecursionError:
        what = "it is nested too deeply"
    except (ValueError, TypeError) as error:  # TOMLDecodeError, and numbers or dates beyond what Python holds
        what = str(error)[:200]
    raise DatasetFileError(f"The dataset file is not TOML: {what}.", fix="correct that line.")


def _unprintable(text: str) -> bool:
    return any(ord(c) < 32 or ord(c) == 127 for c in text)


def _line(text: str, path: tuple[str, ...], key: str | None) -> int | None:
    """The number of the line where a key of a section stands, as far as reading line by line can tell."""
    heading: tuple[str, ...] = ()
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("["):
            heading = _keys_of(line) or heading
            if key is None and heading == path:
                return number
        elif (found := _KEY.match(line)) and (*heading, *_keys_of(f"{found[1]} = 0")) == (*path, key):
            return number
        if key is not None and heading == (*path, key):
            return number
    return None


def _keys_of(line: str) -> tuple[str, ...]:
    """The keys that one line of TOML names, outermost first."""
    try:
        value: Any = tomllib.loads(line)
    except (ValueError, RecursionError):
        return ()
    keys = []
    while isinstance(value, dict) and len(value) == 1:
        ((key, value),) = value.items()
        keys.append(key)
    return tuple(keys)

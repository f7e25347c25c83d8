"""Dataset files (`defocus.toml`): read section by section, refused with the place in the file.

A section of a dataset file, read key by key; whatever it refuses, it says where in the file that stands.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn, TypeVar, final

from defocus.engines.origins import is_address
from defocus.engines.schema import Kind, Value
from defocus.engines.sources import fits
from defocus.engines.spark.sessions import is_master
from defocus.errors import DatasetFileError, DefocusError, Number, finite
from defocus.ledger.anchors import AnchorFile, anchor_path
from defocus.ledger.creation import beside
from defocus.privacy.budgets import Budget
from defocus.privacy.units import Unit, rows, user
from defocus.tables.contribution import FIND, Bound, fitting
from defocus.tables.parts import Declared, parts

__all__ = ["Dataset", "DeclaredGraph", "Facts", "OtherTable", "Section", "parse", "parsed", "read"]


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

    def only(self, *allowed: str) -> "Section":
        """This section, if it has no other keys."""
        for key in self.values:
            if key not in allowed:
                near = difflib.get_close_matches(key, allowed, n=1)
                hint = f"did you mean {near[0]}? It" if near else "it"
                self.refuse(key, f"{key!r:.60} means nothing", f"{hint} can be {', '.join(allowed)}.")
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
        words = [value] if isinstance(value, str) else value
        good = isinstance(words, list) and all(isinstance(w, str) and w.strip() and not _unprintable(w) for w in words)
        if not good or len(set(words)) != len(words) or (key in self and not words):
            self.refuse(key, f"{key} must be one text or a list of different texts", f'write {key} = ["…", "…"].')
        return tuple(words)

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
        elif (match := _KEY.match(line)) and (*heading, *_keys_of(f"{match[1]} = 0")) == (*path, key):
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


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


@final
@dataclass(frozen=True, slots=True)
class Facts:
    """What a file declares about one column, without anybody having looked at the data."""

    kind: Kind | None = None
    """What it holds; needed where the source does not say, as in CSV files."""
    low: Number | date | None = None
    high: Number | date | None = None
    values: tuple[Value, ...] | None = None
    """All values that count: the public domain."""
    missing: tuple[Value, ...] = ()
    """Values that stand for a missing one, such as -1 or "unknown"."""

    def bounds(self, kind: Kind) -> bool:
        """Whether its bounds are those of a kind."""
        if isinstance(self.low, date):
            return fits(self.low, kind) and fits(self.high, kind)
        return kind.numeric


@final
@dataclass(frozen=True, slots=True)
class OtherTable:
    """Another table: a public one, or a private one about the same people when ``unit`` names them."""

    data: tuple[str, ...]
    table: str | None = None
    unit: str | None = None
    columns: Mapping[str, Facts] = field(default_factory=dict)
    purpose: str | None = None
    """Of a table of consents: the column that names the purpose."""


@final
@dataclass(frozen=True, slots=True)
class DeclaredGraph:
    """A graph whose nodes are the same people: its edges, and how many of them one person has at most."""

    data: tuple[str, ...]
    ends: tuple[str, ...] = ()
    directed: bool = False
    max_degree: int | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    r"""Everything a dataset file says. Paths are as written there, seen from ``home``.

    >>> visits = parsed('name = "visits"\ndata = "v.csv"\nunit.column = "patient"\nbudget.epsilon = 1')
    >>> visits.unit.column, visits.budget, Path(visits.ledger_place).name
    ('patient', Budget(epsilon=1), 'v.ledger')
    """

    name: str
    data: tuple[str, ...]
    unit: Unit
    budget: Budget
    table: str | None = None
    engine: str | None = None
    """Where Spark computes, if it does."""
    ledger: str | None = None
    """Where charges are kept; beside the data where it is not said, whatever the data set is called."""
    anchor_file: str | None = None
    bound: Bound | None = None
    purposes: tuple[str, ...] = ()
    """If there are any, a release must name one of them."""
    parts: Declared | None = None
    """What divides the data into parts that can be asked about one by one."""
    columns: Mapping[str, Facts] = field(default_factory=dict)
    public: Mapping[str, OtherTable] = field(default_factory=dict)
    private: Mapping[str, OtherTable] = field(default_factory=dict)
    consent: OtherTable | None = None
    """Who consents to which purpose."""
    graphs: Mapping[str, DeclaredGraph] = field(default_factory=dict)
    """Graphs about the same people, which a server asks."""
    file: Path = field(default=Path("defocus.toml"), compare=False)
    """Where all that is written."""

    @property
    def home(self) -> Path:
        """The folder of the file."""
        return self.file.parent

    @property
    def ledger_place(self) -> str:
        """The path or URL of the ledger."""
        if self.ledger is None:
            return str(self._beside(unit=self.unit, budget=self.budget))
        return self.ledger if "://" in self.ledger else str(self.home / self.ledger)

    @property
    def anchor_place(self) -> str | AnchorFile | None:
        """The anchor file; None if it is beside the ledger, which is the default for a file."""
        if self.anchor_file is not None:
            return str(self.home / self.anchor_file)
        if self.ledger is None or "://" not in self.ledger:
            return None
        return AnchorFile(anchor_path(Path(os.path.realpath(self.home)) / self._beside().name), first_use=True)

    def _beside(self, **terms: Any) -> Path:
        paths = self.paths()
        place = beside(paths[0] if len(paths) == 1 else paths, table=self.table, file=self.file, **terms)
        assert place is not None  # noqa: S101  # the file has a place
        return place

    def paths(self, data: Iterable[str] | None = None) -> list[str]:
        """Where the data is, seen from here."""
        given = self.data if data is None else data
        return [path if is_address(path) or "://" in path else str(self.home / path) for path in given]


def read(path: str | Path) -> Dataset:
    """Read and validate a dataset file."""
    file = Path(path)
    try:
        return parsed(file.read_bytes().decode(), file=file)
    except FileNotFoundError:
        what, fix = f"There is no dataset file {str(path)!r:.200}.", "check the path, or make one with: defocus init."
    except (OSError, ValueError):
        what, fix = f"The dataset file {str(path)!r:.200} cannot be read.", "check that it is a text file in UTF-8."
    raise DatasetFileError(what, fix=fix)


def parsed(text: str, *, file: Path = Path("defocus.toml")) -> Dataset:
    """The dataset that the text of a ``file`` describes; paths are seen from there."""
    top = parse(text.replace("\r\n", "\n")).only(
        *("name", "data", "table", "engine", "unit", "budget", "ledger", "anchor_file", "bound", "purposes"),
        *("columns", "public", "private", "consent", "parts", "graphs"),
    )
    name = top.word("name")
    if name is None or not _NAME.fullmatch(name):
        top.refuse("name", "The name must be letters, digits, - and _", 'write name = "visits".')
    unit = _unit(top.section("unit").only("column", "rows", "replace", "period", "of"))
    return Dataset(
        name=name,
        data=_data(top),
        table=top.word("table"),
        engine=_engine(top),
        unit=unit,
        budget=_budget(top.section("budget").only("epsilon", "delta", "rho", "mu", "direct")),
        ledger=top.word("ledger"),
        anchor_file=top.word("anchor_file"),
        bound=_bound(top.section("bound").only("rows", "groups", "per_group", "by", "most"), unit),
        purposes=top.words("purposes"),
        parts=_parts(top.section("parts").only("column", "people")),
        columns=_columns(top),
        public={key: _other(key, one) for key, one in top.sections("public")},
        private={key: _other(key, one, unit) for key, one in top.sections("private")},
        consent=_other("consent", top.section("consent"), unit) if "consent" in top else None,
        graphs={key: _graph(key, one, unit, top) for key, one in top.sections("graphs")},
        file=file,
    )


def _data(section: Section) -> tuple[str, ...]:
    data = section.words("data")
    if not data:
        section.refuse(None, "It is not said where the data is", 'write data = "visits.parquet".')
    return data


def _engine(section: Section) -> str | None:
    engine = section.word("engine")
    if engine is not None and not is_master(engine):
        section.refuse(
            "engine", f"There is no engine {engine!r:.60}", 'write engine = "spark://host:7077", or leave it out.'
        )
    return engine


def _unit(section: Section) -> Unit:
    column = section.word("column")
    by_rows = section.flag("rows")
    if (column is None) != by_rows:
        section.refuse(
            None,
            "Whom the file protects must be said, in one way",
            'write column = "patient_id" to protect all rows of a person, or rows = true to protect each row alone.',
        )
    replace = section.flag("replace")
    period, of = section.word("period"), section.word("of")
    if column is None and (period is not None or of is not None):
        section.refuse("period", "Rows have no periods", "leave period and of out, or write column = …")
    return rows(replace=replace) if column is None else user(column, period=period, of=of, replace=replace)


def _budget(section: Section) -> Budget:
    if not section.values:
        section.refuse(None, "It is not said what may be lost", "write epsilon = 1 and delta = 1e-6, or rho = 0.1.")
    given: dict[str, Any] = {key: section.number(key) for key in section.values}
    return section.checked(None, lambda: Budget(**given))


def _parts(section: Section) -> Declared | None:
    if not section.values:
        return None
    column = section.word("column")
    if column is None:
        section.refuse(None, "It is not said which column divides the data into parts", 'write column = "day".')
    people = section.word("people")
    return section.checked("people" if people else "column", lambda: parts(column, people=people))


def _bound(section: Section, unit: Unit) -> Bound | None:
    if not section.values:
        return None
    rows = FIND if section.values.get("rows") == FIND else section.whole("rows")
    groups, per_group = section.whole("groups"), section.whole("per_group")
    by, most = section.word("by", "weights") or "", section.whole("most")
    bound = section.checked(None, lambda: Bound.of(rows=rows, groups=groups, per_group=per_group, by=by, most=most))
    return section.checked(None, lambda: fitting(bound, people=unit.column is not None))


def _other(name: str, section: Section, protected: Unit | None = None) -> OtherTable:
    """A public table, or a private one about the people who are ``protected``."""
    consent = section.path == ("consent",)
    section.only("data", "table", "columns", *(["unit"] if protected else []), *(["purpose"] if consent else []))
    if not _NAME.fullmatch(name):
        section.refuse(None, "The name of a table must be letters, digits, - and _", "rename the section.")
    unit = section.word("unit")
    if protected and protected.column is None:
        section.refuse(
            None,
            "The file protects each row alone, so no other private table is about the same people",
            'write column = "patient_id" under [unit], or remove this section.',
        )
    if protected and unit is None:
        section.refuse(None, "It is not said which column names the person in this table", 'write unit = "patient_id".')
    return OtherTable(_data(section), section.word("table"), unit, _columns(section), section.word("purpose"))


def _graph(name: str, section: Section, protected: Unit, top: Section) -> DeclaredGraph:
    section.only("data", "ends", "directed", "max_degree")
    if not _NAME.fullmatch(name) or name == top.values.get("name"):
        section.refuse(None, "The name of a graph must be letters, digits, - and _, and its own", "rename the section.")
    if protected.column is None:
        section.refuse(
            None,
            "The file protects each row alone, so no graph is about the same people",
            'write column = "patient_id" under [unit], or remove this section.',
        )
    if "consent" in top:
        section.refuse(
            None, "People consent to what is done with their rows, and a graph has none", "declare it in another file."
        )
    data, ends = _data(section), section.words("ends")
    if len(data) != 1 or len(ends) not in {0, 2}:
        section.refuse(None, "A graph is one file, with two columns of ends", 'write ends = ["from_id", "to_id"].')
    return DeclaredGraph(data, ends, section.flag("directed"), section.whole("max_degree"))


def _columns(section: Section) -> dict[str, Facts]:
    return {
        name: _facts(one.only("kind", "low", "high", "values", "missing")) for name, one in section.sections("columns")
    }


def _facts(section: Section) -> Facts:
    usable = [str(kind) for kind in Kind if kind is not Kind.OTHER]
    word = section.word("kind")
    if word is not None and word not in usable:
        section.refuse("kind", f"There is no kind {word!r:.40}", f"choose one of {', '.join(usable)}.")
    kind = None if word is None else Kind(word)
    low, high = _end(section, "low"), _end(section, "high")
    if not _in_order(low, high):
        section.refuse("high" if "high" in section else "low", "low and high belong together", "write low < high.")
    if low is not None and kind is not None and not Facts(low=low, high=high).bounds(kind):
        section.refuse("low", f"A {kind} column has no bounds of this kind", "remove low and high, or correct kind.")
    if kind is Kind.NUMBER and "values" in section:
        section.refuse("values", "Floats are never quite equal, so they have no domain", "declare low and high.")
    return Facts(kind, low, high, _listed(section, "values", kind) or None, _listed(section, "missing", kind))


def _end(section: Section, key: str) -> Number | date | None:
    """A bound: a number, a date, or a moment without a zone."""
    given = section.values.get(key)
    return given if isinstance(given, date) else section.number(key)


def _in_order(low: Any, high: Any) -> bool:
    """Whether both bounds are there, of one kind, and apart; or neither."""
    if low is None or high is None:
        return low is high
    if isinstance(low, date) or isinstance(high, date):
        return any(fits(low, kind) and fits(high, kind) for kind in (Kind.DATE, Kind.TIMESTAMP)) and low < high
    return bool(low < high)


def _listed(section: Section, key: str, kind: Kind | None) -> tuple[Value, ...]:
    """A list of different values of one kind, or one value."""
    if key not in section:
        return ()
    given: Any = section.values[key]
    listed = given if isinstance(given, list) else [given]
    possible = [kind] if kind else [one for one in Kind if key == "missing" or one.countable]
    kinds = [one for one in possible if all(fits(value, one) for value in listed)]
    if not listed or not kinds:
        section.refuse(
            key,
            f"{key} must list values of one kind, that of the column",
            f"write {key} = [ … ] with text, whole numbers of 64 bits, dates, or moments without a zone, in UTC.",
        )
    if len(set(listed)) != len(listed):
        section.refuse(key, f"{key} names a value twice", "name each value once.")
    return tuple(listed)

"""Which groups are shown: keys that were known beforehand, or keys that are found privately."""

import hashlib
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import pyarrow as pa
import pyarrow.dataset as pads
from sqlglot import exp

from defocus.engines.engine import Engine, integers
from defocus.engines.schema import Column, Kind, lasting
from defocus.engines.sources import alongside
from defocus.engines.spark.sessions import is_frame
from defocus.engines.syntax import column as field
from defocus.engines.syntax import named, sub
from defocus.errors import InvalidParameterError, NotDeclaredError, WrongKindError
from defocus.ledger.identity import identity

__all__ = [
    "DECLARED",
    "EVERYTHING",
    "Keys",
    "StoredKeys",
    "declared_keys",
    "in_memory",
    "is_stored",
    "key_columns",
    "key_table",
    "key_types",
    "named_keys",
    "public_keys",
    "stored_keys",
]

DECLARED = "declared"
"""What ``keys`` is unless given: the domains declared for the columns."""
_MOST = 10_000_000
_TYPES = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.TEXT: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """The groups of an answer, numbered by their place in ``table``. Without columns there is one group: everything."""

    table: pa.Table

    @property
    def number(self) -> int:
        """How many groups there are."""
        return self.table.num_rows if self.table.num_columns else 1

    @property
    def nullable(self) -> bool:
        """Whether some key is NULL."""
        return any(column.null_count for column in self.table.columns)

    @property
    def words(self) -> str:
        """The groups, in words."""
        return f"{self.number} groups"

    @property
    def rule(self) -> str | None:
        """What happens to rows of other groups; None where there is one group of all rows."""
        named = f"the {self.number} groups were named beforehand; rows of others are left out"
        return named if self.table.num_columns else None

    @property
    def facts(self) -> str:
        """The same text for the same keys."""
        return repr(self.table.to_pydict())


@final
@dataclass(frozen=True, slots=True, eq=False)
class StoredKeys:
    """The groups of an answer as a public table that the engine reads: as many as there are, in no memory of ours.

    A key that is there several times is one group. Keys with a NULL are left out, since no engine finds them by value.
    """

    engine: Engine
    relation: exp.Select
    """One row for each key, or several alike, in columns k0, k1 and so on; no NULL."""
    columns: tuple[Column, ...]
    description: str
    identity: str
    """What tells these keys from others."""
    number = 1 << 40
    """More than one person can have; how many there are is counted only where that matters."""
    nullable = False

    @property
    def words(self) -> str:
        """The groups, in words."""
        return f"groups of {self.description}"

    @property
    def rule(self) -> str:
        """What happens to rows of other groups."""
        return f"the groups were named beforehand, in {self.description}; rows of others are left out"

    def counted(self) -> int:
        """How many keys there are, which is public."""
        once = sub(self.relation.copy().distinct(), "k")
        number = exp.select(named(exp.Count(this=exp.Star(), big_int=True), "n")).from_(once, copy=False)
        return int(integers(self.engine.run(number)["n"])[0])

    @property
    def table(self) -> pa.Table:
        """The keys in memory, if they are not too many for that."""
        if self.counted() > _MOST:
            raise InvalidParameterError(
                f"These are more than {_MOST} groups.",
                fix='write the answer to files: release_to("folder", epsilon=…).',
            )
        read = self.engine.run(self.relation.copy().distinct())
        return read.cast(key_types(self.columns)).rename_columns([column.name for column in self.columns])

    @property
    def facts(self) -> str:
        """The same text for the same keys."""
        return f"{self.identity}; {lasting(self.relation.sql('duckdb', identify=True, comments=False))}"


def is_stored(keys: object) -> bool:
    """Whether keys are a table that the engine is to read: a path, an Arrow dataset or a Spark data frame."""
    if isinstance(keys, str):
        return "/" in keys or keys.lower().endswith((".parquet", ".csv", ".csv.gz"))
    return isinstance(keys, Path | pads.Dataset) or is_frame(keys)


def stored_keys(engine: Engine, columns: Sequence[Column], keys: Any) -> StoredKeys:
    """The keys of a public table, read by the engine that holds the private rows."""
    known = identity(keys) or f"a {type(keys).__name__}"
    select, schema, description = alongside(engine, keys, f"keys {hashlib.sha256(known.encode()).hexdigest()[:16]}")
    for column in columns:
        theirs = schema.get(column.name)
        if theirs is None:
            raise NotDeclaredError(
                f"The table of keys has no column {column.name!r}.",
                fix=f"give it the columns {', '.join(one.name for one in columns)}.",
            )
        if theirs.kind is not column.kind:
            raise WrongKindError(
                f"{column.name!r} is of kind {column.kind} in the table and {theirs.kind} in the table of keys.",
                fix="give keys of the kind that the column has.",
            )
    named_keys = [named(field(column.name), f"k{i}") for i, column in enumerate(columns)]
    present = [exp.not_(field(column.name).is_(exp.null())) for column in columns]
    relation = exp.select(*named_keys).from_(sub(select, "s"), copy=False).where(*present, copy=False)
    return StoredKeys(engine, relation, tuple(columns), description, known)


def in_memory(keys: "Keys | StoredKeys | None") -> "Keys | None":
    """The keys in memory; None where they are to be found."""
    return Keys(keys.table) if isinstance(keys, StoredKeys) else keys


def key_types(columns: Sequence[Column]) -> pa.Schema:
    """The types that keys of these columns have in Arrow, called k0, k1 and so on."""
    return pa.schema([(f"k{i}", _TYPES[column.kind]) for i, column in enumerate(columns)])


EVERYTHING = Keys(pa.table({}))
"""One group that holds all rows."""


def key_columns(columns: Iterable[Column]) -> tuple[Column, ...]:
    """The columns, if values of their kinds can be keys."""
    checked = tuple(columns)
    for column in checked:
        if not column.kind.countable:
            raise WrongKindError(
                f"Rows cannot be grouped by {column.name!r}, a column of kind {column.kind}.",
                fix=f"make whole numbers of it: FLOOR({column.name} / 10) * 10 in SQL, and in Python"
                f' derive(band="CAST(FLOOR({column.name} / 10) AS BIGINT)").',
            )
    if len({column.name for column in checked}) != len(checked):
        raise InvalidParameterError("A column is named twice in group_by.", fix="name each column once.")
    return checked


def declared_keys(columns: Sequence[Column]) -> Keys | None:
    """All combinations of the declared domains, or None where a column has none. A boolean needs no declaration."""
    domains = [
        column.values if column.values is not None else ((False, True) if column.kind is Kind.BOOLEAN else None)
        for column in columns
    ]
    declared = [domain for domain in domains if domain is not None]
    return (
        public_keys(columns, dict(zip((c.name for c in columns), map(list, declared), strict=True)))
        if len(declared) == len(domains)
        else None
    )


def public_keys(columns: Sequence[Column], keys: Any) -> Keys:
    """Keys that somebody named: a list, a list of tuples, a mapping of columns to lists, or a public table.

    >>> public_keys([Column("ward", Kind.TEXT)], ["A", "B"]).table.to_pydict()
    {'ward': ['A', 'B']}
    """
    names = [column.name for column in columns]
    typed = _typed(columns, keys)
    if typed is not None:
        return Keys(typed)
    rows = _rows(names, keys)
    if not rows:
        raise InvalidParameterError("There is no key.", fix="name at least one group, or pass keys=None to find them.")
    arrays = [
        pa.array([column.value(row[i], "key") for row in rows], _TYPES[column.kind]) for i, column in enumerate(columns)
    ]
    table = pa.table(dict(zip(names, arrays, strict=True)))
    # Asked of what the engine will see: two keys that become one there would count a row twice.
    if table.group_by(names).aggregate([]).num_rows != table.num_rows:
        raise InvalidParameterError("A key is named twice.", fix="name each group once.")
    return Keys(table)


def named_keys(columns: Sequence[Column], keys: Any) -> tuple[Keys | None, Keys | None]:
    """The keys; or None where some are found, and those columns of them that were named.

    >>> ward, code = Column("ward", Kind.TEXT), Column("code", Kind.TEXT)
    >>> named_keys([ward, code], {"ward": ["A", "B"], "code": None})[1].table.to_pydict()
    {'ward': ['A', 'B']}
    """
    if not isinstance(keys, Mapping) or all(values is not None for values in keys.values()):
        return (None if keys is None else public_keys(columns, keys)), None
    _same_names([column.name for column in columns], keys)
    named = [column for column in columns if keys[column.name] is not None]
    return None, public_keys(named, {column.name: keys[column.name] for column in named}) if named else None


def _same_names(names: list[str], keys: Mapping[str, Any]) -> None:
    if set(keys) != set(names):
        raise NotDeclaredError(
            f"The keys are for {', '.join(map(str, keys))}, but the groups are by {', '.join(names)}.",
            fix="give one list for each column of group_by, or None for a column whose values are to be found.",
        )


def _typed(columns: Sequence[Column], keys: Any) -> pa.Table | None:
    """A table of keys whose columns are of the right types already, each key once; there may be millions."""
    table = key_table(keys)
    names = [column.name for column in columns]
    if table is None or not table.num_rows or not all(name in table.column_names for name in names):
        return None
    arrays = []
    for column in columns:
        array, wanted = table.column(column.name), _TYPES[column.kind]
        own = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
        fits = own == wanted or (wanted == pa.int64() and pa.types.is_signed_integer(own))
        if not fits and not (wanted == pa.string() and pa.types.is_large_string(own)):
            return None
        arrays.append(array.cast(wanted).combine_chunks())
    named = pa.table(dict(zip(names, arrays, strict=True)))
    once = named.group_by(names, use_threads=False).aggregate([]).select(names)
    return named if once.num_rows == named.num_rows else once


def _rows(names: list[str], keys: Any) -> list[tuple[Any, ...]]:
    if isinstance(keys, Mapping):
        _same_names(names, keys)
        lists = [_listed(name, keys[name]) for name in names]
        if math.prod(map(len, lists)) > _MOST:
            raise InvalidParameterError(
                f"These are more than {_MOST} groups.", fix="name fewer, or pass keys=None to find those that matter."
            )
        return list(itertools.product(*lists))
    table = key_table(keys)
    if table is not None:
        missing = [name for name in names if name not in table.column_names]
        if missing:
            raise NotDeclaredError(
                f"The table of keys has no column {missing[0]!r}.", fix=f"give it the columns {', '.join(names)}."
            )
        columns = [table.column(name).to_pylist() for name in names]
        return list(dict.fromkeys(zip(*columns, strict=True)))
    if isinstance(keys, str | bytes) or not isinstance(keys, Iterable):
        raise InvalidParameterError(
            f"Keys of type {type(keys).__name__} are not understood.",
            fix="pass a list of values, a list of tuples, a dict of lists, a public table, or None.",
        )
    rows = [key if isinstance(key, tuple) else (key,) for key in keys]
    if any(len(row) != len(names) for row in rows):
        raise InvalidParameterError(
            f"A key does not have {len(names)} parts.", fix=f"give one value for each of {', '.join(names)}."
        )
    return rows


def _listed(name: str, values: Any) -> list[Any]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidParameterError(
            f"The keys of {name!r:.60} are of type {type(values).__name__}.",
            fix="give a list of values; group_by(…, keys={…: None}) finds those of a column privately.",
        )
    return list(values)


def key_table(keys: Any) -> pa.Table | None:
    """The public table that keys were given as, if they were."""
    if isinstance(keys, pa.Table):
        return keys
    if hasattr(keys, "__arrow_c_stream__") and hasattr(keys, "columns"):
        return pa.table(keys)
    return None

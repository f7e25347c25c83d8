"""Hierarchies: which leaves there are, by public tables alone, and where totals may be held exactly."""

import copy
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import pyarrow as pa

from defocus.errors import InvalidParameterError, NotDeclaredError
from defocus.privacy.units import Unit
from defocus.tables.keys import DECLARED, Keys, declared_keys, key_columns, key_table, public_keys
from defocus.tables.rows import Rows

__all__ = ["Invariants", "checked_invariants", "declared_leaves", "leaves", "unprotected"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Invariants:
    """Which totals of which tree may be held exactly: the owner's word, given to ``dp.open(…, invariants=…)``.

    The ledger keeps it as a fact about the data: who opens it later repeats it or leaves it out, and anything else is
    an entry of its own, ``ledger.declare(invariants=…, why="…")``, with ``""`` for none.

    Guarantee:
        Whoever asks chooses neither levels nor leaves of exact totals. Rows that are in no leaf are left out, so who
        could choose the leaves could have the exact number of any rows at all, those of one person among them. So the
        leaves are copied, here and for each question, and what was copied is compared with the ledger's fact: what is
        done to a table that was passed, or to this object, changes no exact total.

    Args:
        levels: the tree from the top, as for :meth:`.Table.hierarchy`.
        keys: its leaves, a public table with all levels, of which a copy is kept.
        exact: the levels whose totals may be exact; ``"all"`` is the grand total.

    >>> places = pa.table({"state": ["X", "X"], "county": ["a", "b"]})
    >>> Invariants(["state", "county"], places, ["state"]).exact
    ('state',)
    """

    levels: Sequence[str]
    keys: Any
    exact: Sequence[str]

    def __post_init__(self) -> None:
        for name in ("levels", "exact"):
            given = getattr(self, name)
            if isinstance(given, str) or not all(isinstance(one, str) for one in given) or not given:
                raise InvalidParameterError(
                    f"{name} of Invariants are names of levels.", fix=f'write {name}=["state"].'
                )
            object.__setattr__(self, name, tuple(given))
        object.__setattr__(self, "keys", _copied(self.keys))

    def __str__(self) -> str:
        """One line that says which totals are exact, and that holds for the same leaves in any order alone."""
        table = key_table(self.keys)
        leaves: Any = self.keys if not isinstance(self.keys, dict) else sorted(self.keys.items())
        if table is not None:
            table = table.select([name for name in dict.fromkeys(self.levels) if name in table.column_names])
            leaves = {name: table[name].to_pylist() for name in table.column_names}
            leaves = sorted(json.dumps(line, default=str) for line in zip(*leaves.values(), strict=True))
        elif not isinstance(leaves, str):
            leaves = json.loads(json.dumps(list(leaves), default=_plain))
        told = json.dumps([self.levels, sorted(self.exact), leaves], default=str)
        tree = f"{', '.join(sorted(self.exact))} of {' > '.join(self.levels)}"[:200]
        return f"{tree}; leaves {hashlib.sha256(told.encode()).hexdigest()}"

    def leaves_of(self, fact: str | None, levels: Sequence[str], keys: Any, wanted: Sequence[str]) -> Any:
        """A copy of the leaves, if just this is the ledger's fact; repeated or left out by whoever asks."""
        held = Invariants(self.levels, self.keys, self.exact)
        repeated = isinstance(keys, str) and keys == DECLARED
        if not repeated and not isinstance(keys, str):
            repeated = str(Invariants(self.levels, keys, self.exact)) == fact
        if str(held) != fact or tuple(levels) != held.levels or not repeated or not set(wanted) <= set(held.exact):
            raise _not_declared()
        return held.keys


def _copied(keys: Any) -> Any:
    """Leaves in memory that nobody else holds: tables made of arrays, lists and mappings can be changed in place."""
    table = key_table(keys)
    if table is not None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        return pa.ipc.open_stream(sink.getvalue()).read_all()
    if isinstance(keys, str) or not isinstance(keys, Iterable):  # "declared": whoever asks may declare domains
        raise InvalidParameterError(
            f"The leaves of exact totals are of type {type(keys).__name__}.",
            fix="name them: a public table with one line for each leaf and a column for each level.",
        )
    return copy.deepcopy(dict(keys) if isinstance(keys, Mapping) else list(keys))


def _plain(value: Any) -> Any:
    """What JSON has no word for: arrays as lists, anything else by its text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def checked_invariants(given: object) -> Invariants | None:
    """What the owner declared, if it is that."""
    if given is None or isinstance(given, Invariants):
        return given
    raise InvalidParameterError(
        f"invariants is of type {type(given).__name__}.", fix="pass dp.tables.Invariants(levels, keys, exact)."
    )


def _not_declared() -> NotDeclaredError:
    return NotDeclaredError(
        "Which totals are exact, of which levels and leaves, is the word of the data's owner, and it is another one.",
        fix="leave invariants out; or let the owner declare them, dp.open(…, invariants=dp.tables.Invariants(levels,"
        " keys, exact)), and ask for these levels without keys=.",
    )


def declared_leaves(
    held: Invariants | None, fact: str | None, levels: Sequence[str], keys: Any, wanted: Sequence[str]
) -> Any:
    """The leaves of a tree with exact totals, which its owner declared and the ledger knows.

    The ledger compares its fact with what was read at the opening again when it is charged.
    """
    if held is None:
        raise _not_declared()
    return held.leaves_of(fact, levels, keys, wanted)


def leaves(rows: Rows, names: Sequence[str], keys: Any) -> tuple[tuple[str, ...], Keys, pa.Table | None]:
    """The columns that rows are told apart by, their keys, and all levels of each, where rows do not have all.

    Guarantee:
        Nothing of a row decides about the tree: leaves are declared, and rows of others are left out.
    """
    own = tuple(name for name in names if rows.schema.get(name) is not None)
    table = key_table(keys)
    if len(own) < len(names) and (table is None or not own):
        missing = next(name for name in names if name not in own)
        rows.schema.usable(missing)
    columns = key_columns(rows.schema.usable(name) for name in own)
    if table is None:
        declared = declared_keys(columns) if isinstance(keys, str) and keys == DECLARED else public_keys(columns, keys)
        if declared is None:
            raise NotDeclaredError(
                "A hierarchy needs leaves that are known: which of them exist is no question of the data.",
                fix="pass keys=, a public table with one line for each leaf and its columns, or declare all domains.",
            )
        return own, declared, None
    for name in names:
        if name not in table.column_names:
            raise NotDeclaredError(
                f"The table of leaves has no column {name!r:.60}.", fix=f"give it the columns {', '.join(names)}."[:200]
            )
    paths = pa.table({name: _level(table, name) for name in names})
    _once(paths, names, "A leaf is there twice.", "name each leaf once.")
    _once(
        paths,
        own,
        f"A leaf, by its {', '.join(own)}, has two parents."[:200],
        "give each leaf one line; where names of leaves repeat, add the column above them to the rows.",
    )
    return own, public_keys(columns, paths), None if len(own) == len(names) else paths


def _level(table: pa.Table, name: str) -> pa.ChunkedArray:
    """A level of a public table, of a type that keys can have."""
    column = table.column(name)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    words = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_boolean(kind)
    if not words and not pa.types.is_integer(kind) and not pa.types.is_temporal(kind):
        raise InvalidParameterError(
            f"The level {name!r:.60} is of type {kind}.", fix="name groups by text, whole numbers or dates."
        )
    return column.cast(kind)


def _once(table: pa.Table, names: Sequence[str], what: str, fix: str) -> None:
    if table.select(list(names)).group_by(list(names)).aggregate([]).num_rows != table.num_rows:
        raise InvalidParameterError(what, fix=fix)


def unprotected(rows: Rows, unit: Unit) -> None:
    """Refuse to hold totals exactly where they would not be totals of people, or could be of a chosen few.

    A total of weighted or sampled rows is no number of anything. A total of filtered or derived rows could be that of
    one person: an exact answer to any question at all.
    """
    if rows.unit is not None or unit.kind != "rows" or unit.per_person not in {None, 1}:
        raise InvalidParameterError(
            "Totals are held exactly only where each row is protected as a row: here a person may have several, which"
            " count with less weight, so their number is no total.",
            fix="leave invariants out; or open a table with one row for each person, unit=dp.rows().",
        )
    if rows.words or rows.charged:
        raise InvalidParameterError(
            "Totals are held exactly only of the table as it was opened: of filtered, derived or joined rows they would"
            " be exact answers about a chosen few.",
            fix="leave invariants out, or leave the filter out.",
        )

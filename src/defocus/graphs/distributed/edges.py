"""Edges in an engine: statements that read, number and count them.

From rows of an engine to numbers of nodes, by the one rule that each value has in memory.

What a value is called as a node is said in :mod:`~defocus.graphs.node_names`. A column of an engine holds values of
one kind, so that of all keys only those of that kind can be equal to one of them: a whole number, a text, or a date.
Where text is written, as in CSV, two texts are equal exactly if their keys are, as a whole number has one spelling.

What an engine is asked about edges: one statement each, the same for every engine, and only integers come back.

All of them begin with the relation ``ends``: one row for each line of the data, with the numbers of its two nodes in
``a`` and ``b``, or NULL. The rules of :mod:`~defocus.graphs.data` are the relation ``edges``: each pair once, the
smaller number first, without loops; a comparison with NULL holds for nobody. Text here is written by this file alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any, final

import pyarrow as pa
from sqlglot import exp, parse_one

from defocus.engines.engine import Engine
from defocus.engines.schema import Kind
from defocus.engines.syntax import BIGINT, DOUBLE, TEXT, column, named, quoted, rows_of, sub, typed, whole
from defocus.errors import InvalidParameterError
from defocus.graphs.node_names import Key, Names

__all__ = [
    "KINDS",
    "Side",
    "among",
    "arc_degrees",
    "degrees",
    "edge_count",
    "histogram",
    "joined_to_all",
    "numbered",
    "shared",
    "simple",
    "triangles",
    "values",
]


KINDS = {Kind.INTEGER: pa.int64(), Kind.NUMBER: pa.float64(), Kind.TEXT: pa.string(), Kind.DATE: pa.date32()}
"""The kinds of columns that can hold names of nodes, and the types they have here."""
_FAR = 2**63
_LONGEST = 1000
"""Whole numbers of more digits are text where they are written; see keys."""


@final
@dataclass(frozen=True, slots=True)
class Side:
    """One end of every edge: the name of its column, the kind of its values, and whether they are written."""

    name: str
    kind: Kind
    written: bool = False


def values(rows: exp.Select, side: Side) -> exp.Select:
    """Every value of a side that may be a name, once: ``value``."""
    query = exp.select(named(_key(side), "value")).distinct().from_(rows_of(rows), copy=False)
    there = exp.select(column("value")).from_(rows_of(query), copy=False)
    return there.where(column("value").is_(exp.null()).not_(), copy=False)


def numbered(engine: Engine, rows: exp.Select, sides: Sequence[Side], names: Names) -> exp.Select:
    """A query with the numbers of the two nodes of every row, ``a`` and ``b``. Names are published for it.

    Rows of which an end names no node are left out, or have NULL there.
    """
    keys = [named(_key(side), name) for side, name in zip(sides, "xy", strict=True)]
    keyed = exp.select(*keys).from_(rows_of(rows), copy=False)
    if isinstance(names.labels, range):
        columns = [named(_within(column(name), side, len(names.labels)), to) for name, side, to in _named(sides)]
        return exp.select(*columns).from_(rows_of(keyed), copy=False)
    tables: dict[tuple[Kind, bool], exp.Table] = {}
    for side in sides:
        sort = (Kind.INTEGER if side.kind is Kind.NUMBER else side.kind, side.written)
        if sort not in tables:
            tables[sort] = engine.publish("nodes", _table(names, side))
    joined = exp.select(*(named(column("node", to), to) for _, _, to in _named(sides))).from_(
        rows_of(keyed), copy=False
    )
    for name, side, to in _named(sides):
        listed = tables[(Kind.INTEGER if side.kind is Kind.NUMBER else side.kind, side.written)]
        on = exp.EQ(this=column("name", to), expression=column(name, "t"))
        joined = joined.join(exp.alias_(listed.copy(), to, quoted=True, table=True), on=on, copy=False)
    return joined


def _named(sides: Sequence[Side]) -> Iterator[tuple[str, Side, str]]:
    """What the keys of each side are called, and what the numbers of its nodes are."""
    return zip("xy", sides, "ab", strict=True)


def _key(side: Side) -> exp.Expression:
    """What a value is compared by: itself, and a float by the whole number that it is."""
    value = column(side.name)
    if side.kind is not Kind.NUMBER:
        return value
    near = exp.TryCast(this=typed(value, DOUBLE), to=exp.DataType(this=BIGINT))
    return _where(exp.EQ(this=typed(near, DOUBLE), expression=value.copy()), near.copy())


def _within(key: exp.Expression, side: Side, nodes: int) -> exp.Expression:
    """The number of a node where nodes are numbered from 0, else NULL."""
    number = key
    if side.kind is Kind.TEXT:
        read = exp.TryCast(this=key, to=exp.DataType(this=BIGINT))
        number = _where(exp.EQ(this=typed(read, TEXT), expression=key.copy()), read.copy())
    if side.kind is Kind.DATE or (side.kind is Kind.TEXT and not side.written):
        return typed(exp.null(), BIGINT)
    least = exp.GTE(this=number, expression=whole(0))
    return _where(exp.And(this=least, expression=exp.LT(this=number.copy(), expression=whole(nodes))), number.copy())


def _where(condition: exp.Expression, value: exp.Expression) -> exp.Expression:
    return exp.Case(ifs=[exp.If(this=condition, true=value)])


def _table(names: Names, side: Side) -> pa.Table:
    """The names that a column of this kind can hold, and the numbers of the nodes they name. Both are public."""
    held = [(value, number) for key, number in names.keyed() if (value := _value(key, side)) is not None]
    kind = KINDS[Kind.INTEGER if side.kind is Kind.NUMBER else side.kind]
    return pa.table(
        {
            "name": pa.array([value for value, _ in held], kind),
            "node": pa.array([number for _, number in held], pa.int64()),
        }
    )


def _value(key: Key, side: Side) -> Any:
    """What a column of this kind holds where it names the node of this key; None if it cannot."""
    if isinstance(key, tuple):
        if key[0] in {"number", "decimal", "ratio"} and side.kind is Kind.NUMBER:
            raise _beyond("a number with a fraction")
        return date.fromordinal(int(key[1])) if key[0] == "date" and side.kind is Kind.DATE else None
    if side.kind is Kind.TEXT:
        return _spelt(key, side)
    if not isinstance(key, int) or side.kind is Kind.DATE:
        return None
    if not -_FAR <= key < _FAR:
        raise _beyond("a whole number beyond 64 bits")
    return key


def _spelt(key: int | str, side: Side) -> str | None:
    if isinstance(key, int):
        return str(key) if side.written and abs(key) < 10**_LONGEST else None
    if "\0" in key:
        raise _beyond("text with a zero byte")
    try:
        key.encode()
    except UnicodeEncodeError:  # half a character: no text of an engine holds one
        return None
    return key


def _beyond(what: str) -> InvalidParameterError:
    return InvalidParameterError(
        f"A node is called by {what}, which engines do not compare alike.",
        fix="leave engine= out, so that edges are read into memory; or call the nodes otherwise.",
    )


_SHIFT = 2**31
"""Nodes have smaller numbers, so that two of them make one number of 62 bits."""
_EDGES = "SELECT DISTINCT LEAST(a, b) AS u, GREATEST(a, b) AS v FROM ends WHERE a <> b"
_ARCS = "SELECT DISTINCT a AS u, b AS v FROM ends WHERE a <> b"
_DEGREES = """
    SELECT node, COUNT(*) AS degree FROM (SELECT u AS node FROM edges UNION ALL SELECT v AS node FROM edges) AS both
    GROUP BY node
"""
_UPWARD = """
    SELECT CASE WHEN x.degree < y.degree OR (x.degree = y.degree AND e.u < e.v) THEN e.u ELSE e.v END AS s,
           CASE WHEN x.degree < y.degree OR (x.degree = y.degree AND e.u < e.v) THEN e.v ELSE e.u END AS t
    FROM edges AS e JOIN degrees AS x ON x.node = e.u JOIN degrees AS y ON y.node = e.v
"""
_PACKED = "SELECT CAST(u AS BIGINT) * :shift + CAST(v AS BIGINT) AS pair FROM edges"
_HUB_ENDS = """
    SELECT e.u AS hub, e.v AS centre FROM edges AS e JOIN hubs AS x ON x.node = e.u
    UNION ALL SELECT e.v AS hub, e.u AS centre FROM edges AS e JOIN hubs AS x ON x.node = e.v
"""
_TOP_ENDS = """
    SELECT e.u AS node, e.v AS other FROM edges AS e JOIN degrees AS x ON x.node = e.u WHERE x.degree = :degree
    UNION ALL SELECT e.v AS node, e.u AS other FROM edges AS e JOIN degrees AS x ON x.node = e.v
    WHERE x.degree = :degree
"""


def simple(ends: exp.Query, *, directed: bool = False) -> exp.Select:
    """Each edge once, as ends again: ``a`` and ``b``. What is asked of these ends is the same."""
    return _asked("SELECT u AS a, v AS b FROM edges", ends, edges=_tree(_ARCS if directed else _EDGES))


def edge_count(ends: exp.Query, *, directed: bool = False) -> exp.Select:
    """How many edges there are: ``n``."""
    return _asked("SELECT COUNT(*) AS n FROM edges", ends, edges=_tree(_ARCS if directed else _EDGES))


def degrees(ends: exp.Query) -> exp.Select:
    """The ``degree`` of every ``node`` that has an edge."""
    return _asked("SELECT node, degree FROM degrees", ends, edges=_tree(_EDGES), degrees=_tree(_DEGREES))


def arc_degrees(ends: exp.Query, side: str) -> exp.Select:
    """How many arcs leave every ``node``, or reach it, if any do."""
    end = {"out": "u", "in": "v"}[side]
    return _asked(f"SELECT {end} AS node, COUNT(*) AS degree FROM edges GROUP BY {end}", ends, edges=_tree(_ARCS))  # noqa: S608  # one of two letters


def histogram(ends: exp.Query) -> exp.Select:
    """How many nodes have each degree above zero: ``degree`` and ``times``."""
    counted = "SELECT degree, COUNT(*) AS times FROM degrees GROUP BY degree"
    return _asked(counted, ends, edges=_tree(_EDGES), degrees=_tree(_DEGREES))


def joined_to_all(ends: exp.Query, degree: int) -> exp.Select:
    """Of the nodes of this ``degree``, how many (``times``) are joined to all others of each degree (``degree``).

    Degrees at which there is no other node, or no node of this degree is joined to all, have no row.
    """
    return _asked(
        """
        SELECT met.other AS degree, COUNT(*) AS times FROM (
            SELECT e.node AS node, y.degree AS other, COUNT(*) AS found
            FROM tops AS e JOIN degrees AS y ON y.node = e.other GROUP BY e.node, y.degree
        ) AS met
        JOIN (SELECT degree, COUNT(*) AS times FROM degrees GROUP BY degree) AS counts ON counts.degree = met.other
        WHERE met.found = CASE WHEN met.other = :degree THEN CAST(counts.times AS BIGINT) - CAST(1 AS BIGINT)
            ELSE counts.times END
        GROUP BY met.other
        """,
        ends,
        edges=_tree(_EDGES),
        degrees=_tree(_DEGREES),
        tops=_tree(_TOP_ENDS),
        numbers={"degree": degree},
    )


def among(ends: exp.Query, degree: int) -> exp.Select:
    """How many edges join two nodes of this ``degree``: ``n``."""
    return _asked(
        """
        SELECT COUNT(*) AS n FROM edges AS e JOIN degrees AS x ON x.node = e.u JOIN degrees AS y ON y.node = e.v
        WHERE x.degree = :degree AND y.degree = :degree
        """,
        ends,
        edges=_tree(_EDGES),
        degrees=_tree(_DEGREES),
        numbers={"degree": degree},
    )


def triangles(ends: exp.Query) -> exp.Select:
    r"""How many triples of nodes are joined to each other: ``n``.

    Every edge leads from its end of smaller degree to that of larger degree (ties by number). A triangle is then one
    node with two edges to larger ones that are joined, and found once. No node has more than :math:`\sqrt{2m}` larger
    neighbours, so the join makes at most :math:`m\sqrt{2m}` pairs, hubs or not. Whether they are joined is found by an
    outer join, which no optimiser puts before the other: two edges to the same hub would be many more.

    Reference:
        Suri, Vassilvitskii (2011), Counting triangles and the curse of the last reducer, Section 3.
    """
    return _asked(
        """
        SELECT COUNT(z.pair) AS n FROM arcs AS x JOIN arcs AS y ON x.s = y.s AND x.t < y.t
        LEFT JOIN packed AS z ON z.pair = CAST(x.t AS BIGINT) * :shift + CAST(y.t AS BIGINT)
        """,
        ends,
        edges=_tree(_EDGES),
        degrees=_tree(_DEGREES),
        arcs=_tree(_UPWARD),
        packed=_tree(_PACKED),
    )


def shared(ends: exp.Query, above: int) -> exp.Select:
    """The largest number of neighbours that two nodes share, both of a degree ``above`` this: ``n``, at least 0."""
    return _asked(
        """
        SELECT COALESCE(MAX(found), CAST(0 AS BIGINT)) AS n FROM (
            SELECT COUNT(*) AS found FROM spokes AS x JOIN spokes AS y ON x.centre = y.centre AND x.hub < y.hub
            GROUP BY CAST(x.hub AS BIGINT) * :shift + CAST(y.hub AS BIGINT)
        ) AS pairs
        """,
        ends,
        edges=_tree(_EDGES),
        degrees=_tree(_DEGREES),
        hubs=_tree("SELECT node FROM degrees WHERE degree > :above"),
        spokes=_tree(_HUB_ENDS),
        numbers={"above": above},
    )


@cache
def _tree(text: str) -> exp.Query:
    tree = parse_one(text, dialect="duckdb")
    assert isinstance(tree, exp.Query)  # noqa: S101  # what this file writes
    return tree


def _asked(text: str, ends: exp.Query, *, numbers: dict[str, int] | None = None, **relations: exp.Query) -> exp.Select:
    """The query on named relations, each of which may use those before it.

    They stand inside of a subquery: an engine may put public tables in front, which all of them can use.
    """
    query = _tree(text).copy()
    assert isinstance(query, exp.Select)  # noqa: S101  # what this file writes
    for name, relation in {"ends": ends, **relations}.items():
        query = query.with_(quoted(name), as_=relation.copy(), copy=False)
    filled = exp.replace_placeholders(
        query, **{name: whole(value) for name, value in {"shift": _SHIFT, **(numbers or {})}.items()}
    )
    assert isinstance(filled, exp.Select)  # noqa: S101  # as it was
    return exp.select("*").from_(sub(filled, "asked"), copy=False)

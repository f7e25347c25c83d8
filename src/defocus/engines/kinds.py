"""What each part of a tree holds, found from the casts at its bottom, for engines whose results do not say it.

MariaDB has no truth values: it writes TRUE as 1, and a moment with all six decimals.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from sqlglot import exp

from defocus.engines.schema import Kind

__all__ = ["Columns", "kind_of", "noted", "output"]

Columns: TypeAlias = Mapping[str, Kind | None]
_NOTE = "kind"
_DType = exp.DataType.Type
_TYPES = {
    _DType.BOOLEAN: Kind.BOOLEAN,
    **dict.fromkeys((_DType.BIGINT, _DType.INT, _DType.SMALLINT, _DType.DECIMAL), Kind.INTEGER),
    **dict.fromkeys((_DType.DOUBLE, _DType.FLOAT), Kind.NUMBER),
    **dict.fromkeys((_DType.TEXT, _DType.VARCHAR, _DType.CHAR), Kind.TEXT),
    _DType.DATE: Kind.DATE,
    **dict.fromkeys((_DType.TIMESTAMP, _DType.TIMESTAMPNTZ, _DType.DATETIME), Kind.TIMESTAMP),
}
_SORTS: dict[Kind, tuple[type[Any], ...]] = {
    Kind.BOOLEAN: (
        *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.And, exp.Or, exp.Not),
        *(exp.Is, exp.In, exp.Between, exp.Like, exp.Escape, exp.StartsWith, exp.Exists, exp.Boolean),
        *(exp.LogicalOr, exp.LogicalAnd),
    ),
    Kind.INTEGER: (
        *(exp.Count, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Length, exp.DateDiff, exp.IntDiv, exp.Extract),
        exp.Sum,
    ),
    Kind.NUMBER: (exp.Div, exp.Floor, exp.Ceil, exp.Round, exp.Sqrt, exp.Ln, exp.Exp, exp.Pow, exp.Trunc, exp.Sign),
    Kind.TEXT: (
        *(exp.Lower, exp.Upper, exp.Trim, exp.DPipe, exp.SHA2, exp.Substring, exp.Left, exp.Right, exp.Replace),
        *(exp.Concat, exp.Collate),
    ),
    Kind.TIMESTAMP: (exp.TimestampTrunc, exp.DateAdd),
}
_BY_TYPE = {type_: kind for kind, types in _SORTS.items() for type_ in types}


def noted(tree: exp.Expression, stored: Mapping[str, Columns]) -> exp.Expression:
    """The tree, in which every column is noted to be of its kind; ``stored`` says what tables hold, by name."""
    copy = tree.copy()
    _output(copy, dict(stored))
    return copy


def output(tree: exp.Expression, stored: Mapping[str, Columns]) -> Columns:
    """The columns that a query gives, in their order, with their kinds where these are known."""
    return _output(tree.copy(), dict(stored))


def _output(query: exp.Expression, tables: dict[str, Columns]) -> Columns:
    """Note the columns of a query and of all it reads, and what it gives."""
    known = dict(tables)
    for cte in query.args["with_"].expressions if query.args.get("with_") else []:
        known[cte.alias] = _output(cte.this, known)
    if not isinstance(query, exp.Select):
        parts = [part for part in (query.this, query.args.get("expression")) if isinstance(part, exp.Expression)]
        return next(iter([_output(part, known) for part in parts]), {})
    origins = [query.args["from_"].this] if query.args.get("from_") else []
    origins += [join.this for join in query.args.get("joins") or []]
    sources = {origin.alias_or_name: _source(origin, known) for origin in origins}
    everything = {name: kind for source in sources.values() for name, kind in source.items()}
    below = {id(origin) for origin in origins}
    _note(query, below, sources, everything, known)
    given: dict[str, Kind | None] = {}
    for one in query.expressions:
        given.update(everything if isinstance(one, exp.Star) else {one.alias_or_name: kind_of(one)})
    return given


def _source(origin: exp.Expression, known: dict[str, Columns]) -> Columns:
    if isinstance(origin, exp.Subquery):
        return _output(origin.this, known)
    return known.get(origin.name, {}) if isinstance(origin, exp.Table) else {}


def _note(
    node: exp.Expression,
    below: set[int],
    sources: Mapping[str, Columns],
    everything: Columns,
    known: dict[str, Columns],
) -> None:
    """Note the columns of one query; queries that stand in expressions are queries of their own."""
    for part in node.iter_expressions():
        if id(part) in below or isinstance(part, exp.With):
            continue
        if isinstance(part, exp.Column):
            kind = sources.get(part.table, everything).get(part.name) if part.table else everything.get(part.name)
            part.meta[_NOTE] = kind
        elif isinstance(part, exp.Select | exp.SetOperation):
            _output(part, known)
        else:
            _note(part, below, sources, everything, known)


def kind_of(node: Any) -> Kind | None:  # noqa: PLR0911  # one line for each sort of node
    """What a part of a noted tree holds, or None where that is not known."""
    if isinstance(node, exp.Column):
        kind: Kind | None = node.meta.get(_NOTE)
        return kind
    if isinstance(node, exp.Cast):
        return _TYPES.get(node.to.this)
    if isinstance(node, exp.Literal):
        return Kind.TEXT if node.is_string else Kind.INTEGER if node.name.isdigit() else Kind.NUMBER
    if type(node) in _BY_TYPE:
        return _BY_TYPE[type(node)]
    if isinstance(node, exp.Anonymous):
        return Kind.NUMBER if node.name == "LOG10" else None
    if isinstance(node, exp.Null) or not isinstance(node, exp.Expression):
        return None
    if isinstance(node, exp.Case):
        parts = [*(one.args["true"] for one in node.args["ifs"]), node.args.get("default")]
    else:
        parts = [node.this, node.args.get("expression"), *node.expressions]
    kinds = [kind for part in parts if (kind := kind_of(part)) is not None]
    return Kind.NUMBER if Kind.NUMBER in kinds else next(iter(kinds), None)

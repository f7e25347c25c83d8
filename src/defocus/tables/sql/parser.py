"""From text to one SELECT, within limits; what a query may not hold is refused by name, with what to write instead."""

from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel
from sqlglot.tokenizer_core import Token, TokenType

from defocus.errors import InvalidParameterError, UnsupportedSqlError
from defocus.tables.expressions.dates import as_strftime
from defocus.tables.expressions.parser import QUERIES, at, noted

__all__ = [
    "DIALECT",
    "canonical",
    "only",
    "refuse_constructs",
    "refuse_inside",
    "select",
    "statement_refusal",
    "window_refusal",
    "written",
]


_STATEMENTS = {
    "union": "UNION", "intersect": "INTERSECT", "except": "EXCEPT", "values": "VALUES", "pivot": "PIVOT",
    "unpivot": "UNPIVOT", "describe": "DESCRIBE", "command": "This statement", "table": "A table alone",
}  # fmt: skip
_SETS = (
    "rows of several queries cannot be told apart by person",
    "ask several queries, or put the conditions into one WHERE with OR.",
)
_OTHER_ROWS = "it looks at other rows, whose people it would mix"
_WINDOW = (
    "A window function",
    _OTHER_ROWS,
    (
        "write it over aggregates, SUM(COUNT(*)) OVER (), which is computed from released numbers; a window over one"
        " person's rows goes into an aggregate, AVG(LAG(x) OVER (PARTITION BY person ORDER BY day)), or into a"
        " sub-query."
    ),
)
_CONSTRUCTS: tuple[tuple[tuple[type[Any], ...], str, str, str], ...] = (
    ((exp.Union,), "UNION", *_SETS),
    ((exp.Intersect,), "INTERSECT", *_SETS),
    ((exp.Except,), "EXCEPT", *_SETS),
    ((exp.Window, exp.WindowSpec), *_WINDOW),
    (
        (exp.TableSample,),
        "SAMPLE",
        "which rows are drawn is not accounted for",
        "leave it out: bound(by='sampling') limits what one person contributes.",
    ),
    (
        (exp.Cube, exp.Rollup, exp.GroupingSets, exp.Grouping, exp.GroupingId),
        "CUBE, ROLLUP, GROUPING SETS or GROUPING elsewhere than in the outer query",
        "totals are made of released numbers",
        "write GROUP BY ROLLUP (a, b) in the outer SELECT.",
    ),
    (
        (exp.Pivot,),
        "PIVOT or UNPIVOT",
        "its columns would depend on the data",
        "use GROUP BY, and turn the answer around.",
    ),
    (
        (exp.Placeholder, exp.Parameter, exp.SessionParameter, exp.PositionalColumn),
        "A parameter",
        "there is nothing to fill it in",
        "write the value itself.",
    ),
    ((exp.Any, exp.All), "ANY or ALL", "it looks at other rows", "compare with constants: x IN (1, 2)."),
    (
        (exp.Lateral, exp.Unnest, exp.Explode, exp.Posexplode),
        "LATERAL or UNNEST",
        "one row would become several",
        "unnest before the table is opened.",
    ),
    (
        (exp.Values,),
        "VALUES",
        "a list of rows is a public table",
        'open the table with public={"name": frame} and join it.',
    ),
    ((exp.Into,), "INTO", "answers are returned, not stored", "use answer.to_parquet(path)."),
    ((exp.Lock,), "FOR UPDATE", "nothing is changed here", "leave it out."),
    ((exp.Hint,), "A hint", "it tells the engine what to do", "leave it out."),
    ((exp.Version,), "AT or time travel", "the rows are those that were opened", "open that version of the table."),
    ((exp.DDL, exp.DML, exp.Command, exp.Drop, exp.Set), "A statement", "only SELECT is answered", "write SELECT …"),
)
_PARTS = {
    "distinct": (
        "SELECT DISTINCT",
        "it would show which values exist",
        (
            "write SELECT ward, COUNT(*) … GROUP BY ward, and pass delta= to find the groups; a sub-query may have"
            " DISTINCT with the person among its columns, or DISTINCT ON (person)."
        ),
    ),
    "having": (
        "HAVING in a sub-query",
        "it needs groups",
        "move it to the outer SELECT, or write GROUP BY the person before it.",
    ),
    "order": (
        "ORDER BY in a sub-query",
        "raw rows have no order here, and none could be shown",
        "order the released rows in the outer SELECT.",
    ),
    "limit": (
        "LIMIT in a sub-query",
        "which rows it keeps depends on other people's rows",
        "filter with WHERE; bound(rows=…) limits each person.",
    ),
    "qualify": (
        "QUALIFY in a sub-query",
        "it filters by what windows show of single rows",
        "name the window with AS, and filter in the outer SELECT with WHERE.",
    ),
    "offset": ("OFFSET in a sub-query", "which rows it skips depends on other people's rows", "filter with WHERE."),
}

_WORDS = {"when": "time travel", "columns": "column names"}


def refuse_constructs(tree: exp.Expression) -> None:
    """Refuse what has no place anywhere in a query."""
    for node in tree.walk():
        for kinds, construct, why, fix in _CONSTRUCTS:
            if isinstance(node, kinds) and not _has_place(node, tree):
                with at(node):
                    raise UnsupportedSqlError(construct, why=why, fix=fix)
        if isinstance(node, exp.With) and node.args.get("recursive"):
            raise UnsupportedSqlError(
                "WITH RECURSIVE", why="how many rows it makes depends on the data", fix="use a plain WITH."
            )
        if isinstance(node, exp.Query) and not isinstance(node, exp.Table) and not _in_place(node):
            with at(node):
                raise UnsupportedSqlError(
                    "A sub-query inside an expression",
                    why="its value would depend on the rows of many people, without noise",
                    fix="ask it as a query of its own, or write its value as a constant; WHERE understands x IN"
                    " (SELECT …) and EXISTS about a public table, or about the person.",
                )


def _has_place(node: exp.Expression, tree: exp.Expression) -> bool:
    """Whether a window stands where one may (what it may look at is known when names are), or sets are outermost."""
    if isinstance(node, exp.Cube | exp.Rollup | exp.GroupingSets | exp.Grouping | exp.GroupingId):
        return node.find_ancestor(exp.Select, exp.AggFunc) is tree
    if isinstance(node, exp.WindowSpec):
        return isinstance(node.parent, exp.Window)
    if not isinstance(node, exp.Window) or node.args.get("over") is None:
        return False
    return isinstance(node.find_ancestor(exp.Group, exp.Select), exp.Select)


def window_refusal() -> UnsupportedSqlError:
    """Why a window function does not see rows of several people."""
    construct, why, fix = _WINDOW
    return UnsupportedSqlError(construct, why=why, fix=fix)


def _in_place(node: exp.Query) -> bool:
    """Whether a SELECT stands where one belongs: at the top, in FROM, JOIN or WITH, or in IN and EXISTS of a WHERE."""
    if node.parent is None or isinstance(node.parent, exp.From | exp.Join | exp.CTE | exp.Subquery):
        return True
    member = isinstance(node.parent, exp.Exists) or (isinstance(node.parent, exp.In) and node.arg_key == "query")
    return member and isinstance(node.find_ancestor(exp.Where, exp.Select), exp.Where)


def refuse_inside(select: exp.Select) -> None:
    """Refuse parts of a sub-query that are not about single rows, or about the rows of one person."""
    for part, (construct, why, fix) in _PARTS.items():
        found = select.args.get(part)
        if found and not (part == "having" and select.args.get("group")):
            with at(found):
                raise UnsupportedSqlError(construct, why=why, fix=fix)
    only(select, "A sub-query", "expressions", "from_", "joins", "where", "with_", "group", "having")


def only(node: exp.Expression, called: str, *names: str) -> None:
    """Refuse a node that carries more than was understood."""
    for name, value in node.args.items():
        if name in names or value in (None, False, []):
            continue
        if name == "distinct" and isinstance(node, exp.Select):
            construct, why, fix = _PARTS["distinct"]
            raise UnsupportedSqlError(construct, why=why, fix=fix)
        word = _WORDS.get(name, name.strip("_").replace("_", " "))
        raise UnsupportedSqlError(
            f"{called} with {word.upper()}", why="this form of it is not understood", fix=f"leave out {word}."
        )


def statement_refusal(word: str) -> UnsupportedSqlError:
    """Why a statement is not a SELECT."""
    name = _STATEMENTS.get(word.lower(), word.upper()[:40])
    return UnsupportedSqlError(
        name,
        why="only a SELECT with aggregates is answered",
        fix="write SELECT ward, COUNT(*) FROM visits GROUP BY ward, say.",
    )


DIALECT = "duckdb"
"""The dialect that everything is brought into before it is understood."""
_STARTS = {TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN}


def select(text: object, dialect: object = DIALECT) -> exp.Select:
    """The tree of one SELECT statement, in the dialect of DuckDB, whatever dialect it was written in.

    >>> select("SELECT COUNT(*) FROM visits;").key
    'select'
    """
    language = _dialect(dialect)
    if not isinstance(text, str):
        raise InvalidParameterError(
            f"A query must be text, but it is a {type(text).__name__}.", fix="write SELECT COUNT(*) FROM …"
        )
    QUERIES.check_text(text)
    _check_tokens(_tokens(text, language))
    tree = _tree(text, language, spans=True)
    return tree if language == DIALECT else _tree(_translated(tree), DIALECT)


def canonical(node: exp.Expression) -> str:
    """A tree as one line of text."""
    return " ".join(written(node).split())


def written(node: exp.Expression) -> str:
    """A tree as text in the dialect that everything is brought into."""
    return str(node.sql(DIALECT, comments=False, unsupported_level=ErrorLevel.IGNORE))


def _dialect(dialect: object) -> str:
    dialects = sorted(name for name in Dialect.classes if name)
    if not isinstance(dialect, str) or dialect.lower() not in dialects:
        raise InvalidParameterError(
            f"There is no dialect {dialect!r:.40} of SQL.", fix=f"choose one of {', '.join(dialects)}."
        )
    return dialect.lower()


def _tokens(text: str, dialect: str) -> list[Token]:
    try:
        return list(sqlglot.tokenize(text, read=dialect))
    except Exception:  # noqa: BLE001  # whatever hostile text does to the tokenizer, it ends in a refusal
        raise _unreadable(text) from None


def _check_tokens(tokens: list[Token]) -> None:
    """Refuse other statements, a second statement and deep nesting before anything recursive looks at the text."""
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens = tokens[:-1]
    if not tokens:
        raise InvalidParameterError("The query is empty.", fix="write SELECT COUNT(*) FROM …")
    if tokens[0].token_type not in _STARTS:
        raise statement_refusal(tokens[0].text)
    if any(token.token_type is TokenType.SEMICOLON for token in tokens):
        raise UnsupportedSqlError("A second statement", why="one query is one release", fix="ask one SELECT at a time.")
    QUERIES.check_tokens(tokens)


def _tree(text: str, dialect: str, *, spans: bool = False) -> exp.Select:
    try:
        trees = [tree for tree in sqlglot.parse(text, read=dialect) if not isinstance(tree, exp.Semicolon | None)]
    except Exception as problem:  # noqa: BLE001  # whatever hostile text does to the parser, it ends in a refusal
        raise _unreadable(text, _place(problem, text)) from None
    if len(trees) > 1:
        raise UnsupportedSqlError("A second statement", why="one query is one release", fix="ask one SELECT at a time.")
    tree: Any = trees[0] if trees else None
    while isinstance(tree, exp.Subquery) and all(
        name == "this" or value in (None, False, []) for name, value in tree.args.items()
    ):
        tree = tree.this
    if not isinstance(tree, exp.Expression):
        raise InvalidParameterError("The query is empty.", fix="write SELECT COUNT(*) FROM …")
    QUERIES.check_tree(tree)
    noted(tree, text, spans=spans)
    for node in tree.walk():
        node.pop_comments()
    for node in list(tree.find_all(exp.ToChar)):  # which DuckDB would write without its format
        node.replace(as_strftime(node) or node)
    refuse_constructs(tree)
    if not isinstance(tree, exp.Select):
        raise statement_refusal(str(tree.key))
    return tree


def _translated(tree: exp.Select) -> str:
    """The tree as DuckDB writes it."""
    try:
        return str(tree.sql(DIALECT, comments=False, unsupported_level=ErrorLevel.RAISE))
    except Exception:  # noqa: BLE001  # what the translator cannot do is refused, however it fails
        raise UnsupportedSqlError(
            "Something in this query",
            why="it has no counterpart in DuckDB's SQL",
            fix='write the query in the dialect "duckdb".',
        ) from None


def _place(problem: Exception, text: str) -> tuple[int, int] | None:
    """Where the parser stopped."""
    found: dict[str, Any] = next(iter(getattr(problem, "errors", None) or ()), {})
    line, column, word = found.get("line"), found.get("col"), str(found.get("highlight") or "")
    if not isinstance(line, int) or not isinstance(column, int):
        return None
    before = sum(len(one) + 1 for one in text.split("\n")[: line - 1])
    start = text.rfind(word, 0, before + column) if word else before + max(0, column - 1)
    return (start, start + max(1, len(word))) if start >= 0 else None


def _unreadable(text: str, span: tuple[int, int] | None = None) -> InvalidParameterError:
    shown = text if len(text) <= 60 else f"{text[:57]}..."
    refusal = InvalidParameterError(
        f"The query {shown!r} cannot be read.",
        fix="write one SELECT, for example SELECT ward, COUNT(*) FROM visits GROUP BY ward; names with spaces or"
        " hyphens go in double quotes, text in single quotes.",
    )
    refusal.span = span
    return refusal

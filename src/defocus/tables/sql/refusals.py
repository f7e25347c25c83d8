"""What a query may not hold, by name, why, and what to write instead."""

from typing import Any

from sqlglot import exp

from defocus.errors import UnsupportedSqlError

__all__ = ["only", "refuse_constructs", "refuse_inside", "statement_refusal"]

_STATEMENTS = {
    "union": "UNION", "intersect": "INTERSECT", "except": "EXCEPT", "values": "VALUES", "pivot": "PIVOT",
    "unpivot": "UNPIVOT", "describe": "DESCRIBE", "command": "This statement", "table": "A table alone",
}  # fmt: skip
_SETS = (
    "rows of several queries cannot be told apart by person",
    "ask several queries, or put the conditions into one WHERE with OR.",
)
_OTHER_ROWS = "it looks at other rows, whose people it would mix"
_CONSTRUCTS: tuple[tuple[tuple[type[Any], ...], str, str, str], ...] = (
    ((exp.Union,), "UNION", *_SETS),
    ((exp.Intersect,), "INTERSECT", *_SETS),
    ((exp.Except,), "EXCEPT", *_SETS),
    (
        (exp.Qualify,),
        "QUALIFY",
        "it filters by what windows show of single rows",
        "use WHERE for rows, HAVING for groups.",
    ),
    (
        (exp.Window, exp.WindowSpec),
        "A window function",
        _OTHER_ROWS,
        "aggregate with GROUP BY; order the released rows with ORDER BY.",
    ),
    (
        (exp.TableSample,),
        "SAMPLE",
        "which rows are drawn is not accounted for",
        "leave it out: bound(by='sampling') limits what one person contributes.",
    ),
    (
        (exp.Cube, exp.Rollup, exp.GroupingSets, exp.Grouping),
        "CUBE, ROLLUP or GROUPING SETS",
        "each set of groups is a release of its own",
        "ask one query for each set of groups, or count them together with table.cube(…) or dp.workloads.",
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
    (
        (exp.Exists,),
        "EXISTS",
        "it looks at rows of other people",
        "join the private table on the person, or filter with WHERE.",
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
        "write SELECT ward, COUNT(*) … GROUP BY ward, and pass delta= to find the groups.",
    ),
    "group": (
        "GROUP BY in a sub-query",
        "its rows would mix people and depend on noise-free counts",
        "group in the outer SELECT; a condition on groups goes into HAVING.",
    ),
    "having": (
        "HAVING in a sub-query",
        "it needs groups, which only the outer SELECT has",
        "move it to the outer SELECT.",
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
    "offset": ("OFFSET in a sub-query", "which rows it skips depends on other people's rows", "filter with WHERE."),
}

_WORDS = {"when": "time travel", "columns": "column names"}


def refuse_constructs(tree: exp.Expression) -> None:
    """Refuse what has no place anywhere in a query."""
    for node in tree.walk():
        for kinds, construct, why, fix in _CONSTRUCTS:
            if isinstance(node, kinds):
                raise UnsupportedSqlError(construct, why=why, fix=fix)
        if isinstance(node, exp.With) and node.args.get("recursive"):
            raise UnsupportedSqlError(
                "WITH RECURSIVE", why="how many rows it makes depends on the data", fix="use a plain WITH."
            )
        if isinstance(node, exp.In) and node.args.get("query") is not None:
            raise UnsupportedSqlError(
                "IN (SELECT …)",
                why="it looks at rows of other people",
                fix="list the values, x IN ('a', 'b'), or join the other table.",
            )
        if isinstance(node, exp.Query) and not isinstance(node, exp.Table) and not _in_place(node):
            raise UnsupportedSqlError(
                "A sub-query inside an expression",
                why="its value would depend on the rows of many people, without noise",
                fix="ask it as a query of its own, or write its value as a constant.",
            )


def _in_place(node: exp.Query) -> bool:
    """Whether a SELECT stands where one belongs: at the top, in FROM, JOIN or WITH, or in its parentheses."""
    return node.parent is None or isinstance(node.parent, exp.From | exp.Join | exp.CTE | exp.Subquery)


def refuse_inside(select: exp.Select) -> None:
    """Refuse parts of a sub-query that are not about single rows."""
    for part, (construct, why, fix) in _PARTS.items():
        if select.args.get(part):
            raise UnsupportedSqlError(construct, why=why, fix=fix)
    only(select, "A sub-query", "expressions", "from_", "joins", "where", "with_")


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

"""Functions of text. Positions and lengths count code points; texts are compared by their bytes."""

from sqlglot import exp

from defocus.engines.schema import Kind, cased
from defocus.errors import InvalidParameterError, UnsupportedSqlError, WrongKindError
from defocus.tables.expressions.guards import cast
from defocus.tables.expressions.operators import Handler, Read
from defocus.tables.expressions.parser import called, only
from defocus.tables.expressions.terms import Term, made, of

__all__ = ["TEXTS", "appended", "as_text", "text"]

_MOST_WILDCARDS = 8


def text(what: str, term: Term) -> Term:
    """The term, if it is text; NULL becomes one."""
    if term.kind is None:
        return of(None, Kind.TEXT)
    if term.kind is not Kind.TEXT:
        raise WrongKindError(f"{what} needs text, but was given {term.kind}.", fix="write CAST(x AS TEXT).")
    return term


def _changed(node: exp.Expression, read: Read) -> Term:
    """LOWER and UPPER."""
    only(node, "this")
    x = text(node.key.upper(), read(node.this))
    return made(Kind.TEXT, type(node)(this=x.sql), x)


def _trimmed(node: exp.Trim, read: Read) -> Term:
    """TRIM, LTRIM and RTRIM of spaces, or of the characters of a constant."""
    only(node, "this", "expression", "position")
    x = text("TRIM", read(node.this))
    characters = node.args.get("expression")
    wanted = of(" ", Kind.TEXT) if characters is None else read(characters)
    if not wanted.fixed or not isinstance(wanted.value, str) or not wanted.value:
        raise InvalidParameterError("TRIM takes constant characters.", fix="write TRIM(x), or TRIM('.' FROM x).")
    position = node.args.get("position")
    return made(Kind.TEXT, exp.Trim(this=x.sql, expression=wanted.sql, position=position or None), x)


def _length(node: exp.Length, read: Read) -> Term:
    only(node, "this")
    x = text("LENGTH", read(node.this))
    return made(Kind.INTEGER, exp.Length(this=x.sql), x)


def _substring(node: exp.Substring, read: Read) -> Term:
    only(node, "this", "start", "length")
    x = text("SUBSTRING", read(node.this))
    start = _whole("SUBSTRING", node.args["start"], read, least=1)
    length = node.args.get("length")
    more = {} if length is None else {"length": _whole("SUBSTRING", length, read, least=0).sql}
    return made(Kind.TEXT, exp.Substring(this=x.sql, start=start.sql, **more), x)


def _end(node: exp.Expression, read: Read) -> Term:
    """LEFT and RIGHT."""
    only(node, "this", "expression")
    x = text(node.key.upper(), read(node.this))
    count = _whole(node.key.upper(), node.expression, read, least=0)
    return made(Kind.TEXT, type(node)(this=x.sql, expression=count.sql), x)


def _whole(what: str, node: exp.Expression, read: Read, *, least: int) -> Term:
    term = read(node)
    if not term.fixed or isinstance(term.value, bool) or not isinstance(term.value, int):
        raise InvalidParameterError(
            f"{what} takes constant positions.", fix=f"write whole numbers of at least {least}."
        )
    if not least <= term.value < 2**31:
        raise InvalidParameterError(
            f"{what} was given the position {term.value}.", fix=f"write a number of at least {least} and below 2**31."
        )
    return term


def _concatenated(node: exp.DPipe, read: Read) -> Term:
    """The operator ||, NULL where a part is."""
    only(node, "this", "expression", "safe")
    return appended(_spelled("||", read(node.this)), _spelled("||", read(node.expression)))


def _concat(node: exp.Concat, read: Read) -> Term:
    """CONCAT, which passes over NULL."""
    only(node, "expressions", "safe", "coalesce")
    parts = [_or_empty(_spelled("CONCAT", read(part))) for part in node.expressions]
    total = parts[0]
    for part in parts[1:]:
        total = appended(total, part)
    return total


def _spelled(what: str, term: Term) -> Term:
    """Text, or what has one text in every engine."""
    return as_text(term) if term.kind in {Kind.INTEGER, Kind.BOOLEAN, Kind.DATE} else text(what, term)


def _or_empty(term: Term) -> Term:
    if term.fixed:
        return term if term.value is not None else of("", Kind.TEXT)
    return made(Kind.TEXT, exp.Coalesce(this=term.sql, expressions=[of("", Kind.TEXT).sql]), term)


def appended(a: Term, b: Term) -> Term:
    """One text after the other."""
    right = exp.Paren(this=b.sql) if isinstance(b.sql, exp.DPipe) else b.sql
    sql = exp.DPipe(this=a.sql, expression=right, safe=True)
    return made(Kind.TEXT, sql, a, b, texts=a.texts + b.texts, extra=a.extra + b.extra)


def _replaced(node: exp.Replace, read: Read) -> Term:
    only(node, "this", "expression", "replacement")
    x = text("REPLACE", read(node.this))
    replacement = node.args.get("replacement")
    old = text("REPLACE", read(node.expression))
    new = text("REPLACE", read(replacement) if replacement is not None else of("", Kind.TEXT))
    if not (isinstance(old.value, str) and isinstance(new.value, str) and old.value):
        raise InvalidParameterError(
            "REPLACE takes constants, the first not empty.", fix="write REPLACE(x, 'old', 'new')."
        )
    growth = max(1, -(-new.extra // old.extra))
    sql = exp.Replace(this=x.sql, expression=old.sql, replacement=new.sql)
    return made(Kind.TEXT, sql, x, texts=x.texts * growth, extra=x.extra * growth)


def _starts_with(node: exp.StartsWith, read: Read) -> Term:
    only(node, "this", "expression")
    x, start = text("STARTS_WITH", read(node.this)), text("STARTS_WITH", read(node.expression))
    return made(Kind.BOOLEAN, exp.StartsWith(this=x.sql, expression=start.sql), x, start)


def _position(node: exp.StrPosition, read: Read) -> Term:
    """POSITION and STRPOS: where a text begins in another, 0 where it does not."""
    only(node, "this", "substr")
    x, wanted = text(called(node), read(node.this)), text(called(node), read(node.args["substr"]))
    return cast(made(Kind.INTEGER, exp.StrPosition(this=x.sql, substr=wanted.sql), x, wanted), Kind.INTEGER)


def _contains(node: exp.Contains, read: Read) -> Term:
    only(node, "this", "expression")
    x, wanted = text("CONTAINS", read(node.this)), text("CONTAINS", read(node.expression))
    place = exp.StrPosition(this=x.sql, substr=wanted.sql)
    return made(Kind.BOOLEAN, exp.GT(this=place, expression=exp.Literal.number(0)), x, wanted)


def _ends_with(node: exp.EndsWith, read: Read) -> Term:
    only(node, "this", "expression")
    x, end = text("ENDS_WITH", read(node.this)), read(node.expression)
    if not isinstance(end.value, str):
        raise InvalidParameterError("ENDS_WITH takes a constant.", fix="write ENDS_WITH(x, 'end').")
    last = exp.Right(this=x.sql, expression=exp.Literal.number(len(end.value)))
    return made(Kind.BOOLEAN, exp.EQ(this=last, expression=end.sql), x)


def _like(node: exp.Like | exp.ILike, read: Read) -> Term:
    only(node, "this", "expression", "negate")
    return _matched(node, "", read)


def _like_with_escape(node: exp.Escape, read: Read) -> Term:
    only(node, "this", "expression")
    escape = read(node.expression).value
    like = isinstance(node.this, exp.Like | exp.ILike)
    if not like or not isinstance(escape, str) or len(escape) != 1 or escape in "%_" or escape.lower() != escape:
        raise UnsupportedSqlError(
            "This ESCAPE", why="it is one character after LIKE", fix="write x LIKE '10!%' ESCAPE '!', say."
        )
    only(node.this, "this", "expression", "negate")
    return _matched(node.this, escape, read)


def _matched(node: exp.Like | exp.ILike, escape: str, read: Read) -> Term:
    """LIKE; and ILIKE, which is LIKE of both sides in lower case."""
    word = node.key.upper()
    x, pattern = text(word, read(node.this)), read(node.expression).value
    if not isinstance(pattern, str):
        raise UnsupportedSqlError(
            f"{word} with a pattern that is not a constant",
            why="the pattern must not depend on the data",
            fix="write the pattern as text, or use STARTS_WITH(x, y).",
        )
    _check_pattern(pattern, escape)
    if isinstance(node, exp.ILike):
        x, pattern = made(Kind.TEXT, exp.Lower(this=x.sql), x), pattern.translate(str.maketrans(*cased("LOWER")))
    subject = exp.Paren(this=x.sql) if isinstance(x.sql, exp.Binary) else x.sql
    sql: exp.Expression = exp.Like(this=subject, expression=of(pattern, Kind.TEXT).sql)
    if escape:
        sql = exp.Escape(this=sql, expression=of(escape, Kind.TEXT).sql)
    if node.args.get("negate"):
        sql = exp.Not(this=exp.Paren(this=sql))
    return made(Kind.BOOLEAN, sql, x)


def _check_pattern(pattern: str, escape: str) -> None:
    """Refuse what engines read differently, or only complain about once a row gets that far."""
    if "\\" in pattern and escape != "\\":
        raise UnsupportedSqlError(
            "A backslash in a pattern",
            why="some engines take it as an escape and some do not",
            fix="name an escape, as in x LIKE '10!%' ESCAPE '!', or write _ for the backslash.",
        )
    wildcards = place = 0
    while place < len(pattern):
        if escape and pattern[place] == escape:
            place += 1
            if pattern[place : place + 1] not in {"%", "_", escape}:
                raise InvalidParameterError(
                    f"In a pattern, {escape!r} escapes nothing.", fix=f"follow it with %, _ or {escape}."
                )
        else:
            wildcards += pattern[place] == "%"
        place += 1
    if wildcards > _MOST_WILDCARDS:
        raise UnsupportedSqlError(
            f"A pattern with {wildcards} wildcards",
            why="matching could take very long on some rows",
            fix=f"use at most {_MOST_WILDCARDS} percent signs, or several LIKEs with AND.",
        )


def as_text(term: Term) -> Term:
    """Any other kind, written out; its length is bounded."""
    return made(Kind.TEXT, cast(term, Kind.TEXT).sql, term, texts=0, extra=32)


TEXTS: dict[type[exp.Expression], Handler] = {
    exp.Lower: _changed,
    exp.Upper: _changed,
    exp.Trim: _trimmed,
    exp.Length: _length,
    exp.Substring: _substring,
    exp.Left: _end,
    exp.Right: _end,
    exp.DPipe: _concatenated,
    exp.Concat: _concat,
    exp.Replace: _replaced,
    exp.StartsWith: _starts_with,
    exp.StrPosition: _position,
    exp.Contains: _contains,
    exp.EndsWith: _ends_with,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _like_with_escape,
}

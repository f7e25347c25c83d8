"""A private choice among each person's rows, made in the engine with a key that nobody keeps.

Guarantee:
    Rows are ranked by SHA-256 of a fresh 128-bit key and what no other row of the choice has: its number, or all of
    its values where rows are distinct. The ranks of all rows are then independent and uniform, so which rows of one
    person are chosen says nothing about, and depends on nothing in, the rows of another. Numbers follow the order in
    which rows happen to be read, so each choice that numbers rows has a name of its own, which is hashed too: the
    same number in two choices is two independent ranks, whoever's rows have it.
Assumes:
    SHA-256 with a secret prefix is a random function to whoever does not know the key: a computational guarantee,
    unlike that of the noise. The key is forgotten after the query, but it is part of the SQL text: an engine that logs
    its statements keeps it, so such logs are as private as the data.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import final

from sqlglot import exp

from defocus.noise import Bits
from defocus.tables.rows import named

__all__ = ["Chance"]


@final
@dataclass(frozen=True, slots=True)
class Chance:
    """One key. Drawn anew for every release."""

    key: str = field(repr=False)
    statement: str = ""
    """For which statement of the release rows are numbered."""

    @classmethod
    def drawn(cls, bits: Bits) -> "Chance":
        """A fresh key."""
        return cls(f"{bits.integer(128):032x}")

    def of(self, statement: str) -> "Chance":
        """The same key for one statement, whose numbered rows are ranked apart from those of all others."""
        return replace(self, statement=statement)

    def first(
        self,
        rows: exp.Select,
        most: int,
        kept: Sequence[str],
        *,
        within: Sequence[str] = ("unit",),
        choice: str | None = None,
    ) -> exp.Select:
        """At most ``most`` rows of each person, or of each person ``within`` a group.

        Distinct rows are told apart by what they hold, others are numbered first, for a ``choice`` with a name.
        """
        names = list(dict.fromkeys(("unit", *within, *kept)))
        if choice is not None:
            number = exp.Window(this=exp.RowNumber())
            rows = exp.select(*map(_column, names), named(number, "no")).from_(_sub(rows, "a"), copy=False)
            identity: list[exp.Expression] = [_column("no")]
        else:
            identity = [_column(name) for name in names]
        rank = exp.Window(
            this=exp.RowNumber(),
            partition_by=[_column(name) for name in within],
            order=exp.Order(expressions=[exp.Ordered(this=self.rank(identity, choice), nulls_first=True)]),
        )
        ranked = exp.select(*map(_column, names), named(rank, "rank")).from_(_sub(rows, "b"), copy=False)
        few = exp.LTE(this=_column("rank"), expression=exp.Literal.number(most))
        return exp.select(*map(_column, names)).from_(_sub(ranked, "c"), copy=False).where(few, copy=False)

    def groups(self, rows: exp.Select, most: int, kept: Sequence[str]) -> exp.Select:
        """All rows of each person in at most ``most`` groups."""
        pairs = exp.select(_column("unit"), _column("g")).distinct().from_(_sub(rows, "a"), copy=False)
        chosen = self.first(pairs, most, ("g",))
        names = list(dict.fromkeys(("unit", *kept)))
        same = [
            exp.EQ(this=exp.column(name, table="x", quoted=True), expression=exp.column(name, table="y", quoted=True))
            for name in ("unit", "g")
        ]
        return (
            exp.select(*(exp.column(name, table="x", quoted=True) for name in names))
            .from_(_sub(rows, "x"), copy=False)
            .join(_sub(chosen, "y"), on=exp.and_(*same), copy=False)
        )

    def rank(self, identity: Sequence[exp.Expression], choice: str | None = None) -> exp.Expression:
        """SHA-256 of the key, of what numbers were given for, and of what tells a row apart, in hexadecimal.

        Parts are written with their lengths, so that two rows never share a text.
        """
        apart = "" if choice is None else "".join(f"#{len(part)}:{part}" for part in (self.statement, choice))
        text: exp.Expression = exp.Literal.string(self.key + apart)
        for part in identity:
            words = exp.func("coalesce", exp.cast(part.copy(), "text"), exp.Literal.string(""))
            size = exp.cast(exp.Length(this=words.copy()), "text")
            absent = (
                exp.case().when(part.copy().is_(exp.null()), exp.Literal.string("n")).else_(exp.Literal.string("v"))
            )
            for piece in (absent, size, exp.Literal.string(":"), words):
                text = exp.DPipe(this=text, expression=piece, safe=True)
        return exp.SHA2(this=text, length=exp.Literal.number(256))


def _column(name: str) -> exp.Column:
    return exp.column(name, quoted=True)


def _sub(select: exp.Select, name: str) -> exp.Subquery:
    return select.subquery(exp.to_identifier(name, quoted=True))

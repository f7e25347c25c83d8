"""A private choice among each person's rows, made in the engine with a key that nobody keeps.

Guarantee:
    The rows of a person are numbered in the order of what they hold, and ranked by SHA-256 of a fresh 128-bit key, the
    person and the number. Numbers of one person are distinct, so the ranks of all rows are independent and uniform:
    every subset of a person's rows is chosen as likely as every other of its size, and which one says nothing about,
    and depends on nothing in, the rows of anybody else. Rows that hold the same are interchangeable, so for one key
    every engine chooses the same rows, in whatever order it reads them.

    Each choice has a name, which is hashed too: the same number in two choices is two independent ranks.
Assumes:
    SHA-256 with a secret prefix is a random function to whoever does not know the key: a computational guarantee,
    unlike that of the noise. The key is forgotten after the query, but it is part of the SQL text: an engine that logs
    its statements keeps it, so such logs are as private as the data.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import final

from sqlglot import exp

from defocus.engines.syntax import TEXT, column, named, sub, typed
from defocus.noise import Bits

__all__ = ["RowSampler"]


@final
@dataclass(frozen=True, slots=True)
class RowSampler:
    """One key. Drawn anew for every release."""

    key: str = field(repr=False)
    statement: str = ""
    """For which statement of the release rows are chosen."""

    @classmethod
    def drawn(cls, bits: Bits) -> "RowSampler":
        """A fresh key."""
        return cls(f"{bits.integer(128):032x}")

    def of(self, statement: str) -> "RowSampler":
        """The same key for one statement, whose choices are independent of those of all others."""
        return replace(self, statement=statement)

    def first(
        self, rows: exp.Select, most: int, kept: Sequence[str], *, choice: str, within: Sequence[str] = ("unit",)
    ) -> exp.Select:
        """At most ``most`` rows of each person, or of each person ``within`` a group."""
        names = list(dict.fromkeys((*within, *kept)))
        held = [name for name in names if name not in within]
        numbered = exp.select(*map(column, names), named(_place(within, [column(name) for name in held]), "no"))
        identity = [*map(column, within), column("no")]
        ranked = exp.select(*map(column, names), named(_place(within, [self.rank(identity, choice)]), "rank"))
        few = exp.LTE(this=column("rank"), expression=exp.Literal.number(most))
        return (
            exp.select(*map(column, names))
            .from_(sub(ranked.from_(sub(numbered.from_(sub(rows, "a")), "b")), "c"), copy=False)
            .where(few, copy=False)
        )

    def pairs(self, pairs: exp.Select, most: int) -> exp.Select:
        """At most ``most`` of the distinct groups of each person, the same ones in every statement of a release."""
        return self.of("").first(pairs, most, ("g",), choice="groups")

    def groups(self, rows: exp.Select, most: int, kept: Sequence[str]) -> exp.Select:
        """All rows of each person in at most ``most`` groups."""
        pairs = exp.select(column("unit"), column("g")).distinct().from_(sub(rows, "a"), copy=False)
        chosen = self.pairs(pairs, most)
        names = list(dict.fromkeys(("unit", *kept)))
        same = [exp.EQ(this=column(name, "x"), expression=column(name, "y")) for name in ("unit", "g")]
        return (
            exp.select(*(column(name, "x") for name in names))
            .from_(sub(rows, "x"), copy=False)
            .join(sub(chosen, "y"), on=exp.and_(*same), copy=False)
        )

    def rank(self, identity: Sequence[exp.Expression], choice: str) -> exp.Expression:
        """SHA-256 of the key, of what the choice is called, and of what tells a row apart, in hexadecimal.

        Parts are written with their lengths, so that two rows never share a text.
        """
        called = "".join(f"#{len(part)}:{part}" for part in (self.statement, choice))
        text: exp.Expression = exp.Literal.string(self.key + called)
        for part in identity:
            words = exp.func("coalesce", typed(part.copy(), TEXT), exp.Literal.string(""))
            size = typed(exp.Length(this=words.copy()), TEXT)
            absent = (
                exp.case().when(part.copy().is_(exp.null()), exp.Literal.string("n")).else_(exp.Literal.string("v"))
            )
            for piece in (absent, size, exp.Literal.string(":"), words):
                text = exp.DPipe(this=text, expression=piece, safe=True)
        return exp.SHA2(this=text, length=exp.Literal.number(256))


def _place(within: Sequence[str], order: Sequence[exp.Expression]) -> exp.Expression:
    """The number of a row among those of the same person, in this order; rows that tie are interchangeable."""
    ordered = [exp.Ordered(this=one, nulls_first=True) for one in order]
    return exp.Window(
        this=exp.RowNumber(),
        partition_by=[column(name) for name in within],
        order=exp.Order(expressions=ordered) if ordered else None,
    )

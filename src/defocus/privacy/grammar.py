"""The grammar of privacy expressions: text to tree, by tokens and recursive descent, never evaluated.

::

    sum      := product ("+" product)*
    product  := atom ("*" atom)*
    atom     := number | name | name "(" [argument ("," argument)*] ")" | "(" sum ")"
    argument := [name "="] sum
    number   := ["-"] literal | ["-"] digits "/" digits

A tree says what was written and where; :mod:`defocus.privacy.expressions` says what it means.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, TypeAlias, final

from defocus.errors import ExpressionError, Number

__all__ = ["Argument", "Call", "Literal", "Name", "Node", "Product", "Sum", "read"]

_LONGEST = 20_000
_DEEPEST = 32
_MOST_DIGITS = 1_000


@final
@dataclass(frozen=True, slots=True)
class Literal:
    """A number: as Python would hold it, and exactly as written."""

    value: Number
    exact: Fraction
    at: int


@final
@dataclass(frozen=True, slots=True)
class Name:
    """A name that stands alone."""

    text: str
    at: int


@final
@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a call, by place or by name."""

    name: str | None
    value: "Node"
    at: int


@final
@dataclass(frozen=True, slots=True)
class Call:
    """A name with arguments."""

    name: str
    arguments: tuple[Argument, ...]
    at: int


@final
@dataclass(frozen=True, slots=True)
class Product:
    """Two or more factors."""

    factors: tuple["Node", ...]
    at: int


@final
@dataclass(frozen=True, slots=True)
class Sum:
    """Two or more terms."""

    terms: tuple["Node", ...]
    at: int


Node: TypeAlias = Literal | Name | Call | Product | Sum


def read(text: object) -> Node:
    """Read a whole text as one tree.

    >>> read("2 * tea(x)")
    Product(factors=(Literal(value=2, exact=Fraction(2, 1), at=0),
        Call(name='tea', arguments=(Argument(name=None, value=Name(text='x', at=8), at=8),), at=4)), at=0)
    """
    if not isinstance(text, str):
        raise ExpressionError(
            f"An expression is text, but got {type(text).__name__}", text="", position=0, fix='write "gaussian(1.0)".'
        )
    if len(text) > _LONGEST:
        raise ExpressionError(
            f"The expression has {len(text)} characters, more than {_LONGEST}",
            text=text,
            position=_LONGEST,
            fix="count equal events with *, or compose them in Python with +.",
        )
    return _Reader(text).whole()


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<sign>[-+*/(),=])"
    r"|(?P<space>[ \t\r\n]+)"
)


_MEANT = {"×": "*", "·": "*", "÷": "/", "−": "-"}
"""Signs of mathematics that have another spelling here."""


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            shown = text[at] if "!" <= text[at] <= "~" or text[at] in _MEANT else f"U+{ord(text[at]):04X}"
            raise ExpressionError(
                f"The character {shown} has no meaning here",
                text=text,
                position=at,
                fix=f"write {_MEANT[text[at]]} instead."
                if text[at] in _MEANT
                else "use names, decimal digits and + * / ( ) , = only.",
            )
        if match.lastgroup != "space":
            yield _Token(str(match.lastgroup), match.group(), at)
        at = match.end()
    yield _Token("end", "", len(text))


@final
class _Reader:
    """Recursive descent with one token of lookahead, two before ``name =``."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._next = 0
        self._depth = 0

    def whole(self) -> Node:
        node = self._sum()
        if self._peek().kind != "end":
            raise self._unexpected()
        return node

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self, sign: str) -> bool:
        found = self._peek().kind == "sign" and self._peek().text == sign
        self._next += found
        return found

    def _sum(self) -> Node:
        at = self._peek().at
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._wrong(f"Nested more than {_DEEPEST} deep", at, "remove parentheses.")
        terms = [self._product()]
        while self._take("+"):
            terms.append(self._product())
        self._depth -= 1
        return terms[0] if len(terms) == 1 else Sum(tuple(terms), at)

    def _product(self) -> Node:
        at = self._peek().at
        factors = [self._atom()]
        while self._take("*"):
            factors.append(self._atom())
        return factors[0] if len(factors) == 1 else Product(tuple(factors), at)

    def _atom(self) -> Node:
        token = self._peek()
        if self._take("("):
            inner = self._sum()
            if not self._take(")"):
                raise self._unexpected()
            return inner
        if token.kind == "name":
            self._next += 1
            return self._call(token) if self._take("(") else Name(token.text, token.at)
        if token.kind == "number" or (token.text == "-" and self._tokens[self._next + 1].kind == "number"):
            return self._number()
        raise self._unexpected()

    def _call(self, name: _Token) -> Call:
        arguments: list[Argument] = []
        while not self._take(")"):
            if arguments and not self._take(","):
                raise self._unexpected()
            place = self._peek()
            keyword = place.kind == "name" and self._tokens[self._next + 1].text == "="
            self._next += 2 * keyword
            arguments.append(Argument(place.text if keyword else None, self._sum(), place.at))
        return Call(name.text, tuple(arguments), name.at)

    def _number(self) -> Literal:
        at = self._peek().at
        sign = -1 if self._take("-") else 1
        value, exact = self._literal()
        if self._take("/"):
            below = self._peek()
            bottom, divisor = self._literal()
            if not (isinstance(value, int) and isinstance(bottom, int)):
                raise self._wrong("A fraction is made of two whole numbers", at, "write for example 1/3, or a decimal.")
            if not divisor:
                raise self._wrong("A fraction cannot have the denominator zero", below.at, "divide by something else.")
            value = exact = exact / divisor
        self._fits(exact, at)
        return Literal(sign * value, sign * exact, at)

    def _literal(self) -> tuple[Number, Fraction]:
        token = self._peek()
        if token.kind != "number":
            raise self._unexpected()
        self._next += 1
        digits, _, exponent = token.text.lower().partition("e")
        if len(digits) > _MOST_DIGITS or len(exponent) > 5 or abs(int(exponent or 0)) > _MOST_DIGITS:
            raise self._out_of_range(token.at)
        exact = Fraction(token.text)
        return (int(digits) if digits.isdecimal() and not exponent else float(token.text)), exact

    def _fits(self, exact: Fraction, at: int) -> None:
        """Refuse what a float cannot hold: accountants work with floats in the end, and 1e-999 is not zero."""
        try:
            stored = float(exact)
        except OverflowError:
            stored = math.inf
        if not math.isfinite(stored) or (exact and not stored):
            raise self._out_of_range(at)

    def _out_of_range(self, at: int) -> ExpressionError:
        return self._wrong("The number is out of range", at, "use numbers between 1e-300 and 1e300.")

    def _unexpected(self) -> ExpressionError:
        token, previous = self._peek(), self._tokens[max(self._next - 1, 0)]
        signs = [t.text for t in self._tokens]
        if token.kind == "end":
            open_ended = signs.count("(") > signs.count(")")
            return self._wrong(
                "A parenthesis is not closed" if open_ended else "The expression ends too early",
                token.at,
                "add )." if open_ended else "complete it, for example: 10 * gaussian(1.0).",
            )
        if token.text == "*" == previous.text:
            return self._wrong("There are no powers", token.at, "write the number out.")
        if token.text == "," and previous.kind == "number" and self._tokens[self._next + 1].kind == "number":
            whole = f"{previous.text[:20]}{self._tokens[self._next + 1].text[:20]}"
            return self._wrong("A number is written without commas", token.at, f"write {whole}.")
        if token.text == "-":
            return self._wrong("A loss cannot be subtracted", token.at, "compose events with + only.")
        if previous.kind == "number" and token.kind in {"name", "number"}:
            return self._wrong(
                f"Between {previous.text[:20]} and {token.text[:20]} something is missing", token.at, "write *."
            )
        return self._wrong(
            f"Did not expect {token.text[:20]}", token.at, "write for example: 10 * gaussian(1.0) + laplace(2)."
        )

    def _wrong(self, what: str, at: int, fix: str) -> ExpressionError:
        return ExpressionError(what, text=self._text, position=at, fix=fix)

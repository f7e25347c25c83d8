"""Events as text: printed, and parsed without evaluating anything.

The grammar of privacy expressions: text to tree, by tokens and recursive descent, never evaluated.

::

    sum      := product ("+" product)*
    product  := atom ("*" atom)*
    atom     := number | name | name "(" [argument ("," argument)*] ")" | "(" sum ")"
    argument := [name "="] sum
    number   := ["-"] literal | ["-"] digits "/" digits

A tree says what was written and where; :mod:`defocus.privacy.expressions` says what it means.

Events as text: a small language that is parsed, never evaluated.

The names are those of the events in lower case: ``gaussian(1.0)``, ``sampled(laplace(2), rate=0.01)``;
``+`` composes, a whole number times an event repeats it, and ``nothing`` is no release at all.
Numbers are written 3, 0.01, 1e-5, or as exact fractions, 1/3. One free name, ``x`` by custom, may
stand for the number that :func:`defocus.privacy.calibrate` is to find. The grammar is in
:mod:`defocus.privacy.expressions`.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias, final

from defocus.errors import DefocusError, ExpressionError, InvalidParameterError, Number
from defocus.privacy import events
from defocus.privacy.events import NOTHING, Composed, Event, compose
from defocus.privacy.numbers import nearest
from defocus.privacy.wire import write_number

__all__ = [
    "Argument",
    "Call",
    "Literal",
    "Name",
    "Node",
    "Product",
    "Sum",
    "family",
    "names",
    "parse",
    "read",
    "sketch",
    "unparse",
]


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
        stored = nearest(exact)
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


_MOST_REPETITIONS = 2**63 - 1
_LONG = 10**12
"""From here on a whole number is no easier to read than one with an exponent."""
_NOISE = ("sigma", "scale", "std", "b")
_RATIO = ", where ratio is the noise divided by the sensitivity"


def _spelling(kind: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind).lower()


_EVENTS: dict[str, type[Any]] = {
    _spelling(name): kind
    for name in events.__all__
    if isinstance(kind := getattr(events, name), type) and issubclass(kind, Event) and kind not in {Event, Composed}
}


def names() -> tuple[str, ...]:
    """Every name an expression may use.

    >>> "randomized_response" in names()
    True
    """
    return (*sorted(_EVENTS), "nothing")


def parse(text: str) -> Event:
    """Read an event; whatever is not an event is refused with a caret under the place.

    >>> parse("1000 * sampled(gaussian(1.0), 0.01) + laplace(1/3)")
    Composed(parts=((Sampled(event=Gaussian(ratio=1.0), rate=0.01), 1000), (Laplace(ratio=Fraction(1, 3)), 1)))
    >>> parse("gausian(1)")
    Traceback (most recent call last):
    ...
    defocus.errors.core.ExpressionError: There is no event called gausian, at position 1:
        gausian(1)
        ^
    To fix: did you mean gaussian?
    """
    return _Builder(text, unknown=None, value=0).event(read(text))


def family(text: str, *, unknown: str = "x") -> Callable[[Number], Event]:
    """Read an event with one number left open, as a function of that number.

    >>> family("sampled(gaussian(x), 0.01) * 1000")(1.5) == parse("1000 * sampled(gaussian(1.5), 0.01)")
    True
    """
    tree = read(text)
    if not _mentions(tree, unknown):
        raise ExpressionError(
            f"The unknown {unknown} does not occur",
            text=text,
            position=0,
            fix=f"write {unknown} for the number to be found, as in 1000 * sampled(gaussian({unknown}), 0.01).",
        )

    def make(value: Number) -> Event:
        return _Builder(text, unknown=unknown, value=value).event(tree)

    return make


def unparse(event: Event) -> str:
    """Write an event as an expression that :func:`parse` reads back to an equal event.

    >>> unparse(2 * events.Laplace(0.5) + events.RandomizedResponse(1, categories=3))
    '2 * laplace(0.5) + randomized_response(1, categories=3)'
    """
    return _written(event, _exactly)


def sketch(event: Event) -> str:
    """The same for the eye: numbers with four digits, and noise in units of its sensitivity.

    >>> sketch(events.DiscreteLaplace(271308812, sensitivity=83886080) + events.Gaussian(1 / 3))
    'discrete_laplace(3.234) + gaussian(0.3333)'
    """
    return _written(_scaled(event), _briefly)


def _scaled(event: Event) -> Event:
    """The event with noise and sensitivity divided by the sensitivity."""
    match event:
        case Composed(parts):
            return Composed(tuple((_scaled(part), times) for part, times in parts))
        case events.DiscreteGaussian(sigma, sensitivity, dimension):
            return events.DiscreteGaussian(Fraction(sigma) / Fraction(sensitivity), dimension=dimension)
        case events.DiscreteLaplace(scale, sensitivity):
            return events.DiscreteLaplace(Fraction(scale) / sensitivity)
        case (
            events.Sampled() | events.SampledBatch() | events.Selected() | events.SelectedPoisson() | events.Shuffled()
        ):
            return dataclasses.replace(event, event=_scaled(event.event))
        case _:
            return event


def _exactly(number: Number) -> str:
    return str(number if isinstance(number, Fraction) else write_number(number))


def _briefly(number: Number) -> str:
    exact = Fraction(number)
    whole = exact.denominator == 1 and exact < _LONG
    return str(exact) if whole else f"{float(Decimal(exact.numerator) / exact.denominator):.4g}"


def _written(event: Event, number: Callable[[Any], str]) -> str:
    if not isinstance(event, Event):
        raise InvalidParameterError(
            f"Only an event can be written as an expression, but got {type(event).__name__}.",
            fix="pass for example Gaussian(1).",
        )
    if isinstance(event, Composed):
        parts = ((_written(part, number), times) for part, times in event.parts)
        return " + ".join(text if times == 1 else f"{times} * {text}" for text, times in parts) or "nothing"
    kind: Any = type(event)
    given: list[str] = []
    for field in dataclasses.fields(kind):
        value = getattr(event, field.name)
        if field.default is dataclasses.MISSING or value != field.default:
            written = _written(value, number) if isinstance(value, Event) else number(value)
            given.append(f"{field.name}={written}" if given else written)
    return f"{_spelling(kind.__name__)}({', '.join(given)})"


def _mentions(node: Node, unknown: str) -> bool:
    match node:
        case Name(text):
            return text == unknown
        case Call(_, arguments):
            return any(_mentions(argument.value, unknown) for argument in arguments)
        case Product(inner) | Sum(inner):
            return any(_mentions(part, unknown) for part in inner)
        case _:
            return False


@final
@dataclasses.dataclass(frozen=True, slots=True)
class _Builder:
    """Makes the event a tree describes, given the value of the unknown."""

    text: str
    unknown: str | None
    value: Number

    def event(self, node: Node) -> Event:
        match node:
            case Sum(terms):
                return compose([self.event(term) for term in terms])
            case Product(factors):
                return self._repeated(factors)
            case Call():
                return self._made(node)
            case Name("nothing"):
                return NOTHING
            case Name(text, at) if text in _EVENTS:
                raise self._wrong(f"{text} needs its parameters", at, f"write {_usage(text)}.")
            case Name(text, at) if text != self.unknown:
                raise self._no_event(text, at)
        raise self._wrong("A number is not an event", node.at, "write an event, for example gaussian(1.0).")

    def _repeated(self, factors: tuple[Node, ...]) -> Event:
        inner = [factor for factor in factors if not isinstance(factor, Literal)]
        for part in inner:
            if isinstance(part, Name) and part.text not in names():
                raise self._wrong(f"{part.text[:60]} is not a count", part.at, "write the count as a whole number.")
        if len(inner) != 1:
            raise self._wrong(
                "A product needs exactly one event",
                inner[1].at if inner else factors[0].at,
                "write a count times an event, and + between events.",
            )
        times = 1
        for factor in factors:
            if isinstance(factor, Literal):
                if factor.exact < 0 or factor.exact.denominator != 1:
                    raise self._wrong(
                        "An event is repeated a whole number of times", factor.at, "write 10 * gaussian(1.0)."
                    )
                times *= int(factor.exact)
        if times > _MOST_REPETITIONS:
            raise self._wrong("There are too many repetitions", factors[0].at, "repeat less than 2**63 times.")
        return times * self.event(inner[0])

    def _made(self, call: Call) -> Event:
        kind = _EVENTS.get(call.name)
        if kind is None:
            raise self._no_event(call.name, call.at)
        fields = {field.name: field for field in dataclasses.fields(kind)}
        given: dict[str, Any] = {}
        places: dict[str, int] = {}
        for argument in call.arguments:
            name = self._bound(call, argument, list(fields), given)
            places[name] = argument.at
            wants_event = fields[name].type is Event
            given[name] = (
                self.event(argument.value)
                if wants_event
                else self._number(f"{name} of {call.name}", argument.value, whole=fields[name].type is int)
            )
        for field in fields.values():
            if field.name not in given and field.default is dataclasses.MISSING:
                raise self._wrong(f"{call.name} needs {field.name}", call.at, f"write {_usage(call.name)}.")
        try:
            made: Event = kind(**given)
        except DefocusError as error:
            at = places.get(error.what.partition(" ")[0], call.at)  # a refusal begins with the parameter it is about
            fix = _rate(given, error.fix)
            raise ExpressionError(error.what.rstrip("."), text=self.text, position=at, fix=fix) from error
        return made

    def _bound(self, call: Call, argument: Argument, wanted: list[str], given: dict[str, Any]) -> str:
        """The parameter an argument is for: by name, else the first still without a value."""
        free = [name for name in wanted if name not in given]
        if argument.name is None and free:
            return free[0]
        if argument.name in free:
            return argument.name
        what = "already has its" if argument.name in given else "does not take"
        name = "another argument" if argument.name is None else argument.name[:60]
        fix = f"write {_usage(call.name)}{_RATIO if argument.name in _NOISE and 'ratio' in wanted else ''}."
        raise self._wrong(f"{call.name} {what} {name}", argument.at, fix)

    def _number(self, what: str, node: Node, *, whole: bool) -> Number:
        match node:
            case Literal(value, exact):
                # 1e6 is a whole number, however it is written.
                return int(exact) if whole and exact.denominator == 1 else value
            case Name(text) if text == self.unknown:
                return self.value
            case Product((Literal(factor), Name(text)) | (Name(text), Literal(factor))) if text == self.unknown:
                return factor * self.value
            case Name(text, at) if text not in names():
                raise self._wrong(f"{text[:60]} is not a number", at, "only calibration leaves a number open, as x.")
            case _:
                raise self._wrong(f"The {what} is one number", node.at, "write the number out.")

    def _no_event(self, name: str, at: int) -> ExpressionError:
        near = get_close_matches(name[:60].lower(), names(), n=1)
        fix = f"did you mean {near[0]}?" if near else f"use one of {', '.join(names())}."
        return self._wrong(f"There is no event called {name[:60]}", at, fix)

    def _wrong(self, what: str, at: int, fix: str) -> ExpressionError:
        return ExpressionError(what, text=self.text, position=at, fix=fix)


def _rate(given: dict[str, Any], fix: str) -> str:
    """Whoever writes a batch size for a rate is told how to make it one."""
    rate = given.get("rate")
    if isinstance(rate, int) and rate > 1:
        return f"write {rate}/N, with N the number of units in the data."
    return fix


def _usage(name: str) -> str:
    return f"{name}({', '.join(field.name for field in dataclasses.fields(_EVENTS[name]))})"

"""Several questions in one release, each by its best method with a share of the budget."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias, TypeVar, final

from defocus.errors import InvalidParameterError, Number
from defocus.graphs.asking.counts import AskEdges, AskStars, AskTriangles
from defocus.graphs.data import Data
from defocus.graphs.following import MEASURED, UNMEASURED
from defocus.graphs.public import Public
from defocus.graphs.questions import Checking, Method, Question, Result, chosen, foretold, silent
from defocus.graphs.statistics import Edges, Stars, Triangles
from defocus.graphs.statistics.named import named
from defocus.noise import Bits
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event, compose

__all__ = ["AskSubgraphs", "Several", "either_way", "preferred", "several", "side_by_side", "subgraph"]

_Finish: TypeAlias = Callable[[Sequence[Result]], Result]
_Whole = TypeVar("_Whole", bound=Method)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Several:
    """One method for each of several questions. They are independent, so their events compose."""

    methods: tuple[Method, ...]
    finish: _Finish
    name: str = "each by its own"
    expected: float | None = None
    said: tuple[str, ...] = ()
    """What a preview says beside what the parts say."""

    @property
    def event(self) -> Event:
        """All of them."""
        return compose([method.event for method in self.methods])

    @property
    def error(self) -> float:
        """The largest error of a part, unless more is known."""
        return max(method.error for method in self.methods) if self.expected is None else self.expected

    @property
    def interval(self) -> float:
        """Differs between the parts."""
        return math.nan

    @property
    def how(self) -> str:
        """The noise of each part."""
        return "; ".join(dict.fromkeys(method.how for method in self.methods))

    @property
    def rules(self) -> tuple[str, ...]:
        """Those of all parts."""
        return tuple(dict.fromkeys(rule for method in self.methods for rule in method.rules))

    @property
    def silent(self) -> bool:
        """Whether some part has no interval."""
        return any(map(silent, self.methods))

    @property
    def foretold(self) -> tuple[str, ...]:
        """What all parts say."""
        return (*self.said, *dict.fromkeys(told for method in self.methods for told in foretold(method)))

    def run(self, data: Data, bits: Bits) -> Result:
        """One after the other."""
        return self.finish([method.run(data, bits) for method in self.methods])


def several(
    questions: Sequence[Question],
    public: Public,
    budget: Budget,
    finish: _Finish,
    *,
    shares: Sequence[Fraction] | None = None,
    by: str | None = None,
) -> Several:
    """The best method of each question within its share of the budget; equal shares unless told.

    Where a question can be answered ``by`` a method of this name, that is taken. Of two methods with and without a
    delta, the one without is preferred where it errs less, so that a delta that no part needs is not spent.
    """
    parts = shares or [Fraction(1, len(questions))] * len(questions)
    methods = []
    for question, share in zip(questions, parts, strict=True):
        part = Budget(_share(budget.epsilon, share), _share(budget.delta, share))
        methods.append(preferred(question, question.methods(public, part), by))
    return Several(tuple(methods), finish)


def preferred(question: Question, methods: Sequence[Method], by: str | None) -> Method:
    """The method called ``by`` where there is one, else the best."""
    return chosen(question, methods, by if by in {method.name for method in methods} else None)


def either_way(made: Callable[[str | None], _Whole], parts: Callable[[_Whole], Sequence[Method]]) -> list[_Whole]:
    """The best way to answer several questions, and with every part that can follow the graph doing so.

    Those are called as single questions call them: measured, and without an interval. The best way has its own name
    unless it is one of the two.
    """
    best, found = made(None), {}
    for by in (MEASURED, UNMEASURED):
        way = made(by)
        if by in {part.name for part in parts(way)}:
            found[by] = way
    known = {tuple(part.name for part in parts(way)) for way in found.values()}
    first = [] if tuple(part.name for part in parts(best)) in known else [best]
    named: list[_Whole] = [replace(way, name=by) for by, way in found.items()]  # type: ignore[type-var]  # a dataclass
    return [*first, *named]


@final
@dataclass(frozen=True, slots=True)
class AskSubgraphs:
    """How many of several small graphs there are: "edges", "triangles", "stars_2", "stars_3", …."""

    shapes: tuple[str, ...] = ("edges", "stars_2", "triangles")

    def __post_init__(self) -> None:
        object.__setattr__(self, "shapes", tuple(self.shapes))
        if not self.shapes or len(set(self.shapes)) < len(self.shapes):
            raise InvalidParameterError(
                "Name each of the shapes to be counted once, and at least one.", fix='pass ("triangles", "stars_3").'
            )
        for shape in self.shapes:
            subgraph(shape)

    @property
    def words(self) -> str:
        """What is asked."""
        return f"number of subgraphs: {', '.join(self.shapes)}"

    @property
    def in_sql(self) -> bool:
        """Whether an engine can count it."""
        return True

    def check(self, public: Public) -> None:
        """Refuse graphs of which it cannot be asked."""
        for shape in self.shapes:
            question = subgraph(shape)
            if isinstance(question, Checking):
                question.check(public)

    def methods(self, public: Public, budget: Budget) -> Sequence[Method]:
        """Each by its own best method."""
        questions = [subgraph(shape) for shape in self.shapes]
        return either_way(lambda by: several(questions, public, budget, side_by_side, by=by), lambda way: way.methods)


def subgraph(shape: object) -> Question:
    """The question that counts a shape."""
    match named(shape):
        case Edges():
            return AskEdges()
        case Triangles():
            return AskTriangles()
        case Stars(k=k):
            return AskStars(k)
    raise InvalidParameterError(
        f"There is no proven noise for subgraphs called {shape!r:.60}.",
        fix='choose among "edges", "triangles", "stars_2", "stars_3", ….',
    )


def side_by_side(results: Sequence[Result]) -> Result:
    """All columns next to each other."""
    return Result(
        tuple(column for result in results for column in result.columns),
        processing=tuple(dict.fromkeys(text for result in results for text in result.processing)),
        notes=tuple(text for result in results for text in result.notes),
    )


def _share(amount: Number | None, share: Fraction) -> Fraction | int:
    return Fraction(amount) * share if amount else 0

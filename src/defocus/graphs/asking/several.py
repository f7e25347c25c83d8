"""Several questions in one release, each by its best method with a share of the budget."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

from defocus.errors import InvalidParameterError, Number
from defocus.graphs.asking.counts import AskEdges, AskStars, AskTriangles
from defocus.graphs.data import Data
from defocus.graphs.public import Public
from defocus.graphs.questions import Method, Question, Result, chosen
from defocus.noise import Bits
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event, compose

__all__ = ["AskSubgraphs", "Several", "several", "side_by_side", "subgraph"]

_Finish: TypeAlias = Callable[[Sequence[Result]], Result]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Several:
    """One method for each of several questions. They are independent, so their events compose."""

    methods: tuple[Method, ...]
    finish: _Finish
    name: str = "each by its own"
    expected: float | None = None

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
) -> Several:
    """The best method of each question within its share of the budget; equal shares unless told.

    Of two methods with and without a delta, the one without is preferred where it errs less, so that a delta that no
    part needs is not spent.
    """
    parts = shares or [Fraction(1, len(questions))] * len(questions)
    methods = []
    for question, share in zip(questions, parts, strict=True):
        part = Budget(_share(budget.epsilon, share), _share(budget.delta, share))
        methods.append(chosen(question, question.methods(public, part), None))
    return Several(tuple(methods), finish)


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

    def methods(self, public: Public, budget: Budget) -> Sequence[Method]:
        """Each by its own best method."""
        return [several([subgraph(shape) for shape in self.shapes], public, budget, side_by_side)]


def subgraph(shape: object) -> Question:
    """The question that counts a shape."""
    if shape == "edges":
        return AskEdges()
    if shape == "triangles":
        return AskTriangles()
    if isinstance(shape, str) and shape.startswith("stars_") and shape[6:].isdigit() and len(shape) < 9:
        return AskStars(int(shape[6:]))
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

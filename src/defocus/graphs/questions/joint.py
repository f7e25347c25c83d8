"""Several questions in one release, each by its best method with a share of the budget."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias, TypeVar, final

import numpy as np

from defocus.answers.columns import NUMBERS, AnswerColumn, brief, noisy
from defocus.errors import InvalidParameterError, Number, in_range
from defocus.graphs.data import Data
from defocus.graphs.noise import MEASURED, UNMEASURED, Finish, VectorNoise, attempted, noises
from defocus.graphs.public import IntVector, Public, Statistic
from defocus.graphs.question import Checking, Method, Question, Result, chosen, foretold, silent
from defocus.graphs.questions.counts import AskEdges, AskStars, AskTriangles
from defocus.graphs.questions.degrees import AskDegrees, AskHistogram
from defocus.graphs.statistics import ArcDegrees, ArcHistogram, Degrees, Edges, Histogram, Joint, Stars, Triangles
from defocus.graphs.statistics.joint import named
from defocus.noise import Bits
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event, compose

__all__ = [
    "AskJoint",
    "AskSubgraphs",
    "Separate",
    "Several",
    "either_way",
    "preferred",
    "several",
    "side_by_side",
    "subgraph",
]


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
    method: str | None = None,
) -> Several:
    """The best method of each question within its share of the budget; equal shares by default.

    Where a question can be answered by the ``method`` of this name, that is taken. Of two methods with and without a
    delta, the one without is preferred where it errs less, so that a delta that no part needs is not spent.
    """
    parts = shares or [Fraction(1, len(questions))] * len(questions)
    methods = []
    for question, share in zip(questions, parts, strict=True):
        part = Budget(_share(budget.epsilon, share), _share(budget.delta, share))
        methods.append(preferred(question, question.methods(public, part), method))
    return Several(tuple(methods), finish)


def preferred(question: Question, methods: Sequence[Method], name: str | None) -> Method:
    """The method of this ``name`` where there is one, else the best."""
    return chosen(question, methods, name if name in {method.name for method in methods} else None)


def either_way(plan: Callable[[str | None], _Whole], parts: Callable[[_Whole], Sequence[Method]]) -> list[_Whole]:
    """The best way to answer several questions, and with every part that can follow the graph doing so.

    Those are called as single questions call them: measured, and without an interval. The best way has its own name
    unless it is one of the two.
    """
    best, ways = plan(None), {}
    for name in (MEASURED, UNMEASURED):
        way = plan(name)
        if name in {part.name for part in parts(way)}:
            ways[name] = way
    tried = {tuple(part.name for part in parts(way)) for way in ways.values()}
    first = [] if tuple(part.name for part in parts(best)) in tried else [best]
    named: list[_Whole] = [replace(way, name=name) for name, way in ways.items()]  # type: ignore[type-var]  # a dataclass
    return [*first, *named]


@final
@dataclass(frozen=True, slots=True)
class AskSubgraphs:
    """How many of several small graphs there are: "edges", "triangles", "stars_2", "stars_3", …."""

    shapes: tuple[str, ...] = ("edges", "stars_2", "triangles")
    in_sql: ClassVar[bool] = True

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

    def check(self, public: Public) -> None:
        """Refuse graphs of which it cannot be asked."""
        for shape in self.shapes:
            question = subgraph(shape)
            if isinstance(question, Checking):
                question.check(public)

    def methods(self, public: Public, budget: Budget) -> Sequence[Method]:
        """Each by its own best method."""
        questions = [subgraph(shape) for shape in self.shapes]
        return either_way(
            lambda method: several(questions, public, budget, side_by_side, method=method), lambda way: way.methods
        )


def subgraph(shape: object) -> Question:
    """The question that counts a shape."""
    statistic = named(shape)
    question = _question(statistic) if isinstance(statistic, Edges | Triangles | Stars) else None
    if question is not None:
        return question
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


_GRAIN = 1000
"""Shares of epsilon are multiples of one part in so many."""
_LEAST = Fraction(1, 10)
"""No statistic of few gets less of epsilon than this, whatever the others need."""
_LIGHTEST, _HEAVIEST = 1e-3, 1e3
"""Shares further apart would leave next to nothing for a statistic."""
_IN_SQL = (Edges, Degrees, Histogram, Stars, Triangles, ArcDegrees, ArcHistogram)
"""What an engine can count."""


@final
@dataclass(frozen=True, slots=True)
class AskJoint:
    """All entries of several statistics, charged as one event.

    ``weights`` are what each statistic's share of epsilon is in proportion to; without them, the total error decides.
    """

    statistic: Joint
    weights: tuple[Number, ...] | None = None

    def __post_init__(self) -> None:
        if self.weights is None:
            return
        given: Any = self.weights
        if not isinstance(given, list | tuple) or len(given) != len(self.statistic.parts):
            raise InvalidParameterError(
                f"There are {len(self.statistic.parts)} statistics to share epsilon among.",
                fix="pass weights=(…) with one positive number for each of them, or leave weights out.",
            )
        object.__setattr__(
            self, "weights", tuple(Fraction(in_range("weights", w, _LIGHTEST, _HEAVIEST)) for w in given)
        )

    @property
    def words(self) -> str:
        """What is asked."""
        return f"{self.statistic.name}, together"

    @property
    def in_sql(self) -> bool:
        """Whether an engine can count it."""
        return all(isinstance(part, _IN_SQL) for part in self.statistic.parts)

    def check(self, public: Public) -> None:
        """Refuse graphs of which it cannot be asked."""
        _fitting(self.statistic, directed=public.directed)
        self.statistic.sensitivity(public)

    def methods(self, public: Public, budget: Budget) -> Sequence[Method]:
        """The same noise on all entries of one vector, or the best method for each with a share of the budget."""
        _fitting(self.statistic, directed=public.directed)
        lengths = [part.length(public) for part in self.statistic.parts]
        titles = [part.name for part in self.statistic.parts]
        ways: list[Callable[[], Method]] = [
            lambda separate=separate: separate  # type: ignore[misc]  # a default that mypy cannot infer
            for separate in noises(self.statistic, public, budget, _laid_out(titles, lengths), prefix="vector, ")
        ]
        questions = [_question(part) for part in self.statistic.parts]
        usual = [question for question in questions if question is not None]
        if len(usual) == len(questions):
            separate = either_way(
                lambda method: _separate(usual, titles, lengths, public, budget, method=method, weights=self.weights),
                lambda way: way.parts,
            )
            ways += [lambda way=way: way for way in separate]  # type: ignore[misc]  # likewise
        return attempted(ways)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Separate:
    r"""Each statistic by the method that errs least, with a share of epsilon each.

    Guarantee:
        The event is the composition of those of all parts.

    Error:
        Where a part of :math:`l_i` entries errs by about :math:`c_i/\varepsilon_i`, shares in proportion to
        :math:`\sqrt{l_ic_i}` make the total error :math:`\sum_i l_ic_i/\varepsilon_i` least. For Laplace noise,
        :math:`c_i = \Delta_i`, that is never more than one noise for the whole vector costs. A count that is far more
        exact than the others would get next to nothing that way, so none gets less than a tenth, or half of an
        equal share.
    """

    parts: tuple[Method, ...]
    titles: tuple[str, ...]
    lengths: tuple[int, ...]
    shares: tuple[Fraction, ...]
    name: str = "separate"

    @property
    def event(self) -> Event:
        """All parts, composed."""
        return compose([part.event for part in self.parts])

    @property
    def error(self) -> float:
        """The expected absolute error of an entry, averaged over all."""
        return sum(n * part.error for n, part in zip(self.lengths, self.parts, strict=True)) / sum(self.lengths)

    @property
    def interval(self) -> float:
        """Differs between the statistics."""
        return math.nan

    @property
    def how(self) -> str:
        """What is done to each statistic."""
        return "; ".join(f"{title}: {part.how}" for title, part in zip(self.titles, self.parts, strict=True))

    @property
    def rules(self) -> tuple[str, ...]:
        """How epsilon is divided, and those of all parts."""
        divided = ", ".join(f"{t} {100 * float(s):.3g} %" for t, s in zip(self.titles, self.shares, strict=True))
        return (
            f"epsilon is divided among the statistics: {divided}",
            *dict.fromkeys(rule for part in self.parts for rule in part.rules),
        )

    @property
    def silent(self) -> bool:
        """Whether some part has no interval."""
        return any(map(silent, self.parts))

    @property
    def foretold(self) -> tuple[str, ...]:
        """The error of each statistic, and what all parts say."""
        errors = ", ".join(f"{t} {brief(part.error)}" for t, part in zip(self.titles, self.parts, strict=True))
        return (f"expected errors: {errors}", *dict.fromkeys(told for part in self.parts for told in foretold(part)))

    def run(self, data: Data, bits: Bits) -> Result:
        """One after the other."""
        results = [part.run(data, bits) for part in self.parts]
        columns = [replace(result.columns[0], name=t) for result, t in zip(results, self.titles, strict=True)]
        processing, notes = (
            tuple(
                f"{t}: {said}"
                for result, t in zip(results, self.titles, strict=True)
                for said in getattr(result, about)
            )
            for about in ("processing", "notes")
        )
        return replace(_joined(columns), processing=processing, notes=notes)


def _separate(
    questions: Sequence[Question],
    titles: Sequence[str],
    lengths: Sequence[int],
    public: Public,
    budget: Budget,
    *,
    method: str | None,
    weights: Sequence[Number] | None,
) -> Separate:
    epsilon = Fraction(budget.epsilon or 0)

    def best(question: Question, part: Fraction) -> Method:
        return preferred(question, question.methods(public, Budget(part)), method)

    if weights is None:
        even = [best(question, epsilon / len(questions)) for question in questions]
        shares = _least_error([math.sqrt(n * max(m.error, 1e-9)) for n, m in zip(lengths, even, strict=True)])
    else:
        whole = sum((Fraction(weight) for weight in weights), Fraction(0))
        shares = [Fraction(weight) / whole for weight in weights]
    parts = tuple(best(question, epsilon * share) for question, share in zip(questions, shares, strict=True))
    return Separate(parts, tuple(titles), tuple(lengths), tuple(shares))


def _least_error(weights: Sequence[float]) -> list[Fraction]:
    """Shares in proportion to the weights, none of them next to nothing."""
    least = min(_LEAST, Fraction(1, 2 * len(weights)))
    free = 1 - len(weights) * least
    grains = [max(1, math.floor((_GRAIN - len(weights)) * weight / sum(weights))) for weight in weights]
    return [least + free * Fraction(grain, sum(grains)) for grain in grains]


def _fitting(statistic: Joint, *, directed: bool) -> None:
    """Refuse statistics of undirected graphs for directed ones, and the other way round."""
    for part in statistic.parts:
        arcs = isinstance(part, ArcDegrees | ArcHistogram)
        if arcs != directed and not isinstance(part, Edges):
            raise InvalidParameterError(
                f"{part.name} are counted in {'directed' if arcs else 'undirected'} graphs, and this one is"
                f" {'directed' if directed else 'undirected'}.",
                fix="leave them out, or open the graph the other way.",
            )


def _question(part: Statistic) -> Question | None:
    """The question that asks for one statistic alone, if it is one of the usual ones."""
    match part:
        case Edges():
            return AskEdges()
        case Triangles():
            return AskTriangles()
        case Stars(k=k):
            return AskStars(k)
        case Degrees(ranked=ranked):
            return AskDegrees(ranked=ranked)
        case Histogram(at_most=at_most, cumulative=False):
            return AskHistogram(at_most)
    return None


def _laid_out(titles: Sequence[str], lengths: Sequence[int]) -> Finish:
    def finish(method: VectorNoise, values: IntVector, _data: Data) -> Result:
        error, half, how = method.mechanism.error, method.interval, method.how
        parts = np.split(values, np.cumsum(lengths)[:-1])
        return _joined(
            [noisy(title, part, error=error, half=half, how=how) for title, part in zip(titles, parts, strict=True)]
        )

    return finish


def _joined(columns: Sequence[AnswerColumn]) -> Result:
    """Single numbers beside each other; where statistics have several entries, one row for each entry."""
    if all(len(column.values) == 1 for column in columns):
        return Result(tuple(columns))
    fields: dict[str, Any] = {
        field: np.concatenate([getattr(column, field) for column in columns]) for field in NUMBERS
    }
    keys: dict[str, Sequence[Any]] = {
        "statistic": [column.name for column in columns for _ in column.values],
        "entry": [entry for column in columns for entry in range(len(column.values))],
    }
    how = "; ".join(dict.fromkeys(f"{column.name}: {column.how}" for column in columns))
    integral = all(column.integral for column in columns)
    return Result((AnswerColumn("value", **fields, integral=integral, how=how, absolute=True),), keys=keys)

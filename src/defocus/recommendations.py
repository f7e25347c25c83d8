"""Which room and mechanism to take for a task, whom that has to trust, and how exact it would be. Free.

Nothing is collected or looked at: errors come from the rooms' own previews, on a table or graph that holds nothing.
"""

import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, final, get_args

import numpy as np

from defocus.errors import CannotCalibrateError, Number, choice, count, positive, probability, whole
from defocus.graphs import open_graph
from defocus.learning.suggestions import suggest
from defocus.local import best, compare
from defocus.local.designs import Frequency
from defocus.local.domains import Categories
from defocus.local.estimates import group_variances
from defocus.local.levels import LARGEST_EPSILON
from defocus.local.shuffling import MultiMessageHistogram
from defocus.privacy import Budget, edge, rows
from defocus.tables import count as dp_count
from defocus.tables import mean, quantile
from defocus.tables import open as open_table

__all__ = ["Law", "Recommendation", "Task", "Trust", "Way", "recommend"]

Task: TypeAlias = Literal["count", "histogram", "mean", "quantile", "training", "edges", "triangles"]
Trust: TypeAlias = Literal["nobody", "shuffler", "curator"]
Law: TypeAlias = Literal["pure", "approximate"]

_95 = 1.96
"""Standard errors in which a normal error stays with 95 % probability."""


@final
@dataclass(frozen=True, slots=True)
class Way:
    """One way to do a task: whom it trusts, its law, by which room and mechanism, how exact, and the line to run.

    >>> found = recommend("count", people=10_000, epsilon=1, trust="nobody").best
    >>> found.room, found.mechanism, round(found.error or 0)
    ('local', 'k-rr', 96)
    """

    trust: Trust
    law: Law
    room: str
    mechanism: str
    error: float | None
    """In what ``measure`` of the recommendation says; None where nothing can be said without data."""
    line: str
    note: str = ""


@final
@dataclass(frozen=True, slots=True)
class Recommendation:
    """The ways that trust and law allow, the smallest error first; and what is not possible, with the reason.

    >>> found = recommend("quantile", people=10_000, epsilon=1, law="pure")
    >>> [way.trust for way in found.ways]
    ['curator', 'nobody']
    """

    task: Task
    measure: str
    """What the errors are."""
    ways: tuple[Way, ...]
    left_out: tuple[str, ...]

    @property
    def best(self) -> Way | None:
        """The way with the smallest error, if there is one."""
        return self.ways[0] if self.ways else None

    def __str__(self) -> str:
        lines = [f"{self.task}: {self.measure}"]
        for way in self.ways:
            error = "not known before" if way.error is None else f"error {way.error:.4g}"
            lines.append(f"  trusts {way.trust}, {way.law}: {way.room}, {way.mechanism}: {error}")
            lines += [f"    {way.note}"] if way.note else []
            lines.append(f"    {way.line}")
        return "\n".join(lines + [f"  left out: {why}" for why in self.left_out])


class _Asked(NamedTuple):
    task: Task
    people: int
    budget: Budget
    categories: int
    parameters: int

    @property
    def epsilon(self) -> Number:
        return self.budget.epsilon or 0

    @property
    def price(self) -> str:
        return f"epsilon={float(self.epsilon):g}, delta={float(self.budget.delta):g}"


def recommend(
    task: Task,
    *,
    people: int,
    epsilon: Number,
    delta: Number | None = None,
    trust: Trust = "curator",
    law: Law = "approximate",
    categories: int = 64,
    parameters: int = 1000,
) -> Recommendation:
    """What to use for a ``task`` among so many people, and what error to expect.

    Args:
        task: "count", of yes; "histogram", of so many ``categories``; "mean", of numbers in [0, 1]; "quantile", of
            numbers in so many ``categories``, by the rank of the answer; "training", of a model with so many
            ``parameters``; "edges" and "triangles", of a graph with so many nodes.
        people: how many take part; the nodes of a graph.
        epsilon: with ``delta``, what may be lost about one of them: a value replaced; an edge, or an example of
            training, added or removed.
        delta: 1/n² by default, and at most 1e-6; for "approximate" only.
        trust: who is trusted at most. A "curator" sees all values; a "shuffler" who sends, but not what; "nobody" means
            that everybody randomises alone. Who trusts a curator may also take a way that trusts less.
        law: "pure" for epsilon alone, or "approximate" for epsilon and delta, which allows both.
        categories: see ``task``.
        parameters: see ``task``.

    >>> recommend("quantile", people=10_000, epsilon=1).best.room
    'tables'
    """
    kind: Any = choice("task", task, get_args(Task))
    most = get_args(Trust).index(choice("trust", trust, get_args(Trust)))
    pure = choice("law", law, get_args(Law)) == "pure"
    n = count("people", people)
    small = max(min(1e-6, 1 / n**2), 1e-10) if delta is None else probability("delta", delta, zero=False, one=False)
    asked = _Asked(
        kind,
        n,
        Budget(positive("epsilon", epsilon), small),
        whole("categories", categories, at_least=2),
        count("parameters", parameters),
    )
    measure, make = _TASKS[kind]
    ways, left_out = list[Way](), list[str]()
    for found in make(asked):
        if isinstance(found, str):
            left_out.append(found)
        elif pure and found.law != "pure":
            left_out.append(f"{found.room}, {found.mechanism}: it has a delta.")
        elif get_args(Trust).index(found.trust) <= most:
            ways.append(found)
    ordered = sorted(ways, key=lambda way: math.inf if way.error is None else way.error)
    return Recommendation(kind, measure, tuple(ordered), tuple(left_out))


_ON_A_TABLE: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "count": ('where("x >= 0.5").agg(found=dp.count())', lambda t: t.where("x >= 0.5").agg(found=dp_count())),
    "histogram": (
        'group_by("category").agg(found=dp.count())',
        lambda t: t.group_by("category").agg(found=dp_count()),
    ),
    "mean": ('agg(found=dp.mean("x"))', lambda t: t.agg(found=mean("x"))),
    "quantile": ('agg(found=dp.quantile("x", 0.5))', lambda t: t.agg(found=quantile("x", 0.5))),
}
"""What is asked of a table whose rows have a number x in [0, 1] and a category."""


def _central(asked: _Asked) -> Iterator[Way | str]:
    """What the table room previews, on a table without rows, where a row is replaced."""
    told, ask = _ON_A_TABLE[asked.task]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "x.csv").write_text("x,category\n", encoding="utf-8")
        table = open_table(
            Path(folder) / "x.csv",
            unit=rows(replace=True),
            budget=asked.budget,
            columns={"x": (0, 1), "category": [str(i) for i in range(asked.categories)]},
            types={"x": "number", "category": "text"},
        )
        yield from _previewed(asked, ask(table), "tables", f"table.{told}")
        table.close()


def _previewed(asked: _Asked, question: Any, room: str, line: str) -> Iterator[Way]:
    """At epsilon alone, and with delta if that errs less."""
    pure = math.inf
    for delta in (None, asked.budget.delta):
        planned = question.preview(epsilon=asked.epsilon, delta=delta)
        column = planned.columns[0]
        if column.by_size:
            size, error, _ = column.by_size[-1]
            error *= size / asked.people  # of a mean: that of its sum, over how many there are
        else:
            error = column.error if column.rank is None else column.rank
        if error < pure:
            price = asked.price if delta else f"epsilon={float(asked.epsilon):g}"
            how = planned.method or column.how.partition(";")[0]
            law: Law = "approximate" if delta else "pure"
            note = " ".join(planned.foretold)
            yield Way("curator", law, room, how, error, f'{line}.release({price}, purpose="…")', note)
        pure = error


def _counted(asked: _Asked) -> Iterator[Way | str]:
    """Counts, histograms and means; without a curator as :func:`~defocus.local.compare` compares them."""
    yield from _central(asked)
    task: Any = asked.task
    found = compare(asked.people, asked.epsilon, task, delta=asked.budget.delta, categories=asked.categories)
    scale = asked.people if task == "mean" else 1
    for option in found.options:
        error, spent = option.error / scale, option.local_epsilon
        if option.model == "local":
            line = f'local.collect({_oracle(asked, option.method, spent)}, ledger=ledger, purpose="…")'
            yield Way("nobody", "pure", "local", option.method, error, line)
        elif option.model == "shuffle":
            made = _protocol(asked) if spent is None else f"{_oracle(asked, option.method, spent)}.design"
            line = f"local.shuffling.Round({made}, users={asked.people}, shuffler=…, analyser=…)"
            yield Way("shuffler", "approximate", "local.shuffling", option.method, error, line)
    yield from found.left_out


def _oracle(asked: _Asked, method: str, epsilon: float | None) -> str:
    """Rounded down: a smaller epsilon keeps what was promised."""
    spent = f"epsilon={math.floor((epsilon or 0) * 1e4) / 1e4:g}"
    if asked.task == "mean":
        return f'local.mean("{"duchi" if "bit" in method else method}", 0, 1, {spent})'
    domain = asked.categories - 1 if asked.task == "histogram" else '["yes"]'  # and all other values
    return f'local.oracle("{method.partition(",")[0]}", {domain}, {spent})'


def _protocol(asked: _Asked) -> str:
    if asked.task in {"histogram", "quantile"}:
        made = f"MultiMessageHistogram(local.Categories.of({asked.categories}), "
    else:
        made = "MultiMessageSum(local.Interval(0, 1), "
    marks = ", levels=8" if asked.task == "count" else ""
    return f"local.shuffling.{made}{asked.people}, {asked.price}{marks})"


def _quantiles(asked: _Asked) -> Iterator[Way | str]:
    """By the table room; or from the cumulated counts of buckets, which everybody randomises.

    The rank of the answer is off by the error of the count below it: of half of the buckets together, with half of the
    people, where it is largest.
    """
    yield from _central(asked)
    n, half, oracle = asked.people, asked.categories // 2, best(asked.categories, min(asked.epsilon, LARGEST_EPSILON))
    spread = half * oracle.variance(n)
    if isinstance(oracle.design, Frequency):
        spread = float(group_variances(oracle.design, n, np.array([n / 2]), half)[0])
    line = f'local.oracle("{oracle.name}", {asked.categories}, epsilon={float(oracle.epsilon):g})'
    yield Way("nobody", "pure", "local", f"{oracle.name}, cumulated", _95 * math.sqrt(spread), line)
    try:
        protocol = MultiMessageHistogram(Categories.of(asked.categories), n, asked.epsilon, asked.budget.delta)
        error = _95 * math.sqrt(half) * protocol.error
        line = f"local.shuffling.Round({_protocol(asked)}, users={n}, shuffler=…, analyser=…)"
        yield Way("shuffler", "approximate", "local.shuffling", "several messages, cumulated", error, line)
    except CannotCalibrateError as refused:
        yield f"shuffle, several messages: {refused.what}"


def _training(asked: _Asked) -> Iterator[Way | str]:
    """Two ways, whose errors nobody knows before: they depend on the model and the data."""
    found = suggest(size=asked.people, epsilon=asked.epsilon, delta=asked.budget.delta, parameters=asked.parameters)
    told = f"{found.steps} steps of {found.batch_size}, noise {found.noise_multiplier:.3g} times the clip"
    settings = f"dp.learning.suggest(size={asked.people}, {asked.price}, model=model).settings()"
    line = f"dp.learning.Trainer(model, loss, optimizer, data, ledger=ledger, **{settings})"
    note = f"{told}; beside the furthest that all steps can go, the noise goes {found.ratio:.2g} times as far."
    yield Way("curator", "approximate", "learning", "DP-SGD", None, line, note)
    model = f"dp.learning.LogisticRegression(classes=…, epsilon={float(asked.epsilon):g}, delta=0, ledger=ledger)"
    note = "linear and additive models; a network needs a delta."
    yield Way("curator", "pure", "learning", "objective perturbation", None, f"{model}.fit(X, y)", note)
    yield "local, local.shuffling: no model is trained on randomised reports here, so there is nothing to compare."


def _graph(asked: _Asked) -> Iterator[Way | str]:
    """What the graph room previews, where an edge is added or removed."""
    with tempfile.TemporaryDirectory() as folder:
        graph = open_graph(
            [(0, 1)], nodes=max(2, asked.people), unit=edge(), budget=asked.budget, ledger=Path(folder) / "l", name="g"
        )
        question = graph.edges() if asked.task == "edges" else graph.triangles()
        yield from _previewed(asked, question, "graphs", f"g.{asked.task}()")
        graph.close()
    yield "local, local.shuffling: no question about graphs is answered from randomised reports here."


_TASKS: dict[Task, tuple[str, Callable[[_Asked], Iterator[Way | str]]]] = {
    "count": ("standard error, in people", _counted),
    "histogram": ("standard error of a rare category, in people", _counted),
    "mean": ("standard error of the mean of numbers in [0, 1]", _counted),
    "quantile": ("how many ranks the answer is off at most, with 95 % probability", _quantiles),
    "training": ("of models, no error is known before the run", _training),
    "edges": ("expected absolute error", _graph),
    "triangles": ("expected absolute error; it may rest on a guess that the note tells", _graph),
}

"""``defocus account``, ``calibrate`` and ``advise``, and pictures that commands save.

``defocus advise``: which mechanism errs least at a price.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from defocus.answers.plots import blank
from defocus.cli.options import DELTA, price_of
from defocus.cli.terminal import above, below, console, facts, table, to_json
from defocus.errors import BudgetOutOfReachError, DefocusError, InvalidParameterError, Number, probability
from defocus.mechanisms import Advice, Candidate, advise, advise_choice
from defocus.privacy.accounting import ACCOUNTANTS, account, accountant
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import calibrate
from defocus.privacy.events import Composed, Event, compose
from defocus.privacy.expressions import family, parse, unparse
from defocus.privacy.filters import filter as filter_for
from defocus.privacy.losses import Interval
from defocus.privacy.numbers import roughly
from defocus.privacy.units import Adjacency

__all__ = [
    "Adjacency",
    "Answer",
    "ask",
    "curve",
    "figure_of",
    "growth",
    "once",
    "price_of",
    "ready",
    "save",
    "show_account",
    "show_calibration",
    "show_choice",
    "show_numbers",
    "steps",
]


def show_numbers(
    *, price: Budget, dimension: int, l1: int | None, l2: float | None, linf: int | None, as_json: bool
) -> None:
    """Advice for numbers released together; the sensitivity is 1 if none is given for a single number."""
    if dimension == 1 and l1 is None and l2 is None and linf is None:
        l1 = 1
    advice = advise(
        epsilon=price.epsilon, delta=price.delta, rho=price.rho, dimension=dimension, l1=l1, l2=l2, linf=linf
    )
    _show(advice, as_json=as_json)


def show_choice(*, price: Budget, candidates: int, l1: int | None, monotone: bool, as_json: bool) -> None:
    """Advice for a choice; ``l1`` is how far one utility can move."""
    if price.epsilon is None:
        raise InvalidParameterError("A choice is calibrated to an epsilon.", fix="pass --epsilon instead of --rho.")
    sensitivity = 1 if l1 is None else l1
    advice = advise_choice(epsilon=price.epsilon, candidates=candidates, sensitivity=sensitivity, monotone=monotone)
    _show(advice, as_json=as_json)


def _show(advice: Advice, *, as_json: bool) -> None:
    if as_json:
        to_json(
            {
                "task": advice.task,
                "best": advice.best.name,
                "why": advice.why,
                "candidates": [
                    {"name": c.name, "noise": c.noise, "error": _finite(c.error), "squared": _finite(c.squared)}
                    for c in advice.candidates
                ],
            }
        )
        return
    heads = ["mechanism", "noise", "error"] + ["squared error"] * (advice.best.squared is not None)
    rows = [_row(candidate, squared=advice.best.squared is not None) for candidate in advice.candidates]
    screen = console()
    screen.print(advice.task)
    screen.print(table(heads, rows, numbers=heads[2:]))
    screen.print(advice.why)


def _row(candidate: Candidate, *, squared: bool) -> tuple[str, ...]:
    numbers = (candidate.error, candidate.squared) if squared else (candidate.error,)
    return (candidate.name, candidate.noise, *("-" if _finite(x) is None else roughly(x or 0.0) for x in numbers))


def _finite(x: float | None) -> float | None:
    return x if x is not None and math.isfinite(x) else None


_POINTS = 13
_FEWEST = 100
_TYPES = (".png", ".svg", ".pdf")


def once(event: Event) -> tuple[Event, int]:
    """The largest repetition an event is made of: ``1000 * a`` is ``a``, a thousand times.

    >>> from defocus.privacy.events import Laplace
    >>> once(1000 * Laplace(2))
    (Laplace(ratio=2), 1000)
    """
    if not isinstance(event, Composed) or not event.parts:
        return event, 1
    times = math.gcd(*(number for _, number in event.parts))
    return compose([(number // times) * part for part, number in event.parts]), times


def steps(largest: int) -> list[int]:
    """About a dozen counts from 1 to ``largest``, evenly spread on a logarithmic scale.

    >>> steps(1000)
    [1, 2, 3, 6, 10, 18, 32, 56, 100, 178, 316, 562, 1000]
    """
    return sorted({round(largest ** (i / (_POINTS - 1))) for i in range(_POINTS)})


def curve(event: Event, delta: Number, method: str, adjacency: Adjacency, counts: Sequence[int]) -> list[float] | None:
    """Epsilon after each number of repetitions, or None if the accountant has none for the event at this delta."""
    try:
        return [account(times * event, method, adjacency).epsilon(delta) for times in counts]
    except DefocusError:
        return None


def growth(event: Event, delta: Number, adjacency: Adjacency, accountants: Sequence[str]) -> Any:
    """A matplotlib figure of epsilon against the number of repetitions, with a line of slope one half beside it."""
    figure = blank(7, 4.5)
    part, times = once(event)
    counts = steps(max(times, _FEWEST))
    axes = figure.add_subplot()
    least = math.inf
    for name in accountants:
        values = curve(part, delta, name, adjacency, counts)
        if values is not None and all(map(math.isfinite, values)):
            axes.plot(counts, values, marker="o", markersize=3, label=name)
            least = min(least, values[-1])
    if math.isfinite(least):
        axes.plot(counts, [least * math.sqrt(n / counts[-1]) for n in counts], "k:", label="square root of T")
        axes.legend()
    axes.set(xscale="log", yscale="log", xlabel="repetitions T", ylabel=f"epsilon at delta {float(delta):g}")
    axes.grid(visible=True, which="both", alpha=0.3)
    return figure


def figure_of(lines: Mapping[str, Sequence[tuple[int, float]]], *, x: str, y: str) -> Any:
    """A matplotlib figure of named lines on logarithmic scales."""
    figure = blank(7, 4.5)
    axes = figure.add_subplot()
    for name, points in lines.items():
        axes.plot([n for n, _ in points], [value for _, value in points], marker="o", markersize=3, label=name)
    axes.set(xscale="log", yscale="log", xlabel=x, ylabel=y)
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend()
    return figure


def ready(where: Path) -> None:
    """Refuse a place where no plot can be written, before anything is computed or paid for."""
    if where.suffix.lower() not in _TYPES:
        raise InvalidParameterError(
            f"A plot is written as {', '.join(_TYPES)}, but the name ends in {where.suffix or 'nothing'}.",
            fix="write for example --plot growth.png.",
        )
    if not where.absolute().parent.is_dir():
        raise InvalidParameterError(
            f"There is no folder {str(where.parent)!r:.200} for the plot.", fix="make it, or choose another for --plot."
        )
    blank(7, 4.5)


def save(figure: Any, where: Path) -> None:
    """Write a figure; the ending of the name says in which format."""
    ready(where)
    try:
        figure.savefig(where, dpi=150)
    except OSError as error:
        raise InvalidParameterError(
            f"The plot could not be written: {error.strerror}.", fix="choose another folder for --plot."
        ) from error


_NOTES = {
    "pld": "privacy-loss distribution",
    "rdp": "Rényi moments",
    "zcdp": "zero-concentrated",
    "gdp": "Gaussian DP, exact here",
    "advanced": "advanced composition",
    "basic": "epsilons and deltas added up",
}


@final
@dataclass(frozen=True, slots=True)
class Answer:
    """One accountant's answer: an epsilon, or why there is none."""

    accountant: str
    epsilon: float | None
    interval: Interval | None
    note: str

    def to_dict(self) -> dict[str, Any]:
        """The answer with JSON types; an infinite epsilon is null, and the note says so."""
        finite = self.epsilon is not None and math.isfinite(self.epsilon)
        return {
            "accountant": self.accountant,
            "epsilon": self.epsilon if finite else None,
            "interval": list(self.interval) if finite and self.interval else None,
            "note": self.note,
        }


def ask(event: Event, delta: Number, method: str, adjacency: Adjacency) -> Answer:
    """Ask one accountant; a refusal of the event, or of this delta, becomes a note."""
    probability("delta", delta, one=False)
    try:
        loss = account(event, method, adjacency)
        epsilon = loss.epsilon(delta)
    except DefocusError as refusal:
        return Answer(method, None, None, refusal.what.removeprefix(f"The {method} accountant ").rstrip("."))
    if math.isinf(epsilon):
        return Answer(method, epsilon, None, "no finite epsilon at this delta")
    try:
        interval = loss.interval(delta)
    except DefocusError:
        return Answer(method, epsilon, None, _NOTES.get(method, ""))
    note = f"certified: the truth lies in [{below(interval.lower)}, {above(interval.upper)}]"
    return Answer(method, epsilon, interval, note)


def show_account(
    expression: str,
    *,
    delta: float,
    methods: Sequence[str],
    adjacency: Adjacency,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Print every accountant's epsilon for an expression, as a table or as JSON, and plot its growth."""
    event, asked = parse(expression), [accountant(name) for name in methods or ACCOUNTANTS]
    answers = [ask(event, delta, name, adjacency) for name in asked]
    if plot is not None:
        save(growth(event, delta, adjacency, asked), plot)
    if as_json:
        to_json(
            {
                "expression": unparse(event),
                "delta": delta,
                "adjacency": adjacency.value,
                "accountants": [answer.to_dict() for answer in answers],
            }
        )
        return
    rows = [(a.accountant, "-" if a.epsilon is None else above(a.epsilon), a.note) for a in answers]
    screen = console()
    screen.print(unparse(event), soft_wrap=True)
    screen.print(f"delta {delta:g}, neighbours {adjacency.value.replace('_', '/')}")
    screen.print(table(("accountant", "epsilon", "note"), rows, numbers=("epsilon",)))
    if plot is not None:
        screen.print(f"plot written to {plot}", soft_wrap=True)


_LEAST, _MOST = 1e-6, 1e12
_FIXED = "a fixed sequence: releases and noise decided before the first answer is seen"
_CHOSEN = "adaptive: a ledger with this budget admits it all, however it is chosen"


def show_calibration(
    expression: str, *, price: Budget, method: str | None, adaptive: bool, adjacency: Adjacency, as_json: bool
) -> None:
    """Print the least value of the unknown whose event the price covers, and what that event costs."""
    if adaptive and method is not None:
        raise InvalidParameterError("With --adaptive the filter of a ledger decides.", fix="leave --method out.")
    make = family(expression)
    vouching = "filter" if adaptive else _suited(price) if method is None else accountant(method)
    found = _found(make, price, vouching, adjacency)
    event = make(found)
    answer = ask(event, price.delta, "pld" if adaptive else vouching, adjacency) if price.epsilon is not None else None
    holds = _CHOSEN if adaptive else _FIXED
    at_limit = found <= _LEAST * (1 + 1e-5)
    if as_json:
        to_json(
            {
                "x": found,
                "expression": unparse(event),
                "price": {
                    name: float(value)
                    for name in ("epsilon", "delta", "rho", "mu")
                    if (value := getattr(price, name)) is not None and (name != "delta" or price.epsilon is not None)
                },
                "adjacency": adjacency.value,
                "accountant": vouching,
                "holds_for": holds,
                "least_value_searched": at_limit,
                "epsilon": None if answer is None else answer.epsilon,
                "interval": None if answer is None or answer.interval is None else list(answer.interval),
            }
        )
        return
    rows = [("x", above(found, 10)), ("event", unparse(event)), ("price", str(price)), ("accountant", vouching)]
    rows.append(("holds for", holds))
    if at_limit:
        rows.append(("note", f"{_LEAST:g} is the least value searched; even less noise would do"))
    if answer is not None and answer.epsilon is not None:
        rows += [("if fixed" if adaptive else "epsilon", above(answer.epsilon)), ("", answer.note)]
    console().print(facts(rows))


def _suited(budget: Budget) -> str:
    return "pld" if budget.epsilon is not None else ("zcdp" if budget.rho is not None else "gdp")


def _found(make: Any, budget: Budget, vouching: str, adjacency: Adjacency) -> float:
    """The least value, with a refusal that names options and not Python."""
    try:
        if vouching == "filter":
            return filter_for(budget, adjacency).calibrate(make, low=_LEAST, high=_MOST)
        return float(calibrate(make, budget, method=vouching, adjacency=adjacency, low=_LEAST, high=_MOST))
    except BudgetOutOfReachError as refusal:
        missing = budget.epsilon is not None and not budget.delta
        raise BudgetOutOfReachError(
            refusal.what,
            fix=f"add a delta, for example --delta {DELTA:g}; without one only pure releases such as laplace(x) can do."
            if missing
            else "raise the budget or release less; the event must get safer as x grows.",
        ) from refusal

"""``defocus account`` and ``calibrate``: what events cost, and the least noise for a price."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from defocus.cli.options import DELTA
from defocus.cli.plots import growth, save
from defocus.cli.terminal import above, below, console, facts, table, to_json
from defocus.errors import BudgetOutOfReachError, DefocusError, InvalidParameterError, Number, probability
from defocus.privacy.accounting import ACCOUNTANTS, account, accountant
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import calibrate
from defocus.privacy.events import Event
from defocus.privacy.expressions import family, parse, unparse
from defocus.privacy.filters import filter as filter_for
from defocus.privacy.losses import Interval
from defocus.privacy.units import Adjacency

__all__ = ["Answer", "ask", "show_account", "show_calibration"]


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
    least = _found(make, price, vouching, adjacency)
    event = make(least)
    answer = ask(event, price.delta, "pld" if adaptive else vouching, adjacency) if price.epsilon is not None else None
    holds = _CHOSEN if adaptive else _FIXED
    at_limit = least <= _LEAST * (1 + 1e-5)
    if as_json:
        to_json(
            {
                "x": least,
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
    rows = [("x", above(least, 10)), ("event", unparse(event)), ("price", str(price)), ("accountant", vouching)]
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

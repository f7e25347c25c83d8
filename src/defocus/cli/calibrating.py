"""``defocus calibrate``: the least noise that meets a budget."""

from typing import Any

from defocus.cli.accounting import ask
from defocus.cli.budgeting import DELTA, budget
from defocus.cli.terminal import above, console, facts, to_json
from defocus.errors import CannotCalibrateError, InvalidParameterError
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import calibrate
from defocus.privacy.expressions import family, unparse
from defocus.privacy.filters import filter as filter_for
from defocus.privacy.units import Adjacency

__all__ = ["Adjacency", "budget", "show"]

_LEAST, _MOST = 1e-6, 1e12
_FIXED = "a fixed sequence: releases and noise decided before the first answer is seen"
_CHOSEN = "adaptive: a ledger with this budget admits it all, however it is chosen"


def show(
    expression: str, *, budget: Budget, by: str | None, adaptive: bool, adjacency: Adjacency, as_json: bool
) -> None:
    """Print the least value of the unknown whose event the budget covers, and what that event costs."""
    if adaptive and by is not None:
        raise InvalidParameterError("With --adaptive the filter of a ledger decides.", fix="leave --by out.")
    make = family(expression)
    vouching = "filter" if adaptive else by or _suited(budget)
    found = _found(make, budget, vouching, adjacency)
    event = make(found)
    answer = (
        ask(event, budget.delta, "pld" if adaptive else vouching, adjacency) if budget.epsilon is not None else None
    )
    holds = _CHOSEN if adaptive else _FIXED
    at_limit = found <= _LEAST * (1 + 1e-5)
    if as_json:
        to_json(
            {
                "x": found,
                "expression": unparse(event),
                "budget": {
                    name: float(value)
                    for name in ("epsilon", "delta", "rho", "mu")
                    if (value := getattr(budget, name)) is not None and (name != "delta" or budget.epsilon is not None)
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
    rows = [("x", above(found, 10)), ("event", unparse(event)), ("budget", str(budget)), ("accountant", vouching)]
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
        return float(calibrate(make, budget, by=vouching, adjacency=adjacency, low=_LEAST, high=_MOST))
    except CannotCalibrateError as refusal:
        if not refusal.what.startswith("No value"):
            raise
        missing = budget.epsilon is not None and not budget.delta
        raise CannotCalibrateError(
            refusal.what,
            fix=f"add a delta, for example --delta {DELTA:g}; without one only pure releases such as laplace(x) can do."
            if missing
            else "raise the budget or release less; the event must get safer as x grows.",
        ) from refusal

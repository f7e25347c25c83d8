"""``defocus calibrate``: the least noise that meets a budget."""

from defocus.cli.accounting import ask
from defocus.cli.terminal import above, console, facts, to_json
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import calibrate
from defocus.privacy.expressions import family, unparse
from defocus.privacy.units import Adjacency

__all__ = ["Adjacency", "Budget", "show"]


def show(expression: str, *, budget: Budget, by: str, adjacency: Adjacency, as_json: bool) -> None:
    """Print the least value of the unknown whose event the budget covers, and what that event costs."""
    make = family(expression)
    found = float(calibrate(make, budget, by=by, adjacency=adjacency))
    event = make(found)
    answer = None if budget.epsilon is None else ask(event, budget.delta, by, adjacency)
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
                "accountant": by,
                "epsilon": None if answer is None else answer.epsilon,
                "interval": None if answer is None or answer.interval is None else list(answer.interval),
            }
        )
        return
    rows = [("x", above(found, 10)), ("event", unparse(event)), ("budget", str(budget)), ("accountant", by)]
    if answer is not None and answer.epsilon is not None:
        rows += [("epsilon", above(answer.epsilon)), ("", answer.note)]
    screen = console()
    screen.print(facts(rows))

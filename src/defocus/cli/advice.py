"""``defocus advise``: which mechanism errs least at a price."""

import math

from defocus.cli.terminal import console, table, to_json
from defocus.errors import InvalidParameterError
from defocus.mechanisms import Advice, Candidate, advise, advise_choice
from defocus.privacy.budgets import Budget
from defocus.privacy.numbers import roughly

__all__ = ["show_choice", "show_numbers"]


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

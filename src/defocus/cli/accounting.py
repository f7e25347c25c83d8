"""``defocus account``: what every accountant makes of one event, side by side."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from defocus.cli.plots import growth, save
from defocus.cli.terminal import above, below, console, table, to_json
from defocus.errors import DefocusError, Number, probability
from defocus.privacy.accounting import account
from defocus.privacy.events import Event
from defocus.privacy.expressions import parse, unparse
from defocus.privacy.losses import Interval
from defocus.privacy.units import Adjacency

__all__ = ["ACCOUNTANTS", "Adjacency", "Answer", "ask", "show"]

ACCOUNTANTS = ("pld", "rdp", "zcdp", "gdp", "advanced", "basic")
"""From the tightest to the simplest."""

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


def ask(event: Event, delta: Number, by: str, adjacency: Adjacency) -> Answer:
    """Ask one accountant; a refusal of the event, or of this delta, becomes a note."""
    probability("delta", delta, one=False)
    try:
        loss = account(event, by=by, adjacency=adjacency)
        epsilon = loss.epsilon(delta)
    except DefocusError as refusal:
        return Answer(by, None, None, refusal.what.removeprefix(f"The {by} accountant ").rstrip("."))
    if math.isinf(epsilon):
        return Answer(by, epsilon, None, "no finite epsilon at this delta")
    try:
        interval = loss.interval(delta)
    except DefocusError:
        return Answer(by, epsilon, None, _NOTES.get(by, ""))
    note = f"certified: the truth lies in [{below(interval.lower)}, {above(interval.upper)}]"
    return Answer(by, epsilon, interval, note)


def show(
    expression: str,
    *,
    delta: float,
    by: Sequence[str],
    adjacency: Adjacency,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Print every accountant's epsilon for an expression, as a table or as JSON, and plot its growth."""
    event = parse(expression)
    answers = [ask(event, delta, name, adjacency) for name in by or ACCOUNTANTS]
    if plot is not None:
        save(growth(event, delta, adjacency, by or ACCOUNTANTS), plot)
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

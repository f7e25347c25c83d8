"""Looking before spending: which methods could answer a question, how far off each would be, and what it would cost."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from defocus.graphs import printing, wording
from defocus.graphs.questions import Method
from defocus.ledger import Ledger, Remaining
from defocus.ledger.guards import Guard
from defocus.privacy.expressions import unparse
from defocus.privacy.units import Unit
from defocus.release.promises import Promise

__all__ = ["GraphPreview"]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GraphPreview:
    """What an answer would be like. Depends on public facts and guesses only; nothing was charged.

    ``methods`` are all that could be used, least error first; ``method`` is the one that would be. ``fits`` says
    whether the budget covers it now, and ``after`` what would be left.
    """

    question: str
    method: Method
    methods: tuple[Method, ...]
    rules: tuple[str, ...]
    unit: Unit
    dataset: str
    promise: Promise | None
    fits: bool
    remaining: Remaining
    after: Remaining | None

    @classmethod
    def of(
        cls, question: str, method: Method, methods: Sequence[Method], *, ledger: Ledger, rules: Sequence[str]
    ) -> "GraphPreview":
        """The preview of a release by ``method`` charged to ``ledger``, which is asked and not changed."""
        guard, spent = Guard.of(ledger.terms), ledger.spent()
        fits = guard.admits(spent, method.event)
        return cls(
            question=question,
            method=method,
            methods=tuple(sorted(methods, key=lambda each: each.error)),
            rules=tuple(rules),
            unit=ledger.unit,
            dataset=ledger.dataset,
            promise=wording.alone(method.event, ledger.terms),
            fits=fits,
            remaining=guard.remaining(spent),
            after=guard.remaining(guard.add(spent, guard.cost(method.event))) if fits else None,
        )

    @property
    def error(self) -> float:
        """The absolute error to expect of an entry."""
        return self.method.error

    @property
    def interval(self) -> float:
        """The half-width to expect at 95 %; NaN where it cannot be foretold."""
        return self.method.interval

    def to_dict(self) -> dict[str, Any]:
        """The preview with JSON types only."""
        return {
            "question": self.question,
            "method": self.method.name,
            "methods": [
                {"name": each.name, "error": _json(each.error), "interval": _json(each.interval), "how": each.how}
                for each in self.methods
            ],
            "confidence": 0.95,
            "rules": list(self.rules),
            "event": unparse(self.method.event),
            "epsilon": None if self.promise is None else _json(self.promise.epsilon),
            "delta": None if self.promise is None else self.promise.delta,
            "fits": self.fits,
            "epsilon_left_now": _json(self.remaining.epsilon),
            "epsilon_left_after": None if self.after is None else _json(self.after.epsilon),
        }

    def explain(self, *, html: bool = False) -> str:
        """The preview in plain words."""
        said = {
            "question": [self.question],
            "protected": [wording.protection(self.unit, self.dataset)],
            f"for one {self.unit.kind}": wording.odds(self.promise, self.unit),
            "by rule": list(self.rules),
            "noise": [self.method.how],
            "instead of": [f"{each.name}: {each.how}" for each in self.methods if each is not self.method],
            "cost": [wording.cost(self.promise), wording.owed(self.method.event)],
            "budget": [self._budget()],
        }
        spoken = {name: sentences for name, sentences in said.items() if sentences}
        return printing.facts_html(spoken) if html else printing.facts_text(spoken)

    def __str__(self) -> str:
        head, rows, right = self._cells()
        table = printing.table_text(head, rows, right=right)
        return "\n".join([printing.line(f"expected: {self.question}"), table, *map(printing.line, self._notes())])

    def __repr__(self) -> str:
        return f"<preview: {self.question}>"

    def _repr_html_(self) -> str:
        head, rows, right = self._cells()
        said = {"question": [self.question], "notes": self._notes()}
        return f"<div>{printing.table_html(head, rows, right=right)}{printing.facts_html(said)}</div>"

    def _cells(self) -> tuple[list[str], list[list[str]], list[bool]]:
        rows = [
            [
                "→" if each is self.method else "",
                each.name,
                printing.brief(each.error),
                f"± {printing.brief(each.interval)}" if math.isfinite(each.interval) else "–",
            ]
            for each in self.methods
        ]
        return ["", "method", "expected error", "95 % of the noise"], rows, [False, False, True, True]

    def _notes(self) -> list[str]:
        guesses = [rule for rule in self.rules if "guess" in rule]
        return [
            *guesses,
            *wording.biased(self.rules),
            f"cost: {wording.cost(self.promise)}",
            f"budget: {self._budget()}",
        ]

    def _budget(self) -> str:
        if self.after is None:
            return f"does not cover it; left now: {self.remaining}"
        return f"covers it; left now: {self.remaining}; left afterwards: {self.after}"


def _json(number: float) -> float | None:
    return number if math.isfinite(number) else None

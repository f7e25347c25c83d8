"""A release: a noisy value with everything needed to read it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from defocus.ledger import Receipt
from defocus.ledger.guards import Guard
from defocus.ledger.values import plain
from defocus.privacy.events import Event
from defocus.privacy.expressions import unparse
from defocus.privacy.pages import html_facts
from defocus.release.promises import Promise, promise
from defocus.release.wording import odds, protection

__all__ = ["CONFIDENCE", "Release"]

CONFIDENCE = 0.95
"""The confidence of the interval that a release carries."""

_POSITION = " (the position of what was chosen, counted from 0)"


@final
@dataclass(frozen=True, slots=True)
class Release:
    """A noisy value, what it owed, how far off it may be, and the receipt that paid for it.

    ``error`` is the expected absolute error of an entry and ``interval`` the half-width that
    holds with 95 % probability: both describe the noise alone, and both are public.
    Everything here may be shown to anyone.
    """

    value: Any
    event: Event
    error: float
    interval: float
    receipt: Receipt
    mechanism: str
    answer: str = "number"
    """What kind of answer the value is; see :class:`~defocus.mechanisms.Mechanism`."""

    def promise(self) -> Promise:
        """(epsilon, delta) and posterior odds of this release alone."""
        terms = self.receipt.terms
        return promise(self.event, terms.budget, terms.unit.adjacency)

    def explain(self) -> str:
        """The release in plain words: what was protected, from whom, how well, and at which cost."""
        return "\n".join(f"{name + ':':<12} {text}" for name, text in self._facts().items())

    def to_dict(self) -> dict[str, Any]:
        """The release with JSON types only."""
        return {
            "value": plain(self.value),
            "error": self.error,
            "interval": self.interval,
            "confidence": CONFIDENCE,
            "mechanism": self.mechanism,
            "receipt": self.receipt.to_dict(),
        }

    def __str__(self) -> str:
        spread = "" if self.answer != "number" else f" ± {self.interval:.6g} (95 %)"
        return f"{_shown(self.value)}{spread}, {self.receipt.purpose}"

    def _repr_html_(self) -> str:
        return html_facts(self._facts())

    def _accuracy(self) -> str:
        if self.answer == "report":
            return f"a report is not the truth with probability {self.error:.4g}"
        size = f"{self.error:.4g} on average, at most {self.interval:.6g} with 95 % probability"
        if self.answer == "crossings":
            return f"one comparison is off by {size}"
        return f"{size}, in the utility of what was chosen" if self.answer == "candidate" else size

    def _facts(self) -> Mapping[str, str]:
        terms, owed = self.receipt.terms, self.promise()
        left = Guard.of(terms).remaining(self.receipt.spent)
        return {
            "value": _shown(self.value) + (_POSITION if self.answer == "candidate" else ""),
            "error": self._accuracy(),
            "purpose": f"{self.receipt.purpose} ({self.receipt.who}, {self.receipt.time[:10]})",
            "protected": protection(terms.unit, terms.dataset, what="the value"),
            "guarantee": f"{owed} for this release alone",
            "in odds": "; ".join(odds(owed, terms.unit, what="this value")),
            "mechanism": self.mechanism,
            "cost": f"{unparse(self.event)}, entry {self.receipt.sequence} of the ledger",
            "remaining": f"{left}; the whole budget is {terms.budget}",
        }


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return np.array2string(value, threshold=8, edgeitems=3, separator=", ")
    if isinstance(value, float):
        return f"{value:.10g}"
    text = str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"

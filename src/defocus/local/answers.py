"""What the answers of all collections share: from how many reports they are, and what each report promised."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, final

import numpy as np

from defocus.answers import Answer, AnswerColumn, Tails
from defocus.answers.columns import CONFIDENCE, Floats
from defocus.answers.tables import Keys

__all__ = ["Collected", "CollectedAnswer", "estimated"]


class CollectedAnswer(Answer):
    """Estimates from private reports. They come from reports alone, so they may be shown to anyone."""

    __slots__ = ()
    reports: int
    rejected: int
    collected: str

    @property
    def notes(self) -> Sequence[str]:
        """How many reports were rejected."""
        return [f"{self.rejected} reports were rejected: no client makes them"] if self.rejected else []

    @property
    def facts(self) -> Mapping[str, Any]:
        """From how many reports it is."""
        return {"reports": self.reports, "rejected": self.rejected, "collected": self.collected}

    def _topics(self) -> Mapping[str, Sequence[str]]:
        paid = "reading reports is free; what people pay is charged by collect, before they are asked"
        return {"protected": [self.collected] if self.collected else [], "cost": [paid]}


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Collected(CollectedAnswer):
    """Estimates with nothing else to them: the mean of everybody's numbers, or strings that are frequent.

    >>> from defocus.local import mean
    >>> ages = mean("duchi", 0, 120, epsilon=2)
    >>> found = ages.estimate(ages.encode([40.0] * 5000))
    >>> 20 < found.value < 60, found.reports
    (True, 5000)
    """

    keys: Keys = field()
    columns: tuple[AnswerColumn, ...] = field()
    question: str = field()
    things: tuple[str, str] = field()
    reports: int
    rejected: int = 0
    """How many reports were rejected while these were counted."""
    collected: str = ""
    """By which oracle, and what each report promises."""


def estimated(name: str, values: Floats, errors: Floats, how: str) -> tuple[AnswerColumn]:
    """Estimates with standard errors. Each is a sum over independent reports, so intervals are those of normal noise.

    With fewer than some hundred reports they are not. For all entries at once, ask for a confidence of
    1 - (1 - confidence) / entries.
    """
    half = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2) * errors
    low, high = values - half, values + half
    return (AnswerColumn(name, np.array(values), errors, low, high, integral=False, how=how, tails=Tails.NORMAL),)

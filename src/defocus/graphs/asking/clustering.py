"""The clustering coefficient of the whole graph."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

import numpy as np

from defocus.answers.columns import AnswerColumn
from defocus.answers.digits import brief
from defocus.graphs.asking.counts import AskStars, AskTriangles
from defocus.graphs.asking.several import Several, either_way, several
from defocus.graphs.following import MeasuredRamp
from defocus.graphs.public import Public
from defocus.graphs.questions import Method, Result
from defocus.privacy.budgets import Budget

__all__ = ["AskClustering"]

_EACH = Fraction(975, 1000)
"""How often each of two intervals holds, so that both hold with 95 %."""
_WIDER = float(np.log(1 / 0.025) / np.log(1 / 0.05))
"""From 5 % to 2.5 % outside, half-widths of Laplace noise grow with the logarithm of the chance; of normal, by less."""


@final
@dataclass(frozen=True, slots=True)
class AskClustering:
    r"""How often two neighbours of a node are joined to each other: :math:`3\,\text{triangles}/\text{2-stars}`.

    Both numbers are released, each with noise that follows the graph, and divided. The interval of the quotient holds
    where both of theirs do, so it is made of intervals of 97.5 %, whose failures add up to 5 %. Those are shown too.
    """

    @property
    def words(self) -> str:
        """What is asked."""
        return "global clustering coefficient"

    @property
    def in_sql(self) -> bool:
        """Whether an engine can count it."""
        return True

    def check(self, public: Public) -> None:
        """Refuse graphs of which it cannot be asked."""
        AskTriangles().check(public)
        AskStars(2).check(public)

    def methods(self, public: Public, budget: Budget) -> Sequence[Method]:
        """Triangles and 2-stars by their best methods, half of the budget each."""
        return either_way(lambda by: _made(public, budget, by), lambda way: way.methods)


def _made(public: Public, budget: Budget, by: str | None) -> Several:
    parts = [
        replace(part, confidence=_EACH) if isinstance(part, MeasuredRamp) else part
        for part in several([AskTriangles(), AskStars(2)], public, budget, _divided(()), by=by).methods
    ]
    wider = tuple(1.0 if isinstance(part, MeasuredRamp) else _WIDER for part in parts)
    triangles, stars = (brief(part.error) for part in parts)
    said = (
        f"how far off the quotient is depends on how many 2-stars there are: about 3 × {triangles}, for triangles, over"
        f" that number; and 2-stars are off by about {stars}"
    )
    return Several(tuple(parts), _divided(wider), "triangles over 2-stars", float("nan"), (said,))


def _divided(wider: Sequence[float]) -> Callable[[Sequence[Result]], Result]:
    """Divides, with intervals that are this many times as wide as those of the two counts."""
    return lambda results: _quotient(results, wider)


def _quotient(results: Sequence[Result], wider: Sequence[float]) -> Result:
    triangles, stars = (result.columns[0] for result in results)
    half = [times * (column.high - column.values) for times, column in zip(wider, (triangles, stars), strict=True)]
    top, bottom = triangles.values, np.maximum(stars.values, 1)
    low = np.clip(3 * np.maximum(top - half[0], 0) / np.maximum(bottom + half[1], 1), 0, 1)
    high = np.clip(3 * np.maximum(top + half[0], 0) / np.maximum(bottom - half[1], 1), 0, 1)
    value = np.clip(3 * np.maximum(top, 0) / bottom, 0, 1)
    column = AnswerColumn(
        "clustering",
        value,
        np.full(1, np.nan),
        np.minimum(low, value),
        np.maximum(high, value),
        integral=False,
        how=f"{triangles.how}; {stars.how}",
    )
    notes = tuple(text for result in results for text in result.notes)
    done = ("three times the noisy number of triangles was divided by that of 2-stars, and cut to [0, 1]",)
    return Result((column, triangles, stars), processing=done, notes=notes)

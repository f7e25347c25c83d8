"""The clustering coefficient of the whole graph."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from defocus.answers.columns import AnswerColumn
from defocus.graphs.asking.counts import AskStars, AskTriangles
from defocus.graphs.asking.several import Several, several
from defocus.graphs.public import Public
from defocus.graphs.questions import Method, Result
from defocus.privacy.budgets import Budget

__all__ = ["AskClustering"]


@final
@dataclass(frozen=True, slots=True)
class AskClustering:
    r"""How often two neighbours of a node are joined to each other: :math:`3\,\text{triangles}/\text{2-stars}`.

    Both numbers are released, each with noise that follows the graph, and divided. The interval of the quotient holds
    where both of theirs do, so it is made of intervals of 97.5 %, whose failures add up to 5 %.
    """

    @property
    def words(self) -> str:
        """What is asked."""
        return "global clustering coefficient"

    def methods(self, public: Public, budget: Budget) -> Sequence[Method]:
        """Triangles and 2-stars by their best methods, half of the budget each."""
        made = several([AskTriangles(), AskStars(2)], public, budget, _divided)
        # How far off a quotient of unknown size is cannot be foretold.
        return [Several(made.methods, made.finish, "triangles over 2-stars", float("nan"))]


def _divided(results: Sequence[Result]) -> Result:
    triangles, stars = (result.columns[0] for result in results)
    # From 5 % to 2.5 % outside, half-widths grow with the logarithm of the chance; for a ramp, at most with its square.
    wider = (np.log(1 / 0.025) / np.log(1 / 0.05)) ** 2
    half = [wider * (column.high - column.values) for column in (triangles, stars)]
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

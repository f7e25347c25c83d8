"""What the columns of an answer are called."""

from fractions import Fraction

import numpy as np

from defocus.answers.columns import AnswerColumn
from defocus.tables.aggregates import Aggregate, Histogram, Quantile

__all__ = ["nothing", "titles"]


def titles(name: str, aggregate: Aggregate) -> list[str]:
    """The columns that an aggregate fills."""
    if isinstance(aggregate, Quantile) and not aggregate.single:
        return [f"{name}_{_percent(level)}" for level in aggregate.levels]
    if isinstance(aggregate, Histogram):
        pairs = zip(aggregate.edges, aggregate.edges[1:], strict=False)
        return [f"{name}_{low:g}_to_{high:g}" for low, high in pairs]
    return [name]


def nothing(name: str, aggregate: Aggregate) -> list[AnswerColumn]:
    """The columns of an answer in which no group was found."""
    empty = np.zeros(0)
    return [
        AnswerColumn(title, empty, empty, empty, empty, integral=False, how="no group was found")
        for title in titles(name, aggregate)
    ]


def _percent(level: Fraction) -> str:
    return f"{float(100 * level):g}".replace(".", "_")

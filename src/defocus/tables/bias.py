"""Intervals that also hold what bounding and clipping take away, up to what somebody declares about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from defocus.answers import AnswerColumn, Effect, Tails
from defocus.answers.columns import Floats
from defocus.errors import InvalidParameterError, Number, finite, probability
from defocus.tables.aggregates import Aggregate
from defocus.tables.noise import Noisy
from defocus.tables.splits import Split
from defocus.tables.statistics import Statistic

__all__ = ["Bias"]

_KNOWN = ("count", "sum", "mean")


@final
@dataclass(frozen=True, slots=True)
class Bias:
    r"""At most a share b of each group's rows lies beyond the bound, and clipping moves an average by at most c.

    Error:
        Let rows weigh K together, of which N would without a bound, so :math:`N - K \le bN`. A count of N lies between
        K and :math:`K/(1-b)`. Values are clipped to [L, U]: a sum moves by at most :math:`bK/(1-b)` rows of L or of U
        each, and a mean is one part in :math:`1-b` of what is measured and another part in [L, U]. Clipping moves a
        mean by at most c, and a sum by c for each row. So an interval that holds what is measured holds, widened by
        this, the statistic of all rows as they are. What is declared is not checked.

    >>> print(Bias(0.02, {"days": 0.1}))
    at most 2 % of the rows of each group lie beyond the bound, and clipping moves an average of days by at most 0.1
    """

    beyond: float | None = None
    clipped: Mapping[str, float] = field(default_factory=dict)

    @property
    def of_rows(self) -> Effect:
        """What a bound on rows does to intervals: nothing that they do not hold, where that is declared."""
        return Effect.BOUND if self.beyond is None else Effect.READ

    def of(self, text: str) -> Effect:
        """Likewise what clipping a column does."""
        return Effect.READ if text in self.clipped else Effect.BOUND

    @classmethod
    def declared(
        cls, beyond: Number | None, clipped: Mapping[str, Number] | None, asked: Mapping[str, Aggregate]
    ) -> "Bias":
        """What somebody declares, refused where the effect on something that is asked is not known."""
        for name, aggregate in asked.items():
            if not isinstance(aggregate, Statistic) or aggregate.operation not in _KNOWN:
                raise InvalidParameterError(
                    f"What a bound does to {name} is not known.",
                    fix="ask counts, sums and means apart from others, and let covering(…) widen those.",
                )
        moved = {text: abs(float(finite(f"clipped[{text!r}]", c))) for text, c in (clipped or {}).items()}
        texts = {text for aggregate in asked.values() for text in aggregate.texts}
        if unknown := sorted(set(moved) - texts):
            raise InvalidParameterError(f"{unknown[0]!r:.60} is not asked about.", fix="name a column as it is asked.")
        if beyond is None and not moved:
            raise InvalidParameterError("Nothing is declared.", fix="pass beyond=0.02, or clipped={'days': 0.1}.")
        return cls(None if beyond is None else float(probability("beyond", beyond, one=False)), moved)

    def __str__(self) -> str:
        beyond = f"at most {100 * (self.beyond or 0):g} % of the rows of each group lie beyond the bound"
        said = [] if self.beyond is None else [beyond]
        said += [f"clipping moves an average of {text} by at most {most:g}" for text, most in self.clipped.items()]
        return ", and ".join(said)

    def widened(self, column: AnswerColumn, statistic: Statistic, split: Split, noisy: Noisy) -> AnswerColumn:
        """The column with intervals that hold what is declared as well."""
        low, high = column.low, column.high
        b = self.beyond or 0.0
        more = b / (1 - b)
        if statistic.operation == "count":
            return self._with(column, low, high + more * np.maximum(high, 0.0))
        (value,) = split.values
        bottom, top, c = value.bottom, value.bottom + value.width, self.clipped.get(value.text, 0.0)
        if statistic.operation == "mean":
            down, up = np.minimum(bottom - low, 0.0), np.maximum(top - high, 0.0)
            return self._with(column, low + b * down - c, high + b * up + c)
        rows = np.maximum(noisy.count("", split.moment((0,)), "").high, 0.0)
        lost, moved = more * rows, c * (1 + more) * rows
        return self._with(column, low + min(0.0, bottom) * lost - moved, high + max(0.0, top) * lost + moved)

    @staticmethod
    def _with(column: AnswerColumn, low: Floats, high: Floats) -> AnswerColumn:
        return replace(column, low=low, high=high, tails=Tails.UNKNOWN, noise=None)

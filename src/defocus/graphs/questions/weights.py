"""Weighted graphs in which one weight is protected."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from defocus.answers.columns import noisy
from defocus.errors import InvalidParameterError, choice
from defocus.graphs.data import Data
from defocus.graphs.noise import VectorNoise, noises
from defocus.graphs.public import IntVector, Public
from defocus.graphs.question import WEIGHTS_CUT, Method, Result
from defocus.graphs.statistics.weights import KINDS, STEPS, WeightSums
from defocus.privacy.budgets import Budget

__all__ = ["AskWeights"]


@final
@dataclass(frozen=True, slots=True)
class AskWeights:
    """Sums of weights in [0, B]: of all edges, ``"strength"`` of every node, or ``"each"`` weight by itself.

    How far one weight moves them is said in :class:`~defocus.graphs.statistics.WeightSums`.
    """

    kind: str = "total"

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", choice("sum of weights", self.kind, KINDS))

    @property
    def words(self) -> str:
        """What is asked."""
        return {"total": "total weight", "strength": "total weight at every node", "each": "every weight"}[self.kind]

    def check(self, public: Public) -> None:
        """Refuse graphs of which it cannot be asked."""
        if public.unit.kind != "weight" or public.unit.bound is None:
            raise InvalidParameterError(
                f"Sums of weights are asked of graphs that protect weights, and this one protects {public.unit}.",
                fix='open it with unit=dp.weight(bound=…) and weights="name of the column".',
            )
        if self.kind == "each" and public.lines:
            raise InvalidParameterError(
                "A line of text that cannot be read is left out, so how many weights are listed may depend on them.",
                fix='ask for weights() or weights("strength"); or pass the edges as Parquet or a frame.',
            )

    def methods(self, public: Public, budget: Budget) -> Sequence[Method]:
        """Noise for one weight; Gaussian noise errs less where one person has many."""
        self.check(public)
        statistic = WeightSums(self.kind, Fraction(public.unit.bound or 0), directed=public.directed)
        return noises(statistic, public, budget, _in_weights, grain=statistic.bound / STEPS, rules=_RULES, of_data=True)


_RULES = (
    WEIGHTS_CUT,
    "a weight that is missing or no number counts as zero",
    "where an edge is listed more than once, its first line has its weight, and the others count as zero",
)


def _in_weights(method: VectorNoise, values: IntVector, data: Data) -> Result:
    """Noise on whole steps, scaled back to weights."""
    statistic, keys = method.statistic, dict[str, Sequence[Any]]()
    if isinstance(statistic, WeightSums) and statistic.kind == "strength":
        keys = {"node": data.labels}
    elif isinstance(statistic, WeightSums) and statistic.kind == "each":
        keys = {
            name: [data.labels[i] if i >= 0 else None for i in side.tolist()]
            for name, side in (("from", data.pairs.left), ("to", data.pairs.right))
        }
    weights = values * float(method.grain)
    column = noisy("weight", weights, error=method.error, half=method.interval, how=method.how, integral=False)
    return Result((column,), keys=keys)

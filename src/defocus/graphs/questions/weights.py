"""Weighted graphs in which one weight is protected."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from defocus.answers.columns import noisy
from defocus.errors import InvalidParameterError, choice
from defocus.graphs.data import Data
from defocus.graphs.noise import attempted
from defocus.graphs.public import Public
from defocus.graphs.question import WEIGHTS_CUT, Method, Result
from defocus.graphs.statistics.weights import KINDS, STEPS, WeightSums
from defocus.mechanisms import Gaussian, Laplace
from defocus.noise import Bits
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event

__all__ = ["AskWeights", "WeightNoise"]


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
        """Noise for one weight."""
        self.check(public)
        statistic = WeightSums(self.kind, Fraction(public.unit.bound or 0), directed=public.directed)
        sensitivity = statistic.sensitivity(public)
        laplace = Laplace.calibrated(epsilon=budget.epsilon or 0, sensitivity=sensitivity.l1)
        ways: list[Any] = [lambda: WeightNoise("laplace", statistic, laplace)]
        if budget.delta and self.kind != "each":
            entries = statistic.length(public)
            ways.append(
                lambda: WeightNoise(
                    "gaussian",
                    statistic,
                    Gaussian.calibrated(budget, sensitivity=sensitivity.l2, dimension=entries),
                )
            )
        return attempted(ways)


@final
@dataclass(frozen=True, slots=True, eq=False)
class WeightNoise:
    """Noise on whole steps, scaled back to weights."""

    name: str
    statistic: WeightSums
    mechanism: Laplace | Gaussian
    rules: tuple[str, ...] = (
        WEIGHTS_CUT,
        "a weight that is missing or no number counts as zero",
        "where an edge is listed more than once, its first line has its weight, and the others count as zero",
    )

    @property
    def event(self) -> Event:
        """What one release owes."""
        return self.mechanism.event

    @property
    def grain(self) -> float:
        """One step, as a weight."""
        return float(self.statistic.bound / STEPS)

    @property
    def error(self) -> float:
        """The expected absolute error of a sum."""
        return self.mechanism.error * self.grain

    @property
    def interval(self) -> float:
        """The half-width at 95 %."""
        return float(self.mechanism.interval(0.95)) * self.grain

    @property
    def how(self) -> str:
        """The noise, in words."""
        return f"discrete {'Laplace' if isinstance(self.mechanism, Laplace) else 'Gaussian'} noise"

    def run(self, data: Data, bits: Bits) -> Result:
        """Cut, sum, add noise, scale back."""
        sums = self.statistic.exact(data)
        keys: dict[str, Sequence[Any]] = {}
        if self.statistic.kind == "strength":
            keys = {"node": data.labels}
        elif self.statistic.kind == "each":
            keys = {
                name: [data.labels[i] if i >= 0 else None for i in side.tolist()]
                for name, side in (("from", data.pairs.left), ("to", data.pairs.right))
            }
        values = np.asarray(self.mechanism.sample(sums, bits)) * self.grain
        how = f"{self.how} of scale {self._scale:.6g}"
        column = noisy("weight", values, error=self.error, half=self.interval, how=how, integral=False)
        return Result((column,), keys=keys)

    @property
    def _scale(self) -> float:
        scale = self.mechanism.scale if isinstance(self.mechanism, Laplace) else self.mechanism.sigma
        return float(scale) * self.grain

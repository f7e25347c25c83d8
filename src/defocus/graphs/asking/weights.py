"""Weighted graphs in which one weight is protected."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from defocus.answers.columns import noisy
from defocus.errors import InvalidParameterError
from defocus.graphs.data import Data
from defocus.graphs.noising import attempted
from defocus.graphs.pairs import Pairs
from defocus.graphs.public import Public
from defocus.graphs.questions import Method, Result
from defocus.graphs.statistic import IntVector
from defocus.mechanisms import Gaussian, Laplace
from defocus.noise import Bits
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.privacy.rounding import root_up

__all__ = ["STEPS", "AskWeights", "WeightNoise", "steps_of"]

STEPS = 1 << 20
"""Weights are rounded to so many steps from zero to the bound."""
_KINDS = {"total": 1, "strength": 2, "each": 1}
"""What can be asked, and how many sums one weight is in."""


def steps_of(pairs: Pairs, bound: Fraction) -> IntVector:
    """Every weight in whole steps of its range, cut to [0, bound]; what is no number counts as zero.

    >>> steps_of(Pairs(np.zeros(3, int), np.ones(3, int), np.array([0.5, -3.0, np.nan])), Fraction(1)).tolist()
    [524288, 0, 0]
    """
    weights = np.zeros(len(pairs)) if pairs.weights is None else np.nan_to_num(pairs.weights, nan=0.0)
    scaled = np.clip(weights / float(bound), 0.0, 1.0)
    return np.rint(scaled * STEPS).astype(np.int64)


@final
@dataclass(frozen=True, slots=True)
class AskWeights:
    r"""Sums of weights in [0, B]: of all edges, ``"strength"`` of every node, or ``"each"`` weight by itself.

    Guarantee:
        Weight privacy: which edges there are is public, and one weight is replaced by another in [0, B]. Weights
        outside are cut, each by itself, and of several lines about one edge only the first counts, so that weight
        moves by at most B, exactly STEPS steps: :math:`\Delta_1 = \Delta_2 = B` for the total and for the vector of
        all weights; for strengths it is in the sums of its two ends: :math:`\Delta_1 = 2B`,
        :math:`\Delta_2 = \sqrt2 B`. An edge from a node to itself counts there once.
    """

    kind: str = "total"

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise InvalidParameterError(
                f"Weights are not asked for by {self.kind!r:.60}.", fix=f"choose among {', '.join(_KINDS)}."
            )

    @property
    def words(self) -> str:
        """What is asked."""
        return {"total": "total weight", "strength": "total weight at every node", "each": "every weight"}[self.kind]

    def methods(self, public: Public, budget: Budget) -> Sequence[Method]:
        """Noise for one weight."""
        if public.unit.kind != "weight" or public.unit.bound is None:
            raise InvalidParameterError(
                f"Sums of weights are asked of graphs that protect weights, and this one protects {public.unit}.",
                fix='open it with unit=dp.weight(bound=…) and weights="name of the column".',
            )
        bound, sums = Fraction(public.unit.bound), _KINDS[self.kind]
        laplace = Laplace.calibrated(epsilon=budget.epsilon or 0, sensitivity=sums * STEPS)
        ways: list[Any] = [lambda: WeightNoise("laplace", self.kind, laplace, bound, directed=public.directed)]
        if budget.delta and self.kind != "each":
            entries = 1 if self.kind == "total" else public.n
            reach = STEPS if sums == 1 else root_up(Fraction(2 * STEPS * STEPS))
            ways.append(
                lambda: WeightNoise(
                    "gaussian",
                    self.kind,
                    Gaussian.calibrated(budget, sensitivity=reach, dimension=entries),
                    bound,
                    directed=public.directed,
                )
            )
        return attempted(ways)


@final
@dataclass(frozen=True, slots=True, eq=False)
class WeightNoise:
    """Noise on whole steps, scaled back to weights."""

    name: str
    kind: str
    mechanism: Laplace | Gaussian
    bound: Fraction
    directed: bool = False
    rules: tuple[str, ...] = (
        "weights are cut to their declared range; what is missing or no number counts as zero",
        "where an edge is listed more than once, its first line has its weight, and the others count as zero",
    )

    @property
    def event(self) -> Event:
        """What one release owes."""
        return self.mechanism.event

    @property
    def unit(self) -> float:
        """One step, as a weight."""
        return float(self.bound / STEPS)

    @property
    def error(self) -> float:
        """The expected absolute error of a sum."""
        return self.mechanism.error * self.unit

    @property
    def interval(self) -> float:
        """The half-width at 95 %."""
        return float(self.mechanism.interval(0.95)) * self.unit

    @property
    def how(self) -> str:
        """The noise, in words."""
        return f"discrete {'Laplace' if isinstance(self.mechanism, Laplace) else 'Gaussian'} noise"

    def run(self, data: Data, bits: Bits) -> Result:
        """Cut, sum, add noise, scale back."""
        pairs = data.pairs
        steps = steps_of(pairs, self.bound)
        known = pairs.first_of_each(directed=self.directed)
        steps = np.where(known, steps, 0)
        keys: dict[str, Sequence[Any]] = {}
        if self.kind == "total":
            sums = np.array([steps.sum()], np.int64)
        elif self.kind == "strength":
            sums = np.zeros(data.nodes, np.int64)
            for side, counts in ((pairs.left, known), (pairs.right, known & (pairs.left != pairs.right))):
                np.add.at(sums, side[counts], steps[counts])
            keys = {"node": data.labels}
        else:
            sums = steps
            keys = {
                name: [data.labels[i] if i >= 0 else None for i in side.tolist()]
                for name, side in (("from", pairs.left), ("to", pairs.right))
            }
        values = np.asarray(self.mechanism.sample(sums, bits)) * self.unit
        how = f"{self.how} of scale {self._scale:.6g}"
        column = noisy("weight", values, error=self.error, half=self.interval, how=how, integral=False)
        return Result((column,), keys=keys)

    @property
    def _scale(self) -> float:
        scale = self.mechanism.scale if isinstance(self.mechanism, Laplace) else self.mechanism.sigma
        return float(scale) * self.unit

"""Sums of weights, and interactions by time."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError
from defocus.graphs.certificates import Certificate, Entry
from defocus.graphs.data import MISSING_TIME, Pairs
from defocus.graphs.public import IntVector, Public
from defocus.privacy.sensitivity import Sensitivity
from defocus.privacy.units import Adjacency, item, weight

__all__ = [
    "INTERACTIONS_ENTRY",
    "KINDS",
    "MOST_LINES",
    "PERSONS_WEIGHTS_ENTRY",
    "STEPS",
    "WEIGHTS_ENTRY",
    "Interactions",
    "WeightSums",
    "counted",
    "steps_of",
]


STEPS = 1 << 20
"""Weights are rounded to so many steps from zero to the bound."""
MOST_LINES = 1 << 40
"""No list has more weights."""
KINDS = {"total": 1, "strength": 2, "each": 1}
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
class WeightSums:
    r"""The sum of all weights, ``"strength"``: of those at every node, or ``"each"`` weight by itself; in steps.

    Guarantee:
        Weight privacy: which edges there are is public, and one weight is replaced by another in [0, B]. Weights
        outside are cut, each by itself, and of several lines about one edge only the first counts, so that weight
        moves by at most B, exactly STEPS steps: :math:`\Delta_1 = \Delta_2 = B` for the total and for the vector of
        all weights; for strengths it is in the sums of its two ends: :math:`\Delta_1 = 2B`,
        :math:`\Delta_2 = \sqrt2 B`. An edge from a node to itself counts nowhere.

        A person with m weights moves at most m of them, on different edges. :math:`\Delta_1` is m times as large.
        All weights are different entries, so :math:`\Delta_2^2 = mB^2`; in the total they add up,
        :math:`\Delta_2^2 = m^2B^2`. Strengths move by at most B times the degrees :math:`d` in the graph of those m
        edges, and :math:`\sum_v d_v^2 = \sum_{uv}(d_u + d_v) \le m(m+1)`, since only the edge itself is at both of
        its ends; where edges have a direction, two are, :math:`\le m(m+2)`.

    >>> sensitivity = WeightSums("strength", Fraction(1)).sensitivity(Public(weight(bound=1), 3))
    >>> sensitivity == Sensitivity(2 * STEPS, 2 * STEPS**2)
    True
    """

    kind: str
    bound: Fraction
    directed: bool = False

    @property
    def name(self) -> str:
        """What it is called."""
        return {"total": "total weight", "strength": "strengths", "each": "weights"}[self.kind]

    def exact(self, graph: Any) -> IntVector:
        """The sums, of private data with a list of edges."""
        pairs = graph.pairs
        kept = pairs.first_of_each(directed=self.directed)
        steps = np.where(kept, steps_of(pairs, self.bound), 0)
        if self.kind == "each":
            return steps
        if self.kind == "total":
            return np.array([steps.sum()], np.int64)
        sums = np.zeros(graph.nodes, np.int64)
        for side in (pairs.left, pairs.right):
            np.add.at(sums, side[kept], steps[kept])
        return sums

    def length(self, public: Public) -> int:
        """One sum, or one for each node. How many lines there are is public, but known only when they are read."""
        return {"total": 1, "strength": public.n, "each": MOST_LINES}[self.kind]

    def sensitivity(self, public: Public) -> Sensitivity:
        """One weight goes from zero to the bound, in one sum or in two."""
        if public.unit.kind != "weight":
            raise InvalidParameterError(
                f"Sums of weights are asked of graphs that protect weights, and this one protects {public.unit}.",
                fix='open it with unit=dp.weight(bound=…) and weights="name of the column".',
            )
        sums, m = KINDS[self.kind], public.changes
        squared = {"total": m * m, "strength": m * (m + 1), "each": m}[self.kind]
        if self.kind == "strength" and self.directed and m > 1:
            squared = m * (m + 2)
        return Sensitivity(m * sums * STEPS, squared * STEPS * STEPS)


WEIGHTS_ENTRY = Entry(
    "weights",
    WeightSums,
    Certificate(
        statistics=(
            *(WeightSums(kind, Fraction(3)) for kind in KINDS),
            WeightSums("strength", Fraction(3), directed=True),
        ),
        units=(weight(bound=3),),
    ),
)
PERSONS_WEIGHTS_ENTRY = Entry(
    "weights of one person",
    WeightSums,
    Certificate(statistics=WEIGHTS_ENTRY.certificate.statistics, units=(weight(bound=3, per_person=2),), tight_from=3),
)


@final
@dataclass(frozen=True, slots=True)
class Interactions:
    r"""How many interactions there were in each step; ``bounds`` are where steps begin, and the end of the last.

    Guarantee:
        Event privacy: one interaction is in one step, so :math:`\Delta_1 = \Delta_2 = 1` for the whole series, however
        many steps there are; where one replaces another, it leaves one step and enters one, :math:`\Delta_1 = 2` and
        :math:`\Delta_2^2 = 2`. Interactions outside of the steps, without a time, of a node with itself, or with an
        end that is no node are left out.

    >>> Interactions((0, 5, 10)).sensitivity(Public(item(), 4))
    Sensitivity(l1=1, l2_squared=1)
    """

    bounds: tuple[int, ...]
    name: ClassVar[str] = "interactions"

    def exact(self, graph: Any) -> IntVector:
        """The counts, of private data with a list of edges."""
        return counted(graph.pairs, np.array(self.bounds, np.int64))

    def length(self, public: Public) -> int:  # noqa: ARG002  # the same for every graph
        """One count for each step."""
        return len(self.bounds) - 1

    def sensitivity(self, public: Public) -> Sensitivity:
        """One interaction."""
        if public.unit.kind != "event":
            raise InvalidParameterError(
                f"Interactions are asked of graphs that protect events, and this one protects {public.unit}.",
                fix='open it with unit=dp.item() and time="name of the column".',
            )
        replaced = public.unit.adjacency is Adjacency.REPLACE
        one = Sensitivity(2, 2) if replaced else Sensitivity(1, 1)
        return one.times(public.unit.per_person or 1)


def counted(pairs: Pairs, bounds: NDArray[np.int64]) -> IntVector:
    """How many interactions fall into each step."""
    if pairs.times is None:
        return np.zeros(len(bounds) - 1, np.int64)
    there = (pairs.left >= 0) & (pairs.right >= 0) & (pairs.left != pairs.right) & (pairs.times != MISSING_TIME)
    times = pairs.times[there]
    times = times[(times >= bounds[0]) & (times < bounds[-1])]
    at = np.searchsorted(bounds, times, side="right") - 1
    return np.bincount(at, minlength=len(bounds) - 1).astype(np.int64)


INTERACTIONS_ENTRY = Entry(
    "interactions",
    Interactions,
    Certificate(statistics=(Interactions((0, 5, 10)),), units=(item(), item(replace=True))),
)

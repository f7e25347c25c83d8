"""Edges, triangles and degrees where one node with all its edges is protected."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from defocus.answers.columns import AnswerColumn, noisy
from defocus.answers.digits import brief
from defocus.errors import InvalidParameterError, NotDeclaredError, Number
from defocus.graphs.data import Data
from defocus.graphs.inference import plausible_counts
from defocus.graphs.node import GRAIN, CapRule
from defocus.graphs.noising import Finish, VectorNoise, noises
from defocus.graphs.public import Public
from defocus.graphs.questions import Method, Result
from defocus.graphs.statistic import IntVector
from defocus.graphs.statistics.capped import CappedEdges, CappedTriangles
from defocus.graphs.statistics.projected import ProjectedHistogram
from defocus.mechanisms import Gaussian, Laplace
from defocus.noise import Bits
from defocus.privacy import events
from defocus.privacy.budgets import Budget
from defocus.privacy.units import Adjacency

__all__ = ["FoundCap", "FoundMost", "node_cap", "node_edges", "node_histogram", "node_triangles"]

_NODES = Fraction(1, 100)
"""Which part of epsilon the number of nodes takes in the search for a largest degree."""
_LARGEST = 10_000
_EFFORT = (
    "it takes long: a linear program is solved after the charge, and how large it is stays private; with 1.6 million"
    " triangles it took 15 s at a cap of 5000, and two minutes at a cap of 200"
)


def node_edges(public: Public, budget: Budget, cap: int | None) -> Sequence[Method]:
    """The number of edges, of which no node has more than a cap: given, declared as largest degree, or found."""
    _plain(public, "edges")
    most = cap or _declared(public)
    if most is None:
        return [FoundCap(_epsilon(budget), _changes(public))]
    rules = (f"at each node, at most {most} of its edges count",)
    finish, grain = _divided("edges"), Fraction(1, 2)
    return noises(CappedEdges(most), public, budget, finish, prefix="flow, ", rules=rules, grain=grain)


def node_triangles(public: Public, budget: Budget, cap: int | None) -> Sequence[Method]:
    """The number of triangles, of which no node has more than ``cap``."""
    most = node_cap(public, cap)
    rules = (f"at each node, at most {most} of its triangles count",)
    finish, grain = _divided("triangles"), Fraction(1, GRAIN)
    statistic, prefix = CappedTriangles(most), "program, "
    return noises(statistic, public, budget, finish, prefix=prefix, rules=rules, grain=grain, foretold=(_EFFORT,))


def node_cap(public: Public, cap: int | None) -> int:
    """How many triangles count at a node: as given, or as many as the declared largest degree allows."""
    _plain(public, "triangles")
    degree = _declared(public)
    most = cap or (None if degree is None else max(1, math.comb(degree, 2)))
    if most is None:
        raise NotDeclaredError(
            "A node with all its edges can be in any number of triangles, and nobody said how many count.",
            fix="pass cap=…, of how many triangles a node may be counted; or protect nodes of a largest degree:"
            " unit=dp.node(max_degree=…).",
        )
    return most


def node_histogram(public: Public, budget: Budget, at_most: int | None) -> Sequence[Method]:
    """How many nodes have each degree, edges beyond ``at_most`` at a node left out."""
    _plain(public, "degrees")
    public.need_all_nodes()
    most = at_most or _declared(public)
    if most is None:
        return [FoundMost(_epsilon(budget), _changes(public))]
    rules = (f"edges are left out where a node would have more than {most}",)
    histogram = noises(ProjectedHistogram(most), public, budget, _counts, prefix="histogram, ", rules=rules)
    spread = min(1.0, 4 / math.sqrt(most))
    return [
        *histogram,
        *noises(
            ProjectedHistogram(most, cumulative=True),
            public,
            budget,
            _plausible,
            prefix="cumulative, ",
            rules=rules,
            expected=lambda mechanism: mechanism.error * spread,
            width=_difference,
        ),
    ]


@final
@dataclass(frozen=True, slots=True, eq=False)
class FoundCap:
    r"""The number of edges with a cap that is found privately.

    Guarantee:
        :math:`\varepsilon`-DP: the search takes its share of epsilon and the count the rest, with discrete Laplace
        noise whose scale is the cap over that rest. Given the cap, which is released, the count has the cap as its
        sensitivity; so the two compose.
    """

    epsilon: Number
    changes: int
    name: str = "flow, cap found"
    error: float = math.nan
    interval: float = math.nan
    how: str = "discrete Laplace noise, scaled to a cap on degrees that is found with noise first"
    rules: tuple[str, ...] = ("edges count up to a cap at each node, which is found; what is beyond it is lost",)

    @property
    def foretold(self) -> tuple[str, ...]:
        """What the error depends on."""
        least = self.changes / float(self.epsilon)
        most = least / float(1 - CapRule().share)
        said = (
            "how far off it is depends on the cap that is found, which is about the largest degree: for each edge of"
            f" the cap by {brief(least)} to {brief(most)} on average; with cap=… it is foretold"
        )
        return (said,)

    @property
    def event(self) -> events.Pure:
        """Search and count together."""
        return events.Pure(self.epsilon)

    def run(self, data: Data, bits: Bits) -> Result:
        """Find the cap, count, add noise."""
        found = CapRule(self.changes).find(data.graph, self.epsilon, bits)
        cap, rest = found.cap, Fraction(self.epsilon) * (1 - found.spent)
        mechanism = Laplace.calibrated(epsilon=rest, sensitivity=2 * cap * self.changes)
        value = mechanism.sample(CappedEdges(cap).exact(data.graph), bits) / 2
        how = f"discrete Laplace noise of scale {float(mechanism.scale) / 2:.6g}"
        half = mechanism.interval(0.95) / 2
        column = noisy("edges", value, error=mechanism.error / 2, half=half, how=how, integral=False)
        return Result((column,), notes=(f"the cap that was found: {cap} edges at each node; its bias is not counted",))


@final
@dataclass(frozen=True, slots=True, eq=False)
class FoundMost:
    r"""The degree histogram with a largest degree that is found privately.

    With a rough average degree d of n nodes it is :math:`\sqrt{2d\sqrt n}`: between twice the average, below which
    the histogram is another one, and the root of n, above which its noise is as large as it is.

    Guarantee:
        :math:`\varepsilon`-DP: rough numbers of edges and of nodes (sensitivity 1) take their shares of epsilon, the
        cumulative histogram takes the rest. The average degree of the rough numbers decides, so it may be shown.
    """

    epsilon: Number
    changes: int
    name: str = "cumulative, largest degree found"
    error: float = math.nan
    interval: float = math.nan
    how: str = "discrete Laplace noise, scaled to a largest degree that is found with noise first"
    rules: tuple[str, ...] = ("edges are left out where a node would have more than a number that is found",)

    @property
    def foretold(self) -> tuple[str, ...]:
        """What the error depends on."""
        return ("how far off it is depends on the largest degree that is found; with at_most=… it is foretold",)

    @property
    def event(self) -> events.Pure:
        """Search and histogram together."""
        return events.Pure(self.epsilon)

    def run(self, data: Data, bits: Bits) -> Result:
        """Find the largest degree, count, add noise."""
        epsilon = Fraction(self.epsilon)
        scale = CapRule(self.changes).find(data.graph, epsilon, bits)
        counted = Laplace.calibrated(epsilon=epsilon * _NODES, sensitivity=self.changes)
        nodes = max(1, counted.sample(data.graph.nodes, bits))
        average = 2 * scale.edges / nodes
        most = min(max(1, math.ceil(math.sqrt(2 * average * math.sqrt(nodes)))), _LARGEST)
        statistic = ProjectedHistogram(most, cumulative=True)
        rest = epsilon * (1 - scale.spent - _NODES)
        mechanism = Laplace.calibrated(epsilon=rest, sensitivity=(most + 1) * self.changes)
        values = np.asarray(mechanism.sample(statistic.exact(data.graph), bits))
        how = f"discrete Laplace noise of scale {float(mechanism.scale):.6g}"
        found = _read(values, mechanism, how)
        note = f"the largest degree that was found: {most}; edges beyond it at a node are left out"
        return Result(found.columns, keys=found.keys, processing=found.processing, notes=(note,))


def _divided(title: str) -> Finish:
    def finish(method: VectorNoise, values: IntVector, _data: Data) -> Result:
        parts = method.grain.denominator
        error, half = method.error, method.interval
        column = noisy(title, values / parts, error=error, half=half, how=method.how, integral=False)
        return Result((column,), processing=(f"the noisy number was divided by {parts}",))

    return finish


def _counts(method: VectorNoise, values: IntVector, _data: Data) -> Result:
    column = noisy("nodes", values, error=method.mechanism.error, half=method.interval, how=method.how)
    return Result((column,), keys={"degree": range(len(values))})


def _plausible(method: VectorNoise, values: IntVector, _data: Data) -> Result:
    return _read(values, method.mechanism, method.how)


def _read(values: IntVector, mechanism: Laplace | Gaussian, how: str) -> Result:
    """The most plausible counts; the noisy number of nodes is the end of the chain."""
    gaussian = isinstance(mechanism, Gaussian)
    width = float(mechanism.sigma if isinstance(mechanism, Gaussian) else mechanism.scale)
    total = max(0, int(values[-1]))
    counts = plausible_counts(values[:-1], total, scale=width, gaussian=gaussian)
    half = _difference(mechanism)
    raw = np.diff(np.concatenate([[0.0], values]))
    low, high = np.minimum(np.maximum(raw - half, 0), counts), np.maximum(np.maximum(raw + half, 0), counts)
    column = AnswerColumn("nodes", counts, np.full(len(counts), np.nan), low, high, integral=True, how=how)
    done = ("the most plausible count of each degree was taken, given all noisy numbers of nodes up to each degree",)
    return Result((column,), keys={"degree": range(len(counts))}, processing=done)


def _difference(mechanism: Laplace | Gaussian) -> float:
    """A half-width for the difference of two noises, each of them within its own."""
    return 2.0 * mechanism.interval(0.975)


def _declared(public: Public) -> int | None:
    return None if public.unit.bound is None else int(public.unit.bound)


def _epsilon(budget: Budget) -> Any:
    return budget.epsilon


def _changes(public: Public) -> int:
    return 2 if public.unit.adjacency is Adjacency.REPLACE else 1


def _plain(public: Public, what: str) -> None:
    if public.directed:
        raise InvalidParameterError(
            f"There are no {what} of directed graphs under node privacy here.",
            fix="open the graph with directed=False.",
        )

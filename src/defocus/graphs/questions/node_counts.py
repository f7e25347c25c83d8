"""Counts under node privacy whose caps are found privately, and degree histograms out of noisy numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist
from typing import Any, final

import numpy as np

from defocus.answers.columns import AnswerColumn, Floats, Tails, brief, noisy
from defocus.errors import InvalidParameterError
from defocus.graphs.data import Data
from defocus.graphs.inference import plausible_counts
from defocus.graphs.inference.bands import step_bounds
from defocus.graphs.node import GRAIN, CapRule, capped_edges_twice, hirsch
from defocus.graphs.node.programs import LARGEST
from defocus.graphs.noise import Finish, VectorNoise, noises
from defocus.graphs.public import IntVector, Public
from defocus.graphs.question import Method, Result, cap_found, capped, projected
from defocus.graphs.statistics.node_level import CappedEdges, CappedTriangles, ProjectedHistogram
from defocus.mechanisms import Exponential, Gaussian, Laplace
from defocus.noise import Bits
from defocus.privacy import events
from defocus.privacy.budgets import Budget
from defocus.privacy.units import node

__all__ = [
    "FoundCap",
    "FoundMost",
    "FoundTriangles",
    "at_least",
    "by_degree",
    "difference",
    "node_cap",
    "node_edges",
    "node_histogram",
    "node_triangles",
    "plausible",
    "steps_column",
    "widest_step",
    "without_interval",
]


_OUTSIDE = 0.05
"""What a 95 % interval leaves out."""


def by_degree(method: VectorNoise, values: IntVector, _data: Data) -> Result:
    """One noisy count for each degree from zero on."""
    column = noisy(
        "nodes", values, error=method.mechanism.error, half=method.interval, how=method.how, tails=Tails.LOG_CONCAVE
    )
    return Result((column,), keys={"degree": range(len(values))})


def at_least(name: str, value: Any, mechanism: Laplace | Gaussian, grain: Fraction, how: str) -> AnswerColumn:
    r"""A capped count in parts of ``grain``, with the lower end of an interval that holds the truth with 95 %.

    Guarantee:
        The capped count f is never above the true one m. Noise is symmetric, so that it exceeds its half-width h at
        90 % with probability 5 % at most: noisy f − h is above f, and so above m, once in twenty times at most, on
        every graph and at every cap.

        An upper end of use cannot be had without a declared largest degree, in this way or another. One node more may
        be joined to all n others. If an upper end holds with 95 % on both graphs, then by
        :math:`\varepsilon`-DP it is n above the smaller graph's count with probability
        :math:`0.95\,e^{-\varepsilon}` at least, though that graph may have no such node.
    """
    unit = float(grain)
    half = mechanism.interval(0.9) * unit
    tails = Tails.LOG_CONCAVE
    error = mechanism.error * unit
    return noisy(name, value, error=error, half=half, how=how, integral=False, tails=tails, open_ended=True)


def without_interval(column: AnswerColumn) -> AnswerColumn:
    """The numbers alone: of graphs with and without a node joined to all others no interval can hold both."""
    unknown = np.full(len(column.values), np.nan)
    return replace(column, low=unknown, high=unknown)


def difference(mechanism: Laplace | Gaussian, outside: float = _OUTSIDE) -> float:
    r"""A half-width for the difference of two independent noises, as a count has that is one of two sums: at 95 %.

    Of two Laplace noises of scale b, the difference exceeds t in size with probability
    :math:`(1 + t/2b)e^{-t/b}`: 5 % at 4.113 b. Discrete noise of the same scale is narrower, and the width is
    rounded up.

    >>> from fractions import Fraction
    >>> difference(Laplace(scale=Fraction(1000)))
    4114
    """
    if isinstance(mechanism, Gaussian):
        return math.ceil(-NormalDist().inv_cdf(outside / 2) * math.sqrt(2) * float(mechanism.sigma))
    scale = float(mechanism.scale)
    low, high = 0.0, 10 * scale
    for _ in range(60):
        middle = (low + high) / 2
        exceeded = (1 + middle / (2 * scale)) * math.exp(-middle / scale)
        low, high = (middle, high) if exceeded > outside else (low, middle)
    return math.ceil(high)


def widest_step(mechanism: Laplace | Gaussian) -> float:
    """Half the width of an interval of :func:`steps_column` where a vector rises; it is wider nowhere."""
    return (difference(mechanism, 0.02) + difference(mechanism, 0.04)) / 2


def steps_column(
    counts: Floats,
    cumulative: IntVector,
    mechanism: Laplace | Gaussian,
    how: str,
    *,
    total: float | None,
    integral: bool,
) -> AnswerColumn:
    """The counts with intervals of the numbers they were made from, widened where a count lies outside."""
    first = difference(mechanism, 0.02), difference(mechanism, 0.04)
    low, high = step_bounds(np.asarray(cumulative, dtype=np.float64), mechanism, total=total, first=first)
    low, high = np.minimum(low, counts), np.maximum(high, counts)
    return AnswerColumn("nodes", counts, np.full(len(counts), np.nan), low, high, integral=integral, how=how)


_HUBS, _EDGES, _NODES = Fraction(8, 100), Fraction(3, 100), Fraction(1, 100)
"""Which parts of epsilon rough numbers of hubs, edges and nodes take in the search for a largest degree."""
_LEAST = 4
"""No cap on rough numbers is smaller."""
_LARGEST = 10_000
"""No histogram is longer: its noise grows with its length, and so does what is shown."""
_SEARCHING, _CHOOSING = Fraction(1, 2), Fraction(1, 5)
"""Of which part of epsilon a cap on degrees takes its share, and which part chooses among caps on triangles."""


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """What follows from numbers that are found first; each step has a part of epsilon."""

    epsilon: Fraction
    changes: int
    error: float = math.nan
    interval: float = math.nan

    @property
    def event(self) -> events.Pure:
        """All steps together."""
        return events.Pure(self.epsilon)


@final
@dataclass(frozen=True, slots=True, eq=False)
class FoundCap(_Found):
    r"""The number of edges with a cap that is found privately.

    Guarantee:
        :math:`\varepsilon`-DP: the search takes its share of epsilon and the count the rest, with discrete Laplace
        noise whose scale is the cap over that rest. Given the cap, which is released, the count has the cap as its
        sensitivity; so the two compose.
    """

    name: str = "flow, cap found"
    how: str = "discrete Laplace noise, scaled to a cap on degrees that is found with noise first"
    rules: tuple[str, ...] = (cap_found("edges"),)

    @property
    def depends(self) -> str:
        """What is known about the error."""
        return f"{brief(self.changes / float(self.epsilon * (1 - CapRule().share)))} × the cap found"

    @property
    def foretold(self) -> tuple[str, ...]:
        """What the error depends on."""
        said = (
            "how far off it is depends on the cap that is found, which is about the largest degree, and on what is"
            " beyond it; with cap=… the noise is foretold"
        )
        return (said,)

    def run(self, data: Data, bits: Bits) -> Result:
        """Find the cap, count, add noise."""
        rule = CapRule(self.changes)
        cap, rest = rule.find(data.graph, self.epsilon, bits), self.epsilon * (1 - rule.share)
        mechanism = Laplace.calibrated(epsilon=rest, sensitivity=2 * cap * self.changes)
        value = mechanism.sample(CappedEdges(cap).exact(data.graph), bits) / 2
        how = f"discrete Laplace noise of scale {float(mechanism.scale) / 2:.6g}"
        column = at_least("edges", value, mechanism, Fraction(1, 2), how)
        return Result((column,), notes=(f"the cap that was found: {cap} edges at each node",))


@final
@dataclass(frozen=True, slots=True, eq=False)
class FoundMost(_Found):
    r"""The degree histogram with a largest degree that is found privately.

    With a rough average degree d of n nodes it is :math:`\sqrt{2d\sqrt n}`: between twice the average, below which
    the histogram is another one, and the root of n, above which its noise is as large as it is.

    Guarantee:
        :math:`\varepsilon`-DP: rough numbers of hubs (sensitivity 1), of edges with at most so many at a node, and of
        nodes (sensitivity 1) take their shares of epsilon, the cumulative histogram takes the rest. Only these noisy
        numbers decide, so what is found may be shown.
    """

    name: str = "cumulative, largest degree found"
    how: str = "discrete Laplace noise, scaled to a largest degree that is found with noise first"
    rules: tuple[str, ...] = (projected("a number that is found"),)

    @property
    def depends(self) -> str:
        """What is known about the error: that of a sum, which the fit makes smaller."""
        most = self.changes / float(self.epsilon * (1 - _HUBS - _EDGES - _NODES))
        return f"below {brief(most)} × (largest degree found + 1)"

    @property
    def foretold(self) -> tuple[str, ...]:
        """What the error depends on."""
        return ("how far off it is depends on the largest degree that is found; with at_most=… it is foretold",)

    def run(self, data: Data, bits: Bits) -> Result:
        """Find the largest degree, count, add noise."""
        epsilon, graph = self.epsilon, data.graph

        def rough(value: int, share: Fraction, sensitivity: int) -> int:
            noise = Laplace.calibrated(epsilon=epsilon * share, sensitivity=sensitivity * self.changes)
            return noise.sample(value, bits)

        spread = math.ceil(self.changes / (epsilon * _HUBS))
        hubs = max(_LEAST, rough(hirsch(graph), _HUBS, 1) + spread)
        ends = max(0, rough(capped_edges_twice(graph, hubs), _EDGES, 2 * hubs))
        nodes = max(1, rough(graph.nodes, _NODES, 1))
        average = ends / nodes
        most = min(max(1, math.ceil(math.sqrt(2 * average * math.sqrt(nodes)))), _LARGEST)
        statistic = ProjectedHistogram(most, cumulative=True)
        rest = epsilon * (1 - _HUBS - _EDGES - _NODES)
        mechanism = Laplace.calibrated(epsilon=rest, sensitivity=(most + 1) * self.changes)
        values = np.asarray(mechanism.sample(statistic.exact(data.graph), bits))
        how = f"discrete Laplace noise of scale {float(mechanism.scale):.6g}"
        histogram = plausible(values, mechanism, how, biased=True)
        note = f"the largest degree that was found: {most}; edges beyond it at a node are left out"
        return Result(histogram.columns, keys=histogram.keys, processing=histogram.processing, notes=(note,))


@final
@dataclass(frozen=True, slots=True, eq=False)
class FoundTriangles(_Found):
    r"""The number of triangles with a cap that is found privately.

    A cap on degrees, d, is found first. Caps on triangles then compete: as many as a node of degree d can be in,
    :math:`\binom d2`, a quarter of that, and so on down to d. A cap D loses :math:`f_\infty - f_D` and costs noise of
    :math:`\Delta_D/\varepsilon`, of which :math:`\Delta_D/\varepsilon - f_D` is to be small.

    Guarantee:
        :math:`\varepsilon`-DP. Between neighbours that score moves by at most :math:`\Delta_D`, because only
        :math:`f_D` does; so
        :math:`\max_j \frac{(q_i + t\Delta_i) - (q_j + t\Delta_j)}{\Delta_i + \Delta_j}` moves by at most 1, for any
        fixed t, and one of the caps is chosen by an exponential mechanism on it. Search, choice and count take parts of
        epsilon that add up to it, and what each does depends on released numbers only.

    Error:
        With :math:`t = 2\ln(10k)/\varepsilon_1`, the score of the chosen one of k caps exceeds that of any cap D by
        more than :math:`2t\Delta_D` once in ten times at most. Not unbiased: triangles beyond the cap are lost.
    Reference:
        Raskhodnikova, Smith (2016), Lipschitz extensions for node-private graph statistics and the generalized
        exponential mechanism, Section 4.
    """

    foretold: tuple[str, ...] = ()
    name: str = "program, cap found"
    how: str = "discrete Laplace noise, scaled to a cap on triangles that is found with noise first"
    rules: tuple[str, ...] = (cap_found("triangles"),)

    @property
    def depends(self) -> str:
        """What is known about the error."""
        rest = float(self.epsilon * (1 - _CHOOSING - _SEARCHING * CapRule().share))
        return f"{brief(self.changes / rest)} × the cap found"

    def run(self, data: Data, bits: Bits) -> Result:
        """Find a cap on degrees, choose one on triangles, count, add noise."""
        graph, searching = data.graph, self.epsilon * _SEARCHING
        rule = CapRule(self.changes)
        degree, rest = rule.find(graph, searching, bits), self.epsilon * (1 - _CHOOSING) - searching * rule.share
        caps = [CappedTriangles(cap) for cap in _quarters(degree)]
        values = [int(statistic.exact(graph)[0]) for statistic in caps]
        sensitivities = [statistic.sensitivity(Public(node(), None)).l1 * self.changes for statistic in caps]
        choice = Exponential(epsilon=self.epsilon * _CHOOSING, candidates=len(caps), sensitivity=1)
        chosen = choice.sample(_scores(values, sensitivities, rest, self.epsilon * _CHOOSING), bits)
        mechanism = Laplace.calibrated(epsilon=rest, sensitivity=sensitivities[chosen])
        value = mechanism.sample(values[chosen], bits) / GRAIN
        how = f"discrete Laplace noise of scale {float(mechanism.scale) / GRAIN:.6g}"
        column = at_least("triangles", [value], mechanism, Fraction(1, GRAIN), how)
        return Result((column,), notes=(f"the cap that was found: {caps[chosen].cap} triangles at each node",))


def _quarters(degree: int) -> list[int]:
    """Caps on triangles from what a node of this degree can be in down to its degree; two at least."""
    caps = [min(math.comb(max(degree, 4), 2), LARGEST)]
    while caps[-1] // 4 >= degree or len(caps) < 2:
        caps.append(max(1, caps[-1] // 4))
    return caps


def _scores(values: Sequence[int], sensitivities: Sequence[int], rest: Fraction, choosing: Fraction) -> list[Fraction]:
    """How good each cap is beside the others; one node moves each of them by at most one."""
    margin = Fraction(2 * math.log(10 * len(values))) / choosing
    costs = [(1 / rest + margin) * moved - value for value, moved in zip(values, sensitivities, strict=True)]
    return [
        -max((one - other) / (mine + theirs) for other, theirs in zip(costs, sensitivities, strict=True))
        for one, mine in zip(costs, sensitivities, strict=True)
    ]


def plausible(values: IntVector, mechanism: Laplace | Gaussian, how: str, *, biased: bool) -> Result:
    """The most plausible counts; the noisy number of nodes is the end of the chain. No interval if they are biased."""
    gaussian = isinstance(mechanism, Gaussian)
    width = float(mechanism.sigma if isinstance(mechanism, Gaussian) else mechanism.scale)
    total = max(0, int(values[-1]))
    counts = plausible_counts(values[:-1], total, scale=width, gaussian=gaussian)
    column = steps_column(counts, values, mechanism, how, total=None, integral=True)
    done = ("the most plausible count of each degree was taken, given all noisy numbers of nodes up to each degree",)
    column = without_interval(column) if biased else column
    return Result((column,), keys={"degree": range(len(counts))}, processing=done)


_EFFORT = (
    "it takes long: a linear program is solved after the charge, and how large it is stays private; with 1.6 million"
    " triangles it took 15 s at a cap of 5000, and two minutes at a cap of 200"
)

_DEPENDS = "how far off it is depends on the cap that is found; with cap=… it is foretold"


def node_edges(public: Public, budget: Budget, cap: int | None) -> Sequence[Method]:
    """The number of edges, of which no node has more than a cap: given, declared as largest degree, or found."""
    _plain(public, "edges")
    most = cap or _declared(public)
    if most is None:
        return [FoundCap(Fraction(budget.epsilon or 0), public.changes)]
    known = _holds(most, _declared(public))
    rules = (capped(most, "edges", declared=known),)
    finish, grain = _divided("edges", known=known), Fraction(1, 2)
    return noises(CappedEdges(most), public, budget, finish, prefix="flow, ", rules=rules, grain=grain)


def node_triangles(public: Public, budget: Budget, cap: int | None) -> Sequence[Method]:
    """The number of triangles, of which no node has more than a cap: given, by the declared degree, or found."""
    most = node_cap(public, cap)
    if most is None:
        return [FoundTriangles(Fraction(budget.epsilon or 0), public.changes, foretold=(_DEPENDS, _EFFORT))]
    degree = _declared(public)
    known = _holds(most, None if degree is None else math.comb(degree, 2))
    rules = (capped(most, "triangles", declared=known),)
    finish, grain = _divided("triangles", known=known), Fraction(1, GRAIN)
    statistic, prefix = CappedTriangles(most), "program, "
    return noises(statistic, public, budget, finish, prefix=prefix, rules=rules, grain=grain, foretold=(_EFFORT,))


def node_cap(public: Public, cap: int | None) -> int | None:
    """How many triangles count at a node: as given, or as the declared largest degree allows; None: to be found."""
    _plain(public, "triangles")
    degree = _declared(public)
    return cap or (None if degree is None else max(1, math.comb(degree, 2)))


def node_histogram(public: Public, budget: Budget, at_most: int | None) -> Sequence[Method]:
    """How many nodes have each degree, edges beyond ``at_most`` at a node left out."""
    _plain(public, "degrees")
    public.need_all_nodes()
    most = at_most or _declared(public)
    if most is None:
        return [FoundMost(Fraction(budget.epsilon or 0), public.changes)]
    known = _holds(most, _declared(public))
    rules = (projected(most, declared=known),)
    histogram = noises(
        ProjectedHistogram(most),
        public,
        budget,
        by_degree if known else _by_degree_alone,
        prefix="histogram, ",
        rules=rules,
        width=None if known else _no_width,
    )
    spread = min(1.0, 4 / math.sqrt(most))  # as for edges: about 4√θ degrees are noisy after the fit
    return [
        *histogram,
        *noises(
            ProjectedHistogram(most, cumulative=True),
            public,
            budget,
            _plausible if known else _plausible_alone,
            prefix="cumulative, ",
            rules=rules,
            expected=lambda mechanism: mechanism.error * spread,
            width=widest_step if known else _no_width,
        ),
    ]


def _holds(cap: int, declared: int | None) -> bool:
    """Whether a cap takes nothing away, by what is declared of the graph."""
    return declared is not None and cap >= declared


def _divided(title: str, *, known: bool) -> Finish:
    def finish(method: VectorNoise, values: IntVector, _data: Data) -> Result:
        parts = method.grain.denominator
        column = (
            noisy(
                title,
                values / parts,
                error=method.error,
                half=method.interval,
                how=method.how,
                integral=False,
                tails=Tails.LOG_CONCAVE,
            )
            if known
            else at_least(title, values / parts, method.mechanism, method.grain, method.how)
        )
        return Result((column,), processing=(f"the noisy number was divided by {parts}",))

    return finish


def _plausible(method: VectorNoise, values: IntVector, _data: Data) -> Result:
    return plausible(values, method.mechanism, method.how, biased=False)


def _plausible_alone(method: VectorNoise, values: IntVector, _data: Data) -> Result:
    return plausible(values, method.mechanism, method.how, biased=True)


def _by_degree_alone(method: VectorNoise, values: IntVector, data: Data) -> Result:
    made = by_degree(method, values, data)
    return replace(made, columns=tuple(map(without_interval, made.columns)))


def _no_width(_mechanism: Laplace | Gaussian) -> float:
    return math.nan


def _declared(public: Public) -> int | None:
    return None if public.unit.bound is None else int(public.unit.bound)


def _plain(public: Public, what: str) -> None:
    if public.directed:
        raise InvalidParameterError(
            f"There are no {what} of directed graphs under node privacy here.",
            fix="open the graph without directed=True.",
        )

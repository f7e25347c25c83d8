"""Edges, triangles and degrees where one node with all its edges is protected."""

import math
from collections.abc import Sequence
from fractions import Fraction

from defocus.answers.columns import noisy
from defocus.errors import InvalidParameterError
from defocus.graphs.asking.found import FoundCap, FoundMost, FoundTriangles, plausible
from defocus.graphs.asking.histograms import by_degree, difference
from defocus.graphs.data import Data
from defocus.graphs.node import GRAIN
from defocus.graphs.noising import Finish, VectorNoise, noises
from defocus.graphs.public import Public
from defocus.graphs.questions import Method, Result
from defocus.graphs.statistic import IntVector
from defocus.graphs.statistics.capped import CappedEdges, CappedTriangles
from defocus.graphs.statistics.projected import ProjectedHistogram
from defocus.graphs.wording import capped, projected
from defocus.privacy.budgets import Budget

__all__ = ["node_cap", "node_edges", "node_histogram", "node_triangles"]

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
    rules = (capped(most, "edges"),)
    finish, grain = _divided("edges"), Fraction(1, 2)
    return noises(CappedEdges(most), public, budget, finish, prefix="flow, ", rules=rules, grain=grain)


def node_triangles(public: Public, budget: Budget, cap: int | None) -> Sequence[Method]:
    """The number of triangles, of which no node has more than a cap: given, by the declared degree, or found."""
    most = node_cap(public, cap)
    if most is None:
        return [FoundTriangles(Fraction(budget.epsilon or 0), public.changes, foretold=(_DEPENDS, _EFFORT))]
    rules = (capped(most, "triangles"),)
    finish, grain = _divided("triangles"), Fraction(1, GRAIN)
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
    rules = (projected(most),)
    histogram = noises(ProjectedHistogram(most), public, budget, by_degree, prefix="histogram, ", rules=rules)
    spread = min(1.0, 4 / math.sqrt(most))  # as for edges: about 4√θ degrees are noisy after the fit
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
            width=difference,
        ),
    ]


def _divided(title: str) -> Finish:
    def finish(method: VectorNoise, values: IntVector, _data: Data) -> Result:
        parts = method.grain.denominator
        error, half = method.error, method.interval
        column = noisy(title, values / parts, error=error, half=half, how=method.how, integral=False)
        return Result((column,), processing=(f"the noisy number was divided by {parts}",))

    return finish


def _plausible(method: VectorNoise, values: IntVector, _data: Data) -> Result:
    return plausible(values, method.mechanism, method.how)


def _declared(public: Public) -> int | None:
    return None if public.unit.bound is None else int(public.unit.bound)


def _plain(public: Public, what: str) -> None:
    if public.directed:
        raise InvalidParameterError(
            f"There are no {what} of directed graphs under node privacy here.",
            fix="open the graph with directed=False.",
        )

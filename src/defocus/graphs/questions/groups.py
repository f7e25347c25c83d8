"""Edges inside and between public groups of nodes, and any sums of them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from defocus.answers.columns import brief, noisy
from defocus.errors import InvalidParameterError
from defocus.graphs.data import Data
from defocus.graphs.noise import ByStrategy, VectorNoise, noises
from defocus.graphs.public import IntVector, Public
from defocus.graphs.question import Method, Result
from defocus.graphs.questions.communities import edges_only, spelt
from defocus.graphs.statistics import GroupEdges, registered
from defocus.noise import Bits
from defocus.privacy.budgets import Budget
from defocus.workloads import Plan, explicit, plan

__all__ = ["AskGroups", "Planned"]

_MOST_GROUPS = 90
"""Of more groups there are more than 4096 pairs, for which no strategy is searched."""


@final
@dataclass(frozen=True, slots=True)
class AskGroups:
    """How many edges there are inside each of some public groups and between any two; or sums of these.

    ``queries`` has pairs of groups by the name of a question: ``{"boys and girls": [("boys", "girls")]}``.
    """

    groups: Any
    queries: Any = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", spelt(self.groups))
        GroupEdges(self.groups)
        object.__setattr__(self, "queries", tuple(_pairs(self.queries)))

    @property
    def words(self) -> str:
        """What is asked."""
        many = len(GroupEdges(self.groups).names)
        return f"edges inside and between {many} groups" + (f", {len(self.queries)} sums" if self.queries else "")

    def check(self, public: Public) -> None:
        """Refuse graphs of which it cannot be asked."""
        edges_only(public)
        GroupEdges(self.groups).sensitivity(public)

    def methods(self, public: Public, budget: Budget) -> Sequence[Method]:
        """Noise on every pair of groups; for sums of them, the best strategy that a plan finds."""
        self.check(public)
        statistic = GroupEdges(self.groups)
        if not self.queries:
            return noises(statistic, public, budget, _by_pair)
        registered(statistic)
        if len(statistic.names) > _MOST_GROUPS:
            raise InvalidParameterError(
                f"Sums are planned for at most {_MOST_GROUPS} groups, and there are {len(statistic.names)}.",
                fix="merge groups that no question tells apart; or leave queries out, and add up what is released.",
            )
        sums = explicit(self._matrix(statistic))
        found = plan(sums, epsilon=budget.epsilon, delta=budget.delta or None, unit=public.unit)
        return [Planned(statistic, found, tuple(name for name, _ in self.queries))]

    def _matrix(self, statistic: GroupEdges) -> IntVector:
        """One row for each question, one column for each pair of groups."""
        places = {pair: place for place, pair in enumerate(statistic.pairs)}
        rows = np.zeros((len(self.queries), len(places)), np.int64)
        for row, (_, pairs) in zip(rows, self.queries, strict=True):
            for pair in pairs:
                place = places.get(pair, places.get(pair[::-1]))
                if place is None:
                    raise InvalidParameterError(
                        f"There is no pair of groups {pair!r:.80}.",
                        fix=f"name two of the groups {', '.join(map(repr, statistic.names[:5]))}, ….",
                    )
                row[place] += 1
        return rows


@final
@dataclass(frozen=True, slots=True, eq=False)
class Planned(ByStrategy):
    """Sums of counts by a strategy of :mod:`defocus.workloads`, whose noise is for one edge in one pair of groups.

    Guarantee:
        That of the plan: one edge is in one cell, so one unit holds as many records as it has edges.
    """

    statistic: GroupEdges
    plan: Plan
    names: tuple[str, ...]
    rules: tuple[str, ...] = ("the groups are public; groups that were found in this graph are not",)

    @property
    def name(self) -> str:
        """Which noise."""
        return f"workload, {self.plan.noise}"

    @property
    def how(self) -> str:
        """The strategy."""
        return f"strategy {self.plan.measurement.name}, {self.plan.noise} noise"

    @property
    def foretold(self) -> tuple[str, ...]:
        """How it compares with noise on every sum."""
        direct = math.sqrt(self.plan.direct_error / self.plan.error.total)
        return (f"noise on every sum by itself would err {brief(direct)} times as much",)

    def run(self, data: Data, bits: Bits) -> Result:
        """Measure, then reconstruct the sums."""
        rows = self.plan.measurement.sample(self.statistic.exact(data.graph), bits)
        values = self.plan.measurement.strategy.answers(self.plan.workload, rows)
        errors = np.sqrt(self.plan.variances()) * math.sqrt(2 / math.pi)
        half = self.plan.intervals(0.95)
        column = noisy("edges", values, error=errors, half=half, how=self.how, integral=False)
        done = ("least squares: unbiased, consistent",)
        return Result((column,), keys={"query": list(self.names)}, processing=done)


def _by_pair(method: VectorNoise, values: IntVector, _data: Data) -> Result:
    column = noisy("edges", values, error=method.mechanism.error, half=method.interval, how=method.how)
    pairs = method.statistic.pairs if isinstance(method.statistic, GroupEdges) else ()
    keys = {name: [pair[side] for pair in pairs] for side, name in enumerate(("group", "other"))}
    return Result((column,), keys=keys)


def _pairs(queries: Any) -> Iterable[tuple[str, tuple[tuple[Any, Any], ...]]]:
    """Questions as names with pairs of groups."""
    listed = queries.items() if isinstance(queries, Mapping) else queries
    for name, pairs in listed:
        found = tuple(tuple(pair) if isinstance(pair, list | tuple) else (pair,) for pair in pairs)
        if not found or any(len(pair) != 2 for pair in found):
            raise InvalidParameterError(
                f"The question {name!r:.60} does not list pairs of groups.",
                fix='pass queries={"name": [(group, other group), …]}; a group with itself is what is inside.',
            )
        yield str(name), tuple((pair[0], pair[1]) for pair in found)

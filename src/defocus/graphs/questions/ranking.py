"""Ranks of nodes: PageRank, and the nodes of largest degree."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from defocus.answers.columns import AnswerColumn, noisy
from defocus.errors import InvalidParameterError, Number, count
from defocus.graphs.data import Data
from defocus.graphs.noise import Finish, VectorNoise, noises
from defocus.graphs.public import IntVector, Public
from defocus.graphs.question import Method, Result
from defocus.graphs.statistics import Degrees
from defocus.graphs.statistics.spectrum import PageRank
from defocus.mechanisms import SubsetChoice
from defocus.noise import Bits
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.privacy.units import Adjacency

__all__ = ["AskPageRank", "AskTop", "Chosen"]


@final
@dataclass(frozen=True, slots=True)
class AskPageRank:
    """The PageRank of every node; with ``top``, of those that come out highest."""

    damping: Number = 0.85
    top: int | None = None

    def __post_init__(self) -> None:
        PageRank(self.damping)
        if self.top is not None:
            count("top", self.top)

    @property
    def words(self) -> str:
        """What is asked."""
        several = "every node" if self.top is None else f"the {self.top} nodes that come out highest"
        return f"PageRank of {several}, damping {float(self.damping):.4g}"

    def check(self, public: Public) -> None:
        """Refuse graphs of which it cannot be asked."""
        PageRank(self.damping).sensitivity(public)

    def methods(self, public: Public, budget: Budget) -> Sequence[Method]:
        """Noise for the proven L1 bound."""
        statistic = PageRank(self.damping)
        if self.top is not None and self.top > public.n:
            raise InvalidParameterError(f"There are only {public.n} nodes.", fix=f"pass top <= {public.n}.")
        rules = ("at a node without edges the walk stays where it is",)
        grain = statistic.grain(public.n)
        return noises(statistic, public, budget, _ranks(self.top), rules=rules, grain=grain)


def _ranks(top: int | None) -> Finish:
    def finish(method: VectorNoise, values: IntVector, data: Data) -> Result:
        ranks = values * float(method.grain)
        column = noisy("pagerank", ranks, error=method.error, half=method.interval, how=method.how, integral=False)
        if top is None:
            return Result((column,), keys={"node": data.labels})
        rows = (-values).argsort(kind="stable")[:top]
        done = ("only the highest noisy ranks are shown: being picked makes them look higher than they are",)
        return Result((column.taken(rows),), keys={"node": [data.labels[i] for i in rows]}, processing=done)

    return finish


@final
@dataclass(frozen=True, slots=True)
class AskTop:
    """The ``k`` nodes of largest degree."""

    k: int
    in_sql: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", count("k", self.k))

    @property
    def words(self) -> str:
        """What is asked."""
        return f"the {self.k} nodes of largest degree"

    def check(self, public: Public) -> None:
        """Refuse graphs of which it cannot be asked."""
        if public.directed:
            raise InvalidParameterError("There is no such ranking of directed graphs here.", fix="ask degrees().")
        if self.k > public.n:
            raise InvalidParameterError(f"There are only {public.n} nodes.", fix=f"pass k <= {public.n}.")
        Degrees().sensitivity(public)

    def methods(self, public: Public, budget: Budget) -> Sequence[Method]:
        """Degrees with noise, of which the largest are shown; or one choice among all sets of k nodes."""
        self.check(public)
        named = noises(Degrees(), public, budget, _largest(self.k), prefix="noisy degrees, ")
        epsilon: Any = budget.epsilon
        replaced = public.unit.adjacency is Adjacency.REPLACE
        choice = SubsetChoice(
            epsilon=epsilon,
            candidates=public.n,
            size=self.k,
            touched=4 if replaced else 2,  # the edges of a person move each degree by at most as many as they are
            sensitivity=public.unit.per_person or 1,
            monotone=not replaced,
        )
        return [*named, Chosen(choice)]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """One choice among all sets of k nodes, by the exponential mechanism on the sum of their degrees."""

    mechanism: SubsetChoice
    name: str = "subset"
    rules: tuple[str, ...] = ("which nodes is released, and no degree",)

    @property
    def event(self) -> Event:
        """What one choice owes."""
        return self.mechanism.event

    @property
    def error(self) -> float:
        """The expected loss of degree for each chosen node."""
        return self.mechanism.error / self.mechanism.size

    @property
    def interval(self) -> float:
        """The loss of degree for each chosen node that is exceeded in 5 % of cases at most."""
        return self.mechanism.interval(0.95) / self.mechanism.size

    @property
    def how(self) -> str:
        """The mechanism, in words."""
        return f"exponential mechanism over all sets of {self.mechanism.size} nodes"

    def run(self, data: Data, bits: Bits) -> Result:
        """Choose."""
        chosen = self.mechanism.sample(data.graph.degrees, bits).tolist()
        unknown = np.full(len(chosen), np.nan)
        column = AnswerColumn("chosen", np.ones(len(chosen)), unknown, unknown, unknown, integral=True, how=self.how)
        return Result((column,), keys={"node": [data.labels[i] for i in chosen]})


def _largest(k: int) -> Finish:
    def finish(method: VectorNoise, values: IntVector, data: Data) -> Result:
        rows = np.argsort(-values, kind="stable")[:k]
        error, half = method.mechanism.error, method.interval
        picked = values[rows].astype(np.float64)
        column = noisy("degree", picked, error=error, half=half, how=method.how)
        done = ("only the largest noisy degrees are shown: being picked makes them look larger than they are",)
        return Result((column,), keys={"node": [data.labels[i] for i in rows]}, processing=done)

    return finish

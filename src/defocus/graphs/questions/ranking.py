"""Ranks of nodes: PageRank, and the nodes of largest degree."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np

from defocus.answers import Effect, Rule
from defocus.answers.columns import AnswerColumn, brief, noisy
from defocus.errors import InvalidParameterError, Number, count
from defocus.graphs.data import Data
from defocus.graphs.noise import Finish, VectorNoise, noises
from defocus.graphs.public import IntVector, Public
from defocus.graphs.question import Method, Result
from defocus.graphs.statistics import Degrees
from defocus.graphs.statistics.spectrum import PageRank
from defocus.mechanisms import Laplace, SubsetChoice
from defocus.noise import Bits
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.privacy.units import Adjacency

__all__ = ["AskPageRank", "AskTop", "Chosen"]


_MISSED, _DEGREE = 0.4, 10
"""What degrees are taken to miss of a rank, as a part of the average one, and the average degree, for foretelling.

On three real networks of 4 000 to 34 000 nodes they miss 0.26 to 0.59; on small ones and on random graphs 0.01 to 0.2.
"""
_STAYS = "at a node without edges the walk stays where it is"
_BY_DEGREES = Rule(
    "ranks are those of a graph whose nodes are joined by their degrees alone; whom a node is joined to is left out",
    Effect.CUT,
)
_ENTRYWISE = (
    "noise for the bound damping/(1 - damping) on one entry, which alone promises nothing about several: that all of"
    " them are private rests on the L1 bound, for which less noise is enough"
)


@final
@dataclass(frozen=True, slots=True)
class AskPageRank:
    r"""The PageRank of every node; with ``top``, of those that come out highest.

    Methods:
        *laplace*, *gaussian*: noise on the ranks, for the L1 bound that is proven in :class:`.PageRank`. It is
        :math:`\frac{2\alpha}{1-\alpha}` times the average rank :math:`1/n` at :math:`\varepsilon = 1`, whatever n is.

        *degrees, …*: noisy degrees, and the ranks :math:`\frac{1-\alpha}{n} + \alpha\frac{d_w}{\sum d}` that
        they have on average in graphs whose nodes are joined by degree alone. Post-processing of degrees, which move
        by 2; biased where neighbours are alike.

        *entrywise, laplace*: noise for :math:`\frac{\alpha}{1-\alpha}`, a bound on how far *one* entry moves. By
        itself it promises nothing about the vector, of which the L1 norm counts; that it holds for the vector too is
        due to the L1 bound, which is smaller. From :math:`\alpha = \frac12` on it is wider than any rank.
    Reference:
        Fortunato, Boguñá, Flammini, Menczer (2008), Approximating PageRank from in-degree.
    """

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
        """Noise for the proven L1 bound, ranks by noisy degrees, or noise for the bound on one entry."""
        statistic = PageRank(self.damping)
        if self.top is not None and self.top > public.n:
            raise InvalidParameterError(f"There are only {public.n} nodes.", fix=f"pass top <= {public.n}.")
        n, grain, alpha = public.n, statistic.grain(public.n), float(self.damping)
        guess = (
            f"the error rests on guesses: degrees miss {_MISSED:.1g} of the average rank, and are {_DEGREE} on"
            " average; the noise of the answer will rest on the released degrees"
        )
        direct = noises(statistic, public, budget, _ranks(self.top), rules=(_STAYS,), grain=grain)
        degrees = noises(
            Degrees(),
            public,
            budget,
            _from_degrees(self.top, alpha),
            prefix="degrees, ",
            rules=(_BY_DEGREES,),
            expected=lambda mechanism: (alpha * mechanism.error / _DEGREE + 2 * min(alpha, 0.5) * _MISSED) / n,
            width=lambda mechanism: alpha * mechanism.interval(0.95) / (_DEGREE * n),
            foretold=(guess,),
        )
        return [_beside_the_average(method, n) for method in (*direct, *degrees, self._entrywise(public, budget))]

    def _entrywise(self, public: Public, budget: Budget) -> VectorNoise:
        """Noise for the bound on one entry; never less than the L1 bound asks for."""
        statistic, alpha = PageRank(self.damping), Fraction(self.damping)
        grain = statistic.grain(public.n)
        one = math.ceil(public.changes * alpha / (1 - alpha) / grain)
        most = max(one, statistic.sensitivity(public).l1)
        mechanism = Laplace.calibrated(Budget(budget.epsilon), sensitivity=most)
        finish, rules = _ranks(self.top), (_STAYS, _ENTRYWISE)
        return VectorNoise("entrywise, laplace", statistic, mechanism, finish, rules=rules, grain=grain)


def _beside_the_average(method: Method, nodes: int) -> Method:
    """The method, which says how large its error is beside the average rank."""
    if not isinstance(method, VectorNoise):
        return method
    times = method.error * nodes
    said = f"the expected error is {brief(times)} times the average rank, 1/{nodes}"
    if times >= 1:
        said += ": only ranks far above it stand out of the noise; a larger epsilon or a smaller damping helps"
    return replace(method, foretold=(said, *method.foretold))


def _from_degrees(top: int | None, damping: float) -> Finish:
    def finish(method: VectorNoise, values: IntVector, data: Data) -> Result:
        ends = np.maximum(values, 1).astype(np.float64)
        share = damping / float(ends.sum())
        ranks, half = (1 - damping) / len(ends) + share * ends, share * method.mechanism.interval(0.95)
        column = noisy("pagerank", ranks, error=math.nan, half=half, how=method.how, integral=False)
        done = "noisy degrees below one were raised to one, and divided by their sum"
        return _shown(column, top, data, done)

    return finish


def _ranks(top: int | None) -> Finish:
    def finish(method: VectorNoise, values: IntVector, data: Data) -> Result:
        ranks = values * float(method.grain)
        column = noisy("pagerank", ranks, error=method.error, half=method.interval, how=method.how, integral=False)
        return _shown(column, top, data)

    return finish


def _shown(column: AnswerColumn, top: int | None, data: Data, *done: str) -> Result:
    """All ranks, or the highest."""
    if top is None:
        return Result((column,), keys={"node": data.labels}, processing=done)
    rows = (-column.values).argsort(kind="stable")[:top]
    picked = "only the highest noisy ranks are shown: being picked makes them look higher than they are"
    return Result((column.taken(rows),), keys={"node": [data.labels[i] for i in rows]}, processing=(picked, *done))


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

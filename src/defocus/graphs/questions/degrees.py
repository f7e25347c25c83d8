"""Degrees: of every node, in order of size, and how many nodes have each."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from defocus.answers.columns import AnswerColumn, Tails, noisy
from defocus.errors import InvalidParameterError
from defocus.graphs.data import Data
from defocus.graphs.inference import plausible_counts, rising
from defocus.graphs.inference.bands import level_bounds
from defocus.graphs.noise import VectorNoise, noises
from defocus.graphs.public import IntVector, Public
from defocus.graphs.question import Method, Result
from defocus.graphs.questions.node_counts import by_degree, node_histogram, steps_column, widest_step
from defocus.graphs.statistics import ArcDegrees, ArcHistogram, Degrees, Histogram
from defocus.graphs.statistics.degrees import checked_side
from defocus.mechanisms import Gaussian
from defocus.privacy.budgets import Budget

__all__ = ["AskDegrees", "AskHistogram"]

_FITTED = "the nearest vector that never falls was taken (isotonic regression): biased a little, far less noisy"

_PLAUSIBLE = (
    "the most plausible count of each degree was taken, given all noisy numbers of nodes up to each degree: biased a"
    " little, far less noisy; the counts need not add up to the number of nodes"
)


@final
@dataclass(frozen=True, slots=True)
class AskDegrees:
    """The degree of every node, or all degrees in order of size without saying whose they are.

    ``side`` is "out" or "in" for directed graphs.
    """

    ranked: bool = False
    side: str | None = None
    in_sql: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.side is not None:
            checked_side(self.side)

    @property
    def words(self) -> str:
        """What is asked."""
        degree = "degree" if self.side is None else f"{self.side}-degree"
        return f"{degree}s in order of size" if self.ranked else f"{degree} of every node"

    def check(self, public: Public) -> None:
        """Refuse graphs of which it cannot be asked."""
        side = _side(self.side, public)
        (Degrees() if side is None else ArcDegrees(side)).sensitivity(public)

    def methods(self, public: Public, budget: Budget) -> Sequence[Method]:
        """Noise for the two ends of an edge; in order of size, noise is taken out again."""
        side = _side(self.side, public)
        statistic = Degrees(ranked=self.ranked) if side is None else ArcDegrees(side, ranked=self.ranked)
        if not self.ranked:
            return noises(statistic, public, budget, _by_node)
        # Equal degrees are averaged over: with about 4√n different ones, √n/4 nodes share each.
        shared = max(1.0, math.sqrt(public.n) / 4)
        return noises(
            statistic, public, budget, _in_order, expected=lambda mechanism: mechanism.error / math.sqrt(shared)
        )


@final
@dataclass(frozen=True, slots=True)
class AskHistogram:
    """How many nodes have each degree. Degrees of ``at_most`` and more are counted together."""

    at_most: int | None = None
    side: str | None = None
    in_sql: ClassVar[bool] = True

    def __post_init__(self) -> None:
        Histogram(self.at_most)
        if self.side is not None:
            checked_side(self.side)

    @property
    def words(self) -> str:
        """What is asked."""
        degree = "degree" if self.side is None else f"{self.side}-degree"
        return f"{degree} histogram" + ("" if self.at_most is None else f" up to {self.at_most}")

    def check(self, public: Public) -> None:
        """Refuse graphs of which it cannot be asked."""
        if public.unit.kind == "node":
            public.need_all_nodes()
            return
        side = _side(self.side, public)
        (Histogram(self.at_most) if side is None else ArcHistogram(side, self.at_most)).sensitivity(public)

    def methods(self, public: Public, budget: Budget) -> Sequence[Method]:
        """Noise on the histogram, or on how many nodes have at most each degree, which moves half as far."""
        if public.unit.kind == "node":
            return node_histogram(public, budget, self.at_most)
        side = _side(self.side, public)
        plain, cumulative = (
            Histogram(self.at_most, cumulative=c) if side is None else ArcHistogram(side, self.at_most, cumulative=c)
            for c in (False, True)
        )
        last = plain.last(public)
        rules = [] if last == public.n - 1 else [f"degree {last} stands for {last} and more"]
        # After isotonic regression only degrees that some node has are noisy: about 4√n of them, unless there are less.
        spread = min(1.0, 4 * math.sqrt(public.n) / last)
        return [
            *noises(plain, public, budget, by_degree, prefix="histogram, ", rules=rules),
            *noises(
                cumulative,
                public,
                budget,
                _fitted(public.n),
                prefix="cumulative, ",
                expected=lambda mechanism: mechanism.error * spread,
                width=widest_step,
                rules=rules,
            ),
        ]


def _by_node(method: VectorNoise, values: IntVector, data: Data) -> Result:
    column = noisy(
        "degree", values, error=method.mechanism.error, half=method.interval, how=method.how, tails=Tails.LOG_CONCAVE
    )
    return Result((column,), keys={"node": data.labels})


def _in_order(method: VectorNoise, values: IntVector, _data: Data) -> Result:
    """Largest first, with intervals that know the order."""
    fitted = np.clip(rising(values), 0, len(values) - 1)[::-1]
    low, high = (np.maximum(end, 0)[::-1] for end in level_bounds(values.astype(np.float64), method.mechanism))
    low, high = np.minimum(low, fitted), np.maximum(high, fitted)
    column = AnswerColumn("degree", fitted, np.full(len(fitted), np.nan), low, high, integral=False, how=method.how)
    return Result((column,), keys={"rank": range(1, len(values) + 1)}, processing=(_FITTED,))


def _fitted(nodes: int) -> Callable[[VectorNoise, IntVector, Data], Result]:
    """From noisy cumulative counts to a histogram."""

    def finish(method: VectorNoise, values: IntVector, _data: Data) -> Result:
        gaussian = isinstance(method.mechanism, Gaussian)
        width = method.mechanism.sigma if isinstance(method.mechanism, Gaussian) else method.mechanism.scale
        counts = plausible_counts(values, nodes, scale=float(width), gaussian=gaussian)
        whole = bool((counts == np.round(counts)).all())
        column = steps_column(counts, values, method.mechanism, method.how, total=nodes, integral=whole)
        done = (_PLAUSIBLE,)
        return Result((column,), keys={"degree": range(len(counts))}, processing=done)

    return finish


def _side(side: str | None, public: Public) -> str | None:
    """Which arcs count: both ends where edges have no direction, those that go out by default."""
    if public.directed:
        return side or "out"
    if side is not None:
        raise InvalidParameterError(
            "The edges of this graph have no direction, so no side of them can be chosen.",
            fix="leave side= out, or open the graph with directed=True.",
        )
    return None

"""Communities and clustering."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np

from defocus.answers.columns import AnswerColumn, brief
from defocus.errors import InvalidParameterError, Number
from defocus.graphs.data import Data
from defocus.graphs.noise import MeasuredRamp
from defocus.graphs.public import Public
from defocus.graphs.question import Method, Result
from defocus.graphs.questions.counts import AskStars, AskTriangles
from defocus.graphs.questions.joint import Several, either_way, several
from defocus.graphs.statistics.blocks import Blocks
from defocus.graphs.statistics.spectrum import SENSITIVITY, checked_size, gaps, singular_values
from defocus.mechanisms import Exponential, Laplace
from defocus.noise import Bits
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event, compose

__all__ = ["AskClustering", "AskCommunities", "AskLabellings", "ByLikelihood", "BySpectrum", "edges_only", "spelt"]


_SHARE = Fraction(1, 10)
"""Which part of epsilon the average degree takes."""
_MANY = 2000
"""From so many nodes on, the whole spectrum takes more than some seconds."""
_EDGE = 2.8
"""Of a random graph of average degree d, no singular value but the first is far above 2√d; this is a margin above."""


@final
@dataclass(frozen=True, slots=True)
class AskCommunities:
    """How many communities stand out, from 1 to ``at_most``."""

    at_most: int = 10

    @property
    def words(self) -> str:
        """What is asked."""
        return f"number of communities, at most {self.at_most}"

    def check(self, public: Public) -> None:
        """Refuse graphs of which it cannot be asked."""
        edges_only(public)
        checked_size(public.n, self.at_most)

    def methods(self, public: Public, budget: Budget) -> Sequence[Method]:
        """One choice by the spectrum."""
        changes = edges_only(public)
        checked_size(public.n, self.at_most)
        epsilon = Fraction(budget.epsilon or 0)
        return [
            BySpectrum(
                Laplace.calibrated(epsilon=epsilon * _SHARE, sensitivity=changes),
                Exponential(epsilon=epsilon * (1 - _SHARE), candidates=self.at_most, sensitivity=changes * SENSITIVITY),
                public.n,
            )
        ]


@final
@dataclass(frozen=True, slots=True)
class AskLabellings:
    """Which of several public labellings explains the edges best, as a block model."""

    labellings: tuple[Any, ...]
    least: Number = 0.001

    def __post_init__(self) -> None:
        # Spelt out, so that a kept answer is found again only for the same labels: arrays are printed in part.
        object.__setattr__(self, "labellings", tuple(spelt(labels) for labels in self.labellings))

    @property
    def words(self) -> str:
        """What is asked."""
        return f"which of {len(self.labellings)} labellings of the nodes fits best"

    def check(self, public: Public) -> None:
        """Refuse graphs of which it cannot be asked."""
        edges_only(public)

    def methods(self, public: Public, budget: Budget) -> Sequence[Method]:
        """One choice by likelihood."""
        changes = edges_only(public)
        blocks = tuple(Blocks(labels, self.least) for labels in self.labellings)
        if not blocks or any(len(block.labels) != public.n for block in blocks):
            raise InvalidParameterError(
                f"Each labelling needs one label for each of the {public.n} nodes, in their order.",
                fix="pass labellings=[[label of the first node, …], …].",
            )
        sensitivity = changes * max(block.sensitivity for block in blocks)
        epsilon: Any = budget.epsilon
        return [ByLikelihood(Exponential(epsilon=epsilon, candidates=len(blocks), sensitivity=sensitivity), blocks)]


@final
@dataclass(frozen=True, slots=True, eq=False)
class BySpectrum:
    r"""Choose k with a probability that grows with how clearly k singular values stand out.

    Guarantee:
        The average degree is released with Laplace noise first, which fixes the threshold
        :math:`\tau = 2.8\sqrt{\tilde d}`; given it, every utility moves by at most 1 with one edge (Weyl), and the
        choice is an exponential mechanism. Both events compose.

    Error:
        For block models whose communities can be told apart, k is right once its gap exceeds the interval.
    """

    average: Laplace
    mechanism: Exponential
    nodes: int
    name: str = "spectral"
    error: float = math.nan
    interval: float = math.nan
    how: str = "exponential mechanism on gaps between singular values and a noisy threshold"
    rules: tuple[str, ...] = ("communities are counted that stand out of the spectrum of a random graph",)

    @property
    def event(self) -> Event:
        """Average degree and choice."""
        return compose([self.average.event, self.mechanism.event])

    @property
    def depends(self) -> str:
        """What is known about the error."""
        return "depends on how clearly they stand out"

    @property
    def foretold(self) -> tuple[str, ...]:
        """What the error depends on."""
        said = (
            "how far off it is depends on how clearly communities stand out: with 95 % probability, the number fits the"
            f" spectrum as well as the best one, but for {brief(self.mechanism.interval(0.95))} of a singular value"
        )
        return (said,) if self.nodes < _MANY else (said, "it takes long: some minutes for 8 000 nodes")

    def run(self, data: Data, bits: Bits) -> Result:
        """Find the threshold, then choose."""
        edges = max(1, self.average.sample(data.graph.edges, bits))
        threshold = _EDGE * math.sqrt(2 * edges / self.nodes)
        utilities = gaps(singular_values(data.graph, self.mechanism.candidates + 1), threshold)
        communities = 1 + self.mechanism.sample(utilities, bits)
        return Result((_choice("communities", communities, self.how),), notes=(f"threshold: {threshold:.4g}",))


@final
@dataclass(frozen=True, slots=True, eq=False)
class ByLikelihood:
    """Choose a public labelling with a probability that grows with its likelihood."""

    mechanism: Exponential
    blocks: tuple[Blocks, ...]
    name: str = "likelihood"
    error: float = math.nan
    interval: float = math.nan
    how: str = "exponential mechanism on log-likelihoods of block models"
    rules: tuple[str, ...] = ("the labellings are public; a labelling that was found in this graph is not",)

    @property
    def event(self) -> Event:
        """One choice."""
        return self.mechanism.event

    @property
    def depends(self) -> str:
        """What is known about the error."""
        return "depends on how far apart they are"

    @property
    def foretold(self) -> tuple[str, ...]:
        """What the error depends on."""
        said = (
            "how far off it is depends on the graph: with 95 % probability, the labelling is less likely than the best"
            f" one by a factor of exp({brief(self.mechanism.interval(0.95))}) at most"
        )
        return (said,)

    def run(self, data: Data, bits: Bits) -> Result:
        """Score every labelling, then choose."""
        scores = [block.log_likelihood(data.graph) for block in self.blocks]
        chosen = self.mechanism.sample(scores, bits)
        columns = (
            _choice("labelling", chosen, self.how),
            _choice("communities", self.blocks[chosen].blocks, self.how),
        )
        return Result(columns, processing=("labellings are counted from 0",))


def _choice(name: str, value: int, how: str) -> AnswerColumn:
    unknown = np.full(1, np.nan)
    return AnswerColumn(name, np.full(1, float(value)), unknown, unknown, unknown, integral=True, how=how)


def edges_only(public: Public) -> int:
    """How many edges differ between neighbours; a refusal where that is not how they differ."""
    if public.unit.kind != "edge" or public.directed:
        raise InvalidParameterError(
            f"Communities are asked of undirected graphs that protect edges, and this one protects {public.unit}.",
            fix="open it with unit=dp.edge() and without directed=True.",
        )
    return public.changes


def spelt(labels: Any) -> Any:
    """One labelling as a tuple; what is no list of labels is refused later."""
    if isinstance(labels, str | bytes | dict) or not hasattr(labels, "__len__") or not hasattr(labels, "__iter__"):
        return labels
    return tuple(labels.tolist() if isinstance(labels, np.ndarray) else labels)


_EACH = Fraction(975, 1000)
"""How often each of two intervals holds, so that both hold with 95 %."""
_WIDER = float(np.log(1 / 0.025) / np.log(1 / 0.05))
"""From 5 % to 2.5 % outside, half-widths of Laplace noise grow with the logarithm of the chance; of normal, by less."""


@final
@dataclass(frozen=True, slots=True)
class AskClustering:
    r"""How often two neighbours of a node are joined to each other: :math:`3\,\text{triangles}/\text{2-stars}`.

    Both numbers are released, each with noise that follows the graph, and divided. The interval of the quotient holds
    where both of theirs do, so it is made of intervals of 97.5 %, whose failures add up to 5 %. Those are shown too.
    """

    words: ClassVar[str] = "global clustering coefficient"
    in_sql: ClassVar[bool] = True

    def check(self, public: Public) -> None:
        """Refuse graphs of which it cannot be asked."""
        AskTriangles().check(public)
        AskStars(2).check(public)

    def methods(self, public: Public, budget: Budget) -> Sequence[Method]:
        """Triangles and 2-stars by their best methods, half of the budget each."""
        return either_way(lambda method: _made(public, budget, method), lambda way: way.methods)


def _made(public: Public, budget: Budget, method: str | None) -> Several:
    parts = [
        replace(part, confidence=_EACH) if isinstance(part, MeasuredRamp) else part
        for part in several([AskTriangles(), AskStars(2)], public, budget, _divided(()), method=method).methods
    ]
    wider = tuple(1.0 if isinstance(part, MeasuredRamp) else _WIDER for part in parts)
    triangles, stars = (brief(part.error) for part in parts)
    said = (
        f"how far off the quotient is depends on how many 2-stars there are: about 3 × {triangles}, for triangles, over"
        f" that number; and 2-stars are off by about {stars}"
    )
    return Several(tuple(parts), _divided(wider), "triangles over 2-stars", float("nan"), (said,))


def _divided(wider: Sequence[float]) -> Callable[[Sequence[Result]], Result]:
    """Divides, with intervals that are this many times as wide as those of the two counts."""
    return lambda results: _quotient(results, wider)


def _quotient(results: Sequence[Result], wider: Sequence[float]) -> Result:
    triangles, stars = (result.columns[0] for result in results)
    half = [times * (column.high - column.values) for times, column in zip(wider, (triangles, stars), strict=True)]
    top, bottom = triangles.values, np.maximum(stars.values, 1)
    low = np.clip(3 * np.maximum(top - half[0], 0) / np.maximum(bottom + half[1], 1), 0, 1)
    high = np.clip(3 * np.maximum(top + half[0], 0) / np.maximum(bottom - half[1], 1), 0, 1)
    value = np.clip(3 * np.maximum(top, 0) / bottom, 0, 1)
    column = AnswerColumn(
        "clustering",
        value,
        np.full(1, np.nan),
        np.minimum(low, value),
        np.maximum(high, value),
        integral=False,
        how=f"{triangles.how}; {stars.how}",
    )
    notes = tuple(text for result in results for text in result.notes)
    done = ("three times the noisy number of triangles was divided by that of 2-stars, and cut to [0, 1]",)
    return Result((column, triangles, stars), processing=done, notes=notes)

"""A partition of the nodes into communities."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from defocus.answers.columns import AnswerColumn, brief
from defocus.errors import InvalidParameterError, count, whole
from defocus.graphs.data import Data
from defocus.graphs.inference.partition import least_strength, partition, recovery
from defocus.graphs.public import Public
from defocus.graphs.question import Method, Result
from defocus.graphs.questions.communities import edges_only
from defocus.graphs.statistics import Adjacent, registered
from defocus.mechanisms import RandomizedResponse
from defocus.noise import Bits
from defocus.privacy import events
from defocus.privacy.budgets import Budget

__all__ = ["MOST_NODES", "AskPartition", "ByReports"]

MOST_NODES = 5000
"""Reports about the pairs of so many nodes take some hundred megabytes and a few seconds."""


@final
@dataclass(frozen=True, slots=True)
class AskPartition:
    """Which of ``k`` communities each node is in.

    ``typical`` is a public guess of how many more neighbours a node has in its own community than in any other: it
    foretells how many nodes are placed rightly, and changes nothing else.
    """

    k: int
    typical: int | None = None

    def __post_init__(self) -> None:
        whole("k", self.k, at_least=2)
        if self.typical is not None:
            count("typical", self.typical)

    @property
    def words(self) -> str:
        """What is asked."""
        return f"partition of the nodes into {self.k} communities"

    def check(self, public: Public) -> None:
        """Refuse graphs of which it cannot be asked."""
        edges_only(public)
        if public.n > MOST_NODES:
            raise InvalidParameterError(
                f"A partition needs a report about every pair of nodes, and {public.n} nodes have too many.",
                fix=f"ask it of a graph of at most {MOST_NODES} nodes; or compare public labellings:"
                " communities(labellings=[…]).",
            )
        if 2 * self.k > public.n:
            raise InvalidParameterError(
                f"{public.n} nodes cannot be divided into {self.k} communities of two and more.",
                fix=f"pass k <= {public.n // 2}.",
            )

    def methods(self, public: Public, budget: Budget) -> Sequence[Method]:
        """Randomised response about every pair; a refusal where no community could stand out of it."""
        self.check(public)
        registered(Adjacent())
        epsilon, changes = Fraction(budget.epsilon or 0), public.changes
        method = ByReports(RandomizedResponse(epsilon=epsilon / changes), epsilon, public.n, self.k, self.typical)
        if method.least >= public.n / self.k:
            enough = next((e for e in range(1, 1001) if _least(public.n, e / 10 / changes) < public.n / self.k), 1001)
            raise InvalidParameterError(
                f"At this price no {self.k} communities of {public.n} nodes stand out of the noise, not even such in"
                " which everyone is joined to everyone.",
                fix=f"spend more than epsilon={enough / 10:g}; or pass a smaller k.",
            )
        return [method]


@final
@dataclass(frozen=True, slots=True, eq=False)
class ByReports:
    r"""Communities in a list of all pairs in which each "joined" or "not joined" is flipped by chance.

    Guarantee:
        Edge privacy, :math:`\varepsilon`-DP: between neighbours one pair differs, and its report is randomised
        response of that epsilon; where m edges differ, of an m-th of it each. All that follows is post-processing.

    Error:
        A report is flipped with probability :math:`f = 1/(1+e^\varepsilon)`; made unbiased, it has the variance
        :math:`v = f(1-f)/(1-2f)^2 = 1/(2\sinh\frac\varepsilon2)^2`. What that leaves of communities is derived in
        :func:`~defocus.graphs.inference.least_strength` and :func:`~defocus.graphs.inference.recovery`.
    Reference:
        Warner (1965), Randomized response; Hehir, Slavković, Niu (2022), Consistent spectral clustering of network
        block models under local differential privacy.
    """

    mechanism: RandomizedResponse
    epsilon: Fraction
    nodes: int
    k: int
    typical: int | None = None
    name: str = "randomised response"
    how: str = "randomised response about every pair of nodes"
    rules: tuple[str, ...] = ("communities are groups with more edges inside than degrees alone would give",)
    interval: float = math.nan

    @property
    def event(self) -> events.Pure:
        """One report differs, or several with a share of epsilon each."""
        return events.Pure(self.epsilon)

    @property
    def least(self) -> float:
        """How many more neighbours a node must have inside."""
        return _least(self.nodes, float(self.mechanism.epsilon))

    @property
    def error(self) -> float:
        """The share of nodes that are misplaced, where it can be foretold."""
        return math.nan if self.typical is None else 1 - self._share(self.typical)

    @property
    def depends(self) -> str:
        """What is known about the share of nodes that are misplaced."""
        return f"{1 - self._share(2 * self.least):.0%} misplaced at {brief(2 * self.least)} more inside"

    @property
    def foretold(self) -> tuple[str, ...]:
        """For which communities it is of use."""
        strengths = sorted({math.ceil(times * self.least) for times in (1.25, 1.5, 2, 3)})
        possible = [x for x in strengths if x <= self.nodes / self.k] or strengths[:1]
        shares = ", ".join(f"{x} more: {self._share(x):.0%}" for x in possible)
        said = (
            "how many nodes are misplaced depends on the graph: communities are found in which a node has at least"
            f" {brief(self.least)} more neighbours than in any other of the {self.k}; expected share of nodes in the"
            f" right one, for {shares}; by chance {1 / self.k:.0%}"
        )
        return (said,)

    def run(self, data: Data, bits: Bits) -> Result:
        """Report on every pair, then divide."""
        reports = self.mechanism.sample(Adjacent().exact(data.graph), bits)
        found = partition(np.asarray(reports, bool), self.nodes, self.k, self.mechanism.error, bits)
        unknown = np.full(self.nodes, np.nan)
        values = found.labels.astype(np.float64)
        column = AnswerColumn("community", values, unknown, unknown, unknown, integral=True, how=self.how)
        done = ("communities are numbered from 0, largest first; nodes are divided by eigenvectors of the reports",)
        return Result((column,), keys={"node": data.labels}, processing=done, notes=(self._note(found.strengths),))

    def _note(self, strengths: Any) -> str:
        """What the reports themselves say about it."""
        clear = [float(x) for x in strengths if not math.isnan(x)]
        if not clear:
            return "no community stands out of the noise: this partition is as good as chance"
        if len(clear) < len(strengths):
            return (
                f"only {len(clear)} of {len(strengths)} directions stand out of the noise: about {len(clear) + 1}"
                " communities can be told apart, and the others are as good as chance"
            )
        share = self._share(min(clear))
        return (
            f"all {self.k} communities stand out of the noise, by {brief(min(clear))} more neighbours inside at least;"
            f" with communities of one size, {share:.0%} of nodes are expected in the right one"
        )

    def _share(self, strength: float) -> float:
        return recovery(self.nodes, self.k, _variance(float(self.mechanism.epsilon)), strength)


def _variance(epsilon: float) -> float:
    """Of an unbiased report."""
    return 1 / (2 * math.sinh(epsilon / 2)) ** 2 if epsilon < 1000 else 0.0


def _least(nodes: int, epsilon: float) -> float:
    return least_strength(nodes, _variance(epsilon))

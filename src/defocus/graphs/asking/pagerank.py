"""PageRank of every node."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from defocus.answers.columns import noisy
from defocus.errors import InvalidParameterError, Number, count
from defocus.graphs.data import Data
from defocus.graphs.noising import Finish, VectorNoise, noises
from defocus.graphs.public import Public
from defocus.graphs.questions import Method, Result
from defocus.graphs.statistic import IntVector
from defocus.graphs.statistics.pagerank import PageRank
from defocus.privacy.budgets import Budget

__all__ = ["AskPageRank"]


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
        PageRank(self.damping).reach(public)

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

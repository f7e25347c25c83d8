"""What one release promises by itself, in numbers and in words."""

from dataclasses import dataclass
from typing import final

from defocus.privacy.accounting import tightest_at
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.privacy.sequences import single_release_bound
from defocus.privacy.units import Adjacency

__all__ = ["Promise", "promise"]


@final
@dataclass(frozen=True, slots=True)
class Promise:
    """(epsilon, delta) of a single release, and how sure anyone can become who started from even odds."""

    epsilon: float
    delta: float
    odds: float
    posterior: float
    accountant: str

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:.4g}" + (f" at delta {self.delta:.3g}" if self.delta else "")


def promise(event: Event, budget: Budget, adjacency: Adjacency) -> Promise:
    """The tightest statement that an accountant can make about ``event`` alone."""
    bound = single_release_bound(event, budget, adjacency)
    posterior = tightest_at(event, bound.delta, adjacency).posterior(0.5, delta=bound.delta)
    odds = posterior / (1 - posterior) if posterior < 1 else float("inf")
    return Promise(bound.epsilon, bound.delta, odds, posterior, bound.accountant)

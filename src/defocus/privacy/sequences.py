"""The bound for a sequence fixed in advance, reported beside a filter and never in its place."""

import math
from dataclasses import dataclass
from typing import Any, final

from defocus.errors import Number
from defocus.privacy.accounting import tightest, tightest_at
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.privacy.guidance import spoken_delta
from defocus.privacy.losses import checked_delta
from defocus.privacy.units import Adjacency

__all__ = ["FixedSequence", "fixed_sequence_bound", "single_release_bound"]

_CONDITION = "only if the sequence of privacy parameters was fixed in advance"


@final
@dataclass(frozen=True, slots=True)
class FixedSequence:
    """An epsilon that is valid only if the sequence of privacy parameters was fixed in advance."""

    epsilon: float
    delta: float
    accountant: str

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:.6g} at delta {self.delta:g} by {self.accountant}: valid {_CONDITION}"

    def to_dict(self) -> dict[str, Any]:
        """The bound with JSON types only, labelled; an infinite epsilon is null."""
        return {
            "epsilon": self.epsilon if math.isfinite(self.epsilon) else None,
            "delta": self.delta,
            "accountant": self.accountant,
            "valid": _CONDITION,
        }


def fixed_sequence_bound(event: Event, delta: Number, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> FixedSequence:
    """The loss of ``event`` by the tightest accountant that can express it.

    >>> from defocus.privacy.events import Gaussian
    >>> print(fixed_sequence_bound(4 * Gaussian(8), 1e-6))
    epsilon 1.06... at delta 1e-06 by pld: valid only if the sequence of privacy parameters was fixed in advance
    """
    target = checked_delta(delta)
    loss = tightest(event, adjacency)
    return FixedSequence(loss.epsilon(target), target, loss.accountant)


def single_release_bound(event: Event, budget: Budget, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> FixedSequence:
    """What ``event`` costs by itself, said beside ``budget``: without a delta where that is hardly more.

    >>> from defocus.privacy.events import Laplace
    >>> single_release_bound(Laplace(2), Budget(1, 1e-6))
    FixedSequence(epsilon=0.5, delta=0.0, accountant='pld')
    """
    delta = spoken_delta(budget)
    loss = tightest_at(event, delta, adjacency)
    pure, epsilon = loss.epsilon(0), loss.epsilon(delta)
    if pure <= 1.01 * epsilon:
        epsilon, delta = pure, 0.0  # a delta would only weaken the statement
    return FixedSequence(epsilon, delta, loss.accountant)

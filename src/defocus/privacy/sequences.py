"""The bound for a sequence fixed in advance, reported beside a filter and never in its place."""

from dataclasses import dataclass
from typing import final

from defocus.errors import Number, UnsupportedEventError
from defocus.privacy.accounting import account
from defocus.privacy.events import Event
from defocus.privacy.losses import checked_delta
from defocus.privacy.units import Adjacency

__all__ = ["FixedSequence", "fixed_sequence_bound"]


@final
@dataclass(frozen=True, slots=True)
class FixedSequence:
    """An epsilon that is valid only if the sequence of privacy parameters was fixed in advance."""

    epsilon: float
    delta: float
    accountant: str

    def __str__(self) -> str:
        return (
            f"epsilon {self.epsilon:.6g} at delta {self.delta:g} by {self.accountant}: "
            "valid only if the sequence of privacy parameters was fixed in advance"
        )


def fixed_sequence_bound(event: Event, delta: Number, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> FixedSequence:
    """The loss of ``event`` by the tightest accountant that can express it.

    >>> from defocus.privacy.events import Gaussian
    >>> print(fixed_sequence_bound(4 * Gaussian(8), 1e-6))
    epsilon 1.06... at delta 1e-06 by pld: valid only if the sequence of privacy parameters was fixed in advance
    """
    target = checked_delta(delta)
    try:
        return FixedSequence(account(event, "pld", adjacency).epsilon(target), target, "pld")
    except UnsupportedEventError:
        return FixedSequence(account(event, "rdp", adjacency).epsilon(target), target, "rdp")

"""Who may be a neighbour where reports are shuffled: a user whose value is replaced, and nobody else."""

from defocus.errors import UnsupportedEventError
from defocus.privacy.events import Composed, Event, Sampled, Shuffled
from defocus.privacy.units import Adjacency

__all__ = ["replaced_only"]


def replaced_only(event: Event, adjacency: Adjacency) -> None:
    """Refuse an ``event`` with shuffled reports unless neighbours differ in one unit's value.

    Shuffled reports are counted by whoever sees them, so a user who is there or not is told apart for certain; and a
    Poisson sample of them has, under either adjacency, a size that depends on one user.
    """
    _walk(event, adjacency, sampled=False)


def _walk(event: Event, adjacency: Adjacency, *, sampled: bool) -> None:
    if isinstance(event, Composed):
        for part, _ in event.parts:
            _walk(part, adjacency, sampled=sampled)
        return
    if isinstance(event, Shuffled):
        if sampled:
            raise UnsupportedEventError(
                event,
                who="A Poisson sample",
                why="how many reports are shuffled would depend on one user",
                fix="shuffle a batch of fixed size with SampledBatch, or the reports of all users.",
            )
        if adjacency is not Adjacency.REPLACE:
            raise UnsupportedEventError(
                event,
                who="Add-or-remove adjacency",
                why="shuffled reports can be counted, so a user added or removed is seen; amplification protects the "
                "value of a user whose participation is public",
                fix='account with adjacency="replace"; for a ledger, take a unit with replace=True.',
            )
    inner = getattr(event, "event", None)
    if isinstance(inner, Event):
        _walk(inner, adjacency, sampled=sampled or isinstance(event, Sampled))

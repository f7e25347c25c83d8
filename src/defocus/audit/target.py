"""A mechanism that can be audited by name: what it claims, and where to attack it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from defocus.audit.neighbours import Pair
from defocus.audit.runs import Mechanism

__all__ = ["Target"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A named mechanism with its claim: (``epsilon``, ``delta``)-DP on each of its pairs.

    >>> from defocus.audit import targets
    >>> some = targets()["laplace"]
    >>> some.epsilon, some.broken
    (1.0, False)
    """

    name: str
    about: str
    """What it does, and what is wrong with it if it is broken on purpose."""
    mechanism: Mechanism
    pairs: Callable[[], tuple[Pair, ...]]
    epsilon: float
    delta: float = 0.0
    trials: int = 100_000
    """Runs on each data set that are worth the time."""
    broken: bool = False
    """Whether an audit must find a violation."""

"""A multi-message histogram: everybody says their category, and a few categories that are not theirs."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import Number, UnfitDataError, count, positive, probability
from defocus.local.domains import Categories
from defocus.local.estimates import Estimate
from defocus.local.shuffling.binomial_noise import chance_for, delta_of
from defocus.noise import Bits, bernoulli, permutation
from defocus.privacy import events

__all__ = ["MultiMessageHistogram"]

_AT_ONCE = 1 << 24
_CHANGED = (1, -1)
"""A user who changes their mind takes one from a category and gives one to another."""


@final
@dataclass(frozen=True, slots=True)
class MultiMessageHistogram:
    r"""Each of ``users`` users sends their category and, for every category, a coin's worth of it besides.

    Guarantee:
        (``epsilon``, ``delta``)-DP for one user's value replaced: the shuffled messages are counts, each with
        :math:`\mathrm{Bin}(n, q)` added, of which two change by one. The chance q is the least that suffices by exact
        accounting.
    Assumes:
        At least ``users`` honest users take part and toss their coins, and every message travels by itself through a
        shuffler, so that nobody sees which messages come from one user.

    Error:
        Unbiased; variance :math:`nq(1-q)` in every category, which does not grow with n. A user sends
        :math:`1 + kq` messages on average, of k categories.
    Reference:
        Balcer, Cheu (2020), Separating local and shuffled differential privacy via histograms.

    >>> asked = MultiMessageHistogram(Categories.of(10), users=5000, epsilon=1, delta=1e-6)
    >>> estimate = asked.estimate(asked.encode([3] * 5000))
    >>> bool(abs(estimate.counts[3] - 5000) < 8 * asked.error), asked.error < 10
    (True, True)
    """

    domain: Categories
    users: int
    epsilon: Number
    delta: Number

    def __post_init__(self) -> None:
        count("users", self.users)
        positive("epsilon", self.epsilon)
        probability("delta", self.delta, zero=False, one=False)

    @property
    def chance(self) -> Fraction:
        """How likely a user is to say a category for no reason."""
        return _chance(self.users, self.epsilon, self.delta)

    @property
    def event(self) -> events.Approximate:
        """What the shuffled messages cost together, with the exact delta of the coins."""
        return events.Approximate(self.epsilon, delta_of(self.users, self.chance, _CHANGED, self.epsilon))

    @property
    def error(self) -> float:
        """The standard error of every count."""
        return math.sqrt(self.users * self.chance * (1 - self.chance))

    @property
    def messages_per_user(self) -> float:
        """How many messages a user sends on average."""
        return float(1 + self.domain.size * self.chance)

    def encode(self, values: Any, bits: Bits | None = None) -> NDArray[np.int64]:
        """The messages of all users, one category each, in random order."""
        codes = self.domain.codes(values)
        if len(codes) < self.users:
            raise UnfitDataError(
                f"{len(codes)} users toss too few coins for a protocol of {self.users}.",
                fix="describe the protocol for the number of honest users that really take part.",
            )
        size, rows = self.domain.size, max(1, _AT_ONCE // self.domain.size)
        extra = [
            np.flatnonzero(bernoulli(self.chance, min(rows, len(codes) - start) * size, bits)) % size
            for start in range(0, len(codes), rows)
        ]
        messages = np.concatenate((codes, *extra)).astype(np.int64)
        return messages[permutation(len(messages), bits)]

    def estimate(self, messages: NDArray[np.int64], users: int | None = None) -> Estimate:
        """Unbiased counts from the messages of so many users, as described unless told."""
        n = self.users if users is None else count("users", users)
        found = np.asarray(messages)
        inside = found[(found >= 0) & (found < self.domain.size)]
        counts = np.bincount(inside, minlength=self.domain.size).astype(np.float64) - float(n * self.chance)
        variances = np.full(self.domain.size, float(n * self.chance * (1 - self.chance)))
        return Estimate(counts, variances, n, self.domain.labels)


@lru_cache(maxsize=64)
def _chance(users: int, epsilon: Number, delta: Number) -> Fraction:
    return chance_for(users, _CHANGED, epsilon, delta)

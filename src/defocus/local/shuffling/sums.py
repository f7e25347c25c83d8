"""A multi-message sum: everybody sends as many marks as their number is large, and a few more."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, Number, UnfitDataError, count, positive, probability
from defocus.local.domains import Interval
from defocus.local.shuffling.binomial_noise import chance_for, delta_of
from defocus.noise import Bits, bernoulli, system
from defocus.privacy import events

__all__ = ["MultiMessageSum"]

_FINE = 1 << 30


@final
@dataclass(frozen=True, slots=True)
class MultiMessageSum:
    r"""Each of ``users`` users sends their number, rounded at random to one of ``levels`` steps, in single marks.

    Guarantee:
        (``epsilon``, ``delta``)-DP for one user's number replaced: the shuffled messages are one count with
        :math:`\mathrm{Bin}(nm, q)` added, m coins being tossed by each user, which changes by ``levels`` at most; noise
        with log-concave masses hides smaller changes better.
    Assumes:
        At least ``users`` honest users take part and toss their coins; every mark travels by itself.

    Error:
        Unbiased. The coins' variance, in units of the interval, does not grow with n; random rounding adds at most
        :math:`n/4` over the square of the levels.
    Reference:
        Cheu, Smith, Ullman, Zeber, Zhilyaev (2019), Distributed differential privacy via shuffling, for unary sums;
        here marks are added and not flipped, and the accounting is exact.

    >>> asked = MultiMessageSum(Interval(0, 10), users=5000, epsilon=1, delta=1e-6)
    >>> bool(abs(asked.mean(asked.encode([4.0] * 5000)) - 4) < 8 * asked.error / 5000)
    True
    """

    domain: Interval
    users: int
    epsilon: Number
    delta: Number
    levels: int = 0
    """Steps from the low to the high end; as many as balance the two errors unless told."""

    def __post_init__(self) -> None:
        count("users", self.users)
        positive("epsilon", self.epsilon)
        probability("delta", self.delta, zero=False, one=False)
        if self.levels == 0:
            object.__setattr__(self, "levels", max(1, math.isqrt(self.users) // 4))
        if count("levels", self.levels) > 4096:
            raise InvalidParameterError("More than 4096 levels send too many marks.", fix="pass fewer levels.")

    @property
    def coins(self) -> int:
        """How many coins each user tosses."""
        needed = 2 * math.log(1.25 / float(self.delta)) / float(self.epsilon) ** 2 + 2 / float(self.epsilon)
        return max(1, math.ceil(4 * needed * self.levels**2 / self.users))

    @property
    def chance(self) -> Fraction:
        """How likely a coin is to become a mark."""
        return _chance(self.users * self.coins, self.levels, self.epsilon, self.delta)

    @property
    def event(self) -> events.Approximate:
        """What the shuffled marks cost together, with the exact delta of the coins."""
        found = delta_of(self.users * self.coins, self.chance, (self.levels,), self.epsilon)
        return events.Approximate(self.epsilon, found)

    @property
    def error(self) -> float:
        """The largest standard error of the sum."""
        return math.sqrt(self._variance + self.users / 4) * self._step

    @property
    def noise(self) -> float:
        """The standard error of the sum where all numbers are on a level, as bits are: what the coins alone make."""
        return math.sqrt(self._variance) * self._step

    @property
    def messages_per_user(self) -> float:
        """How many marks a user sends at most, on average over the coins."""
        return float(self.levels + self.coins * self.chance)

    def encode(self, values: Any, bits: Bits | None = None) -> int:
        """The marks of all users together. They are all alike, so that their number is all there is to see."""
        numbers = np.asarray(values, dtype=np.float64)
        if numbers.ndim != 1 or not np.isfinite(numbers).all():
            raise UnfitDataError("A sum needs one finite number from each user.", fix="pass a flat array of numbers.")
        if len(numbers) < self.users:
            raise UnfitDataError(
                f"{len(numbers)} users toss too few coins for a protocol of {self.users}.",
                fix="describe the protocol for the number of honest users that really take part.",
            )
        low, high = float(self.domain.low), float(self.domain.high)
        fine = np.rint(np.clip((numbers - low) / (high - low), 0, 1) * self.levels * _FINE).astype(np.int64)
        source = system() if bits is None else bits
        lifted = (source.words(len(fine)) >> np.uint64(34)).astype(np.int64)
        steps: NDArray[np.int64] = (fine + lifted) // _FINE
        extra = int(np.count_nonzero(bernoulli(self.chance, len(numbers) * self.coins, bits)))
        return int(steps.sum()) + extra

    def sum(self, marks: int, users: int | None = None) -> float:
        """The sum of the numbers of so many users, without bias."""
        n = self.users if users is None else count("users", users)
        return n * float(self.domain.low) + (marks - float(n * self.coins * self.chance)) * self._step

    def mean(self, marks: int, users: int | None = None) -> float:
        """Their mean, without bias."""
        n = self.users if users is None else count("users", users)
        return self.sum(marks, n) / n

    @property
    def _step(self) -> float:
        return (float(self.domain.high) - float(self.domain.low)) / self.levels

    @property
    def _variance(self) -> float:
        return float(self.users * self.coins * self.chance * (1 - self.chance))


@lru_cache(maxsize=64)
def _chance(trials: int, levels: int, epsilon: Number, delta: Number) -> Fraction:
    return chance_for(trials, (levels,), epsilon, delta)

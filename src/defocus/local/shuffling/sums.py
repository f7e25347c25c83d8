"""A multi-message sum: everybody sends a row of bits, more of them ones the larger their number is."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

import numpy as np

from defocus.errors import InvalidParameterError, Number, TooFewUsersError, count, positive, probability, whole
from defocus.local.clients import SumClient
from defocus.local.domains import Interval
from defocus.local.shuffling.binomial_noise import chance_for, delta_of, replaced_event
from defocus.noise import Bits, bernoulli
from defocus.noise.bits import source
from defocus.privacy import events

__all__ = ["MultiMessageSum", "SumServer"]


@final
@dataclass(frozen=True, slots=True)
class MultiMessageSum:
    r"""Each of ``users`` users sends their number, rounded at random to one of ``levels`` steps, in single bits.

    Guarantee:
        (``epsilon``, ``delta``)-DP for one user's number replaced: the shuffled bits are one count of ones with
        :math:`\mathrm{Bin}(nm, q)` added, m coins being tossed by each user, which changes by ``levels`` at most; noise
        with log-concave masses hides smaller changes better. Every device sends ``levels`` + m bits, whatever its
        number, and the shuffler, which cannot read them, sees no more than that.
    Assumes:
        At least ``users`` honest users take part and toss their coins: plan for those who drop out, and describe the
        protocol for the users that are left. Every bit is sealed for the analyser and travels by itself.

    Error:
        Unbiased. The coins' variance, in units of the interval, does not grow with n; random rounding adds at most
        :math:`n/4` over the square of the levels.
    Reference:
        Cheu, Smith, Ullman, Zeber, Zhilyaev (2019), Distributed differential privacy via shuffling, for unary sums;
        here bits are added and not flipped, and the accounting is exact.

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
            raise InvalidParameterError("More than 4096 levels send too many bits.", fix="pass fewer levels.")

    @property
    def coins(self) -> int:
        """How many coins each user tosses."""
        needed = 2 * math.log(1.25 / float(self.delta)) / float(self.epsilon) ** 2 + 2 / float(self.epsilon)
        return max(1, math.ceil(4 * needed * self.levels**2 / self.users))

    @property
    def chance(self) -> Fraction:
        """How likely a coin is to become a one."""
        return _chance(self.users * self.coins, self.levels, self.epsilon, self.delta)

    @property
    def event(self) -> events.Event:
        """What the shuffled bits cost together, for a number replaced."""
        return self.event_among(self.users)

    def event_among(self, users: int) -> events.Event:
        """The same if only so many honest users take part, with the exact delta of their coins."""
        trials = count("users", users) * self.coins
        return replaced_event(self.epsilon, delta_of(trials, self.chance, (self.levels,), self.epsilon), users)

    @property
    def error(self) -> float:
        """The largest standard error of the sum."""
        return math.sqrt(self._variance + self.users / 4) * self._step

    @property
    def noise(self) -> float:
        """The standard error of the sum where all numbers are on a level, as bits are: what the coins alone make."""
        return math.sqrt(self._variance) * self._step

    @property
    def messages_per_user(self) -> int:
        """How many bits each user sends, whatever their number is."""
        return self.levels + self.coins

    def client(self) -> SumClient:
        """The device's side: one number goes in, bits come out."""
        return SumClient(self.domain, self.levels, self.coins, self.chance)

    def server(self) -> "SumServer":
        """The analyser's side: bits go in, a sum comes out."""
        return SumServer(self)

    def encode(self, values: Any, bits: Bits | None = None) -> int:
        """How many ones all users send together, for simulations: after the shuffle there is nothing else to see."""
        draw, client = source(bits), self.client()
        steps = client.steps(values, draw)
        self._enough(len(steps))
        return int(steps.sum()) + int(np.count_nonzero(bernoulli(self.chance, len(steps) * self.coins, draw)))

    def sum(self, ones: int, users: int | None = None) -> float:
        """The sum of the numbers of so many users, without bias."""
        n = self._enough(self.users if users is None else whole("users", users))
        return n * float(self.domain.low) + (ones - float(n * self.coins * self.chance)) * self._step

    def mean(self, ones: int, users: int | None = None) -> float:
        """Their mean, without bias."""
        n = self.users if users is None else whole("users", users)
        return self.sum(ones, n) / n

    def _enough(self, users: int) -> int:
        """Fewer users than were counted on hide each other less than was promised."""
        if users < self.users:
            raise TooFewUsersError(users, self.users)
        return users

    @property
    def _step(self) -> float:
        return (float(self.domain.high) - float(self.domain.low)) / self.levels

    @property
    def _variance(self) -> float:
        return float(self.users * self.coins * self.chance * (1 - self.chance))


@lru_cache(maxsize=64)
def _chance(trials: int, levels: int, epsilon: Number, delta: Number) -> Fraction:
    return chance_for(trials, (levels,), epsilon, delta)


@final
class SumServer:
    """Counts the bits of a :class:`MultiMessageSum`; what is no bit is rejected and counted.

    >>> from defocus.local.domains import Interval
    >>> asked = MultiMessageSum(Interval(0, 1), users=1000, epsilon=1, delta=1e-6)
    >>> type(asked.server()).__name__
    'SumServer'
    """

    __slots__ = ("_ones", "messages", "protocol", "rejected")

    def __init__(self, protocol: MultiMessageSum) -> None:
        self.protocol = protocol
        self.messages = 0
        self.rejected = 0
        self._ones = 0

    def add(self, message: Any) -> bool:
        """Count one message; whether it was one."""
        known = isinstance(message, bytes) and message in (b"\0", b"\1")
        self.messages += known
        self.rejected += not known
        self._ones += known and message == b"\1"
        return known

    @property
    def users(self) -> int:
        """How many users sent messages: each sends as many."""
        return self.messages // self.protocol.messages_per_user

    def sum(self) -> float:
        """The sum of their numbers, without bias; refused where they are fewer than were counted on."""
        return self.protocol.sum(self._ones, self.users)

    def mean(self) -> float:
        """Their mean, likewise."""
        return self.protocol.mean(self._ones, self.users)

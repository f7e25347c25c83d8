"""A multi-message histogram: everybody says their category, and a few categories that are not theirs."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import Number, count, positive, probability, whole
from defocus.local.clients import HistogramClient
from defocus.local.domains import OTHER, Categories
from defocus.local.estimates import Estimate
from defocus.local.shuffling.sums import chance_for, delta_of, enough, replaced_event
from defocus.noise import Bits, bernoulli, permutation
from defocus.privacy import events

__all__ = ["HistogramServer", "MultiMessageHistogram"]

_AT_ONCE = 1 << 24
"""Coins at once: 16 MiB of them."""
_CHANGED = (1, -1)
"""A user who changes their mind takes one from a category and gives one to another."""
_SHARE = 2.0**-10
"""The part of delta for coins that are tossed again."""


@final
@dataclass(frozen=True, slots=True)
class MultiMessageHistogram:
    r"""Each of ``users`` users sends their category and, for every category, a coin's worth of it besides.

    Guarantee:
        (``epsilon``, ``delta``)-DP for one user's value replaced: the shuffled messages are counts, each with
        :math:`\mathrm{Bin}(n, q)` added, of which two change by one. The chance q is the least that suffices by exact
        accounting. Every user sends ``messages_per_user`` messages: s, of which those that are not needed are blank.
        Coins that need more are tossed again; if that happens to a user with chance t, the messages are within nt of
        those without the limit, in total variation, which adds :math:`(1 + e^\varepsilon)nt` to delta, and s is the
        least number for which that is below a thousandth of it.
    Assumes:
        At least ``users`` honest users take part and toss their coins: plan for those who drop out, and describe the
        protocol for the users that are left. Every message is sealed for the analyser and travels by itself through a
        shuffler, so that nobody sees which messages come from one user.

    Error:
        Unbiased, but for the coins that are tossed again, which move no count by 1e-6; variance :math:`nq(1-q)` in
        every category, which does not grow with n.
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
    def event(self) -> events.Event:
        """What the shuffled messages cost together, for a value replaced."""
        return self.event_among(self.users)

    def event_among(self, users: int) -> events.Event:
        """The same if only so many honest users take part, with the exact delta of their coins."""
        delta = delta_of(count("users", users), self.chance, _CHANGED, self.epsilon)
        again = users * _again(self.domain.size, self.chance, self.messages_per_user)
        return replaced_event(self.epsilon, min(1.0, delta + _grown(self.epsilon) * again), users)

    @property
    def error(self) -> float:
        """The standard error of every count."""
        return math.sqrt(self.users * self.chance * (1 - self.chance))

    @property
    def messages_per_user(self) -> int:
        """How many messages each user sends, whatever their value and coins are."""
        return _slots(self.domain.size, self.users, self.epsilon, self.delta)

    @property
    def length(self) -> int:
        """How many bytes each message has."""
        return self.client().length

    def client(self) -> HistogramClient:
        """The device's side: one value goes in, messages come out."""
        return HistogramClient(self.domain, self.chance, self.messages_per_user)

    def server(self) -> "HistogramServer":
        """The analyser's side: messages go in, counts come out."""
        return HistogramServer(self)

    def encode(self, values: Any, bits: Bits | None = None) -> NDArray[np.int64]:
        """The messages of all users, one category each, in random order, for simulations."""
        codes = self.domain.codes(values)
        enough(len(codes), self.users)
        size, rows = self.domain.size, max(1, _AT_ONCE // self.domain.size)
        extra = [
            np.flatnonzero(bernoulli(self.chance, min(rows, len(codes) - start) * size, bits)) % size
            for start in range(0, len(codes), rows)
        ]
        messages = np.concatenate((codes, *extra)).astype(np.int64)
        return messages[permutation(len(messages), bits)]

    def estimate(self, messages: NDArray[np.int64], users: int | None = None) -> Estimate:
        """Unbiased counts from the messages of so many users, as described by default."""
        received = np.asarray(messages)
        inside = received[(received >= 0) & (received < self.domain.size)]
        return self.estimated(np.bincount(inside, minlength=self.domain.size), users)

    def estimated(self, seen: NDArray[np.int64], users: int | None = None) -> Estimate:
        """The same from how often each category was said."""
        n = self.users if users is None else enough(whole("users", users), self.users)
        counts = seen.astype(np.float64) - float(n * self.chance)
        price = f"epsilon {float(self.epsilon):g}, delta {float(self.delta):g}"
        told = f"several messages each, shuffled among {n} users: {price}"
        variances = np.full(self.domain.size, float(n * self.chance * (1 - self.chance)))
        others = self.domain.outside == OTHER
        return Estimate(counts, variances, n, self.domain.labels, collected=told, others=others)


@final
class HistogramServer:
    """Counts the messages of a :class:`MultiMessageHistogram`; what no device sends is rejected and counted.

    >>> from defocus.local.domains import Categories
    >>> asked = MultiMessageHistogram(Categories.of(4), users=1000, epsilon=1, delta=1e-6)
    >>> type(asked.server()).__name__
    'HistogramServer'
    """

    __slots__ = ("_length", "_seen", "_users", "messages", "protocol", "rejected")

    def __init__(self, protocol: MultiMessageHistogram, *, users: int | None = None) -> None:
        self.protocol = protocol
        self.messages = 0
        self.rejected = 0
        self._users = users
        self._seen = np.zeros(protocol.domain.size + 1, np.int64)
        self._length = protocol.length

    def add(self, message: Any) -> bool:
        """Count one message; whether it was one."""
        code = int.from_bytes(message, "little") if isinstance(message, bytes) and len(message) == self._length else -1
        valid = 0 <= code < len(self._seen)
        if valid:
            self._seen[code] += 1
        self.messages += valid
        self.rejected += not valid
        return valid

    def add_many(self, messages: Iterable[Any]) -> int:
        """Count several; how many of them were some."""
        return sum(self.add(message) for message in messages)

    @property
    def users(self) -> int:
        """How many users sent messages: as the shuffler told, or by their number, since each sends as many."""
        return self.messages // self.protocol.messages_per_user if self._users is None else self._users

    def estimate(self) -> Estimate:
        """Unbiased counts of these users; refused where they are fewer than were counted on."""
        return self.protocol.estimated(self._seen[:-1], self.users)


@lru_cache(maxsize=64)
def _chance(users: int, epsilon: Number, delta: Number) -> Fraction:
    return chance_for(users, _CHANGED, epsilon, delta * (1 - Fraction(_SHARE)))


@lru_cache(maxsize=64)
def _slots(size: int, users: int, epsilon: Number, delta: Number) -> int:
    """The least number of messages for which coins are tossed again so rarely that delta bears it."""
    chance, allowed = _chance(users, epsilon, delta), float(delta) * _SHARE / (users * _grown(epsilon))
    return 1 + int(np.argmax(_tails(size, chance) <= allowed))


def _again(size: int, chance: Fraction, slots: int) -> float:
    """At most how likely more coins fall heads than there is room for beside one message."""
    return float(_tails(size, chance)[min(slots - 1, size)])


@lru_cache(maxsize=8)
def _tails(size: int, chance: Fraction) -> NDArray[np.float64]:
    """For i from 0 to ``size``, at most how likely more than i of as many coins fall heads."""
    odds, heads = float(chance), np.arange(size)
    steps = np.log((size - heads) / (heads + 1)) + math.log(odds) - math.log1p(-odds)
    masses = np.exp(size * math.log1p(-odds) + np.cumsum(steps))  # of 1 to ``size`` heads
    above = np.cumsum(masses[::-1])[::-1] * (1 + 1e-6)  # sums of a million logarithms are off by less
    return np.append(above, 0.0)


def _grown(epsilon: Number) -> float:
    return (1 + math.exp(min(float(epsilon), 700.0))) * (1 + 1e-12)

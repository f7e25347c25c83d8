r"""Sums by several messages through a shuffler.

Counts hidden by fair game: how much a count loses to which everybody adds a coin.

If each of n users adds, besides what they have to say, a coin that shows heads with chance q, a count carries
:math:`\mathrm{Bin}(n, q)` noise that nobody has to be trusted with. One user's value moves some counts by known
shifts; what is lost is the pair :math:`o(c - s)` against :math:`o(c)` for each of them, o being the binomial masses,
and is added up exactly for one or two counts.

Reference:
    Balcer, Cheu (2020), Separating local and shuffled differential privacy via histograms; Dwork, Kenthapadi, McSherry,
    Mironov, Naor (2006), Our data, ourselves, for binomial noise.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

import numpy as np

from defocus.errors import (
    CannotCalibrateError,
    InvalidParameterError,
    Number,
    TooFewUsersError,
    count,
    positive,
    probability,
    whole,
)
from defocus.local.clients import SumClient
from defocus.local.domains import Interval
from defocus.noise import Bits, bernoulli
from defocus.noise.bits import source
from defocus.privacy import events
from defocus.privacy.accounting.shuffling.binomials import Floats, Window, binomial
from defocus.privacy.losses import checked_delta, checked_epsilon
from defocus.privacy.numbers import bisect

__all__ = ["MultiMessageSum", "SumServer", "chance_for", "delta_of", "enough", "replaced_event"]


_REACH = 60.0
"""Masses beyond e**-60 are left out and charged for: far below every delta that is of use."""
_U = 2.0**-53
"""The largest relative error of one rounding."""
_SCALE = 1 << 32
"""Chances are whole numbers over this, so that a coin is 32 fair ones."""


def delta_of(trials: int, chance: Fraction, shifts: tuple[int, ...], epsilon: Number) -> float:
    """A certified upper bound on delta at ``epsilon`` when one user moves counts by ``shifts`` (one or two of them).

    >>> 0 < delta_of(1000, Fraction(1, 10), (1, -1), 1) < 1e-6
    True
    """
    e = checked_epsilon(epsilon)
    law = binomial(trials, float(chance / (1 - chance)), _REACH)
    pairs = [_pair(law, shift) for shift in shifts]
    rest = 4 * len(shifts) * (law.rest + _U * len(law.masses)) + 4 * law.error * len(shifts)
    p, q = pairs[0]
    if len(pairs) == 1:
        return min(1.0, max(_stick(p, q, e), _stick(q, p, e)) + rest)
    return min(1.0, max(_stick_of_two(pairs[0], pairs[1], e), _stick_of_two(pairs[0][::-1], pairs[1][::-1], e)) + rest)


def chance_for(trials: int, shifts: tuple[int, ...], epsilon: Number, delta: Number) -> Fraction:
    """The least chance of heads found, a multiple of 2⁻³² up to a half, that hides ``shifts`` well enough."""
    target = checked_delta(delta)

    def hides(k: float) -> bool:
        chance = Fraction(round(math.exp(k)), _SCALE)
        return delta_of(trials, chance, shifts, epsilon) <= target

    top = math.log(_SCALE // 2)
    if not hides(top):
        raise CannotCalibrateError(
            f"{trials} coins do not hide a shift of {max(map(abs, shifts))} at epsilon {float(epsilon):g}, delta "
            f"{float(delta):g}.",
            fix="gather more users, let each toss more coins, or allow a larger epsilon or delta.",
        )
    return Fraction(round(math.exp(bisect(hides, 0.0, top, width=1e-4).yes)), _SCALE)


def replaced_event(epsilon: Number, delta: float, users: int) -> events.Event:
    """(``epsilon``, ``delta``) for a user whose value is replaced, and for no other neighbours.

    The messages can be counted, so a user added or removed is seen. The second part, shuffled reports that say nothing
    and cost nothing, makes every accountant and every ledger of such neighbours refuse.
    """
    return events.Approximate(epsilon, delta) + events.Shuffled(events.Pure(0), users)


def _pair(law: Window, shift: int) -> tuple[Floats, Floats]:
    """The masses of the count with and without the shift, over one range of values."""
    padding = np.zeros(abs(shift))
    low, high = np.concatenate((law.masses, padding)), np.concatenate((padding, law.masses))
    return (high, low) if shift > 0 else (low, high)


def _stick(p: Floats, q: Floats, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def _stick_of_two(first: tuple[Floats, Floats], second: tuple[Floats, Floats], epsilon: float) -> float:
    """The hockey stick of a product: for each outcome of the first, that of the second at the epsilon left."""
    (p, q), (r, s) = first, second
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.log(r) - np.log(s)
        left = epsilon - (np.log(p) - np.log(q))
    keep = ~np.isnan(losses)
    order = np.argsort(losses[keep], kind="stable")
    sorted_losses, r, s = losses[keep][order], r[keep][order], s[keep][order]
    r_above = np.append(np.cumsum(r[::-1])[::-1], 0.0)
    s_above = np.append(np.cumsum(s[::-1])[::-1], 0.0)
    used = p > 0
    left = left[used]
    place = np.searchsorted(sorted_losses, left, side="right")
    with np.errstate(over="ignore", invalid="ignore"):
        inner = r_above[place] - np.where(s_above[place] > 0, np.exp(np.minimum(left, 700.0)) * s_above[place], 0.0)
    return float((p[used] * np.clip(inner, 0.0, 1.0)).sum())


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
    """Steps from the low to the high end; as many as balance the two errors by default."""

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

    @property
    def length(self) -> int:
        """How many bytes each message has."""
        return 1

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
        enough(len(steps), self.users)
        return int(steps.sum()) + int(np.count_nonzero(bernoulli(self.chance, len(steps) * self.coins, draw)))

    def sum(self, ones: int, users: int | None = None) -> float:
        """The sum of the numbers of so many users, without bias."""
        n = self.users if users is None else enough(whole("users", users), self.users)
        return n * float(self.domain.low) + (ones - float(n * self.coins * self.chance)) * self._step

    def mean(self, ones: int, users: int | None = None) -> float:
        """Their mean, without bias."""
        n = self.users if users is None else whole("users", users)
        return self.sum(ones, n) / n

    @property
    def _step(self) -> float:
        return (float(self.domain.high) - float(self.domain.low)) / self.levels

    @property
    def _variance(self) -> float:
        return float(self.users * self.coins * self.chance * (1 - self.chance))


def enough(users: int, least: int) -> int:
    """So many users; fewer than were counted on hide each other less than was promised."""
    if users < least:
        raise TooFewUsersError(users, least)
    return users


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

    __slots__ = ("_ones", "_users", "messages", "protocol", "rejected")

    def __init__(self, protocol: MultiMessageSum, *, users: int | None = None) -> None:
        self.protocol = protocol
        self._users = users
        self.messages = 0
        self.rejected = 0
        self._ones = 0

    def add(self, message: Any) -> bool:
        """Count one message; whether it was one."""
        valid = isinstance(message, bytes) and message in (b"\0", b"\1")
        self.messages += valid
        self.rejected += not valid
        self._ones += valid and message == b"\1"
        return valid

    @property
    def users(self) -> int:
        """How many users sent messages: as the shuffler told, or by their number, since each sends as many."""
        return self.messages // self.protocol.messages_per_user if self._users is None else self._users

    def sum(self) -> float:
        """The sum of their numbers, without bias; refused where they are fewer than were counted on."""
        return self.protocol.sum(self._ones, self.users)

    def mean(self) -> float:
        """Their mean, likewise."""
        return self.protocol.mean(self._ones, self.users)

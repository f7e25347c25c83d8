"""Partition selection: which keys may be shown, when the keys themselves are private."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, final

import numpy as np
import numpy.typing as npt

from defocus.errors import CannotCalibrateError, Number, count, in_range, positive, probability, whole
from defocus.mechanisms.mechanism import Integers, integers, outside
from defocus.mechanisms.selection import checked_flag
from defocus.noise import Bits
from defocus.noise.bits import Words, source
from defocus.noise.enclosures import exp_bounds
from defocus.privacy import events
from defocus.privacy.accounting import account
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import calibrate

__all__ = ["PartitionSelection"]

_LONGEST = 1 << 20
_ROOM = 1e-6
"""How much of delta is left to the accountant's own rounding; of epsilon, a thousandth of that."""
_SHARES = (0.9, 0.5, 0.1)
"""Shares of delta that are tried for the keys themselves; the rest buys a larger epsilon for each."""
_FEW = 8
"""Up to so many keys, an equal split of both is best within a percent or so."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSelection:
    r"""Keep a key seen by n units with probability :math:`\pi(n)`: the largest any private rule can have, for every n.

    Guarantee:
        :math:`\pi(0) = 0` and :math:`\pi(n+1) = \min(e^{\varepsilon'} \pi(n) + \delta',\
        1 - e^{-\varepsilon'}(1 - \pi(n) - \delta'),\ 1)`. The probabilities are integers over
        :math:`2^P`, each computed from the one before and rounded down with :math:`e^{\varepsilon'}`
        enclosed, so :math:`\pi(n+1) \le e^{\varepsilon'}\pi(n) + \delta'` and
        :math:`1 - \pi(n) \le e^{\varepsilon'}(1 - \pi(n+1)) + \delta'` hold for the very numbers that are
        compared with random bits; the other two inequalities follow since :math:`\pi` never falls. So one key is
        :math:`(\varepsilon', \delta')`-DP for a unit that adds or removes one to its n. A unit
        touches at most ``groups`` keys, with ``replace`` the keys of who leaves and of who comes; these are decided
        independently, so that many such events compose. :math:`\varepsilon'` and :math:`\delta'` are
        chosen so that the composition stays within ``epsilon`` and ``delta``.
    Assumes:
        Each unit counts at most once in a key and in at most ``groups`` keys; n counts units, not rows. Keys
        that nobody has are never kept, so only keys in the data need be looked at.

    Error:
        A rule of this kind is a random threshold for n: ``error`` is its mean, ``interval(confidence)`` the n from
        which a key is kept with at least that probability.
    Reference:
        Desfontaines, Voss, Gipson, Mandayam (2022), Differentially private partition selection, Theorem 1.

    >>> keys = PartitionSelection(epsilon=1, delta=1e-6, groups=3)
    >>> keys.threshold(), keys.probability(0), keys.probability(200)
    (40, 0.0, 1.0)
    >>> keys.keep([0, 3, 1000]).tolist()[::2]
    [False, True]
    """

    answers_with: ClassVar[str] = "crossings"
    epsilon: Number
    delta: Number
    groups: int = 1
    replace: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", in_range("epsilon", positive("epsilon", self.epsilon), 1e-9, 100))
        object.__setattr__(self, "delta", probability("delta", self.delta, zero=False, one=False))
        in_range("delta", self.delta, 1e-30, 1)
        object.__setattr__(self, "groups", count("groups", self.groups))
        checked_flag("replace", self.replace)
        self._rule()

    @property
    def each(self) -> events.Approximate:
        """What one key owes."""
        return _split(self.epsilon, self.delta, self._touched)

    @property
    def event(self) -> events.Event:
        """What the whole selection owes, however many keys there are."""
        return self._touched * self.each

    def probability(self, n: int) -> float:
        """The probability that a key seen by ``n`` units is kept."""
        rule = self._rule()
        return rule.scaled[min(whole("n", n), len(rule.scaled) - 1)] / (1 << rule.precision)

    def threshold(self, confidence: Number = 0.5) -> int:
        """The least n whose keys are kept with probability ``confidence`` or more."""
        rule = self._rule()
        allowed = Fraction(outside(confidence))
        need = 1 - allowed
        return next(n for n, p in enumerate(rule.scaled) if p >= need * (1 << rule.precision))

    @property
    def error(self) -> float:
        """The mean of the random threshold."""
        rule = self._rule()
        return float(Fraction(sum((1 << rule.precision) - p for p in rule.scaled), 1 << rule.precision))

    def interval(self, confidence: Number) -> int:
        """The same as :meth:`threshold`."""
        return self.threshold(confidence)

    def check(self, counts: object) -> None:
        """Refuse anything but 64-bit integers."""
        integers(counts)

    def keep(self, counts: Integers, bits: Bits | None = None) -> npt.NDArray[np.bool_]:
        """For each key's number of units whether the key is kept; numbers below zero count as zero."""
        generator = source(bits)
        vector, _ = integers(counts)
        rule = self._rule()
        at = np.clip(vector, 0, len(rule.scaled) - 1)
        words = generator.words(len(at))
        kept: npt.NDArray[np.bool_] = words < rule.leading[at]
        kept[at == len(rule.scaled) - 1] = True
        rest = rule.precision - 64
        for i in np.flatnonzero((words == rule.leading[at]) & ~kept).tolist():
            kept[i] = generator.integer(rest) < rule.scaled[int(at[i])] & ((1 << rest) - 1)
        return kept

    def sample(self, counts: Integers, bits: Bits | None = None) -> npt.NDArray[np.bool_]:
        """The same as :meth:`keep`."""
        return self.keep(counts, bits)

    @property
    def _touched(self) -> int:
        return self.groups * (2 if self.replace else 1)

    def _rule(self) -> "_Rule":
        each = self.each
        return _rule(Fraction(each.epsilon), Fraction(each.delta))


@final
@dataclass(frozen=True, slots=True)
class _Rule:
    """The probabilities for n = 0, 1, … over 2**precision, up to the first that is one, and their leading bits."""

    scaled: list[int]
    precision: int
    leading: Words


@lru_cache(maxsize=32)
def _rule(epsilon: Fraction, delta: Fraction) -> _Rule:
    """Compute the rule from n = 0 upwards, every step rounded so that the inequalities hold for what is stored."""
    bits = 64 * math.ceil((192 + max(0, delta.denominator.bit_length() - delta.numerator.bit_length())) / 64)
    one = 1 << bits
    least = delta.numerator * one // delta.denominator
    _, shrink = exp_bounds(epsilon.numerator, epsilon.denominator, bits)
    grow = one * one // shrink  # at most 2**bits * e^epsilon, since shrink is at least 2**bits * e^-epsilon
    scaled = [0]
    while scaled[-1] < one:
        p = scaled[-1]
        left = one - p - least
        scaled.append(min((grow * p >> bits) + least, one if left <= 0 else one + (-shrink * left >> bits), one))
    leading = np.array([min(p >> (bits - 64), (1 << 64) - 1) for p in scaled], np.uint64)
    return _Rule(scaled, bits, leading)


@lru_cache(maxsize=256)
def _split(epsilon: Number, delta: Number, keys: int) -> events.Approximate:
    """The event of one key whose ``keys``-fold composition fits (epsilon, delta) and has the lowest threshold.

    An equal split of both, or a share of delta for the keys and the rest for a larger epsilon, as far as the default
    accountant allows.
    """
    room = Fraction(_ROOM)
    budget = Budget(epsilon, delta)
    even = events.Approximate(
        float(Fraction(epsilon) * (1 - room / 1000) / keys), float(Fraction(delta) * (1 - room) / keys)
    )
    found = [even] if budget.covers(account(keys * even)) else []
    for share in _SHARES if keys > _FEW or not found else ():
        least = float(Fraction(delta) * Fraction(share) / keys)
        try:
            best = calibrate(lambda x: keys * events.Approximate(1 / x, least), budget, low=1 / float(epsilon))  # noqa: B023
        except CannotCalibrateError:
            continue
        found.append(events.Approximate(1 / best, least))
    if not found:
        raise CannotCalibrateError(
            f"{keys} keys cannot share epsilon = {epsilon} and delta = {delta}.",
            fix="raise epsilon or delta, or bound each unit to fewer groups.",
        )
    best_of_all = min(found, key=_half_way)
    if _half_way(best_of_all) > _LONGEST:
        raise CannotCalibrateError(
            "Only keys seen by a million units or more would be kept.",
            fix="raise epsilon or delta, or bound each unit to fewer groups.",
        )
    return best_of_all


def _half_way(each: events.Approximate) -> float:
    """The n where a rule comes near one half: so many steps of growth from delta. It is symmetric about that n."""
    epsilon, delta = float(each.epsilon), float(each.delta)
    return math.log1p(math.expm1(epsilon) / (2 * delta)) / epsilon

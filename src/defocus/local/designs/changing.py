"""Values that change: one promise for all that a person reports over time, however their value moves."""

import hashlib
import json
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, final

from defocus.errors import (
    DefocusError,
    EpsilonTooLargeError,
    InvalidParameterError,
    Number,
    UnreadableDescriptionError,
    choice,
    count,
    positive,
    whole,
)
from defocus.local.designs.registry import design
from defocus.local.domains import Categories, domain_from_wire, never_silent
from defocus.local.levels import checked_epsilon, growth
from defocus.privacy import events
from defocus.privacy.wire import read_number, write_number

__all__ = ["Changing", "Flips", "Group", "changing"]

_MOST = 1 << 11
"""Epochs: days of five years."""
_MOST_CATEGORIES = 1 << 16
_SHARES = 1 << 16
"""Shares of groups are whole numbers over this."""
_DIGITS = 1 << 40
"""The ratio of two weights is a whole number over this, at most e**epsilon."""


@final
@dataclass(frozen=True, slots=True)
class Flips:
    r"""How ``length`` signs are reported: each way to flip d* or fewer of them weighs ``high``, each other ``low``.

    Guarantee:
        Every one of the :math:`2^K` outcomes has probability ``high`` or ``low`` over the total, whatever the signs
        are, and high ≤ e^ε low.

    Error:
        A reported sign agrees with the true one more often than not by ``gain``; d* is the one that makes it largest.
    Reference:
        Ohrimenko, Wirth, Wu (2022), Randomize the future, for the composed randomiser, with other weights; here two
        weights, which no other law with the same ratio betters.

    >>> round(float(Flips.of(1, 1).gain), 6)  # randomised response
    0.462117
    """

    length: int
    within: int
    high: int
    low: int

    @staticmethod
    def of(length: int, epsilon: Number) -> "Flips":
        """The best one."""
        return _flips(length, Fraction(epsilon))

    @property
    def weights(self) -> tuple[int, ...]:
        """For each number of flips from 0 on, how likely it is, as a whole number."""
        found, ways = list[int](), 1
        for i in range(self.length + 1):
            found.append(ways * (self.high if i <= self.within else self.low))
            ways = ways * (self.length - i) // (i + 1)
        return tuple(found)

    @property
    def gain(self) -> Fraction:
        """The expected product of a true and a reported sign: C(K, i)(K - 2i) add up to (K - d)C(K, d)."""
        excess = (self.high - self.low) * (self.length - self.within) * math.comb(self.length, self.within)
        return Fraction(excess, self.length * sum(self.weights))


@lru_cache(maxsize=256)
def _flips(length: int, epsilon: Fraction) -> Flips:
    """The gain is the quotient of two sums over the ways to flip, which grow from one d to the next."""
    below, _ = growth(epsilon)
    high = int(below * _DIGITS)
    ways, near, best, top, bottom = 1, 0, 0, 0, 1
    for within in range(length // 2 + 1):
        near += ways
        excess, total = (length - within) * ways, (high - _DIGITS) * near + (_DIGITS << length)
        if excess * bottom > top * total:
            best, top, bottom = within, excess, total
        ways = ways * (length - within) // (within + 1)
    return Flips(length, best, high, _DIGITS)


@final
@dataclass(frozen=True, slots=True)
class Group:
    """Devices that report alike: their sign at the first epochs (``level`` None), or its changes in 2**level epochs."""

    level: int | None
    share: int
    """Of 2**16 devices."""
    flips: Flips
    gain: float

    @property
    def scale(self) -> float:
        """By how much one report is multiplied, so that the estimated sign is unbiased; a change is two signs."""
        return _SHARES / self.share / self.gain * (1 if self.level is None else 2)

    def due(self, epoch: int) -> bool:
        """Whether a device of the group has something to report at this epoch."""
        if self.level is None:
            return epoch <= self.flips.length
        return epoch > 1 and (epoch - 1) % (1 << self.level) == 0


@final
@dataclass(frozen=True, slots=True)
class Changing:
    r"""A category of each person at each of ``epochs`` epochs, of which at most ``changes`` differ from the one before.

    A device draws a row of the Hadamard matrix and follows the *sign* of its category in that row, :math:`z_t = \pm 1`.

    *By changes*, where they are few: a device belongs to one group, drawn at random. Devices of the first report their
    sign at the first epoch. Those of level l report, after every :math:`2^l` epochs, how the sign has changed over
    them: :math:`+1`, :math:`-1` or 0. A zero is reported as a fair coin; the j-th that is none, times the j-th of K
    signs that were drawn once (:class:`Flips`). After K of them, the device keeps to its last: all else is coins.

    *Each epoch*, where they are many, or ``changes`` is None: all devices report their sign at each epoch, times one of
    as many signs that were drawn once.

    Guarantee:
        :math:`\varepsilon`-LDP for *all reports of one person together*, and any two series of values: however often,
        when and to what the value changes, also more often than was declared. Group and row do not depend on values. If
        the m reports of a device hold s ≤ K ≤ m that are no coins, a series of reports has probability
        :math:`2^{-(m-s)}` times that of s of the K signs, which is a sum of :math:`2^{K-s}` probabilities, each between
        low/W and high/W (:class:`Flips`). So it is between :math:`2^{K-m}\,low/W` and :math:`2^{K-m}\,high/W` for every
        series of values, and two of them differ by a factor of at most :math:`high/low \le e^\varepsilon`. The number
        of changes decides the error and not the price.
    Assumes:
        The device keeps its memory: one that starts anew reports anew, and costs epsilon once more. That a person takes
        part is public.

    Error:
        Unbiased for whoever changes at most so often. With :math:`\pi_g` the share and :math:`c_g` the gain of group g,
        the variance of a count of :math:`n_v` of n people is exactly :math:`n\sum_g w_g/(\pi_g c_g^2) - n_v`, the sum
        being over the first group with w = 1 and over the levels in the binary digits of t - 1 with w = 4. Shares make
        its mean over all epochs least. It grows with the square of the logarithm of the number of epochs, or, with a
        report at each, with that number; where reports are drawn anew each time, at :math:`\varepsilon` over their
        number, it grows with its square.

    Reference:
        Erlingsson, Feldman, Mironov, Raghunathan, Talwar, Thakurta (2019), Amplification by shuffling, for changes
        over dyadic intervals; Ohrimenko, Wirth, Wu (2022). *Not* Arcolezi et al. (2023), L-OLOHA, whose bound
        of g epsilon is on the answers that a device keeps: which of them it gives, and when that changes, shows, so
        that no multiple of epsilon bounds what a series of reports tells.

    >>> asked = Changing(Categories.of(8), epochs=30, changes=2, epsilon=2)
    >>> asked.event, asked.error(100_000) < asked.error_anew(100_000)
    (Pure(epsilon=2), True)
    """

    domain: Categories
    epochs: int
    changes: int | None
    epsilon: Number
    method: Literal["best", "changes", "each"] = "best"
    """By changes or at each epoch; the one with the smaller error by default."""

    def __post_init__(self) -> None:
        given: object = self.domain
        if not isinstance(given, Categories) or given.size >= _MOST_CATEGORIES:
            raise InvalidParameterError(
                f"Up to {_MOST_CATEGORIES - 1} categories can be followed.", fix="pass Categories, of fewer values."
            )
        never_silent(self.domain)
        choice("method", self.method, ("best", "changes", "each"))
        object.__setattr__(self, "epsilon", checked_epsilon(self.epsilon))
        if count("epochs", self.epochs) > _MOST:
            raise InvalidParameterError(f"At most {_MOST} epochs can be followed.", fix="take longer epochs.")
        if self.changes is not None:
            whole("changes", self.changes)

    @property
    def event(self) -> events.Event:
        """What all reports of one person cost together."""
        return events.Pure(self.epsilon)

    @property
    def rows(self) -> int:
        """Rows of the matrix: more than categories, since its first column tells nothing."""
        return 1 << self.domain.size.bit_length()

    @property
    def groups(self) -> tuple[Group, ...]:
        """The first, and one for each level where changes are reported."""
        most = self.epochs - 1 if self.changes is None else min(self.changes, self.epochs - 1)
        return _groups(self.epochs, most, Fraction(self.epsilon), self.method)

    def sign(self, code: int, row: int) -> int:
        """The entry of the matrix that stands for a category: 1 or -1. Two categories differ in half of the rows."""
        return 1 - 2 * ((row & (code + 1)).bit_count() & 1)

    def used(self, epoch: int) -> list[tuple[int, int]]:
        """Which groups tell of this epoch, each with the epoch at which it reported what is needed."""
        if not 1 <= whole("epoch", epoch) <= self.epochs:
            raise InvalidParameterError(f"There are epochs from 1 to {self.epochs}.", fix="pass one of them.")
        told, end = [(0, min(epoch, self.groups[0].flips.length))], 0
        for i, group in reversed(list(enumerate(self.groups))):
            if group.level is not None and (epoch - 1) >> group.level & 1:
                end += 1 << group.level
                told.append((i, end + 1))
        return told

    def variance(self, users: int, epoch: int, held: int = 0) -> float:
        """Of the count of a category that ``held`` of so many users are in, at an epoch."""
        spread = sum(self.groups[i].share / _SHARES * self.groups[i].scale ** 2 for i, _ in self.used(epoch))
        return count("users", users) * spread - whole("held", held)

    def error(self, users: int) -> float:
        """The standard error of a rare category's count, as the root of the mean square over all epochs."""
        return math.sqrt(sum(self.variance(users, epoch) for epoch in range(1, self.epochs + 1)) / self.epochs)

    def error_anew(self, users: int) -> float:
        """The same if everybody reported anew at each epoch, by the Hadamard oracle at epsilon over their number."""
        each = Fraction(self.epsilon) / self.epochs
        try:
            return math.sqrt(design("hadamard", self.domain, each).variance(count("users", users)))
        except InvalidParameterError:  # so little is left of epsilon
            return math.inf

    @property
    def promise(self) -> str:
        """In words."""
        return (
            f"the category at each of {self.epochs} epochs, "
            f"{'all' if self.changes is None else self.changes} changes counted, for {self.domain.described}: "
            f"randomised on each person's own device, epsilon {float(self.epsilon):g} for all reports together"
        )

    @property
    def digest(self) -> bytes:
        """Eight bytes of SHA-256 over the description, which every message carries."""
        return _digest(self)

    def to_json(self) -> str:
        """The public description, which is all that devices and servers need."""
        return json.dumps(
            {
                "format": "defocus.changing",
                "version": 1,
                "domain": self.domain.to_wire(),
                "epochs": self.epochs,
                "changes": self.changes,
                "epsilon": write_number(self.epsilon),
                "method": self.method,
                "law": [[each.share, each.flips.within, each.flips.high] for each in self.groups],
            },
            sort_keys=True,
        )

    @staticmethod
    def from_json(text: str | bytes, *, at_most: Number | None = None) -> "Changing":
        """Read a description back; one whose integers this version would compute differently is refused.

        With ``at_most``, so is one that costs more than this epsilon: that is for the device to decide.
        """
        limit = None if at_most is None else positive("at_most", at_most)
        try:
            data: Any = json.loads(text)
            domain: Any = domain_from_wire(data["domain"])
            made = Changing(domain, data["epochs"], data["changes"], read_number(data["epsilon"]), data["method"])
        except (DefocusError, KeyError, TypeError, ValueError, RecursionError, AttributeError) as error:
            raise UnreadableDescriptionError(f"{type(error).__name__}, {str(error)[:80]}") from error
        if json.loads(made.to_json()) != data:
            raise UnreadableDescriptionError("its format, version or integers are not those of this version")
        if limit is not None and made.epsilon > limit:
            raise EpsilonTooLargeError(float(made.epsilon), float(limit))
        return made


def changing(
    domain: Any,
    *,
    epochs: int,
    changes: int | None = None,
    epsilon: Number,
    outside: Literal["refuse", "other"] = "other",
    method: Literal["best", "changes", "each"] = "best",
) -> Changing:
    """Describe a collection of categories that change at most so often, or without a limit; ``outside`` as ever.

    >>> [round(changing(5, epochs=365, changes=k, epsilon=2).error(10_000)) for k in (0, 1, 2, None)]
    [131, 1715, 2058, 2431]
    """
    return Changing(Categories.of(domain, outside=outside), epochs, changes, epsilon, method)


@lru_cache(maxsize=64)
def _digest(asked: Changing) -> bytes:
    return hashlib.sha256(asked.to_json().encode()).digest()[:8]


@lru_cache(maxsize=64)
def _groups(epochs: int, changes: int, epsilon: Fraction, method: str) -> tuple[Group, ...]:
    """With shares in proportion to the root of what each adds to the mean variance; or one group, if that errs less."""
    levels: list[int | None] = [None, *(range((epochs - 1).bit_length()) if changes else ())]
    flips, weights = list[Flips](), list[float]()
    for level in levels:
        intervals = 1 if level is None else (epochs - 1) >> level
        flips.append(Flips.of(1 if level is None else min(changes, intervals), epsilon))
        used = 1.0 if level is None else 4 * sum(t >> level & 1 for t in range(epochs)) / epochs
        weights.append(math.sqrt(used) / float(flips[-1].gain))
    each = Flips.of(epochs, epsilon)
    better = sum(weights) * float(each.gain) >= 1  # the roots of both mean variances, divided
    if method == "each" or (method == "best" and better):
        return (Group(None, _SHARES, each, float(each.gain)),)
    shares = [max(1, round(_SHARES * weight / sum(weights))) for weight in weights]
    shares[0] += _SHARES - sum(shares)
    return tuple(
        Group(level, share, each, float(each.gain)) for level, share, each in zip(levels, shares, flips, strict=True)
    )

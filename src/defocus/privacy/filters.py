r"""Privacy filters: does the next release, chosen after seeing all earlier answers, still fit in the budget?

Composition theorems for fixed sequences need not hold when later privacy parameters depend on earlier answers. A
filter is a rule that may be asked before each release, and keeps the budget for every analyst who obeys it.

The default filter of an (epsilon, delta) budget is a *union* of elementary ones
(:mod:`defocus.privacy.elementary_filters`): a release is admitted if at least one elementary filter still admits the
whole run, this release included. So Gaussian, pure, sampled and mixed runs each get the bound that suits them.

Guarantee:
    The union with shares :math:`\delta_j` is :math:`(\varepsilon, \sum_j\delta_j)`-DP. Proof. Let P, Q be the laws of
    the final transcript (all proposals, refusals and answers, and the analyst's own randomness) on neighbouring data.
    Costs are functions of the public proposals, and not negative, so whether filter j admits the whole run can be
    read off the transcript, and if it does, it admitted every prefix. At least one does at the end; let :math:`E_j`
    be the transcripts whose first such filter is j. These sets are disjoint and cover everything. Compare the run
    with that of an analyst who behaves the same, works out the refusals of the union alone (they need no data), and
    is guarded by filter j only, stopping when j first refuses. On a transcript in :math:`E_j` both runs take the same
    steps with the same probabilities, under P and under Q. Filter j is :math:`(\varepsilon, \delta_j)`-DP against
    every analyst, hence :math:`P(S \cap E_j) \le e^\varepsilon Q(S \cap E_j) + \delta_j`. Sum over j.

    *Releases with a delta of their own.* An (ε, δ)-DP pair is, with probability 1−δ on both sides, an ε-DP pair
    (Kairouz, Oh, Viswanath 2015). Toss these coins in public and stop at the first bad one: up to there the run is
    one of pure releases with an analyst who tosses coins, covered by the above. Bad coins come up with probability
    at most the sum of the deltas, which is held below a share of its own that serves all elementary filters at once.

    *The first release decides* (``method="first"``). The union leaves a part of delta, ``Budget.direct``, for the
    deltas of releases themselves. Where the first release alone asks for more than an eighth of delta, and basic
    composition admits it, that guards the run instead, from its first release to its last: epsilons and deltas are
    added up, and all of delta may be spent so. (So a budget can be divided into two, three or seven equal releases.)
    Both filters are
    :math:`(\varepsilon, \delta)`-DP against every analyst. Which one guards the run is a function of the first
    proposal that costs anything, and that one is made before any answer: it depends on the analyst's randomness r and
    on nothing in the data. So :math:`P_r(S) \le e^\varepsilon Q_r(S) + \delta` for each r, hence also on average.
    The choice cannot be made later: an analyst could look at a first answer, go on with noise where it happens to tell
    much, and buy the whole of delta elsewhere, and lose up to the sum of what the two filters may. Nor does such a
    filter admit every run that costs no more than one it admits: a sum must be that of one run, and of all of it.
    *Tolerance.* Limits stated in decimals are kept to one part in 10⁹: ten charges of 0.1, each a binary fraction
    slightly above, fit in a budget of 1. So a run may reach (1 + 10⁻⁹) times the epsilon, rho or squared mu of its
    budget, and delta as well where ``method="basic"`` adds deltas up; the Gaussian and Rényi filters of an
    (epsilon, delta) budget have no tolerance. What is left of a limit because of it is never offered as remaining.
Assumes:
    Releases happen one after the other, and the neighbours are those of the ``adjacency`` given.

A privacy odometer: a running bound on epsilon that holds whenever the analyst decides to stop.

Guarantee:
    With levels :math:`\varepsilon_1 < \dots < \varepsilon_m`, each guarded by its own filter with its own share
    :math:`\delta_i` of delta, the reading is the least level whose filter still fits the run. Whatever rule the
    analyst stops by, :math:`P(S \cap \{\text{reading} = \varepsilon_i\}) \le
    e^{\varepsilon_i} Q(S \cap \{\text{reading} = \varepsilon_i\}) + \delta_i` for every set S of transcripts: on that
    set the run never left filter i, so the argument of :mod:`defocus.privacy.filters` applies to it.
Reference:
    Rogers, Roth, Ullman, Vadhan (2016), Privacy odometers and filters; Lécuyer (2021) for doubling levels.
"""

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, TypeAlias, final

import numpy as np

from defocus.errors import InvalidParameterError, Number, UnsupportedEventError, choice, positive, probability
from defocus.privacy import classical
from defocus.privacy.accounting.basic import spend
from defocus.privacy.accounting.renyi.conversion import epsilon_at
from defocus.privacy.accounting.shuffling import replaced_only
from defocus.privacy.accounting.zcdp import rho_for
from defocus.privacy.budgets import Budget
from defocus.privacy.composition import Comparison, Cost, Remaining, Used
from defocus.privacy.elementary_filters import ConcentratedSum, Elementary, GaussianSum, PureSum, RenyiSum, price
from defocus.privacy.events import Event, Gaussian, Pure, described, parts_of
from defocus.privacy.numbers import above, below, bisect, crossing, least_allowed, product_up, sum_up
from defocus.privacy.units import Adjacency

__all__ = [
    "Comparison",
    "Cost",
    "Filter",
    "Made",
    "Odometer",
    "Remaining",
    "Used",
    "filter",
    "makers",
    "odometer",
    "rule",
    "rules",
]


_ROOM = 1 + 1e-9
"""A budget the owner states in decimals is kept to one part in a billion, so that ten charges of 0.1 fit in 1."""

_BLUR = 1e-9
"""The part of epsilon set aside for the difference between discrete and continuous Gaussians."""

_EIGHTH = Fraction(1, 8)
"""A first release with a larger part of delta decides for basic composition. In version 1 of the union it was also the
part for direct spending, which nobody could choose."""
_GAUSSIAN_SHARE = Fraction(3, 7)
_RENYI_SHARES = ((1.0, Fraction(3, 14)), (0.8, Fraction(1, 7)), (0.6, Fraction(1, 7)), (2.0, Fraction(1, 14)))
"""Orders, as multiples of (the best order for Gaussian runs − 1), and their shares of the rest of delta."""

Made: TypeAlias = tuple[float, tuple[Elementary, ...], float]
"""What the deltas of releases may add up to; the elementary filters; and what deltas may add up to where the first
release decides for basic composition."""


def makers(budget: Budget) -> dict[str, Callable[[], Made]]:
    """The filters a budget can have, by name."""
    if budget.rho is not None:
        limit = _limit(budget.rho)
        return dict.fromkeys(("union", "zcdp"), lambda: (0.0, (ConcentratedSum(limit),), 0.0))
    if budget.mu is not None:
        squared = min(below(budget.mu), 1e150) ** 2 * _ROOM
        return dict.fromkeys(("union", "gaussian"), lambda: (0.0, (GaussianSum(squared),), 0.0))
    epsilon, delta = below(budget.epsilon or 0), below(budget.delta)
    pure = PureSum(_limit(epsilon))
    if delta == 0:
        return dict.fromkeys(("union", "basic"), lambda: (0.0, (pure,), 0.0))

    def union(whole: float) -> Made:
        direct = Fraction(budget.direct) * Fraction(delta)
        rest = Fraction(delta) - direct
        gaussian = _gaussian(epsilon, below(_GAUSSIAN_SHARE * rest))
        renyi = (_renyi(epsilon, below(share * rest), factor) for factor, share in _RENYI_SHARES)
        return below(direct), (pure, gaussian, *renyi), whole

    return {
        "union": lambda: union(0.0),
        "first": lambda: union(delta * _ROOM),
        "basic": lambda: (delta * _ROOM, (pure,), 0.0),
        "renyi": lambda: (0.0, (_renyi(epsilon, delta, 1.0),), 0.0),
        "zcdp": lambda: (0.0, (ConcentratedSum(rho_for(epsilon, delta)),), 0.0),
        "gaussian": lambda: (0.0, (_gaussian(epsilon, delta),), 0.0),
    }


def _limit(allowed: Number) -> float:
    """What may add up to so much; always finite, so that an infinite cost never fits."""
    return min(below(allowed) * _ROOM, 1e308)


@lru_cache(maxsize=1024)
def _gaussian(epsilon: float, delta: float) -> GaussianSum:
    blur = _BLUR * min(1.0, epsilon)
    limit = classical.mu_for(epsilon - blur, delta * math.exp(-blur)) ** 2 * (1 - 1e-12)
    return GaussianSum(limit, limit / blur)


@lru_cache(maxsize=1024)
def _renyi(epsilon: float, delta: float, factor: float) -> RenyiSum:
    """At ``factor`` times the order that admits the longest Gaussian run."""

    def room(t: float) -> float:
        order = 1 + math.exp(t)
        return -_rest(epsilon, delta, order) / order

    low, high = -6.0, 20.0
    points = [low + (high - low) * i / 400 for i in range(401)]
    order = 1 + factor * math.exp(min(points, key=room))
    if order > 16:
        order = float(round(order))
    return RenyiSum(max(0.0, _rest(epsilon, delta, order)), order)


def _rest(epsilon: float, delta: float, order: float) -> float:
    """What is left of epsilon for the divergence once the conversion is paid."""
    at = np.array([order])
    return (epsilon - float(epsilon_at(np.zeros(1), at, delta)[0])) * (1 - 1e-12)


_USED_UP = 1 - 2e-9
"""A run this close to a limit has used it up: what is left is no more than the tolerance."""

_MARGIN = 1 + 1e-10
"""What a planned run is charged more than its price, so that it fits when its releases are added up one by one."""


@final
@dataclass(frozen=True, slots=True)
class Filter:
    """A rule that admits releases one by one and keeps a budget whatever the analyst does. Made by :func:`filter`.

    The run so far is summed up in a :class:`Cost`, so a decision takes the same time after any number of releases.
    """

    budget: Budget
    adjacency: Adjacency
    method: str
    slack: float
    """How much the deltas of the releases themselves may add up to."""
    parts: tuple[Elementary, ...]
    whole: float = 0.0
    """If more than the slack: how much they may add up to where the first release decides for basic composition, under
    which the first part alone admits."""
    direct: Fraction | None = None
    """The part of delta that the slack is, where the owner may choose it."""

    @property
    def definition(self) -> str:
        """Names the rule, the split of delta and the choice of orders; it changes whenever one of them does."""
        return f"{self.method}/1" if self.direct in (None, _EIGHTH) else f"{self.method}/2:{self.direct}"

    @property
    def start(self) -> Cost:
        """The cost of no release at all."""
        return Cost([0.0] * (1 + len(self.parts)))

    def cost(self, event: Event) -> Cost:
        """What ``event`` adds; refused if no elementary filter of this budget can express it."""
        if not isinstance(event, Event):
            raise InvalidParameterError(
                f"A filter prices events, but got {described(event)}.", fix="pass for example Gaussian(10)."
            )
        replaced_only(event, self.adjacency)
        total = self.start
        for part, times in parts_of(event):
            ideal, delta = _ideal(part)
            amounts = [delta, *(price(elementary, ideal, self.adjacency) for elementary in self.parts)]
            if not any(math.isfinite(amount) for amount in amounts[1:]):
                raise UnsupportedEventError(
                    part,
                    who=f"The {self.method} filter",
                    why=f"no filter of {self.budget} has a finite cost for it",
                    fix="use a budget with a delta, or an event that the measure of this budget knows.",
                )
            own = above(times * Fraction(delta))
            total += Cost((own, *(amount if times == 1 else product_up(times, amount) for amount in amounts[1:])))
        return total

    def fits(self, spent: Cost, *, before: Cost | None = None) -> bool:
        """Whether a run that added up to ``spent`` keeps the budget.

        Where the first release decides, that needs what was spent ``before`` the last release. By default it is not
        known to be the first, and so the rule that needs no choice is applied.
        """
        ways = self._ways(before) if before is not None else (self._usual,)
        return any(self._keeps(spent, way) for way in ways)

    def _keeps(self, spent: Cost, way: "_Way") -> bool:
        own, *amounts = self._checked(spent)
        return (
            own <= way.slack
            and any(amount <= part.limit for amount, part in zip(amounts, way.parts, strict=False))  # the first parts
            and (way.basic or not self._basic(spent))
        )

    def add(self, spent: Cost, cost: Cost) -> Cost:
        """The sum of a run with a further release.

        A first release that decides for basic composition is marked: no other measure counts any more.
        """
        total = spent + cost
        own, pure, *others = self._checked(total)
        decides = not any(spent) and self._decisive < own and self._decisive < self.slack
        if decides and self._keeps(total, _Way(self.whole, self.parts[:1], basic=True)):
            return Cost((own, pure, *(math.inf for _ in others)))
        return total

    def admits(self, spent: Cost, event: Event) -> bool:
        """Whether ``event`` still fits after a run that added up to ``spent``."""
        return self.fits(spent + self.cost(event), before=spent)

    def compare(self, spent: Cost, event: Event) -> Comparison:
        """``event`` beside what is left, in the measure in which it comes closest to fitting."""
        used, extra = self._checked(spent), self.cost(event).amounts
        ways = self._ways(spent)
        way = next((way for way in ways if sum_up(used[0], extra[0]) <= way.slack), None)
        if way is None:
            return Comparison(extra[0], max(0.0, ways[-1].slack - used[0]), "delta")
        parts = way.parts

        def fullness(i: int) -> float:
            limit = parts[i].limit
            return (used[i + 1] + extra[i + 1]) / limit if limit else math.inf

        best = min(range(len(parts)), key=fullness)
        left = 0.0 if self._used_up(spent) else parts[best].limit - used[best + 1]
        return Comparison(extra[best + 1], max(0.0, left), parts[best].measure)

    def measures(self, spent: Cost) -> tuple[tuple[str, float | None], ...]:
        """What the numbers of a :class:`Cost` count, in their order, each with its limit after such a run.

        A measure that no longer counts has none.
        """
        ways = self._ways(spent)
        limits = ((part.measure, part.limit if part in ways[0].parts else None) for part in self.parts)
        return (("delta", ways[-1].slack), *limits)

    def used(self, spent: Cost, *, after: Cost | None = None) -> Used:
        """The parts of the budget that a run has used, of epsilon in the measure that suits it best, and of delta.

        Of a single release by itself, where a longer run ``after`` it added up to so much.

        >>> rule = filter(Budget(1, 1e-6))
        >>> print(rule.used(rule.cost(Pure(0.25))))
        25 % of epsilon
        """
        own, *amounts = self._checked(spent)
        way = self._ways(spent if after is None else after)[0]
        share = min(
            amount / part.limit if part.limit else math.inf
            for amount, part in zip(amounts, way.parts, strict=False)  # the first parts
        )
        name = next(name for name in ("epsilon", "rho", "mu") if getattr(self.budget, name) is not None)
        delta = own / way.slack if way.slack else math.inf if own else 0.0 if self.budget.delta else None
        return Used(name, share, delta)

    def remaining(self, spent: Cost) -> Remaining:
        """What a single further release may cost, in words an analyst can use."""
        return self._remaining(spent)

    @lru_cache(maxsize=1024)  # noqa: B019  # a filter is small, and is asked again after each release
    def _remaining(self, spent: Cost) -> Remaining:
        if self._used_up(spent):
            return Remaining(0.0, math.inf, 0.0)
        epsilon = self._largest(spent, Pure)
        precision = self._largest(spent, lambda t: Gaussian(1 / t))
        most, own = self._ways(spent)[-1].slack, spent.amounts[0]
        delta = most - own
        if sum_up(own, delta) > most:
            delta -= 2 * math.ulp(most)  # so that it fits when it is added, which rounds up
        tolerance = (1 - _USED_UP) * most
        gaussian = 1 / precision if precision else math.inf
        return Remaining(epsilon, gaussian, delta if delta > tolerance else 0.0, self._room(spent, epsilon))

    def _room(self, spent: Cost, epsilon: float) -> float:
        r"""By how much the largest epsilon may be above what is left of the budget as it was stated.

        The cost c of a pure release is convex in its epsilon t, with c(0) = 0. Only the first part has room, r of its
        limit: :math:`c(t) \le L - s` with :math:`L = (1 + r)B`. For :math:`t' = t(1 - rB/c(t))`,
        :math:`c(t') \le (t'/t)c(t) = c(t) - rB \le B - s`.
        """
        first, used = self._ways(spent)[0].parts[0], self._checked(spent)[1]
        cost, room = first.limit - used, (_ROOM - 1) * first.limit
        return epsilon if cost <= room else epsilon * room / cost

    def calibrate(
        self,
        make_event: Callable[[float], Event],
        *,
        spent: Cost | None = None,
        low: float = 1e-6,
        high: float = 1e12,
        precision: float = 1e-6,
    ) -> float:
        """The least x in [low, high] whose whole event this filter admits, to a relative ``precision``.

        For planning releases that are chosen adaptively: if ``make_event`` returns fifty releases, all fifty will be
        admitted, in any order and in one charge or fifty. :func:`defocus.privacy.calibrate` answers for a fixed
        sequence and finds less noise, with which a filter refuses the last few.

        Guarantee:
            ``admits(spent, make_event(x))`` was evaluated and true for the x returned.
        Assumes:
            The family loses less privacy as x grows; what is seen of it is checked. With ``method="first"``, nothing
            is charged first that decides for basic composition, unless that admits all of it.

        >>> from defocus.privacy.calibration import calibrate
        >>> rule = filter(Budget(1, 1e-6))
        >>> round(calibrate(lambda x: 50 * Gaussian(x), Budget(1, 1e-6)), 2), round(rule.calibrate(
        ...     lambda x: 50 * Gaussian(x)), 2)
        (29.87, 32.05)
        """
        before = self.start if spent is None else spent
        self._checked(before)

        def allows(x: float) -> bool:
            # One charge or fifty: what only a first charge may do is not planned with.
            begun = before if any(before) else None
            return self.fits(Cost(_MARGIN * amount for amount in before + self.cost(make_event(x))), before=begun)

        return least_allowed(
            allows, low=low, high=high, precision=precision, what=f"{self.budget!r} by the {self.method} filter"
        )

    def _used_up(self, spent: Cost) -> bool:
        """Whether nothing but the tolerance is left, or less."""
        own, *amounts = self._checked(spent)
        return all(
            own > way.slack
            or all(amount >= part.limit * _USED_UP for amount, part in zip(amounts, way.parts, strict=False))
            for way in self._ways(spent)
        )

    def _ways(self, before: Cost) -> "tuple[_Way, ...]":
        """The rules under which a run may go on: one of them once it has begun, as its sum tells."""
        self._checked(before)
        if self.whole <= self.slack:
            return (self._usual,)
        basic = _Way(self.whole, self.parts[:1], basic=True)
        if not any(before):
            return self._usual, basic
        return (basic,) if self._basic(before) else (self._usual,)

    def _basic(self, spent: Cost) -> bool:
        """Whether basic composition guards a run of this sum. The union refuses to come to a sum that looks so.

        In version 1 such a run has more deltas than the slack, which the union never has.
        """
        own, _, *others = self._checked(spent)
        if self.whole <= self.slack or own <= self._decisive:
            return False
        return self._decisive == self.slack or all(math.isinf(amount) for amount in others)

    @property
    def _decisive(self) -> float:
        """With a larger delta a first release decides for basic composition; infinite where it decides nothing."""
        if self.whole <= self.slack:
            return math.inf
        return min(self.slack, below(_EIGHTH * Fraction(below(self.budget.delta))))

    @property
    def _usual(self) -> "_Way":
        """The rule that holds unless the first release chose another."""
        return _Way(self.slack, self.parts)

    def _allows(self, spent: Cost, event: Event) -> bool:
        try:
            return self.admits(spent, event)
        except UnsupportedEventError:
            return False

    def _largest(self, spent: Cost, event: Callable[[float], Event]) -> float:
        """The largest t found whose event is admitted, between 1e-9 and 1e9; zero if none is.

        It is looked for where the first cost fills what its part has left, and everywhere if it is not there.
        """

        def allowed(x: float) -> bool:
            return self._allows(spent, event(math.exp(x)))

        low, high, width = -21.0, 21.0, 1e-10
        if not allowed(low):
            return 0.0
        left = [part.limit - used for part, used in zip(self.parts, spent.amounts[1:], strict=True)]

        def filled(x: float) -> float:
            with suppress(UnsupportedEventError):
                cost = self.cost(event(math.exp(x))).amounts[1:]
                known = [amount / room for amount, room in zip(cost, left, strict=True) if room > 0]
                return math.log(min(max(min(known, default=1.0), 1e-25), 1e25))
            return 57.0

        if filled(low) < 0 < filled(high):
            near = crossing(filled, low, high, width=width / 8)
            if allowed(near - width / 2) and not allowed(near + width / 2):
                low, high = near - width / 2, near + width / 2
        return math.exp(bisect(allowed, high, low, width=width).yes)

    def _checked(self, spent: Cost) -> tuple[float, ...]:
        if len(spent.amounts) != 1 + len(self.parts):
            raise InvalidParameterError(
                "This cost belongs to another filter.", fix="start from filter.start and add filter.cost(event)."
            )
        return spent.amounts


def filter(  # noqa: A001 - the name users read: privacy.filter(budget)
    budget: Budget, adjacency: Adjacency = Adjacency.ADD_REMOVE, *, method: str = "union"
) -> Filter:
    """The filter that keeps ``budget`` for adaptively chosen releases.

    ``method`` is "union" (the default), one elementary filter by name ("basic", "renyi", "zcdp", "gaussian"), or
    "first", which ledgers use: the union, unless the first release has a delta of its own that only "basic" admits.
    The union keeps the part ``budget.direct`` of delta for releases that have a delta of their own, such as the
    selection of partitions; the rest pays for composition.

    >>> rule = filter(Budget(1, 1e-6))
    >>> spent = rule.start
    >>> while rule.admits(spent, Gaussian(50)):
    ...     spent += rule.cost(Gaussian(50))
    >>> rule.admits(spent, Pure(0.5)), rule.admits(spent, Pure(1e-3))
    (False, True)
    """
    if not isinstance(budget, Budget):
        raise InvalidParameterError(
            f"A filter keeps a Budget, but got {type(budget).__name__}.", fix="pass for example Budget(1, 1e-6)."
        )
    name, known = rule(budget, method), makers(budget)
    slack, parts, whole = known[name]()
    direct = Fraction(budget.direct) if name in ("union", "first") and "first" in known else None
    return Filter(budget, Adjacency(adjacency), name, slack, parts, whole, direct)


def rule(budget: Budget, name: object) -> str:
    """The filter of this name that ``budget`` can have. Accountants' names stand for the filters that add up likewise.

    >>> rule(Budget(1, 1e-6), "RDP")
    'renyi'
    """
    return choice(f"filter for {budget}", name, makers(budget), {"rdp": "renyi", "gdp": "gaussian"})


def rules(budget: Budget) -> tuple[str, ...]:
    """The names of the filters that a budget can have.

    >>> rules(Budget(rho=1))
    ('union', 'zcdp')
    """
    return tuple(makers(budget))


class _Way(NamedTuple):
    """How much the deltas of releases may add up to, and which elementary filters admit."""

    slack: float
    parts: tuple[Elementary, ...]
    basic: bool = False


def _ideal(part: Event) -> tuple[Event, float]:
    """A release with a delta of its own as the pure one it is with probability 1 − δ, and that δ."""
    try:
        found = spend(part)
    except UnsupportedEventError:
        return part, 0.0
    return (Pure(found.epsilon(0.0)), found.delta) if found.delta and not found.shares else (part, 0.0)


_LEVELS = tuple(2.0 ** (i / 2) for i in range(-8, 11))


@final
@dataclass(frozen=True, slots=True)
class Odometer:
    """Filters at increasing levels of epsilon. Made by :func:`odometer`.

    >>> from defocus.privacy.events import Pure
    >>> meter = odometer(1e-6, levels=(0.5, 1, 2))
    >>> meter.read(meter.start), meter.read(meter.after(meter.start, Pure(0.7)))
    (0.0, 1.0)
    """

    filters: tuple[Filter, ...]

    @property
    def start(self) -> tuple[Cost, ...]:
        """The state before any release."""
        return tuple(one.start for one in self.filters)

    def after(self, spent: tuple[Cost, ...], event: Event) -> tuple[Cost, ...]:
        """The state after one more release."""
        return tuple(cost + one.cost(event) for cost, one in zip(spent, self.filters, strict=True))

    def read(self, spent: tuple[Cost, ...]) -> float:
        """The least level that covers everything so far; infinite beyond the last, zero before the first release."""
        if spent == self.start:
            return 0.0
        levels = (one.budget.epsilon for one, cost in zip(self.filters, spent, strict=True) if one.fits(cost))
        return float(next(levels, None) or math.inf)


def odometer(
    delta: Number, adjacency: Adjacency = Adjacency.ADD_REMOVE, *, levels: Iterable[Number] = _LEVELS
) -> Odometer:
    """An odometer whose readings hold together except with probability ``delta``.

    >>> from defocus.privacy.events import Gaussian
    >>> meter = odometer(1e-6, levels=(0.5, 1, 2, 4))
    >>> meter.read(meter.after(meter.start, 25 * Gaussian(20)))
    2.0
    """
    steps = sorted({below(positive("level", level)) for level in levels})
    total = below(probability("delta", delta, one=False))
    if not steps:
        raise InvalidParameterError("An odometer needs at least one level.", fix="pass levels=(0.5, 1, 2, 4).")
    return Odometer(tuple(filter(Budget(level, total / len(steps)), adjacency) for level in steps))

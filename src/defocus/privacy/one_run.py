"""A lower bound on epsilon from one run in which many canaries were planted, each by a coin of its own."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from defocus.errors import (
    DefocusError,
    InvalidParameterError,
    Number,
    UnsupportedEventError,
    non_negative,
    probability,
)
from defocus.privacy import events
from defocus.privacy.accounting import pld, tightest
from defocus.privacy.events import Event, compose, parts_of
from defocus.privacy.guesses import Curve, independent, least_epsilon, tradeoff
from defocus.privacy.html import html_facts
from defocus.privacy.losses import Loss
from defocus.privacy.units import Adjacency

__all__ = ["OneRun", "one_run", "scaled"]

_PARTS = (1.0, 0.5, 0.25, 0.1, 0.05)
"""Shares of the canaries that are guessed where only (epsilon, delta) is known, fixed beforehand, with equal errors."""
_TOGETHER = 0.25
"""The share of the canaries that is guessed where an event is known and canaries are not independent."""
_GROUPS = 0.1
"""The part of the error that tests of single groups of canaries share."""
_FEW = 64
"""In a smaller group, all are guessed."""
_LEVEL = 1.02
"""Noise is tried at powers of this."""
_LEAST_LEVEL, _MOST_LEVEL = -120, 460
_TOLERANCE = 1e-3
"""How far curves may be rounded up, in parts of epsilon."""

_Coins = NDArray[np.bool_]
_Test = Callable[[int, int, int, Curve], float]
_SCALES = ("ratio", "scale", "sigma")
_EPSILONS = (events.Pure, events.Approximate, events.Exponential, events.RandomizedResponse, events.SubsetResponse)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OneRun:
    """What one run with canaries shows. Made by :func:`one_run`.

    >>> found = one_run(list(range(200)), [0] * 100 + [1] * 100, claimed=1)
    >>> found.violation, found.guesses, found.correct
    (True, 200, 200)
    """

    epsilon_lower: float
    """With ``confidence``, the run is not what ``method`` says at ``delta`` for any ε below this."""
    claimed: float | None
    delta: float
    confidence: float
    canaries: int
    guesses: int
    """How many canaries the best test guessed; it abstains on the others."""
    correct: int
    tests: int
    """How many tests shared the error."""
    method: str = "(epsilon, delta)"
    """What was tested: "(epsilon, delta)", "trade-off" or "independent"; see :func:`one_run`."""
    noise_at_most: float | None = None
    """The noise, in multiples of what was claimed, above which the run is rejected; with an event only."""
    rejected: bool = False
    """Whether the claim itself is rejected."""

    @property
    def violation(self) -> bool:
        """Whether the claim is false, as sure as ``confidence`` says."""
        return self.rejected

    @property
    def verdict(self) -> str:
        """In words."""
        return "violation" if self.rejected else "none found"

    def __str__(self) -> str:
        claim = "" if self.claimed is None else f", claimed {self.claimed:.6g}"
        return (
            f"{self.verdict}: epsilon >= {self.epsilon_lower:.4g}"
            f" at delta {self.delta:.3g}{claim} ({100 * self.confidence:.10g} % confidence, {_METHODS[self.method]},"
            f" {self.correct} of {self.guesses} guesses right, {self.canaries} canaries)"
        )

    def to_json(self) -> dict[str, Any]:
        """All fields and the verdict, with JSON types only."""
        return asdict(self) | {"verdict": self.verdict, "violation": self.violation}

    def _repr_html_(self) -> str:
        noise = "" if self.noise_at_most is None else f"{self.noise_at_most:.3g} times what was charged"
        facts = {
            "verdict": self.verdict,
            "epsilon is at least": f"{self.epsilon_lower:.4g}",
            "claimed": "nothing" if self.claimed is None else f"{self.claimed:.6g}",
            "at delta": f"{self.delta:.3g}",
            "confidence": f"{100 * self.confidence:.10g} %, shared by {self.tests} test{'s' * (self.tests > 1)}",
            "tested by": _METHODS[self.method],
            "guesses": f"{self.correct} of {self.guesses} right, about {self.canaries} canaries",
        }
        return html_facts(facts | ({"noise is below": noise} if noise else {}))


_METHODS = {
    "(epsilon, delta)": "one run",
    "trade-off": "one run, by the curve of what was charged",
    "independent": "one run, by the curve of what was charged and independent noise",
}


def one_run(
    scores: Any,
    planted: Any,
    *,
    delta: Number = 0,
    claimed: Number | None = None,
    confidence: float = 0.95,
    event: Event | None = None,
    adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    independent: bool = False,
    groups: Any = None,
    changes: int = 1,
    exchanged: bool = False,
) -> OneRun:
    r"""A lower bound on the epsilon of one run, from the scores of canaries and the coins that planted them.

    Each canary is put in or left out by a fair coin. ``scores`` are made of what the run released, higher where a
    canary looks planted; ``planted`` are the coins. The highest scores are guessed to be in, the lowest out.

    Guarantee:
        *Without* ``event``: with probability at least ``confidence``, the run is not (ε, delta)-DP, one canary added or
        removed, for any ε below the bound. Five numbers of guesses are tried, each at a fifth of the error.

        *With* ``event``, what the run was charged: noise r times what was charged makes another event, and an
        accountant's curve of it. With probability at least ``confidence``, the run keeps the curve for no r above
        ``noise_at_most``; the bound is the epsilon of the curve at this r, and ``violation`` says that r = 1 is
        rejected. The number of guesses is fixed beforehand: a quarter of the canaries. Any run that keeps the curve of
        its event is called a violation with probability 1 − ``confidence`` at most.

        With ``independent``, what is rejected is less: runs in which canaries are treated independently, as noise on
        sums does to canaries that are orthogonal. The test is stronger for it, and guesses as many of them as show most
        under the curve of the event, which is known before any score is. A run that is right but tells about all
        canaries together by one chance event may be rejected.

        With ``groups``, a label for each canary, all canaries together have nine tenths of the error, and each group
        by itself an equal part of the rest: what spares a part of a release shows there.

        With ``changes=2``, coins decide between two persons, and the ledger counts one who is added or removed: the
        curve is that of two such changes, one after the other. Noise then shows twice as much of each coin.

        With ``exchanged``, coins decide between two persons, one of whom has the place of the other, as in batches of
        fixed size: the curve is that of the event where one is replaced by another, whatever the ledger counts. Where
        one comes or goes, one direction often tells less, and an exchange may tell more than both on average.
    Assumes:
        Coins are fair and independent, and scores depend on them through released values only. Coins and scores are
        in the same order. Ties are broken by that order, which must not tell the coins.

    Error:
        One-sided: a low bound says nothing about privacy. With ideal Gaussian scores of 1 000 canaries at delta 1e-5,
        epsilon 1, 4 and 8 show .18, 1.35 and 2.6 without event, .37, 2.1 and 4.7 with one, and .51, 3.3 and 7.2 if
        independent.
    Reference:
        Steinke, Nasr, Jagielski (2023), Privacy auditing with one (1) training run, theorem 5.2; Mahloujifar, Melis,
        Chaudhuri (2024), Auditing f-differential privacy in one run; proofs in :mod:`defocus.privacy.guesses`.

    >>> import numpy as np
    >>> from defocus.privacy import Gaussian
    >>> draw = np.random.default_rng(0)
    >>> coins = draw.integers(0, 2, 1000)
    >>> print(one_run(coins + draw.laplace(0, 1, 1000), coins, claimed=1).violation)
    False
    >>> scores = coins + draw.normal(0, 1, 1000)
    >>> found = one_run(scores, coins, event=Gaussian(1), delta=1e-5, independent=True)
    >>> found.violation, 3 < found.epsilon_lower < found.claimed < 4.4
    (False, True)
    """
    values, coins = _checked(scores, planted)
    error = 1 - float(probability("confidence", confidence, zero=False, one=False))
    at = float(probability("delta", delta, one=False))
    said = None if claimed is None else float(non_negative("claimed", claimed))
    if event is None:
        if independent or groups is not None or changes != 1 or exchanged:
            raise InvalidParameterError(
                "Independent canaries, groups of them and two changes are tested against an event, and none was given.",
                fix="pass event=, what the run was charged: its receipt.event.",
            )
        found = _by_pair(values, coins, at, error)
        violated = said is not None and found.epsilon_lower > said
        return replace(found, claimed=said, rejected=violated)
    place = Adjacency(adjacency)
    cost = tightest(event, place).epsilon(at) if said is None else said
    if changes not in {1, 2} or (exchanged and changes == 2):
        raise InvalidParameterError(
            "Between a canary that is in and one that is out lie one or two changes of a person.",
            fix="pass changes=1, or changes=2 or exchanged=True where the coin decides between two persons.",
        )
    found = _by_event(values, coins, groups, error, _Claim(event, at, place, independent, changes, exchanged))
    return replace(found, claimed=cost)


def _by_pair(values: NDArray[np.float64], coins: _Coins, delta: float, error: float) -> OneRun:
    m = len(values)
    tried = sorted({max(2, 2 * round(m * part / 2)) if part < 1 else m for part in _PARTS})
    best = (-1.0, 0, 0)
    for guesses in tried:
        right = _right(values, coins, guesses)
        best = max(best, (least_epsilon(m, guesses, right, delta, error / len(tried)), guesses, right))
    return OneRun(
        epsilon_lower=best[0],
        claimed=None,
        delta=delta,
        confidence=1 - error,
        canaries=m,
        guesses=best[1],
        correct=best[2],
        tests=len(tried),
    )


@final
@dataclass(frozen=True, slots=True)
class _Guessed:
    """One test, fixed before its scores are seen: how many guesses were right, and its part of the error."""

    canaries: int
    guesses: int
    right: int
    error: float


@final
@dataclass(frozen=True, slots=True)
class _Claim:
    """What a run was charged, and whether its canaries are treated independently and two changes apart."""

    event: Event
    delta: float
    adjacency: Adjacency
    alone: bool
    changes: int
    exchanged: bool

    @property
    def test(self) -> _Test:
        """How likely guesses are right so often."""
        return independent if self.alone else tradeoff

    def curve(self, level: int) -> Curve:
        """That of the same with more noise."""
        between = Adjacency.REPLACE if self.exchanged else self.adjacency
        return _curve(self.event, self.delta, between, level, self.changes)

    def epsilon(self, level: int) -> float:
        """The epsilon of a curve, from below where the accountant knows, else as it counts."""
        return _epsilon(self.event, self.delta, self.adjacency, level)


@lru_cache(maxsize=256)
def _epsilon(event: Event, delta: float, adjacency: Adjacency, level: int) -> float:
    noisier = scaled(event, _LEVEL**level)
    try:
        return max(0.0, pld.account(noisier, adjacency, tolerance=_TOLERANCE).interval(delta).lower)
    except DefocusError:  # no certified lower bound is known for this event
        return tightest(noisier, adjacency).epsilon(delta)


@lru_cache(maxsize=256)
def _curve(event: Event, delta: float, adjacency: Adjacency, level: int, changes: int) -> Curve:
    """Rounded up a little more than a price is, which is quick; kept, as the next run of the same plan asks again."""
    noisier = scaled(event, _LEVEL**level)
    try:
        loss: Loss = pld.account(noisier, adjacency, tolerance=_TOLERANCE)
    except UnsupportedEventError:
        loss = tightest(noisier, adjacency)
    return Curve.of(loss, delta, changes)


def _by_event(values: NDArray[np.float64], coins: _Coins, groups: Any, error: float, claim: _Claim) -> OneRun:
    part = claim.curve(0).telling() if claim.alone else _TOGETHER
    tests = []
    sets = _sets(groups, len(values))
    for chosen in [np.ones(len(values), bool), *sets]:
        m, whole = int(chosen.sum()), bool(chosen.all())
        guesses = m if m < _FEW and not whole else max(2, 2 * round(m * part / 2))
        share = error if not sets else error * (1 - _GROUPS) if whole else error * _GROUPS / len(sets)
        tests.append(_Guessed(m, guesses, _right(values[chosen], coins[chosen], guesses), share))

    best, found = tests[0], _least_level(tests[0], claim)
    for each in tests[1:]:
        if _rejects(each, found - 1, claim):  # a group that shows more than all together
            best, found = each, _least_level(each, claim)
    showing = found < _MOST_LEVEL
    return OneRun(
        epsilon_lower=claim.epsilon(found) if showing else 0.0,
        claimed=None,
        delta=claim.delta,
        confidence=1 - error,
        canaries=len(values),
        guesses=best.guesses,
        correct=best.right,
        tests=len(tests),
        method="independent" if claim.alone else "trade-off",
        noise_at_most=_LEVEL**found if showing else None,
        rejected=found <= 0,
    )


def _rejects(guessed: _Guessed, level: int, claim: _Claim) -> bool:
    if 2 * guessed.right <= guessed.guesses:
        return False
    return claim.test(guessed.canaries, guessed.guesses, guessed.right, claim.curve(level)) <= guessed.error


@lru_cache(maxsize=256)
def _least_level(guessed: _Guessed, claim: _Claim) -> int:
    """The least level of noise that the guesses reject; all above are rejected too, as their curves are lower."""

    def rejects(level: int) -> bool:
        return _rejects(guessed, level, claim)

    if claim.test(guessed.canaries, guessed.guesses, guessed.right, Curve.of_pure(0.0)) > guessed.error:
        return _MOST_LEVEL
    near, step = _near(guessed, claim), 1
    if rejects(near):
        low, high = near - 1, near
        while low >= _LEAST_LEVEL and rejects(low):
            low, high, step = low - 2 * step, low, 2 * step
        low = max(low, _LEAST_LEVEL - 1)
    else:
        low, high = near, near + 1
        while high < _MOST_LEVEL and not rejects(high):
            low, high, step = high, high + 2 * step, 2 * step
        high = min(high, _MOST_LEVEL)
    while high - low > 1:  # not rejected at low, and rejected at high
        middle = (low + high) // 2
        low, high = (low, middle) if rejects(middle) else (middle, high)
    return high


def _near(guessed: _Guessed, claim: _Claim) -> int:
    """A level to look at first: where guesses are right as often as was shown, along a line through two others."""
    part = guessed.guesses / guessed.canaries
    shown = float(betaincinv(guessed.right, guessed.guesses - guessed.right + 1, guessed.error)) - 1 / 2

    def more(level: int) -> float:
        """The logarithm of how much more than half are right, over what was shown."""
        return math.log(max(claim.curve(level).right(part) / part - 1 / 2, 1e-9) / max(shown, 1e-9))

    def within(level: float) -> int:
        return min(max(round(level), _LEAST_LEVEL), _MOST_LEVEL - 1)

    here = more(0)
    other = within(here / math.log(_LEVEL))
    fall = here - more(other)
    return within(other * here / fall) if fall else other


def scaled(event: Event, noise: Number) -> Event:
    """What a release with ``noise`` times as much noise owes, and everything else as it was.

    >>> from defocus.privacy import Gaussian, Sampled
    >>> scaled(10 * Sampled(Gaussian(2.0), 0.1), 1.5)
    Composed(parts=((Sampled(event=Gaussian(ratio=3.0), rate=0.1), 10),))
    """
    return compose(times * _scaled(part, float(noise)) for part, times in parts_of(event))


def _scaled(event: Event, noise: float) -> Event:
    for name in _SCALES:
        if hasattr(event, name):
            return _with(event, name, float(getattr(event, name)) * noise)
    match event:
        case events.Sampled(inner) | events.SampledBatch(inner) | events.Selected(inner):
            return _with(event, "event", scaled(inner, noise))
        case events.Concentrated(rho):
            return events.Concentrated(float(rho) / noise**2)
        case _ if isinstance(event, _EPSILONS):
            return _with(event, "epsilon", float(event.epsilon) / noise)
    raise UnsupportedEventError(
        event,
        who="An audit by the curve of an event",
        why="it is not known what it is with more noise",
        fix="leave event= out, and pass claimed= and delta=.",
    )


def _with(event: Any, name: str, value: object) -> Event:
    changed: Event = replace(event, **{name: value})
    return changed


def _sets(groups: Any, m: int) -> list[_Coins]:
    if groups is None:
        return []
    labels = np.asarray(groups)
    if labels.shape != (m,):
        raise InvalidParameterError("Groups need one label for each canary.", fix="pass a list as long as scores.")
    sets = [labels == label for label in np.unique(labels)]
    return [each for each in sets if each.sum() > 1] if len(sets) > 1 else []


def _right(values: NDArray[np.float64], coins: _Coins, guesses: int) -> int:
    """How many are right of so many guesses: "in" for the highest scores, "out" for the lowest."""
    order, low = np.argsort(values, kind="stable"), guesses // 2
    return int((~coins[order[:low]]).sum() + coins[order[len(values) - (guesses - low) :]].sum())


def _checked(scores: Any, planted: Any) -> tuple[NDArray[np.float64], _Coins]:
    values, coins = np.asarray(scores, np.float64), np.asarray(planted)
    if values.ndim != 1 or values.shape != coins.shape or len(values) < 2 or np.isnan(values).any():
        raise InvalidParameterError(
            "Canaries need one score and one coin each, at least two of them, and no score may be NaN.",
            fix="pass two lists of the same length.",
        )
    if not np.isin(coins, (0, 1)).all():
        raise InvalidParameterError(
            "A coin is 1 where the canary was planted and 0 where it was not.", fix="pass zeros and ones as planted=."
        )
    return values, coins.astype(bool)

"""One law suite for every mechanism.

The laws below are written from the definitions, independently of the code under test: sums over
all noise values (cut where less than 1e-30 is left) in 40 digits, over all neighbouring inputs of a small domain.
"""

import itertools
import math
import pickle
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import FrozenInstanceError, dataclass, fields, replace
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

from defocus import mechanisms
from defocus.errors import DefocusError, NotExactError, UnfitDataError
from defocus.mechanisms import (
    AboveThreshold,
    Crossings,
    Exponential,
    Gaussian,
    Geometric,
    Ladder,
    Laplace,
    Mechanism,
    NoisyLocalSensitivity,
    PartitionSelection,
    PermuteAndFlip,
    Quantiles,
    Ramp,
    RandomizedResponse,
    RangeFinding,
    ReportNoisyMax,
)
from defocus.noise import Bits
from defocus.noise.testing import seeded
from defocus.privacy import events
from defocus.privacy.accounting import account

CTX = mpmath.MPContext()
CTX.dps = 40
Law = dict[Hashable, Any]


def exp(x: Fraction) -> Any:
    return CTX.exp(CTX.mpf(x.numerator) / x.denominator)


# Laws, from their definitions -------------------------------------------------------------------


def laplace_pmf(scale: Fraction) -> Callable[[int], Any]:
    q = exp(-1 / scale)
    return cache(lambda k: (1 - q) / (1 + q) * q ** abs(k))


def laplace_cdf(scale: Fraction) -> Callable[[int], Any]:
    q = exp(-1 / scale)
    return cache(lambda k: q ** (-k) / (1 + q) if k < 0 else 1 - q ** (k + 1) / (1 + q))


def gaussian_pmf(sigma: Fraction) -> Callable[[int], Any]:
    reach = math.ceil(15 * sigma) + 2
    weights = {k: exp(-Fraction(k * k) / (2 * sigma * sigma)) for k in range(-reach, reach + 1)}
    total = CTX.fsum(weights.values())
    return cache(lambda k: weights.get(k, CTX.mpf(0)) / total)


def additive(pmf: Callable[[int], Any], reach: int) -> Callable[[Any], Law]:
    """The law of one number plus noise, or of a vector plus independent noise, within ``reach`` of 0."""

    def law(x: Any) -> Law:
        if isinstance(x, int):
            return {y: pmf(y - x) for y in range(-reach, reach + 1)}
        grid = itertools.product(range(-reach, reach + 1), repeat=len(x))
        return {y: CTX.fprod(pmf(b - a) for a, b in zip(x, y, strict=True)) for y in grid}

    return law


def exponential_law(c: Fraction) -> Callable[[Sequence[Any]], Law]:
    def law(u: Sequence[Any]) -> Law:
        weights = [exp(c * (Fraction(x) - max(u))) for x in u]
        return {i: w / CTX.fsum(weights) for i, w in enumerate(weights)}

    return law


def permute_and_flip_law(c: Fraction) -> Callable[[Sequence[Any]], Law]:
    """Every order, step by step, as the mechanism is defined."""

    def law(u: Sequence[Any]) -> Law:
        heads = [exp(c * (Fraction(x) - max(u))) for x in u]
        chosen = [CTX.mpf(0)] * len(u)
        orders = list(itertools.permutations(range(len(u))))
        for order in orders:
            reached = CTX.mpf(1) / len(orders)
            for i in order:
                chosen[i] += reached * heads[i]
                reached *= 1 - heads[i]
        return dict(enumerate(chosen))

    return law


def noisy_max_law(scale: Fraction, reach: int) -> Callable[[Sequence[int]], Law]:
    """The winner has x, every other less, or x as well with a later place: an integral over the winner's place."""
    pmf, cdf = laplace_pmf(scale), laplace_cdf(scale)

    def law(u: Sequence[int]) -> Law:
        span = range(min(u) - reach, max(u) + reach)
        below = {(v, x): cdf(x - v - 1) for v in set(u) for x in span}
        at = {(v, x): pmf(x - v) for v in set(u) for x in span}
        wins: Law = {}
        for i in range(len(u)):
            parts = []
            for x in span:
                place = [at[u[i], x]]
                for j in range(len(u)):
                    if j != i:
                        place = times(place, below[u[j], x], at[u[j], x])
                parts.append(CTX.fsum(a / (k + 1) for k, a in enumerate(place)))
            wins[i] = CTX.fsum(parts)
        return wins

    return law


def times(polynomial: list[Any], constant: Any, slope: Any) -> list[Any]:
    shifted = [CTX.mpf(0), *(slope * a for a in polynomial)]
    return [s + constant * a for s, a in itertools.zip_longest(shifted, polynomial, fillvalue=CTX.mpf(0))]


def above_threshold_law(
    threshold: int, positives: int, scales: tuple[Fraction, Fraction], reach: int, widest_gap: int | None
) -> Callable[[Sequence[int]], Law]:
    level, noise, cdf = laplace_pmf(scales[0]), laplace_pmf(scales[1]), laplace_cdf(scales[1])

    def law(q: Sequence[int]) -> Law:
        found: Law = {}
        marks: list[int | None] = [None, *([0] if widest_gap is None else range(widest_gap + 1))]
        for outcome in itertools.product(marks, repeat=len(q)):
            above = [i for i, mark in enumerate(outcome) if mark is not None]
            stop = above[positives - 1] + 1 if len(above) >= positives else len(q)
            if any(i >= stop for i in above):
                continue
            total = []
            for r in range(-reach, reach + 1):
                p = level(r)
                for i in range(stop):
                    bar, mark = threshold + r - q[i], outcome[i]
                    if mark is None:
                        p *= cdf(bar - 1)
                    else:
                        p *= 1 - cdf(bar - 1) if widest_gap is None else noise(mark + bar)
                total.append(p)
            gaps = None if widest_gap is None else tuple(g for g in outcome if g is not None)
            found[Crossings(tuple(above), gaps, stop)] = CTX.fsum(total)
        return found

    return law


def response_law(epsilon: Fraction, k: int) -> Callable[[int], Law]:
    return lambda truth: {v: exp(epsilon if v == truth else Fraction(0)) / (exp(epsilon) + k - 1) for v in range(k)}


def quantile_law(c: Fraction, level: Fraction) -> Callable[[Sequence[int]], Law]:
    """One level: a bucket's loss is how far the target lies outside the ranks that it covers."""

    def law(h: Sequence[int]) -> Law:
        target = level * sum(h)
        losses = [max(Fraction(0), sum(h[:t]) - target, target - sum(h[: t + 1])) for t in range(len(h))]
        return {(t,): p for t, p in exponential_law(c)([-x for x in losses]).items()}

    return law


def selection_law(epsilon: float, delta: float) -> Callable[[int], Law]:
    """The optimal rule from its recursion."""

    @cache
    def kept(n: int) -> Any:
        if n == 0:
            return CTX.mpf(0)
        before, grow = kept(n - 1), CTX.exp(epsilon)
        return min(grow * before + delta, 1 - (1 - before - delta) / grow, CTX.mpf(1))

    return lambda n: {True: kept(n), False: 1 - kept(n)}


def range_law(finder: RangeFinding, reach: int) -> Callable[[Sequence[int]], Law]:
    """Three noisy counts, and the range that is read from them."""
    pmf = laplace_pmf(Fraction(finder.scale))

    def law(h: Sequence[int]) -> Law:
        found: dict[Any, list[Any]] = {}
        for noise in itertools.product(range(-reach, reach + 1), repeat=len(h)):
            noisy = [a + b for a, b in zip(h, noise, strict=True)]
            found.setdefault(finder.read(noisy), []).append(CTX.fprod(map(pmf, noise)))
        return {each: CTX.fsum(parts) for each, parts in found.items()}

    return law


def ladder_law(epsilon: Fraction, cap: int, reach: int) -> Callable[[Sequence[int]], Law]:
    """Rung by rung; rungs that hold less than 1e-30 are left out."""

    def law(x: Sequence[int]) -> Law:
        weights: Law = {x[0]: CTX.mpf(1)}
        size = 0
        for t in range(1, 400):
            for _ in range(min(x[1] + t - 1, cap)):
                size += 1
                weights[x[0] + size] = weights[x[0] - size] = exp(-epsilon * t / 2)
        total = CTX.fsum(weights.values())
        return {y: weights[y] / total for y in range(-reach, reach + 1)}

    return law


def ramp_law(epsilon: Fraction, reach: int) -> Callable[[Sequence[int]], Law]:
    """The density rounded to integers, from its closed form for first powers."""
    margin, rate = exp(Fraction(0)) * max(0, 1 / float(epsilon) - 1), CTX.mpf(float(epsilon))

    def beyond(level: int, size: Any) -> Any:
        start = level + margin
        u = CTX.sqrt(start * start + 2 * size) - start
        return CTX.exp(-rate * u) * (1 + rate * u / (1 + rate * start))

    def law(x: Sequence[int]) -> Law:
        half = CTX.mpf(1) / 2
        sizes = {k: (beyond(x[1], k - half) - beyond(x[1], k + half)) / 2 for k in range(1, 2 * reach)}
        sizes[0] = 1 - beyond(x[1], half)
        return {y: sizes[abs(y - x[0])] for y in range(-reach, reach + 1)}

    return law


def noisy_bound_law(m: NoisyLocalSensitivity, reach: int) -> Callable[[Sequence[int]], Law]:
    """A mixture over the bound."""
    first = laplace_pmf(1 / (Fraction(m.epsilon) * Fraction(m.share or 0)))
    second = Fraction(m.epsilon) * (1 - Fraction(m.share or 0))

    def law(x: Sequence[int]) -> Law:
        bounds: Counter[int] = Counter()
        for k in range(-200, 201):
            bounds[max(1, min(x[1] + k + m.margin, m.cap))] += first(k)
        pmfs = {b: laplace_pmf(b / second) for b in bounds}
        return {y: CTX.fsum(bounds[b] * pmfs[b](y - x[0]) for b in bounds) for y in range(-reach, reach + 1)}

    return law


# Neighbours -------------------------------------------------------------------------------------


def within_l1(bound: int) -> Callable[[Any, Any], bool]:
    return lambda a, b: sum(abs(x - y) for x, y in pairs(a, b)) <= bound


def within_l2(square: int) -> Callable[[Any, Any], bool]:
    return lambda a, b: sum((x - y) ** 2 for x, y in pairs(a, b)) <= square


def each_within(bound: Any, *, monotone: bool = False) -> Callable[[Any, Any], bool]:
    def neighbours(a: Any, b: Any) -> bool:
        moves = [y - x for x, y in pairs(a, b)]
        one_way = all(m >= 0 for m in moves) or all(m <= 0 for m in moves)
        return all(abs(m) <= bound for m in moves) and (one_way or not monotone)

    return neighbours


def added(bound: int) -> Callable[[Any, Any], bool]:
    """One user comes or leaves, whose weights add up to at most ``bound``."""
    return lambda a, b: each_within(bound, monotone=True)(a, b) and within_l1(bound)(a, b)


def near_levels(a: Any, b: Any) -> bool:
    """A value and its level: the level moves by one at most, and the value by no more than either level."""
    return within_l1(1)(a[1], b[1]) and within_l1(min(a[1], b[1]))(a[0], b[0])


def anything(_: Any, __: Any) -> bool:
    return True


def pairs(a: Any, b: Any) -> Iterable[tuple[Any, Any]]:
    return [(a, b)] if isinstance(a, int) else zip(a, b, strict=True)


def cube(values: Iterable[Any], n: int) -> list[Any]:
    return list(itertools.product(list(values), repeat=n))


# The cases --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A mechanism, a small domain with its neighbours, the exact law, and how much of the promise that uses."""

    name: str
    mechanism: Any
    domain: list[Any]
    neighbours: Callable[[Any, Any], bool]
    law: Callable[[Any], Law]
    used: float
    complete: bool = True


def choice_case(kind: Any, name: str, law: Callable[[Fraction], Any], used: tuple[float, float]) -> list[Case]:
    out = []
    for monotone, factor in ((False, 2), (True, 1)):
        m = kind(epsilon=Fraction(3, 2), candidates=3, sensitivity=1, monotone=monotone)
        rate = Fraction(3, 2) / factor
        domain, near = cube(range(4), 3), each_within(1, monotone=monotone)
        out.append(Case(name + monotone * ", monotone", m, domain, near, law(rate), used[monotone]))
    return out


def above_case(name: str, domain: list[Any], used: float, **kwargs: Any) -> Case:
    m = AboveThreshold(epsilon=Fraction(2), threshold=1, **kwargs)
    first, second = (Fraction(s) for s in m.scales)
    law = above_threshold_law(1, m.positives, (first, second), 110, 3 if m.gap else None)
    near = each_within(m.sensitivity, monotone=m.monotone)
    return Case(f"above threshold, {name}", m, domain, near, law, used, complete=not m.gap)


HALF = Fraction(1, 2)
NOISY_BOUND = NoisyLocalSensitivity(epsilon=Fraction(2), delta=0.1, cap=3, typical=2, share=HALF)
FINDER = RangeFinding(epsilon=Fraction(4), smallest=0, largest=1)
SELECTION = PartitionSelection(epsilon=1, delta=0.1)
CASES = [
    Case(
        "Laplace",
        Laplace(scale=Fraction(5, 4), sensitivity=2),
        list(range(5)),
        within_l1(2),
        additive(laplace_pmf(Fraction(5, 4)), 100),
        1.0,
    ),
    Case(
        "Laplace on vectors",
        Laplace(scale=HALF, sensitivity=2),
        cube(range(3), 2),
        within_l1(2),
        additive(laplace_pmf(HALF), 16),
        1.0,
    ),
    Case(
        "geometric",
        Geometric(epsilon=Fraction(6, 5), sensitivity=3),
        list(range(5)),
        within_l1(3),
        additive(laplace_pmf(Fraction(5, 2)), 190),
        1.0,
    ),
    Case(
        "Gaussian",
        Gaussian(sigma=Fraction(7, 4), sensitivity=2),
        list(range(4)),
        within_l2(4),
        additive(gaussian_pmf(Fraction(7, 4)), 26),
        1.0,
    ),
    Case(
        "Gaussian on vectors",
        Gaussian(sigma=Fraction(3), sensitivity=1.4142135623730951, dimension=2),
        cube(range(2), 2),
        within_l2(2),
        additive(gaussian_pmf(Fraction(3)), 30),
        1.0,
    ),
    *choice_case(Exponential, "exponential", exponential_law, (1.0, 1.0)),
    Case(
        "exponential with rational utilities",
        Exponential(epsilon=1, candidates=3, sensitivity=HALF),
        cube([Fraction(0), HALF, Fraction(1)], 3),
        each_within(HALF),
        exponential_law(Fraction(1)),
        1.0,
    ),
    *choice_case(PermuteAndFlip, "permute and flip", permute_and_flip_law, (0.99, 0.99)),
    *choice_case(ReportNoisyMax, "report noisy max", lambda c: noisy_max_law(1 / c, 60), (0.9, 0.9)),
    above_case("one positive", cube(range(3), 2), 0.5),
    above_case("one positive, monotone", cube(range(3), 2), 0.45, monotone=True),
    above_case("two positives", cube(range(2), 3), 0.4, positives=2),
    above_case("two positives, monotone", cube(range(2), 3), 0.4, positives=2, monotone=True),
    above_case("sensitivity two", cube(range(4), 2), 0.45, sensitivity=2),
    above_case("one positive, gap", cube(range(3), 2), 0.5, gap=True),
    above_case("two positives, gap", cube(range(2), 2), 0.3, positives=2, gap=True),
    above_case("two positives, gap, monotone", cube(range(2), 2), 0.3, positives=2, gap=True, monotone=True),
    Case("yes or no", RandomizedResponse(epsilon=1), [0, 1], anything, response_law(Fraction(1), 2), 1.0),
    Case(
        "one of five",
        RandomizedResponse(epsilon=Fraction(3, 2), categories=5),
        list(range(5)),
        anything,
        response_law(Fraction(3, 2), 5),
        1.0,
    ),
    Case(
        "the median",
        Quantiles(levels=(HALF,), epsilon=Fraction(3, 2), buckets=4, sensitivity=2),
        cube(range(4), 4),
        added(2),
        quantile_law(Fraction(3, 4), HALF),
        0.999,
    ),
    Case(
        "a quantile",
        Quantiles(levels=(Fraction(4, 5),), epsilon=1, buckets=3),
        cube(range(5), 3),
        added(1),
        quantile_law(Fraction(5, 8), Fraction(4, 5)),
        0.6,
    ),
    Case(
        "which keys",
        SELECTION,
        [2, 3, 0, 1, *range(4, 12)],
        within_l1(1),
        selection_law(float(SELECTION.each.epsilon), float(SELECTION.each.delta)),
        0.999,
    ),
    Case(
        "a ladder",
        Ladder(epsilon=Fraction(3, 2), cap=3, typical=2),
        list(itertools.product(range(3), range(1, 4))),
        near_levels,
        ladder_law(Fraction(3, 2), 3, 130),
        0.95,
    ),
    Case(
        "a ramp",
        Ramp(epsilon=HALF, typical=2),
        list(itertools.product(range(3), range(4))),
        near_levels,
        ramp_law(HALF, 300),
        0.75,
        complete=False,
    ),
    Case(
        "a noisy bound",
        NOISY_BOUND,
        list(itertools.product(range(3), range(1, 4))),
        near_levels,
        noisy_bound_law(NOISY_BOUND, 120),
        0.0,
    ),
    Case("a range", FINDER, cube((1, 2), 3), added(1), range_law(FINDER, 9), 0.9),
]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
ONE_EACH = list({type(case.mechanism): case for case in CASES}.values())
every_mechanism = pytest.mark.parametrize("case", ONE_EACH, ids=lambda case: type(case.mechanism).__name__)


@cache
def exact_laws(name: str) -> dict[Hashable, Law]:
    (case,) = (case for case in CASES if case.name == name)
    return {x: case.law(x) for x in case.domain}


def neighbouring_laws(case: Case) -> Iterable[tuple[Law, Law]]:
    laws = exact_laws(case.name)
    return [(laws[a], laws[b]) for a, b in itertools.permutations(case.domain, 2) if case.neighbours(a, b)]


def log_ratios(p: Law, q: Law) -> list[Any]:
    return [CTX.log(p[o] / q[o]) for o in p if p[o] > CTX.mpf(10) ** -25 and o in q]


def share_of_promise(event: events.Event, p: Law, q: Law) -> Any:
    """How much of what the event promises this pair uses: above one is a violation."""
    match event:
        case events.Pure(epsilon) | events.RandomizedResponse(epsilon):
            return max(map(abs, log_ratios(p, q))) / CTX.mpf(float(epsilon))
        case events.DiscreteLaplace(scale, sensitivity):
            return max(map(abs, log_ratios(p, q))) * CTX.mpf(float(scale)) / sensitivity
        case events.Exponential(epsilon):
            ratios = log_ratios(p, q)
            return (max(ratios) - min(ratios)) / CTX.mpf(float(epsilon))
        case events.Approximate(epsilon, delta):
            return CTX.fsum(max(p[o] - CTX.exp(epsilon) * q[o], CTX.mpf(0)) for o in p) / CTX.mpf(float(delta))
        case events.DiscreteGaussian(sigma, sensitivity):
            rho = CTX.mpf(float(sensitivity)) ** 2 / (2 * CTX.mpf(float(sigma)) ** 2)
            return max(renyi(p, q, alpha) / (alpha * rho) for alpha in (1.25, 2, 3, 10))
    raise AssertionError(event)


def renyi(p: Law, q: Law, alpha: float) -> Any:
    masses = [(float(x), float(q[o])) for o, x in p.items() if x > 1e-200 and q[o] > 1e-200]
    return math.log(math.fsum(y * (x / y) ** alpha for x, y in masses)) / (alpha - 1)


# Event matches noise ----------------------------------------------------------------------------


def test_every_mechanism_has_its_law_written_down_here() -> None:
    sampled = {name for name in mechanisms.__all__ if hasattr(getattr(mechanisms, name), "sample")}
    elsewhere = {"Mechanism", "SubsetChoice"}  # a protocol; its law is in test_subsets
    assert sampled - elsewhere == {type(case.mechanism).__name__ for case in CASES}


@every_case
def test_no_neighbours_are_easier_to_tell_apart_than_the_event_says(case: Case) -> None:
    shares = [share_of_promise(case.mechanism.event, p, q) for p, q in neighbouring_laws(case)]
    assert max(shares) <= 1 + 1e-11
    assert max(shares) >= case.used - 1e-11, "the promise should be used, or the noise is too wide"


@every_case
def test_no_accountant_promises_more_than_the_exact_law_keeps(case: Case) -> None:
    """Hockey-stick divergences of all neighbours, summed exactly, against what each accountant makes of the event."""
    laws = [([float(x) for x in p.values()], [float(q.get(o, 0)) for o in p]) for p, q in neighbouring_laws(case)]
    for epsilon in (0.0, 0.25, 1.0, 2.0):
        factor = math.exp(epsilon)
        delta = max(math.fsum(max(x - factor * y, 0.0) for x, y in zip(p, q, strict=True)) for p, q in laws)
        for method in ("pld", "rdp", "zcdp", "basic"):
            if method == "basic" and isinstance(case.mechanism, Gaussian):
                continue  # has nothing to say about Gaussian noise
            if method in {"rdp", "zcdp"} and isinstance(case.mechanism, PartitionSelection | NoisyLocalSensitivity):
                continue  # have nothing to say about a delta
            promised = account(case.mechanism.event, method=method).delta(epsilon)
            assert delta <= promised + 1e-12
            if method == "pld" and case.used == 1 and getattr(case.mechanism, "dimension", 1) == 1:
                assert promised <= delta * 1.02 + 1e-6, "the default accountant is tight"


@every_case
def test_the_exact_law_is_a_probability_law(case: Case) -> None:
    total = CTX.fsum(exact_laws(case.name)[case.domain[0]].values())
    assert total <= 1 + CTX.mpf(10) ** -20
    assert not case.complete or total > 1 - CTX.mpf(10) ** -12


@every_mechanism
def test_events_of_several_releases_add_up(case: Case) -> None:
    event = case.mechanism.event
    assert event + event == 2 * event
    assert sum((event for _ in range(9)), start=events.NOTHING) == 9 * event
    assert replace(case.mechanism).event == event, "an event is read from the fields alone"


# Noise matches law ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Draws:
    """Many outcomes of one mechanism at one input, and the law they should have at a scale ``off`` the declared one."""

    name: str
    draw: Callable[[Bits], Sequence[Hashable]]
    law: Callable[[Fraction], Law]


def repeated(mechanism: Any, value: Any, times: int) -> Callable[[Bits], Sequence[Hashable]]:
    return lambda bits: [mechanism.sample(value, bits) for _ in range(times)]


def at_once(mechanism: Any, value: int, times: int) -> Callable[[Bits], Sequence[Hashable]]:
    return lambda bits: mechanism.sample(np.full(times, value), bits).tolist()


def rows_at_once(mechanism: Any, value: Sequence[int], times: int) -> Callable[[Bits], Sequence[Hashable]]:
    return lambda bits: [tuple(found) for found in mechanism.sample(np.tile(value, (times, 1)), bits).tolist()]


def many_heads(c: Fraction, gap: int, n: int) -> Law:
    """Permute and flip when n − 1 candidates tie at ``gap``: the first is the best."""
    p = exp(-c * gap)
    best = (1 - (1 - p) ** n) / (n * p)
    return {0: best, **dict.fromkeys(range(1, n), (1 - best) / (n - 1))}


U = (4, *[0] * 9)
DRAWS = [
    Draws(
        "Laplace",
        at_once(Laplace(scale=3), 7, 20_000),
        lambda off: additive(laplace_pmf(3 * off), 120)(7),
    ),
    Draws(
        "Geometric",
        at_once(Geometric(epsilon=Fraction(1, 2), sensitivity=2), -4, 20_000),
        lambda off: additive(laplace_pmf(4 * off), 160)(-4),
    ),
    Draws(
        "Gaussian",
        at_once(Gaussian(sigma=3, dimension=20_000), 7, 20_000),
        lambda off: additive(gaussian_pmf(3 * off), 50)(7),
    ),
    Draws(
        "Exponential",
        repeated(Exponential(epsilon=1, candidates=10), U, 8000),
        lambda off: exponential_law(HALF / off)(U),
    ),
    Draws(
        "PermuteAndFlip",
        repeated(PermuteAndFlip(epsilon=1, candidates=10), U, 10_000),
        lambda off: many_heads(HALF / off, 4, 10),
    ),
    Draws(
        "ReportNoisyMax",
        repeated(ReportNoisyMax(epsilon=1, candidates=4), (5, 0, 0, 0), 15_000),
        lambda off: noisy_max_law(2 * off, 80)((5, 0, 0, 0)),
    ),
    Draws(
        "AboveThreshold",
        repeated(AboveThreshold(epsilon=2, threshold=0, gap=True), (8,), 9000),
        lambda off: above_threshold_law(0, 1, (Fraction(83, 64) * off, Fraction(83, 51) * off), 60, 40)((8,)),
    ),
    Draws(
        "RandomizedResponse",
        at_once(RandomizedResponse(epsilon=2, categories=6), 4, 20_000),
        lambda off: response_law(2 / off, 6)(4),
    ),
    Draws(
        "Quantiles",
        rows_at_once(Quantiles(levels=(HALF,), epsilon=1, buckets=6), (9, 0, 3, 3, 0, 9), 8000),
        lambda off: quantile_law(1 / off, HALF)((9, 0, 3, 3, 0, 9)),
    ),
    Draws(
        "PartitionSelection",
        at_once(SELECTION, 2, 20_000),
        lambda off: selection_law(float(SELECTION.each.epsilon / off), float(SELECTION.each.delta / off))(2),
    ),
]
every_draw = pytest.mark.parametrize("draws", DRAWS, ids=lambda draws: draws.name)


def fit(outcomes: Sequence[Hashable], law: Law) -> float:
    """The p-value of the chi-square test, rare outcomes counted together."""
    seen, n = Counter(outcomes), len(outcomes)
    common = [o for o, p in law.items() if p * n >= 10]
    observed = [seen[o] for o in common]
    expected = [float(law[o]) * n for o in common]
    if n - sum(expected) > 1:
        observed.append(n - sum(observed))
        expected.append(n - sum(expected))
    scale = n / sum(expected)
    return float(stats.chisquare(observed, [e * scale for e in expected]).pvalue)


@pytest.mark.statistical
@every_draw
def test_samples_have_the_declared_scale_and_no_other(draws: Draws) -> None:
    outcomes = draws.draw(seeded(2024))
    assert fit(outcomes, draws.law(Fraction(1))) > 1e-4
    assert fit(outcomes, draws.law(Fraction(11, 10))) < 1e-6
    assert fit(outcomes, draws.law(Fraction(10, 11))) < 1e-6


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip, ReportNoisyMax])
def test_choices_do_not_depend_on_the_order_of_the_candidates(kind: Any) -> None:
    m, bits = kind(epsilon=2, candidates=4), seeded(5)
    forward = Counter(m.sample((3, 1, 1, 0), bits) for _ in range(4000))
    backward = Counter(3 - m.sample((0, 1, 1, 3), bits) for _ in range(4000))
    table = [[c[i] for i in range(4)] for c in (forward, backward)]
    assert stats.chi2_contingency(table).pvalue > 1e-4
    assert abs(forward[1] - forward[2]) < 5 * math.sqrt(forward[1] + forward[2])


@pytest.mark.statistical
@pytest.mark.parametrize("m", [Laplace(scale=4), Geometric(epsilon=HALF), Gaussian(sigma=4, dimension=2)])
def test_entries_of_a_vector_get_independent_noise_of_one_law(m: Any) -> None:
    bits = seeded(11)
    noise = np.array([m.sample([100, -100], bits) - [100, -100] for _ in range(4000)])
    assert abs(np.corrcoef(noise.T)[0, 1]) < 5 / math.sqrt(4000)
    assert stats.ks_2samp(noise[:, 0], noise[:, 1]).pvalue > 1e-4


# Error and interval -----------------------------------------------------------------------------

CONFIDENCES = (0.5, 0.9, 0.95, 0.999)


@pytest.mark.parametrize(
    ("m", "pmf"),
    [
        (Laplace(scale=3), laplace_pmf(Fraction(3))),
        (Laplace(scale=Fraction(1, 3)), laplace_pmf(Fraction(1, 3))),
        (Geometric(epsilon=HALF, sensitivity=2), laplace_pmf(Fraction(4))),
        (Gaussian(sigma=3), gaussian_pmf(Fraction(3))),
        (Gaussian(sigma=Fraction(1, 3)), gaussian_pmf(Fraction(1, 3))),
    ],
    ids=["Laplace", "narrow Laplace", "Geometric", "Gaussian", "narrow Gaussian"],
)
def test_error_variance_and_interval_of_added_noise_follow_from_the_law(m: Any, pmf: Callable[[int], Any]) -> None:
    span = range(-300, 301)
    assert m.error == pytest.approx(float(CTX.fsum(abs(k) * pmf(k) for k in span)), rel=1e-9)
    assert m.variance == pytest.approx(float(CTX.fsum(k * k * pmf(k) for k in span)), rel=1e-9)
    for confidence in CONFIDENCES:
        width = m.interval(confidence)
        assert CTX.fsum(pmf(k) for k in range(-width, width + 1)) >= confidence
        assert CTX.fsum(pmf(k) for k in range(-width + 1, width)) < confidence


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("positives", [1, 3])
def test_error_and_interval_of_a_comparison_follow_from_both_noises(positives: int, monotone: bool) -> None:
    m = AboveThreshold(epsilon=1, threshold=0, positives=positives, monotone=monotone)
    first, second = (laplace_pmf(Fraction(s)) for s in m.scales)
    reach = range(-400, 401)
    a, b = (np.array([float(f(k)) for k in reach]) for f in (first, second))
    difference = np.convolve(a, b)
    size = np.abs(np.arange(-800, 801))
    assert m.error == pytest.approx(float((size * difference).sum()), rel=1e-9)
    for confidence in CONFIDENCES:
        width = m.interval(confidence)
        assert difference[size <= width].sum() >= confidence - 1e-12
        assert difference[size < width].sum() < confidence


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(
    ("kind", "law"),
    [
        (Exponential, lambda rate, _: exponential_law(rate)),
        (PermuteAndFlip, lambda rate, n: lambda u: many_heads(rate, max(u) - min(u), n)),
        (ReportNoisyMax, lambda rate, _: noisy_max_law(1 / rate, 100)),
    ],
    ids=["Exponential", "PermuteAndFlip", "ReportNoisyMax"],
)
def test_choices_keep_their_error_and_interval_when_all_others_tie(kind: Any, law: Any, monotone: bool) -> None:
    n, epsilon = 4, Fraction(1, 2)
    m = kind(epsilon=epsilon, candidates=n, monotone=monotone)
    of = law(epsilon / (1 if monotone else 2), n)
    ties = range(1, 40) if kind is not ReportNoisyMax else (1, 3, 6, 10, 16, 24, 36)
    losing = {gap: 1 - float(of((gap, *[0] * (n - 1)))[0]) for gap in ties}
    worst = max(gap * p for gap, p in losing.items())
    assert worst <= m.error * (1 + 1e-9)
    assert kind is ReportNoisyMax or worst >= 0.95 * m.error, "the bound is reached"
    for confidence in CONFIDENCES:
        beyond = [p for gap, p in losing.items() if gap > m.interval(confidence)]
        assert max(beyond, default=0.0) <= 1 - confidence + 1e-9


@pytest.mark.statistical
@every_mechanism
def test_a_confidence_outside_zero_and_one_is_refused(case: Case) -> None:
    for confidence in (0, 1, -0.5, 1.5, math.nan, math.inf, True, "0.95", None):
        with pytest.raises(DefocusError, match="confidence"):
            case.mechanism.interval(confidence)


@every_mechanism
def test_a_wider_interval_is_more_certain(case: Case) -> None:
    widths = [case.mechanism.interval(c) for c in (0.01, 0.5, 0.9, 0.99, 1 - 1e-12)]
    assert widths == sorted(widths)
    assert widths[0] >= 0
    assert widths[-1] > widths[0]


# Bits -------------------------------------------------------------------------------------------


@every_mechanism
def test_bits_are_drawn_only_in_sample_and_only_from_the_source_given(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drawn(*_: Any) -> Any:
        raise AssertionError("a random bit was drawn from the system")

    monkeypatch.setattr("os.urandom", drawn)
    monkeypatch.setattr("defocus.noise.bits._System.words", drawn)
    monkeypatch.setattr("defocus.noise.bits._System.integer", drawn)
    m = replace(case.mechanism)
    _ = m.event, m.error, m.interval(0.9), hash(m), repr(m)
    m.check(case.domain[-1])
    m.sample(case.domain[-1], seeded(1))
    with pytest.raises(AssertionError, match="drawn from the system"):
        m.sample(case.domain[-1])


@every_mechanism
def test_equal_bits_give_equal_results_and_other_bits_others(case: Case) -> None:
    def run(seed: int) -> list[Any]:
        bits = seeded(seed)
        return [np.asarray(case.mechanism.sample(case.domain[0], bits), dtype=object).tolist() for _ in range(30)]

    assert run(1) == run(1)
    assert run(1) != run(2)


@every_mechanism
@pytest.mark.parametrize("bits", [42, 0, "seed", np.random.default_rng(1), object()], ids=lambda b: type(b).__name__)
def test_a_seed_is_not_a_source_of_bits(case: Case, bits: Any) -> None:
    with pytest.raises(DefocusError, match="source of cryptographic random bits"):
        case.mechanism.sample(case.domain[0], bits)


# Shape of a mechanism ---------------------------------------------------------------------------


@every_mechanism
def test_a_mechanism_is_frozen_data_that_compares_hashes_and_travels(case: Case) -> None:
    m = case.mechanism
    fits: bool = isinstance(case.mechanism, Mechanism)
    assert fits
    assert pickle.loads(pickle.dumps(m)) == m  # noqa: S301  # our own bytes
    assert hash(replace(m)) == hash(m)
    with pytest.raises(FrozenInstanceError):
        setattr(m, fields(m)[0].name, 1)


@every_mechanism
def test_parameters_out_of_range_are_refused_and_named(case: Case) -> None:
    numbers = {"epsilon", "scale", "sigma", "sensitivity", "candidates", "positives", "categories", "dimension"}
    numbers |= {"buckets", "groups", "delta", "cap", "step", "power", "factor"}
    others: dict[str, tuple[Any, ...]] = {
        "smallest": (1, 0.5, math.nan, True, "1", None, 2000),
        "largest": (0, 0.5, math.nan, True, "1", None, 2000),
        "share": (1, -0.1, math.nan, True, "1"),
        "typical": (-1, 0.5, math.nan, True, "1", None),
        "default": (1, "ab", (1,), (2, 1), (math.nan, 1)),
    }
    for field in fields(case.mechanism):
        bad: tuple[Any, ...] = others.get(field.name, (1, "yes", None, 0.5))
        if field.name in numbers:
            bad = (0, -1, math.nan, math.inf, -math.inf, True, "1", None, 10**400, 1j)
        elif field.name == "threshold":
            bad = (0.5, math.nan, True, "1", None, 2**63, -(2**63) - 1)
        for value in bad:
            with pytest.raises(DefocusError) as refusal:
                replace(case.mechanism, **{field.name: value})
            assert refusal.value.fix


@every_mechanism
@pytest.mark.parametrize(
    ("value", "error"),
    [
        (0.5, NotExactError),
        ([1.0, 2.0, 3.0], NotExactError),
        (np.array([0.5, 1.0, 2.0]), NotExactError),
        ([], UnfitDataError),
        (np.array([], dtype=np.int64), UnfitDataError),
        (np.zeros((2, 2), dtype=np.int64), UnfitDataError),
        (True, UnfitDataError),
        ([True, False, True], UnfitDataError),
        (np.array([True, False, True]), UnfitDataError),
        ("12", UnfitDataError),
        (["1", "2", "3"], UnfitDataError),
        ([None, 1, 2], UnfitDataError),
        (None, UnfitDataError),
        (math.nan, NotExactError),
        ({1: 2}, UnfitDataError),
        ([[1], [2], [3]], UnfitDataError),
    ],
    ids=repr,
)
def test_unfit_data_is_refused_before_bits_are_drawn_and_is_never_quoted(case: Case, value: Any, error: Any) -> None:
    for act in (case.mechanism.check, case.mechanism.sample):
        with pytest.raises(UnfitDataError) as refusal:
            act(value)
        assert refusal.value.fix
        if isinstance(value, float | list) and isinstance(refusal.value, NotExactError):
            assert "Grid" in refusal.value.fix
            assert "0.5" not in refusal.value.what
    assert issubclass(error, UnfitDataError)


@pytest.mark.parametrize(
    "m", [Laplace(scale=2), Geometric(epsilon=1), Gaussian(sigma=2)], ids=lambda m: type(m).__name__
)
@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 0])
def test_a_64_bit_value_never_overflows_and_never_errs(m: Any, value: int) -> None:
    bits = seeded(3)
    noisy = [m.sample(value, bits) for _ in range(200)]
    assert all(type(x) is int and -(2**63) <= x < 2**63 for x in noisy)
    assert max(abs(x - value) for x in noisy) < 100
    assert {m.sample(np.array([value]), bits).dtype for _ in range(3)} == {np.dtype(np.int64)}


@pytest.mark.parametrize(
    "m",
    [Laplace(scale=2), Geometric(epsilon=1), Gaussian(sigma=2), AboveThreshold(epsilon=1, threshold=0)],
    ids=lambda m: type(m).__name__,
)
@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, [2**70], np.array([2**63], dtype=np.uint64)], ids=repr)
def test_integers_beyond_64_bits_are_cut_before_the_noise_and_never_refused(m: Any, value: Any) -> None:
    number = int(np.atleast_1d(value)[0]) if not isinstance(value, list) else value[0]
    end = 2**63 - 1 if number > 0 else -(2**63)
    cut = [end] if isinstance(value, list | np.ndarray) else end
    assert np.array_equal(np.asarray(m.sample(value, seeded(3))), np.asarray(m.sample(cut, seeded(3))))

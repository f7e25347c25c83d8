"""The truth, by other means: 60-digit closed forms, enumeration, and inversion along a contour."""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import mpmath as mp
import numpy as np
from scipy.special import erfcx

mp.mp.dps = 60

Real: TypeAlias = Any
"""A number of many digits."""
Pairs: TypeAlias = list[tuple[Real, Real]]
"""Each outcome's probability under both laws."""


@dataclass(frozen=True)
class Law:
    """Probabilities of the loss lying above or not above a threshold, under P and under Q."""

    p_above: Callable[[Real], Real]
    q_above: Callable[[Real], Real]
    p_below: Callable[[Real], Real]
    q_below: Callable[[Real], Real]

    def excess(self, l: float) -> Real:
        """The profile over its floor max(0, 1 - e^l), from whichever tail does not cancel."""
        x = mp.mpf(l)
        if x >= 0:
            return self.p_above(x) - mp.exp(x) * self.q_above(x)
        return mp.exp(x) * self.q_below(x) - self.p_below(x)


def gaussian(mu: float) -> Law:
    m = mp.mpf(mu)

    def upper(z: Real) -> Real:
        return mp.erfc(z / mp.sqrt(2)) / 2

    return Law(
        lambda l: upper(l / m - m / 2),
        lambda l: upper(l / m + m / 2),
        lambda l: upper(m / 2 - l / m),
        lambda l: upper(-m / 2 - l / m),
    )


def replaced_gaussian(mu: float, rate: float) -> Law:
    """(1-q) N(0, 1) + q N(m, 1) against (1-q) N(0, 1) + q N(-m, 1)."""
    m, q = mp.mpf(mu), mp.mpf(rate)

    def place(l: Real) -> Real:
        """Where the loss is l: the positive root of k y^2 - (1-q)(e^l - 1) y - k e^l, y = e^(m x)."""
        k, half = q * mp.exp(-m * m / 2), (1 - q) * mp.expm1(l) / 2
        root = mp.sqrt(half**2 + k**2 * mp.exp(l))
        return mp.log((half + root) / k if half > 0 else k * mp.exp(l) / (root - half)) / m

    def upper(z: Real, shift: Real) -> Real:
        return (1 - q) * mp.erfc(z / mp.sqrt(2)) / 2 + q * mp.erfc((z - shift) / mp.sqrt(2)) / 2

    return Law(
        lambda l: upper(place(l), m),
        lambda l: upper(place(l), -m),
        lambda l: upper(-place(l), -m),
        lambda l: upper(-place(l), m),
    )


def laplace(epsilon: float) -> Law:
    e = mp.mpf(epsilon)

    def left(z: Real) -> Real:
        """Of a unit Laplace law."""
        return mp.exp(z) / 2 if z < 0 else 1 - mp.exp(-z) / 2

    def place(l: Real) -> Real:
        """The loss of Lap(0) against Lap(e) exceeds l to the left of this."""
        return mp.inf if l < -e else (-mp.inf if l >= e else (e - l) / 2)

    return Law(
        lambda l: left(place(l)),
        lambda l: left(place(l) - e),
        lambda l: left(-place(l)),
        lambda l: left(e - place(l)),
    )


def finite(pairs: Pairs) -> Law:
    """Any law of finitely many outcomes; one that only P or only Q knows has an infinite loss."""
    losses = [mp.inf if q == 0 else (-mp.inf if p == 0 else mp.log(p / q)) for p, q in pairs]

    def total(side: int, *, above: bool) -> Callable[[Real], Real]:
        return lambda l: mp.fsum(pair[side] for pair, loss in zip(pairs, losses, strict=True) if (loss > l) is above)

    return Law(total(0, above=True), total(1, above=True), total(0, above=False), total(1, above=False))


def sampled_law(inner: Law, rate: float) -> Law:
    """P' = qP + (1-q)Q against Q: the loss grows with the inner one."""
    q = mp.mpf(rate)

    def at(tail: Callable[[Real], Real], beyond: int) -> Callable[[Real], Real]:
        """A tail of the inner law as one of the outer loss, which never lies below log(1-q)."""

        def outer(l: Real) -> Real:
            odds = (mp.exp(l) - 1 + q) / q
            return mp.mpf(beyond) if odds < 0 else tail(mp.log(odds) if odds > 0 else -mp.inf)

        return outer

    def mixed(p: Callable[[Real], Real], other: Callable[[Real], Real]) -> Callable[[Real], Real]:
        return lambda l: q * p(l) + (1 - q) * other(l)

    p_above, q_above = at(inner.p_above, 1), at(inner.q_above, 1)
    p_below, q_below = at(inner.p_below, 0), at(inner.q_below, 0)
    return Law(mixed(p_above, q_above), q_above, mixed(p_below, q_below), q_below)


def exchanged(law: Law) -> Law:
    """For laws without atoms at the thresholds asked for."""
    return Law(
        lambda l: law.q_below(-l), lambda l: law.p_below(-l), lambda l: law.q_above(-l), lambda l: law.p_above(-l)
    )


def response(epsilon: float, categories: int = 2, delta: float = 0.0) -> Pairs:
    """Randomised response that fails openly with probability delta."""
    e, k, d = mp.exp(mp.mpf(epsilon)), categories, mp.mpf(delta)
    q = (1 - d) / (e + k - 1)
    pairs = [(e * q, q), (q, e * q)]
    if k > 2:
        pairs.append(((k - 2) * q, (k - 2) * q))
    return pairs + ([(d, mp.mpf(0)), (mp.mpf(0), d)] if d else [])


def discrete_laplace(scale: float, shift: int) -> Pairs:
    """Outcomes beyond both centres are gathered: their losses are equal."""
    b = mp.mpf(scale)
    a = mp.exp(-1 / b)
    at = (1 - a) / (1 + a)
    pairs = [(at * a**x, at * a ** (shift - x)) for x in range(1, shift)]
    end, far = 1 / (1 + a), a**shift / (1 + a)
    return [(end, far), *pairs, (far, end)]


def discrete_gaussian(sigma: float, shift: int, *, reach: float = 39.5) -> Pairs:
    s = mp.mpf(sigma)
    n = math.ceil(reach * sigma) + 1
    weight = {x: mp.exp(-(mp.mpf(x) ** 2) / (2 * s * s)) for x in range(-n - shift, n + shift + 1)}
    total = mp.fsum(weight.values())
    return [(weight[x] / total, weight[x - shift] / total) for x in range(-n, n + shift + 1)]


def sampled(pairs: Pairs, rate: float) -> Pairs:
    q = mp.mpf(rate)
    return [(q * a + (1 - q) * b, b) for a, b in pairs]


def reversed_pairs(pairs: Pairs) -> Pairs:
    return [(b, a) for a, b in pairs]


def repeated(pairs: Pairs, times: int) -> Pairs:
    """All ways to share ``times`` among the outcomes."""
    found = []
    for bars in itertools.combinations(range(times + len(pairs) - 1), len(pairs) - 1):
        edges = (-1, *bars, times + len(pairs) - 1)
        counts = [b - a - 1 for a, b in itertools.pairwise(edges)]
        ways = math.factorial(times) // math.prod(map(math.factorial, counts))
        p = mp.fprod(pair[0] ** n for pair, n in zip(pairs, counts, strict=True))
        q = mp.fprod(pair[1] ** n for pair, n in zip(pairs, counts, strict=True))
        found.append((ways * p, ways * q))
    return found


def both(first: Pairs, second: Pairs) -> Pairs:
    return [(a * c, b * d) for a, b in first for c, d in second]


def delta_of(pairs: Iterable[tuple[Real, Real]], epsilon: float) -> Real:
    e = mp.exp(mp.mpf(epsilon))
    return mp.fsum(p - e * q for p, q in pairs if p > e * q)


def epsilon_of(delta_at: Callable[[Real], Real], delta: float, *, digits: int = 60) -> Real:
    """Where a falling curve meets delta, from below by less than 2^-digits of it."""
    low, high = mp.mpf(0), mp.mpf(1)
    if delta_at(low) <= delta:
        return low
    while delta_at(high) > delta:
        low, high = high, 2 * high
    for _ in range(digits):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
    return low


def gaussian_epsilon(mu: Real, delta: float) -> Real:
    return epsilon_of(lambda e: gaussian(mu).excess(e), delta, digits=90)


def sampled_gaussian_epsilon(sigma: float, rate: float, times: int, delta: float) -> float:
    r"""Epsilon of sampled Gaussians by inverting their moment generating function.

    :math:`\delta(\varepsilon) = \frac{1}{2\pi i}\int e^{K(z) - z\varepsilon}/(z(1+z))\,dz` along a vertical
    line; K by the trapezoidal rule, which converges geometrically. No grid of losses is involved.
    The unit is removed, the worse direction at small delta.
    """
    return _Contour(sigma, rate, times).epsilon(delta)


class _Contour:
    def __init__(self, sigma: float, rate: float, times: int) -> None:
        self._sigma, self._rate, self._times = sigma, rate, times

    def cumulant(self, z: Any) -> Any:
        z = np.atleast_1d(np.asarray(z, dtype=complex))
        s = self._sigma
        low = -14 * s + min(0.0, float(z.real.min()) + 1)
        high = 14 * s + max(0.0, float(z.real.max()) + 1) + 1
        step = min(s / 16, math.pi * s * s / 7)
        x = np.arange(low, high, step)
        loss = np.logaddexp(math.log1p(-self._rate), math.log(self._rate) + (2 * x - 1) / (2 * s * s))
        weight = -x * x / (2 * s * s) + math.log(step / (s * math.sqrt(2 * math.pi)))
        exponent = weight + np.multiply.outer(1 + z, loss)
        largest = exponent.real.max(axis=1)
        return self._times * (largest + np.log(np.exp(exponent - largest[:, None]).sum(axis=1)))

    def moments(self, theta: float) -> tuple[float, float, float]:
        h = 1e-3 * theta
        a, b, c = self.cumulant(np.array([theta - h, theta, theta + h])).real
        return b, (c - a) / (2 * h), (a + c - 2 * b) / h**2

    def log_delta(self, epsilon: float, theta: float, spread: float, need: float) -> float:
        # What lies a window below is smaller by e^(theta window), and must be small beside delta.
        # The law is a bulk and a few rare large losses, so its transform is as wide as the bulk is narrow.
        turn = 2 * math.pi / max(20 * spread, need / theta)
        t = turn * np.arange(int(10 / min(spread / 2, 0.2) / turn) + 2)
        z = theta + 1j * t
        k = self.cumulant(z)
        values = (np.exp(k - k[0].real - 1j * t * epsilon) / (z * (1 + z))).real
        total = (values[0] / 2 + values[1:].sum()) * turn / math.pi
        return math.log(total) + float(k[0].real) - theta * epsilon

    def epsilon(self, delta: float) -> float:
        low, high, theta, mean = math.log(1e-3), math.log(1e4), 1.0, 0.0
        for _ in range(60):
            theta = math.exp((low + high) / 2)
            value, mean, variance = self.moments(theta)
            spread = math.sqrt(max(variance, 1e-300))
            share = 0.5 * (erfcx(theta * spread / math.sqrt(2)) - erfcx((1 + theta) * spread / math.sqrt(2)))
            rare = value - theta * mean + math.log(max(share, 1e-300)) < math.log(delta)
            low, high = (low, math.log(theta)) if rare else (math.log(theta), high)
        spread = math.sqrt(self.moments(theta)[2])
        epsilon = mean
        for _ in range(30):
            here, there = (self.log_delta(e, theta, spread, 40 - math.log(delta)) for e in (epsilon, epsilon + 1e-6))
            move = (math.log(delta) - here) * 1e-6 / (there - here)
            epsilon += move
            if abs(move) < 1e-11:
                break
        return epsilon


def shifts(dimension: int, norm: float) -> Sequence[tuple[int, ...]]:
    """Integer vectors of at most this norm, up to order and sign of their entries, which change nothing."""
    entries = range(int(norm) + 1)
    found = itertools.combinations_with_replacement(entries, dimension)
    return [v for v in found if 0 < sum(x * x for x in v) <= norm * norm]


def laplace_delta(epsilon: float, times: int, at: float) -> Real:
    r"""Delta of so many Laplace releases, by residues.

    With u = s + 1/2, the generating function to the power k is a sum over j of :math:`e^{(k-2j)u\varepsilon}` times a
    polynomial in 1/u; only where the exponent less u·at is positive does the contour close around the poles.
    """
    with mp.workdps(60 + 3 * times):
        e, l = mp.mpf(epsilon), mp.mpf(at)
        found = mp.mpf(0)
        for j in range(times + 1):
            reach = (times - 2 * j) * e - l
            if reach <= 0:
                break
            # (1 + 2u)^(k-j) (2u - 1)^j / (1 - 4u^2) in powers of u, in whole numbers.
            powers = [1]
            for sign in [1] * (times - j) + [-1] * j:
                powers = [sign * a + 2 * b for a, b in zip([*powers, 0], [0, *powers], strict=True)]
            for i in range(2, len(powers)):
                powers[i] += 4 * powers[i - 2]
            pole = mp.fsum(reach**m / mp.factorial(m) * powers[times - 1 - m] for m in range(times))
            rest = mp.exp(reach / 2) if j == 0 else 0
            found += mp.binomial(times, j) * (rest - 4 * pole / mp.mpf(4) ** times)
        return found * mp.exp((l - times * e) / 2)

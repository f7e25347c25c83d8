r"""How likely many right guesses about coins are at most, under a promise: the tests behind one run with canaries.

Each of m canaries was put in by a fair coin of its own. Of k coins a guess is made, of the others none, and W guesses
are right. Three promises bound how large W may be:

- :func:`approximate`: every canary is protected with :math:`(\varepsilon, \delta)`;
- :func:`tradeoff`: every canary is protected by a curve :math:`\delta(\varepsilon)`, whatever the others' coins are;
- :func:`independent`: the same, where the release is made of m independent ones, each of one canary.

The second is the first for all points of a curve at once. The third says more than the second: no chance event may tell
about many canaries together. It holds for Gaussian noise on a sum to which canaries add orthogonal vectors.
"""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, betaincinv

from defocus.errors import Number
from defocus.privacy.losses import Loss

__all__ = ["Curve", "approximate", "independent", "least_epsilon", "tradeoff"]

_Floats = NDArray[np.float64]
_SAFE = 1e-9
_HALF = 0.5
_CELLS = 256
_POINTS = 12
_SHOWN = 256
_FAR = 50.0
_MOST = 64.0
_TELLING = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def approximate(m: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    r"""How likely so many right guesses are at most under (epsilon, delta)-DP.

    Guarantee:
        :math:`\Pr[W \ge v] \le f(v) + 2m\delta\max_i (f(v-i) - f(v))/i`, where f is the upper tail of
        Bin(k, 1/(1+e^{-ε})); where that is above one half, where it may fail, one is told.
    Reference:
        Steinke, Nasr, Jagielski (2023), Privacy auditing with one (1) training run, theorem 5.2.

    >>> approximate(10, 10, 10, 0.0, 0.0) * 1024 < 1.001
    True
    """
    chance = 1 / (1 + np.exp(-epsilon))
    tails = np.ones(right + 1)
    if right:
        tails[1:] = bdtrc(np.arange(right), guesses, chance)  # tails[k] is the probability of at least k
    gained = (tails[:right][::-1] - tails[right]) / np.arange(1, right + 1)
    whole = float(tails[right] + 2 * m * delta * max(float(gained.max(initial=0.0)), 0.0)) * (1 + _SAFE)
    return whole if whole <= _HALF else 1.0


def least_epsilon(m: int, guesses: int, right: int, delta: float, error: float) -> float:
    """The least epsilon that so many right guesses do not reject by :func:`approximate`, rounded down.

    >>> least_epsilon(100, 50, 25, 0.0, 0.05), 3 < least_epsilon(100, 100, 100, 0.0, 0.05) < 4
    (0.0, True)
    """
    low, high = 0.0, _MOST
    if approximate(m, guesses, right, 0.0, delta) > error:
        return 0.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if approximate(m, guesses, right, middle, delta) <= error else (low, middle)
    return low


@final
@dataclass(frozen=True, slots=True)
class Curve:
    r"""Some points of a curve :math:`\delta(\varepsilon)`: each a promise, on average over both directions of a coin.

    >>> Curve.of_pure(0.0).right(1.0)
    0.5
    """

    epsilons: _Floats
    deltas: _Floats

    @classmethod
    def of(cls, loss: Loss, delta: Number, changes: int = 1) -> "Curve":
        """The curve of an event at 12 epsilons, the last where ``delta`` is all that is left; or of two changes.

        Where one person comes or goes, one direction often tells less: of a step in which few are drawn, say.
        """
        end = min(loss.epsilon(max(float(delta), 1e-12)), _FAR)
        epsilons = np.unique(np.linspace(0.0, 1.0, _POINTS) ** 1.5 * end)
        both = np.minimum([loss.directions(each) for each in epsilons.tolist()], 1.0) * (1 + _SAFE)
        return cls(epsilons, both.max(axis=1)).twice() if changes == 2 else cls(epsilons, both.mean(axis=1))

    @classmethod
    def of_pure(cls, epsilon: Number, delta: Number = 0) -> "Curve":
        """The curve that goes with one pair."""
        return cls(np.array([float(epsilon)]), np.array([float(delta)]))

    def twice(self) -> "Curve":
        r"""The curve of two changes, one after the other, each of which keeps this one in both directions.

        Guarantee:
            From :math:`P(S) \le e^a R(S) + \delta(a)` and :math:`R(S) \le e^b Q(S) + \delta(b)` follows
            :math:`P(S) \le e^{a+b} Q(S) + \delta(a) + e^a \delta(b)`, for any two points. They include negative ones:
            the promise for the complement of S, :math:`1 - R(S) \le e^a (1 - P(S)) + \delta(a)`, is one at −a with
            :math:`1 - e^{-a}(1 - \delta(a))`. Those that bound nothing better than others do are left out.
        Reference:
            Dong, Roth, Su (2022), Gaussian differential privacy, Theorem 3.

        >>> float(Curve.of_pure(1.0).twice().epsilons.max())
        2.0
        """
        ends = np.concatenate([-self.epsilons, self.epsilons])
        lost = np.concatenate([1 - np.exp(-self.epsilons) * (1 - self.deltas), self.deltas])
        both = (ends[:, None] + ends).reshape(-1)
        deltas = (lost[:, None] + np.exp(ends)[:, None] * lost).reshape(-1) * (1 + _SAFE)
        both, deltas = both[both >= 0], deltas[both >= 0]
        x = np.concatenate([[0.0], np.geomspace(1e-12, 1.0, _SHOWN)])
        best = np.unique(np.argmin(np.exp(both)[:, None] * x + deltas[:, None], axis=0))
        return Curve(both[best], deltas[best])

    def right(self, part: float) -> float:
        r"""How likely a guess is made and right, at most, where one is made with probability ``part``.

        Guarantee:
            Let a guess be "in" on the set S and "out" on T, P be the law of what is seen of a canary that is in, and Q
            of one that is out. Right and wrong have the probabilities r = (P(S) + Q(T))/2 and w = (Q(S) + P(T))/2.
            P(S) ≤ e^ε Q(S) + δ₁(ε) in one direction and Q(T) ≤ e^ε P(T) + δ₂(ε) in the other, so with
            δ = (δ₁ + δ₂)/2, r ≤ e^ε w + δ(ε) with r + w = part, which is r ≤ (e^ε part + δ)/(1 + e^ε).
        """
        odds = 1 / (1 + np.exp(-self.epsilons))
        return float(min(part, np.min(odds * part + (1 - odds) * self.deltas)))

    def telling(self) -> float:
        """The part of the canaries to guess, of which right guesses stand out most, in standard deviations.

        >>> Curve.of_pure(1.0).telling()
        1.0
        """
        return max(_TELLING, key=lambda part: (2 * self.right(part) / part - 1) * math.sqrt(part))

    def wrong(self, right: float) -> float:
        """How likely a wrong guess is at least, where a right one has this probability: see :meth:`right`."""
        return float(max(0.0, np.max((right - self.deltas) * np.exp(-self.epsilons))))


def independent(m: int, guesses: int, right: int, curve: Curve) -> float:
    r"""How likely so many right guesses are at most, where the release is made of independent ones, one a canary.

    Guarantee:
        Let the release be :math:`F(M_1(b_1), \dots, M_m(b_m), R)`, where the :math:`M_i` and R are independent and each
        :math:`M_i` keeps the curve. The points of its two directions are those of one pair of laws (P, Q), from which
        each :math:`M_i` can be made (Blackwell), so guesses are made of m independent draws from this pair, each by its
        coin. Given the draws, coins are independent, and the likelier side of canary i has a probability
        :math:`q_i`; whichever k are guessed, W is stochastically at most a sum of coins with the k largest
        :math:`q_i`. Let :math:`U_i` be the rank of :math:`q_i` in its law (ties broken at random): uniform and
        independent. Given that the (k+1)-th least of them is u, a draw from Beta(k+1, m−k), the k below are
        independent and uniform on (0, u), so W is stochastically at most Bin(k, r(u)/u), where r(u) is
        :meth:`Curve.right`, which no pair exceeds. r(u)/u falls with u; the integral is bounded from above, by the left
        end of each of 256 cells of equal mass. With k = m it is Bin(m, r(1)).
    Reference:
        Blackwell (1951), Comparison of experiments; Dong, Roth, Su (2022), Gaussian differential privacy, Theorem 2;
        the test itself is derived here.

    >>> independent(100, 100, 50, Curve.of_pure(0.0)) > 0.5, independent(100, 100, 80, Curve.of_pure(0.0)) < 1e-8
    (True, True)
    """
    if right <= 0:
        return 1.0
    if guesses == m:
        return _tail(guesses, right, curve.right(1.0))
    ends = betaincinv(guesses + 1.0, m - guesses, np.arange(_CELLS) / _CELLS) * (1 - _SAFE)
    ends[0] = betaincinv(guesses + 1.0, m - guesses, _SAFE) * (1 - _SAFE)
    tails = [_tail(guesses, right, curve.right(end) / end) for end in ends.tolist()]
    return min(1.0, float(np.mean(tails)) + 2 * _SAFE)


def _tail(guesses: int, right: int, chance: float) -> float:
    return min(1.0, float(bdtrc(right - 1, guesses, min(1.0, chance * (1 + _SAFE)))) * (1 + _SAFE))


def tradeoff(m: int, guesses: int, right: int, curve: Curve) -> float:
    r"""How likely so many right guesses are at most, where each canary is protected by the curve.

    Guarantee:
        Let the release keep the curve for canary i, whatever the coins of the others are. Fix these, and let
        :math:`W_{-i}` be the number of right guesses about the others. "i is guessed right and
        :math:`W_{-i} \ge c-1`" is an event on one side of i's coin, and the same with a wrong guess on the other, so
        for r and w as in :meth:`Curve.right`, :math:`r_i \le e^\varepsilon w_i + \delta(\varepsilon)`, also on average
        over the coins and over i. With :math:`p_j = \Pr[W = j]`, right guesses with :math:`W_{-i} \ge c-1` are
        counted by :math:`G_c = \sum_{j \ge c} j p_j/m`, and wrong ones by
        :math:`H_{c-1} = \sum_{j \ge c-1} (k-j) p_j/m`. So :math:`H_{c-1} \ge \varphi(G_c)` for all c, with
        :math:`\varphi` from :meth:`Curve.wrong`.

        Which p with :math:`\Pr[W \ge v] = \tau` keep all this? Take one with the least :math:`\sum_j j p_j`. Where
        mass moves from c to c−1 (not from v to below), all :math:`H_j` with j < c grow, all :math:`G_j` fall, and only
        :math:`H_c` gets less: so each :math:`H_c` with :math:`p_c > 0` and 0 < c < v is as small as it may be, and
        above v there is no mass (for the largest c with mass above v, :math:`\varphi(G_{c+1}) = \varphi(0) = 0`, so
        some can move). This p is found from above, from v down to zero. If its mass is above one, there is none, and
        the probability is below :math:`\tau`.
    Reference:
        Mahloujifar, Melis, Chaudhuri (2024), Auditing f-differential privacy in one run.

    >>> tradeoff(10, 10, 10, Curve.of_pure(0.0)) >= 2.0**-10
    True
    """
    low, high = -30.0, 0.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (middle, high) if _possible(m, guesses, right, math.exp(middle), curve) else (low, middle)
    return math.exp(high)


def _possible(m: int, guesses: int, right: int, tail: float, curve: Curve) -> bool:
    """Whether right guesses are at least ``right`` with probability ``tail`` under some law that keeps the curve."""
    hits, misses = tail * right / m, tail * (guesses - right) / m
    odds, deltas = np.exp(-curve.epsilons).tolist(), curve.deltas.tolist()
    pairs = list(zip(odds, deltas, strict=True))
    for count in range(right - 1, -1, -1):
        more = max((hits - delta) * odd for odd, delta in pairs) * (1 - _SAFE)
        if more > misses:
            hits += count / (guesses - count) * (more - misses)
            misses = more
            if hits + misses > guesses / m:
                return False
    return True

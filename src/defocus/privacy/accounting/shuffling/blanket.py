r"""The privacy blanket, computed: an upper bound on what shuffled reports of a two-level randomiser lose.

*The blanket.* Give away which of the other n−1 users drew from the common part m of all their laws, and what the rest
of them said. Left are one report of the user in question, hidden among N−1 draws from m. The number N of both is
binomial with one success more, so that for :math:`E = e^l`, by exchangeability (Balle, Bell, Gascón, Nissim 2019,
Lemma 5.3),

.. math:: \delta(l) \le \frac1n \mathbb{E}\Bigl[\Bigl(\sum_{i=1}^n X_i\Bigr)^+\Bigr], \qquad
          X = \frac{r(y) - E\,r'(y)}{m(y)} \text{ with density } m(y),\quad X = 0 \text{ otherwise},

with independent copies of X. The right side grows with X in the convex order: that is all the proofs below need.

*Two levels.* X is :math:`e^\varepsilon-E`, :math:`1-e^\varepsilon E`, :math:`e^\varepsilon(1-E)`, :math:`1-E` on
reports likelier under x alone, x' alone, both and neither. Moving mass from "both" and "neither" to "alone" keeps the
mean (:math:`e^\varepsilon-E + 1-e^\varepsilon E = e^\varepsilon(1-E) + 1-E`) and spreads it: a ``both`` taken too small
errs on the safe side.

*Any randomiser.* Let R be any :math:`\varepsilon`-DP randomiser and :math:`m = \max(r, r')e^{-\varepsilon}`, which is
below every other user's law. Where :math:`r \ge r'` write :math:`r = e^\varepsilon v + w`, :math:`r' = v + w` with
:math:`v, w \ge 0`; then :math:`m = v + we^{-\varepsilon}` and X is the average, with these weights, of
:math:`e^\varepsilon - E` and :math:`e^\varepsilon(1-E)`; likewise where r' is larger. So X is below, in the convex
order, the mixture of :math:`X_1`, with weight :math:`s = (e^\varepsilon+1)\int v`, and :math:`X_0`: the first has atoms
:math:`e^\varepsilon-E` and :math:`1-e^\varepsilon E` of mass :math:`1/(e^\varepsilon+1)` each, the second
:math:`e^\varepsilon(1-E)` with mass :math:`e^{-\varepsilon}`, and both are 0 otherwise. Both have mean 1−E, and
:math:`X_0 \le_{cx} X_1`: for :math:`t \ge 0` nothing of :math:`X_0` lies above t; for t < 0 compare
:math:`\mathbb{E}(t-X_0)^+ = (t+e^\varepsilon(E-1))^+e^{-\varepsilon}` with
:math:`\mathbb{E}(t-X_1)^+ = (t+e^\varepsilon E-1)^+/(e^\varepsilon+1)`: the second is larger at t = 0, by
:math:`(e^\varepsilon-E)/(e^\varepsilon+1) \ge 0`, and falls more slowly to the left. So every randomiser is covered by
:math:`X_1`: the pair of Feldman, McMillan, Talwar (2023), with :math:`\mathrm{Bin}(n-1, 2/(e^\varepsilon+1))` clones.

*Computing.* Given the number D of reports likelier under one value alone and
:math:`Z = e^\varepsilon\cdot\#both + \#neither`, the sum is positive when more than

.. math:: \tau = \frac{D(e^\varepsilon E-1) + Z(E-1)}{(e^\varepsilon-1)(1+E)}

of the D fair coins say x, and its positive part is a sum of positive terms. The law of D is exact. That of Z is
replaced by one on few points with the same mean: for a convex function the chord lies above, and the mean over a sum of
T positive terms is convex in T. Neighbouring D share one evaluation: :math:`\mathbb{E}(S_D/D)^+` falls with D, as the
positive parts of averages do.

Reference:
    Balle, Bell, Gascón, Nissim (2019), The privacy blanket of the shuffle model; Feldman, McMillan, Talwar (2023),
    Stronger privacy amplification by shuffling; Su, Cheng, Wang (2025), arXiv 2504.07414, on why no other
    decomposition does better than the blanket.
"""

import math
from typing import NamedTuple

import numpy as np

from defocus.privacy.accounting.shuffling.binomials import Floats, Window, binomial
from defocus.privacy.accounting.shuffling.reports import Reports

__all__ = ["MOST_USERS", "chernoff", "log_deltas"]

MOST_USERS = 2**30
"""More users only hide better; beyond this many, the others' reports are given away."""

_U = 2.0**-53
_REACH = 80.0
"""Windows leave out e^-80 on either side; deltas smaller than that are Chernoff's."""
_REACH_REST, _REACH_BOTH = 60.0, 40.0
"""The same for what the threshold depends on less."""
_SHARED = 1500
"""Neighbouring numbers share one evaluation if they differ by less than one part in so many."""
_FEW = 24
"""Laws on so few values are kept as they are."""
_ADDED = 5e-4
"""How much of the variance of the sum each row of chords may add."""


def log_deltas(reports: Reports, users: int, losses: Floats) -> Floats:
    """Logarithms of upper bounds on delta at each of ``losses``, all from zero to the local epsilon."""
    n = min(users, MOST_USERS)
    central = _central(reports, n, losses)
    alone = np.log(np.maximum(reports.alone * (reports.odds - np.exp(losses)), 0.0) * (1 + 1e-12) + 1e-320)
    return np.minimum(np.minimum(central, chernoff(reports, n, losses)), alone)


def chernoff(reports: Reports, users: int, losses: Floats) -> Floats:
    r"""The same by :math:`x^+ \le e^{\lambda x - 1}/\lambda`, for any :math:`\lambda > 0`: good far out."""
    n = min(users, MOST_USERS)
    r = reports
    rise = np.expm1(losses)[:, None]
    up, down = r.gain - rise, -(r.gain + r.odds * rise)
    start = (rise + 1 / n) / (r.gain * r.gain * 2 * r.alone)
    rates = start * 2.0 ** (np.arange(-8, 25) / 2)[None, :]
    with np.errstate(over="ignore", invalid="ignore"):
        moment = (
            r.alone * (np.expm1(rates * up) + np.expm1(rates * down))
            + r.both * np.expm1(-rates * r.odds * rise)
            + r.neither * np.expm1(-rates * rise)
        )
        value = n * np.log1p(np.maximum(moment, -1 + _U)) - 1 - np.log(n * rates)
    # Terms of the moment may cancel: each is off by a few units of itself.
    blur = n * 16 * _U * (np.abs(rates * up) + np.abs(rates * down) + 1) * (1 + np.maximum(moment, 0.0))
    value = np.where(np.isnan(value), np.inf, value + blur)
    return np.asarray(value.min(axis=1) + 1e-12)


class _Slopes(NamedTuple):
    """How the threshold depends on D and on Z, and what one coin beyond it is worth, at each loss."""

    coins: Floats
    rest: Floats
    worth: Floats


def _central(reports: Reports, n: int, losses: Floats) -> Floats:
    r = reports
    rise = np.expm1(losses)
    worth = r.gain * (2 + rise)
    slopes = _Slopes((r.odds * rise + r.gain) / worth, rise / worth, worth)
    coins = binomial(n, 2 * r.alone / (r.gain * r.alone + r.odds * r.both + r.neither), _REACH)
    rest = _Uninformative(r, n)
    total = np.zeros_like(losses)
    error = coins.error
    for low, high, weight in _shared(coins, n):
        points, weights, off = rest.law(n - high)
        value, more = _expected(low, points * (low / high), weights, slopes)
        total += weight * value
        error = max(error, coins.error + off + more)
    # Where D lies below the window every coin may say x.
    lost = coins.rest * max(coins.first, 1) * np.maximum(r.gain - rise, 0.0) * (1 + 1e-9)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log((total * worth * (1 + 2 * error + 1e-12) + lost) / n))


def _shared(coins: Window, n: int) -> list[tuple[int, int, float]]:
    """Ranges of D, each with the sum of its masses times D over its least D."""
    found = []
    masses, values = coins.masses, coins.values
    start = 1 if coins.first == 0 else 0
    while start < len(masses):
        low = int(values[start])
        stop = min(start + 1 + low // _SHARED, len(masses))
        weight = float((masses[start:stop] * values[start:stop]).sum()) / low
        if stop == len(masses):
            weight += coins.rest * n / low  # whatever lies above counts as n
        found.append((low, int(values[stop - 1]), weight))
        start = stop
    return found


def _expected(coins: int, points: Floats, weights: Floats, slopes: _Slopes) -> tuple[Floats, float]:
    """The mean of how many coins beyond the threshold say x, over the law of Z, at each loss; and its error."""
    law = binomial(coins, 1.0, _REACH)
    at_least = np.append(np.cumsum(law.masses[::-1])[::-1], 0.0)
    beyond = np.append(np.cumsum(at_least[::-1])[::-1][1:], 0.0)
    threshold = (coins * slopes.coins[:, None] + slopes.rest[:, None] * points) * (1 - 16 * _U)
    whole = np.ceil(threshold)
    place = np.clip(whole - law.first, 0, len(law.masses)).astype(np.int64)
    value = beyond[place] + (whole - threshold) * at_least[place]
    return value @ weights + coins * law.rest, law.error + 8 * _U * len(law.masses)


class _Uninformative:
    """The law of Z given how many users there are besides the D: on few points, spread with its mean kept."""

    def __init__(self, reports: Reports, n: int) -> None:
        r = reports
        self._gain = r.gain
        self._others = (r.both + r.neither) / r.silent
        self._both = r.both / r.neither if r.neither else math.inf
        rise = math.expm1(min(r.epsilon, 6 * r.spread / math.sqrt(n)))
        self._apart = math.sqrt(6 * _ADDED * n) * r.spread / rise
        self._share = r.both / (r.both + r.neither) if r.both else 0.0
        self._known: dict[int, tuple[Floats, Floats, float]] = {}

    def law(self, trials: int) -> tuple[Floats, Floats, float]:
        """Points, their weights, and the relative error of the weights."""
        if self._others == 0:
            return np.zeros(1), np.ones(1), 0.0
        total = binomial(trials, self._others, _REACH_REST)
        nodes, weights = _on_nodes(total, self._apart / (1 + self._gain * self._share))
        error = total.error
        points, masses = [np.zeros(1)], [np.full(1, total.rest)]
        for node, weight in zip(nodes.tolist(), weights.tolist(), strict=True):
            places, shares, off = self._given(int(node))
            points.append(places)
            masses.append(weight * shares)
            error = max(error, total.error + off)
        merged, shares = _merged(np.concatenate(points), np.concatenate(masses), self._apart)
        return merged, shares, error + 64 * _U

    def _given(self, total: int) -> tuple[Floats, Floats, float]:
        """The law of Z where it has so many terms."""
        if total not in self._known:
            inner = self._doubled(total)
            places, shares = _on_nodes(inner, self._apart / self._gain)
            # Fewer doubled terms only raise the function, so what lies outside the window counts as none.
            points = np.append(total + self._gain * places, total)
            self._known[total] = points, np.append(shares, inner.rest), inner.error
        return self._known[total]

    def _doubled(self, among: int) -> Window:
        if math.isinf(self._both):
            return Window(among, np.ones(1), 0.0, 0.0)
        return binomial(among, self._both, _REACH_BOTH)


def _on_nodes(law: Window, apart: float) -> tuple[Floats, Floats]:
    """The law moved to nodes about ``apart`` from each other, each value shared by its two neighbours, mean kept."""
    values = law.values
    if len(values) <= _FEW or apart < 2:
        return values, law.masses
    step = math.floor(apart)
    # Multiples of the step, so that laws close to each other share their nodes.
    low, middle, high = law.first // step, round(float(values @ law.masses) / step), -(-law.last // step)
    nodes = step * middle + _offsets(step, len(values))
    nodes = nodes[(nodes > step * low) & (nodes < step * high)]
    nodes = np.concatenate(([step * low], nodes, [step * high])).astype(np.float64)
    place = np.clip(np.searchsorted(nodes, values, side="right") - 1, 0, len(nodes) - 2)
    share = (values - nodes[place]) / (nodes[place + 1] - nodes[place])
    left = np.bincount(place, law.masses * (1 - share), len(nodes))
    right = np.bincount(place + 1, law.masses * share, len(nodes))
    return np.asarray(nodes, dtype=np.float64), np.asarray(left + right, dtype=np.float64)


def _merged(points: Floats, masses: Floats, apart: float) -> tuple[Floats, Floats]:
    """A law on many points moved to few nodes, as above; the middle of it to nodes ``apart`` from each other."""
    if len(points) <= _FEW:
        return points, masses
    low, high = float(points.min()), float(points.max())
    middle = float(points @ masses)
    reach = 8 * math.sqrt(float((points - middle) ** 2 @ masses)) + apart
    if 2 * reach / apart > len(points):
        return points, masses
    nodes = middle + np.arange(-math.ceil(reach / apart), math.ceil(reach / apart) + 1) * apart
    nodes = np.concatenate(([low], nodes[(nodes > low) & (nodes < high)], [high])).astype(np.float64)
    place = np.clip(np.searchsorted(nodes, points, side="right") - 1, 0, len(nodes) - 2)
    share = np.clip((points - nodes[place]) / (nodes[place + 1] - nodes[place]), 0.0, 1.0)
    left = np.bincount(place, masses * (1 - share), len(nodes))
    right = np.bincount(place + 1, masses * share, len(nodes))
    return np.asarray(nodes, dtype=np.float64), np.asarray(left + right, dtype=np.float64)


def _offsets(step: int, width: int) -> Floats:
    """Steps around zero: equal ones over the bulk of a window, then ever longer ones."""
    steps = math.ceil(0.2 * width / step)
    even = step * np.arange(1, steps + 1)
    odd = even[-1] * 2.0 ** np.arange(1, 3)
    side = np.concatenate((even, odd))
    return np.concatenate((-side[::-1], [0], side))

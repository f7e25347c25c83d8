r"""Certified bounds on the delta and epsilon of a composition on a lattice.

*Above.* With :math:`\hat\mu` the dominating composition, tilted by θ,

.. math:: \delta(\varepsilon) \le e^{K(\theta)+s}\sum_{k \ge j} e^{-\theta l_k}(1-e^{\varepsilon-l_k})\,t_k
          + \min_\lambda e^{K(\lambda)-\lambda l_{top}} + \text{lost},

the terms being the window (wrapping only adds), Chernoff's bound on what lies beyond it,
and mass at infinity; s collects the shortfall of the dots and the rounding of the weights.

Where one of the laws is a formula, the sum is the integral over frequencies instead, by the trapezoidal rule:
it is off by what lies whole periods away, which adds, and by frequencies beyond the last, which are bounded. If all
laws are formulas, the same sum less these is a bound from below.

*Below.* Any test bounds delta from below: here the test adds up quantised scores
:math:`\log P(B)/Q(B)` of the bins B the outputs fall into, with P's masses rounded down, Q's
rounded up, and what wrapping may have added to P's tail taken off.
"""

import math
from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import TypeAlias, final

import numpy as np
from scipy.fft import next_fast_len
from scipy.special import gammaln

from defocus.privacy.accounting.pld.profiles import Atoms, Floats, Profile, U
from defocus.privacy.accounting.pld.spectrum import Dots, Part, Saddle, Spectrum, Window, cumulant, moments, window

__all__ = [
    "SmoothWindow",
    "UpperWindow",
    "View",
    "enumerated",
    "formula_epsilon",
    "lower_epsilon",
    "upper_epsilon",
    "view_of",
]


_LARGEST_WINDOW = 2**23


@final
class UpperWindow:
    """Upper bounds on delta for epsilons around ``centre``."""

    def __init__(self, parts: Sequence[Dots], step: float, found: Saddle, centre: float, log_delta: float) -> None:
        chosen = window(parts, found, centre, log_delta)
        self._step = step
        back = int(min(0.2 * found.spread, 300.0) / step) + 16
        # A tilt much finer than the lattice resolves nothing, and its weights would overflow.
        self._theta = min(chosen.theta, 300 / (step * back))
        size = next_fast_len(min(math.ceil(chosen.width / step) + 2 * back, _LARGEST_WINDOW), real=True)
        self._first = math.floor(centre / step) - back
        self._last = self._first + size - 1
        self._reference = math.floor(centre / step)
        self._spectrum = Spectrum(parts, step, self._theta, size)
        self._scale = self._spectrum.cumulant - self._theta * self._reference * step
        self.slack = self._spectrum.slack
        top = self._last * step
        tail = min(value - steeper * top for steeper, value in chosen.cumulants)
        mass = max(0.0, cumulant(parts, 0.0))
        lost = sum(part.times * part.lost for part in parts)
        self._beyond = math.inf
        if self.slack < 700 and mass + lost < 600:  # more rounding or more mass than that proves nothing
            escaped = math.exp(min(tail, 0.0)) * (1 + 1e-9) + lost * math.exp(mass + lost + 1e-9)
            self._beyond = escaped * math.exp(self.slack)
        self.low = self._first * step
        self.high = (self._last - 1) * step

    def log_delta(self, epsilon: float) -> float:
        """Log of an upper bound on delta at ``epsilon``, which must lie between ``low`` and ``high``."""
        if math.isinf(self._beyond):
            return math.inf
        j = min(max(math.ceil(epsilon / self._step), self._first), self._last)
        while j * self._step < epsilon:
            j += 1
        above = self._spectrum.tail(j, self._last, self._theta, self._reference)
        against = self._spectrum.tail(j, self._last, self._theta + 1, self._reference)
        offset = epsilon - self._reference * self._step
        credit = math.exp(offset) * max(against.value - against.error, 0.0) * (1 - 8 * U) if offset < 700 else 0.0
        inside = above.value + above.error - credit
        inside = max(inside, 0.0) + 8 * U * above.value
        exponent = self._scale + self.slack + 8 * U * (abs(self._scale) + abs(self._spectrum.cumulant))
        window_part = math.log(inside) + exponent if inside > 0 else -math.inf
        return float(np.logaddexp(window_part, math.log(self._beyond) if self._beyond > 0 else -math.inf)) + 8 * U


@final
class SmoothWindow:
    """The same where a part is a formula: frequencies alone, and no lattice but the period and their number."""

    def __init__(self, parts: Sequence[Part], step: float, found: Saddle, centre: float, log_delta: float) -> None:
        chosen = window(parts, found, centre, log_delta)
        self._chosen, self._theta = chosen, chosen.theta
        size = next_fast_len(min(math.ceil(chosen.width / step), _LARGEST_WINDOW), real=True)
        self._spectrum = Spectrum(parts, step, self._theta, size)
        self.slack = self._spectrum.slack
        mass = max(0.0, cumulant(parts, 0.0))
        lost = sum(part.times * part.lost for part in parts)
        self._lost = math.inf
        if self.slack < 700 and mass + lost < 600:
            self._lost = lost * math.exp(mass + lost + 1e-9 + self.slack)
        self.low = max(centre - min(0.2 * found.spread, 300.0), 0.0)
        self.high = centre + size * step

    def log_delta(self, epsilon: float) -> float:
        """Log of an upper bound on delta at ``epsilon``; tight between ``low`` and ``high``."""
        if math.isinf(self._lost):
            return math.inf
        found = self._spectrum.excess(epsilon)
        inside = max(found.value, 0.0) + found.error
        exponent = self._spectrum.cumulant - self._theta * epsilon
        exponent += self.slack + 8 * U * (abs(self._spectrum.cumulant) + self._theta * epsilon)
        return (
            float(np.logaddexp(math.log(inside) + exponent, math.log(self._lost) if self._lost else -math.inf)) + 8 * U
        )

    def delta_below(self, epsilon: float) -> float:
        """A lower bound on delta at ``epsilon`` where all parts are formulas of pairs that occur, none blurred."""
        found, width = self._spectrum.excess(epsilon), self._spectrum.size * self._spectrum.step
        exponent = self._spectrum.cumulant - self._theta * epsilon
        exponent -= self.slack + 8 * U * (abs(self._spectrum.cumulant) + self._theta * epsilon)
        wrapped = math.exp(-self._theta * width) / -math.expm1(-self._theta * width)
        wrapped += _from_above(self._chosen, epsilon, width)
        return max(found.value - found.error, 0.0) * math.exp(min(exponent, 700.0)) * (1 - 16 * U) - wrapped * 1.001


View: TypeAlias = UpperWindow | SmoothWindow


def view_of(parts: Sequence[Part], step: float, found: Saddle, centre: float, log_delta: float) -> View:
    """The window for these parts."""
    dots = [part for part in parts if isinstance(part, Dots)]
    if len(dots) < len(parts):
        return SmoothWindow(parts, step, found, centre, log_delta)
    return UpperWindow(dots, step, found, centre, log_delta)


def upper_epsilon(parts: Sequence[Part], step: float, found: Saddle, delta: float, accuracy: float) -> float:
    """The least epsilon found whose certified delta is at most ``delta``."""
    target = math.log(delta) - 4 * U * (1 + abs(math.log(delta)))
    pure = sum(part.times * part.top for part in parts) * (1 + (8 + len(parts)) * U)
    lost = sum(part.times * part.lost for part in parts)
    ceiling = pure if lost == 0 else math.inf
    if lost >= delta:
        return ceiling
    centre = min(max(found.epsilon, 0.0), pure)
    best = ceiling
    for _ in range(12):
        view = view_of(parts, step, found, centre, target)
        answer, certain = _solve(view, target, centre, found, accuracy)
        best = min(best, answer)
        if certain:
            break
        centre = max(view.low - 0.3 * (view.high - view.low), 0.0) if answer < math.inf else min(view.high, pure)
    return max(best, 0.0)


def _solve(view: View, target: float, start: float, found: Saddle, accuracy: float) -> tuple[float, bool]:
    """The least feasible epsilon in the view, and whether its lower neighbour was seen to be infeasible."""
    feasible, infeasible = math.inf, -math.inf
    value_feasible = value_infeasible = 0.0
    stride = 0.5 * accuracy
    epsilon = min(max(start, view.low, 0.0), view.high)
    for step in range(60):
        value = view.log_delta(epsilon) - target
        if value <= 0:
            feasible, value_feasible = epsilon, value
            if epsilon <= 0:
                return 0.0, True
        else:
            infeasible, value_infeasible = epsilon, value
        if feasible - infeasible <= accuracy:
            return feasible, True
        if math.isinf(feasible) or math.isinf(infeasible):
            # Mass at infinity flattens delta, and Newton's steps would creep; so the least step doubles.
            move = value / max(found.theta, 1e-9) * 1.02
            move = math.copysign(max(abs(move), stride), value)
            stride *= 2
            following = min(max(epsilon + move, view.low, 0.0), view.high)
            if following == epsilon:
                return feasible, False
        else:
            share = value_infeasible / (value_infeasible - value_feasible)
            if step % 3 == 2:
                share = 0.5
            following = infeasible + (feasible - infeasible) * min(max(share, 0.02), 0.98)
            # Aim a little to the feasible side, so that one more step closes the bracket.
            following = min(following + 0.25 * accuracy, feasible - 0.1 * (feasible - infeasible))
        epsilon = following
    return feasible, math.isfinite(feasible)


def formula_epsilon(parts: Sequence[Part], step: float, found: Saddle, delta: float, upper: float) -> float:
    """A lower bound on epsilon near ``upper`` where all parts are formulas: the largest found whose delta is more."""
    view = SmoothWindow(parts, step, found, upper, math.log(delta))
    for doublings in range(40):
        epsilon = upper - math.ldexp(1e-9 * (upper + found.spread), doublings)
        if epsilon <= 0:
            return 0.0
        if view.delta_below(epsilon) > delta:
            return epsilon
    return 0.0


def lower_epsilon(
    profiles: Sequence[tuple[Profile, int, np.ndarray]], step: float, found: Saddle, delta: float, upper: float
) -> float:
    """A lower bound on epsilon by a test of quantised scores; zero where the test has no power."""
    ours, theirs, certain, bias = [], [], 0.0, 0.0
    for profile, times, indices in profiles:
        tails = profile.tails(indices * step)
        p_low = _bins(tails.p_above, tails.p_below, tails.error, -1.0)
        q_high = _bins(tails.q_above, tails.q_below, tails.error, 1.0)
        # The test may always reject where only P can lie.
        certain += times * math.log1p(-min(profile.at_infinity * (1 - 1e-12), 0.5))
        usable = (p_low > 0) & (q_high > 0)
        usable[-1] &= profile.at_infinity == 0
        if not usable.any():  # losses so large that no bin has a mass under both laws
            return 0.0
        p, q = p_low[usable], q_high[usable]
        ratio = np.log(p / q)
        score = np.rint(ratio / step) * step
        order = np.argsort(score, kind="stable")
        gaps = np.full(len(p), step)
        ours.append(Dots(score[order], np.log(p[order]), 0.0, 0.0, times, gaps))
        theirs.append(Dots(score[order], np.log(q[order]), 0.0, 0.0, times, gaps))
        weights, _ = ours[-1].tilted(found.theta)
        bias += times * float(weights @ (score - ratio)[order])
    sure = -math.expm1(certain)
    centre = upper + bias
    if not math.isfinite(centre):  # a tilt so steep that nothing is left of the weights
        return 0.0
    spread = math.sqrt(moments(ours, found.theta)[2])
    chosen = window(ours, found._replace(spread=spread), centre, math.log(delta))
    first = math.floor((centre - 0.3 * spread) / step) - 16
    size = next_fast_len(
        min(math.ceil(chosen.width / step) + 32 + int(0.3 * spread / step), _LARGEST_WINDOW), real=True
    )
    last, reference = first + size - 1, round(centre / step)
    p_side = Spectrum(ours, step, chosen.theta, size)
    q_side = Spectrum(theirs, step, chosen.theta + 1, size)
    width = size * step
    from_below = math.exp(-chosen.theta * width + max(cumulant(ours, 0.0), 0.0)) / -math.expm1(-chosen.theta * width)
    beyond = min(cumulant(theirs, s + 1) - (s + 1) * last * step for s, _ in chosen.cumulants) + 1e-9
    best = 0.0
    for shift in (-0.1, -0.05, -0.02, 0.0, 0.03):
        threshold = reference + round(shift * spread / step)
        if threshold <= first:
            continue
        hit = p_side.tail(threshold, last, chosen.theta, reference)
        false = q_side.tail(threshold, last, chosen.theta + 1, reference)
        if hit.value <= hit.error or false.value + false.error <= 0:
            continue
        wrapped = from_below + _from_above(chosen, threshold * step, width)
        exponent = p_side.cumulant - chosen.theta * reference * step - p_side.slack
        power = math.exp(min(exponent + math.log(hit.value - hit.error), 1.0)) * (1 - 1e-9) - wrapped * 1.001
        power += sure
        level = float(
            np.logaddexp(
                q_side.cumulant
                - (chosen.theta + 1) * reference * step
                + math.log(false.value + false.error)
                + q_side.slack
                + 1e-9,
                beyond,
            )
        )
        if power > delta:
            best = max(best, (math.log(power - delta) - level) * (1 - 1e-12))
    return best


def _from_above(chosen: Window, start: float, width: float) -> float:
    """What wrapping can add to a tail that starts at ``start``: Chernoff's bound at each further turn, summed."""
    return min(
        (
            math.exp(min(value - steeper * start - (steeper - chosen.theta) * width, 50.0))
            / -math.expm1(-(steeper - chosen.theta) * width)
            for steeper, value in chosen.cumulants
            if steeper > chosen.theta * 1.01
        ),
        default=math.inf,
    )


def _bins(above: Floats, below: Floats, error: Floats, side: float) -> Floats:
    """Masses between consecutive thresholds and beyond both ends, from the smaller tail, rounded to one side."""
    use_above = above[:-1] < below[1:]
    larger = np.where(use_above, above[:-1], below[1:])
    smaller = np.where(use_above, above[1:], below[:-1])
    relative = np.maximum(error[:-1], error[1:]) + 2 * U
    inner = larger - smaller + side * relative * (larger + smaller)
    ends = 1 + side * (error + 2 * U)
    return np.concatenate(([below[0] * ends[0]], np.maximum(inner, 0.0), [above[-1] * ends[-1]]))


_MOST = 4000


def enumerated(profiles: Sequence[tuple[Profile, int]]) -> Atoms | None:
    """The whole composition as atoms, or None where there would be more than a few thousand.

    A product of pairs has the sums of their losses; T copies of one pair have one loss for
    each way to share T among its atoms, with multinomial masses. Equal losses are not
    merged, which changes no answer.
    """
    losses, log_p, log_q = np.zeros(1), np.zeros(1), np.zeros(1)
    log_kept, symmetric, error = 0.0, True, 0.0
    for profile, times in profiles:
        atoms = profile.atoms()
        if atoms is None:
            return None
        shares = _shares(len(atoms.losses), times)
        if shares is None or len(shares) * len(losses) > _MOST:
            return None
        ways = gammaln(times + 1) - gammaln(shares + 1).sum(axis=1)
        with np.errstate(divide="ignore"):
            p, q = np.log(atoms.p), np.log(atoms.q)
        losses = np.add.outer(losses, shares @ np.asarray(atoms.losses)).ravel()
        log_p = np.add.outer(log_p, ways + _weighted(shares, p)).ravel()
        log_q = np.add.outer(log_q, ways + _weighted(shares, q)).ravel()
        # A mass that underflowed to nothing is off by less than the 1e-300 that every curve is padded with.
        largest = float(np.max(np.abs(p[p > -np.inf]))) + float(np.max(np.abs(q[q > -np.inf]))) + 1
        error += times * (atoms.error + 8 * U * largest) + 16 * U * float(gammaln(times + 2)) + 32 * U
        log_kept += times * math.log1p(-atoms.at_infinity)
        symmetric &= atoms.symmetric
    order = np.argsort(losses, kind="stable")
    lost = -math.expm1(log_kept)
    return Atoms(
        _tuple(losses[order]), _tuple(np.exp(log_p[order])), _tuple(np.exp(log_q[order])), lost, symmetric, error
    )


def _weighted(shares: Floats, logs: Floats) -> Floats:
    """The sum of ``shares`` times ``logs`` in each row, where none of an impossible outcome counts as nothing."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(shares > 0, shares * logs, 0.0).sum(axis=1))


def _shares(atoms: int, times: int) -> Floats | None:
    """All ways to share ``times`` among ``atoms``, one a row."""
    if math.comb(times + atoms - 1, atoms - 1) > _MOST:
        return None
    if atoms == 1:
        return np.full((1, 1), float(times))
    if atoms == 2:
        first = np.arange(times + 1, dtype=np.float64)
        return np.column_stack((times - first, first))
    bars = np.array(list(combinations_with_replacement(range(times + 1), atoms - 1))).reshape(-1, atoms - 1)
    edges = np.concatenate((np.zeros((len(bars), 1)), bars, np.full((len(bars), 1), times)), axis=1)
    return np.asarray(np.diff(edges, axis=1), dtype=np.float64)


def _tuple(values: Floats) -> tuple[float, ...]:
    return tuple(values.tolist())

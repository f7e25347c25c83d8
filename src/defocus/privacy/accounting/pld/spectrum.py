r"""Loss distributions on a grid, and their composition by Fourier transform with certified error.

Connect the dots: a finite measure on a grid of losses that provably dominates a profile.

Between grid points the profile is convex in :math:`r = e^l`, so the polygon through points
on or above it lies above it. The polygon is the profile of a measure with atoms at the
grid points, found from its slopes. Whatever rounding did to those atoms, the profile
:math:`\hat H` of the measure *as stored* is then evaluated again at every grid point by
sums of positive numbers, and the worst relative shortfall

.. math:: \eta = \max_i \left(1 - \hat H(r_i)/H(r_i)\right)

is kept with it. Then :math:`\hat H \ge (1-\eta) H` everywhere, and since composition is
monotone and positively homogeneous in each factor, T copies cost a factor
:math:`(1-\eta)^{-T}` in delta and nothing else: no assumption on rounding is left.

Reference:
    Doroshenko, Ghazi, Kamath, Kumar, Manurangsi (2022), Connect the dots.

Tail sums of a composition, from its Fourier coefficients.

A composition of measures on a lattice is tilted by :math:`e^{\theta l}`, so that the tail of
interest becomes the bulk, wrapped onto a window of N points, and transformed once. After
the power only the few coefficients above e^-80 matter, and a tail sum weighted by
:math:`e^{-al}` is a geometric series in frequency space: no inverse transform.

Error of the computed sum, bounded and returned with it:

- *Transform.* A butterfly of radix f computed in floating point errs by at most
  :math:`\sqrt f (f+3) + 4` units in the 2-norm (each output is a sum of f products, and a
  complex product errs by √5 units: Brent, Percival, Zimmermann 2007); over the prime
  factors of N these add. The errors of all coefficients together are then
  :math:`\lVert e\rVert_2 \le \eta_N\sqrt N\lVert w\rVert_2`, and Cauchy–Schwarz carries them
  through the power: :math:`|(F+e)^T - F^T| \le T|e|(|F|+|e|)^{T-1}`.
- *Power.* Repeated squaring errs by 4T units relative.
- *Dropped coefficients.* Each is at most e^-80 even with its error.

Where most coefficients matter (few steps), one inverse transform and a direct sum are
faster; its error is bounded in the same way.

Wrapping only ever adds positive mass to the window.

Where a tail lives: the exponential tilt under which the loss of interest is typical.

Nothing here needs to be exact. A poor tilt or window costs tightness or time; the bounds
computed with it hold all the same.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, rfft
from scipy.special import erfcx

from defocus.privacy.accounting.pld.formulas import Formula
from defocus.privacy.accounting.pld.profiles import Floats, Profile, U

__all__ = [
    "Dots",
    "Part",
    "Saddle",
    "Spectrum",
    "TailSum",
    "Wide",
    "Window",
    "connect",
    "cumulant",
    "lattice",
    "moments",
    "saddle_at",
    "saddle_for",
    "window",
]


Wide: TypeAlias = NDArray[np.longdouble]
_WIDE_U = float(np.finfo(np.longdouble).eps)
_LARGEST = 700.0 if np.finfo(np.longdouble).maxexp < 2048 else 10000.0
_LEAST = -700.0


@final
@dataclass(frozen=True, slots=True)
class Dots:
    """A measure on increasing losses: ``log_p`` at ``losses``, ``lost`` at infinity, repeated ``times``."""

    losses: Floats
    log_p: Floats
    lost: float
    shortfall: float
    times: int
    gaps: Floats
    """Distance to the neighbouring grid points, for the error estimate."""

    def tilted(self, theta: float) -> tuple[Floats, float]:
        """Weights p·e^(θl) scaled to sum to one, and the log of their sum: the cumulant at θ."""
        exponent = self.log_p + theta * self.losses
        largest = float(exponent.max())
        weights = np.exp(exponent - largest)
        total = float(weights.sum())
        weights /= total
        return weights, largest + math.log(total)

    @property
    def top(self) -> float:
        """The largest finite loss."""
        return float(self.losses[-1])

    def cumulant(self, theta: float) -> float:
        """Log of the tilted total mass."""
        return self.tilted(theta)[1]

    def moments(self, theta: float) -> tuple[float, float, float]:
        """Cumulant, mean and variance under the tilt."""
        weights, value = self.tilted(theta)
        centre = float(weights @ self.losses)
        away = self.losses - centre
        return value, centre, float(weights @ (away * away))

    def rise(self, theta: float) -> float:
        """By how much the grid widens the tilted law: the mean square of the gaps."""
        return float(self.tilted(theta)[0] @ (self.gaps * self.gaps))

    def digits(self, theta: float) -> float:
        """Relative error of the tilted weights and of their sum, in units of the last place."""
        return (
            32.0
            + 4 * float(np.max(np.abs(self.log_p) + abs(theta) * np.abs(self.losses)))
            + 2 * math.log2(len(self.losses) + 2)
        )


Part: TypeAlias = Dots | Formula
"""A law that is composed with others: on a grid, or by its formula."""


def connect(profile: Profile, losses: Floats, times: int) -> Dots:
    """The measure on ``losses`` that dominates ``profile``, with its certified shortfall."""
    losses = losses[(losses < _LARGEST) & (losses > _LEAST)]
    if len(losses) < 2:
        losses = np.array([-1.0, 0.0, 1.0])
    curve = profile.curve(losses)
    excess = (curve.excess + curve.pad).astype(np.longdouble)
    l = losses.astype(np.longdouble)
    r = np.exp(l)
    width = r[:-1] * np.expm1(np.diff(l))
    slope = np.diff(excess) / width
    middle = int(np.searchsorted(losses, 0.0))
    # Below zero the excess is measured from 1 - r, whose slope is -1; the segment that ends at the first
    # point at or above zero starts from a point below it.
    if 0 < middle < len(losses):
        floor = -np.expm1(l[middle - 1])
        slope[middle - 1] = (excess[middle] - excess[middle - 1] - floor) / width[middle - 1] + 1
    p = np.empty(len(losses), dtype=np.longdouble)
    # Slopes of the excess jump by 1 where its floor bends.
    p[0] = r[0] * slope[0] - excess[0] if middle > 0 else 1 - excess[0] + r[0] * slope[0]
    p[1:-1] = r[1:-1] * np.diff(slope)
    if 0 < middle < len(losses) - 1:
        p[middle] = r[middle] * (slope[middle] - slope[middle - 1] + 1)
    p[-1] = -r[-1] * (slope[-1] - (1 if middle >= len(losses) - 1 else 0))
    masses = np.maximum(p, 0).astype(np.float64)
    lost = float(np.nextafter(float(excess[-1]) + -math.expm1(min(float(losses[-1]), 0.0)), 1.0))
    needed = excess - np.expm1(np.minimum(l, 0))
    shortfall = _shortfall(r, width, masses.astype(np.longdouble) / r, lost, needed)
    if not masses.any():  # all is lost; a trace of mass, which only adds, keeps the measure one
        masses[-1] = 1e-300
    keep = masses > 0
    return Dots(losses[keep], np.log(masses[keep]), lost, shortfall, times, _gaps(losses, profile)[keep])


def _gaps(losses: Floats, profile: Profile) -> Floats:
    """How far a loss near each point was moved: half-way to its neighbours, or one bracket where it is an atom."""
    widths = np.diff(losses)
    if profile.atomic:
        gaps = np.full(len(losses), float(widths.min()))
    else:
        gaps = np.concatenate((widths[:1], (widths[1:] + widths[:-1]) / 2, widths[-1:]))
    for end in (profile.bottom, profile.top):  # an atom at an end that is a point of the grid stays where it is
        gaps = np.where(np.abs(losses - end) <= 1e-3 * gaps, 0.0, gaps)
    return gaps


def _shortfall(r: Wide, width: Wide, q: Wide, lost: float, needed: Wide) -> float:
    """How far the profile of the stored measure can lie below the padded one, relatively."""
    beyond = np.cumsum(q[::-1])[::-1][1:]
    rise = np.cumsum((width * beyond)[::-1])[::-1]
    reached = np.append(rise, np.longdouble(0)) + lost
    at_zero = float((q * r).sum()) + lost
    worst = max(float(np.max(1 - reached / needed)), 1 - at_zero, 0.0)
    return worst + 4 * len(r) * _WIDE_U + 8 * U


def lattice(profile: Profile, step: float, resolution: float, log_tail: float) -> NDArray[np.int64]:
    """Increasing multiples of ``step`` that resolve the profile; finite ends of its support are bracketed."""
    losses = profile.grid(resolution, log_tail)
    positions = np.clip(losses[np.abs(losses) < _LARGEST] / step, -(2.0**52), 2.0**52)
    found = [np.ceil(positions)]
    if profile.atomic:
        found.append(np.floor(positions))
    # An end that the grid leaves far behind holds next to nothing; a chord to it would put mass there that a tilt
    # turns into everything.
    near = math.inf if profile.atomic else 1e-3 * float(losses[-1] - losses[0])
    ends = (
        [math.floor(profile.bottom / step)] if -math.inf < profile.bottom and losses[0] - profile.bottom <= near else []
    )
    ends += [math.ceil(profile.top / step)] if profile.top < math.inf and profile.top - losses[-1] <= near else []
    indices = np.unique(np.concatenate((*found, np.asarray(ends, dtype=np.float64), [-1.0, 0.0, 1.0]))).astype(np.int64)
    if profile.bottom > -math.inf:
        indices = indices[indices >= math.floor(profile.bottom / step)]
    return indices[indices <= math.ceil(profile.top / step)] if profile.top < math.inf else indices


_NEGLIGIBLE = 80.0
_MANY = 1024


class TailSum(NamedTuple):
    """A sum and a bound on its absolute error."""

    value: float
    error: float


class Spectrum:
    """The composition of ``parts`` on lattice ``step``, tilted by ``theta`` and wrapped onto ``size`` points.

    Formulas need no lattice: with one among them, ``size`` times ``step`` is the period, and half of ``size`` the
    number of frequencies; there is :meth:`excess`, and no :meth:`tail`.
    """

    def __init__(self, parts: Sequence[Part], step: float, theta: float, size: int) -> None:
        self.step, self.size, self.theta = step, size, theta
        self.cumulant, self.slack = 0.0, 0.0
        formulas = [part for part in parts if not isinstance(part, Dots)]
        dots = sorted((part for part in parts if isinstance(part, Dots)), key=lambda part: -part.times)
        kept, log_bound, coefficients, wobbles = self._transformed(dots)
        frequencies: Floats = 2 * math.pi / (size * step) * kept.astype(np.float64)
        known = [form.transform(theta, frequencies) for form in formulas]
        for form, (values, error) in zip(formulas, known, strict=True):
            self.cumulant += form.times * form.cumulant(theta)
            self.slack += form.times * (form.slack(theta) + form.blur * (1 + 2 * theta))
            log_bound = log_bound + form.times * np.log(np.abs(values) + error)
        self.slack += 2 * len(parts) * U * abs(self.cumulant)  # of adding them up
        alive = log_bound > -_NEGLIGIBLE
        kept, log_bound = kept[alive], log_bound[alive]
        self._index = kept
        self._twice = np.where((kept == 0) | (2 * kept == size), 1.0, 2.0)
        self._angle = 2 * math.pi * kept / size
        self._power = np.ones(len(kept), dtype=np.complex128)
        self._error_squared, self._error = np.zeros(len(kept)), np.zeros(len(kept))
        for part, values, wobble in zip(dots, coefficients, wobbles, strict=True):
            value = values[alive]
            self._power *= _power(value, part.times)
            # T|e|(|F|+|e|)^(T-1) times the other factors, the |e| kept apart for Cauchy-Schwarz.
            rest = np.exp(log_bound - np.log(np.abs(value) + wobble)) * part.times * wobble
            self._error_squared += len(dots) * rest * rest
        for form, (values, error) in zip(formulas, known, strict=True):
            self._power *= np.conj(_power(values[alive], form.times))
            bound = np.abs(values[alive]) + error[alive]
            self._error += np.exp(log_bound - np.log(bound)) * form.times * error[alive]
        self._operations = (64.0 + 4.0 * sum(part.times for part in parts)) * U
        self._blur = sum(form.times * form.blur for form in formulas)
        envelope = sum(form.times * form.envelope(theta, math.pi / step) for form in formulas)
        self._unseen = math.exp(envelope) * step / math.pi**2 * 1.01
        self._law: Floats | None = None
        self._suffixes: dict[tuple[int, float], Floats] = {}
        self._inverse = 0.0
        if len(kept) > _MANY and not formulas:
            full = np.zeros(size // 2 + 1, dtype=np.complex128)
            full[kept] = self._power
            self._law = irfft(full, size)
            self._inverse = _transform_error(size) * math.sqrt(float(np.square(self._law).sum()))

    def _transformed(
        self, parts: Sequence[Dots]
    ) -> tuple[NDArray[np.int64], Floats, list[NDArray[np.complex128]], list[float]]:
        """Frequencies that may matter, bounds on the log of their size, each part's coefficients, and their errors."""
        transform = _transform_error(self.size) * math.sqrt(self.size)
        kept = np.arange(self.size // 2 + 1)
        log_bound: Floats = np.zeros(len(kept))
        coefficients: list[NDArray[np.complex128]] = []
        wobbles: list[float] = []
        for part in parts:
            weights, cumulant = part.tilted(self.theta)
            self.cumulant += part.times * cumulant
            short = -math.log1p(-part.shortfall) if part.shortfall < 1 else math.inf
            self.slack += part.times * (part.digits(self.theta) * U + short)
            index = np.rint(part.losses / self.step).astype(np.int64)
            wrapped = np.bincount(index % self.size, weights=weights, minlength=self.size)
            coefficients.append(rfft(wrapped)[kept])
            wobbles.append(transform * math.sqrt(float(np.square(wrapped).sum())) * (1 + 1e-6))
            bound = np.abs(coefficients[-1]) + wobbles[-1]
            # Later factors exceed one by less than their own rounding, so what is dropped here stays dropped.
            alive = bound > math.exp(-(_NEGLIGIBLE + 20) / part.times)
            kept, log_bound, bound = kept[alive], log_bound[alive], bound[alive]
            coefficients = [values[alive] for values in coefficients]
            log_bound = log_bound + part.times * np.log(bound)
        return kept, log_bound, coefficients, wobbles

    def tail(self, first: int, last: int, rate: float, reference: int) -> TailSum:
        r"""The sum over k in [first, last] of :math:`e^{-a h (k - reference)}` times the tilted law, a = ``rate``."""
        count = last - first + 1
        below = -np.expm1(-rate * self.step + 1j * self._angle)
        decay = math.exp(-rate * self.step * count)
        if self._law is None:
            turned, start = self._turn(count), self._turn(first)
            value = float((self._twice * (self._power * start * ((1 - decay * turned) / below)).real).sum()) / self.size
            rounding = 0.0
        else:
            value = self._summed(self._law, last, count, rate)
            norm = 1 / math.sqrt(-math.expm1(-2 * rate * self.step))
            rounding = self._inverse * norm + abs(value) * U * (64 + count + 4 * rate * self.step * self.size)
        reach = (1 + decay) / np.abs(below)
        rounding += self._operations * float((self._twice * reach * np.abs(self._power)).sum()) / self.size
        # Each of the two conjugate halves meets its own errors, so the 2-norm counts both.
        spread = math.sqrt(float((self._twice * reach * reach * self._error_squared).sum())) / self.size
        dropped = 2 * math.exp(-_NEGLIGIBLE) / -math.expm1(-rate * self.step)
        shift = -rate * self.step * (first - reference)
        scale = math.exp(shift)
        scaling = abs(value) * 4 * U * (4 + abs(shift))
        return TailSum(value * scale, (rounding + spread + dropped + scaling) * scale * 1.01)

    def excess(self, epsilon: float) -> TailSum:
        r"""The tilted law's mean of :math:`e^{-\theta(l-\varepsilon)}(1-e^{\varepsilon-l})_+`, by frequencies alone.

        The transform of this is :math:`1/((\theta+it)(\theta+1+it))`. The sum over all frequencies of a period is the
        value and those of every whole period away, which are positive. Frequencies beyond the last have the formulas'
        least size, and the kernel's at most :math:`1/t^2`, which add up to step/π².
        """
        epsilon -= 2 * self._blur  # laws within e^±blur of these have e^blur of what these have there
        t = self._angle / self.step
        kernel = 1 / ((self.theta + 1j * t) * (self.theta + 1 + 1j * t))
        period = self.size * self.step
        twice = np.where(self._index == 0, 1.0, 2.0)
        value = float((twice * (np.conj(self._power) * kernel * np.exp(-1j * epsilon * t)).real).sum()) / period
        reach = twice * np.abs(kernel)
        error = float((reach * (np.abs(self._power) * (self._operations + 16 * U * (1 + abs(epsilon) * t)))).sum())
        error += float((reach * self._error).sum())
        error += math.sqrt(float((reach * reach * self._error_squared).sum()))
        dropped = math.exp(-_NEGLIGIBLE) * (1 / (self.theta * (1 + self.theta) * period) + period)
        return TailSum(value, error / period * 1.01 + dropped + self._unseen)

    def _summed(self, law: Floats, last: int, count: int, rate: float) -> float:
        """The weighted sum over the ``count`` places up to ``last``, from suffixes kept for the next question."""
        before = self.size - count
        turned = -((last + 1) % self.size)
        if rate * self.step * before > 600:  # weights from the window's start would underflow
            weights = np.exp(-rate * self.step * np.arange(count))
            return float(weights @ np.roll(law, turned)[before:])
        if (last, rate) not in self._suffixes:
            weighted = np.exp(-rate * self.step * np.arange(self.size)) * np.roll(law, turned)
            self._suffixes[last, rate] = np.cumsum(weighted[::-1])[::-1]
        return float(self._suffixes[last, rate][before]) * math.exp(rate * self.step * before)

    def _turn(self, places: int) -> NDArray[np.complex128]:
        """Each kept frequency's phase after ``places`` lattice steps, reduced in whole numbers."""
        turns = (self._index * (places % self.size)) % self.size
        return np.asarray(np.exp((2j * math.pi / self.size) * turns))


def _power(base: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """``base`` to a positive whole power by repeated squaring."""
    result: NDArray[np.complex128] | None = None
    while exponent:
        if exponent & 1:
            result = base if result is None else result * base
        exponent >>= 1
        if exponent:
            base = base * base
    return np.ones_like(base) if result is None else result


def _transform_error(size: int) -> float:
    """Bound on the relative error of the real transform in the 2-norm."""
    units, factor = 8.0, 2
    while size > 1:
        while size % factor == 0:
            units += math.sqrt(factor) * (factor + 3) + 4
            size //= factor
        factor += 1
    return units * U


_SQRT2 = math.sqrt(2.0)
_ALIAS = math.log(1e7)
"""Wrapped mass is kept below this fraction of delta (log of its inverse)."""
_LEAST_TILT = 0.7
"""Least tilt, in units of the spread."""
_DEEPEST = 6.0
"""How much smaller than at the saddle the tail may look under the tilt (log)."""


class Saddle(NamedTuple):
    """A tilt, the loss it makes typical, the spread there, and the estimated log of delta."""

    theta: float
    epsilon: float
    spread: float
    log_delta: float


class Window(NamedTuple):
    """A tilt and width for the transform, and cumulants for Chernoff bounds on what lies beyond."""

    theta: float
    width: float
    cumulants: tuple[tuple[float, float], ...]


def cumulant(parts: Sequence[Part], theta: float) -> float:
    """Log of the tilted total mass of the composition."""
    return sum(part.times * part.cumulant(theta) for part in parts)


def moments(parts: Sequence[Part], theta: float) -> tuple[float, float, float]:
    """Cumulant, mean and variance of the composition tilted by theta."""
    total = mean = variance = 0.0
    for part in parts:
        value, centre, spread = part.moments(theta)
        total += part.times * value
        mean += part.times * centre
        variance += part.times * spread
    return total, mean, variance


def _saddle(parts: Sequence[Part], theta: float) -> Saddle:
    total, mean, variance = moments(parts, theta)
    spread = math.sqrt(max(variance, 1e-300))
    share = 0.5 * (float(erfcx(theta * spread / _SQRT2)) - float(erfcx((1 + theta) * spread / _SQRT2)))
    return Saddle(theta, mean, spread, total - theta * mean + math.log(max(share, 1e-300)))


def saddle_for(parts: Sequence[Part], delta: float, guess: float = 2.0, tolerance: float = 0.02) -> Saddle:
    """The tilt at which the estimated tail is ``delta``."""
    target = math.log(delta)
    return _search(parts, lambda found: found.log_delta - target, guess, tolerance)


def saddle_at(parts: Sequence[Part], epsilon: float, guess: float = 2.0) -> Saddle:
    """The tilt at which ``epsilon`` is typical, with delta estimated there."""
    found = _search(parts, lambda found: (epsilon - found.epsilon) / found.spread, guess, 0.05)
    return found._replace(log_delta=found.log_delta - found.theta * (epsilon - found.epsilon))


def _search(parts: Sequence[Part], excess: Callable[[Saddle], float], guess: float, tolerance: float) -> Saddle:
    """Find a zero of a function that falls as log theta grows: bracket it, then interpolate."""
    below: tuple[float, float] | None = None
    above: tuple[float, float] | None = None
    position = math.log(guess)
    found = _saddle(parts, guess)
    for _ in range(80):
        found = _saddle(parts, math.exp(position))
        value = excess(found)
        if abs(value) < tolerance:
            break
        if value > 0:
            below = (position, value)
        else:
            above = (position, value)
        # Nothing is gained by tilting beyond the last atom, or by hardly tilting at all.
        if value > 0 and found.spread < 1e-9 * max(abs(found.epsilon), 1e-290):
            break
        if value < 0 and found.theta * found.spread < _LEAST_TILT:
            break
        if below and above:
            span = above[0] - below[0]
            if span < 1e-3:
                break
            secant = (below[0] * above[1] - above[0] * below[1]) / (above[1] - below[1])
            position = min(max(secant, below[0] + 0.1 * span), above[0] - 0.1 * span)
        else:
            position += 0.7 if value > 0 else -0.7
            if abs(position) > 40:
                break
    # A tail that is not rare needs no tilt to be seen, but the window does, to be narrow.
    # A law that is all but one atom has no spread of its own to go by.
    spread = max(found.spread, 1e-9 * abs(found.epsilon))
    return found._replace(theta=max(found.theta, _LEAST_TILT / spread))


def window(parts: Sequence[Part], found: Saddle, epsilon: float, log_delta: float) -> Window:
    """The tilt near the saddle whose window is narrowest while wrapped mass and rounding stay negligible.

    A tilt that is too weak leaves the tail a small part of the tilted law, and rounding,
    which is relative to the whole, shows in it: by convexity of the cumulant the part is
    about exp(-(θ-θ')²spread²/2) of what it is at the saddle.
    """
    theta, need = found.theta, _ALIAS - log_delta
    table: list[tuple[float, float]] = []
    for factor in (1.0, 1.12, 1.25, 1.45, 1.7, 2.0, 2.5, 3.2):
        steeper = theta * factor
        value = cumulant(parts, steeper)
        table.append((steeper, value))
        if factor > 1.2 and value - steeper * epsilon > 3 * need:
            break
    best: tuple[float, float] | None = None
    for factor in (1.1, 1.0, 0.92, 0.85, 0.77, 0.7, 0.62, 0.55, 0.48, 0.4, 0.3):
        tilt = theta * factor
        if best is not None and ((theta - tilt) * found.spread) ** 2 > 2 * _DEEPEST:
            break
        above = min(
            (
                (value - steeper * epsilon + need) / (steeper - tilt)
                for steeper, value in table
                if steeper > tilt * 1.02
            ),
            default=math.inf,
        )
        width = max(need / tilt, above)
        if best is None or width < best[1]:
            best = (tilt, width)
    chosen = best or (theta, need / theta)
    return Window(chosen[0], chosen[1], tuple(table))

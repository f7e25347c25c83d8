r"""Tail sums of a composition, from its Fourier coefficients.

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
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, rfft

from defocus.privacy.accounting.pld.dots import Dots
from defocus.privacy.accounting.pld.profiles import Floats, U

__all__ = ["Spectrum", "TailSum"]

_NEGLIGIBLE = 80.0
_MANY = 1024


class TailSum(NamedTuple):
    """A sum and a bound on its absolute error."""

    value: float
    error: float


class Spectrum:
    """The composition of ``parts`` on lattice ``step``, tilted by ``theta`` and wrapped onto ``size`` points."""

    def __init__(self, parts: Sequence[Dots], step: float, theta: float, size: int) -> None:
        self.step, self.size = step, size
        transform = _transform_error(size) * math.sqrt(size)
        kept = np.arange(size // 2 + 1)
        log_bound = np.zeros(len(kept))
        coefficients: list[NDArray[np.complex128]] = []
        wobbles: list[float] = []
        self.cumulant, self.slack = 0.0, 0.0
        parts = sorted(parts, key=lambda part: -part.times)
        for part in parts:
            weights, cumulant = part.tilted(theta)
            self.cumulant += part.times * cumulant
            short = -math.log1p(-part.shortfall) if part.shortfall < 1 else math.inf
            self.slack += part.times * (part.digits(theta) * U + short)
            index = np.rint(part.losses / step).astype(np.int64)
            wrapped = np.bincount(index % size, weights=weights, minlength=size)
            coefficients.append(rfft(wrapped)[kept])
            wobbles.append(transform * math.sqrt(float(wrapped @ wrapped)) * (1 + 1e-6))
            bound = np.abs(coefficients[-1]) + wobbles[-1]
            # Later factors exceed one by less than their own rounding, so what is dropped here stays dropped.
            alive = bound > math.exp(-(_NEGLIGIBLE + 20) / part.times)
            kept, log_bound, bound = kept[alive], log_bound[alive], bound[alive]
            coefficients = [values[alive] for values in coefficients]
            log_bound = log_bound + part.times * np.log(bound)
        alive = log_bound > -_NEGLIGIBLE
        kept, log_bound = kept[alive], log_bound[alive]
        self._index = kept
        self._twice = np.where((kept == 0) | (2 * kept == size), 1.0, 2.0)
        self._angle = 2 * math.pi * kept / size
        power = np.ones(len(kept), dtype=np.complex128)
        self._error_squared = np.zeros(len(kept))
        for part, values, wobble in zip(parts, coefficients, wobbles, strict=True):
            value = values[alive]
            power *= _power(value, part.times)
            # T|e|(|F|+|e|)^(T-1) times the other factors, the |e| kept apart for Cauchy-Schwarz.
            rest = np.exp(log_bound - np.log(np.abs(value) + wobble)) * part.times * wobble
            self._error_squared += len(parts) * rest * rest
        self._power = power
        self._operations = (64.0 + 4.0 * sum(part.times for part in parts)) * U
        self._law: Floats | None = None
        self._suffixes: dict[tuple[int, float], Floats] = {}
        self._inverse = 0.0
        if len(kept) > _MANY:
            full = np.zeros(size // 2 + 1, dtype=np.complex128)
            full[kept] = power
            self._law = irfft(full, size)
            self._inverse = _transform_error(size) * math.sqrt(float(self._law @ self._law))

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

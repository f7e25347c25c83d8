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

Wrapping only ever adds positive mass to the window.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.fft import rfft

from defocus.privacy.accounting.pld.dots import Dots
from defocus.privacy.accounting.pld.profiles import U

__all__ = ["Spectrum", "TailSum"]

_NEGLIGIBLE = 80.0


class TailSum(NamedTuple):
    """A sum and a bound on its absolute error."""

    value: float
    error: float


class Spectrum:
    """The composition of ``parts`` on lattice ``step``, tilted by ``theta`` and wrapped onto ``size`` points."""

    def __init__(self, parts: Sequence[Dots], step: float, theta: float, size: int) -> None:
        self.step, self.size = step, size
        transform = _transform_error(size) * math.sqrt(size)
        log_bound = np.zeros(size // 2 + 1)
        coefficients: list[NDArray[np.complex128]] = []
        wobbles: list[float] = []
        self.cumulant, self.slack = 0.0, 0.0
        for part in parts:
            weights, cumulant = part.tilted(theta)
            self.cumulant += part.times * cumulant
            self.slack += part.times * (part.digits(theta) * U - math.log1p(-min(part.shortfall, 0.5)))
            index = np.rint(part.losses / step).astype(np.int64)
            wrapped = np.bincount(index % size, weights=weights, minlength=size)
            coefficients.append(rfft(wrapped))
            wobbles.append(transform * math.sqrt(float(wrapped @ wrapped)) * (1 + 1e-6))
            with np.errstate(divide="ignore"):
                log_bound += part.times * np.log(np.abs(coefficients[-1]) + wobbles[-1])
        kept = np.flatnonzero(log_bound > -_NEGLIGIBLE)
        self._index = kept
        self._twice = np.where((kept == 0) | (2 * kept == size), 1.0, 2.0)
        self._angle = 2 * math.pi * kept / size
        power = np.ones(len(kept), dtype=np.complex128)
        self._error_squared = np.zeros(len(kept))
        for part, full, wobble in zip(parts, coefficients, wobbles, strict=True):
            value = full[kept]
            power *= _power(value, part.times)
            # T|e|(|F|+|e|)^(T-1) times the other factors, the |e| kept apart for Cauchy-Schwarz.
            rest = np.exp(log_bound[kept] - np.log(np.abs(value) + wobble)) * part.times * wobble
            self._error_squared += len(parts) * rest * rest
        self._power = power
        self._operations = (64.0 + 4.0 * sum(part.times for part in parts)) * U

    def tail(self, first: int, last: int, rate: float, reference: int) -> TailSum:
        r"""The sum over k in [first, last] of :math:`e^{-a h (k - reference)}` times the tilted law, a = ``rate``."""
        count = last - first + 1
        decay = math.exp(-rate * self.step * count)
        turned = np.exp(1j * (2 * math.pi / self.size) * ((self._index * (count % self.size)) % self.size))
        start = np.exp(1j * (2 * math.pi / self.size) * ((self._index * (first % self.size)) % self.size))
        below = -np.expm1(-rate * self.step + 1j * self._angle)
        value = float((self._twice * (self._power * start * ((1 - decay * turned) / below)).real).sum()) / self.size
        reach = (1 + decay) / np.abs(below)
        rounding = self._operations * float((self._twice * reach * np.abs(self._power)).sum()) / self.size
        # Each of the two conjugate halves meets its own errors, so the 2-norm counts both.
        spread = math.sqrt(float((self._twice * reach * reach * self._error_squared).sum())) / self.size
        dropped = 2 * math.exp(-_NEGLIGIBLE) / -math.expm1(-rate * self.step)
        shift = -rate * self.step * (first - reference)
        scale = math.exp(shift)
        scaling = abs(value) * 4 * U * (4 + abs(shift))
        return TailSum(value * scale, (rounding + spread + dropped + scaling) * scale * 1.01)


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


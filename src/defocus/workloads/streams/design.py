"""From what a user declares to a strategy with noise: the public half of a running sum."""

import math
import threading
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, final

import numpy as np

from defocus.errors import InvalidParameterError, Number
from defocus.mechanisms import Gaussian, Laplace
from defocus.mechanisms.mechanism import LARGEST_SCALE
from defocus.privacy.budgets import Budget
from defocus.privacy.events import DiscreteGaussian, DiscreteLaplace
from defocus.privacy.wire import from_wire, to_wire
from defocus.workloads.measurement import allowed_outside, normal_factor
from defocus.workloads.streams.shaped import LONGEST_SHAPED, Shaped, shape_of
from defocus.workloads.streams.strategies import (
    Factor,
    Floats,
    Strategy,
    Tree,
    coefficients,
    separated,
    toeplitz_variances,
)

__all__ = ["METHODS", "SHORT", "Design", "Errors", "Noise", "Participation", "best_bandwidth", "design"]


METHODS = ("square root", "banded", "binned", "tree")
SHORT = 4096
"""Up to this many steps, remembering every one of them is cheap."""

_BITS = ((18, 16), (18, 14), (16, 12), (14, 12), (12, 10), (10, 8), (8, 6), (8, 4))
"""Precisions of coefficients and weights, the finest first."""
_ROOM = 2**62
"""What a row may add up to before its noise, so that 64 bits hold the noisy row."""
_FINE = 2**30
"""How finely an irrational norm is rounded up."""

Noise: TypeAlias = Gaussian | Laplace


@final
@dataclass(frozen=True, slots=True)
class Participation:
    """How one unit can show up: how often, how far apart, how much each time; twice that if units are replaced."""

    times: int
    separation: int
    contribution: Number
    replace: bool

    def distance(self, strategy: Strategy) -> Fraction:
        """The L2 sensitivity of a strategy's rows, rounded up."""
        scaled = strategy.squared_sensitivity(self.times, self.separation) * _FINE**2
        root = math.isqrt(scaled)
        norm = Fraction(root + (root * root < scaled), _FINE)
        return norm * Fraction(self.contribution) * (2 if self.replace else 1)

    def total(self, tree: Tree) -> int:
        """The L1 sensitivity of a tree's blocks."""
        bound = tree.sensitivity(self.times, self.separation) * Fraction(self.contribution)
        return math.ceil(bound) * (2 if self.replace else 1)


@final
@dataclass(frozen=True, slots=True)
class Design:
    """A strategy, the noise that each of its rows gets, and the participation that it was made for."""

    method: str
    strategy: Factor | Shaped | Tree
    noise: Noise
    participation: Participation
    entries: int
    largest: int

    def to_dict(self) -> dict[str, Any]:
        """The design with JSON types only. Nothing in it is secret."""
        strategy, unit = self.strategy, self.participation
        built: dict[str, Any]
        if isinstance(strategy, Tree):
            built = {"scale": strategy.scale}
        elif isinstance(strategy, Shaped):
            built = {"bits": strategy.bits, "bandwidth": strategy.bandwidth, "shape": strategy.shape}
        else:
            built = {name: getattr(strategy, name) for name in ("bandwidth", "spread", "normalised")}
            built["bits"] = list(strategy.bits)
        return {
            "method": self.method,
            "steps": strategy.steps,
            "entries": self.entries,
            "largest": self.largest,
            "participation": [unit.times, unit.separation, str(Fraction(unit.contribution)), unit.replace],
            "event": to_wire(self.noise.event),
            **built,
        }

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> "Design":
        """Read a design back, and refuse one whose noise does not cover its strategy."""
        times, separation, contribution, replace = kept["participation"]
        unit = Participation(int(times), int(separation), Fraction(contribution), bool(replace))
        strategy: Factor | Shaped | Tree
        if "scale" in kept:
            strategy = Tree(int(kept["steps"]), scale=int(kept["scale"]))
        elif "shape" in kept:
            strategy = Shaped(int(kept["steps"]), **{name: kept[name] for name in ("bits", "bandwidth", "shape")})
        else:
            names = ("bandwidth", "spread", "normalised")
            strategy = Factor(int(kept["steps"]), bits=tuple(kept["bits"]), **{name: kept[name] for name in names})
        event = from_wire(kept["event"])
        noise: Noise
        needed: int | Fraction
        if isinstance(event, DiscreteLaplace) and isinstance(strategy, Tree):
            noise, needed = Laplace(scale=event.scale, sensitivity=event.sensitivity), unit.total(strategy)
        elif isinstance(event, DiscreteGaussian) and event.dimension >= strategy.rows * kept["entries"]:
            noise = Gaussian(sigma=event.sigma, sensitivity=event.sensitivity, dimension=event.dimension)
            needed = unit.distance(strategy)
        else:
            raise ValueError
        if needed > noise.sensitivity:
            raise ValueError
        return cls(kept["method"], strategy, noise, unit, int(kept["entries"]), int(kept["largest"]))


def design(
    *,
    steps: int,
    entries: int,
    largest: int,
    price: Budget,
    laplace: bool,
    participation: Participation,
    method: str,
    bandwidth: int | None,
    spread: int,
) -> Design:
    """The strategy of this method at the finest precision that 64-bit rows and exact noise allow."""
    if laplace:
        tree = Tree(steps, scale=1)
        _must_fit(tree, largest)
        scale = Laplace.calibrated(price, sensitivity=participation.total(tree))
        return Design(method, tree, scale, participation, entries, largest)
    if method == "banded" and bandwidth is None:
        bandwidth = best_bandwidth(steps, participation)
        if participation.times > 1 and bandwidth <= participation.separation and steps <= LONGEST_SHAPED:
            bandwidth = min(participation.separation, steps)  # columns of one unit do not overlap, so no more is better
    apart = bandwidth is not None and bandwidth <= participation.separation
    shape = shape_of(steps, bandwidth or 1) if participation.times > 1 and apart and steps <= LONGEST_SHAPED else None
    once = participation.times == 1 and method != "banded"

    def made(bits: tuple[int, int]) -> Factor | Shaped | Tree:
        if method == "tree":
            return Tree(steps, scale=2 ** bits[0])
        if shape is not None:
            return Shaped(steps, bits=bits[0], bandwidth=bandwidth or 1, shape=shape)
        return Factor(
            steps,
            bits=bits if once else (bits[0], 0),
            bandwidth=bandwidth if method == "banded" else None,
            spread=spread if method == "binned" else None,
            normalised=once,
        )

    def calibrated(strategy: Strategy) -> Gaussian:
        distance = participation.distance(strategy)
        return Gaussian.calibrated(price, sensitivity=distance, dimension=strategy.rows * entries)

    _must_fit(coarse := made(_BITS[-1]), largest)
    first = calibrated(coarse)
    ratio = Fraction(first.sigma) / Fraction(first.sensitivity)
    for bits in _BITS:
        strategy = made(bits)
        if _fits(strategy, largest) and ratio * participation.distance(strategy) <= LARGEST_SCALE // 2:
            return Design(method, strategy, calibrated(strategy), participation, entries, largest)
    return Design(method, coarse, first, participation, entries, largest)


def best_bandwidth(steps: int, participation: Participation) -> int:
    """The power of two up to 4096, or the separation, with the least mean variance for this participation."""
    widest = min(steps, SHORT)
    candidates = {min(2**power, widest) for power in range(13)} | {min(participation.separation, widest)}

    def mean_variance(width: int) -> float:
        column = coefficients(np.arange(width, dtype=np.int64), _BITS[0][0])
        seen = np.fromiter(toeplitz_variances(column, near := min(steps, 2 * SHORT)), np.float64, near)
        # Beyond twice the widest band each further step adds the same, one over the squared sum of the column.
        later = steps - near
        total = seen.sum() + later * seen[-1] + later * (later + 1) / 2 / float(column.sum()) ** 2
        return float(total) * separated(column, steps, participation.times, participation.separation)

    return min(sorted(candidates), key=mean_variance)


def _fits(strategy: Strategy, largest: int) -> bool:
    return strategy.reach * largest < _ROOM


def _must_fit(strategy: Strategy, largest: int) -> None:
    if not _fits(strategy, largest):
        raise InvalidParameterError(
            f"Steps of up to {largest} could add up to more than 64 bits hold over {strategy.steps} steps.",
            fix="pass a smaller largest=: larger entries are cut to it, which moves neighbouring streams no further"
            " apart.",
        )


@final
class Errors:
    """The variance of the running sum after each step, computed as far as it was asked for and kept."""

    __slots__ = ("_design", "_known", "_lock", "_more")

    def __init__(self, design: Design) -> None:
        self._design = design
        self._more: Iterator[float] = design.strategy.variances()
        self._known = array("d")
        self._lock = threading.Lock()

    def variance(self, step: int) -> float:
        """The variance of one entry after ``step`` steps, counted from one."""
        noise = self._design.noise.variance
        with self._lock:
            while len(self._known) < step:
                self._known.append(next(self._more) * noise)
        return self._known[step - 1]

    def all(self) -> Floats:
        """The variances after every step."""
        self.variance(self._design.strategy.steps)
        return np.array(self._known)

    def half_width(self, step: int, confidence: Number) -> float:
        """A half-width that the error of one entry stays within with probability ``confidence``.

        Gaussian noise: the normal quantile, since rows are thousands of grid steps wide. Laplace noise: Chernoff's
        bound on a sum of independent Laplace variables, which holds and is a little wide.
        """
        noise = self._design.noise
        if isinstance(noise, Laplace):
            blocks = step.bit_count()
            return _chernoff(float(noise.scale), blocks, allowed_outside(confidence) / 2)
        return normal_factor(confidence) * math.sqrt(self.variance(step))


def _chernoff(scale: float, terms: int, tail: float) -> float:
    r"""The least of :math:`(n \ln E e^{\lambda X} - \ln p)/\lambda` over a grid of λ: each bounds the upper p-quantile.

    With :math:`q = e^{-1/b}`, :math:`E e^{\lambda X} = \frac{(1-q)^2}{(1-qe^\lambda)(1-qe^{-\lambda})}`.
    """
    rate = np.linspace(0.001, 0.999, 999) / scale
    q = math.exp(-1 / scale)
    log_moment = 2 * math.log1p(-q) - np.log1p(-q * np.exp(rate)) - np.log1p(-q * np.exp(-rate))
    return float(np.min((terms * log_moment - math.log(tail)) / rate))

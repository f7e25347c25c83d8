r"""What a running stream remembers between steps, and the one place where its data meets noise.

``x`` is exact: integers times integers plus integer noise, sized beforehand so that 64 bits hold them. The
noisy row y is all that the rest sees: the estimate solves :math:`C\hat x = y` row by row in floating point and
adds up, remembering one number for each group of steps. The solver is given y, never x, so its rounding is
post-processing too.
"""

from collections.abc import Callable
from typing import Any, Protocol, final

import numpy as np

from defocus.workloads.streams_factors import Factor, Tree, merging
from defocus.workloads.toeplitz import Floats, Ints

__all__ = ["FactorMemory", "Memory", "Noise", "TreeMemory"]

Noise = Callable[[int], Ints]


class Memory(Protocol):
    """One step after another."""

    step: int

    def advance(self, x: Ints, noise: Noise) -> Floats:
        """Take in the next step and return the noisy running sum after it. ``noise(k)`` gives k rows of noise."""

    def dump(self) -> dict[str, Any]:
        """Everything remembered, with JSON types only. Secret: it holds sums of the data without noise."""

    def load(self, kept: dict[str, Any]) -> None:
        """Go on from what was dumped; ValueError, TypeError or KeyError if it cannot be that."""


@final
class FactorMemory:
    """Groups of steps for a :class:`Factor`: their exact sums, and the sums of what the noisy rows say of them."""

    __slots__ = ("_estimate", "_exact", "_factor", "_first", "_m", "_total", "step")

    def __init__(self, factor: Factor, width: int) -> None:
        room = factor.capacity
        self._factor = factor
        self._first = np.zeros(room, dtype=np.int64)
        self._exact = np.zeros((room, width), dtype=np.int64)
        self._estimate = np.zeros((room, width))
        self._total = np.zeros(width)
        self._m = self.step = 0

    def advance(self, x: Ints, noise: Noise) -> Floats:
        """One row: y = C x + z in integers, then one row of the triangular system."""
        t, factor = self.step, self._factor
        self._shift(t)
        m, weight = self._m, factor.weight(t)
        self._first[m] = t
        self._exact[m] = weight * x
        g = factor.coefficients(t - self._first[: m + 1])
        y = g @ self._exact[: m + 1] + noise(1)[0]
        # From here on post-processing: nothing below looks at x or at exact sums.
        self._estimate[m] = (y - g[:m].astype(np.float64) @ self._estimate[:m]) / float(g[m])
        self._total += self._estimate[m] / weight
        self._m, self.step = m + 1, t + 1
        return self._total.copy()

    def _shift(self, row: int) -> None:
        """Merge the groups, or forget the step, that this row no longer tells apart."""
        m, factor = self._m, self._factor
        if factor.spread is not None:
            for start, _ in merging(row, factor.spread):
                i = int(np.searchsorted(self._first[:m], start))
                for kept in (self._exact, self._estimate):
                    kept[i] += kept[i + 1]
                self._close(i + 1, m)
                m -= 1
        elif row >= factor.bandwidth:
            self._close(0, m)
            m -= 1
        self._m = m

    def _close(self, i: int, m: int) -> None:
        for kept in (self._first, self._exact, self._estimate):
            kept[i : m - 1] = kept[i + 1 : m]

    def dump(self) -> dict[str, Any]:
        """Groups in the order of time."""
        m = self._m
        return {
            "step": self.step,
            "first": self._first[:m].tolist(),
            "exact": self._exact[:m].tolist(),
            "estimate": self._estimate[:m].tolist(),
            "total": self._total.tolist(),
        }

    def load(self, kept: dict[str, Any]) -> None:
        """Go on from what was dumped."""
        first = np.array(kept["first"], dtype=np.int64)
        self.step, self._m = int(kept["step"]), len(first)
        self._first[: self._m] = first
        width = len(self._total)
        self._exact[: self._m] = np.array(kept["exact"], dtype=np.int64).reshape(self._m, width)
        self._estimate[: self._m] = np.array(kept["estimate"], dtype=np.float64).reshape(self._m, width)
        self._total[:] = np.array(kept["total"], dtype=np.float64)


@final
class TreeMemory:
    """For each level of a :class:`Tree` the block that is filling up, and the last complete one with its noise."""

    __slots__ = ("_exact", "_noisy", "_tree", "step")

    def __init__(self, tree: Tree, width: int) -> None:
        self._tree = tree
        self._exact = np.zeros((tree.levels, width), dtype=np.int64)
        self._noisy = np.zeros((tree.levels, width), dtype=np.int64)
        self.step = 0

    def advance(self, x: Ints, noise: Noise) -> Floats:
        """Complete the blocks that end here, and add up those that make the running sum."""
        self.step += 1
        self._exact += x
        done = (self.step & -self.step).bit_length()  # blocks of 1, 2, 4, … steps up to the last power that divides
        self._noisy[:done] = self._tree.scale * self._exact[:done] + noise(done)
        self._exact[:done] = 0
        parts = [level for level in range(self._tree.levels) if self.step >> level & 1]
        return np.asarray(self._noisy[parts].astype(np.float64).sum(axis=0) / self._tree.scale)

    def dump(self) -> dict[str, Any]:
        """Level by level."""
        return {"step": self.step, "exact": self._exact.tolist(), "noisy": self._noisy.tolist()}

    def load(self, kept: dict[str, Any]) -> None:
        """Go on from what was dumped."""
        self.step = int(kept["step"])
        self._exact[:] = np.array(kept["exact"], dtype=np.int64)
        self._noisy[:] = np.array(kept["noisy"], dtype=np.int64)

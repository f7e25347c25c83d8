"""Of which independent noises a released column is made, so that errors of what is computed from columns follow.

Every number of a release is a combination of independent noises: one for each cell of each measurement of its group. A
column knows by what each of them is multiplied, so variances and covariances of columns follow exactly, also of those
that share a measurement, as a count and a sum do.
"""

import base64
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

__all__ = ["ColumnNoise", "Noise"]

_Floats: TypeAlias = npt.NDArray[np.float64]
_Places: TypeAlias = npt.NDArray[np.int64]


class ColumnNoise(ABC):
    """Of which independent noises of variance one a column is made."""

    __slots__ = ()
    width: float
    """How many standard errors hold 95 %."""
    linear: bool
    """Whether the column is linear in its noise, so that its error is exact; else factors are derivatives."""

    @abstractmethod
    def taken(self, rows: Any) -> "ColumnNoise":
        """The noise of some of the entries."""

    @abstractmethod
    def scaled(self, by: _Floats) -> "ColumnNoise":
        """The noise of a column of which each entry is multiplied."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Noise(ColumnNoise):
    """The noise of a column whose entries have independent noise: by what noises of variance one are multiplied.

    ``factors`` has for each measurement one line for each entry, or a single line for all; not a number where an error
    is unknown.

    >>> Noise({"sum 0": np.array([[3.0, 4.0]])}, 1.96, linear=True).errors(2)
    array([5., 5.])
    """

    factors: Mapping[str, _Floats]
    width: float
    linear: bool
    entries: _Places | None = None
    """Which entry of the release each one is, where that is not its place."""

    def errors(self, size: int) -> _Floats:
        """Standard errors of so many entries."""
        squares = [np.broadcast_to(np.square(each).sum(axis=1), size) for each in self.factors.values()]
        return np.asarray(np.sqrt(np.sum(squares, axis=0))) if squares else np.zeros(size)

    def scaled(self, by: _Floats) -> "Noise":
        """The noise of a column of which each entry is multiplied."""
        return replace(self, factors={source: by[:, None] * each for source, each in self.factors.items()})

    def taken(self, rows: Any) -> "Noise":
        """The noise of some of the entries."""
        places = np.asarray(rows, np.int64)
        factors = {name: each if len(each) == 1 else each[places] for name, each in self.factors.items()}
        return replace(self, factors=factors, entries=places if self.entries is None else self.entries[places])

    def out(self) -> dict[str, Any]:
        """The noise with JSON types only: factors as 64-bit floats in base64, line by line."""
        packed = {
            source: {"cells": each.shape[1], "floats": base64.b64encode(each.astype("<f8").tobytes()).decode()}
            for source, each in self.factors.items()
        }
        return {"factors": packed, "width": self.width, "linear": self.linear}

    @classmethod
    def read(cls, written: Any) -> "Noise":
        """The noise that :meth:`out` wrote."""
        factors = {
            str(source): np.frombuffer(base64.b64decode(each["floats"], validate=True), "<f8")
            .astype(np.float64)
            .reshape(-1, int(each["cells"]))
            for source, each in written["factors"].items()
        }
        return cls(factors, float(written["width"]), linear=bool(written["linear"]))

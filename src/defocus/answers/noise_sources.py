"""Of which independent noises a released column is made, so that errors of what is computed from columns follow.

Every number of a release is a combination of independent noises: one for each cell of each measurement of its group. A
column knows by what each of them is multiplied, so variances and covariances of columns follow exactly, also of those
that share a measurement, as a count and a sum do.
"""

import base64
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt
from scipy import sparse

__all__ = ["Atoms", "ColumnNoise", "Mix", "Mixture", "Noise", "atoms_of", "fieller", "matrix_of"]

_Floats: TypeAlias = npt.NDArray[np.float64]
_Places: TypeAlias = npt.NDArray[np.int64]
_ROUNDING = 1e-12
"""What cancels to less than this part is nothing."""


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


@final
@dataclass(frozen=True, slots=True)
class Atoms:
    """All noises of a release, numbered: for each measurement, so many cells of so many entries."""

    cells: Mapping[str, int]
    entries: int

    @property
    def number(self) -> int:
        """How many there are."""
        return self.entries * sum(self.cells.values())

    def first(self, source: str) -> int:
        """The number of the first noise of a measurement."""
        before = list(self.cells)
        return self.entries * sum(self.cells[other] for other in before[: before.index(source)])


@final
@dataclass(frozen=True, slots=True, eq=False)
class Mix:
    """What noises are multiplied with in each entry: the matrix ``own + shared @ common``.

    A total over many groups is one line that all of them share, so that shares of a total stay small.
    """

    own: Any
    shared: Any
    common: Any

    @classmethod
    def of(cls, own: Any) -> "Mix":
        """A plain sparse matrix."""
        return cls(own, sparse.csr_array((own.shape[0], 0)), sparse.csr_array((0, own.shape[1])))

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return int(sum(part.nnz for part in (self.own, self.shared, self.common)))

    def norms(self) -> _Floats:
        """The standard deviation of each entry."""
        return np.sqrt(np.maximum(self.dot(self), 0.0))

    def total(self, sizes: _Floats) -> _Floats:
        """At most how large each entry is, where noises of these sizes add up whatever their signs."""
        return np.asarray(abs(self.own) @ sizes + abs(self.shared) @ (abs(self.common) @ sizes))

    def number(self) -> npt.NDArray[np.int64]:
        """At most how many noises are in each entry."""
        own, shared, common = ((part != 0).astype(np.int64) for part in (self.own, self.shared, self.common))
        return np.asarray(own.sum(axis=1) + shared @ common.sum(axis=1))

    def without_nan(self) -> "Mix":
        """Nothing where a factor is not known."""
        known = [part.copy() for part in (self.own, self.shared, self.common)]
        for part in known:
            part.data = np.nan_to_num(part.data, nan=0.0, posinf=0.0, neginf=0.0)
        return Mix(*known)

    @property
    def apart(self) -> bool:
        """Whether no noise is in two entries."""
        return not self.shared.nnz and bool((np.bincount(self.own.indices, minlength=1) <= 1).all())

    def scaled(self, by: _Floats) -> "Mix":
        """Each entry multiplied."""
        return self.mixed(sparse.diags_array(by, format="csr"))

    def mixed(self, weights: Any) -> "Mix":
        """Sums of entries: ``weights`` has a line for each sum."""
        return Mix(sparse.csr_array(weights @ self.own), sparse.csr_array(weights @ self.shared), self.common)

    def pooled(self, weights: Any, members: Any) -> "Mix":
        """Sums of entries, each shared by its ``members``."""
        own = sparse.csr_array(weights @ self.own + (weights @ self.shared) @ self.common)
        return Mix(sparse.csr_array((members.shape[0], own.shape[1])), sparse.csr_array(members), own)

    def __add__(self, other: "Mix") -> "Mix":
        return Mix(
            sparse.csr_array(self.own + other.own),
            sparse.csr_array(sparse.hstack([self.shared, other.shared])),
            sparse.csr_array(sparse.vstack([self.common, other.common])),
        )

    def dot(self, other: "Mix") -> _Floats:
        """The covariance of each entry with that of another matrix."""
        parts = [
            self.own * other.own,
            (self.own @ other.common.T) * other.shared,
            (other.own @ self.common.T) * self.shared,
            (self.shared @ (self.common @ other.common.T)) * other.shared,
        ]
        sums = np.stack([np.asarray(part.sum(axis=1)).ravel() for part in parts])
        total, size = sums.sum(axis=0), np.abs(sums).sum(axis=0)
        return np.where(np.abs(total) <= _ROUNDING * size, 0.0, total)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Mixture(ColumnNoise):
    """The noise of a column whose entries may share noises."""

    matrix: Mix
    atoms: Atoms
    width: float
    linear: bool

    def scaled(self, by: _Floats) -> "Mixture":
        """The noise of a column of which each entry is multiplied."""
        return replace(self, matrix=self.matrix.scaled(by))

    def taken(self, rows: Any) -> "Mixture":
        """The noise of some of the entries."""
        own, shared = self.matrix.own[np.asarray(rows)], self.matrix.shared[np.asarray(rows)]
        return replace(self, matrix=replace(self.matrix, own=own, shared=shared))

    def over(self, atoms: Atoms) -> Mix:
        """The matrix over more noises."""
        matrix = self.matrix
        return Mix(self._moved(matrix.own, atoms), matrix.shared, self._moved(matrix.common, atoms))

    def _moved(self, matrix: Any, atoms: Atoms) -> Any:
        if self.atoms == atoms:
            return matrix
        starts = np.array([self.atoms.first(source) for source in self.atoms.cells] or [0])
        shift = np.array([atoms.first(source) for source in self.atoms.cells] or [0]) - starts
        block = np.searchsorted(starts, matrix.indices, side="right") - 1
        moved = (matrix.data, matrix.indices + shift[block], matrix.indptr)
        return sparse.csr_array(moved, shape=(matrix.shape[0], atoms.number))


def atoms_of(columns: Iterable[tuple[ColumnNoise | None, int]]) -> Atoms:
    """The noises of columns, each with its number of entries."""
    cells: dict[str, int] = {}
    entries = 0
    for noise, size in columns:
        if isinstance(noise, Mixture):
            cells |= noise.atoms.cells
            entries = max(entries, noise.atoms.entries)
        elif isinstance(noise, Noise):
            cells |= {source: each.shape[1] for source, each in noise.factors.items()}
            entries = max(entries, size if noise.entries is None else int(noise.entries.max(initial=-1)) + 1)
    return Atoms(cells, entries)


def matrix_of(noise: ColumnNoise, size: int, atoms: Atoms) -> Mix:
    """The noise of a column as a matrix over all noises; not a number where it is unknown."""
    if isinstance(noise, Mixture):
        return noise.over(atoms)
    assert isinstance(noise, Noise)  # noqa: S101  # there are no others
    entries = np.arange(size) if noise.entries is None else noise.entries
    lines, places, numbers = [], [], []
    for source, each in noise.factors.items():
        cells = each.shape[1]
        lines.append(np.repeat(np.arange(size), cells))
        places.append((atoms.first(source) + entries[:, None] * cells + np.arange(cells)).ravel())
        numbers.append(np.broadcast_to(each, (size, cells)).ravel())
    if not lines:
        return Mix.of(sparse.csr_array((size, atoms.number)))
    made = sparse.coo_array(
        (np.concatenate(numbers), (np.concatenate(lines), np.concatenate(places))), shape=(size, atoms.number)
    )
    own = sparse.csr_array(made)
    own.eliminate_zeros()
    return Mix.of(own)


def fieller(above: _Floats, below: _Floats, top: Any, both: Any, bottom: Any) -> tuple[_Floats, _Floats]:
    """The least and largest q for which ``above - q below``, which is linear, may be zero; not a number without any.

    What noise explains of it has the square ``top - 2 q both + q² bottom``.

    Reference:
        Fieller (1954), Some problems in interval estimation.

    >>> low, high = fieller(np.array([50.0]), np.array([100.0]), 4.0, 0.0, 4.0)
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.4778], [0.5226])
    """
    a, b, c = below**2 - bottom, above * below - both, above**2 - top
    with np.errstate(all="ignore"):
        root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
        return np.where(a > 0, (b - root) / a, np.nan), np.where(a > 0, (b + root) / a, np.nan)

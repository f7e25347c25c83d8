"""Columns that share noises: what is computed from several entries or columns of a release."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt
from scipy import sparse

from defocus.answers.noise_sources import ColumnNoise, Noise

__all__ = ["Atoms", "Mix", "Mixture", "atoms_of", "matrix_of"]

_Floats: TypeAlias = npt.NDArray[np.float64]
_ROUNDING = 1e-12
"""What cancels to less than this part is nothing."""


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
        return int(self.own.nnz + self.shared.nnz + self.common.nnz)

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

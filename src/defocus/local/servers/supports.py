"""How many reports support each category, from what was counted."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from defocus.local.designs import (
    KRR,
    CountMeanSketch,
    DBitFlip,
    Design,
    GeometryResponse,
    Hadamard,
    HadamardSketch,
    LocalHashing,
    SubsetSelection,
    Unary,
)
from defocus.local.fields import field
from defocus.local.geometry import points
from defocus.local.servers.incidences import incidences, multiples
from defocus.local.servers.tallies import Tally
from defocus.local.servers.transforms import walsh, walsh_rows
from defocus.local.sketching import sketch_hashes

__all__ = ["supports"]


def supports(design: Design, tally: Tally) -> Tally:
    """The number of reports that support each category, exactly."""
    return _SUPPORTS[type(design)](design, tally)


def _cells(_design: KRR, tally: Tally) -> Tally:
    return tally


def _bits(_design: Unary | SubsetSelection, tally: Tally) -> Tally:
    return tally[0, :-1]


def _hadamard(design: Hadamard, tally: Tally) -> Tally:
    """A report supports v where its sign is that of entry (j, v + 1): half of all, and half the signed sum."""
    by_row = tally.reshape(-1, 2)
    signed = walsh(by_row[:, 0] - by_row[:, 1])
    found: Tally = (by_row.sum() + signed[1 : design.domain.size + 1]) // 2
    return found


def _geometry(design: GeometryResponse, tally: Tally) -> Tally:
    """A report supports the categories whose points are orthogonal to the reported one."""
    f, t, size = field(design.order), design.dimension, design.domain.size
    cube = np.zeros(f.q**t, np.int64)
    for r in range(t):
        cube[f.q**r : 2 * f.q**r] = tally[points(f.q, r) : points(f.q, r + 1)]

    def scaled(c: int) -> NDArray[np.int64]:
        """Points with r coordinates after their leading 1 are numbered one after the other."""
        one = int(multiples(f, c, 2)[1])
        runs = [(r, min(points(f.q, r + 1), size) - points(f.q, r)) for r in range(t)]
        longest = multiples(f, c, max(n for _, n in runs))
        return np.concatenate([one * f.q**r + longest[:n] for r, n in runs if n > 0])

    return incidences(f, cube, scaled)


def _hashing(design: LocalHashing, tally: Tally) -> Tally:
    """A report of seed a and value y supports v where a·v - y = 0: where (a, y) is orthogonal to (v, -1)."""
    f, size = field(design.order), design.domain.size
    minus = int(f.negative(np.ones(1, np.int16))[0])

    def scaled(c: int) -> NDArray[np.int64]:
        return multiples(f, c, size) * f.q + int(multiples(f, c, f.q)[minus])

    return incidences(f, tally, scaled)


def _sketch(design: CountMeanSketch, tally: Tally) -> Tally:
    """A report of row j supports v where the bit in column h_j(v) is a one."""
    return _gathered(design, tally[:, :-1])


def _hadamard_sketch(design: HadamardSketch, tally: Tally) -> Tally:
    """A report of row j and entry l supports v where its sign is that of (l, h_j(v)): half of all and half the sum."""
    by_pair = tally.reshape(design.rows, design.width, 2)
    signed = walsh_rows(by_pair[:, :, 0] - by_pair[:, :, 1])
    found: Tally = (by_pair.sum() + _gathered(design, signed)) // 2
    return found


def _gathered(design: CountMeanSketch | HadamardSketch, table: Tally) -> Tally:
    """The sum over rows of what stands in each category's column, some categories at a time."""
    size, step = design.domain.size, max(1, (1 << 22) // design.rows)
    out = np.empty(size, np.int64)
    rows = np.arange(design.rows)[:, None]
    for first in range(0, size, step):
        codes = np.arange(first, min(first + step, size))
        at = sketch_hashes(design.seed, design.rows, design.width, rows, codes[None])
        out[first : first + step] = np.take_along_axis(table, at, axis=1).sum(axis=0)
    return out


def _answers(design: DBitFlip, tally: Tally) -> Tally:
    """Who answered yes."""
    return tally[0, : design.domain.size]


_SUPPORTS: dict[type[Design], Callable[[Any, Tally], Tally]] = {
    CountMeanSketch: _sketch,
    GeometryResponse: _geometry,
    Hadamard: _hadamard,
    HadamardSketch: _hadamard_sketch,
    KRR: _cells,
    LocalHashing: _hashing,
    SubsetSelection: _bits,
    Unary: _bits,
    DBitFlip: _answers,
}

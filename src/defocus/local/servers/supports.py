"""Decoding: how many reports support each category."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from defocus.errors import whole
from defocus.local import designs
from defocus.local.designs.numeric import Window
from defocus.local.hashes import Field, field, points, sketch_hashes
from defocus.local.servers.counts import Tally

__all__ = [
    "expectation_maximisation",
    "incidences",
    "multiples",
    "spectrum",
    "supports",
    "transitions",
    "walsh",
    "walsh_rows",
]


def walsh(values: Tally) -> Tally:
    """Sums of ``values`` under all 2**k patterns of signs: entry v of the result has minus where j & v is odd.

    >>> import numpy as np
    >>> walsh(np.array([1, 2, 0, 0]))
    array([ 3, -1,  3, -1])
    """
    return walsh_rows(values)


def walsh_rows(values: Tally) -> Tally:
    """The same along the last axis."""
    out = np.ascontiguousarray(values).copy()
    half = 1
    while half < out.shape[-1]:
        pairs = out.reshape(-1, 2, half)
        plus = pairs[:, 0] + pairs[:, 1]
        pairs[:, 1] = pairs[:, 0] - pairs[:, 1]
        pairs[:, 0] = plus
        half *= 2
    return out


_SMALL = 8
"""For fields of such a characteristic a product with a small matrix is faster than a library's transform."""


def incidences(f: Field, counts: Tally, scaled: Callable[[int], NDArray[np.int64]]) -> Tally:
    r"""For each of some vectors v, the sum of ``counts`` over all y with :math:`\langle y, v\rangle = 0`.

    ``counts`` has one number for each vector y, in the order of their numbers in base q, and ``scaled(c)`` says where
    in its spectrum the vectors cv are found. Characters are orthogonal, :math:`1_{z=0} = \frac1q\sum_c \psi(cz)`, so
    the sum is :math:`\frac1q\sum_c \hat C(cv)` with the Fourier transform of the counts over the additive group: exact
    integers where q is a power of 2, and otherwise rounded from floating point, whose errors stay far below ½
    for less than :math:`2^{40}` reports.
    """
    waves = spectrum(f, counts)
    total = waves[scaled(0)]
    for c in range(1, f.q):
        total += waves[scaled(c)]
    return (total // f.q if f.p == 2 else np.rint(total / f.q)).astype(np.int64)


def multiples(f: Field, c: int, size: int) -> NDArray[np.int64]:
    """Where in the spectrum the vector c times v is found, for the vectors whose numbers are 0, 1, … ``size`` - 1.

    Digit by digit: the waves of c times each digit, in its place.
    """
    digits = f.waves[f.multiply(np.arange(f.q, dtype=np.int16), np.array([c], np.int16))].astype(np.int64)
    out, reach = np.zeros(1, np.int64), 1
    while reach < size:
        need = -(-size // reach)
        out = (digits[:need, None] * reach + out[None]).ravel()[:size]
        reach *= f.q
    return out[:size]


def spectrum(f: Field, counts: Tally) -> NDArray[Any]:
    """The real part of the Fourier transform over the additive group, by digits in base p."""
    if f.p == 2:
        return walsh(counts)
    length = round(np.log(len(counts)) / np.log(f.p))
    if f.p > _SMALL:
        return np.fft.fftn(counts.reshape((f.p,) * length)).real.ravel()
    roots = np.exp(-2j * np.pi * np.outer(np.arange(f.p), np.arange(f.p)) / f.p)
    transformed: NDArray[Any] = counts.astype(np.complex128)
    for _ in range(length):  # each round transforms the first digit and puts it last
        transformed = (roots @ transformed.reshape(f.p, -1)).T.ravel()
    return transformed.real


def supports(design: designs.Design, tally: Tally) -> Tally:
    """The number of reports that support each category, exactly."""
    return _SUPPORTS[type(design)](design, tally)


def _cells(_design: designs.KRR, tally: Tally) -> Tally:
    return tally


def _bits(_design: designs.Unary | designs.SubsetSelection, tally: Tally) -> Tally:
    return tally[0, :-1]


def _hadamard(design: designs.Hadamard, tally: Tally) -> Tally:
    """A report supports v where its sign is that of entry (j, v + 1): half of all, and half the signed sum."""
    by_row = tally.reshape(-1, 2)
    signed = walsh(by_row[:, 0] - by_row[:, 1])
    agreeing: Tally = (by_row.sum() + signed[1 : design.domain.size + 1]) // 2
    return agreeing


def _geometry(design: designs.GeometryResponse, tally: Tally) -> Tally:
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


def _hashing(design: designs.LocalHashing, tally: Tally) -> Tally:
    """A report of seed a and value y supports v where a·v - y = 0: where (a, y) is orthogonal to (v, -1)."""
    f, size = field(design.order), design.domain.size
    minus = int(f.negative(np.ones(1, np.int16))[0])

    def scaled(c: int) -> NDArray[np.int64]:
        return multiples(f, c, size) * f.q + int(multiples(f, c, f.q)[minus])

    return incidences(f, tally, scaled)


def _sketch(design: designs.CountMeanSketch, tally: Tally) -> Tally:
    """A report of row j supports v where the bit in column h_j(v) is a one."""
    return _gathered(design, tally[:, :-1])


def _hadamard_sketch(design: designs.HadamardSketch, tally: Tally) -> Tally:
    """A report of row j and entry l supports v where its sign is that of (l, h_j(v)): half of all and half the sum."""
    by_pair = tally.reshape(design.rows, design.width, 2)
    signed = walsh_rows(by_pair[:, :, 0] - by_pair[:, :, 1])
    agreeing: Tally = (by_pair.sum() + _gathered(design, signed)) // 2
    return agreeing


def _gathered(design: designs.CountMeanSketch | designs.HadamardSketch, table: Tally) -> Tally:
    """The sum over rows of what stands in each category's column, some categories at a time."""
    size, step = design.domain.size, max(1, (1 << 22) // design.rows)
    out = np.empty(size, np.int64)
    rows = np.arange(design.rows)[:, None]
    for first in range(0, size, step):
        codes = np.arange(first, min(first + step, size))
        at = sketch_hashes(design.seed, design.rows, design.width, rows, codes[None])
        out[first : first + step] = np.take_along_axis(table, at, axis=1).sum(axis=0)
    return out


def _answers(design: designs.DBitFlip, tally: Tally) -> Tally:
    """Who answered yes."""
    return tally[0, : design.domain.size]


_SUPPORTS: dict[type[designs.Design], Callable[[Any, Tally], Tally]] = {
    designs.CountMeanSketch: _sketch,
    designs.GeometryResponse: _geometry,
    designs.Hadamard: _hadamard,
    designs.HadamardSketch: _hadamard_sketch,
    designs.KRR: _cells,
    designs.LocalHashing: _hashing,
    designs.SubsetSelection: _bits,
    designs.Unary: _bits,
    designs.DBitFlip: _answers,
}


_ROUNDS = 2000
"""A few hundred are usual; this ends those that creep."""
_STILL = 1e-7
"""Shares that change by less, all together, have settled: noise is far larger."""
_FINE = 256
"""Parts at least: smoothing would blur wider ones."""


def expectation_maximisation(design: Window, tally: Tally, bins: int, *, smooth: bool) -> NDArray[np.float64]:
    """The likeliest shares of ``bins`` parts of the interval given the reports, smoothed after each round if asked for.

    Smoothing averages each part with its neighbours (1, 2, 1), which keeps the likelihood from being fitted to noise.
    It is done on 256 parts or more, however few are asked for, since it would blur wide ones.
    Reference: Li et al. (2020), Estimating numerical distributions under local differential privacy, Section 5.
    """
    wanted = whole("bins", bins, at_least=2)
    parts = wanted * -(-_FINE // wanted)
    chance = transitions(design, parts)
    shares = np.full(parts, 1 / parts)
    seen = tally / max(tally.sum(), 1)
    for _ in range(_ROUNDS):
        expected = chance @ shares
        new = shares * (chance.T @ np.divide(seen, expected, out=np.zeros_like(expected), where=expected > 0))
        if smooth:
            wide = np.pad(new, 1, mode="edge")
            new = (wide[:-2] + 2 * wide[1:-1] + wide[2:]) / 4
        new /= max(new.sum(), 1e-300)
        still = np.abs(new - shares).sum() < _STILL
        shares = new
        if still:
            break
    histogram: NDArray[np.float64] = shares.reshape(wanted, -1).sum(axis=1)
    return histogram


def transitions(design: Window, bins: int) -> NDArray[np.float64]:
    """P(cell | part): numbers within a part are taken to be uniform over the places of the window in it."""
    levels, places = design.levels, design.places
    part = np.minimum(np.arange(places + 1) * bins // places, bins - 1)
    counts = np.bincount(part, minlength=bins).astype(np.float64)
    starts = np.zeros((design.cells + 1, bins))
    np.add.at(starts, (np.arange(places + 1), part), 1.0)
    np.add.at(starts, (np.arange(places + 1) + design.window, part), -1.0)
    inside = starts.cumsum(axis=0)[:-1] / np.maximum(counts, 1)
    out: NDArray[np.float64] = (levels.low + (levels.high - levels.low) * inside) / levels.total
    return out

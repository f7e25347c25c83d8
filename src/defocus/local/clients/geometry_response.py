"""Projective geometry response on the device."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from defocus.local.designs import GeometryResponse
from defocus.local.domains import Codes
from defocus.local.finite_fields import Columns, Elements, coordinates, field, points, rank, vectors
from defocus.local.layouts import Payload
from defocus.noise import Bits
from defocus.noise.bits import Words

__all__ = ["place", "randomise"]


def randomise(design: GeometryResponse, codes: Codes, bits: Bits) -> Payload:
    """One report for each code."""
    hit, index = design.levels.draw(len(codes), bits)
    return place(design, codes, hit, index).astype(design.layout.dtype)


def place(design: GeometryResponse, codes: Codes, hit: NDArray[np.bool_], index: Words) -> NDArray[np.int64]:
    r"""The point that a draw stands for.

    Let x be the category's vector and i the place of its leading 1. Whatever the other t - 1 coordinates u of y are,
    the i-th can be chosen so that :math:`\langle x, y\rangle` is 0, and then the direction of y depends on that of
    u alone: the ``index``-th direction u gives the ``index``-th orthogonal point. Or so that it is 1, and then the
    ``index``-th vector u gives the ``index``-th point that is not orthogonal, since every such direction has exactly
    one vector with that product.
    """
    q, t = design.order, design.dimension
    numbers = index.view(np.int64)
    plane = points(q, t - 1)
    u = coordinates(np.where(hit, _lifted(numbers, hit, q, t - 1, plane), numbers), q, t - 1)
    return rank(field(q), _completed(design, codes, hit, u))


def _lifted(numbers: NDArray[np.int64], hit: NDArray[np.bool_], q: int, t: int, plane: int) -> NDArray[np.int64]:
    """The vectors of directions as numbers in base q; what is not a hit stays in range."""
    shift = np.zeros(len(numbers), np.int64)
    for r in range(t):
        np.copyto(shift, q**r - points(q, r), where=numbers >= points(q, r))
    return np.where(hit, np.minimum(numbers, plane - 1) + shift, 0)


def _completed(design: GeometryResponse, codes: Codes, hit: NDArray[np.bool_], u: Columns) -> Columns:
    """Put the leading coordinate of x among the others, so that the inner product is 0 for a hit and 1 otherwise."""
    f, t = field(design.order), design.dimension
    lead, rest = _values(design)
    pivot = lead[codes]
    total: Elements = np.zeros(len(codes), np.int16)
    for i in range(1, t):
        total = f.add(total, f.multiply(rest[i][codes], u[i - 1]))  # 0 up to the pivot, where x has no others
    chosen = f.add((~hit).astype(np.int16), f.negative(total))
    y: Columns = []
    for i in range(t):
        column = u[i].copy() if i < t - 1 else np.zeros(len(codes), np.int16)
        if i:
            np.copyto(column, u[i - 1], where=pivot < i)
        np.copyto(column, chosen, where=pivot == i)
        y.append(column)
    return y


@lru_cache(maxsize=8)
def _values(design: GeometryResponse) -> tuple[NDArray[np.int8], Columns]:
    """The place of the leading 1 of each category's vector, and the coordinates after it."""
    x = vectors(np.arange(design.domain.size), design.order, design.dimension)
    lead = np.argmax(np.array([each != 0 for each in x]), axis=0).astype(np.int8)
    return lead, [np.where(lead == i, 0, each).astype(np.int16) for i, each in enumerate(x)]

"""Points of projective space over a finite field, by number."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from defocus.local.fields import Elements, Field

__all__ = ["Columns", "coordinates", "points", "rank", "vectors"]

Columns: TypeAlias = list[Elements]
"""Vectors, one array for each coordinate."""


def points(q: int, t: int) -> int:
    """How many points there are: directions of t coordinates.

    >>> points(4, 6)
    1365
    """
    return int((q**t - 1) // (q - 1))


def coordinates(numbers: NDArray[np.int64], q: int, t: int) -> Columns:
    """The digits of each number in base q, t of them, the highest first."""
    if q & (q - 1) == 0:
        bits = q.bit_length() - 1
        return [((numbers >> (bits * (t - 1 - i))) & (q - 1)).astype(np.int16) for i in range(t)]
    out, rest = list[Elements](), numbers
    for _ in range(t):
        upper = rest // q
        out.append((rest - upper * q).astype(np.int16))
        rest = upper
    return out[::-1]


def vectors(numbers: NDArray[np.int64], q: int, t: int) -> Columns:
    """The vector of each point whose first coordinate other than 0 is 1.

    Points with r coordinates after that 1 are numbered from (q**r - 1)/(q - 1) on, in the order of those coordinates,
    so that the number of a point and its vector, read in base q, differ by a constant for each r.
    """
    whole = numbers.copy()
    for r in range(t - 1, -1, -1):
        whole[(numbers >= points(q, r)) & (numbers < points(q, r + 1))] += q**r - points(q, r)
    return coordinates(whole, q, t)


def rank(field: Field, y: Columns) -> NDArray[np.int64]:
    """The number of the point in the direction of each vector; none is 0."""
    q, t = field.q, len(y)
    lead = y[0].copy()
    shift = np.full(len(lead), q ** (t - 1) - points(q, t - 1), np.int64)
    for i in range(1, t):
        none = lead == 0  # all coordinates so far
        np.copyto(lead, y[i], where=none)
        np.copyto(shift, q ** (t - 1 - i) - points(q, t - 1 - i), where=none)
    scale = field.inverses[lead]
    number = np.zeros(len(lead), np.int64)
    for each in y:
        number *= q
        number += field.multiply(each, scale)
    number -= shift
    return number

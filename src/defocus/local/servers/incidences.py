"""How many counted vectors are orthogonal to each of some others, over a finite field."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from defocus.local.fields import field
from defocus.local.geometry import Columns
from defocus.local.servers.tallies import Tally
from defocus.local.servers.transforms import walsh

__all__ = ["incidences"]


def incidences(q: int, counts: Tally, vectors: Columns) -> Tally:
    r"""For each vector v, the sum of ``counts`` over all y with :math:`\langle y, v\rangle = 0`.

    ``counts`` has one number for each vector y of s coordinates, in the order of their numbers in base q. Characters
    are orthogonal, :math:`1_{z=0} = \frac1q\sum_c \psi(cz)`, so the sum is :math:`\frac1q\sum_c \hat C(cv)` with
    the Fourier transform of the counts over the additive group: exact integers where q is a power of 2, and otherwise
    rounded from floating point, whose errors stay far below ½ for less than :math:`2^{40}` reports.
    """
    f = field(q)
    digits = f.m * len(vectors)
    cube = counts.reshape((f.p,) * digits) if f.p > 2 else counts
    spectrum: NDArray[Any] = walsh(counts) if f.p == 2 else np.fft.fftn(cube).real.ravel()
    total = np.full(len(vectors[0]), spectrum[0])
    for c in range(1, q):
        at = np.zeros(len(total), np.int64)
        factor = np.array([c], np.int16)
        for each in vectors:
            at *= q
            at += f.waves[f.multiply(each, factor)]
        total += spectrum[at]
    return (total // q if f.p == 2 else np.rint(total / q)).astype(np.int64)

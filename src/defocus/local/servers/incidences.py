"""How many counted vectors are orthogonal to each of some others, over a finite field."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from defocus.local.fields import Field
from defocus.local.servers.tallies import Tally
from defocus.local.servers.transforms import walsh

__all__ = ["incidences", "multiples", "spectrum"]

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
    made: NDArray[Any] = counts.astype(np.complex128)
    for _ in range(length):  # each round transforms the first digit and puts it last
        made = (roots @ made.reshape(f.p, -1)).T.ravel()
    return made.real

"""Discrete Laplace noise."""

import numpy as np

from defocus.errors import Number, whole
from defocus.noise.bits import Bits, source
from defocus.noise.draws import draw
from defocus.noise.integers import Integers, fitting, rational_scale
from defocus.noise.laws import laplace_one
from defocus.noise.tables import laplace_table

__all__ = ["discrete_laplace"]

_FEW = 64


def discrete_laplace(scale: Number, size: int, bits: Bits | None = None) -> Integers:
    r"""Return ``size`` independent integers x with :math:`P(x) \propto e^{-|x|/scale}`.

    Guarantee:
        The law is exact for every rational ``scale`` up to 2**40 (a float means the dyadic rational it stores):
        no floating-point number takes part. Added to an integer-valued statistic of sensitivity
        :math:`\Delta`, it is :math:`\Delta/scale`-differentially private. It is also called two-sided
        geometric noise.
    Assumes:
        ``bits`` is uniform and independent across calls. Running time is not constant: it may reveal a little
        about the noise to someone who can time a single call.

    Error:
        Mean 0, variance :math:`2q/(1-q)^2` with :math:`q = e^{-1/scale}`, slightly below :math:`2\,scale^2`.
    Reference:
        Ghosh, Roughgarden, Sundararajan (2012); sampled one by one as in Canonne, Kamath, Steinke (2020) below
        64 samples, and through the table of :mod:`defocus.noise.tables` from there on.

    >>> discrete_laplace(10, 1000).dtype
    dtype('int64')
    >>> discrete_laplace(1e-9, 3)
    array([0, 0, 0])
    """
    b = rational_scale("scale", scale)
    n = whole("size", size)
    generator = source(bits)
    if n < _FEW:
        return np.array([fitting(laplace_one(b, generator)) for _ in range(n)], np.int64)
    return draw(laplace_table(b), n, generator)

"""Discrete Laplace and discrete Gaussian noise."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from defocus.errors import Number, whole
from defocus.noise.bits import Bits, source
from defocus.noise.ranges import Integers, fitting, rational_scale
from defocus.noise.tables import Table, draw, gaussian_one, gaussian_table, laplace_one, laplace_table

__all__ = ["discrete_gaussian", "discrete_laplace"]


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
    return _drawn(rational_scale("scale", scale), size, bits, laplace_one, laplace_table)


def discrete_gaussian(sigma: Number, size: int, bits: Bits | None = None) -> Integers:
    r"""Return ``size`` independent integers x with :math:`P(x) \propto e^{-x^2/2\sigma^2}`.

    Guarantee:
        The law is exact for every rational ``sigma`` up to 2**40 (a float means the dyadic rational it stores):
        no floating-point number takes part. Added to an integer-valued statistic of sensitivity
        :math:`\Delta`, one sample is :math:`\Delta^2/2\sigma^2`-zCDP.
    Assumes:
        ``bits`` is uniform and independent across calls. Running time is not constant: it may reveal a little
        about the noise to someone who can time a single call.

    Error:
        Mean 0, variance at most :math:`\sigma^2`.
    Reference:
        Canonne, Kamath, Steinke (2020), The discrete Gaussian for differential privacy: Theorem 4 (zCDP),
        Corollary 9 (variance), Algorithm 3 (the sampler below 64 samples; from there on the table of
        :mod:`defocus.noise.tables`).

    >>> discrete_gaussian(2.5, 1000).dtype
    dtype('int64')
    >>> discrete_gaussian(1e-9, 3)
    array([0, 0, 0])
    """
    return _drawn(rational_scale("sigma", sigma), size, bits, gaussian_one, gaussian_table)


def _drawn(
    scale: Fraction,
    size: int,
    bits: Bits | None,
    one: Callable[[Fraction, Bits], int],
    table: Callable[[Fraction], Table],
) -> Integers:
    n, generator = whole("size", size), source(bits)
    if n < _FEW:
        return np.array([fitting(one(scale, generator)) for _ in range(n)], np.int64)
    return draw(table(scale), n, generator)

"""Floor 1: exact integer noise over a cryptographic source of bits.

Every function takes ``bits``, the source it may draw from: left out, it is :func:`system`. Repeatable sources for
tests are in :mod:`defocus.noise.testing`; a seed or a numpy generator is refused. No floating-point number decides an
outcome: 64 random bits are compared with integers that enclose the true threshold, and where these are not enough,
more bits are drawn and the enclosure is tightened until they are.

>>> from defocus import noise
>>> noise.discrete_gaussian(10, 5).shape
(5,)
"""

from defocus.noise.bits import Bits, system
from defocus.noise.choice import exponential_choice
from defocus.noise.discrete import discrete_gaussian, discrete_laplace
from defocus.noise.ranges import bernoulli, bernoulli_exp, permutation, uniform

__all__ = [
    "Bits",
    "bernoulli",
    "bernoulli_exp",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential_choice",
    "permutation",
    "system",
    "uniform",
]

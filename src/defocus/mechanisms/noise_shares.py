r"""Noise that nobody knows: each party draws a share, and the shares of the honest ones that stay are enough.

Laplace
    Shares of :func:`~defocus.noise.shares.laplace_share` add up to discrete Laplace noise exactly.

Gaussian
    Each of h shares is discrete Gaussian with variance :math:`s^2`, where :math:`h s^2 = \sigma^2 + b^2` and
    :math:`b \ge 16`. Let :math:`N(v)` be the discrete Gaussian law with :math:`P(x) \propto e^{-x^2/2v}`. The sum
    of independent numbers of :math:`N(u)` and :math:`N(w)` has, by completing the square, probabilities

    .. math:: e^{-z^2/2(u+w)} \sum_x e^{-(x-\mu)^2/2v} \cdot const, \quad 1/v = 1/u + 1/w,

    and by Poisson's summation formula the inner sum is :math:`\sqrt{2\pi v}(1 + \eta)` with
    :math:`|\eta| \le y = 2 \sum_{k \ge 1} e^{-2\pi^2 v k^2}`, whatever :math:`\mu`. Both laws add up to one, so
    the ratio of their probabilities lies between :math:`(1-y)/(1+y)` and its inverse. Such bounds multiply, and
    stay when further independent numbers are added. So the sum of h shares has, within a factor
    :math:`e^{\pm\tau}` everywhere, the law of a number of :math:`N(\sigma^2)` plus an independent one of
    :math:`N(b^2)`: noise of the mechanism, processed.

    If P' is within :math:`e^{\pm d\tau}` of P, then :math:`P' = e^{-d\tau} P + (1 - e^{-d\tau}) R` for some law R. So
    d such sums can be simulated from the mechanism's own output and from something that tells everything with
    probability :math:`1 - e^{-d\tau} \le d\tau`: that is charged as ``Approximate(0, d tau)``. It is far below any
    delta: at most 1e-250 for each entry and party.

Further shares, of more honest parties than were counted on, are independent noise on top.

Drop-outs
    With n parties, of which D may drop out, and K shares that others know, h = n - D - K shares are counted on in the
    worst case. If d of them are gone, h + D - d are, and each needs to be no more than that part of the noise. So a
    party draws its share as independent parts: one that is :math:`1/(h+D)` of the noise, which is enough if nobody
    drops out, and for k = 1 … D one that is

    .. math:: \frac{1}{h+D-k} - \frac{1}{h+D-k+1} = \frac{1}{m(m+1)}, \quad m = h+D-k.

    The first d of these are kept, and then each share is :math:`1/(h+D-d)` of the noise: h + D - d of them are all of
    it, exactly for Laplace noise, whose parts have any shape, and within the bound above for Gaussian noise, of which
    each part is such a number. The others, k > d, are drawn from seeds (:class:`SpareNoise`), which are shown, and are
    taken off as the same integers. They are independent of all that is kept, so that whoever sees them learns nothing
    about it: the sum without them has the law of a sum to which they never were added.

    That is so for one d. Whoever saw the seeds of parts k > d would know too much where d' > d are gone: seeds may be
    shown for one set of those that are left only, which must be fixed without looking at any noise. A secure sum does
    so: see :mod:`defocus.federated.secure_aggregation`.

Reference: Jiang, Wang, Chen (2024), Dordis: Efficient federated learning with dropout-resilient differential privacy,
for parts that are taken off; Kairouz, Liu, Steinke (2021), The distributed discrete Gaussian mechanism for federated
learning with secure aggregation, for sums of discrete Gaussians.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, Number, ProtocolError, count, whole
from defocus.mechanisms.gaussian import Gaussian
from defocus.mechanisms.laplace import Laplace
from defocus.mechanisms.mechanism import integers
from defocus.noise import Bits, discrete_gaussian
from defocus.noise.bits import bound
from defocus.noise.shares import laplace_share
from defocus.privacy.events import Approximate, Event

__all__ = ["NoiseShare", "SpareNoise"]

_BESIDE = 16
"""The standard deviation of what is added to Gaussian noise to make it divisible."""
_FINE = 1 << 60
_LARGEST = 1 << 40


def _part_of(sigma: Fraction, parts: int) -> Fraction:
    """The standard deviation of one of so many Gaussian parts, rounded up."""
    square = (sigma**2 + _BESIDE**2) / parts * _FINE**2
    return Fraction(math.isqrt(math.ceil(square)) + 1, _FINE)


@final
@dataclass(frozen=True, slots=True)
class SpareNoise:
    """Noise that each party adds for others who may drop out; who knows its seed can draw it again, and take it off.

    Args:
        law: "laplace" or "gaussian".
        scale: of the noise that the sum is to have: its scale, or its standard deviation.
        honest: how many shares are there for sure, whoever drops out.
        dropouts: how many parties may drop out, and so how many parts there are.

    >>> spare = SpareNoise("laplace", Fraction(20), honest=3, dropouts=1)
    >>> spare.shape(1)
    12
    >>> spare.part(1, bytes(32), 4).tolist() == spare.part(1, bytes(32), 4).tolist()
    True
    """

    law: str
    scale: Fraction
    honest: int
    dropouts: int

    def __post_init__(self) -> None:
        if self.law not in {"laplace", "gaussian"} or not 0 < self.scale <= _LARGEST:
            raise InvalidParameterError(
                f"Noise of the law {self.law!r:.20} and this scale cannot be spare.", fix="take NoiseShare.spare."
            )
        count("honest", self.honest)
        count("dropouts", self.dropouts)

    def to_bytes(self) -> bytes:
        """The law and the scale, as :meth:`read` reads them."""
        return f"{self.law} {self.scale}".encode()

    @staticmethod
    def read(said: bytes, honest: int, dropouts: int) -> "SpareNoise":
        """What :meth:`to_bytes` wrote, and nothing else."""
        found = re.fullmatch(rb"(laplace|gaussian) ([1-9][0-9]{0,400})(?:/([1-9][0-9]{0,400}))?", said)
        if found is not None:
            scale = Fraction(int(found[2]), int(found[3] or 1))
            if (
                scale <= _LARGEST
                and (made := SpareNoise(found[1].decode(), scale, honest, dropouts)).to_bytes() == said
            ):
                return made
        raise ProtocolError("What is said of spare noise is not in its form.")

    @property
    def base(self) -> int:
        """What part of the noise a share is if nobody drops out: one of so many."""
        return self.honest + self.dropouts

    def shape(self, part: int) -> int:
        """What part of the noise the ``part``-th part of a share is, from 1: one of so many."""
        left = self.base - part
        return left * (left + 1)

    def part(self, part: int, seed: bytes, size: int) -> NDArray[np.int64]:
        """The integers that belong to a seed of 32 bytes. They are exact, and so the same wherever they are drawn."""
        bits = bound(seed, b"defocus.spare/1" + part.to_bytes(2))
        if self.law == "laplace":
            return laplace_share(self.scale, self.shape(part), size, bits)
        return discrete_gaussian(_part_of(self.scale, self.shape(part)), size, bits)


@final
@dataclass(frozen=True, slots=True)
class NoiseShare:
    """One party's share of the noise of a mechanism.

    Guarantee:
        The sum of vectors to which at least ``honest`` parties added independent shares is as private as the mechanism
        on the sum of the vectors, up to what :attr:`event` charges beside it. Shares that others know, or that are
        missing, must not be counted: of n parties, of which D may drop out and C collude, n - D - C are honest. With
        ``dropouts`` the same holds of a sum from which d of them are gone, if at least ``honest + dropouts - d``
        parties added shares and the first d parts of spare noise that nobody else knows.
    Assumes:
        The sum is all that is seen of the vectors, as in a secure sum.

    Args:
        mechanism: the noise that the sum is to have: Laplace or Gaussian.
        honest: how many shares are there for sure.
        parties: how many shares are added up if nobody drops out; as many as are honest by default.
        added: makes the noisy sum over all parties of one party's vector with its share: a secure sum. Without it,
            the vector with its share is all there is.
        dropouts: how many parties may drop out of a sum that takes off the noise for those that did not: ``added`` gets
            :attr:`spare` as well, adds it at each party, and takes off what is too much. With 0, all noise stays.
        missing: how many dropped out of the last sum; as many as may, as long as there is none.

    >>> from defocus.mechanisms import Laplace
    >>> share = NoiseShare(Laplace(scale=20), honest=8, parties=10)
    >>> share.event
    DiscreteLaplace(scale=20, sensitivity=1)
    >>> round(share.mechanism.variance, 1), round(share.variance, 1)
    (799.8, 999.8)
    """

    mechanism: Laplace | Gaussian
    honest: int
    parties: int = 0
    added: Callable[[NDArray[np.int64], SpareNoise | None], NDArray[np.int64]] | None = field(default=None, repr=False)
    dropouts: int = 0
    missing: Callable[[], int | None] = field(default=lambda: None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Laplace | Gaussian):
            raise InvalidParameterError(
                f"Noise of {type(self.mechanism).__name__} cannot be shared.",
                fix="pass a Laplace or Gaussian mechanism.",
            )
        count("honest", self.honest)
        if not self.parties:
            object.__setattr__(self, "parties", self.honest)
        count("parties", self.parties)
        if whole("dropouts", self.dropouts) and self.added is None:
            raise InvalidParameterError(
                "Without a sum that adds noise for drop-outs, there is too little of it.", fix="pass added=."
            )
        if isinstance(self.mechanism, Gaussian) and min(*self._sigmas, self.mechanism.sigma) < _BESIDE:
            raise InvalidParameterError(
                f"A share of Gaussian noise with sigma {float(self.mechanism.sigma):g} among {self.honest} parties is"
                f" too narrow: sums of such shares are not Gaussian.",
                fix=f"use a finer grid, so that a share has a standard deviation of at least {_BESIDE}.",
            )

    @property
    def event(self) -> Event:
        """What the noisy sum owes: the mechanism's event, and how far the sum of the shares is from its noise."""
        if isinstance(self.mechanism, Laplace):
            return self.mechanism.event
        return self.mechanism.event + Approximate(0, self._slack)

    def sample(self, value: Any, bits: Bits | None = None) -> NDArray[np.int64]:
        """The noisy sum of all parties' vectors, of which this is one, modulo 2**64."""
        vector, _ = integers(value)
        if isinstance(self.mechanism, Laplace):
            noise = laplace_share(self.mechanism.scale, self.honest + self.dropouts, len(vector), bits)
        else:
            noise = discrete_gaussian(self._sigmas[0], len(vector), bits)
        own = vector + noise
        return own if self.added is None else self.added(own, self.spare)

    @property
    def spare(self) -> SpareNoise | None:
        """What each party is to add for others who may drop out."""
        if not self.dropouts:
            return None
        mechanism = self.mechanism
        law, scale = ("laplace", mechanism.scale) if isinstance(mechanism, Laplace) else ("gaussian", mechanism.sigma)
        return SpareNoise(law, Fraction(scale), self.honest, self.dropouts)

    @property
    def variance(self) -> float:
        """Of one entry of the sum, of the last one, or of one from which all drop out that may."""
        known = self.missing()
        gone = self.dropouts if known is None else known
        if isinstance(self.mechanism, Laplace):
            return self.mechanism.variance * (self.parties - gone) / (self.honest + self.dropouts - gone)
        return (self.parties - gone) * sum(float(each) ** 2 for each in self._sigmas[: 1 + gone])

    @property
    def sensitivity(self) -> Number:
        """Of the mechanism."""
        return self.mechanism.sensitivity

    @property
    def _sigmas(self) -> list[Fraction]:
        """The standard deviations of the parts of a share: of what is always there, and of what is for drop-outs."""
        spare, sigma = self.spare, Fraction(self.mechanism.sigma)  # type: ignore[union-attr]  # of Gaussian noise
        shapes = [] if spare is None else [spare.shape(part) for part in range(1, 1 + self.dropouts)]
        return [_part_of(sigma, shape) for shape in (self.honest + self.dropouts, *shapes)]

    @property
    def _slack(self) -> float:
        """At least dimension * tau; see the module."""
        # Of the partial sums of parts v is at least half the least variance of a part, of sigma and b together b²/2.
        least = min(*(float(each) ** 2 for each in self._sigmas), float(_BESIDE**2)) / 2
        beyond = 2.1 * math.exp(-2 * math.pi**2 * min(least, 30.0))  # with 30 for 128: no float is as small
        numbers = (self.honest + self.dropouts) * (1 + self.dropouts)
        return self.mechanism.dimension * numbers * 2.1 * beyond  # type: ignore[union-attr]

r"""What clients and server of a federated training agree on, and what a round of it owes.

In each round a client turns the change of its model into integers, and the sum over clients gets discrete Gaussian
noise.

Sensitivity of the rounded vector:
    An update u of d numbers is clipped to the norm C, scaled by S / C, and rounded to the nearest integers. This may
    carry the norm above S, by up to :math:`\sqrt d / 2`, so it is not relied on: the sum of squares is computed in
    integers, and while it exceeds :math:`S^2` the vector is shrunk and cut towards zero, which only shortens it. So
    every client brings an integer vector of norm at most S, whatever floating-point numbers did before; an update that
    holds what is no number is a vector of zeros. A client that is added, removed, or sends nothing moves the sum by at
    most S.

    S is the largest whole number with which no entry of the sum leaves the integers of ``bits``: n vectors of norm S
    add up to at most n S in an entry, and noise stays within 12 standard deviations, but with a probability below
    1e-30. Were it to wrap, privacy would hold all the same, since that happens after the noise.

Guarantee:
    ``rounds`` rounds owe :meth:`TrainingPlan.event`. With noise in shares, as :mod:`defocus.mechanisms.noise_shares`
    has it, each client adds its own, and n - ``dropouts`` - max(1, ``colluding``) of them are counted on. Who takes
    part is known to server and clients, so that nothing is gained by sampling: every round is charged in full. Where
    the aggregator is trusted, it draws each client with the probability ``sampling``, keeps to itself whom, and adds
    the noise alone: that is charged as Poisson sampling.
Assumes:
    A person is at no more than ``per_person`` clients; the charge is for so many moved vectors. Metrics that clients
    compute are not sent.

Reference:
    Kairouz, Liu, Steinke (2021), The distributed discrete Gaussian mechanism for federated learning with secure
    aggregation; McMahan, Ramage, Talwar, Zhang (2018), Learning differentially private recurrent language models.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, count, positive, probability, whole
from defocus.federated.sum_plan import counted_shares, too_few
from defocus.mechanisms import Gaussian
from defocus.mechanisms.noise_shares import NoiseShare
from defocus.privacy.events import Event, Sampled

__all__ = ["TrainingPlan"]

_FAR = 12
"""So many standard deviations noise is given room for."""
_FINE = 1 << 10
"""The least S: with fewer steps, what is rounded off would be seen."""


@final
@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """The terms of one federated training; clients refuse a server that has others.

    Args:
        clients: how many take part in a round; with a trusted aggregator, how many there are.
        rounds: how many rounds at most.
        clip: the norm to which the change of a client's model is clipped.
        noise_multiplier: standard deviation of the noise of a round, in multiples of what one person can move:
            ``clip``, or so many times as much as ``per_person`` says.
        dropouts: how many clients of a round may be gone without voiding it.
        colluding: how many may tell the server what they know.
        trusted: whether the server is trusted with each client's clipped update, and adds the noise itself.
        sampling: with what probability a trusted server asks each client.
        per_person: at how many clients one person may be.
        bits: of the integers that are summed, 32 or 64.

    >>> plan = TrainingPlan(clients=10, rounds=5, clip=1.0, noise_multiplier=4.0)
    >>> from defocus.privacy import account
    >>> round(account(plan.event(1000)).epsilon(1e-5), 2)
    2.26
    """

    clients: int
    rounds: int
    clip: float
    noise_multiplier: float
    dropouts: int = 0
    colluding: int = 0
    trusted: bool = False
    sampling: float = 1.0
    per_person: int = 1
    bits: int = 32

    def __post_init__(self) -> None:
        for name in ("clients", "rounds", "per_person"):
            count(name, getattr(self, name))
        for name in ("clip", "noise_multiplier"):
            positive(name, getattr(self, name))
        for name in ("dropouts", "colluding"):
            whole(name, getattr(self, name))
        probability("sampling", self.sampling, zero=False)
        if self.bits not in {32, 64}:
            raise InvalidParameterError("Sums are over integers of 32 or 64 bits.", fix="pass bits=32.")
        if self.sampling < 1 and (not self.trusted or self.per_person > 1):
            raise InvalidParameterError(
                "Sampling hides nobody here: the others know who takes part, or one person is at several clients.",
                fix="leave sampling= out, or trust the aggregator with trusted=True and have per_person=1.",
            )
        if not self.trusted and too_few(self.clients, self.dropouts, self.colluding):
            raise InvalidParameterError(
                f"Of {self.clients} clients, {self.dropouts} may drop out and {self.colluding} collude: the rest is too"
                " few.",
                fix="let twice the drop-outs and the colluding clients be less than all others, or add clients.",
            )
        if self.radius < _FINE:
            raise InvalidParameterError("Integers of 32 bits are too coarse for so many clients.", fix="pass bits=64.")
        _ = self.noise(1)

    @property
    def honest(self) -> int:
        """How many shares of the noise are counted on."""
        return 1 if self.trusted else counted_shares(self.clients, self.dropouts, self.colluding)

    @cached_property
    def radius(self) -> int:
        """S: the norm that no client's integer vector exceeds."""
        shares = 1.0 if self.trusted else self.clients / self.honest
        spread = _FAR * float(self.noise_multiplier) * self.per_person * math.sqrt(shares)
        room = 2.0 ** (min(self.bits, 56) - 1) - 1
        return int(min(room / (self.clients + spread), 2**30))

    @cached_property
    def digest(self) -> bytes:
        """By this it is told whether two have the same plan."""
        return hashlib.sha256(repr(("defocus.training/1", astuple(self))).encode()).digest()

    def noise(self, dimension: int) -> Gaussian | NoiseShare:
        """The noise that a client adds to its vector, or a trusted server to the sum."""
        sigma = float(self.noise_multiplier) * self.radius
        moved = self.radius * self.per_person
        whole_noise = Gaussian(sigma=sigma * self.per_person, sensitivity=moved, dimension=dimension)
        return whole_noise if self.trusted else NoiseShare(whole_noise, self.honest, self.clients)

    def event(self, dimension: int) -> Event:
        """What all rounds owe together, of a model with so many numbers."""
        one = self.noise(dimension).event
        return self.rounds * (Sampled(one, self.sampling) if self.sampling < 1 else one)

    def encoded(self, update: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
        """The change of a client's model as integers of a norm of at most :attr:`radius`; see the module.

        >>> plan = TrainingPlan(clients=10, rounds=5, clip=1.0, noise_multiplier=4.0)
        >>> there = plan.encoded([np.array([3.0, 4.0])])
        >>> (there / plan.radius).round(3).tolist()
        [0.6, 0.8]
        """
        flat = np.concatenate([np.asarray(part, np.float64).ravel() for part in update])
        if not np.isfinite(flat).all():
            return np.zeros(len(flat), np.int64)
        largest = float(np.abs(flat).max(initial=0.0))
        unit = flat / largest if largest else flat  # so that no square is too large for a float
        norm = largest * float(np.linalg.norm(unit))
        scaled = (unit * largest if norm <= self.clip else flat / norm * self.clip) * (self.radius / self.clip)
        found = np.rint(scaled).astype(np.int64)
        while not self.within(found):
            shorter = (1 - 2.0**-20) * min(1.0, self.radius / float(np.linalg.norm(found)))
            found = np.trunc(found * shorter).astype(np.int64)
        return found

    def within(self, vector: NDArray[np.int64]) -> bool:
        """Whether an integer vector is one that a client may bring: its norm is compared in integers."""
        if len(vector) and max(-int(vector.min()), int(vector.max())) > self.radius:
            return False
        return sum(int(x) * int(x) for x in vector) <= self.radius**2 if len(vector) < 64 else self._fits(vector)

    def _fits(self, vector: NDArray[np.int64]) -> bool:
        """With entries of at most 2**30 in absolute value, eight squares fit in 64 bits."""
        squares = np.add.reduceat(vector * vector, range(0, len(vector), 4))
        high, low = squares >> 32, squares & 0xFFFFFFFF
        return (int(high.sum()) << 32) + int(low.sum()) <= self.radius**2

    def decoded(self, total: NDArray[np.int64], parties: int) -> NDArray[np.float64]:
        """The mean change of the model of a noisy sum: over those who took part, or whom a trusted server expects."""
        over = self.sampling * self.clients if self.trusted else parties
        return np.asarray(total * (self.clip / self.radius / over), np.float64)

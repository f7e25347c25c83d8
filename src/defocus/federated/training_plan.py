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

A clip that follows:
    With ``quantile`` q, a client brings one more integer: B (1 - q) if the norm of its change is at most the clip, and
    -B q if it is more, where B = S / 5 and the rest has a norm of at most :math:`\sqrt{S^2 - B^2}`, so that all is
    still at most S. The mean of these integers is what the clip of the next round follows. A client that is gone is
    not in it, and one that could not train brings zero, so that it pulls the clip nowhere. Privacy does not depend on
    the clip: whatever a server calls it, the integers are as short.

Guarantee:
    ``rounds`` rounds owe :meth:`TrainingPlan.event`. With noise in shares, as :mod:`defocus.mechanisms.noise_shares`
    has it, each client adds its own, and n - ``dropouts`` - max(``colluding``, ``per_person``) of them are counted on:
    whoever has several clients knows the shares of all of these. So it is in every round, whoever drops out of it:
    noise is drawn anew for each, and none is taken back later. Who takes part is known to server and clients, so that
    nothing is gained by sampling: every round is charged in full. Where the aggregator is trusted, it draws each client
    with the probability ``sampling``, keeps to itself whom, and adds the noise alone: that is charged as Poisson
    sampling.
Assumes:
    A person is at no more than ``per_person`` clients; the charge is for so many moved vectors. Metrics that clients
    compute are not sent.

Reference:
    Kairouz, Liu, Steinke (2021), The distributed discrete Gaussian mechanism for federated learning with secure
    aggregation; McMahan, Ramage, Talwar, Zhang (2018), Learning differentially private recurrent language models;
    Andrew, Thakkar, McMahan, Ramaswamy (2021), Differentially private learning with adaptive clipping.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, ProtocolError, count, positive, probability, whole
from defocus.federated.sum_plan import counted_shares, too_few
from defocus.mechanisms import Gaussian
from defocus.mechanisms.noise_shares import NoiseShare
from defocus.privacy.events import Event, Sampled

__all__ = ["TrainingPlan"]

_FAR = 12
"""So many standard deviations noise is given room for."""
_FINE = 1 << 10
"""The least S: with fewer steps, what is rounded off would be seen."""
_VOTE = 5
"""What part of S is for saying whether the clip is too short."""
_FOLLOW = 0.2
"""How far the logarithm of the clip goes, times how many more of the changes should be shorter."""
_WIDE = 2.0**40
"""By how much a clip that follows may differ from the first one."""


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
        quantile: the part of the clients whose changes are to be no longer than the clip, which follows it from round
            to round; None keeps the clip.

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
    quantile: float | None = None

    def __post_init__(self) -> None:
        for name in ("clients", "rounds", "per_person"):
            count(name, getattr(self, name))
        for name in ("clip", "noise_multiplier"):
            positive(name, getattr(self, name))
        for name in ("dropouts", "colluding"):
            whole(name, getattr(self, name))
        probability("sampling", self.sampling, zero=False)
        if self.quantile is not None and not 0 < probability("quantile", self.quantile) < 1:
            raise InvalidParameterError("A quantile lies between 0 and 1.", fix="pass quantile=0.5, or leave it out.")
        if self.bits not in {32, 64}:
            raise InvalidParameterError("Sums are over integers of 32 or 64 bits.", fix="pass bits=32.")
        if self.sampling < 1 and (not self.trusted or self.per_person > 1):
            raise InvalidParameterError(
                "Sampling hides nobody here: the others know who takes part, or one person is at several clients.",
                fix="leave sampling= out, or trust the aggregator with trusted=True and have per_person=1.",
            )
        if not self.trusted and (too_few(self.clients, self.dropouts, self.colluding) or self.honest < 1):
            raise InvalidParameterError(
                f"Of {self.clients} clients, {self.dropouts} may drop out and {self.colluding} collude, and one person"
                f" may have {self.per_person}: the rest is too few.",
                fix="let twice the drop-outs and the colluding clients be less than all others, or add clients.",
            )
        if self.radius < _FINE:
            raise InvalidParameterError("Integers of 32 bits are too coarse for so many clients.", fix="pass bits=64.")
        _ = self.noise(1)

    @property
    def honest(self) -> int:
        """How many shares of the noise are counted on."""
        known = max(self.colluding, self.per_person)  # who has several clients knows the shares of all of them
        return 1 if self.trusted else counted_shares(self.clients, self.dropouts, known)

    @cached_property
    def radius(self) -> int:
        """S: the norm that no client's integer vector exceeds."""
        shares = 1.0 if self.trusted else self.clients / self.honest
        spread = _FAR * float(self.noise_multiplier) * self.per_person * math.sqrt(shares)
        room = 2.0 ** (min(self.bits, 56) - 1) - 1
        return int(min(room / (self.clients + spread), 2**30))

    @cached_property
    def _vote(self) -> int:
        """B: the most that a client says of the clip."""
        return 0 if self.quantile is None else self.radius // _VOTE

    @cached_property
    def _rest(self) -> int:
        """The norm that the change itself does not exceed."""
        return math.isqrt(self.radius**2 - self._vote**2)

    def length(self, numbers: int) -> int:
        """How many integers a client brings for a model with so many numbers."""
        return numbers if self.quantile is None else numbers + 1

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

    def encoded(self, update: Sequence[NDArray[Any]], clip: float | None = None) -> NDArray[np.int64]:
        """The change of a client's model as integers of a norm of at most :attr:`radius`; see the module.

        ``clip`` is that of this round, if it follows; by default the first one.

        >>> plan = TrainingPlan(clients=10, rounds=5, clip=1.0, noise_multiplier=4.0)
        >>> there = plan.encoded([np.array([3.0, 4.0])])
        >>> (there / plan.radius).round(3).tolist()
        [0.6, 0.8]
        """
        bound = self.checked(self.clip if clip is None else clip)
        flat = np.concatenate([np.asarray(part, np.float64).ravel() for part in update])
        if not np.isfinite(flat).all():
            return np.zeros(self.length(len(flat)), np.int64)
        largest = float(np.abs(flat).max(initial=0.0))
        unit = flat / largest if largest else flat  # so that no square is too large for a float
        norm = largest * float(np.linalg.norm(unit))
        scaled = (unit * largest if norm <= bound else flat / norm * bound) * (self._rest / bound)
        found = np.rint(scaled).astype(np.int64)
        while not self._short(found, self._rest):
            shorter = (1 - 2.0**-20) * min(1.0, self._rest / float(np.linalg.norm(found)))
            found = np.trunc(found * shorter).astype(np.int64)
        if self.quantile is None:
            return found
        return np.append(found, int(self._vote * ((norm <= bound) - self.quantile)))

    def checked(self, clip: object) -> float:
        """A clip that may be that of a round: the first one, or, if it follows, one that is not too far from it."""
        wide = 1.0 if self.quantile is None else _WIDE
        if not isinstance(clip, float | int) or not self.clip / wide <= clip <= self.clip * wide:
            raise ProtocolError("The clip of this round is not one that was agreed on.")
        return clip

    def within(self, vector: NDArray[np.int64]) -> bool:
        """Whether an integer vector is one that a client may bring: its norm is compared in integers."""
        return self._short(vector, self.radius)

    @staticmethod
    def _short(vector: NDArray[np.int64], bound: int) -> bool:
        if len(vector) and max(-int(vector.min()), int(vector.max())) > bound:
            return False
        if len(vector) < 64:
            return sum(int(x) * int(x) for x in vector) <= bound**2
        # With entries of at most 2**30 in absolute value, eight squares fit in 64 bits.
        squares = np.add.reduceat(vector * vector, range(0, len(vector), 4))
        high, low = squares >> 32, squares & 0xFFFFFFFF
        return (int(high.sum()) << 32) + int(low.sum()) <= bound**2

    def decoded(
        self, total: NDArray[np.int64], parties: int, clip: float | None = None
    ) -> tuple[NDArray[np.float64], float]:
        """The mean change of the model of a noisy sum, and the clip of the next round.

        The mean is over those who took part, or whom a trusted server expects.
        """
        over = self.sampling * self.clients if self.trusted else parties
        bound = self.clip if clip is None else clip
        if self.quantile is None:
            return np.asarray(total * (bound / self._rest / over), np.float64), bound
        more = min(1.0, max(-1.0, float(total[-1]) / self._vote / over))  # how many more are short than should be
        after = min(max(bound * math.exp(-_FOLLOW * more), self.clip / _WIDE), self.clip * _WIDE)
        return np.asarray(total[:-1] * (bound / self._rest / over), np.float64), after

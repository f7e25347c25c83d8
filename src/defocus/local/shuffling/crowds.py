"""Crowds: texts that nobody listed before, of which the analyser sees those that enough people sent."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np

from defocus.errors import InvalidParameterError, Number, count, positive, probability, whole
from defocus.local.clients import CrowdClient
from defocus.local.estimates import Estimate
from defocus.local.shuffling.sums import replaced_event
from defocus.noise import Bits, discrete_laplace
from defocus.privacy import events

__all__ = ["CrowdServer", "Crowds"]

_LONGEST = 1 << 12
"""Bytes of a text."""


@final
@dataclass(frozen=True, slots=True)
class Crowds:
    r"""Each user sends one text of at most ``length`` bytes; the shuffler hands on those of large enough crowds.

    A text is sealed for the analyser in such a way that equal texts look alike: the sealed text is the crowd. It is
    sealed once more, for the shuffler alone. The shuffler counts the members of each crowd, adds noise to every number,
    and hands on one copy with its noisy number where that is above a threshold. What it drops, the analyser never sees.

    Guarantee:
        Against the analyser, also where it colludes with any other users: (``epsilon``, ``delta``)-DP for one user's
        text replaced. The noise Z of each crowd is on :math:`-r, \ldots, r`, with masses proportional to
        :math:`e^{-\varepsilon|z|/2}`, and a crowd of n is handed on where :math:`n + Z > r`. A user who is replaced
        leaves one crowd and joins another. For a crowd that gains or loses one member and a set S of outcomes, shifting
        Z by one gives :math:`P_n(S) \le e^{\varepsilon/2} P_{n\pm1}(S) + p_r`, since masses side by side differ by that
        factor and only the mass :math:`p_r` of one end is shifted out; a crowd of none is never handed on, as one with
        that noise would not be. r is the least with :math:`p_r \le \delta/2`, and the two crowds compose. All members
        of a crowd have sent the same bytes, so a number tells all about them: no member can mark its copy.

        ``threshold`` drops noisy numbers below it as well, which is post-processing.

        Against the shuffler alone: it cannot read what it did not guess. It sees who sends, which users sent the same,
        and can seal a guess and compare. A text that can be guessed and must be kept from the shuffler needs an oracle,
        which randomises on the device.
    Assumes:
        Shuffler and analyser do not collude, and the shuffler adds the noise: together they see what everybody sent.

    Error:
        Of a crowd of more than 2r members, unbiased with a variance below that of discrete Laplace noise of scale
        :math:`2/\varepsilon`. A crowd of n is handed on with probability :math:`P(Z > r - n)`: a half at about
        :math:`r + 1`, always beyond 2r.
    Reference:
        Bittau et al. (2017), Prochlo: strong privacy for analytics in the crowd, for crowds and randomised thresholds;
        Desfontaines, Voss, Gipson, Mandayam (2022), Differentially private partition selection, for the noise, whose
        threshold is the least there can be for its guarantee.

    >>> asked = Crowds(16, users=100, epsilon=1, delta=1e-6)
    >>> asked.reach
    27
    """

    length: int
    users: int
    epsilon: Number
    delta: Number
    threshold: int = 0

    def __post_init__(self) -> None:
        if count("length", self.length) > _LONGEST:
            raise InvalidParameterError(f"A text has at most {_LONGEST} bytes.", fix="let devices send a hash of it.")
        count("users", self.users)
        positive("epsilon", self.epsilon)
        probability("delta", self.delta, zero=False, one=False)
        whole("threshold", self.threshold)

    @property
    def event(self) -> events.Event:
        """What the numbers of all crowds cost together, for a text replaced. Other users' noise is not counted on."""
        return replaced_event(self.epsilon, float(self.delta), self.users)

    @property
    def reach(self) -> int:
        """How far noise goes: a noisy number up to it is never handed on."""
        return _reach(Fraction(self.epsilon), Fraction(self.delta))

    @property
    def error(self) -> float:
        """The standard error of the number of a crowd that is surely handed on."""
        return math.sqrt(_variance(Fraction(self.epsilon), self.reach))

    @property
    def messages_per_user(self) -> int:
        """One."""
        return 1

    def client(self) -> CrowdClient:
        """The device's side."""
        return CrowdClient(self.length)

    def handed_on(self, crowds: Sequence[bytes], bits: Bits | None = None) -> list[tuple[bytes, int]]:
        """Of what all users sent, each in an arbitrary order: what is handed on, sorted, with its noisy number."""
        members = sorted(Counter(crowds).items())
        noise = self._drawn(len(members), bits)
        noisy = ((crowd, n + z) for (crowd, n), z in zip(members, noise, strict=True))
        return [(crowd, n) for crowd, n in noisy if n > self.reach and n >= self.threshold]

    def _drawn(self, size: int, bits: Bits | None) -> list[int]:
        """Discrete Laplace noise, drawn anew where it is beyond the reach."""
        drawn = list[int]()
        while len(drawn) < size:
            more = discrete_laplace(2 / Fraction(self.epsilon), size - len(drawn), bits)
            drawn += more[np.abs(more) <= self.reach].tolist()
        return drawn


@final
class CrowdServer:
    """Collects the crowds that were handed on; what is no text is rejected and counted.

    >>> server = CrowdServer(Crowds(16, users=100, epsilon=1, delta=1e-6), users=120)
    >>> server.add(b"hello".ljust(16, bytes(1)), 90), server.estimate().top(1)[0][:2]
    (True, ('hello', 90.0))
    """

    __slots__ = ("_found", "protocol", "rejected", "users")

    def __init__(self, protocol: Crowds, *, users: int) -> None:
        self.protocol, self.users, self.rejected = protocol, users, 0
        self._found: Counter[str] = Counter()

    def add(self, message: bytes, number: int) -> bool:
        """Take one crowd; whether it has a text."""
        try:
            text = message.rstrip(b"\0").decode()
        except UnicodeDecodeError:
            self.rejected += 1
            return False
        self._found[text] += number
        return True

    def estimate(self) -> Estimate:
        """How many users sent each text, the most frequent first; the empty one stands for what is no text."""
        found = self._found.most_common()
        counts = np.array([n for _, n in found], np.float64)
        price = f"epsilon {float(self.protocol.epsilon):g}, delta {float(self.protocol.delta):g}"
        return Estimate(
            counts,
            np.full(len(found), self.protocol.error**2),
            self.users,
            tuple(text for text, _ in found),
            rejected=self.rejected,
            collected=f"texts of crowds, with noise by a shuffler, of {self.users} users: {price}",
        )


@lru_cache(maxsize=64)
def _reach(epsilon: Fraction, delta: Fraction) -> int:
    """The least r whose outermost mass is at most delta/2, by binary search: the mass falls with r."""
    enough = 1
    while _outermost(epsilon, enough) > delta / 2:
        enough *= 2
    low, high = 0, enough
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _outermost(epsilon, middle) <= delta / 2 else (middle, high)
    return high


def _outermost(epsilon: Fraction, r: int) -> float:
    r""":math:`a^r(1-a)/(1+a-2a^{r+1})` with :math:`a = e^{-\varepsilon/2}`, at most, floating-point error included."""
    e = float(epsilon) / 2
    a, gap = math.exp(-e), -math.expm1(-e)
    # 1 + a - 2 a^(r+1) = (1 - a) + 2 a (1 - a^r): no difference of numbers that are nearly equal.
    return math.exp(-e * r) * gap / (gap - 2 * a * math.expm1(-e * r)) * (1 + 1e-9)


def _variance(epsilon: Fraction, reach: int) -> float:
    weights = np.exp(-float(epsilon) / 2 * np.arange(1, reach + 1))
    return float(2 * (weights * np.arange(1, reach + 1) ** 2).sum() / (1 + 2 * weights.sum()))

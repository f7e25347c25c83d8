"""What the parties of one secure sum agree on: who they are, how many may be missing or lie, and who are neighbours."""

import hashlib
import math
import re
import secrets
from collections.abc import Collection, Container, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from defocus.errors import InvalidParameterError, count, whole
from defocus.federated.identity import KEY
from defocus.federated.masks import PAIR, SELF, TAG
from defocus.federated.secret_sharing import SHARE
from defocus.mechanisms.noise_shares import SpareNoise

__all__ = ["SumPlan", "by_name", "counted_shares", "in_words", "too_few"]

_COMPLETE = 100
"""Up to so many parties, each is everybody's neighbour."""
_FAILS = 2.0**-40
"""The probability with which a random graph may leave some party with too few neighbours for a sum."""
_OPENS = 2.0**-80
"""Likewise, with so many colluders beside a party that it is not hidden: also for who tries 2**40 names of a sum."""


def counted_shares(parties: int, dropouts: int, colluding: int) -> int:
    """How many shares of the noise are counted on: a party that sees the answer knows its own, also by itself.

    >>> counted_shares(5, 1, 0), counted_shares(10, 1, 3)
    (3, 6)
    """
    return parties - dropouts - max(1, colluding)


def too_few(parties: int, dropouts: int, colluding: int) -> bool:
    """Whether so many drop-outs and colluding parties leave too few others to agree on who is left.

    >>> too_few(3, 1, 0), too_few(4, 1, 0)
    (True, False)
    """
    return parties - 1 <= 2 * dropouts + colluding


def by_name(said: str, names: Sequence[str]) -> str:
    """What was said of parties by their numbers, with their names.

    >>> by_name("Party 2 dealt shares that do not open.", ["north", "south"])
    'south dealt shares that do not open.'
    """
    called = {str(number): name for number, name in enumerate(names, 1)}
    return re.sub(r"\b[Pp]arty ([0-9]+)\b", lambda found: called.get(found[1], found[0]), said)


def in_words(parties: int, dropouts: int, colluding: int, overlap: int) -> str:
    """What an answer says about those who gave it together.

    >>> in_words(5, 1, 0, 1).partition(';')[0].partition(', and ')[2]
    'of those that stay all but 1 share of noise is counted on'
    """
    known = "one site only" if overlap == 1 else f"at most {overlap} sites, and is bounded at each"
    unsure = parties - dropouts - counted_shares(parties, dropouts, colluding)
    shares = "1 share of noise is" if unsure == 1 else f"{unsure} shares of noise are"
    return (
        f"{parties} sites answer together, of which {dropouts} may drop out and {colluding} collude, and of those that"
        f" stay all but {shares} counted on; each person is known at {known}"
    )


def _log_tails(number: int, marked: int, drawn: int) -> NDArray[np.float64]:
    """For x = 0 … drawn the logarithm of the probability of at least x marked ones among those drawn."""
    x = np.arange(drawn + 1)
    possible = (x <= marked) & (drawn - x <= number - marked)

    def choose(n: int, k: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(np.maximum(n - k, 0) + 1))

    law = np.where(possible, choose(marked, x) + choose(number - marked, drawn - x), -np.inf)
    law -= choose(number, np.array(drawn))
    return np.asarray(np.logaddexp.accumulate(law[::-1])[::-1])


@final
@dataclass(frozen=True)
class SumPlan:
    """What all parties of one sum agree on beforehand. It is public.

    Args:
        parties: the public keys of their identities; party 1 is the first.
        length: how many integers each brings.
        bits: sums are exact modulo 2**bits, a multiple of 8 up to 64.
        dropouts: how many parties may fail at any time without voiding the sum.
        colluding: how many may show the coordinator everything they know.
        name: what tells this sum from all others; random by default.
        spare: noise that each party adds for those who may drop out; what is too much of it is taken off again.

    >>> from defocus.federated import Identity
    >>> keys = tuple(Identity.generate().public for _ in range(5))
    >>> plan = SumPlan(keys, length=3, dropouts=1, colluding=1)
    >>> plan.least, plan.threshold
    (4, 3)
    """

    parties: tuple[bytes, ...]
    length: int
    bits: int = 32
    dropouts: int = 0
    colluding: int = 0
    name: bytes = field(default_factory=lambda: secrets.token_bytes(KEY))
    spare: SpareNoise | None = None

    def __post_init__(self) -> None:
        number = len(self.parties)
        given: tuple[object, ...] = self.parties
        good = all(isinstance(each, bytes) and len(each) == KEY for each in given)
        if not good or len(set(self.parties)) != number or not 2 <= number < 1 << 16:
            raise InvalidParameterError(
                "The parties of a sum are from 2 to 65535 different public keys of 32 bytes.",
                fix="pass Identity.public of each.",
            )
        if len(self.name) != KEY:
            raise InvalidParameterError("The name of a sum has 32 bytes.", fix="leave it out: a random one is made.")
        count("length", self.length)
        whole("dropouts", self.dropouts)
        whole("colluding", self.colluding)
        if self.bits not in range(8, 65, 8):
            raise InvalidParameterError(f"Sums modulo 2**{self.bits!r:.20} are not supported.", fix="pass bits=32.")
        if too_few(number, self.dropouts, self.colluding):
            raise InvalidParameterError(
                f"Of {number} parties, {self.dropouts} may drop out and {self.colluding} collude: the rest is too few"
                " to agree on who is left.",
                fix="let twice the drop-outs and the colluding parties be less than all others, or add parties.",
            )
        spare = self.spare
        counted = counted_shares(number, self.dropouts, self.colluding)
        if spare is not None and (spare.dropouts != self.dropouts or spare.honest > counted):
            raise InvalidParameterError(
                f"Spare noise for {spare.dropouts} drop-outs with {spare.honest} shares that are counted on does not"
                f" fit {number} parties, of which {self.dropouts} may drop out and {self.colluding} collude.",
                fix="take NoiseShare.spare of the same parties.",
            )
        _ = self.degree

    @cached_property
    def session(self) -> bytes:
        """The digest of everything that was agreed on."""
        facts = (self.length, self.bits, self.dropouts, self.colluding, len(self.parties))
        said = b"".join(fact.to_bytes(8) for fact in facts)
        if (spare := self.spare) is not None:
            said += hashlib.sha256(f"{spare.law} {spare.scale} {spare.honest} {spare.dropouts}".encode()).digest()
        return hashlib.sha256(b"defocus.sum/2" + self.name + said + b"".join(self.parties)).digest()

    @property
    def least(self) -> int:
        """There is no sum over fewer parties."""
        return len(self.parties) - self.dropouts

    @property
    def quorum(self) -> int:
        """So many parties have to sign the same set of survivors."""
        return (len(self.parties) + self.colluding) // 2 + 1

    @cached_property
    def degree(self) -> int:
        """How many neighbours each party has."""
        number = len(self.parties)
        if number <= _COMPLETE:
            return number - 1
        for degree in range(2, number - 1, 2):
            lost, bad = self._unlucky(degree)
            if degree - 2 * lost > bad and self._connected(degree, lost):
                return degree
        return number - 1

    @cached_property
    def threshold(self) -> int:
        """So many shares open a mask."""
        if self.degree == len(self.parties) - 1:
            return self.degree - self.dropouts
        return self.degree - self._unlucky(self.degree)[0]

    def _unlucky(self, degree: int) -> tuple[int, int]:
        """How many drop-outs and colluders some party has among its neighbours at most, but for bad luck."""
        number = len(self.parties)

        def most(marked: int, chance: float) -> int:
            tail = _log_tails(number - 1, marked, degree)
            return int(np.argmax(np.append(tail[1:], -np.inf) <= math.log(chance / (8 * number))))

        return most(self.dropouts, _FAILS), most(self.colluding, _OPENS)

    def _connected(self, degree: int, lost: int) -> bool:
        """Whether nobody can cut the honest parties in two, but for bad luck.

        A cut takes two runs of half a neighbourhood on the ring without an honest party that stays. Who drops out may
        be chosen after the ring is seen, but if more than ``lost`` neighbours of a party do, its masks are not opened,
        and there is no sum. So either run has all but so many places taken by colluders.
        """
        half, number = degree // 2, len(self.parties)
        if lost >= half:
            return False
        cut = float(_log_tails(number, self.colluding, half)[half - lost])
        return 2 * (math.log(number) + cut) <= math.log(_OPENS / 2)

    def neighbours(self, party: int) -> tuple[int, ...]:
        """The parties with which a party shares masks, in order."""
        number = len(self.parties)
        if self.degree == number - 1:
            return tuple(each for each in range(1, number + 1) if each != party)
        place, half = self._places[party - 1], self.degree // 2
        near = (self._ring[(place + step) % number] for step in range(-half, half + 1) if step)
        return tuple(sorted(near))

    @cached_property
    def _ring(self) -> list[int]:
        """The parties in an order that the digest draws; neighbours are near."""
        parties = range(1, len(self.parties) + 1)
        return sorted(parties, key=lambda each: hashlib.sha256(self.session + each.to_bytes(2)).digest())

    @cached_property
    def _places(self) -> list[int]:
        places = [0] * len(self.parties)
        for place, party in enumerate(self._ring):
            places[party - 1] = place
        return places

    @property
    def secrets(self) -> int:
        """How many secrets each party shares: those behind its masks, and the seeds of its spare noise."""
        return 2 if self.spare is None else 2 + self.spare.dropouts

    @property
    def sealed(self) -> int:
        """Bytes of the shares of all secrets as they travel."""
        return self.secrets * SHARE + TAG

    def missing(self, survivors: Collection[int]) -> int:
        """How many parties are not among these."""
        return len(self.parties) - len(survivors)

    def opened(self, survivors: Collection[int]) -> range:
        """Which secrets of each of these are revealed beside that of a mask: the seeds of noise that is too much."""
        return range(2 + self.missing(survivors), self.secrets)

    def mask_opened(self, party: int, survivors: Container[int]) -> int:
        """Which of the two secrets behind a party's masks is revealed; never both are."""
        return SELF if party in survivors else PAIR

    def spare_noise(self, secret: int, seed: bytes) -> NDArray[Any]:
        """The noise of a seed that was shared as the secret of this number."""
        assert self.spare is not None  # noqa: S101  # else there is no such secret
        noise = self.spare.part(secret - 1, seed, self.length)
        return noise.view(np.uint64).astype(self.word)

    @property
    def word(self) -> type[np.unsignedinteger[Any]]:
        """The integers in which is computed."""
        return np.uint32 if self.bits <= 32 else np.uint64

    @property
    def size(self) -> int:
        """Bytes of a masked vector."""
        return self.length * self.bits // 8

    def packed(self, vector: NDArray[Any]) -> bytes:
        """A vector as it travels: the last ``bits`` of each integer."""
        wide = vector.astype(self.word, copy=False).view(np.uint8).reshape(self.length, -1)
        return np.ascontiguousarray(wide[:, : self.bits // 8]).tobytes()

    def unpacked(self, body: memoryview) -> NDArray[Any]:
        """What :meth:`packed` wrote."""
        width = np.dtype(self.word).itemsize
        if self.bits == 8 * width:
            return np.frombuffer(body, self.word)
        wide = np.zeros((self.length, width), np.uint8)
        wide[:, : self.bits // 8] = np.frombuffer(body, np.uint8).reshape(self.length, -1)
        return wide.reshape(-1).view(self.word)

    def signed(self, vector: NDArray[Any]) -> NDArray[np.int64]:
        """Integers modulo 2**bits as those nearest to zero."""
        shift = np.uint64(64 - self.bits)
        return (vector.astype(np.uint64) << shift).view(np.int64) >> np.int64(64 - self.bits)

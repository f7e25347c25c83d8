"""Devices that send several messages about one value, each of which travels by itself through a shuffler.

The shuffler sees who sends how many messages of which length, and nothing else. So neither may depend on the value, and
the device sends its messages in random order, each sealed by itself.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import AskedAgainError, InvalidParameterError, Number, UnsuitableQuestionError, whole
from defocus.local.clients.client import Client
from defocus.local.clients.numeric import on_grid
from defocus.local.designs import Design, from_json
from defocus.local.domains import Categories, Interval, never_silent, plain_text
from defocus.local.layouts import Cells
from defocus.noise import Bits, bernoulli, permutation
from defocus.noise.bits import source

__all__ = ["END", "CrowdClient", "HistogramClient", "PrefixClient", "SumClient", "checked_question", "padded"]


@final
@dataclass(frozen=True, slots=True)
class SumClient:
    """The device of a :class:`~defocus.local.shuffling.MultiMessageSum`: ``levels`` + ``coins`` bits, always.

    A number that is rounded to the k-th of the levels is k ones and zeros for the rest; each coin is a one by
    ``chance``. All devices send equally many messages, so their number says nothing.
    """

    domain: Interval
    levels: int
    coins: int
    chance: Fraction

    def __post_init__(self) -> None:
        never_silent(self.domain)

    def report(self, value: Any, bits: Bits | None = None) -> tuple[bytes, ...]:
        """One person's messages, a byte each, in random order. Seal each by itself for the analyser."""
        draw = source(bits)
        step = int(self.steps([value], draw)[0])
        ones = np.concatenate([np.arange(self.levels) < step, bernoulli(self.chance, self.coins, draw)])
        return tuple(bytes((int(one),)) for one in ones[permutation(len(ones), draw)])

    def steps(self, values: Any, bits: Bits) -> NDArray[np.int64]:
        """Each number as a whole number of levels, up or down at random, so that its mean is right."""
        return on_grid(self.domain.positions(values), self.levels, bits)


@final
@dataclass(frozen=True, slots=True)
class HistogramClient:
    """The device of a :class:`~defocus.local.shuffling.MultiMessageHistogram`: its category, and some by chance.

    It sends ``slots`` messages, always: its category, one more for each category whose coin falls heads, and blank ones
    for the rest. Coins that would need more slots are all tossed again, which no value decides.
    """

    domain: Categories
    chance: Fraction
    slots: int

    def __post_init__(self) -> None:
        never_silent(self.domain)

    @property
    def length(self) -> int:
        """How many bytes each message has: enough for every category and for the blank one, which is the last."""
        return Cells(self.domain.size + 1).length

    def report(self, value: Any, bits: Bits | None = None) -> tuple[bytes, ...]:
        """One person's messages, one category each, in random order. Seal each by itself for the analyser."""
        draw = source(bits)
        code = self.domain.codes([value])
        while len(extra := np.flatnonzero(bernoulli(self.chance, self.domain.size, draw))) >= self.slots:
            pass
        blank = np.full(self.slots - 1 - len(extra), self.domain.size)
        said = np.concatenate([code, extra, blank])
        return tuple(int(one).to_bytes(self.length, "little") for one in said[permutation(len(said), draw)])


@final
@dataclass(frozen=True, slots=True)
class CrowdClient:
    """The device of :class:`~defocus.local.shuffling.Crowds`: its text, in as many bytes whatever it is.

    What is no text, is longer than ``length`` bytes or holds a zero character is sent as the empty text.
    """

    length: int

    def report(self, value: Any, bits: Bits | None = None) -> tuple[bytes, ...]:
        """One person's only message. It is not randomised: the shuffler counts equal ones, and adds noise."""
        del bits
        text = plain_text(value, self.length)
        said = b"" if text is None or END in text else text.encode(errors="replace")
        return ((said if len(said) <= self.length else b"").ljust(self.length, b"\0"),)


END = "\0"
"""Fills strings up to their full length; no character of the alphabet."""


def padded(value: Any, alphabet: str, length: int) -> str:
    """A string with its end marked; for whatever is no string of the alphabet, a text that no question names."""
    text = plain_text(value, length)
    return "" if text is None or not set(text) <= set(alphabet) else text + END * (length - len(text))


def checked_question(design: Design, *, alphabet: str, reach: int, epsilon: Number) -> Design:
    """The design of a question, if it costs no more than was agreed on and is about prefixes of this length."""
    if design.epsilon > epsilon:
        raise UnsuitableQuestionError(f"it costs epsilon = {float(design.epsilon):g}, more than {float(epsilon):g}")
    domain = design.domain
    if not isinstance(domain, Categories) or domain.labels is None or domain.outside != "other":
        raise UnsuitableQuestionError("it is not about labelled prefixes with a bucket for all others")
    letters = {*alphabet, END}
    if any(len(label) != reach or not letters.issuperset(label) for label in domain.labels):
        raise UnsuitableQuestionError(f"its labels are not {reach} characters of the alphabet")
    return design


@final
class PrefixClient:
    """One person's device. It answers the first question that suits the protocol, and refuses all others.

    Guarantee:
        All that leaves the device is one report, under a design of at most ``epsilon``; so a person pays epsilon,
        whatever the server asks. A string outside of the alphabet is answered by "other".
    Assumes:
        The object lives as long as the search: a device that may be restarted notes elsewhere that it was asked.
    """

    __slots__ = ("_alphabet", "_epsilon", "_length", "_step", "_text", "asked")

    def __init__(self, value: Any, *, alphabet: str, length: int, epsilon: Number, step: int) -> None:
        self._alphabet, self._length, self._step, self._epsilon = alphabet, length, step, epsilon
        self._text = padded(value, alphabet, length)
        self.asked = False

    def report(self, group: int, question: str | bytes, *, nonce: bool = False, bits: Bits | None = None) -> bytes:
        """The answer to a ``question``, given by its description, for the people of this ``group``."""
        if self.asked:
            raise AskedAgainError
        if whole("group", group) * self._step >= self._length:
            raise InvalidParameterError(f"There is no group {group}.", fix="count groups from 0.")
        reach = min((group + 1) * self._step, self._length)
        design = checked_question(from_json(question), alphabet=self._alphabet, reach=reach, epsilon=self._epsilon)
        self.asked = True
        return Client(design).report(self._text[:reach], nonce=nonce, bits=bits)

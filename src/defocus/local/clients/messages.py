"""Devices that send several messages about one value, each of which travels by itself through a shuffler.

The shuffler sees who sends how many messages of which length, and nothing else. So neither may depend on the value, and
the device sends its messages in random order, each sealed by itself.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.local.clients.numeric import on_grid
from defocus.local.domains import Categories, Interval, never_silent
from defocus.local.layouts import Cells
from defocus.noise import Bits, bernoulli, permutation
from defocus.noise.bits import source

__all__ = ["HistogramClient", "SumClient"]


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

    It sends one message and as many more as coins fall heads, a coin for every category: a number whose law is the same
    for all values.
    """

    domain: Categories
    chance: Fraction

    def __post_init__(self) -> None:
        never_silent(self.domain)

    @property
    def length(self) -> int:
        """How many bytes each message has."""
        return Cells(self.domain.size).length

    def report(self, value: Any, bits: Bits | None = None) -> tuple[bytes, ...]:
        """One person's messages, one category each, in random order. Seal each by itself for the analyser."""
        draw = source(bits)
        code = self.domain.codes([value])
        said = np.concatenate([code, np.flatnonzero(bernoulli(self.chance, self.domain.size, draw))])
        return tuple(int(one).to_bytes(self.length, "little") for one in said[permutation(len(said), draw)])

"""Choosing one of several with weights that are real numbers, known as closely as it takes."""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TypeAlias

from defocus.noise.bits import Bits

__all__ = ["EnclosedWeights", "enclosed_choice"]

EnclosedWeights: TypeAlias = Callable[[int], Sequence[tuple[int, int]]]
"""Non-negative weights as n -> pairs (low, high) around a common factor times each weight, tighter for larger n."""

_FIRST = 128


def enclosed_choice(weights: EnclosedWeights, bits: Bits) -> int:
    r"""Return i with probability :math:`w_i / \sum w`, exactly.

    Guarantee:
        A uniform real u of infinitely many bits falls into one of the intervals between the sums
        :math:`w_0 + … + w_{i-1}`, divided by the total. Bits are drawn and the weights enclosed more tightly until
        one interval holds all that u can still be, whatever the weights are within their bounds.
    Assumes:
        The bounds become as tight, relative to the total, as one likes; some weight is positive.

    >>> from defocus.noise import system
    >>> enclosed_choice(lambda n: [(0, 0), (1 << n, 1 << n)], system())
    1
    """
    precision, prefix, length = _FIRST, bits.integer(_FIRST), _FIRST
    while True:
        pairs = weights(precision)
        lows = list(accumulate((low for low, _ in pairs), initial=0))
        highs = list(accumulate((high for _, high in pairs), initial=0))
        below, above = prefix * lows[-1], (prefix + 1) * highs[-1]
        at = _last(highs, below, length)
        if at < len(pairs) and above <= lows[at + 1] << length:
            return at
        prefix, length, precision = prefix << 64 | bits.integer(64), length + 64, precision + 64


def _last(sums: list[int], below: int, length: int) -> int:
    """The last position whose sum, times 2**length, does not exceed ``below``."""
    low, high = 0, len(sums)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if sums[middle] << length <= below else (low, middle)
    return low

"""The exponential mechanism over all subsets of one size, sampled exactly without listing them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, Number, count
from defocus.mechanisms.mechanism import Integers, checked_rate, integers, outside
from defocus.mechanisms.selection import checked_flag
from defocus.noise import Bits, permutation
from defocus.noise.bits import source
from defocus.noise.enclosures import NOTHING, Enclosed, aligned, exponential, plus, times
from defocus.noise.reals import enclosed_choice
from defocus.privacy import events

__all__ = ["SubsetChoice"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetChoice:
    r"""Choose ``size`` of the candidates, a set S with probability proportional to :math:`e^{c\sum_{i \in S} u_i}`.

    Guarantee:
        Between neighbours at most ``touched`` utilities move, each by at most ``sensitivity``, so the utility of a set
        moves by at most :math:`\Delta = \min(size, touched) \cdot sensitivity`. If all move in one direction
        (``monotone``), the moves of two sets differ by at most :math:`\Delta` and :math:`c = \varepsilon/\Delta`;
        otherwise by at most :math:`2\Delta` and :math:`c = \varepsilon/2\Delta`. Either way the log-likelihood ratios
        span at most :math:`\varepsilon`: bounded range, which is stronger than :math:`\varepsilon`-DP.

        For the degrees of a graph, an edge moves two utilities by one: :math:`\Delta = 2`, and 1 for ``size`` = 1.
    Assumes:
        The number of candidates is public. An edge that is added or removed moves all utilities in one
        direction; one that replaces another does not, and touches four.

    Error:
        The sampling is exact: candidates of equal utility are grouped, elementary symmetric polynomials of the weights
        are enclosed by integers, and the number taken from each group, highest first, is drawn from its conditional law
        with as many bits as it takes. The expected loss of total utility is at most :math:`W(N/e)/c` for
        :math:`N + 1` subsets, as for any exponential mechanism.
    Reference:
        McSherry, Talwar (2007), Mechanism design via differential privacy; Chen, Dempster, Liu (1994), Weighted finite
        population sampling to maximize entropy, for the conditional law.

    >>> top = SubsetChoice(epsilon=1, candidates=4, size=2, touched=2, monotone=True)
    >>> top.event
    Exponential(epsilon=1)
    >>> top.sample([900, 3, 800, 5]).tolist()
    [0, 2]
    """

    answers_with: ClassVar[str] = "candidate"
    epsilon: Number
    candidates: int
    size: int
    touched: int = 1
    sensitivity: int = 1
    monotone: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_rate("epsilon", self.epsilon))
        for name in ("candidates", "size", "touched", "sensitivity"):
            object.__setattr__(self, name, count(name, getattr(self, name)))
        checked_flag("monotone", self.monotone)
        if self.size > self.candidates:
            raise InvalidParameterError(
                f"{self.size} of {self.candidates} candidates cannot be chosen.", fix="pass size <= candidates."
            )

    @property
    def event(self) -> events.Exponential:
        """What one choice owes."""
        return events.Exponential(self.epsilon)

    @property
    def rate(self) -> Fraction:
        """The factor c of the utilities."""
        moves = min(self.size, self.touched) * self.sensitivity * (1 if self.monotone else 2)
        return Fraction(self.epsilon) / moves

    @property
    def error(self) -> float:
        """The largest expected loss of total utility, over all utilities."""
        others = self._log_others()
        if others == -math.inf:
            return 0.0
        low, high = 0.0, max(1.0, others)  # x + ln x = others - 1 has its root between
        for _ in range(200):
            x = (low + high) / 2
            low, high = (x, high) if x + math.log(x) < others - 1 else (low, x)
        return high / float(self.rate)

    def interval(self, confidence: Number) -> float:
        """The loss of total utility that is not exceeded with probability ``confidence``, whatever the utilities."""
        beyond, others = outside(confidence), self._log_others()
        if others == -math.inf:
            return 0.0
        return max(0.0, others + math.log1p(-beyond) - math.log(beyond)) / float(self.rate)

    def check(self, utilities: object) -> None:
        """Refuse anything but one 64-bit integer for each candidate."""
        integers(utilities, length=self.candidates)

    def sample(self, utilities: Integers, bits: Bits | None = None) -> NDArray[np.int64]:
        """The positions of the chosen candidates, in rising order."""
        generator = source(bits)
        vector, _ = integers(utilities, length=self.candidates)
        values, group, sizes = np.unique(vector, return_inverse=True, return_counts=True)
        level = int(np.partition(vector, -self.size)[-self.size])
        exponents = [self.rate * (value - level) for value in values.tolist()]
        taken = _numbers(exponents, sizes.tolist(), self.size, generator)
        members = np.argsort(group, kind="stable")
        starts = np.concatenate([[0], np.cumsum(sizes)])
        chosen = [
            members[start : start + total][permutation(total, generator)[:many]]
            for start, total, many in zip(starts.tolist(), sizes.tolist(), taken, strict=False)
            if many
        ]
        return np.sort(np.concatenate(chosen)).astype(np.int64)

    def _log_others(self) -> float:
        """The logarithm of the number of subsets but one; an upper bound where it is large."""
        n, k = self.candidates, self.size
        logarithm = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        if logarithm < 30:
            others = math.comb(n, k) - 1
            return math.log(others) if others else -math.inf
        return logarithm


def _numbers(exponents: Sequence[Fraction], sizes: Sequence[int], k: int, bits: Bits) -> list[int]:
    """How many to take from each group, lowest group first: the highest is drawn first, given what is still missing."""
    known: dict[int, tuple[list[list[Enclosed]], list[list[Enclosed]]]] = {}

    def polynomials(precision: int) -> tuple[list[list[Enclosed]], list[list[Enclosed]]]:
        if precision not in known:
            known[precision] = _polynomials(exponents, sizes, k, precision)
        return known[precision]

    def weights(group: int, missing: int, precision: int) -> list[tuple[int, int]]:
        terms, sums = polynomials(precision)
        below = sums[group]  # shorter than the rest asks for where the groups below cannot give it
        return aligned(
            times(term, below[missing - i], precision) if missing - i < len(below) else NOTHING
            for i, term in enumerate(terms[group][: missing + 1])
        )

    taken = [0] * len(sizes)
    missing = k
    for group in reversed(range(len(sizes))):
        taken[group] = enclosed_choice(partial(weights, group, missing), bits)
        missing -= taken[group]
        if not missing:
            break
    return taken


def _polynomials(
    exponents: Sequence[Fraction], sizes: Sequence[int], k: int, precision: int
) -> tuple[list[list[Enclosed]], list[list[Enclosed]]]:
    """Enclose the weight of taking 0, 1, … from each group, and from all groups before it."""
    one = Enclosed(1, 1, 0)
    terms: list[list[Enclosed]] = []
    sums: list[list[Enclosed]] = [[one]]
    for exponent, size in zip(exponents, sizes, strict=True):
        weight, power, term = exponential(exponent, precision), one, [one]
        for i in range(1, min(size, k) + 1):
            power = times(power, weight, precision)
            many = math.comb(size, i)
            term.append(times(power, Enclosed(many, many, 0), precision))
        before = sums[-1]
        after = []
        for total in range(min(len(before) + len(term) - 1, k + 1)):
            inner = range(max(0, total - len(before) + 1), min(total, len(term) - 1) + 1)
            after.append(plus((times(term[i], before[total - i], precision) for i in inner), precision))
        terms.append(term)
        sums.append(after)
    return terms, sums

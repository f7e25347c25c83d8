"""Above threshold, the sparse vector technique: which of many answers exceed a threshold, until some were found."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, NamedTuple, final

import numpy as np

from defocus.errors import InvalidParameterError, Number, count, positive
from defocus.mechanisms import error_laws
from defocus.mechanisms.mechanism import LARGEST, SMALLEST, Integers, integers, saturate, scale_for
from defocus.mechanisms.selection import checked_flag
from defocus.noise import Bits, discrete_laplace
from defocus.privacy import events

__all__ = ["AboveThreshold", "Answer", "Crossings"]


class Answer(NamedTuple):
    """Whether one answer was above the threshold, and by how much if that is released.

    >>> Answer(above=True).gap is None
    True
    """

    above: bool
    gap: int | None = None


@final
@dataclass(frozen=True, slots=True)
class Crossings:
    """Which answers were found above the threshold before the mechanism stopped.

    ``answered`` answers were compared; ``gaps`` has one entry for each position, or is None.

    >>> Crossings(positions=(2, 5), gaps=None, answered=6).answered
    6
    """

    positions: tuple[int, ...]
    gaps: tuple[int, ...] | None
    answered: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AboveThreshold:
    r"""Compare each integer answer plus noise with one noisy threshold, and stop after ``positives`` were above.

    Guarantee:
        :math:`\varepsilon`-DP for any number of answers. The threshold T gets one discrete Laplace
        noise R of scale :math:`b_1`, each answer :math:`q_i` its own :math:`X_i` of scale
        :math:`b_2`, and i is above when :math:`q_i + X_i \ge T + R`. For an outcome with the set I
        above, at most c of them, and J below,

        .. math:: P = \sum_r P(R = r) \prod_J P(X_j < T + r - q_j) \prod_I P(X_i \ge T + r - q_i).

        For neighbours, :math:`|q_i - q_i'| \le \Delta`. Replace r by the integer :math:`r + \Delta`:
        the first factor loses at most :math:`e^{\Delta/b_1}`; a factor of J does not shrink; in a factor of I
        the bound moves by at most :math:`2\Delta`, which loses at most :math:`e^{2\Delta/b_2}`. So
        :math:`\varepsilon = \Delta/b_1 + 2c\Delta/b_2`. If all answers move in one direction, then
        either they rise, the bound moves by at most :math:`\Delta`, and
        :math:`\varepsilon = \Delta/b_1 + c\Delta/b_2`; or they fall, and r can stay as it is.
        With ``gap``, a factor of I becomes :math:`P(X_i = g_i + T + r - q_i)`, which loses no
        more: a discrete Laplace probability changes by at most :math:`e^{s/b_2}` when shifted by s
        steps in either direction. The gap is therefore free.
    Assumes:
        Every answer moves by at most ``sensitivity`` between neighbours, also answers to questions
        chosen after seeing earlier outcomes; monotone ones all in one direction. The threshold is public.
        The noise of the threshold is drawn once and stays secret: it is never drawn anew.

    Error:
        One comparison is wrong by the difference of two noises; ``error`` is its expected
        absolute value. The budget is split as :math:`1 : (2c)^{2/3}` (monotone
        :math:`1 : c^{2/3}`), which minimises its variance. Gaps are cut to 64 bits.
    Reference:
        Lyu, Su, Li (2017), Understanding the sparse vector technique for differential privacy,
        Algorithm 7 and Section 4.2; Ding, Wang, Zhang, Kifer (2019), Free gap information from the
        differentially private sparse vector and noisy max mechanisms.

    >>> above = AboveThreshold(epsilon=1, threshold=1000, positives=2)
    >>> above.event
    Pure(epsilon=1)
    >>> above.sample([10, 5000, 20, 6000, 7000]).positions
    (1, 3)
    """

    answers_with: ClassVar[str] = "crossings"
    epsilon: Number
    threshold: int
    positives: int = 1
    sensitivity: int = 1
    monotone: bool = False
    gap: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "positives", count("positives", self.positives))
        object.__setattr__(self, "sensitivity", count("sensitivity", self.sensitivity))
        checked_flag("monotone", self.monotone)
        checked_flag("gap", self.gap)
        object.__setattr__(self, "threshold", _threshold(self.threshold))
        _ = self.scales

    @property
    def scales(self) -> tuple[Number, Number]:
        """The noise scales of the threshold and of each answer."""
        weight = self.positives * (1 if self.monotone else 2)
        share = Fraction(round(64 * weight ** (2 / 3)), 64)  # any split is private; this one is near the best
        whole = self.sensitivity * (1 + share)
        return scale_for(whole, self.epsilon), scale_for(whole * weight / share, self.epsilon)

    @property
    def event(self) -> events.Pure:
        """What the whole run owes, however many answers it compares."""
        return events.Pure(self.epsilon)

    @property
    def error(self) -> float:
        """The expected absolute difference of the noises in one comparison."""
        return error_laws.sum_error(*self.scales)

    def interval(self, confidence: Number) -> int:
        """How far from the threshold an answer must be for its comparison to be right with this ``confidence``."""
        first, second = self.scales
        return error_laws.half_width(lambda width: error_laws.sum_tail(first, second, width), confidence)

    def check(self, answers: object) -> None:
        """Refuse anything but 64-bit integers."""
        integers(answers)

    def sample(self, answers: Integers, bits: Bits | None = None) -> Crossings:
        """Compare the answers in order. The noise of all of them is drawn whether it is used or not."""
        values, _ = integers(answers)
        level, per_answer = self.scales
        bar = self.threshold + int(discrete_laplace(level, 1, bits)[0])
        excess = [a + x - bar for a, x in zip(values.tolist(), _many(per_answer, len(values), bits), strict=True)]
        found = [i for i, e in enumerate(excess) if e >= 0][: self.positives]
        done = len(found) == self.positives
        return Crossings(
            positions=tuple(found),
            gaps=tuple(saturate(excess[i]) for i in found) if self.gap else None,
            answered=found[-1] + 1 if done else len(excess),
        )

    def stream(self, answers: Iterable[int], bits: Bits | None = None) -> Iterator[Answer]:
        """Compare answers one by one as they are asked for, so that each may depend on the outcomes before it.

        The whole run is one release and owes one event; a second call is a second release.
        It ends after ``positives`` answers above.

        >>> run = AboveThreshold(epsilon=1, threshold=1000).stream(iter([10, 5000, 20]))
        >>> [answer.above for answer in run]
        [False, True]
        """
        level, per_answer = self.scales
        bar = self.threshold + int(discrete_laplace(level, 1, bits)[0])
        found = 0
        for answer in answers:
            values, _ = integers(answer, length=1)
            excess = int(values[0]) + _many(per_answer, 1, bits)[0] - bar
            above = excess >= 0
            found += above
            yield Answer(above, saturate(excess) if above and self.gap else None)
            if found == self.positives:
                return


def _threshold(value: object) -> int:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not SMALLEST <= value <= LARGEST:
        raise InvalidParameterError(
            f"threshold must be a 64-bit integer, but it has type {type(value).__name__}"
            f"{' and does not fit' if isinstance(value, int) and not isinstance(value, bool) else ''}.",
            fix="pass an int; put fractional answers and their threshold on a Grid.",
        )
    return int(value)


def _many(scale: Number, size: int, bits: Bits | None) -> list[int]:
    drawn: list[int] = discrete_laplace(scale, size, bits).tolist()
    return drawn

"""The keys with the most rows, chosen without a count: the aggregate and its mechanism."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from defocus.answers import AnswerColumn, PreviewColumn
from defocus.mechanisms import PermuteAndFlip
from defocus.noise import Bits
from defocus.privacy.events import Event, Pure
from defocus.tables.aggregates import Measured
from defocus.tables.measurement import Measuring
from defocus.tables.noise import PersonWeight
from defocus.tables.splits import PRESENCE

__all__ = ["MostFrequent", "Picks", "segments"]


@final
@dataclass(frozen=True, slots=True)
class Picks:
    """The largest of several counts, one after the other: each by permute-and-flip, for its part of ``epsilon``.

    Guarantee:
        ``epsilon``-DP in all. ``sensitivity`` is what all counts that are chosen from move by, up and down together: of
        one set of counts the most that a person moves one of them by, of several sets what a person weighs in all,
        since the choices of one round are independent and their losses add up to at most that. Where a person is
        replaced, what one weighs may come and go, and ``replace`` halves the rate.
    Reference:
        McKenna, Sheldon (2020), Permute-and-flip: a new mechanism for differentially private selection.
    """

    epsilon: Fraction
    number: int
    sensitivity: int
    replace: bool

    @property
    def event(self) -> Event:
        """What all choices owe."""
        return self.number * Pure(self.epsilon / self.number)

    def one(self, candidates: int) -> PermuteAndFlip:
        """One choice among so many."""
        return PermuteAndFlip(
            epsilon=self.epsilon / self.number,
            candidates=candidates,
            sensitivity=self.sensitivity,
            monotone=not self.replace,
        )

    def ranked(self, counts: npt.NDArray[np.int64], bits: Bits) -> list[int]:
        """The places of the counts that were chosen, in the order in which they were."""
        left, chosen = list(range(len(counts))), list[int]()
        while left and len(chosen) < self.number:
            chosen.append(left.pop(self.one(len(left)).sample(counts[left], bits)))
        return chosen


@final
@dataclass(frozen=True, slots=True)
class MostFrequent(Measured):
    """Which keys have the most rows, in each group of the first ``outer`` of their columns: ranks from 1."""

    cell = "rank"
    number: int
    outer: int

    @property
    def words(self) -> str:
        """What is asked, in words."""
        return f"the {self.number} most frequent"

    def sensitivity(self, person: PersonWeight) -> None:
        """None: its mechanism takes what one person weighs."""

    def plan_words(self, mechanism: Any) -> str:
        """How it is released, in words."""
        return f"{mechanism.number} by permute-and-flip"

    def mechanism(self, planned: Any, person: PersonWeight, *, chooses: bool, search: Fraction) -> Picks:  # noqa: ARG002
        """Choices from all counts of a group."""
        most, bound = person.heaviest, person.bound
        if not self.outer and bound is not None and not bound.find and bound.per_group is not None:
            most = min(most, person.grid * bound.per_group * person.changes)
        return Picks(planned, self.number, most, person.replace)

    def statement(self, measuring: Measuring) -> exp.Select:
        """What the engine is asked for."""
        return measuring.cells_sql([PRESENCE])

    def foreseen(self, name: str, mechanism: Any, grid: int) -> list[PreviewColumn]:  # noqa: ARG002  # no number is shown
        """Nothing but how: no count is released."""
        return [PreviewColumn(name, self._how(mechanism))]

    def release(self, name: str, measuring: Measuring, mechanism: Any, bits: Bits) -> list[AnswerColumn]:
        """The rank of each key that was chosen, and no number for the others."""
        exact = measuring.exact(self.statement(measuring), 1)[:, 0]
        ranks = np.full(len(exact), np.nan)
        for members in segments(measuring.groups.keys.table, self.outer):
            chosen = members[mechanism.ranked(exact[members], bits)]
            ranks[chosen] = np.arange(1, len(chosen) + 1)
        unknown = np.full(len(exact), np.nan)
        return [AnswerColumn(name, ranks, unknown, unknown, unknown, integral=True, how=self._how(mechanism))]

    def _how(self, mechanism: Any) -> str:
        times = "" if mechanism.number == 1 else f", {mechanism.number} times,"
        return f"values are chosen by permute-and-flip{times} and no count is released; counts=True asks for counts"


def segments(keys: pa.Table, outer: int) -> list[npt.NDArray[np.int64]]:
    """The places of keys that agree in their first ``outer`` columns, in the order of the keys.

    >>> [part.tolist() for part in segments(pa.table({"ward": ["A", "B", "A"], "code": [1, 1, 2]}), 1)]
    [[0, 2], [1]]
    """
    places: dict[tuple[Any, ...], list[int]] = {}
    heads = zip(*(column.to_pylist() for column in keys.columns[:outer]), strict=True) if outer else [()] * len(keys)
    for place, head in enumerate(heads):
        places.setdefault(head, []).append(place)
    return [np.array(members, dtype=np.int64) for members in places.values()]

"""The number of different values, of which one person brings a few: how many, declared or found privately."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from defocus.answers import Effect, Rule
from defocus.engines.schema import Kind
from defocus.errors import InvalidParameterError, WrongKindError
from defocus.errors import count as counted
from defocus.mechanisms import PermuteAndFlip
from defocus.noise import Bits
from defocus.privacy.events import Event, compose
from defocus.privacy.sensitivity import Sensitivity
from defocus.tables.aggregates import Measured, Planned
from defocus.tables.contribution import FIND
from defocus.tables.measurement import Measuring
from defocus.tables.noise import CellNoise, PersonWeight
from defocus.tables.rows import Rows
from defocus.tables.splits import checked_text

__all__ = ["Distinct", "FoundValues", "count_distinct"]

_PERSON = 1 << 20
"""What all values of one person weigh together, where it is found how many they are."""
_NUMBERS = tuple(1 << j for j in range(13))
"""How many values of a person may count, so that each still weighs enough."""


@final
@dataclass(frozen=True, slots=True)
class FoundValues:
    r"""How many values one person brings, chosen for little noise and few missing values, and the noise after it.

    With at most k values of each person, drawn in one random order for all k, let :math:`D_k` be how many different
    ones there are in all groups. A person moves :math:`D_k` by at most k. A larger k misses fewer values and needs more
    noise, so :math:`B_k = D_k - ck` is to be large, where c is the noise of all groups for a k of one, or what the
    choice itself may err by for it, if that is more. The score of k is :math:`-\max_j (B_j - B_k)/(j + k)`.

    Guarantee:
        A person moves :math:`B_j - B_k` by at most j + k, so every score by at most one, and permute-and-flip chooses
        by them with pure privacy. Each value then weighs a k-th of what the noise is for: what is charged does not
        depend on k.

    Error:
        With the probability of ``choice.interval``, no score of the chosen k is worse than its width w, so for every j
        :math:`D_j - D_k \le c(j-k) + w(j+k)`: so many values are missed that j of each person would show.
    Reference:
        Raskhodnikova, Smith (2016), Lipschitz extensions for node-private graph statistics and the generalized
        exponential mechanism; Knop, Steinke (2023), Counting distinct elements under person-level differential privacy.
    """

    noise: CellNoise
    choice: PermuteAndFlip

    @classmethod
    def of(cls, noise: CellNoise, epsilon: Fraction, person: PersonWeight) -> "FoundValues":
        """The choice for ``epsilon``, and the noise."""
        moves = person.changes
        return cls(noise, PermuteAndFlip(epsilon=epsilon, candidates=len(_NUMBERS), sensitivity=moves))

    @property
    def event(self) -> Event:
        """What both owe."""
        return compose([self.choice.event, self.noise.event])

    @property
    def variance(self) -> float:
        """Of the noise of one group, in squared steps of the grid."""
        return self.noise.variance

    @property
    def width(self) -> float:
        """How many standard errors make a 95 % interval."""
        return self.noise.width

    @property
    def words(self) -> str:
        """The kind of noise."""
        return self.noise.words

    def chosen(self, new: npt.NDArray[np.int64], groups: int, bits: Bits) -> tuple[int, int]:
        """How many values, and how many twice as many would add at most, from how many each further number adds."""
        totals = [int(total) for total in new.cumsum()]
        sure = self.choice.interval(0.95)
        each = max(Fraction(self.noise.variance**0.5 / _PERSON) * groups, Fraction(sure))
        scores = [total - each * k for k, total in zip(_NUMBERS, totals, strict=True)]
        k = _NUMBERS[self.choice.sample([-loss for loss in _losses(scores)], bits)]
        return k, int(float(each) * k + sure * 3 * k)


def _losses(scores: Sequence[Fraction]) -> list[Fraction]:
    """How much better another number scores, relative to how far a person moves both; for each number."""
    pairs = list(zip(_NUMBERS, scores, strict=True))
    return [max((other - own) / (j + k) for j, other in pairs) for k, own in pairs]


@final
@dataclass(frozen=True, slots=True)
class Distinct(Measured):
    """The number of different values, of which one person brings at most ``at_most``; None where that is found."""

    counts = "values"
    in_blocks = True
    cell = "number of values"
    text: str
    at_most: int | None

    @property
    def words(self) -> str:
        """What is asked, in words."""
        return f"number of different {self.text}"

    @property
    def texts(self) -> tuple[str, ...]:
        """The column."""
        return (self.text,)

    @property
    def call(self) -> tuple[str, Mapping[str, Any]]:
        """The function that makes it."""
        return "count_distinct", {"column": self.text, "at_most": self.at_most}

    @property
    def finds(self) -> bool:
        """Whether it is found how many values a person brings."""
        return self.at_most is None

    def checked(self, rows: Rows) -> Self:
        """The same, refused if it does not fit the columns."""
        if rows.values(self.text).kind is Kind.NUMBER:
            raise WrongKindError(
                f"Different values of {self.text!r} cannot be counted: floats are never quite equal.",
                fix="derive a whole number or text from it first.",
            )
        return replace(self, at_most=1 if rows.unit is None or rows.single else self.at_most)

    def rule(self, unit: str | None) -> str | None:
        """What is bounded or dropped, in words."""
        if unit is None:
            return None
        if self.at_most is None:
            found = f"one {unit} brings a number of different values of {self.text} that is found privately"
            return Rule(f"{found}, chosen at random; errors are those of one value until then", Effect.BOUND)
        most = f"at most {self.at_most} different {'value' if self.at_most == 1 else 'values'} of {self.text}"
        return Rule(f"one {unit} brings {most}, chosen at random, so rare values may be missing", Effect.BOUND)

    def sensitivity(self, person: PersonWeight) -> Sensitivity:
        """How far one person moves all cells together."""
        return person.moved(Sensitivity(_PERSON if self.at_most is None else self.at_most))

    def grid(self, rows: int, people: int) -> int:  # noqa: ARG002  # whatever these weigh
        """What one value weighs; yet to be found, what it would if a person brought one."""
        return _PERSON if self.at_most is None else 1

    def mechanism(self, planned: Any, person: PersonWeight, *, chooses: bool, search: Fraction) -> Planned:  # noqa: ARG002
        """The planned noise; what is to be found is chosen first."""
        noise: CellNoise = planned
        return FoundValues.of(noise, search, person) if self.finds else noise

    def plan_words(self, mechanism: Any) -> str:
        """How it is released, in words."""
        search = ", for as many values of one person as permute-and-flip chooses" if self.finds else ""
        return f"{mechanism.words}{search}"

    def settled(
        self, measuring: Measuring, mechanism: Any, bits: Bits
    ) -> tuple["Distinct", Measuring, Any, tuple[str, ...]]:
        """The same with the number that is found, by which what one value weighs is divided."""
        search = self.searching(measuring)
        if search is None:
            return self, measuring, mechanism, ()
        new = measuring.exact(search, len(_NUMBERS)).sum(axis=0)
        k, more = mechanism.chosen(new, measuring.groups.keys.number, bits)
        unit = measuring.groups.rows.unit
        said = f"one {unit} brings at most {k} different value{'' if k == 1 else 's'} of {self.text}"
        missed = f"values that few bring may be missing, and {2 * k} of each would show at most {more} more"
        rule = Rule(f"{said}, a number that was found privately, chosen at random; {missed}", Effect.OPEN)
        return replace(self, at_most=k), replace(measuring, grid=_PERSON // k), mechanism.noise, (rule,)

    def searching(self, measuring: Measuring) -> exp.Select | None:
        """How many values there are for each number that may be found."""
        return measuring.new_values_sql(self.text, _NUMBERS) if self.finds else None

    def statement(self, measuring: Measuring) -> exp.Select:
        """What the engine is asked for."""
        return measuring.distinct_sql(self.text, self.at_most or 1, measuring.grid)


def count_distinct(column: str, *, at_most: int | str | None = None) -> Distinct:
    """The number of different values of ``column``, where one person brings at most ``at_most`` of them.

    How many is found privately unless it is given, for a third of what it costs.

    >>> count_distinct("city", at_most=2)
    Distinct(text='city', at_most=2)
    """
    given: Any = None if isinstance(at_most, str) and at_most == FIND else at_most
    if isinstance(given, str):
        raise InvalidParameterError(
            "at_most is neither a number nor to be found.", fix='pass at_most=2, or at_most="find".'
        )
    return Distinct(checked_text(column), None if given is None else counted("at_most", given))

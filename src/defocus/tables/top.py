"""The most frequent values of a column, chosen or read from noisy counts, whichever errs less."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from defocus.answers import PreviewColumn, Released
from defocus.answers.answer import PICKED
from defocus.answers.columns import brief, checked_names
from defocus.errors import whole
from defocus.mechanisms import PermuteAndFlip
from defocus.tables.aggregates import Aggregate
from defocus.tables.contribution import Bound
from defocus.tables.most_frequent import MostFrequent, Picks, segments
from defocus.tables.planner import Plan
from defocus.tables.power import Law, least
from defocus.tables.reading import Reading
from defocus.tables.statistics import count

__all__ = ["Top", "choice_errs_less", "most_frequent"]

_BEYOND = 0.05


def most_frequent(
    by: tuple[str, ...], candidates: int | None, number: object, bound: Bound | None, *, counts: bool
) -> tuple[Mapping[str, Aggregate], "Top"]:
    """What to measure, and how to read it, for the most frequent values of the last column of ``by``.

    ``candidates`` is how many values there are in each group, None where they are to be found.
    """
    wanted = whole("number", number, at_least=1)
    outer = len(by) - 1
    checked_names([*by[:-1], "rank", by[-1]], ["count"])
    chosen = candidates is not None and not counts and choice_errs_less(candidates, wanted, bound, grouped=outer > 0)
    measured: Aggregate = MostFrequent(wanted, outer) if chosen else count()
    return {"count": measured}, Top(by, wanted, candidates)


def choice_errs_less(candidates: int, number: int, bound: Bound | None, *, grouped: bool) -> bool:
    """Whether choosing one value after the other errs less than noise on all counts, whatever the price.

    What is compared is by how many rows a value that is shown may be rarer than one that is not, with 95 % probability.
    A choice feels what one person moves one count by, and each of several has its part of the budget; noise feels what
    a person moves all counts by, once.

    >>> choice_errs_less(20, 1, Bound(rows=1), grouped=False), choice_errs_less(20, 3, Bound(rows=1), grouped=False)
    (True, False)
    >>> choice_errs_less(20, 3, Bound(rows=10, per_group=1), grouped=False)
    True
    """
    if number >= candidates:
        return False
    most = 1 if bound is None else bound.total
    one = most if grouped or bound is None or bound.per_group is None else min(bound.per_group, most)
    return _chosen(Picks(Fraction(1), number, one, replace=False), candidates) < _counted(
        Law(0.0, (most, most)), candidates, number
    )


@final
@dataclass(frozen=True, slots=True)
class Top(Reading):
    """The ``number`` most frequent values of the last column, in each group of the columns before it."""

    by: tuple[str, ...]
    number: int
    candidates: int | None

    @property
    def words(self) -> str:
        """What is asked, in words."""
        many = "" if self.number == 1 else f"{self.number} "
        groups = f", by {', '.join(self.by[:-1])}" if self.by[:-1] else ""
        return f"{many}most frequent {self.by[-1]}{groups}"

    def read(self, answer: Released, planned: Plan) -> Released:
        """The values that are most frequent, with their ranks, and their noisy counts where these were released."""
        (found,), picks = answer.columns, _picks(planned)
        table = pa.table(dict(answer.keys))
        order = -found.values if picks is None else found.values
        places, ranks = _first(segments(table, len(self.by) - 1), order, self.number)
        shown = found.taken(np.array(places, np.int64))
        processing: tuple[str, ...] = (f"the {self.number} with the largest noisy count kept, in that order; {PICKED}",)
        if picks is not None:
            shown, processing = replace(shown, values=np.full(len(places), np.nan)), ()
        keys = {name: values.take(pa.array(places, pa.int64())) for name, values in answer.keys.items()}
        value = keys.pop(self.by[-1])
        keys |= {"rank": pa.array(ranks, pa.int64()), self.by[-1]: value}
        return replace(
            answer,
            keys=keys,
            columns=(shown,),
            processing=processing,
            notes=(*answer.notes, *self._said(planned)),
            things=("value", "values"),
            threshold=answer.threshold if picks is None else None,
        )

    def foreseen(self, columns: Sequence[PreviewColumn], planned: Plan) -> tuple[list[PreviewColumn], tuple[str, ...]]:
        """The columns as they are, and how far off the choice may be."""
        return list(columns), self._said(planned)

    def _said(self, planned: Plan) -> tuple[str, ...]:
        if self.candidates is None or planned.contributions is not None:
            return ()
        picks = _picks(planned)
        if picks is not None:
            rows = _chosen(picks, self.candidates) / planned.grid
        else:
            rows = _counted(planned.splits[0].law(np.array([1.0, -1.0]), planned.grid), self.candidates, self.number)
        each = " of a group" if self.by[:-1] else ""
        left_out = f"no value{each} that is left out has more than {brief(rows)} rows more than one"
        return (f"with 95 % probability, {left_out} that is shown in its place",)


def _picks(planned: Plan) -> Picks | None:
    """How values are chosen; None where they are counted."""
    how = planned.others.get("count")
    return how if isinstance(how, Picks) else None


def _first(
    groups: Sequence[npt.NDArray[np.int64]], order: npt.NDArray[np.float64], number: int
) -> tuple[list[int], list[int]]:
    """The places of the first of each group in this order, and their ranks; what has no order is left out."""
    places: list[int] = []
    ranks: list[int] = []
    for members in groups:
        known = members[~np.isnan(order[members])]
        best = known[np.argsort(order[known], kind="stable")][:number]
        places += best.tolist()
        ranks += range(1, len(best) + 1)
    return places, ranks


def _chosen(picks: Picks, candidates: int) -> float:
    """What one choice after the other loses at most with 95 % probability; the first has the most candidates."""
    one = picks.one(candidates)
    assert isinstance(one, PermuteAndFlip)  # noqa: S101  # what the interval is of
    return float(one.interval(1 - _BEYOND / picks.number))


def _counted(between: Law, candidates: int, number: int) -> float:
    """By how much no left-out count exceeds a shown one with 95 % probability: a union over all pairs of both."""
    pairs = number * (candidates - number)
    return 0.0 if pairs <= 0 else least(lambda t: pairs * between.tail(t) <= _BEYOND, 0.0, 2 * between.deviation)

r"""What anybody in the data can have lost, where the data has parts.

A release from some parts costs the people in them and nobody else, so a ledger keeps one sum for what everybody was
charged, and one for each part. What a person in part p was charged is their sum :math:`c + s_p`.

Guarantee:
    The budget holds for everybody, against an analyst who chooses every release, part and parameter after seeing all
    answers before. Proof. Take neighbouring data D and D′ = D with the rows of one unit more, all of them in part p
    (one row is in one part; for people this is declared). Which part that is, is a fact about the data, and no answer
    changes it. Consider the releases in the order of the ledger. One that names parts without p reads only rows that D
    and D′ have in common, so given the same past its answer has the same law under both: the analyst could have
    drawn it alone, from a copy of the other parts. What is left is an adaptive run of the releases that name p or
    nobody, whose costs add up to :math:`c + s_p`, and the analyst's own randomness. Such a release was admitted only
    if the filter of the budget admitted it after a run of that sum: a release that names p was compared with
    :math:`c + s_p` itself, and one for everybody with :math:`c + \max_q s_q`, which is at least as much in every
    component, and a filter that admits a run admits every run that costs no more in any component. So the run of p
    is one that the filter guards, whose guarantee (:mod:`defocus.privacy.filters`) holds against every such
    analyst. A unit whose rows are in no part pays c alone.
Assumes:
    Neighbours differ by one unit added or removed. A replaced unit could leave p for q, and pay :math:`s_p + s_q`;
    ledgers for those have no parts (:meth:`defocus.ledger.parts.Parts.check`).

Error:
    A part's own release is decided exactly. A release for everybody is compared with the largest of each component
    over all parts, which need not come from one part: never too little, and the same where parts are asked alike.
Reference:
    McSherry (2009), Theorem 4 (parallel composition); Rogers, Roth, Ullman, Vadhan (2016) for filters; Feldman and
    Zrnic (2021) for filters on each individual's own sum.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from defocus.ledger.guards import Amounts, Guard

__all__ = ["Tally"]


@final
@dataclass(frozen=True, slots=True)
class Tally:
    """The sums after an entry: what everybody was charged, the most that a part was, and how many parts were charged.

    >>> Tally((0.0, 0.5), (0.0, 0.25), 3).parts
    3
    """

    common: Amounts
    heaviest: Amounts
    """The largest of each component over all parts."""
    parts: int

    @classmethod
    def start(cls, guard: Guard) -> "Tally":
        """Nothing was charged."""
        return cls(guard.start, guard.start, 0)

    def most(self, guard: Guard) -> Amounts:
        """What nobody in the data has been charged more than."""
        return guard.add(self.common, self.heaviest)

    def sums(self, guard: Guard, own: Mapping[str, Amounts | None]) -> dict[str, Amounts]:
        """What the people were charged whom a release from these parts is about, by part.

        ``own`` has the sum of each part that is named, None where it was never charged; if none is named, everybody
        is meant, under the empty label.
        """
        if not own:
            return {"": self.most(guard)}
        return {label: guard.add(self.common, sum_ or guard.start) for label, sum_ in own.items()}

    def charged(
        self, guard: Guard, own: Mapping[str, Amounts | None], cost: Amounts
    ) -> tuple["Tally", dict[str, Amounts]]:
        """The tally after a charge, and the new sum of each part that it names."""
        if not own:
            return Tally(guard.add(self.common, cost), self.heaviest, self.parts), {}
        grown = {label: guard.add(sum_ or guard.start, cost) for label, sum_ in own.items()}
        heaviest = tuple(map(max, zip(self.heaviest, *grown.values(), strict=True)))
        new = sum(sum_ is None for sum_ in own.values())
        return Tally(self.common, heaviest, self.parts + new), grown

    def words(self, guard: Guard) -> str:
        """The tally as people read it."""
        if not self.parts:
            return f"no part was charged yet; what everybody was charged is {_share(guard, self.common)} of the budget"
        number = "1 part was" if self.parts == 1 else f"{self.parts} parts were"
        return (
            f"{number} charged, the heaviest {_share(guard, self.heaviest)} of the budget, beside"
            f" {_share(guard, self.common)} that everybody was charged"
        )


def _share(guard: Guard, amounts: Amounts) -> str:
    used = guard.used(amounts)
    return "more than can be said" if used is None else f"{100 * used:.1f} %"

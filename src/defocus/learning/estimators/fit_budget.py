"""What a fit may cost, how that is divided between sums, and the charge that comes before anything random."""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, final

from defocus.errors import InvalidParameterError, Number, QuestionFailedError, UnfitDataError
from defocus.ledger import Ledger, Receipt
from defocus.mechanisms import Gaussian
from defocus.mechanisms.parameters import checked_budget
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import calibrate
from defocus.privacy.events import NOTHING, Event
from defocus.privacy.units import Adjacency, Unit, rows
from defocus.release.charge import charged
from defocus.release.question import noted, settled, silence

__all__ = ["DEFAULT", "FitBudget", "Plan", "Sum", "fit_budget", "planned"]

DEFAULT = Budget(1, 1e-6)
"""What a fit costs where nobody says."""

_Made = TypeVar("_Made")


@final
@dataclass(frozen=True, slots=True)
class FitBudget:
    """What one fit may cost, who is protected, and the ledger that is charged, if there is one: open, or its place."""

    budget: Budget
    ledger: Ledger | str | None
    unit: Unit

    @property
    def replace(self) -> bool:
        """Whether neighbours replace a row; the number of rows is public then."""
        return self.unit.adjacency is Adjacency.REPLACE

    @property
    def moves(self) -> int:
        """How many rows neighbours differ in: one that comes or goes, or one that goes and one that comes."""
        return 2 if self.replace else 1

    def least(self, family: Callable[[float], Event]) -> float:
        """The least x whose event, of Gaussian noise, the budget covers."""
        if self.budget.epsilon is not None and not self.budget.delta:
            raise InvalidParameterError(
                f"Estimators add Gaussian noise, and {self.budget} has no delta.",
                fix="add one well below one over the number of rows, for example Budget(1, 1e-6).",
            )
        return calibrate(family, self.budget, adjacency=self.unit.adjacency)

    def spend(
        self,
        event: Event,
        compute: Callable[[], _Made],
        *,
        purpose: str,
        who: str | None,
        written: Callable[[_Made], Any],
    ) -> tuple[_Made, Receipt | None]:
        """What ``compute`` makes once ``event`` is charged; the ledger notes a digest of what is ``written`` of it.

        Guarantee:
            Nothing is computed from the data before the charge is on disk; what fails afterwards keeps the charge,
            and its text is not repeated, with or without a ledger. Without one nothing adds up over fits: who fits
            twice spends twice.
        """
        if self.ledger is None:
            return _alone(compute), None
        with _opened(self.ledger) as ledger:
            if ledger.unit != self.unit:
                raise InvalidParameterError(
                    "Another ledger was put in the place of the one that the fit was planned for; nothing was charged.",
                    fix="fit again, and leave the ledger where it is meanwhile.",
                )
            receipt = charged(event, self.budget, ledger, lambda _delta: event, purpose=purpose, who=who, request=None)

            def failed(why: str) -> QuestionFailedError:
                return QuestionFailedError(charge=receipt.sequence, why=why)

            made = settled(lambda _receipt: compute(), receipt, failed=failed, what="fit")
            return noted(made, written(made), receipt, ledger=ledger, description=purpose, keep=False), receipt


def _opened(ledger: Ledger | str) -> AbstractContextManager[Ledger]:
    """The ledger: one that is open stays so, and one that is named is closed again."""
    return nullcontext(ledger) if isinstance(ledger, Ledger) else Ledger.open(ledger)


def _alone(compute: Callable[[], _Made]) -> _Made:
    """What is computed where nothing is charged; of a failure no more is told than that, as with a ledger."""
    with suppress(Exception), silence():
        return compute()
    raise UnfitDataError(
        "The fit failed. The reason is not shown, since it may depend on private values.",
        fix="try it on made-up data of the same kind, and with more memory.",
    )


def fit_budget(budget: object, ledger: object) -> FitBudget:
    """The purse of an estimator with these two parameters. A ledger that is named is opened, and never made."""
    if ledger is not None and not isinstance(ledger, Ledger | str | Path):
        raise InvalidParameterError(
            f"ledger must be a Ledger or the place of one, but it is {type(ledger).__name__}.",
            fix="open one with dp.Ledger.open(path, budget=…, unit=dp.rows(), dataset=…), or leave ledger= out.",
        )
    book = str(ledger) if isinstance(ledger, Path) else ledger
    unit = rows()
    if book is not None:
        with _opened(book) as found:
            unit = found.unit
    if unit.kind != "rows":
        raise InvalidParameterError(
            f"An estimator sees rows, but this ledger protects {unit}.",
            fix="make one row of everything about one person, and open the ledger with unit=dp.rows().",
        )
    return FitBudget(DEFAULT if budget is None else checked_budget(budget), book, unit)


@final
@dataclass(frozen=True, slots=True)
class Sum:
    """A vector of integer sums that is released ``times`` times over, for a ``share`` of the whole budget.

    ``sensitivity`` bounds the L2 norm of what one row adds, in steps of its grid.
    """

    sensitivity: Number
    dimension: int
    share: float = 1.0
    times: int = 1


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """The noise of each sum, and what all of them owe together."""

    noises: tuple[Gaussian, ...]
    event: Event


def planned(fit_budget: FitBudget, sums: Sequence[Sum], *, also: Event = NOTHING) -> Plan:
    r"""The least noise for ``sums`` whose event, with ``also``, the budget covers.

    Each sum gets discrete Gaussian noise of :math:`\sigma_k = x \Delta_k \sqrt{m_k/s_k}` for its sensitivity, number
    of times and share: of :math:`\rho = \sum_k m_k \Delta_k^2/2\sigma_k^2` it then owes the share :math:`s_k`. Where a
    row is replaced, one goes and one comes, and :math:`\Delta_k` is doubled.

    >>> from defocus.privacy.units import rows
    >>> plan = planned(FitBudget(Budget(1, 1e-6), None, rows()), [Sum(1024, 3)])
    >>> round(float(plan.noises[0].sigma) / 1024, 2)
    4.22
    """
    weights = [math.sqrt(each.times / each.share) for each in sums]

    def noises(x: float) -> tuple[Gaussian, ...]:
        return tuple(
            Gaussian(
                sigma=x * weight * float(each.sensitivity) * fit_budget.moves,
                sensitivity=each.sensitivity * fit_budget.moves,
                dimension=each.dimension,
            )
            for each, weight in zip(sums, weights, strict=True)
        )

    def event(x: float) -> Event:
        return sum((each.times * noise.event for each, noise in zip(sums, noises(x), strict=True)), also)

    least = fit_budget.least(event)
    return Plan(noises(least), event(least))

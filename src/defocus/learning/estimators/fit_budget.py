"""What a fit may cost, how that is divided between sums, and the charge that comes before anything random."""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, final

import numpy as np

from defocus.errors import InvalidParameterError, Number
from defocus.learning.ledgers import ledger_of, place_of, price
from defocus.ledger import Ledger, Receipt
from defocus.ledger.creation import check_kinds, exists
from defocus.mechanisms import Gaussian, Laplace
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import calibrate
from defocus.privacy.events import NOTHING, Event
from defocus.privacy.units import Unit, rows
from defocus.release.paid_computation import perform

__all__ = ["FitBudget", "Noise", "Plan", "Sum", "deviation", "fit_budget", "packed", "planned", "sized", "unpacked"]

_Made = TypeVar("_Made")


@final
@dataclass(frozen=True, slots=True)
class FitBudget:
    """What one fit may cost, the ledger that is charged (open, or its place), and who is protected."""

    price: Budget
    ledger: Ledger | str
    unit: Unit
    budget: Budget | None = None
    """The total of the ledger, where it is to be made."""

    @property
    def replace(self) -> bool:
        """Whether neighbours replace a row; the number of rows is public then."""
        return self.unit.number_is_public

    @property
    def moves(self) -> int:
        """How many rows neighbours differ in: one that comes or goes, one of each, or all of a person."""
        return self.unit.changes

    @property
    def pure(self) -> bool:
        """Whether the price is an epsilon without a delta: noise is Laplace then, and else Gaussian."""
        return self.price.epsilon is not None and not self.price.delta

    def least(self, family: Callable[[float], Event]) -> float:
        """The least x whose event the price covers."""
        return calibrate(family, self.price, adjacency=self.unit.adjacency)

    def spend(
        self,
        event: Event,
        compute: Callable[[], _Made],
        *,
        purpose: str,
        who: str | None,
        written: Callable[[_Made], Any],
        read: Callable[[Any], _Made],
        request: str | None,
        facts: str,
    ) -> tuple[_Made, Receipt]:
        """What ``compute`` makes once ``event`` is charged; the ledger notes a digest of what is ``written`` of it.

        Under the name of a ``request`` it keeps all of it, to be ``read`` again free of charge.

        Guarantee:
            Nothing is computed from the data before the charge is on disk; what fails afterwards keeps the charge,
            and its text is not repeated.
        """
        with _opened(self.ledger, self.unit, self.budget) as ledger:
            if ledger.unit != self.unit:
                raise InvalidParameterError(
                    "Another ledger was put in the place of the one that the fit was planned for; nothing was charged.",
                    fix="fit again, and leave the ledger where it is meanwhile.",
                )
            receipts: list[Receipt] = []

            def paid(receipt: Receipt) -> _Made:
                receipts.append(receipt)
                return compute()

            def recalled(value: Any, receipt: Receipt) -> _Made:
                receipts.append(receipt)
                return read(value)

            result = perform(
                event,
                paid,
                ledger=ledger,
                purpose=purpose,
                description=purpose,
                written=written,
                read=recalled,
                facts=facts,
                who=who,
                request=request,
                asked=self.price,
                what="fit",
            )
            return result, receipts[0]


def packed(made: Any) -> Any:
    """What a fit released, with JSON types only: arrays with their types, and numbers.

    >>> unpacked(packed((np.array(["ill", "well"]), 2.5)))
    (array(['ill', 'well'], dtype='<U4'), 2.5)
    """
    if isinstance(made, np.ndarray):
        return {"type": made.dtype.str, "values": made.tolist()}
    return [packed(each) for each in made] if isinstance(made, tuple) else float(made)


def unpacked(value: Any) -> Any:
    """The same again."""
    if isinstance(value, dict):
        return np.array(value["values"], dtype=value["type"])
    return tuple(map(unpacked, value)) if isinstance(value, list) else value


def _opened(ledger: Ledger | str, unit: Unit | None, budget: Budget | None) -> AbstractContextManager[Ledger]:
    """The ledger: one that is open stays so, and one that is named is closed again."""
    book = ledger_of(ledger, unit=unit, budget=budget, new=budget)
    return nullcontext(book) if isinstance(ledger, Ledger) else book


def fit_budget(
    *, epsilon: Any, delta: Any, rho: Any, ledger: Any, unit: Any, budget: Any, persons: bool = False
) -> FitBudget:
    """What a fit may cost by these parameters of an estimator, and the ledger that it is charged to.

    With ``persons``, each row is somebody's, and the ledger protects these persons; without, it protects rows. A ledger
    that is named and does not exist is made when the fit is charged, if its total ``budget`` is given.
    """
    check_kinds(budget=budget, unit=unit)
    place = place_of(ledger, None, unit)
    book = str(place) if isinstance(place, Path) else place
    protected, total = rows() if unit is None else unit, budget
    if budget is None or exists(book):
        with _opened(book, unit, budget) as opened:
            protected, total = opened.unit, opened.budget
    if persons and protected.kind != "user":
        raise InvalidParameterError(
            f"users= says whose each row is, but the unit is {protected}.",
            fix='protect persons with unit=dp.user("person") and a ledger that does, or leave users= out.',
        )
    if not persons and protected.kind != "rows":
        raise InvalidParameterError(
            f"An estimator sees rows, but the unit is {protected}.",
            fix="say whose each row is: fit(X, y, users=…); or make one row of everything about one person, and say so"
            ' to the ledger of the person: ledger=ledger.data("people", unit=dp.rows(per_person=1)).',
        )
    epsilon = 1 if epsilon is None and rho is None else epsilon
    return FitBudget(price(epsilon=epsilon, delta=delta, rho=rho, total=total), book, protected, budget)


@final
@dataclass(frozen=True, slots=True)
class Sum:
    """A vector of integer sums that is released ``times`` times over, for a ``share`` of the whole price.

    ``sensitivity`` bounds the L2 norm of what one row adds, or one person (:class:`.grid.Persons`), in steps of its
    grid, and ``l1_bound`` its L1 norm, where that is less than any vector of so many whole numbers may have.
    """

    sensitivity: Number
    dimension: int
    share: float = 1.0
    times: int = 1
    l1_bound: int | None = None

    @property
    def l1_sensitivity(self) -> int:
        r"""A bound on the L1 norm: :math:`\|v\|_1 \le \sqrt d\,\|v\|_2`, and both sides of that are whole numbers.

        >>> Sum(5, 2).l1_sensitivity, Sum(5, 2, l1_bound=6).l1_sensitivity
        (7, 6)
        """
        most = math.isqrt(math.floor(self.dimension * Fraction(self.sensitivity) ** 2))
        return most if self.l1_bound is None else min(most, self.l1_bound)


Noise: TypeAlias = Gaussian | Laplace
"""What a sum gets: discrete Gaussian noise, and discrete Laplace noise where the price has no delta."""


def deviation(noise: Noise) -> float:
    """The standard deviation of one entry."""
    return float(noise.sigma) if isinstance(noise, Gaussian) else math.sqrt(noise.variance)


def sized(noise: Noise, dimension: int) -> Noise:
    """The same noise for a vector of this length, which is at most the one that was planned for."""
    return replace(noise, dimension=dimension) if isinstance(noise, Gaussian) else noise


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """The noise of each sum, what all of them owe together, and how the fit is made private, in words."""

    noises: tuple[Noise, ...]
    event: Event
    method: str


def planned(fit_budget: FitBudget, sums: Sequence[Sum], *, also: Event = NOTHING) -> Plan:
    r"""The least noise for ``sums`` whose event, with ``also``, the price covers.

    Each sum gets discrete Gaussian noise of :math:`\sigma_k = x \Delta_k \sqrt{m_k/s_k}` for its sensitivity, number
    of times and share: of :math:`\rho = \sum_k m_k \Delta_k^2/2\sigma_k^2` it then owes the share :math:`s_k`. Where a
    row is replaced, one goes and one comes, and :math:`\Delta_k` is doubled; where a person owns m rows, it is m-fold.

    For a price without delta, noise is discrete Laplace of :math:`b_k = x \Delta_k m_k/e_k` for the L1 sensitivity: of
    epsilon, which adds up, sum k owes the share :math:`e_k`. Shares that make :math:`\sum_k c_k m_k/s_k` least for
    Gaussian noise are :math:`s_k \propto \sqrt{c_k m_k}`; for Laplace noise, :math:`\sum_k c_k m_k^2/e_k^2` is then
    least for :math:`e_k \propto (m_k s_k^2)^{1/3}`.

    >>> from defocus.privacy.units import rows
    >>> plan = planned(FitBudget(Budget(1, 1e-6), "people.ledger", rows()), [Sum(1024, 3)])
    >>> round(float(plan.noises[0].sigma) / 1024, 2)
    4.22
    >>> plan = planned(FitBudget(Budget(1), "people.ledger", rows()), [Sum(1024, 3)])
    >>> round(plan.noises[0].scale / 1024, 2), plan.method
    (1.73, 'discrete Laplace noise on whole sums')
    """
    weights = [math.sqrt(part.times / part.share) for part in sums]
    parts = [math.cbrt(part.times * part.share**2) / part.times for part in sums]

    def noises(x: float) -> tuple[Noise, ...]:
        if fit_budget.pure:
            bounds = [each.l1_sensitivity * fit_budget.moves for each in sums]
            return tuple(
                Laplace(scale=x * bound / part, sensitivity=bound) for bound, part in zip(bounds, parts, strict=True)
            )
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
    law = "Laplace" if fit_budget.pure else "Gaussian"
    return Plan(noises(least), event(least), f"discrete {law} noise on whole sums")

"""A view of private rows that is measured: its columns, what one person weighs in it, and what its stages owe."""

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, NotDeclaredError
from defocus.mechanisms import PartitionSelection
from defocus.noise import Bits
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import calibrate
from defocus.privacy.events import Event
from defocus.privacy.units import Adjacency, Unit
from defocus.synthesis.counting import counter_of
from defocus.synthesis.domains import Domain
from defocus.synthesis.generator import seeded
from defocus.synthesis.measurement import CELLS, COLUMNS, STEPS, Fitted, Setup, Spending, events, fitted
from defocus.synthesis.targets import Noisy
from defocus.tables import Table
from defocus.tables.contribution import DEFAULT_ROWS, Bound
from defocus.tables.keys import EVERYTHING
from defocus.tables.measurement import Measuring
from defocus.tables.rows import Rows
from defocus.tables.weights import Groups, RowSampler

__all__ = ["Plan", "View", "bound_of", "planned"]

_GRID = 1 << 10
"""What a full row weighs, where people may have several."""
_FINDING = 0.1
"""Which part of epsilon finds the values of columns that are not declared; half of delta does."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The noise of all stages of a view, and what finds values that are not declared."""

    sigma: float
    selection: PartitionSelection | None


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class View:
    """Rows and their columns, of which all stages of one model are counted.

    Guarantee:
        A person is in at most ``weight / grid`` rows: one where nobody has several, those of the bound, or those that
        the unit declares; twice as many where a person is replaced. The stages owe what
        :func:`~defocus.synthesis.measurement.events` says about that weight, whatever is counted.
    """

    rows: Rows
    unit: Unit
    bound: Bound | None
    domains: tuple[Domain, ...]
    spending: Spending
    allowed: Mapping[tuple[int, ...], NDArray[np.bool_]] = field(default_factory=dict)
    records: int | None = None
    focus: tuple[tuple[int, ...], ...] = ()
    target: int | None = None
    """The column that is to be predicted."""
    released: Mapping[tuple[int, ...], Sequence[Noisy]] = field(default_factory=dict)

    @property
    def grid(self) -> int:
        """What a full row weighs."""
        return 1 if self.bound is None or self.rows.single else _GRID

    @property
    def together(self) -> int:
        """How many full rows one person has at most."""
        return (self.unit.per_person or 1) if self.bound is None else self.bound.total

    @property
    def weight(self) -> int:
        """What one person weighs at most."""
        weight = self.grid * self.together
        return 2 * weight if self.unit.adjacency is Adjacency.REPLACE else weight

    def selection(self, asked: Budget, part: float) -> PartitionSelection | None:
        """What finds values, where some are to be found, for this part of the price."""
        found = sum(domain.found for domain in self.domains)
        if not found:
            return None
        if self.bound is None and self.unit.per_person not in {None, 1}:
            raise NotDeclaredError(
                f"Values are found by counting persons, and these rows do not say whose they are: they protect"
                f" {self.unit}.",
                fix='declare the values; or name the column of the person: unit=dp.user("…").',
            )
        return PartitionSelection(
            epsilon=_FINDING * part * float(asked.epsilon or 0) / found,
            delta=0.5 * part * float(asked.delta) / found,
            groups=1 if self.bound is None else self.bound.keys_of,
            replace=self.unit.adjacency is Adjacency.REPLACE,
        )

    def owed(self, ratio: float, selection: PartitionSelection | None) -> Event:
        """What all stages owe, with noise of so many times what a person moves."""
        found = () if selection is None else (sum(domain.found for domain in self.domains) * selection.event,)
        every: tuple[Event, ...] = (*found, *events(self.spending, ratio * STEPS * self.weight, self.weight))
        return reduce(operator.add, every)

    def fitted(self, plan: Plan, bits: Bits) -> tuple[tuple[Domain, ...], Fitted]:
        """Count, add noise and fit; to be called after the charge only."""
        chance = RowSampler.drawn(bits)
        with self.rows.engine.snapshot():
            domains = self._found(plan, chance, bits)
            counter = counter_of(self.rows, domains, bound=self.bound, grid=self.grid, chance=chance)
            setup = Setup(
                sizes=tuple(domain.size for domain in domains),
                ordered=tuple(domain.ordered for domain in domains),
                missing=(True,) * len(domains),
                spikes=tuple(domain.spikes for domain in domains),
                sigma=plan.sigma,
                weight=self.weight,
                grid=self.grid,
                spending=self.spending,
                allowed=self.allowed,
                records=self.records,
                focus=self.focus,
                target=self.target,
                released=self.released,
            )
            done = fitted(setup, counter.counts, bits, seeded(bits), by_class=counter.by_class)
            if done.prediction is not None and self.target is not None:
                done = replace(done, prediction=replace(done.prediction, column=domains[self.target].name))
            return domains, done

    def _found(self, plan: Plan, chance: RowSampler, bits: Bits) -> tuple[Domain, ...]:
        """The domains with the values that enough people have, where they are to be found.

        No more of them are kept than :data:`CELLS` leaves room for, since the charged event counts on that.
        """
        declared = sum(domain.size for domain in self.domains)
        most = (CELLS - declared) // max(1, sum(domain.found for domain in self.domains))
        domains = []
        for domain in self.domains:
            if domain.found and plan.selection is not None:
                groups = Groups(self.rows, (domain.name,), EVERYTHING, None, self.bound)
                table = Measuring(groups, self.grid, chance.of(domain.name)).found_keys(plan.selection, bits)
                values = sorted(str(value) for value in table["k0"].to_pylist() if value is not None)
                domains.append(replace(domain, values=tuple(values[:most])))
            else:
                domains.append(domain)
        return tuple(domains)


def planned(views: Sequence[View], parts: Sequence[float], asked: Budget) -> tuple[list[Plan], Event]:
    """The noise of each view, so that all of them together owe what was asked; each gets its part of it."""
    if not asked.delta or asked.epsilon is None:
        raise NotDeclaredError(
            "Synthetic data need a delta, since all noise is Gaussian.",
            fix="add one, for example delta=1e-6, below one over the number of people.",
        )
    for view in views:
        codes = sum(domain.size for domain in view.domains)
        if len(view.domains) > COLUMNS or codes > CELLS:
            raise InvalidParameterError(
                f"{len(view.domains)} columns of together {codes} codes are too many to be synthesised at once.",
                fix=f"name at most {COLUMNS} columns with only=[…], of together at most {CELLS} codes.",
            )
    selections = [view.selection(asked, part) for view, part in zip(views, parts, strict=True)]
    scales = [1 / math.sqrt(part) for part in parts]

    def stages(ratio: float) -> Event:
        owed = (one.owed(ratio * scale, found) for one, scale, found in zip(views, scales, selections, strict=True))
        return reduce(operator.add, owed)

    ratio = calibrate(stages, Budget(asked.epsilon, asked.delta), method="pld")
    plans = [
        Plan(sigma=ratio * scale * STEPS * view.weight, selection=found)
        for view, scale, found in zip(views, scales, selections, strict=True)
    ]
    return plans, stages(ratio)


def bound_of(table: Table) -> Bound | None:
    """What one person may contribute; nothing where each row is a unit."""
    if table.rows.single:
        return Bound(rows=1)
    if table.rows.unit is None:
        return None
    bound = table.contribution
    if bound is None:
        return Bound(rows=DEFAULT_ROWS)
    if bound.find:
        raise InvalidParameterError(
            "Synthetic data need a bound that is known.", fix="give it with table.bound(rows=…)."
        )
    return bound

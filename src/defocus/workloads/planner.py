"""Plans for workloads: the best strategy, or one that somebody else has chosen.

Strategies that someone else has chosen: checked, and used as they are.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it has no types of its own

from defocus.answers.progress import shown
from defocus.errors import (
    CannotCalibrateError,
    InvalidParameterError,
    MismatchedDomainError,
    Number,
    WrongSensitivityError,
    choice,
    count,
    positive,
)
from defocus.mechanisms import Gaussian, Laplace
from defocus.mechanisms.mechanism import NOISES, checked_budget
from defocus.privacy.budgets import Budget
from defocus.privacy.units import Unit, rows
from defocus.workloads.builders import real_matrix
from defocus.workloads.candidates import GAUSSIAN, LAPLACE, best_design
from defocus.workloads.marginals import Marginals, marginals
from defocus.workloads.matrices import matrix_design
from defocus.workloads.measurement import Measurement
from defocus.workloads.optimum import Tell, part, percentages
from defocus.workloads.plans import Plan, fingerprint
from defocus.workloads.queries import Array, Identity, Total
from defocus.workloads.strategy import Design, Norms, Strategy, covers, l1_sensitivity, l2_sensitivity
from defocus.workloads.workload import LARGEST_DENSE, Workload

__all__ = ["GivenStrategy", "plan", "strategy"]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GivenStrategy:
    """A matrix to measure with. Made by :func:`strategy`.

    >>> strategy([[1, 1], [1, -1]]).sizes
    (2,)
    """

    matrix: Array

    @property
    def sizes(self) -> tuple[int, ...]:
        """Its columns are the cells."""
        return (int(self.matrix.shape[1]),)

    def __repr__(self) -> str:
        rows, cells = self.matrix.shape
        return f"<strategy of {rows} rows over {cells} cells>"

    def design(self, sizes: tuple[int, ...], noise: str) -> Design:
        """The matrix over the cells of a domain with these sizes."""
        columns = np.abs(self.matrix).sum(axis=0) if noise == LAPLACE else np.sqrt((self.matrix**2).sum(axis=0))
        return matrix_design("the given strategy", sizes, self.matrix, float(columns.max()))


def strategy(matrix: Any, *, l1: Number | None = None, l2: Number | None = None) -> GivenStrategy:
    """A strategy given as a dense or sparse ``matrix``, whose sensitivity is computed and not taken on trust.

    If a sensitivity is declared, for one record added or removed, it is compared with the exact one.

    >>> strategy([[1, 1], [1, -1]], l1=2)
    <strategy of 2 rows over 2 cells>
    """
    rows = real_matrix("The strategy", matrix)
    if rows.shape[1] > LARGEST_DENSE:
        raise InvalidParameterError(
            f"The strategy has {rows.shape[1]} columns, and at most {LARGEST_DENSE} are held.",
            fix="plan without a strategy: products and marginals have no such limit.",
        )
    if not rows.any():
        raise InvalidParameterError("The strategy measures nothing: it is zero.", fix="give it a row that counts.")
    if l1 is not None:
        _compare("L1", positive("l1", l1), max(sum(map(abs, column), Fraction(0)) for column in _exact(rows)), 1)
    if l2 is not None:
        _compare("L2", positive("l2", l2), max(sum((x * x for x in column), Fraction(0)) for column in _exact(rows)), 2)
    return GivenStrategy(rows)


def _exact(rows: Array) -> list[list[Fraction]]:
    return [[Fraction(x) for x in column] for column in rows.T.tolist()]


def _compare(norm: str, declared: Number, actual: Fraction, power: int) -> None:
    """Equal to nine digits: a declaration is checked for being wrong, and never used."""
    if abs(Fraction(declared) ** power - actual) > actual / 10**9:
        raise WrongSensitivityError(norm, declared, f"{float(actual) ** (1 / power):.10g}")


_COARSEST = 8
"""A strategy must be worth at least this many bits, so that rounding it to integers costs next to nothing."""
_WIDEST = 39
"""The noise is kept below 2**39 steps: the samplers draw scales up to 2**40."""
_ONE = Norms(1 << 20, 1 << 40, 1 << 21, 1 << 41)
"""Columns of norm one at twenty bits, to learn how wide the noise will be."""
_HEAVY = 1e100
"""Weights add up to less than this, so that errors are numbers."""
_FULL = 61
"""What is measured stays below 2**61, and the noise far below the rest."""


def plan(
    workload: Workload | Marginals,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    mu: Number | None = None,
    noise: str | None = None,
    objective: str = "total",
    unit: Unit | None = None,
    contribution: int | None = None,
    total: int = 2**31,
    strategy: GivenStrategy | None = None,
    progress: Callable[[float], None] | None = None,
) -> Plan:
    """The best strategy found for a workload at a price, with everything known about its error.

    Guarantee:
        Looks at public descriptions only and charges nothing. The sensitivity is computed from the integers that
        will be used, and the noise calibrated to the whole price for it.

    The linear algebra runs on one thread, whatever else is set: on a busy machine several would wait for each other.

    Args:
        workload: what is to be answered.
        epsilon: what one release may cost, with ``delta`` where it has one.
        delta: likewise; without it the noise is Laplace.
        rho: what it may cost in zero-concentrated DP, instead.
        mu: what it may cost in Gaussian DP, instead; no discrete noise can meet it exactly, so it is refused.
        noise: ``"gaussian"``, ``"laplace"``, or None for whichever gives the smaller error.
        objective: ``"total"`` for the weighted sum of variances, ``"max"`` for the largest one.
        unit: what the ledger protects; one row, added or removed by default.
        contribution: how many records one unit holds at most; one by default, or as many as the unit says.
        total: a public bound on how many records there are. Privacy does not rest on it; answers about more
            records may wrap around.
        strategy: a strategy to use instead of searching for one, made by ``workloads.strategy``.
        progress: called now and then with a rough percentage of the search that is done; without it, a terminal or
            notebook shows a bar for what takes more than two seconds.

    >>> from defocus import workloads as w
    >>> found = w.plan(w.prefix(64), epsilon=1, delta=1e-6, noise="gaussian")
    >>> found.error.total < 0.2 * found.direct_error
    True
    """
    price = checked_budget(epsilon=epsilon, delta=delta, rho=rho, mu=mu)
    if not isinstance(workload, Workload | Marginals):
        raise InvalidParameterError(
            f"A plan needs a workload, but got {type(workload).__name__}.",
            fix="make one with workloads.prefix, ranges, marginals, explicit, kron or union.",
        )
    if not workload.total_importance() < _HEAVY:
        raise InvalidParameterError(
            f"The weights of the workload add up to more than {_HEAVY:.0e}.",
            fix="divide them all by one number: only their ratios matter.",
        )
    aim = choice("objective", objective, ("total", "max"))
    protected = rows() if unit is None else unit
    if not isinstance(protected, Unit):
        raise InvalidParameterError("unit must be a Unit.", fix="write for example unit=rows() or ledger.unit.")
    held = count("contribution", (protected.per_person or 1) if contribution is None else contribution)
    most = count("total", total)
    covers(protected, held)
    if strategy is not None:
        _fitting(strategy, workload)
    kinds, asked = _kinds(noise, price, aim), _one_table(workload)

    def planned(kind: str, tell: Tell) -> Plan:
        design = best_design(asked, kind, aim, tell) if strategy is None else strategy.design(asked.sizes, kind)
        chosen, law = _realised(design, kind, price, unit=protected, contribution=held, total=most)
        if isinstance(asked, Workload):
            chosen.check(asked)  # rounding to integers must not have lost a direction either
        measurement = Measurement(chosen, law, design.name, fingerprint(chosen.content(), asked.content()))
        return Plan(asked, price, measurement, law.variance / float(law.sensitivity) ** 2, protected, held, aim)

    with shown(progress, "planning") as told, threadpool_limits(1):
        tell = percentages(told)
        plans = [planned(kind, part(tell, i / len(kinds), (i + 0.9) / len(kinds))) for i, kind in enumerate(kinds)]
        best = plans[0]
        if len(plans) > 1:
            best = min(
                plans, key=lambda candidate: candidate.error.total if aim == "total" else candidate.error.largest
            )
        tell(1.0)
    return best


def _one_table(workload: Workload | Marginals) -> Workload | Marginals:
    """Cells or totals of a domain too large for a matrix, as the marginal that they are: nothing is to be optimised."""
    if isinstance(workload, Marginals) or workload.cells <= LARGEST_DENSE or len(workload.terms) > 1:
        return workload
    (term,) = workload.terms
    if not all(isinstance(atom, Identity | Total) for atom in term.atoms):
        return workload
    kept = [axis for axis, atom in enumerate(term.atoms) if isinstance(atom, Identity)]
    return marginals(workload.sizes, [kept], weights=[term.weight])


def _fitting(strategy: object, workload: Workload | Marginals) -> None:
    if not isinstance(strategy, GivenStrategy):
        raise InvalidParameterError(
            f"A strategy must be made by workloads.strategy, but it is {type(strategy).__name__}.",
            fix="write strategy=workloads.strategy(matrix).",
        )
    if isinstance(workload, Marginals):
        raise InvalidParameterError(
            "Marginals are measured as tables or their residuals, and take no strategy.",
            fix="leave the strategy out, or write the marginals as products: workloads.union(marginals).",
        )
    if strategy.sizes != (workload.cells,):
        raise MismatchedDomainError("The strategy", strategy.sizes, (workload.cells,))


def _kinds(noise: str | None, price: Budget, objective: str) -> Sequence[str]:
    if noise is not None:
        return [choice("noise", noise, (GAUSSIAN, LAPLACE), NOISES)]
    if price.epsilon is not None and not price.delta:
        return [LAPLACE]
    return [GAUSSIAN] if objective == "max" or price.epsilon is None else [GAUSSIAN, LAPLACE]


def _realised(
    design: Design, kind: str, price: Budget, *, unit: Unit, contribution: int, total: int
) -> tuple[Strategy, Gaussian | Laplace]:
    """The design in integers, as fine as noise and numbers allow, and its noise."""
    fine = min(
        design.bits,
        math.floor(_WIDEST - math.log2(_width(kind, price, unit, contribution)) - 1),
        math.floor(_FULL - math.log2(total * design.peak)),
    )
    if fine < _COARSEST:
        raise CannotCalibrateError(
            f"This price and bound leave {max(fine, 0)} bits for the strategy, and {_COARSEST} are needed.",
            fix="declare a smaller total= or contribution=, or spend more.",
        )
    strategy = design.make(fine)
    if strategy.largest * total >= 1 << (_FULL + 1):  # coefficients that are whole are not rounded to fewer bits
        raise CannotCalibrateError(
            f"Coefficients of up to {strategy.largest} on {total} records could add up to more than 64 bits hold.",
            fix="declare a smaller total=, or give a strategy with smaller coefficients.",
        )
    noise = _noise(kind, price, strategy.norms(), unit=unit, contribution=contribution, dimension=strategy.rows)
    return strategy, noise


@lru_cache(maxsize=64)
def _width(kind: str, price: Budget, unit: Unit, contribution: int) -> float:
    """How wide the noise will be where the largest column has norm one."""
    probe = _noise(kind, price, _ONE, unit=unit, contribution=contribution, dimension=1)
    return float(probe.sigma if isinstance(probe, Gaussian) else probe.scale) / 2**20


def _noise(
    kind: str, price: Budget, norms: Norms, *, unit: Unit, contribution: int, dimension: int
) -> Gaussian | Laplace:
    if kind == GAUSSIAN:
        reach: Number = max(1, l2_sensitivity(norms, unit, contribution))  # 0 where only the public total is asked
        return Gaussian.calibrated(price, sensitivity=reach, dimension=dimension)
    return Laplace.calibrated(price, sensitivity=max(1, l1_sensitivity(norms, unit, contribution)))

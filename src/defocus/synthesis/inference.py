"""Which estimates from synthetic rows released counts can answer: by moving what is made up, and seeing what changes.

Within a cell of several values nothing was measured, and values are spread evenly. So some tables are analysed twice
more, with all values near the lower and near the upper ends of their cells. Half of what that changes an estimate by is
added to its error, in squares. An estimate that is not between those of the ends asks for single values within cells,
about which nothing is known: its error is infinite.

An estimate in which all tables agree exactly is unknown, too, unless it follows from declared constraints: then it is
the same where columns are independent but for the constraints, and is another without them. Its error is zero.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from defocus.synthesis.noise_aware import Combined
from defocus.synthesis.targets import Floats

__all__ = ["ENDS", "Analysis", "analysed", "with_cells", "with_facts"]

Analysis: TypeAlias = Callable[[Any], tuple[Any, Any]]
ENDS = (0.001, 0.999)
"""Places near the ends of a cell. At the ends themselves are other cells, in which values pile up."""
_BEYOND = 0.25
"""So many standard errors may an estimate be beyond those of the ends, by chance."""


def analysed(analysis: Analysis, table: Any) -> tuple[Floats, Floats]:
    """The estimates and variances of one table, as vectors."""
    estimates, variances = analysis(table)
    return np.atleast_1d(np.asarray(estimates, float)), np.atleast_1d(np.asarray(variances, float))


def with_cells(made: Combined, spread: Sequence[Floats], ends: Sequence[tuple[Floats, Floats]]) -> Combined:
    """What was found, with errors that know about cells: estimates of some tables, as they are and at both ends.

    >>> plain = Combined(np.array([5.0, 0.01]), np.array([3.0, 0.001]), np.array([19.0, 19.0]))
    >>> low, high = np.array([1.0, 0.0]), np.array([9.0, 0.0])
    >>> with_cells(plain, [plain.estimate], [(low, high)]).error.tolist()
    [5.0, inf]
    """
    middle = np.mean(spread, axis=0)
    low, high = (np.mean([pair[end] for pair in ends], axis=0) for end in (0, 1))
    error = np.hypot(made.error, np.abs(high - low) / 2)
    beyond = np.maximum(middle - np.maximum(low, high), np.minimum(low, high) - middle)
    told = (beyond <= _BEYOND * error) & (beyond < np.inf)  # NaN is not told
    return replace(made, error=np.where(told, error, np.inf))


def with_facts(made: Combined, held: tuple[Floats, Floats], free: Floats) -> Combined:
    """What was found, without error where constraints decide: what ``held`` them and what was ``free`` of them tells.

    >>> same = Combined(np.array([0.0]), np.array([np.inf]), np.array([19.0]))
    >>> with_facts(same, (np.array([0.0]), np.array([0.0])), np.array([0.2])).error.tolist()
    [0.0]
    """
    estimates, variances = held
    fixed = np.isinf(made.error) & (estimates == made.estimate) & (variances == 0) & (free != made.estimate)
    return replace(made, error=np.where(fixed, 0.0, made.error))

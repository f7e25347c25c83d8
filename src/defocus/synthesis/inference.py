"""Which estimates from synthetic rows released counts can answer: by moving what is made up, and seeing what changes.

Within a cell of several values nothing was measured, and values are spread evenly. So some tables are analysed three
times more, with all values near the lower ends of their cells, near the upper ends, and at the roundest value of each,
where people heap who report about. Half of what that changes an estimate by is added to its error, in squares. An
estimate that is not between those asks for single values within cells, about which nothing is known: its error is
infinite. So it is where these places agree exactly, and values that are spread evenly say something else.

An estimate in which all tables agree exactly is unknown, too, unless it follows from declared constraints: then it is
the same where columns are independent but for the constraints, and is another without them. Its error is zero.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from defocus.synthesis.noise_aware import Combined
from defocus.synthesis.targets import Floats

__all__ = ["ENDS", "Analysis", "analysed", "with_cells", "with_facts"]

Analysis: TypeAlias = Callable[[Any], tuple[Any, Any]]
ENDS = (0.001, 0.999, math.nan)
"""Places near the ends of a cell, and its roundest value. At the ends themselves are cells in which values pile up."""
_BEYOND = 0.25
"""So many standard errors may an estimate be beyond those of the ends, by chance."""


def analysed(analysis: Analysis, table: Any) -> tuple[Floats, Floats]:
    """The estimates and variances of one table, as vectors."""
    estimates, variances = analysis(table)
    return np.atleast_1d(np.asarray(estimates, float)), np.atleast_1d(np.asarray(variances, float))


def with_cells(made: Combined, spread: Sequence[Floats], ends: Sequence[tuple[Floats, ...]]) -> Combined:
    """What was found, with errors that know about cells: estimates of some tables, as they are and at several places.

    >>> plain = Combined(np.array([5.0, 0.01]), np.array([3.0, 0.001]), np.array([19.0, 19.0]))
    >>> low, high = np.array([1.0, 0.0]), np.array([9.0, 0.0])
    >>> with_cells(plain, [plain.estimate], [(low, high)]).error.tolist()
    [5.0, inf]
    """
    middle, moved = np.mean(spread, axis=0), np.mean(ends, axis=0)
    low, high = moved.min(axis=0), moved.max(axis=0)
    error = np.hypot(made.error, (high - low) / 2)
    beyond = np.maximum(middle - high, low - middle)
    every, plain = np.asarray(ends), np.asarray(spread)
    blind = ((every.min(axis=1) == every.max(axis=1)) & (every[:, 0] != plain)).any(axis=0)
    told = (beyond <= _BEYOND * error) & (beyond < np.inf) & ~blind  # NaN is not told
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

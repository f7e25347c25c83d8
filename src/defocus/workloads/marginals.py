"""Marginals: tables of counts over sets of attributes, for domains of any size."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, Number, count, whole
from defocus.workloads.atoms import Array, Identity, Total
from defocus.workloads.lattice import Index, Lattice, all_sets, levels_of
from defocus.workloads.workload import Term, Workload, checked_weights, factor_of

__all__ = ["Marginals", "marginals"]

_SUBSETS = 1 << 24
"""Every subset of every table is kept; more than this many take too much memory."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Marginals:
    """Tables of counts over chosen sets of attributes; a domain of 10**100 cells is as easy as one of ten.

    Answers come set by set, smaller orders first, each table with its last attribute fastest.
    ``weights`` says for each set how much a squared error in one of its cells matters.
    """

    sizes: tuple[int, ...]
    lattice: Lattice = field(repr=False)
    weights: dict[int, Array] = field(repr=False)

    @property
    def cells(self) -> int:
        """The size of the domain."""
        return math.prod(self.sizes)

    @property
    def levels(self) -> dict[int, Index]:
        """The sets by order, one row each."""
        return self.lattice.levels

    @property
    def number(self) -> int:
        """How many tables there are."""
        return sum(len(rows) for rows in self.levels.values())

    @property
    def queries(self) -> int:
        """The cells of all tables."""
        return int(sum(self.table_cells(order).sum() for order in self.levels))

    @property
    def shape(self) -> tuple[int, int]:
        """Queries by cells of the domain."""
        return self.queries, self.cells

    def __repr__(self) -> str:
        return f"<{self.number} marginals of {len(self.sizes)} attributes, {self.queries} queries>"

    __array_ufunc__ = None  # a number of numpy is a number, and not an array to multiply entry by entry

    def __mul__(self, weight: Number) -> "Marginals":
        factor = factor_of(weight)
        return Marginals(self.sizes, self.lattice, {order: factor * w for order, w in self.weights.items()})

    __rmul__ = __mul__

    def sets(self) -> list[tuple[int, ...]]:
        """The sets of attributes, in the order of the answers."""
        return [tuple(row) for order in sorted(self.levels) for row in self.levels[order].tolist()]

    def table_cells(self, order: int) -> Array:
        """How many cells each table of this order has."""
        cells: Array = np.array(self.sizes, np.float64)[self.levels[order]].prod(axis=1)
        return cells

    def content(self) -> tuple[Any, ...]:
        """All that it asks."""
        return self.sizes, self.levels, self.weights

    def importance(self) -> Array:
        """The weight of each query."""
        parts = [
            np.repeat(self.weights[order], self.table_cells(order).astype(np.int64)) for order in sorted(self.levels)
        ]
        return np.concatenate(parts)

    def total_importance(self) -> float:
        """The sum of all weights."""
        return float(sum((self.weights[order] * self.table_cells(order)).sum() for order in self.levels))

    def answer(self, x: Sequence[int] | NDArray[Any]) -> NDArray[Any]:
        """The tables of a histogram ``x``, without any noise."""
        table = np.asarray(x).reshape(self.sizes)
        everything = range(len(self.sizes))
        kept = [table.sum(axis=tuple(i for i in everything if i not in chosen)).ravel() for chosen in self.sets()]
        return np.concatenate(kept)

    def reach(self) -> tuple[float, float]:
        """A record is in one cell of each table."""
        return float(self.number), float(self.number)

    def products(self) -> Workload:
        """The same queries as a union of products."""
        terms = [
            Term(
                float(weight),
                tuple(Identity(n) if i in chosen else Total(n) for i, n in enumerate(self.sizes)),
            )
            for order in sorted(self.levels)
            for chosen, weight in zip(self.levels[order].tolist(), self.weights[order], strict=True)
        ]
        return Workload(self.sizes, tuple(terms))


def marginals(
    sizes: Sequence[int],
    sets: Sequence[Sequence[int]] | None = None,
    *,
    ways: int | None = None,
    up_to: int | None = None,
    weights: Sequence[Number] | None = None,
) -> Marginals:
    """Marginals of attributes with these numbers of values.

    Named ``sets`` of attributes, all sets of ``ways`` attributes, or all sets of ``up_to`` so many, none included.

    >>> marginals([2, 3, 4], ways=2)
    <3 marginals of 3 attributes, 26 queries>
    >>> marginals([2, 3, 4], [(0, 1), (2,)]).answer(range(24)).tolist()
    [60, 66, 72, 78, 6, 22, 38, 54, 70, 86]
    """
    listed = _listed("sizes", sizes, "give the number of values of each attribute, for example [2, 3, 4].")
    public = tuple(count("the size of an attribute", size) for size in listed)
    if not public:
        raise InvalidParameterError("There are no attributes.", fix="give the size of at least one.")
    if sum(given is not None for given in (sets, ways, up_to)) != 1:
        raise InvalidParameterError(
            "Marginals are named by one of sets, ways or up_to.", fix="write for example marginals(sizes, ways=2)."
        )
    if sets is not None:
        how = "list the attributes of each table, for example [(0, 1), (2,)]; all pairs are ways=2."
        named = [_checked_set(_listed("a set", chosen, how), len(public)) for chosen in _listed("sets", sets, how)]
        if not named:
            raise InvalidParameterError("The workload is empty.", fix="name at least one set of attributes.")
        _affordable(len(named), sum(1 << len(chosen) for chosen in named))
        if len(set(named)) != len(named):
            raise InvalidParameterError("A set of attributes is named twice.", fix="give it once, with its weight.")
        levels, positions = levels_of(named)
    else:
        most = whole("the order of the marginals", ways if ways is not None else up_to)
        if most > len(public):
            raise InvalidParameterError(
                f"There are no {most}-way marginals of {len(public)} attributes.", fix="choose a smaller order."
            )
        orders = [most] if ways is not None else range(most + 1)
        each = {order: math.comb(len(public), order) for order in orders}
        _affordable(sum(each.values()), sum(number << order for order, number in each.items()))
        levels = all_sets(len(public), orders)
        ends = list(itertools.accumulate((len(rows) for rows in levels.values()), initial=0))
        positions = {order: np.arange(ends[i], ends[i + 1]) for i, order in enumerate(levels)}
    number = sum(len(rows) for rows in levels.values())
    importance = checked_weights(weights, number, "tables")
    lattice = Lattice.below(levels, len(public))
    return Marginals(public, lattice, {order: importance[at] for order, at in positions.items()})


def _checked_set(chosen: Sequence[int], attributes: int) -> tuple[int, ...]:
    members = tuple(sorted(whole("an attribute", member) for member in chosen))
    if len(set(members)) != len(members) or any(member >= attributes for member in members):
        raise InvalidParameterError(
            f"A marginal names attributes {members}, but there are {attributes}, each used at most once.",
            fix=f"number the attributes from 0 to {attributes - 1}.",
        )
    return members


def _listed(name: str, given: Any, how: str) -> list[Any]:
    """What was given as a list, if it is one."""
    if isinstance(given, str | bytes) or not hasattr(given, "__iter__"):
        raise InvalidParameterError(f"{name} must be a list, but it is {type(given).__name__}.", fix=how)
    return list(given)


def _affordable(tables: int, subsets: int) -> None:
    """Refuse more tables than memory holds, before they are listed."""
    if subsets > _SUBSETS:
        raise InvalidParameterError(
            f"These are {tables} tables with {subsets} subsets, and at most {_SUBSETS} subsets are held.",
            fix="ask for tables of fewer attributes, or name the sets that matter.",
        )

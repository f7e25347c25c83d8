"""Marginals: tables of counts over sets of attributes.

Sets of attributes and all their subsets, as arrays: the bookkeeping behind marginals.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, Number, count, whole
from defocus.workloads.queries import Array, Identity, Total
from defocus.workloads.workload import Term, Workload, checked_weights, factor_of

__all__ = ["Index", "Lattice", "Marginals", "all_sets", "levels_of", "marginals"]


Index = NDArray[np.int64]


def all_sets(attributes: int, orders: Iterable[int]) -> dict[int, Index]:
    """All sets of the given orders, one row each, attributes ascending."""
    subsets: dict[int, Index] = {}
    for order in orders:
        flat = itertools.chain.from_iterable(itertools.combinations(range(attributes), order))
        subsets[order] = np.fromiter(flat, np.int64).reshape(-1, order) if order else np.zeros((1, 0), np.int64)
    return subsets


def levels_of(sets: Sequence[tuple[int, ...]]) -> tuple[dict[int, Index], dict[int, Index]]:
    """Sets grouped by order, and for each group the positions its rows had."""
    groups: dict[int, list[int]] = {}
    for position, chosen in enumerate(sets):
        groups.setdefault(len(chosen), []).append(position)
    levels = {order: np.array([sets[i] for i in at], np.int64).reshape(len(at), order) for order, at in groups.items()}
    return levels, {order: np.array(at, np.int64) for order, at in groups.items()}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Lattice:
    """All subsets of the given sets, numbered from the smallest order up, and who is a subset of whom.

    ``subsets[r]`` holds the subsets of order r as rows and ``start[r]`` the number of the first of
    them. ``links[r]`` says for each set of order r and each pattern of its columns, as bits, the number
    of the subset that these columns make.
    """

    levels: dict[int, Index] = field(repr=False)
    subsets: dict[int, Index] = field(repr=False)
    start: dict[int, int] = field(repr=False)
    links: dict[int, Index] = field(repr=False)
    count: int

    @staticmethod
    def below(levels: dict[int, Index], attributes: int) -> "Lattice":
        """The lattice under these sets."""
        pieces: dict[int, list[tuple[int, int, Index]]] = {}
        for order, rows in sorted(levels.items()):
            for pattern in range(1 << order):
                columns = [c for c in range(order) if pattern >> c & 1]
                pieces.setdefault(len(columns), []).append((order, pattern, rows[:, columns]))
        links = {order: np.empty((len(rows), 1 << order), np.int64) for order, rows in levels.items()}
        subsets: dict[int, Index] = {}
        start: dict[int, int] = {}
        number = 0
        for order in sorted(pieces):
            unique, inverse = _numbered(np.concatenate([rows for _, _, rows in pieces[order]]), attributes)
            subsets[order], start[order] = unique, number
            at = 0
            for source, pattern, rows in pieces[order]:
                links[source][:, pattern] = number + inverse[at : at + len(rows)]
                at += len(rows)
            number += len(unique)
        return Lattice(levels, subsets, start, links, number)

    def again(self, attributes: int) -> "Lattice":
        """The lattice whose sets are all subsets of this one; numbers stay the same."""
        return Lattice.below(self.subsets, attributes)

    def names(self) -> list[tuple[int, ...]]:
        """The subsets by number."""
        return [tuple(row) for order in sorted(self.subsets) for row in self.subsets[order].tolist()]

    def product(self, per_attribute: NDArray[np.float64]) -> NDArray[np.float64]:
        """For each subset, the product of a number for each of its attributes."""
        parts = [per_attribute[self.subsets[order]].prod(axis=1) for order in sorted(self.subsets)]
        return np.concatenate(parts)

    def spread(self, order: int, inside: Any, outside: Any) -> NDArray[np.float64]:
        """For the sets of one order and each pattern: product of ``inside`` over it and ``outside`` over the rest."""
        rows = self.levels[order]
        products = np.ones((len(rows), 1 << order))
        for column in range(order):
            chosen = (np.arange(1 << order) >> column & 1).astype(bool)
            products[:, chosen] *= inside[rows[:, column]][:, None]
            products[:, ~chosen] *= outside[rows[:, column]][:, None]
        return products


def _numbered(rows: Index, attributes: int) -> tuple[Index, Index]:
    """The distinct rows in ascending order, and which of them each row is."""
    order = rows.shape[1]
    if order == 0:
        return rows[:1], np.zeros(len(rows), np.int64)
    if attributes**order >= 1 << 62:
        unique, inverse = np.unique(rows, axis=0, return_inverse=True)
        return unique, inverse.reshape(-1)
    keys = rows @ np.array([attributes ** (order - 1 - c) for c in range(order)], np.int64)
    if attributes**order <= 4 * len(keys) + 1024:
        return _by_table(keys, rows, attributes**order)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return rows[first], inverse.reshape(-1)


def _by_table(keys: Index, rows: Index, size: int) -> tuple[Index, Index]:
    """The same without sorting, when the keys are dense enough for a table of all of them."""
    where = np.full(size, -1, np.int64)
    where[keys] = np.arange(len(keys))
    present = np.flatnonzero(where >= 0)
    unique = rows[where[present]]
    where[present] = np.arange(len(present))
    return unique, where[keys]


_SUBSETS = 1 << 24
"""Every subset of every table is kept; more than this many take too much memory."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Marginals:
    """Tables of counts over chosen sets of attributes; a domain of 10**100 cells is as easy as one of ten.

    Answers come set by set, smaller orders first, each table with its last attribute fastest.
    ``weights`` says for each set how much a squared error in one of its cells matters.

    >>> marginals([2, 3, 4], ways=2).shape
    (26, 24)
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

    def set_weights(self) -> list[float]:
        """The weight of each set, in the same order."""
        return [float(weight) for order in sorted(self.levels) for weight in self.weights[order]]

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
            Term(float(weight), tuple(Identity(n) if i in chosen else Total(n) for i, n in enumerate(self.sizes)))
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
        numbers = {order: math.comb(len(public), order) for order in orders}
        _affordable(sum(numbers.values()), sum(number << order for order, number in numbers.items()))
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

"""Sets of attributes and all their subsets, as arrays: the bookkeeping behind marginals."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Index", "Lattice", "all_sets", "levels_of"]

Index = NDArray[np.int64]


def all_sets(attributes: int, orders: Iterable[int]) -> dict[int, Index]:
    """All sets of the given orders, one row each, attributes ascending."""
    found: dict[int, Index] = {}
    for order in orders:
        flat = itertools.chain.from_iterable(itertools.combinations(range(attributes), order))
        found[order] = np.fromiter(flat, np.int64).reshape(-1, order) if order else np.zeros((1, 0), np.int64)
    return found


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
        found = np.ones((len(rows), 1 << order))
        for column in range(order):
            chosen = (np.arange(1 << order) >> column & 1).astype(bool)
            found[:, chosen] *= inside[rows[:, column]][:, None]
            found[:, ~chosen] *= outside[rows[:, column]][:, None]
        return found


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

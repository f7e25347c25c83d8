"""Several sets of groups in one release: ROLLUP, CUBE and GROUPING SETS, and hierarchies of whole counts.

All sets are measured, each with noise of its own, and one estimate is made of all measurements together, so totals are
the sums of their parts. Sets that are nested are the levels of a tree; others are marginals of a product of domains.

Sensitivity:
    One person weighs at most M·R over the finest groups, all parts of whatever splits a row's weight together. Groups
    of a coarser set are sums of those, so they move by at most M·R in L1 norm as well, and by at most that in L2 norm,
    wherever the person's rows are; a bound on the rows in each group holds for the finest groups only. The sets are
    charged as so many measurements, each for its own sensitivity: with noise of one scale, k sets move by k·M·R in L1
    norm and by √k·M·R in L2 norm.

Invariants:
    Totals that are held exactly are no measurement with noise: they are told as they are, and nothing protects them.
    Adding or removing a person changes them, so a promise about that is void. What remains is differential privacy
    subject to invariants: of two tables that agree in the totals and differ in the row of one person, the odds of
    any answer differ as the charge says. That is one row replaced by another, so the noise is planned for that, two
    changes, also where the ledger protects rows that are added or removed. Levels above an invariant follow from it and
    have no noise. The noise alone also protects as charged against adding or removing one.
Reference:
    Ashmead, Kifer, Leclerc, Machanavajjhala, Sexton (2019), Effective privacy after adjusting for invariants.
"""

import hashlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from defocus import workloads
from defocus.answers import AnswerColumn, Effect, Rule, Tails
from defocus.errors import InvalidParameterError, NotDeclaredError, Number, in_range
from defocus.noise import Bits
from defocus.tables.keys import Keys
from defocus.tables.noise import CellNoise, Noisy
from defocus.tables.planner import Levels
from defocus.workloads.marginal_strategies import MarginalStrategy
from defocus.workloads.trees import Pooled, Tree, level_errors, shares

__all__ = ["ALL", "GroupingSets", "Layout", "are_totals", "labelled", "whole_counts"]

ALL = "all"
"""What the key of a total shows, and the name of the level of the grand total."""
_CELLS = 1 << 22
_SETS = 1 << 10
_Exact: TypeAlias = npt.NDArray[np.int64]
_Floats: TypeAlias = npt.NDArray[np.float64]
_Noises: TypeAlias = Sequence[CellNoise | None]


@final
@dataclass(frozen=True, slots=True)
class GroupingSets:
    """Which sets of columns make groups, by their places in ``names``; nested ones from the coarsest on."""

    names: tuple[str, ...]
    sets: tuple[tuple[int, ...], ...]
    whole: bool = False
    """Whether counts are released as whole numbers that are not negative."""
    exact: int = 0
    """How many sets, the coarsest first, have exact totals, which nothing protects."""
    weights: tuple[float, ...] | None = None
    """Parts of the budget for each set, where somebody chose them."""
    paths: pa.Table | None = field(default=None, repr=False, compare=False)
    """A line of all columns for each key, in the order of the keys, where keys are not all columns."""

    @classmethod
    def placed(cls, names: Sequence[str], places: Iterable[tuple[int, ...]]) -> "GroupingSets":
        """From sets of places of the names."""
        return cls(tuple(names), tuple(sorted(dict.fromkeys(places), key=len)))

    @classmethod
    def of(cls, names: Sequence[str], how: Any) -> "GroupingSets":
        """From "rollup", "cube", or a list of lists of names.

        >>> GroupingSets.of(["state", "county"], "rollup").sets
        ((), (0,), (0, 1))
        >>> GroupingSets.of(["state", "county"], [["county"], []]).sets
        Traceback (most recent call last):
        ...
        defocus.errors.base.InvalidParameterError: No set of groups has the column 'state'.
        To fix: add a set with it, or leave the column out of group_by.
        """
        places = range(len(names))
        if how == "rollup":
            listed: list[tuple[int, ...]] = [tuple(range(i)) for i in range(len(names) + 1)]
        elif how == "cube" and 1 << len(names) <= _SETS:
            listed = [way for size in range(len(names) + 1) for way in itertools.combinations(places, size)]
        else:
            listed = [_places(names, one) for one in _iterable(how)]
        chosen = sorted(dict.fromkeys(listed), key=len)
        if not chosen or len(chosen) > _SETS:
            raise InvalidParameterError(
                f"There are {len(chosen) or 'no'} sets of groups.", fix=f"name 1 to {_SETS} of them."
            )
        for place in places:
            if not any(place in one for one in chosen):
                raise InvalidParameterError(
                    f"No set of groups has the column {names[place]!r:.60}.",
                    fix="add a set with it, or leave the column out of group_by.",
                )
        return cls.placed(names, chosen)

    @property
    def nested(self) -> bool:
        """Whether each set has all columns of the one before it, so that the groups are a tree."""
        return all(set(a) < set(b) for a, b in itertools.pairwise(self.sets))

    @property
    def summed(self) -> list[str]:
        """The columns that are summed over in some set, whose keys may be totals."""
        return [name for i, name in enumerate(self.names) if not all(i in one for one in self.sets)]

    def over(self, keys: Keys | None) -> "Layout | None":
        """The groups of these keys, None where they are to be found; refused if no consistent estimate can be made."""
        if keys is None and self.exact:
            raise NotDeclaredError("Exact totals need leaves that are known.", fix="leave invariants out.")
        if keys is None and self.nested:
            return None
        if keys is None:
            raise NotDeclaredError(
                "Sets of groups that are not nested need keys that are known.",
                fix="declare the domains of the columns, or ask for a rollup.",
            )
        layout = Layout(self, keys)
        if not self.nested and layout.sizes is None:
            raise InvalidParameterError(
                "Sets of groups that are not nested need all combinations of the values of their columns, at most"
                f" {_CELLS}.",
                fix='name the values of each column, keys={"ward": […], "year": […]}, or ask for a rollup.',
            )
        return layout

    def divided(self, share: Mapping[str, Number]) -> "GroupingSets":
        """The same with these parts of the budget, by the name of each level: its last column, or "all"."""
        levels = self.levels()
        for name, weight in share.items():
            if name not in levels:
                raise InvalidParameterError(
                    f"There is no level {name!r:.60}.", fix=f"choose among {', '.join(levels)}."
                )
            in_range(f"the share of {name}", weight, 1e-3, 10**3)
        parts = [0.0 if i < self.exact else float(share.get(name, 1)) for i, name in enumerate(levels)]
        return replace(self, weights=tuple(part / sum(parts) for part in parts))

    def levels(self) -> list[str]:
        """What the sets of a tree are called."""
        return [self.names[one[-1]] if one else ALL for one in self.sets]

    def holding(self, invariants: Sequence[str]) -> "GroupingSets":
        """The same with exact totals down to the lowest of these levels."""
        levels = self.levels()
        if isinstance(invariants, str) or not all(isinstance(name, str) for name in invariants):
            raise InvalidParameterError("invariants are names of levels.", fix='write invariants=["state"].')
        if len(set(invariants)) != len(invariants):
            raise InvalidParameterError("An invariant is named twice.", fix="name each level once.")
        for name in invariants:
            if name not in levels[:-1]:
                raise InvalidParameterError(
                    f"The totals of {name!r:.60} cannot be held exactly: "
                    + ("nothing would be protected." if name in levels else "there is no such level."),
                    fix=f"choose among {', '.join(levels[:-1]) or 'the levels above another'}.",
                )
        return replace(self, exact=max((levels.index(name) + 1 for name in invariants), default=0))

    def planned(self, layout: "Layout | None") -> Levels:
        """How the budget is divided among the sets, with Laplace and with Gaussian noise."""
        number = len(self.sets)
        everything = tuple(range(len(self.names)))
        finest = self.sets.index(everything) if everything in self.sets else None
        even = (1 / number,) * number
        shape = None if layout is None else layout.shape()
        found = [_shared(shape, self.exact, self.weights, even, power) for power in _POWERS]
        (pure, rough), (mixed, smooth) = found
        return Levels(pure, mixed, finest, (rough, smooth), moved=bool(self.exact))

    def words(self) -> str:
        """The sets, in words."""
        if self.sets == GroupingSets.of(self.names, "rollup").sets:
            said = f"{' > '.join(self.names)} and in all"
        else:
            said = " and ".join(", ".join(self.names[i] for i in one) or ALL for one in self.sets[:_FEW])
            said += f" and {len(self.sets) - _FEW} more sets" if len(self.sets) > _FEW else ""
        return f"{said}; exact, not protected: the totals of {self.held}" if self.exact else said

    @property
    def held(self) -> str:
        """The levels whose totals are exact."""
        return " and ".join(self.levels()[: self.exact])

    def rules(self) -> list[Rule]:
        """What is not protected."""
        if not self.exact:
            return []
        said = f"NOT PROTECTED: the totals of {self.held} are exact, without noise, so they tell who knows all others"
        alone = "and so is every group that is alone in one of these"
        return [Rule(f"{said} whether a person is counted there; {alone}", Effect.EXACT)]

    def processing(self) -> tuple[str, ...]:
        """What is done to the noisy numbers."""
        said = ("all sets of groups were estimated together by least squares, so totals are the sums of their parts",)
        if not self.whole:
            return said
        lifted = "counts were then made whole and not negative, which lifts those near zero and lowers others a little"
        return (*said, f"{lifted}; errors and intervals are those of the unbiased estimates before that")


_FEW = 6


@final
@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The groups of all sets over known keys. Everything about it is public."""

    sets: GroupingSets
    codes: tuple[_Exact, ...]
    """For each column the rank of each key's value, NULL last."""
    values: tuple[pa.Array, ...]
    """For each column its different values, in order."""
    members: tuple[tuple[_Exact, _Exact], ...]
    """For each set, the group of each key, and a key of each group; groups in the order of their columns."""

    def __init__(self, sets: GroupingSets, keys: Keys) -> None:
        table = keys.table if sets.paths is None else sets.paths
        ranked = [_ranked(table.column(i).combine_chunks()) for i in range(len(sets.names))]
        object.__setattr__(self, "sets", sets)
        object.__setattr__(self, "codes", tuple(codes for codes, _ in ranked))
        object.__setattr__(self, "values", tuple(values for _, values in ranked))
        object.__setattr__(self, "members", tuple(self._members()))

    @property
    def sizes(self) -> tuple[int, ...] | None:
        """How many values each column has, if the keys are all combinations of them."""
        sizes = tuple(int(codes.max()) + 1 for codes in self.codes)
        return sizes if math.prod(sizes) == len(self.codes[0]) <= _CELLS else None

    def shape(self) -> "_Shape":
        """The numbers of groups of nested sets; or the sizes of the domains, and the sets."""
        if self.sets.nested:
            return tuple(len(firsts) for _, firsts in self.members), ()
        return self._product(), self.sets.sets

    def variances(self, noises: _Noises, grid: int) -> list[_Floats]:
        """The variance of one cell of each group, in squared rows, set by set."""
        own = _variances(noises, self.sets.exact, grid)
        if self.sets.nested:
            tree = self.tree()
            return tree.estimates(tree.pooled([np.zeros(size) for size in tree.sizes], own))[1]
        workload, strategy = _marginals(self._product(), self.sets.sets, tuple(own))
        return _by_set(workload, self.sets.sets, strategy.variances(workload))

    def noisy(self, cells: _Exact, noises: _Noises, bits: Bits, grid: int) -> tuple[Noisy, _Exact | None]:
        """The cells of all groups of all sets with noise, in rows, in the order of :meth:`keys`; and whole counts."""
        first = next(noise for noise in noises if noise is not None)
        if self.sets.nested:
            estimates, variances, counts = self._on_tree(cells, noises, bits, grid)
        else:
            (estimates, variances), counts = self._on_product(cells, noises, bits, grid), None
        order = self.order()
        made = Noisy(
            np.concatenate(estimates)[order],
            np.concatenate(variances)[order],
            first.width,
            f"{first.words} in all sets",
        )
        return made, None if counts is None else np.concatenate(counts)[order]

    def sums(self, cells: _Exact) -> list[_Exact]:
        """What is measured: the sums of cells over the groups of each set, one after the other."""
        if self.sets.nested:
            return self.tree().sums(cells[self.members[-1][1]])
        sizes = self._product()
        table = np.zeros((*sizes, cells.shape[1]), np.int64)
        table[self.codes] = cells
        away = [tuple(i for i in range(len(sizes)) if i not in one) for one in self.sets.sets]
        return [table.sum(axis=axes).reshape(-1, cells.shape[1]) for axes in away]

    def order(self) -> _Exact:
        """All groups in the order of their keys, totals after what they sum up."""
        return np.lexsort(self._shown()[::-1])

    def keys(self) -> tuple[pa.Table, list[Rule]]:
        """The keys of all groups in order, and how totals are labelled, in words.

        A column that is summed over somewhere is text: values as they are written, and a label that none of them is.
        """
        order, columns, named = self.order(), {}, dict[str, list[str]]()
        for place, codes in enumerate(self._shown()):
            name, values, label = self.sets.names[place], self.values[place], None
            if name in self.sets.summed:
                values = values.cast(pa.string())
                label = labelled(values)
                named.setdefault(label, []).append(name)
            known = pa.concat_arrays([values, pa.array([None, label], values.type)])
            columns[name] = known.take(pa.array(codes[order]))
        stands = "stands for all groups together; rows of others are left out"
        said = [Rule(f"{label!r} in {' and '.join(names)} {stands}", Effect.TOLD) for label, names in named.items()]
        return pa.table(columns), said

    def digest(self) -> str:
        """Of all keys, for the record."""
        made = hashlib.sha256()
        for codes, values in zip(self.codes, self.values, strict=True):
            made.update(repr((len(codes), str(values.type), values.to_pylist())).encode())
            made.update(codes.tobytes())
        return made.hexdigest()

    def _on_tree(
        self, cells: _Exact, noises: _Noises, bits: Bits, grid: int
    ) -> tuple[list[_Floats], list[_Floats], list[_Exact] | None]:
        tree, exact, sums = self.tree(), self.sets.exact, self.sums(cells)
        released = [
            (level if noise is None else noise.add(level, bits)) / grid if place < exact or noise is not None
            else np.zeros(level.shape)
            for place, (level, noise) in enumerate(zip(sums, noises, strict=True))
        ]  # fmt: skip
        own = _variances(noises, exact, grid)
        pooled = tree.pooled(released, own)
        estimates, variances = tree.estimates(pooled)
        if not self.sets.whole:
            return estimates, variances, None
        counts = Pooled([values[:, 0] for values in pooled.values], pooled.variances)
        held = [np.rint(level[:, 0]).astype(np.int64) for level in released[:exact]]
        return estimates, variances, tree.whole(counts, held)

    def _on_product(self, cells: _Exact, noises: _Noises, bits: Bits, grid: int) -> tuple[list[_Floats], list[_Floats]]:
        sets, sums = self.sets.sets, self.sums(cells)
        places = [sets.index(one) for one in workloads.marginals(self._product(), sets).lattice.names() if one in sets]
        noised = [(how, how.add(sums[place], bits)) for place in places if (how := noises[place]) is not None]
        # Over several owners, how much noise there is depends on who is gone, and so is known only now.
        workload, strategy = _marginals(self._product(), sets, tuple(_variances(noises, 0, grid)))
        together = np.concatenate([values / math.sqrt(how.variance) for how, values in noised])
        columns = [_by_set(workload, sets, strategy.answers(workload, column)) for column in together.T]
        estimates = [np.stack(parts, axis=1) for parts in zip(*columns, strict=True)]
        return estimates, _by_set(workload, sets, strategy.variances(workload))

    def _product(self) -> tuple[int, ...]:
        sizes = self.sizes
        assert sizes is not None  # noqa: S101  # checked when the question was made
        return sizes

    def _members(self) -> Iterator[tuple[_Exact, _Exact]]:
        number, firsts, known = np.zeros(len(self.codes[0]), np.int64), np.zeros(1, np.int64), set[int]()
        for one in self.sets.sets:
            if not self.sets.nested:
                number, firsts, known = np.zeros(len(self.codes[0]), np.int64), np.zeros(1, np.int64), set()
            for place in one:
                if place not in known:
                    both = number * (int(self.codes[place].max()) + 1) + self.codes[place]
                    _, firsts, number = np.unique(both, return_index=True, return_inverse=True)
            known = set(one)
            yield number, firsts

    def tree(self) -> Tree:
        """Nested sets as the levels of a tree."""
        parents = tuple(above[0][below[1]] for above, below in itertools.pairwise(self.members))
        return Tree(parents, len(self.members[0][1]))

    def _shown(self) -> list[_Exact]:
        """For each column the rank of the value of every group, set by set; totals last."""
        return [
            np.concatenate([
                self.codes[place][firsts] if place in one else np.full(len(firsts), len(self.values[place]) + 1)
                for one, (_, firsts) in zip(self.sets.sets, self.members, strict=True)
            ])
            for place in range(len(self.codes))
        ]  # fmt: skip


def labelled(values: pa.Array) -> str:
    """The label of totals among these values: "all", or with more parentheses than any value that is so written.

    >>> labelled(pa.array(["A", "B"])), labelled(pa.array(["All", "none"])), labelled(pa.array(["((all))"]))
    ('all', '(all)', '(((all)))')
    """
    alike = values.filter(pc.match_substring_regex(pc.utf8_lower(values), rf"^\(*{ALL}\)*$"))  # of millions
    deepest = max((depth for depth in map(_depth, alike.to_pylist()) if depth is not None), default=-1)
    return f"{'(' * (deepest + 1)}{ALL}{')' * (deepest + 1)}"


def are_totals(keys: Iterable[Any]) -> _Exact:
    """1 where a key of an answer in several sets is that of a total, and else 0: the one in most parentheses."""
    depths = [_depth(key) for key in keys]
    deepest = max((depth for depth in depths if depth is not None), default=None)
    return np.array([int(depth is not None and depth == deepest) for depth in depths], np.int64)


def _depth(value: Any) -> int | None:
    """In how many parentheses the word is, if a value is that."""
    text = str(value).casefold()
    inner = text.lstrip("(").rstrip(")")
    depth = (len(text) - len(inner)) // 2
    return depth if inner == ALL and text == f"{'(' * depth}{inner}{')' * depth}" else None


def whole_counts(column: AnswerColumn, counts: _Exact) -> AnswerColumn:
    """The column with whole counts in place of the unbiased estimates, which keep the errors and intervals."""
    values, held = counts.astype(np.float64), column.errors == 0
    low, high = (np.where(held, values, np.maximum(end, 0.0)) for end in (column.low, column.high))
    how = f"{column.how}; made whole and not negative"
    return replace(column, values=values, low=low, high=high, how=how, tails=Tails.UNKNOWN)


def _ranked(column: pa.Array) -> tuple[_Exact, pa.Array]:
    """The rank of each value among the different ones, NULL after the last, and those in order."""
    encoded = column.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    ranks = np.empty(len(order) + 1, np.int64)
    ranks[order.to_numpy()], ranks[-1] = np.arange(len(order)), len(order)
    places = encoded.indices.fill_null(len(order)).to_numpy(zero_copy_only=False)
    return ranks[places], encoded.dictionary.take(order)


def _variances(noises: _Noises, exact: int, grid: int) -> list[float]:
    return [
        0.0 if place < exact else math.inf if noise is None else noise.variance / grid**2
        for place, noise in enumerate(noises)
    ]


_Shape: TypeAlias = tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]
_POWERS = (2, 1)
"""Variances go with the inverse square of a part of epsilon with Laplace noise, and of rho's inverse with Gaussian."""


@lru_cache(maxsize=64)
def _shared(
    shape: _Shape | None, exact: int, given: tuple[float, ...] | None, even: tuple[float, ...], power: float
) -> tuple[tuple[float, ...], float]:
    """Parts of the budget with the least mean variance of all sets, and that mean, in units of what one would have."""
    if shape is None:
        return given or even, float(np.mean(np.array(given or even) ** -power))
    sizes, sets = shape
    errors, number = (_on_marginals(sizes, sets), len(sets)) if sets else (_on_levels(sizes, exact), len(sizes) - exact)
    needed = [i for i, one in enumerate(sets) if not any(set(one) < set(other) for other in sets)] or [number - 1]
    parts = given[exact:] if given is not None else shares(errors, number, needed=needed, power=power)
    if given is None and not sets:
        parts = _no_worse(np.array(parts), errors, _top_down(sizes, exact, number**power), power)
    with np.errstate(divide="ignore"):
        typical = float(np.mean(errors(np.array(parts) ** -power)))
    return (0.0,) * exact + parts, typical


def _no_worse(best: _Floats, errors: Callable[[_Floats], _Floats], limits: _Floats, power: float) -> tuple[float, ...]:
    """The parts that are nearest to the best ones, between these and even parts, with which no level errs by more."""
    even, low, high = np.full(len(best), 1 / len(best)), 0.0, 1.0

    def fits(weight: float) -> bool:
        with np.errstate(divide="ignore"):
            found = errors((weight * best + (1 - weight) * even) ** -power)
        return bool((found[-len(limits) :] <= limits).all())

    if not fits(1.0):
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if fits(middle) else (low, middle)
    else:
        low = 1.0
    return tuple((low * best + (1 - low) * even).tolist())


def _top_down(sizes: tuple[int, ...], exact: int, variance: float) -> _Floats:
    """The mean variance of each noisy level where every parent divides its count by the noise of its children alone."""
    found = [0.0] if exact else [variance]
    for above, below in itertools.pairwise(sizes[max(0, exact - 1) :]):
        branch = below / above
        found.append(variance * (1 - 1 / branch) + found[-1] / branch**2)
    return np.array(found[1:] if exact else found)


_HALVINGS = 30


def _on_levels(sizes: tuple[int, ...], exact: int) -> Callable[[_Floats], _Floats]:
    """The mean variance of each level, by those of the measured ones."""
    if not exact:
        return lambda variances: level_errors(sizes, variances.tolist())
    return lambda variances: level_errors(sizes[exact - 1 :], [0.0, *variances.tolist()])


def _on_marginals(sizes: tuple[int, ...], sets: tuple[tuple[int, ...], ...]) -> Callable[[_Floats], _Floats]:
    """The variance of a cell of each table, by those of the measured ones."""

    def errors(variances: _Floats) -> _Floats:
        workload, strategy = _marginals(sizes, sets, tuple(variances.tolist()))
        return np.concatenate(list(strategy.cell_variances(workload).values()))

    return errors


def _marginals(
    sizes: tuple[int, ...], sets: tuple[tuple[int, ...], ...], variances: tuple[float, ...]
) -> tuple[workloads.Marginals, MarginalStrategy]:
    """The sets as tables of counts, measured as they are with these variances, in units of their noise."""
    workload = workloads.marginals(sizes, sets)
    inverse: Any = {one: 1 / math.sqrt(variance) for one, variance in zip(sets, variances, strict=True)}
    multiples: Any = np.array([inverse.get(name, 0.0) for name in workload.lattice.names()])
    return workload, MarginalStrategy(sizes, workload.lattice, multiples, residual=False)


def _by_set(workload: workloads.Marginals, sets: Sequence[tuple[int, ...]], flat: _Floats) -> list[_Floats]:
    """Answers of all tables, in the order of the sets."""
    lengths = [math.prod(workload.sizes[i] for i in one) for one in workload.sets()]
    parts = np.split(flat, np.cumsum(lengths)[:-1])
    named = dict(zip(workload.sets(), parts, strict=True))
    return [named[one] for one in sets]


def _places(names: Sequence[str], one: Any) -> tuple[int, ...]:
    listed = [one] if isinstance(one, str) else _iterable(one)
    for name in listed:
        if name not in names:
            raise InvalidParameterError(
                f"A set of groups names {name!r:.60}, which group_by does not.",
                fix=f"use {', '.join(names)}."[:200],
            )
    return tuple(sorted({names.index(name) for name in listed}))


def _iterable(given: Any) -> list[Any]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidParameterError(
            "Sets of groups are not understood.", fix='pass "rollup", "cube", or a list such as [["ward"], []].'
        )
    return list(given)

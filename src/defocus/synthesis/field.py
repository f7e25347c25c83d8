r"""A Markov random field over the columns, held as records that are moved to meet noisy counts.

Records are the model. A *table* is a set of two or three columns with a target count for each cell. One sweep visits
every cell of every record and draws it anew from its conditional law given the rest of the record: a product of rows of
the tables' potentials. After each sweep the potentials take a damped step of proportional fitting towards the targets.
The last sweeps also weigh :math:`e^{-\beta/2\,\|counts - target\|^2}`, which moves records from cells that hold too
many to cells that hold too few, so that hardly any sampling noise is left in the counts that were measured. Pairs and
triples that were not measured have targets there as well: what the model has in the mean of several sweeps.

No junction tree is built, so tables may form any graph. Everything here is post-processing of released numbers.

Reference: Besag (1974) for the conditional laws; Tieleman (2008) for persistent chains.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.machine_code import compiled

__all__ = ["Codes", "Floats", "MarkovField", "counted", "narrow", "quota"]

Codes = NDArray[np.signedinteger[Any]]
Floats = NDArray[np.float64]


@compiled
def _sweep(  # noqa: PLR0917, PLR0912, C901, PLR0915  # one loop, compiled; its arrays are the arguments
    records: Any,
    sizes: Any,
    first: Any,
    potentials: Any,
    starts: Any,
    second: Any,
    third: Any,
    base: Any,
    base_second: Any,
    base_third: Any,
    tables: Any,
    excess: Any,
    excess_first: Any,
    pull: Any,
    rows: Any,
    low: Any,
    high: Any,
    seed: Any,
) -> None:
    """Draw every cell of records ``low`` to ``high`` anew; with ``pull``, counts are drawn towards their targets."""
    state = np.uint64(seed)
    weights = rows[0]
    drift = rows[1]
    for r in range(low, high):
        for i in range(records.shape[1]):
            size = sizes[i]
            old = records[r, i]
            for v in range(size):
                weights[v] = potentials[first[i] + v]
                drift[v] = excess_first[first[i] + v]
            for e in range(starts[i], starts[i + 1]):
                row = records[r, second[e]]
                if third[e] >= 0:
                    row = row * sizes[third[e]] + records[r, third[e]]
                begin = base[e] + row * size
                for v in range(size):
                    weights[v] *= tables[begin + v]
                if pull > 0:
                    for v in range(size):
                        drift[v] += excess[begin + v]
            if pull > 0:
                drift[old] -= starts[i + 1] - starts[i] + 1  # as if this record were not there
                least = drift[0]
                for v in range(size):
                    least = min(least, drift[v])
                for v in range(size):
                    away = pull * (drift[v] - least)
                    weights[v] = weights[v] * math.exp(-away) if away < 40 else 0.0
            total = 0.0
            for v in range(size):
                total += weights[v]
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            if not 1e-30 < total < 1e30:
                continue
            point = (state >> np.uint64(11)) * (1.0 / 9007199254740992.0) * total
            new = 0
            reached = weights[0]
            while reached < point and new < size - 1:
                new += 1
                reached += weights[new]
            if new == old:
                continue
            records[r, i] = new
            if pull <= 0:
                continue
            excess_first[first[i] + old] -= 1
            excess_first[first[i] + new] += 1
            for e in range(starts[i], starts[i + 1]):
                j = second[e]
                k = third[e]
                xj = records[r, j]
                if k < 0:
                    excess[base[e] + xj * size + old] -= 1
                    excess[base[e] + xj * size + new] += 1
                    excess[base_second[e] + old * sizes[j] + xj] -= 1
                    excess[base_second[e] + new * sizes[j] + xj] += 1
                else:
                    xk = records[r, k]
                    begin = base[e] + (xj * sizes[k] + xk) * size
                    excess[begin + old] -= 1
                    excess[begin + new] += 1
                    was = old * sizes[k] + xk if i < k else xk * size + old
                    now = new * sizes[k] + xk if i < k else xk * size + new
                    excess[base_second[e] + was * sizes[j] + xj] -= 1
                    excess[base_second[e] + now * sizes[j] + xj] += 1
                    was = old * sizes[j] + xj if i < j else xj * size + old
                    now = new * sizes[j] + xj if i < j else xj * size + new
                    excess[base_third[e] + was * sizes[k] + xk] -= 1
                    excess[base_third[e] + now * sizes[k] + xk] += 1


def counted(
    records: NDArray[Any], columns: Sequence[int], sizes: Sequence[int], weights: Floats | None = None
) -> NDArray[Any]:
    """How many records are in each cell of some columns, or what they weigh.

    >>> counted(np.array([[0, 1], [0, 1], [1, 0]]), (0, 1), (2, 2)).tolist()
    [[0, 2], [1, 0]]
    """
    shape = [int(sizes[i]) for i in columns]
    key = np.zeros(len(records), np.int64)
    for i in columns:
        key *= int(sizes[i])
        key += records[:, i]
    return np.bincount(key, weights, minlength=math.prod(shape)).reshape(shape)


def narrow(sizes: Sequence[int]) -> type[np.int16 | np.int32]:
    """The narrower of two types that holds all codes: records are most of what is kept in memory.

    >>> narrow([2, 40_000]).__name__
    'int32'
    """
    return np.int16 if max(sizes, default=0) <= np.iinfo(np.int16).max else np.int32


def quota(weights: Floats, number: int, random: np.random.Generator) -> NDArray[np.int64]:
    """So many codes in ascending order, each as often as its share of the weights says, give or take one.

    >>> quota(np.array([1.0, 3.0]), 8, np.random.default_rng(0)).tolist()
    [0, 0, 1, 1, 1, 1, 1, 1]
    """
    ends = np.minimum(np.floor(np.cumsum(weights) / np.sum(weights) * number + random.random()), number).astype(int)
    ends[-1] = number
    return np.repeat(np.arange(len(weights)), np.diff(ends, prepend=0))


@final
class MarkovField:
    """Records with potentials over columns and tables.

    >>> field = MarkovField([2, 2], 100, np.random.default_rng(1))
    >>> field.hold_margins([np.array([50.0, 50.0])] * 2)
    >>> field.hold((0, 1), np.array([[45.0, 5.0], [5.0, 45.0]]))
    >>> field.fit(20)
    >>> field.settle(8)
    >>> int(abs(counted(field.records, (0, 1), field.sizes) - field.targets[0, 1]).max()) <= 5
    True
    """

    def __init__(self, sizes: Sequence[int], number: int, random: np.random.Generator) -> None:
        self.sizes = np.asarray(sizes, np.int64)
        self.number = number
        self.random = random
        self.records: Codes = np.zeros((number, len(sizes)), narrow(sizes))
        self.margins: list[Floats] = []
        self.targets: dict[tuple[int, ...], Floats] = {}
        self.allowed: dict[tuple[int, ...], NDArray[np.bool_]] = {}
        self._first = np.concatenate(([0], np.cumsum(self.sizes)))
        self._log_first: list[Floats] = []
        self._log_tables: dict[tuple[int, ...], Floats] = {}

    def hold_margins(self, margins: Sequence[Floats]) -> None:
        """Set the target counts of each column; the first time, records are drawn independently from them."""
        if not self.margins:
            self._log_first = [np.log(np.maximum(margin, 0.5) / self.number) for margin in margins]
            for i, margin in enumerate(margins):
                self.records[:, i] = self.random.permutation(quota(margin, self.number, self.random))
        self.margins = list(margins)

    def hold(self, columns: tuple[int, ...], target: Floats) -> None:
        """Set the target counts of a table."""
        self.targets[columns] = target
        self._log_tables.setdefault(columns, np.zeros(target.shape))

    def allow(self, columns: tuple[int, ...], allowed: NDArray[np.bool_]) -> None:
        """Let no record move into cells of a table that are not allowed."""
        self.allowed[columns] = allowed

    def fit(self, sweeps: int) -> None:
        """Let potentials and records meet the targets: after each sweep a step by the relative error.

        Of very many records only some are swept at first, which tell the potentials; the others become copies of
        these, and the last sweeps move all of them apart.
        """
        degree = np.bincount([i for columns in self.targets for i in columns], minlength=len(self.sizes))
        chains = min(_CHAINS, _CHAIN_CELLS // len(self.sizes))
        number = chains if self.number >= 2 * chains else self.number
        for sweep in range(sweeps):
            if number < self.number and sweep >= _EARLY * sweeps:
                self.records[:] = np.resize(self.records[:number], self.records.shape)
                number = self.number
            step, share = _FIRST * (_LAST / _FIRST) ** (sweep / max(1, sweeps - 1)), number / self.number
            self._swept(self._potentials(), pull=0.0, number=number)
            swept = self.records[:number]
            for i, margin in enumerate(self.margins):
                there = np.bincount(swept[:, i], minlength=int(self.sizes[i]))
                self._log_first[i] = np.clip(self._log_first[i] + step * _relative(share * margin, there), -20, 8)
            for columns, target in self.targets.items():
                there = counted(swept, columns, self.sizes.tolist())
                # Shorter steps where many tables share a column: steps that are taken at once add up.
                damped = step * min(1.0, 8 / max(degree[i] for i in columns))
                moved = self._log_tables[columns] + damped * _relative(share * target, there)
                self._log_tables[columns] = np.clip(moved, -10, 6)

    def settle(self, sweeps: int) -> None:
        """Move records until the counts are the targets, as nearly as whole numbers can be."""
        for columns, target in self._expected(self._crowded()).items():
            self.hold(columns, target)
        excess = self._excess()
        for sweep in range(sweeps):
            pull = _SOFT * (_HARD / _SOFT) ** (sweep / max(1, sweeps - 1))
            self._swept(self._potentials(), pull=pull, excess=excess)

    def _crowded(self) -> list[tuple[int, ...]]:
        """Pairs and triples without a target that have enough records for each cell, dependent columns first."""
        sizes, places = self.sizes.tolist(), range(len(self.sizes))
        ways = (2, 3) if self.number < 2 * _CHAINS else (2,)  # of very many records, chance moves triples little

        def cells(columns: tuple[int, ...]) -> int:
            return math.prod(sizes[i] for i in columns)

        def measured(columns: tuple[int, ...]) -> int:
            return sum(pair in self.targets for pair in itertools.combinations(columns, 2))

        found = [own for way in ways for own in itertools.combinations(places, way) if own not in self.targets]
        found = [own for own in found if _CROWD * cells(own) <= self.number]
        near, kept = [0] * len(sizes), []
        for own in sorted(found, key=lambda own: (len(own), -measured(own), cells(own))):
            if len(own) == 2 or max(near[i] for i in own) < _NEAR:
                kept.append(own)
                for i in own:
                    near[i] += len(own) == 3
        return kept

    def _expected(self, sets: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], Floats]:
        """The counts of sets of columns as the model has them in the mean, scaled to the targets of their parts."""
        sizes, found = self.sizes.tolist(), {columns: np.zeros([self.sizes[i] for i in columns]) for columns in sets}
        number = _CHAINS if self.number >= 2 * _CHAINS else self.number
        for _ in range(_MEAN if sets else 0):
            self._swept(self._potentials(), pull=0.0, number=number)
            for columns in sets:
                found[columns] += counted(self.records[:number], columns, sizes) * (self.number / number / _MEAN)
        known: dict[tuple[int, ...], Floats] = {(i,): margin for i, margin in enumerate(self.margins)}
        known |= self.targets
        for columns in sets:
            for part in itertools.combinations(range(len(columns)), len(columns) - 1):
                away = tuple(set(range(len(columns))) - set(part))
                target = known.get(tuple(columns[place] for place in part))
                if target is not None:
                    scale = target / np.maximum(found[columns].sum(axis=away), 1e-9)
                    found[columns] *= np.expand_dims(scale, away)
        return found

    def drawn(self, times: int, sweeps: int) -> Codes:
        """Records from the law of the potentials, so many times as many; after these sweeps they are apart again."""
        return self.given(np.tile(self.records, (times, 1)), (), sweeps)

    def given(self, records: Codes, held: Sequence[int], sweeps: int) -> Codes:
        """Records from the law of the potentials, given the columns ``held``, which come after all others.

        A sweep draws the columns of a record in their order, so those before the held ones see these as they are.
        """
        kept, number = records[:, list(held)].copy(), self.number
        own, self.records, self.number = self.records, np.ascontiguousarray(records, self.records.dtype), len(records)
        for _ in range(sweeps):
            self._swept(self._potentials(), pull=0.0)
            self.records[:, list(held)] = kept
        made, self.records, self.number = self.records, own, number
        return made

    def _excess(self) -> tuple[Any, Any]:
        """Counts minus targets, in the layout of the potentials."""
        sizes = self.sizes.tolist()
        over = {columns: counted(self.records, columns, sizes) - target for columns, target in self.targets.items()}
        first = [
            np.bincount(self.records[:, i], minlength=size) - margin
            for i, (size, margin) in enumerate(zip(sizes, self.margins, strict=True))
        ]
        return self._flat(over), np.concatenate(first).astype(np.float32)

    def _potentials(self) -> Any:
        every = {columns: np.exp(log) for columns, log in self._log_tables.items()}
        return self._flat({columns: table * self.allowed.get(columns, True) for columns, table in every.items()})

    def _flat(self, tables: Mapping[tuple[int, ...], Floats]) -> Any:
        """Each table once for each of its columns, that column last, so that conditional laws are read in one row."""
        if not tables:
            return np.ones(1, np.float32)
        parts = [
            np.moveaxis(table, place, -1).ravel() for columns, table in tables.items() for place in range(len(columns))
        ]
        return np.concatenate(parts).astype(np.float32)

    def _layout(self) -> tuple[Any, ...]:
        near: list[list[tuple[int, ...]]] = [[] for _ in self.sizes]
        offset = 0
        for columns in self.targets:
            cells = math.prod(int(self.sizes[i]) for i in columns)
            base = {column: offset + place * cells for place, column in enumerate(columns)}
            offset += cells * len(columns)
            for column in columns:
                j, k = ([*(other for other in columns if other != column), -1])[:2]
                near[column].append((j, k, base[column], base[j], base[k] if k >= 0 else 0))
        entries = np.array([entry for entries in near for entry in entries], np.int64).reshape(-1, 5)
        starts = np.concatenate(([0], np.cumsum([len(entries) for entries in near])))
        return (starts, *(np.ascontiguousarray(entries[:, place]) for place in range(5)))

    def _swept(
        self, potentials: Any, *, pull: float, excess: tuple[Any, Any] | None = None, number: int | None = None
    ) -> None:
        first = np.exp(np.concatenate(self._log_first)).astype(np.float32)
        over, over_first = (potentials, np.zeros_like(first)) if excess is None else excess
        rows = np.empty((2, int(self.sizes.max())), np.float32)
        seed = int(self.random.integers(1, 1 << 63))
        arrays = (self.records, self.sizes, self._first, first, *self._layout(), potentials, over, over_first)
        sweep: Callable[..., None] = _sweep
        sweep(*arrays, pull, rows, 0, self.number if number is None else number, seed)


_FIRST, _LAST = 0.5, 0.05
"""Steps of the potentials, at first and in the end."""
_SOFT, _HARD = 0.02, 0.3
"""How strongly counts are drawn to their targets, at first and in the end."""
_FEW = 8.0
_CROWD, _NEAR, _MEAN = 8, 36, 12
"""So many records for each cell, triples for each column, and sweeps let what was not measured have a target."""
_CHAINS, _CHAIN_CELLS, _EARLY = 1 << 16, 1 << 19, 0.75
"""So many of twice as many records, or those with so many cells, are swept in this part of the sweeps."""


def _relative(target: Floats, there: Any) -> Floats:
    return np.asarray(np.clip((target - there) / (there + _FEW), -1, 1))

r"""Releases of more groups than fit in memory: noise is drawn where the groups are, and files are written there.

The engine adds up the exact integers of each group, passes them on in blocks, and each block is noised where it is: on
Spark by the executors, else by this process, block after block. Nothing of any group comes to the driver.

Guarantee:
    The release is the planned mechanism, charged as one event before. The bits of a block's noise are bound to the
    release's secret and to the whole block, keys and exact integers (:func:`defocus.noise.bits.bound`). Keys differ
    from block to block, so all blocks have independent noise of the exact law, whatever their integers are.

    *A block that is computed again*, since an executor was lost or a second attempt raced the first, has the same rows
    in the same order, and so the same noise: two copies of it tell no more than one. If the rows changed meanwhile, or
    blocks were cut otherwise, the noise is another and independent one, which costs as much as a second release to
    whoever sees both; the same noise never lies on two different integers, whose difference would be bare. Spark
    commits one attempt of each task, so nobody sees both in the folder of a release that ended.

    *What the folder shows.* With named keys the rows are the keys, each once, whoever is in the data. With found keys
    they are those that partition selection kept, noised once and then read back as named ones. Which files there are,
    which row is in which, and the order within follow from the keys and from Spark's settings alone
    (:meth:`defocus.engines.engine.Engine.store`); values are noisy numbers, so sizes are post-processing.

    *The secret* travels to the executors inside the tasks, is written to no statement, and is forgotten with the job.
Assumes:
    Who can read the memory, the network or the temporary files of the executors sees the exact rows anyway. A folder
    whose name ends in ``.incomplete`` is left by a release that failed; it is charged, and holds what blocks were
    done.
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
from sqlglot import exp

from defocus.answers import AnswerColumn, Preview, PreviewColumn
from defocus.answers.explanation import told, topics
from defocus.answers.rules import Rule, rules_in, rules_out
from defocus.engines.engine import Blockwise, integers
from defocus.engines.schema import Column
from defocus.engines.sources import alongside
from defocus.engines.syntax import BIGINT, column, named, quoted, sub, typed, whole
from defocus.errors import InvalidParameterError, LedgerDamagedError, NotDeclaredError, SourceError
from defocus.ledger import Receipt
from defocus.mechanisms import PartitionSelection
from defocus.noise.bits import bound as bound_bits
from defocus.privacy.budgets import Budget
from defocus.privacy.wire import read_number, write_number
from defocus.tables.aggregates import Measured
from defocus.tables.bias import Bias
from defocus.tables.contribution import Bound
from defocus.tables.execution import Run
from defocus.tables.keys import EVERYTHING, Keys, StoredKeys, key_types
from defocus.tables.measurement import Measuring
from defocus.tables.noise import CellNoise
from defocus.tables.planner import Plan
from defocus.tables.splits import Split
from defocus.tables.statistics import Statistic
from defocus.tables.weights import Groups

__all__ = ["Destination", "Written", "answerable", "from_record", "released_to", "to_record"]

_INCOMPLETE = ".incomplete"
_GROUPS, _FOUND, _ABOUT = "groups", "found keys", "_about.json"
_SECRET = 4
"""Words of 64 bits."""


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Written:
    """A released answer in files: where it is, how exact each column is, and what it cost.

    The folder holds Parquet files that any tool reads, with the keys and, for each column x, its noisy value; where the
    error differs from group to group, x_error, x_low and x_high (95 %) too. Where it is the same for all, ``columns``
    says it once.

    >>> import tempfile
    >>> import pyarrow as pa
    >>> import defocus as dp
    >>> home = tempfile.TemporaryDirectory()
    >>> views = pa.table({"reader": range(1000), "page": [i % 40 for i in range(1000)]})
    >>> table = dp.open(views, unit=dp.user("reader"), budget=dp.Budget(1), ledger=f"{home.name}/a", name="views")
    >>> question = table.bound(rows=1).group_by("page", keys=range(50)).agg(views=dp.count())
    >>> written = question.release_to(f"{home.name}/by page", epsilon=0.5)
    >>> written.groups, written.head(2).column_names, round(written.columns[0].error, 1)
    (50, ['page', 'views'], 2.8)
    >>> table.close(); home.cleanup()
    """

    folder: Path
    groups: int
    columns: tuple[PreviewColumn, ...]
    question: str
    receipt: Receipt
    rules: tuple[Rule, ...] = ()
    asked: Budget | None = None

    def dataset(self) -> pads.Dataset:
        """The files as an Arrow dataset, to read in parts or as a whole."""
        if not self.folder.is_dir():
            raise SourceError(
                f"The folder {str(self.folder)!r:.200} is gone, though it was released.",
                fix="look where it was moved to; the charge stays, and nobody else has the numbers.",
            )
        return pads.dataset(self.folder, format="parquet")

    def head(self, number: int = 10) -> pa.Table:
        """The first rows."""
        return self.dataset().head(number)

    def explain(self, *, html: bool = False) -> str:
        """The release in plain words: question, where it is, protection, rules, exactness, cost and what is left."""
        said = topics(self.receipt, self.asked)
        return told(
            {
                "question": [self.question],
                "answer": [f"{self.groups} groups in {self.folder}"],
                **{name: said.pop(name) for name in list(said) if name not in {"cost", "left"}},
                "by rule": self.rules,
                "noise": [f"{column.name}: {column.how}" for column in self.columns],
                **said,
            },
            html=html,
        )

    def to_dict(self) -> dict[str, Any]:
        """What is known about the files, with JSON types only; the numbers are in them."""
        return {
            "question": self.question,
            "folder": str(self.folder),
            "groups": self.groups,
            "columns": [column.to_dict() for column in self.columns],
            "rules": list(self.rules),
            "receipt": self.receipt.to_dict(),
        }

    @property
    def preview(self) -> Preview:
        """How exact each column is, as it would be foretold now that all bounds are known."""
        return Preview(self.columns, self.question, self.receipt.event, rules=self.rules)

    def __str__(self) -> str:
        return f"{self.groups} group{'' if self.groups == 1 else 's'} in {self.folder}\n{self.preview}"

    def _repr_html_(self) -> str:
        return self.preview._repr_html_()  # as pages show it

    def __repr__(self) -> str:
        return f"<{self.groups} groups in {self.folder}: {self.question}>"


@final
@dataclass(frozen=True, slots=True)
class Destination:
    """Where files go: a new folder, called ``….incomplete`` until all of them are there."""

    folder: Path

    @classmethod
    def of(cls, folder: object) -> "Destination":
        """The folder that was named, which all who write must reach under this path."""
        if not isinstance(folder, str | Path) or not str(folder) or "://" in str(folder):
            raise InvalidParameterError(
                f"{folder!r:.80} is no folder of this machine or of a file system that all machines share.",
                fix='pass a path, as in release_to("views by page", epsilon=1).',
            )
        return cls(Path(folder).expanduser().absolute())

    @property
    def incomplete(self) -> Path:
        """The name that it has until then."""
        return self.folder.with_name(self.folder.name + _INCOMPLETE)

    def check(self) -> None:
        """Refuse a place that is taken or cannot be written to."""
        for place in (self.folder, self.incomplete):
            if place.exists():
                raise InvalidParameterError(
                    f"There is something at {str(place)!r:.200} already.",
                    fix="choose another folder, or move that one away; one that is incomplete was paid for, and may"
                    " be deleted.",
                )
        try:
            self.incomplete.mkdir()
            self.incomplete.rmdir()
        except OSError as problem:
            why = problem.strerror or "it cannot be made"
            raise InvalidParameterError(
                f"The folder {str(self.folder)!r:.200} cannot be written: {why}.", fix="choose another place."
            ) from None

    @contextmanager
    def being_written(self) -> Iterator[Path]:
        """Where to write; at the end, and only if all went well, the folder has its name."""
        self.incomplete.mkdir()
        yield self.incomplete
        (self.incomplete / _GROUPS).rename(self.folder)
        shutil.rmtree(self.incomplete)


def answerable(plan: Plan, by: Sequence[str], keys: object, bound: Bound | None) -> None:
    """Refuse what cannot be released in blocks, before anything is charged."""
    arrangement = plan.arrangement
    if plan.findings:
        raise NotDeclaredError(
            "Bounds of values are not found for answers in files.",
            fix="declare them, or give them: mean(x, low, high).",
        )
    if plan.memberships is not None:
        raise NotDeclaredError(
            "In how many groups a person is counted is not found for answers in files.", fix="say so: bound(groups=…)."
        )
    if not by:
        raise InvalidParameterError("This question has no groups.", fix="ask it with release(…), or group_by first.")
    if isinstance(keys, Keys) and keys.nullable:
        raise InvalidParameterError("A key with a missing value cannot be written in blocks.", fix="leave it out.")
    if bound is not None and bound.by == "sampling":
        raise InvalidParameterError("Rows are not sampled for answers in files.", fix='leave by="sampling" out.')
    for name, aggregate in arrangement.apart:
        if aggregate.finds:
            raise NotDeclaredError(
                f"How many values a person brings to {name} is not found for answers in files.",
                fix="say so: count_distinct(column, at_most=…).",
            )
        if not aggregate.in_blocks:
            raise NotDeclaredError(
                f"{name} needs many cells for each group, which are not written in blocks.",
                fix="ask counts, sums, means and what follows from them; quantiles and histograms with release(…).",
            )


@final
@dataclass(frozen=True, slots=True)
class _Column:
    """One column of the answer that is read from the cells of a split, or is one cell of its own."""

    name: str
    aggregate: Statistic | Measured
    place: int
    """The number of the split, or of the column among those of their own."""

    @property
    def steady(self) -> bool:
        """Whether its error is the same for all groups."""
        return not self.aggregate.quotient


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Noisy:
    """Blocks of exact integers become blocks of noisy numbers. Travels to the executors, and so does the secret."""

    secret: bytes
    keys: pa.Schema
    splits: tuple[tuple[Split, CellNoise], ...]
    apart: tuple[tuple[CellNoise, int], ...]
    """The noise of each column of its own, and the grid."""
    columns: tuple[_Column, ...]
    grid: int
    bias: Bias | None

    @property
    def schema(self) -> pa.Schema:
        """The keys, and each column."""
        numbers = [(name, pa.float64()) for each in self.columns for name in self._titles(each)]
        return pa.schema([*self.keys, *(pa.field(*number) for number in numbers)])

    def _titles(self, each: _Column) -> list[str]:
        steady = each.steady and self.bias is None
        return [each.name, *([] if steady else [f"{each.name}_{part}" for part in ("error", "low", "high")])]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Noise on every block."""
        for batch in batches:
            if batch.num_rows:
                yield self._noised(batch)

    def _noised(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        bits = bound_bits(self.secret, batch.serialize().to_pybytes())
        number = len(self.keys)
        exact = iter([integers(one) for one in batch.columns[number:]])
        total = next(exact) if self.splits else np.zeros(0, np.int64)
        noisy = []
        for split, noise in self.splits:
            others = [next(exact) for _ in range(split.cells - 1)]
            first = total - sum(others, np.zeros(batch.num_rows, np.int64))
            noisy.append(noise.noisy(np.stack([first, *others], axis=1), bits, self.grid))
        own = [noise.noisy(next(exact)[:, None], bits, grid) for noise, grid in self.apart]
        arrays: list[Any] = [one.cast(field.type) for one, field in zip(batch.columns, self.keys, strict=False)]
        for each in self.columns:
            if isinstance(each.aggregate, Statistic):
                split = self.splits[each.place][0]
                shown = each.aggregate.read(each.name, split, noisy[each.place])
                if self.bias is not None:
                    shown = self.bias.widened(shown, each.aggregate, split, noisy[each.place])
            else:
                shown = own[each.place].count(each.name, np.ones(1), each.aggregate.cell)
            arrays += [pa.array(part) for part in self._parts(shown)[: len(self._titles(each))]]
        return pa.record_batch(arrays, schema=self.schema)

    @staticmethod
    def _parts(shown: AnswerColumn) -> list[Any]:
        return [shown.values, shown.errors, shown.low, shown.high]


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Selected:
    """Blocks of keys with numbers of people become blocks of the keys that are kept."""

    secret: bytes
    schema: pa.Schema
    selection: PartitionSelection

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Partition selection in every block."""
        for batch in batches:
            if batch.num_rows:
                bits = bound_bits(self.secret, batch.serialize().to_pybytes())
                kept = self.selection.keep(integers(batch.column(batch.num_columns - 1)), bits)
                keys = [one.cast(field.type) for one, field in zip(batch.columns, self.schema, strict=False)]
                yield pa.record_batch(keys, schema=self.schema).filter(pa.array(kept))


@final
@dataclass(frozen=True, slots=True)
class _Found:
    """What a release in files learnt: the columns as they are, and what was found, in words."""

    columns: tuple[PreviewColumn, ...]
    groups: int
    rules: tuple[str, ...]


def released_to(run: Run, keys: Keys | StoredKeys | None, destination: Destination, about: Mapping[str, Any]) -> _Found:
    """Write the answer to a plan that was charged; ``about`` is written beside it, for people."""
    engine, columns = run.rows.engine, tuple(run.rows.schema.usable(name) for name in run.by)
    said: tuple[str, ...] = ()
    with destination.being_written() as place, engine.snapshot():
        chosen = _found_keys(run, columns, place) if keys is None else keys
        with _stored(run, columns, chosen) as stored:
            groups = Groups(run.rows, run.by, stored, None, run.bound)
            settled = run
            if run.plan.contributions is not None:
                settled, rule = run.settled(stored.counted(), groups, run.plan.contributions, held=False)
                groups = replace(groups, bound=settled.bound)
                said = (rule,)
            blocks = _blocks(settled, columns)
            sums = Blockwise(
                _summands(settled, groups, stored),
                lambda relation: _sums(relation, len(run.by), _width(settled)),
                [f"k{i}" for i in range(len(run.by))],
                blocks,
            )
            engine.store(sums, place / _GROUPS, progress=run.progress)
        number = pads.dataset(place / _GROUPS, format="parquet").count_rows()
        shown = _foretold(settled)
        found = _Found(shown, number, said)
        told_about = {**about, "groups": number, "columns": [column.to_dict() for column in shown]}
        (place / _GROUPS / _ABOUT).write_text(json.dumps(told_about, indent=2, ensure_ascii=False), encoding="utf-8")
    return found


def _found_keys(run: Run, columns: Sequence[Column], place: Path) -> StoredKeys:
    """The keys that enough people have, found where they are and written for the engine to read; none with a NULL."""
    selection = run.plan.selection
    assert isinstance(selection, PartitionSelection)  # noqa: S101  # planned whenever no keys are given
    engine, called = run.rows.engine, [f"k{i}" for i in range(len(columns))]
    everybody = Groups(run.rows, run.by, EVERYTHING, None, run.bound)
    people = Measuring(everybody, run.plan.grid, run.chance).keys_sql()
    present = [exp.not_(column(name).is_(exp.null())) for name in called]
    kept = _Selected(_secret(run), key_types(columns), selection)
    whole_rows = exp.select(*map(column, called), named(typed(column("n"), BIGINT), "n"))
    counted = Blockwise(
        whole_rows.from_(sub(people, "a"), copy=False).where(*present, copy=False),
        lambda relation: exp.select(*map(column, called), column("n")).from_(relation, copy=False),
        called,
        kept,
    )
    engine.store(counted, place / _FOUND, progress=run.progress)
    relation, _, description = alongside(engine, place / _FOUND, "found keys")
    shown = exp.select(*map(column, called)).from_(sub(relation, "s"), copy=False)
    return StoredKeys(engine, shown, tuple(columns), description, "found")


@contextmanager
def _stored(run: Run, columns: Sequence[Column], keys: Keys | StoredKeys) -> Iterator[StoredKeys]:
    """The keys where the engine reads them."""
    if isinstance(keys, StoredKeys):
        yield keys
        return
    engine, names = run.rows.engine, [f"k{i}" for i in range(len(columns))]
    published = engine.publish("keys", keys.table.rename_columns(names))
    try:
        relation = exp.select(*map(column, names)).from_(published.copy())
        yield StoredKeys(engine, relation, tuple(columns), "keys", "keys")
    finally:
        engine.withdraw(published)


def _secret(run: Run) -> bytes:
    return run.bits.words(_SECRET).tobytes()


def _blocks(run: Run, columns: Sequence[Column]) -> _Noisy:
    """What is done to every block, made of the plan alone."""
    plan, measurements = run.plan, run.plan.arrangement
    shown = {name: [_Column(name, each, measurements.source[name])] for name, each in measurements.statistics}
    shown |= {name: [_Column(name, each, place)] for place, (name, each) in enumerate(measurements.apart)}
    keys = pa.schema([(column.name, type_) for column, type_ in zip(columns, key_types(columns).types, strict=True)])
    apart = [(plan.others[name], plan.grid_of(each)) for name, each in measurements.apart]
    return _Noisy(
        _secret(run),
        keys,
        tuple(zip(measurements.splits, plan.splits, strict=True)),
        tuple((noise, grid) for noise, grid in apart if isinstance(noise, CellNoise)),
        tuple(measurements.in_order(shown)),
        plan.grid,
        run.bias,
    )


def _width(run: Run) -> int:
    """How many integers each group has."""
    splits = run.plan.arrangement.splits
    return (1 + sum(split.cells - 1 for split in splits) if splits else 0) + len(run.plan.arrangement.apart)


def _summands(run: Run, groups: Groups, keys: StoredKeys) -> exp.Select:
    """The integers of every group, one measurement after the other, and a row of zeros for every key that is named.

    Columns: the parts of the key, the integers ``c0``, ``c1`` and so on, and ``named``, which is 1 for a key.
    """
    measuring = Measuring(groups, run.plan.grid, run.chance.of("sums"))
    splits = run.plan.arrangement.splits
    measured = [measuring.cells_sql(splits)] if splits else []
    for name, aggregate in run.plan.arrangement.apart:
        apart = replace(measuring, grid=run.plan.grid_of(aggregate), chance=run.chance.of(f"column {name}"))
        measured.append(aggregate.statement(apart))
    width, number = _width(run), len(run.by)
    parts, done = [], 0
    for select in measured:
        sums = [one.alias for one in select.expressions if one.alias_or_name != "g"]
        here = dict(zip(range(done, done + len(sums)), sums, strict=True))
        done += len(sums)
        cells = [typed(column(here[i]), BIGINT) if i in here else whole(0) for i in range(width)]
        parts.append(_row(_key(number), cells, named_key=0).from_(sub(select, "q"), copy=False))
    zeros = _row([column(f"k{i}") for i in range(number)], [whole(0)] * width, named_key=1)
    union: exp.Query = zeros.from_(sub(keys.relation.copy(), "q"), copy=False)
    for part in parts:
        union = exp.union(union, part, distinct=False, copy=False)
    return exp.select("*").from_(sub(union, "v"), copy=False)


def _key(number: int) -> list[exp.Expression]:
    """The parts of a key, from what its group is called."""
    if number == 1:
        return [column("g")]
    return [exp.Dot(this=exp.paren(column("g", "q")), expression=quoted(f"k{i}")) for i in range(number)]


def _row(keys: Sequence[exp.Expression], cells: Sequence[exp.Expression], *, named_key: int) -> exp.Select:
    shown = [named(key, f"k{i}") for i, key in enumerate(keys)]
    shown += [named(cell.copy(), f"c{i}") for i, cell in enumerate(cells)]
    return exp.select(*shown, named(whole(named_key), "named"))


def _sums(relation: exp.Expression, number: int, width: int) -> exp.Select:
    """One row for each named key, in exact integers."""
    keys = [column(f"k{i}") for i in range(number)]
    sums = [named(typed(exp.Sum(this=column(f"c{i}")), BIGINT), f"c{i}") for i in range(width)]
    is_named = exp.GT(this=exp.Max(this=column("named")), expression=whole(0))
    return exp.select(*keys, *sums).from_(relation, copy=False).group_by(*keys).having(is_named)


def _foretold(run: Run) -> tuple[PreviewColumn, ...]:
    """How exact each column is, now that all bounds are known."""
    plan, measurements = run.plan, run.plan.arrangement
    columns = {name: each.foreseen(name, plan.others[name], plan.grid_of(each)) for name, each in measurements.apart}
    for name, statistic in measurements.statistics:
        place = measurements.source[name]
        columns[name] = [statistic.foreseen(name, measurements.splits[place], plan.splits[place], plan.grid)]
    return tuple(measurements.in_order(columns))


def to_record(written: Written) -> dict[str, Any]:
    """What is known about the files with JSON types only, for the ledger."""
    asked = written.asked
    columns = [
        {
            "name": each.name,
            "how": each.how,
            "error": _out(each.error),
            "interval": _out(each.interval),
            "by_size": [[size, _out(error), _out(half)] for size, error, half in each.by_size],
        }
        for each in written.columns
    ]
    return {
        "folder": str(written.folder),
        "groups": written.groups,
        "written": columns,
        "question": written.question,
        **rules_out(written.rules),
        "asked": None if asked is None else [write_number(asked.epsilon), write_number(asked.delta)],
    }


def from_record(record: Any, receipt: Receipt) -> Written:
    """What :func:`to_record` wrote down, with the receipt that paid for it."""
    try:
        columns = [
            PreviewColumn(
                each["name"],
                each["how"],
                _in(each["error"]),
                _in(each["interval"]),
                tuple((size, float(error), float(half)) for size, error, half in each["by_size"]),
            )
            for each in record["written"]
        ]
        asked = record["asked"]
        return Written(
            Path(record["folder"]),
            int(record["groups"]),
            tuple(columns),
            record["question"],
            receipt,
            rules_in(record, {}),
            None if asked is None else Budget(*map(read_number, asked)),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise LedgerDamagedError(
            f"What the ledger kept for charge {receipt.sequence} is not an answer that was written to files.",
            fix="ask under another request name.",
        ) from None


def _out(number: float | None) -> float | str | None:
    return number if number is None or np.isfinite(number) else str(number)


def _in(number: Any) -> float | None:
    return None if number is None else float(number)

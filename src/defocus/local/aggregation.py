"""Whatever holds reports, as counts of one design: what estimates are made of."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sqlglot import exp

from defocus.engines.files import find
from defocus.engines.sources import source
from defocus.engines.syntax import column, named, rows_of, typed, whole
from defocus.errors import InvalidParameterError, MismatchedOracleError, SourceError, UnreadableDescriptionError
from defocus.local.designs import Describes, Design, design_of, from_json, to_json
from defocus.local.layouts import BitRows, Cells, Layout
from defocus.local.reports import Reports
from defocus.local.servers import Server
from defocus.local.servers.counts import State, Tally, no_reports

__all__ = [
    "WORD",
    "Countable",
    "check_columns",
    "count_files",
    "counted",
    "counting",
    "description",
    "from_arrow",
    "to_arrow",
    "words_of",
    "write_parquet",
]


Countable: TypeAlias = Reports | State | Server | bytes | str | Iterable[bytes | str]
"""Reports, one message or many, or what a server counted."""


def counted(design: Design, given: Countable) -> State:
    """The counts of reports; messages that are none of this design are rejected and counted as such.

    What is no message at all, such as a value that nobody randomised, is refused.
    """
    server = Server(design)
    if isinstance(given, Server):
        server.merge(given.state())
    elif isinstance(given, State):
        server.merge(given)
    elif isinstance(given, Reports):
        server.add_reports(given)
    elif isinstance(given, bytes | bytearray | memoryview | str):
        server.add(given)
    else:
        server.add_many(_messages(given))
    return server.state()


def _messages(given: Any) -> Iterator[Any]:
    if not isinstance(given, Iterable):
        raise _refused(given)
    for message in given:
        if not isinstance(message, bytes | bytearray | memoryview | str):
            raise _refused(message)
        yield message


def _refused(given: object) -> InvalidParameterError:
    return InvalidParameterError(
        f"Reports are needed, but there is a value of type {type(given).__name__}.",
        fix="randomise values first: oracle.estimate(oracle.encode(values)).",
    )


_KEY = b"defocus.local"
"""Where the metadata of a table has the description."""
WORD = 32
"""Bits of a word, which a column holds one of."""


def to_arrow(reports: Reports) -> Any:
    """An Arrow table with the description in its metadata. All columns are signed 64-bit integers, which engines share.

    They are ``cell``; or ``row`` (if there are several) and words of 32 bits ``w0``, ``w1``, …; or ``value``.

    >>> from defocus import local
    >>> asked = local.oracle("k-rr", ["red", "green", "blue"], epsilon=2)
    >>> reports = asked.encode(["red", "blue"])
    >>> to_arrow(reports).num_rows
    2
    """
    pa = import_module("pyarrow")
    layout, payload = reports.design.layout, reports.payload
    if isinstance(layout, Cells):
        columns = {"cell": payload}
    elif isinstance(layout, BitRows):
        padded = np.zeros((len(payload), 4 * words_of(layout)), np.uint8)
        padded[:, : layout.length - layout.prefix] = payload[:, layout.prefix :]
        words = padded.view("<u4")
        columns = {"row": layout.row(payload)} if layout.rows > 1 else {}
        columns |= {f"w{i}": words[:, i] for i in range(words.shape[1])}
    else:
        columns = {"value": payload}
    table = pa.table({name: pa.array(column.astype(np.int64)) for name, column in columns.items()})
    return table.replace_schema_metadata({_KEY: to_json(reports.design).encode()})


def from_arrow(table: Any) -> Reports:
    """Read a table back. Its columns must be those that the description in its metadata asks for.

    >>> from defocus import local
    >>> asked = local.oracle("k-rr", ["red", "green", "blue"], epsilon=2)
    >>> reports = asked.encode(["red", "blue"])
    >>> len(from_arrow(to_arrow(reports)))
    2
    """
    design = description(table.schema)
    check_columns(table.schema, design)
    layout = design.layout
    if any(column.null_count for column in table.columns):
        raise _unread("one is missing")
    columns = {name: table.column(name).to_numpy() for name in table.column_names}
    if isinstance(layout, Cells):
        _within(columns["cell"], 1 << 8 * layout.length)
        return Reports(design, columns["cell"].astype(layout.dtype))
    if not isinstance(layout, BitRows):
        return Reports(design, columns["value"].astype("<i8"))
    rows = columns.pop("row", np.zeros(len(table), np.int64))
    _within(rows, 1 << 8 * layout.prefix)
    for word in columns.values():
        _within(word, 1 << WORD)
    words = np.stack([columns[f"w{i}"] for i in range(words_of(layout))], axis=1).astype("<u4")
    packed = words.view(np.uint8)
    if packed[:, layout.length - layout.prefix :].any():
        raise _unread("one has more bits than the oracle")
    return Reports(design, layout.with_rows(rows, packed[:, : layout.length - layout.prefix]))


def write_parquet(reports: Reports, path: str | Path) -> None:
    """Write a Parquet file.

    >>> import tempfile, pathlib
    >>> from defocus import local
    >>> asked = local.oracle("k-rr", ["red", "green", "blue"], epsilon=2)
    >>> reports = asked.encode(["red", "blue"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_parquet(reports, f"{folder}/monday.parquet")
    ...     print(pathlib.Path(folder, "monday.parquet").exists())
    True
    """
    import_module("pyarrow.parquet").write_table(to_arrow(reports), str(path), compression="zstd")


def description(schema: Any) -> Design:
    """The description in a schema's metadata."""
    if not schema.metadata or _KEY not in schema.metadata:
        raise _unread("there is no description of an oracle in the metadata")
    return from_json(schema.metadata[_KEY])


def check_columns(schema: Any, design: Design) -> None:
    """Refuse columns that are not those of the design's reports. Their number is compared before any is named."""
    layout, names = design.layout, schema.names
    if isinstance(layout, BitRows):
        right = len(names) == words_of(layout) + (layout.rows > 1)
        right = right and names == ["row"] * (layout.rows > 1) + [f"w{i}" for i in range(words_of(layout))]
    else:
        right = names == ["cell" if isinstance(layout, Cells) else "value"]
    if not right or any(str(kind) != "int64" for kind in schema.types):
        raise _unread("the columns are not those of the oracle in their metadata")


def _within(numbers: np.ndarray[Any, np.dtype[np.int64]], limit: int) -> None:
    if numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) < limit:
        raise _unread("one is out of the range of its column")


def words_of(layout: BitRows) -> int:
    """How many words hold the bits of a row."""
    return -(-layout.width // WORD)


def _unread(why: str) -> UnreadableDescriptionError:
    return UnreadableDescriptionError(why, what="The reports", writer="to_arrow or write_parquet")


_LOW = (1 << 32) - 1
"""The largest word, and the low half of a sum of squares."""
_WIDE = exp.DataType.build("DECIMAL(19, 0)")
"""Holds every 64-bit integer; a product of two is exact."""


def count_files(
    design: Design | Describes,
    paths: "str | Path | Sequence[str | Path]",
    *,
    engine: Any = None,
    memory: str | None = None,
    threads: int | None = None,
) -> State:
    """Count the reports of Parquet files in the engine, without reading them into Python.

    ``paths`` is a path, a folder, a glob or a list of paths, and ``engine``, ``memory`` and ``threads`` are as for
    tables: DuckDB in this process, on all cores and out of core, by default; a Spark session or where Spark runs, such
    as ``"spark://host:7077"``, for Spark, which then must see the files under the same paths. Reports that no client
    makes are left out and counted; a file with other columns than those of :func:`to_arrow`, or of another oracle, is
    refused.

    >>> import tempfile
    >>> from defocus import local
    >>> asked = local.oracle("k-rr", ["red", "green", "blue"], epsilon=2)
    >>> reports = asked.encode(["red", "blue"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_parquet(reports, f"{folder}/monday.parquet")
    ...     print(count_files(asked, f"{folder}/*.parquet"))
    <2 reports of k-rr counted, 0 rejected>
    """
    asked = design_of(design)
    if not isinstance(paths, str | Path) and not _listed(paths):
        return State(asked, no_reports(asked.layout))
    files = find(paths)
    if files.format != "parquet":
        raise SourceError("Reports are counted in Parquet files only.", fix="write them with write_parquet.")
    total = sum(_rows(path, asked) for path in files.paths)
    tally = no_reports(asked.layout)
    if total:
        opened = source(list(files.paths), engine=engine, memory=memory, threads=threads)
        with contextlib.closing(opened.engine):
            _fill(asked.layout, tally, opened.engine.run(counting(asked.layout, opened.relation)))
    left = total - State(asked, tally).reports
    if left < 0:
        raise UnreadableDescriptionError(
            "the engine counted more than the files hold", what="The reports", writer="write_parquet"
        )
    return State(asked, tally, {"invalid": left} if left else {})


def counting(layout: Layout, relation: exp.Expression) -> exp.Select:
    """The query that counts the valid reports of a relation: by cell; by row and bit, and in all; or sums.

    >>> counting(Cells(5), exp.to_table("reports")).sql("duckdb")[:43]
    'SELECT "cell", COUNT(*) AS "n" FROM reports'
    """
    everyone = named(exp.Count(this=exp.Star()), "n")
    if isinstance(layout, Cells):
        cell = column("cell")
        return _from(relation, [cell, everyone], [_between("cell", 0, layout.cells - 1)]).group_by(cell)
    if isinstance(layout, BitRows):
        return _bits(layout, relation, everyone)
    wide = exp.Cast(this=column("value"), to=_WIDE.copy())
    sums = [
        named(exp.Sum(this=column("value")), "total"),
        named(exp.Sum(this=exp.Mul(this=wide, expression=wide.copy())), "squares"),
    ]
    return _from(relation, [everyone, *sums], [_between("value", -layout.limit, layout.limit)])


def _bits(layout: BitRows, relation: exp.Expression, everyone: exp.Expression) -> exp.Select:
    words, several = [f"w{i}" for i in range(words_of(layout))], layout.rows > 1
    last = (1 << (layout.width - 1) % WORD + 1) - 1
    tests = [_between(word, 0, _LOW) for word in words[:-1]] + [_between(words[-1], 0, last)]
    if several:
        tests.append(_between("row", 0, layout.rows - 1))
    if layout.ones is not None:
        counts = [_wide_count(word) for word in words]
        held = counts[0]
        for more in counts[1:]:
            held = exp.Add(this=held, expression=more)
        tests.append(exp.EQ(this=held, expression=whole(layout.ones)))
    ones = [named(_ones(f"w{i // WORD}", 1 << i % WORD), f"b{i}") for i in range(layout.width)]
    row = [column("row")] if several else []
    query = _from(relation, [*row, *ones, everyone], tests)
    return query.group_by(*row) if row else query


def _ones(word: str, bit: int) -> exp.Expression:
    """How many reports have this bit: those for which the case is not NULL are counted."""
    masked = exp.Paren(this=exp.BitwiseAnd(this=column(word), expression=whole(bit)))
    one = exp.If(this=exp.NEQ(this=masked, expression=whole(0)), true=whole(1))
    return exp.Count(this=exp.Case(ifs=[one]))


def _wide_count(word: str) -> exp.Expression:
    """The ones of a word. Engines count them in a byte, in which a sum would not fit."""
    return typed(exp.Anonymous(this="BIT_COUNT", expressions=[column(word)]), exp.DataType.Type.BIGINT)


def _between(name: str, low: int, high: int) -> exp.Expression:
    return exp.Between(this=column(name), low=whole(low), high=whole(high))


def _from(relation: exp.Expression, shown: Sequence[exp.Expression], tests: Sequence[exp.Expression]) -> exp.Select:
    return exp.select(*shown).from_(rows_of(relation), copy=False).where(exp.and_(*tests))


def _fill(layout: Layout, tally: Tally, answer: pa.Table) -> None:
    """Put what the engine counted into a tally of nothing."""
    for row in zip(*(part.to_pylist() for part in answer.columns), strict=True):
        if isinstance(layout, Cells):
            tally[int(row[0])] = int(row[1])
        elif isinstance(layout, BitRows):
            at, counts = (int(row[0]), row[1:]) if layout.rows > 1 else (0, row)
            tally[at] = [int(count) for count in counts]
        elif row[0]:
            squares = int(row[2])
            tally[:] = int(row[0]), int(row[1]), squares & _LOW, squares >> 32


def _rows(path: Path, design: Design) -> int:
    """How many reports a file holds, if it holds reports of this design: all of that is in its footer."""
    footer = None
    with contextlib.suppress(pa.ArrowException, OSError):
        footer = pq.read_metadata(path)
    if footer is None:
        raise SourceError(f"{path.name!r:.120} is not a Parquet file that can be read.", fix="write the file again.")
    schema = footer.schema.to_arrow_schema()
    columns = description(schema)
    if columns.digest != design.digest:
        raise MismatchedOracleError("Reports", columns.digest.hex(), design.digest.hex())
    check_columns(schema, design)
    return int(footer.num_rows)


def _listed(paths: object) -> bool:
    """Whether there are any."""
    if not isinstance(paths, Sequence) or not all(isinstance(path, str | Path) for path in paths):
        raise InvalidParameterError(
            "Files of reports are given as a path, a folder, a glob or a list of paths.",
            fix='pass for example "reports/*.parquet".',
        )
    return len(paths) > 0

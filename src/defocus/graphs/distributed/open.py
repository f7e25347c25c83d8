"""Opening a graph in an engine: which data, which engine, which columns; and what can be asked of it there."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import duckdb
import pyarrow as pa

from defocus.engines import mariadb, postgresql
from defocus.engines.frames import library
from defocus.engines.origins import is_address
from defocus.engines.schema import Kind
from defocus.engines.sources import Source
from defocus.engines.sources import source as rows_of
from defocus.engines.spark.sessions import is_frame, is_master, is_session
from defocus.errors import InvalidParameterError, SourceError
from defocus.graphs.data import Data
from defocus.graphs.distributed.edges import KINDS, Side, numbered, values
from defocus.graphs.distributed.graph import EngineArcs, EngineGraph
from defocus.graphs.edge_files import EdgeColumns, EdgeSource, frame_columns
from defocus.graphs.edge_texts import is_number
from defocus.graphs.node_names import Names, listed_in
from defocus.graphs.question import InSql, Question
from defocus.privacy.units import Unit

__all__ = ["EngineEdges", "engine_edges", "in_engine", "supported"]

_DUCKDB, _SERVERS = "duckdb", ("postgresql", "mariadb")
_HERE = ("networkx", "igraph", "scipy", "numpy")


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EngineEdges:
    """A list of edges that stays in an engine.

    Args:
        source: the rows.
        sides: the columns of the two ends.
        described: what is public about them, as of any list of edges; it has no rows to read.
    """

    source: Source
    sides: tuple[Side, Side]
    described: EdgeSource

    def data(self, names: Names, *, directed: bool) -> Data:
        """The private data, which is counted and never read."""
        engine = self.source.engine
        sides = [replace(side, written=names.written and side.kind is Kind.TEXT) for side in self.sides]
        ends = numbered(engine, self.source.relation, sides, names)
        kind = EngineArcs if directed else EngineGraph
        return Data.elsewhere(kind(len(names.labels), engine, ends), names.labels, engine)

    def check(self, unit: Unit, *, weights: str | None, time: str | None) -> None:
        """Refuse what has no form in SQL."""
        if unit.kind != "edge" or weights is not None or time is not None:
            raise InvalidParameterError(
                f"In an engine a graph protects edges, without weights and times, and this one protects {unit}.",
                fix="leave engine= out, so that edges are read into memory; or pass unit=dp.edge().",
            )


def _server(data: Any) -> str | None:
    return next(
        (name for name, said in zip(_SERVERS, (postgresql, mariadb), strict=True) if said.is_address(data)), None
    )


def _named(engine: Any) -> str | None:
    return engine if isinstance(engine, str) and engine in _SERVERS else None


def in_engine(data: Any, engine: Any) -> bool:
    """Whether edges stay in an engine: where one is named, or nothing else can hold the data."""
    there = is_address(data) or is_frame(data) or is_session(data) or isinstance(data, duckdb.DuckDBPyConnection)
    return engine is not None or there


def engine_edges(
    data: Any,
    engine: Any,
    *,
    ends: Sequence[str] | None = None,
    table: str | None = None,
    memory: str | None = None,
    threads: int | None = None,
) -> EngineEdges:
    """The edges that ``data`` holds, in the engine that is named or that holds them. No row is read.

    Args:
        data: what tables can be opened from: Parquet or CSV files, a DuckDB file or connection, a server's address, an
            Arrow, pandas or polars table, a Spark data frame or session.
        engine: "duckdb", "postgresql", "mariadb", a Spark session, or where Spark runs.
        ends: the names of the two columns that hold the ends of edges.
        table: which table of a database.
        memory: how much memory DuckDB may use.
        threads: how many threads it may use.
    """
    _check(data, engine)
    spark = None if engine in (_DUCKDB, *_SERVERS) else engine
    rows = rows_of(data, table=table, engine=spark, memory=memory, threads=threads)
    try:
        written = _is_written(rows)
        if written:
            _check_names(rows.schema.names)
        left, right, _, _ = frame_columns(rows.schema.names, ends=ends, weights=None, time=None, shown=not written)
        _check_objects(data, (left, right))
        one, other = (Side(name, rows.schema[name].kind) for name in (left, right))
        _check_kinds(one, other)
        return EngineEdges(rows, (one, other), _described(data, rows, one, other))
    except BaseException:
        rows.engine.close()
        raise


def supported(question: Question) -> None:
    """Refuse a question that has no form in SQL, before anything is charged."""
    if isinstance(question, InSql) and question.in_sql:
        return
    fix = (
        "leave engine= out when the graph is opened, so that edges are read into memory; in an engine ask edges,"
        " degrees, degree_sequence, degree_histogram, stars, triangles, clustering, top_degrees, ergm without gwesp, or"
        " several of them by joint or subgraph_counts."
    )
    raise InvalidParameterError(
        f"There is no way to compute this in an engine: {question.words:.120}.", fix=fix, command=fix.replace("_", "-")
    )


def _described(data: Any, rows: Source, one: Side, other: Side) -> EdgeSource:
    written = _is_written(rows)
    head = EdgeColumns(*(pa.array([], KINDS[side.kind]) for side in (one, other)))

    def listed() -> Any:
        if Kind.NUMBER in {one.kind, other.kind}:
            raise InvalidParameterError(
                "The ends of edges are numbers with a fraction, which are not listed in an engine.",
                fix="list the nodes: nodes=[…]; or convert the columns to whole numbers; or leave engine= out.",
            )
        values_of_ends = [rows.engine.run(values(rows.relation, side)).column("value") for side in (one, other)]
        columns = [
            each.combine_chunks().cast(KINDS[s.kind]) for each, s in zip(values_of_ends, (one, other), strict=True)
        ]
        return listed_in(*columns, written=written)

    return EdgeSource(
        "table", _called(data, rows), head, lambda: head, listed, written=written, ends=(one.name, other.name)
    )


def _called(data: Any, rows: Source) -> str | None:
    """What the data is called where nobody says. A file is called as in memory, so that both have one ledger."""
    if rows.origin.database is not None or (isinstance(data, str | Path) and Path(data).is_file()):
        return Path(data).stem
    elsewhere = rows.origin.files is not None or rows.origin.remote or rows.origin.table is not None
    return rows.name if elsewhere else None


def _is_written(rows: Source) -> bool:
    """Whether text may stand for whole numbers: in CSV, where all columns are text."""
    if rows.origin.files is not None:
        return rows.origin.files.format != "parquet"
    ending = rows.origin.remote[0].rstrip("/").lower().removesuffix(".gz") if rows.origin.remote else ""
    return ending.endswith((".csv", ".tsv"))


def _check(data: Any, engine: Any) -> None:
    """Refuse what is not an engine, one that cannot reach the data, and data that is in memory anyway."""
    supported_here = engine is None or engine in (_DUCKDB, *_SERVERS) or is_session(engine) or is_master(engine)
    if not supported_here:
        raise SourceError(
            f"engine= is {engine!r:.60}, which is no engine.",
            fix='pass "duckdb", "postgresql", "mariadb", a Spark session, or where Spark runs, such as'
            ' "spark://host:7077"; or leave it out, so that edges are read into memory.',
        )
    elsewhere = is_address(data) or is_frame(data) or is_session(data)
    if (engine == _DUCKDB and elsewhere) or (_server(data) != _named(engine) and engine is not None):
        raise SourceError(
            f'engine="{engine!s:.40}" cannot compute where these edges are.',
            fix="leave engine= out, so that the data decides; or export the edges to Parquet.",
        )
    pairs = isinstance(data, list | tuple | set | frozenset) and not all(isinstance(one, str | Path) for one in data)
    if pairs or library(data) in _HERE:
        raise SourceError(
            f"This graph, of type {type(data).__name__}, is in memory already, so no engine is needed.",
            fix="leave engine= out; or write the edges to Parquet and open that.",
        )


def _check_names(names: Sequence[str]) -> None:
    """Refuse a first line of text that may be an edge; there is no word of it in the refusal."""
    if any(map(is_number, names)):
        raise InvalidParameterError(
            "The first line of these files does not look like the names of columns.",
            fix="write the names of columns as the first line; or leave engine= out, and pass header=False.",
        )


def _check_kinds(*sides: Side) -> None:
    for side in sides:
        if side.kind not in KINDS:
            raise SourceError(
                f"The column {side.name!r:.60} is of kind {side.kind}, by which nodes are not called in an engine.",
                fix="convert it to whole numbers or text, or leave engine= out.",
            )


def _check_objects(data: Any, names: Sequence[str]) -> None:
    """Refuse Python objects, which engines read as text, and categories, whose type pandas chooses by their values."""
    kinds: list[str] = []
    if library(data) == "pandas":
        kinds = ["category" if hasattr(data[n].dtype, "categories") else str(data[n].dtype) for n in names]
    elif library(data) == "polars":
        kinds = [data.get_column(name).dtype.base_type().__name__.lower() for name in names]
    if {"object", "category", "int128", "uint128"} & set(kinds):
        raise SourceError(
            "A column of Python objects, or of categories of pandas, has no type that engines know.",
            fix="give both columns of ends a type, such as Int64 or string; or leave engine= out.",
        )

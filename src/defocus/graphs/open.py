"""Opening a private graph: its edges, its public nodes, its unit, and the ledger that answers for it.

A ledger adds up what may be known about one edge. The same rows read from other columns, or with a direction, have
other edges: one edge of the first reading may be a hundred of the second. So a ledger is made for one reading.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, final

import numpy as np

from defocus.errors import InvalidParameterError, NotDeclaredError
from defocus.graphs.data import RULES, Data, Pairs, checked_nodes
from defocus.graphs.distributed.open import EngineEdges, engine_edges, in_engine
from defocus.graphs.edge_files import EdgeColumns, EdgeSource
from defocus.graphs.edge_reader import source, times_of, weights_of
from defocus.graphs.kernels.rows import ready
from defocus.graphs.network import Network
from defocus.graphs.node_names import Lines, Names, is_text, listed_in
from defocus.graphs.public import Public
from defocus.ledger import Ledger
from defocus.ledger.creation import beside, check_kinds, exists
from defocus.ledger.declarations import purposes_of
from defocus.ledger.identity import identity
from defocus.ledger.text import line
from defocus.privacy.budgets import Budget
from defocus.privacy.translation import PERSONS
from defocus.privacy.units import Unit, node

__all__ = ["AS_LISTED", "Holding", "booked", "called", "open_graph", "place_of"]


AS_LISTED = "as listed"
"""Says that the set of nodes is public, and is that of the nodes in the data. On a terminal it has a hyphen."""

_LEAST, _MOST = Fraction(10) ** -200, Fraction(10) ** 200
"""Between which bounds of weights can be, so that no step of theirs vanishes or overflows."""

_KINDS = ("edge", "node", "weight", "event")


def open_graph(
    data: Any,
    *,
    unit: Unit | None = None,
    budget: Budget | None = None,
    nodes: Any = None,
    ledger: Ledger | str | Path | None = None,
    name: str | None = None,
    ends: Sequence[str] | None = None,
    directed: bool | None = None,
    weights: str | None = None,
    time: str | None = None,
    table: str | None = None,
    header: bool | None = None,
    purposes: str | Sequence[str] | None = None,
    anchor_file: str | Path | None = None,
    engine: Any = None,
    memory: str | None = None,
    threads: int | None = None,
) -> Network:
    """Open a graph about people. No edge is looked at, unless the nodes are said to be public as listed.

    Args:
        data: a Parquet, CSV, TSV or DuckDB file, or a list of edges between blanks (.txt); a pandas, polars or Arrow
            table; an array, two columns or a list of pairs; a sparse matrix; or a graph of networkx or igraph. In an
            engine also folders and lists of files, a DuckDB connection, a server's address, or a Spark data frame or
            session.
        unit: what one person is: ``dp.edge()``, ``dp.node()``, ``dp.weight(bound=…)`` or ``dp.item()``.
        budget: how much may ever be lost about one of them, by all releases together.
        nodes: the public nodes: how many, numbered 0, 1, 2, …; or a list of their names; or "as listed", which says
            that those in the data are public. Under node privacy, the list of all nodes, which is private; without
            one, nodes that have no edge are not known.
        ledger: where every charge is written down: a path, a PostgreSQL URL or an open ledger. Beside the data unless
            told. Where it exists, it must have been made for the same unit, budget and data, read in the same way: an
            edge between other columns, or one with a direction, is another edge.
        name: what the data is called in the ledger; the name of the file by default.
        ends: the two columns that hold the ends of an edge, such as ("from_id", "to_id").
        directed: whether edges have a direction; False also takes the direction from edges that have one.
        weights: the column, or edge attribute, of weights.
        time: likewise of times.
        table: which table of a database.
        header: whether the first line of a file of text has the names of its columns. Unless told, it has in .csv and
            .tsv, where it must not look like an edge, and has not in .txt. Without one, columns are called by their
            place: "1" and "2" are the ends, and weights="3" the third.
        purposes: what the data may be used for; then every release must name one of them.
        anchor_file: a file that notices a deleted ledger or an older copy; beside the ledger by default, better on
            another disk.
        engine: where edges are counted if they shall not be read into memory: ``"duckdb"``, a Spark session or where
            Spark runs (``"spark://host:7077"``, ``"local[4]"``, ``"spark"``), or ``"postgresql"`` or ``"mariadb"``. Use
            it for edges that are larger than memory, or that are in a database; in memory, counting is faster. Only
            some questions can be asked there, of graphs that protect edges.
        memory: how much memory the engine may use, such as "2GB".
        threads: how many threads the engine may use.

    >>> import tempfile
    >>> from defocus import Budget, edge
    >>> home = tempfile.TemporaryDirectory()
    >>> friends = [("ada", "bob"), ("bob", "cyd"), ("cyd", "ada"), ("ada", "dan")]
    >>> g = open_graph(friends, unit=edge(), budget=Budget(2), nodes=["ada", "bob", "cyd", "dan", "eve"],
    ...                ledger=f"{home.name}/friends.ledger", name="friends")
    >>> print(g)
    friends: 5 public nodes, undirected
    protects one edge, added or removed; left: ...
    >>> g.edges().preview(epsilon=0.5).error
    1.919...
    >>> g.close()
    >>> home.cleanup()
    """
    if unit is not None and not isinstance(unit, Unit):
        raise InvalidParameterError(
            f"unit must be a unit, but it is {type(unit).__name__}.",
            fix="write unit=dp.edge(), dp.node(), dp.weight(bound=…) or dp.item().",
        )
    check_kinds(budget=budget, unit=unit)
    with ExitStack() as undo:
        there = _there(data, engine, undo, ends=ends, table=table, memory=memory, threads=threads)
        said: dict[str, Any] = {"ends": ends, "weights": weights, "time": time, "table": table, "header": header}
        opened = there.described if there else source(data, **said)
        if there is not None and header is not None:
            raise InvalidParameterError(
                "header= is for files that are read into memory, and these edges stay in an engine.",
                fix="leave engine= out; or write the edges to Parquet.",
            )
        one_way = _direction(directed, opened)
        facts: dict[str, Any] = {"purposes": purposes_of(purposes), "identity": identity(data, table)}
        title = called(name, opened, ledger)
        holding = Holding(title, opened.ends, directed=one_way)
        place = place_of(data, table, unit, budget) if ledger is None else ledger
        if there is None:
            ready()
        book = None
        if unit is None:  # then only a ledger that is there can say whom it protects
            book = booked(place, holding, undo, anchor_file, unit=None, budget=budget, **facts)
            unit = book.unit
        _checked_unit(unit, weights=weights, time=time)
        if there is not None:
            there.check(unit, weights=weights, time=time)
        for convert, column in ((weights_of, opened.head.weights), (times_of, opened.head.times)):
            convert(column)  # types are refused before a ledger is made
        names, read = _nodes(nodes, unit, opened)
        private = Data(read) if there is None or names is None else there.data(names, directed=one_way)
        if book is None:
            book = booked(place, holding, undo, anchor_file, unit=unit, budget=budget, **facts)
        book = book.data(book.dataset, unit=unit, **facts)  # declared when nothing can be refused any more
        unit = book.unit
        public = Public(
            unit,
            None if unit.kind == "node" or names is None else len(names.labels),
            directed=one_way,
            listed=unit.kind != "node" or opened.listed is not None or not (nodes is None or isinstance(nodes, str)),
            named="" if unit.kind == "node" or names is None else names.digest(),
            columns=(*(ends or ()), weights, time, table),
            engine="" if there is None else there.source.engine.name,
            lines=opened.written,
        )
        network = Network(private, public, book, title, _rules(unit, public, directed=one_way))
        undo.pop_all()
    return network


def _there(
    data: Any,
    engine: Any,
    undo: ExitStack,
    *,
    memory: str | None,
    threads: int | None,
    **said: Any,
) -> EngineEdges | None:
    """The edges in an engine, if that is where they stay."""
    if in_engine(data, engine):
        edges = engine_edges(data, engine, memory=memory, threads=threads, **said)
        undo.callback(edges.source.engine.close)
        return edges
    if memory is not None or threads is not None:
        raise InvalidParameterError(
            "memory= and threads= are for an engine, and none was named: edges are read into memory.",
            fix='pass engine="duckdb" as well, or leave them out.',
        )
    return None


def _direction(directed: object, opened: EdgeSource) -> bool:
    if directed is not None and not isinstance(directed, bool):
        raise InvalidParameterError(
            f"directed must be True or False, but it is {directed!r:.60}.", fix="pass directed=True or leave it out."
        )
    if directed is None and opened.directed:
        raise NotDeclaredError(
            f"The edges of this {opened.kind} have a direction, and nobody said whether it counts.",
            fix="pass directed=True, or directed=False to leave the direction out.",
        )
    if directed and opened.directed is False:
        raise InvalidParameterError(
            f"The edges of this {opened.kind} have no direction.", fix="leave directed= out, or pass a directed graph."
        )
    return bool(directed)


def _checked_unit(unit: Unit, *, weights: str | None, time: str | None) -> None:
    if unit.kind not in _KINDS:
        raise InvalidParameterError(
            f"A graph protects edges, nodes, weights or events, not {unit}.",
            fix="pass unit=dp.edge() or unit=dp.node().",
        )
    if unit.kind == "weight" and not _LEAST <= Fraction(unit.bound or 0) <= _MOST:
        raise InvalidParameterError(
            "The bound of weights is too large or too small for floating-point numbers.",
            fix="measure weights in another unit, so that their bound is near 1.",
        )
    for kind, given, what in (("weight", weights, "weights="), ("event", time, "time=")):
        if unit.kind == kind and given is None:
            raise NotDeclaredError(
                f"This graph protects {unit}, and no column of them is named.", fix=f'pass {what}"name of the column".'
            )


def _nodes(
    nodes: Any, unit: Unit, opened: EdgeSource
) -> tuple[Names | None, Callable[[], tuple[Pairs, Sequence[Any]]]]:
    """The public names, if they are public, and how edges are read into numbers."""
    private = unit.kind == "node"
    if nodes is None and unit.kind in {"edge", "weight"}:
        raise NotDeclaredError(
            f"This graph protects {unit}, so its nodes are public, and nobody said what they are.",
            fix='pass nodes=4039 if they are numbered from 0, a list of their names, or nodes="as listed" to say that'
            " those in the data are public.",
            command="pass --nodes 4039 if they are numbered from 0, --nodes and a file with one name per line, or"
            " --nodes as-listed to say that those in the data are public.",
        )
    if isinstance(nodes, str) and nodes.replace("-", " ") != AS_LISTED:
        raise InvalidParameterError(
            f"nodes cannot be {nodes!r:.60}.", fix='pass a number, a list of names, or nodes="as listed".'
        )
    if isinstance(nodes, str) and unit.kind == "weight" and opened.written:
        raise NotDeclaredError(
            "A line of text that cannot be read is left out, so which nodes are listed may depend on weights.",
            fix="list the nodes: nodes=[…]; or pass the edges as Parquet or a frame.",
        )
    if private and not isinstance(nodes, str) and isinstance(nodes, int | np.integer):
        raise InvalidParameterError(
            f"This graph protects {unit}, so how many nodes there are is private, and nodes cannot be a number.",
            fix="leave nodes= out, or pass the list of all nodes, which stays private.",
            command="leave --nodes out, or pass a file of all nodes, one per line, which stays private.",
        )
    if nodes is None or isinstance(nodes, str):
        listed = _listed(opened, ordered=private or nodes is None)
        return (None if private or nodes is None else listed()[0]), lambda: _read(*listed())
    counted = isinstance(nodes, int | np.integer | float | bool)
    names = Names(checked_nodes(nodes) if counted else nodes, written=_written(nodes, opened), ordered=private)
    if not private:  # else whether it is refused would tell about the names
        for side in (opened.head.left, opened.head.right):
            names.check(side)
    return names, lambda: _read(names, opened.read())


def _listed(opened: EdgeSource, *, ordered: bool) -> Callable[[], tuple[Names, EdgeColumns]]:
    """The nodes that the source lists or its edges name, and the edges; read once."""
    kept: list[tuple[Names, EdgeColumns]] = []

    def found() -> tuple[Names, EdgeColumns]:
        if not kept:
            columns, written = opened.read(), opened.written
            own = opened.listed
            listed = listed_in(columns.left, columns.right, written=written) if own is None else own()
            kept.append((Names(listed, written=written, ordered=ordered), columns))
        return kept[0]

    return found


def _written(nodes: Any, opened: EdgeSource) -> bool:
    """Whether text may stand for whole numbers: by the types of the ends, never by a name."""
    texts = all(is_text(side) for side in (opened.head.left, opened.head.right))
    return opened.written or (isinstance(nodes, Lines) and not texts)


def _read(names: Names, columns: EdgeColumns) -> tuple[Pairs, Sequence[Any]]:
    left, right = (names.numbers(side) for side in (columns.left, columns.right))
    return Pairs(left, right, weights_of(columns.weights), times_of(columns.times)), names.labels


def _rules(unit: Unit, public: Public, *, directed: bool) -> tuple[str, ...]:
    """How edges are read, in sentences."""
    if unit.kind in {"weight", "event"}:
        return RULES[1:]
    way = () if not directed else ("edges have a direction: one from a to b is not one from b to a",)
    rules = () if public.listed else ("nodes without an edge are not known, and do not count",)
    return (*RULES, *way, *rules)


_DIRECTED = ", directed"
_READING = re.compile(r"(?:, ends (?:['\"].* and .*['\"]|[0-9a-f]{16}))?(?:, directed)?$")
"""What ledgers write behind the name of a graph."""
_LONGEST = 80
"""The names of two columns are written as they are up to so many characters."""


@final
@dataclass(frozen=True, slots=True)
class Holding:
    """What a ledger holds of a graph: its name, the columns of its ends in any order, and its direction.

    >>> Holding("calls", ("caller", "callee")).dataset
    "calls, ends 'callee' and 'caller'"
    >>> Holding("calls", None, directed=True).dataset
    'calls, directed'
    """

    name: str
    ends: tuple[str, str] | None
    directed: bool = False

    @property
    def dataset(self) -> str:
        """What is written into the ledger."""
        return self.name + ("" if self.ends is None else f", ends {_spelt(self.ends)}") + _DIRECTED * self.directed

    @property
    def earlier(self) -> str:
        """What was, before columns were written down, and is where the data has none."""
        return self.name + _DIRECTED * self.directed


def called(name: str | None, opened: EdgeSource, ledger: Any) -> str:
    """What the data is called where nobody says: as its file is, else as in its ledger.

    A name that reads like what ledgers write behind names is refused: two graphs would be called alike.
    """
    title = _found(opened, ledger) if name is None else line("name", name, longest=200)
    if _READING.sub("", title, count=1) != title:
        raise InvalidParameterError(
            f"A graph cannot be called {title!r:.80}: ledgers write behind a name how edges are read.",
            fix='call it otherwise: name="friends"; pass directed= and ends= for the rest.',
        )
    return title


def _found(opened: EdgeSource, ledger: Any) -> str:
    view = isinstance(ledger, Ledger) and ledger.terms.person is not None
    if opened.name is not None and not view:
        return opened.name
    if isinstance(ledger, Ledger):
        return _READING.sub("", ledger.dataset, count=1)
    return Path(ledger).stem if isinstance(ledger, str | Path) and "://" not in str(ledger) else "graph"


def place_of(data: Any, table: str | None, unit: Unit | None, budget: Budget | None) -> Path:
    """Where the ledger is if nobody says: beside the data."""
    place = beside(data, table=table, unit=unit, budget=budget)
    if place is not None:
        return place
    raise NotDeclaredError(
        "This graph has no place of its own, so nobody knows where its ledger is.",
        fix='pass ledger="friends.ledger" and name="friends", the same each time, or the budget would start anew.',
    )


def booked(
    place: Ledger | str | Path,
    holding: Holding,
    undo: ExitStack,
    anchor_file: str | Path | None,
    *,
    unit: Unit | None,
    budget: Budget | None,
    **facts: Any,
) -> Ledger:
    """The ledger for this reading of the data, which is made now if there is none.

    One for edges must have been made for the same unit and reading. One for persons holds any graph about them, under
    its name however it is read: by default a person is a node. A ledger that was made before columns were written down
    is opened as it was.
    """
    if isinstance(place, Ledger):
        book = place
        book.terms.hold(dataset=None, unit=None, budget=budget)
    elif exists(place) and (unit is None or "://" not in str(place)):
        book = undo.enter_context(Ledger.open(place, anchor_file=anchor_file, budget=budget))
    else:
        made: dict[str, Any] = {"budget": budget, "unit": unit, "dataset": holding.dataset, **facts}
        book = undo.enter_context(Ledger.open(place, anchor_file=anchor_file, **made))
    name = holding.earlier if book.dataset == holding.earlier else holding.dataset
    if book.person.kind in PERSONS and name != book.terms.dataset:  # then all readings of a graph have the same facts
        name = holding.name
    if unit is None and book.person.kind == "user" and name not in {declared.name for declared in book.datasets()}:
        unit = book.unit if book.unit.kind != "user" else node()
    return book.data(name, unit=unit, **facts, declare=False)


def _spelt(ends: tuple[str, str]) -> str:
    """Two columns in one line; by a few digits where their names are long."""
    text = " and ".join(map(repr, sorted(ends)))
    if len(text) <= _LONGEST:
        return text
    return hashlib.sha256(text.encode()).hexdigest()[:16]

"""Small graphs with hostile lines, written in every way that engines read, and opened in memory and in an engine."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from defocus import Budget, edge
from defocus.graphs import Network, Statistic, open_graph
from defocus.graphs.kernels.rows import leading_pairs
from defocus.graphs.statistics import ArcDegrees, ArcHistogram, Degrees, Edges, Histogram, Stars, Triangles

UNDIRECTED: list[Statistic] = [
    Edges(),
    Degrees(),
    Degrees(ranked=True),
    Histogram(),
    Histogram(2),
    Histogram(3, cumulative=True),
]
COUNTS: list[Statistic] = [Stars(2), Stars(3), Stars(5), Triangles()]
DIRECTED: list[Statistic] = [Edges(), *(kind(side) for kind in (ArcDegrees, ArcHistogram) for side in ("out", "in"))]
DAY = 719_163
"""The number of the first day of 1970."""

ODD_NUMBERS: list[Any] = [None, -1, 8, 10**6, 2**62, -(2**63), 2**63 - 1]
ODD_FLOATS: list[Any] = [None, -1.0, 8.0, 2.5, -0.0, 1e300, float("nan"), float("inf"), -float("inf"), 2.0**62, 0.1]
ODD_TEXTS: list[Any] = [
    None,
    "",
    " 1",
    "1 ",
    "01",
    "+1",
    "1.0",
    "1e0",
    "-0",
    "-1",
    "١",
    "x",
    "É",
    "e\u0301",
    "9" * 30,
    "'",
]
"""Values that one end of an edge may have, beside those that name nodes."""


def lines(draw: random.Random, names: list[Any], odd: list[Any], many: int = 14) -> list[tuple[Any, Any]]:
    """Some edges between names, some of them twice, turned round or from a node to itself; and odd values at both ends.

    The graph is sparse, and every odd value is in lines with several names: if it were one, it would add edges.
    """
    made = [(draw.choice(names), draw.choice(names)) for _ in range(many)]
    made += [(b, a) for a, b in made[::4]] + made[::5] + [(names[0], names[0]), (odd[0], odd[-1])]
    for name in draw.sample(names, min(3, len(names))):
        made += [(value, name) for value in odd] + [(name, value) for value in odd]
    draw.shuffle(made)
    return made


def table(pairs: list[tuple[Any, Any]], kind: pa.DataType) -> pa.Table:
    """The pairs as two columns of one type."""
    return pa.table({n: pa.array([pair[i] for pair in pairs], kind) for i, n in enumerate("uv")})


def csv(pairs: list[tuple[Any, Any]], folder: Path) -> Path:
    """The pairs as lines of text, all quoted."""
    shown = [["" if end is None else str(end).replace('"', '""') for end in pair] for pair in pairs]
    place = folder / "e.csv"
    place.write_text("u,v\n" + "".join(f'"{a}","{b}"\n' for a, b in shown), encoding="utf-8")
    return place


def parquet(made: pa.Table, folder: Path) -> Path:
    """A table as a file."""
    pq.write_table(made, folder / "e.parquet")
    return folder / "e.parquet"


def days(numbers: list[Any]) -> list[Any]:
    """Node numbers as days since 1970."""
    return [None if n is None else np.datetime64(n, "D").item() for n in numbers]


@contextmanager
def both(data: Any, folder: Path, elsewhere: Any = None, **said: Any) -> Iterator[tuple[Network, Network]]:
    """The same edges in memory and in an engine; ``elsewhere`` is where the engine finds them, if not in ``data``."""
    usual: dict[str, Any] = {"unit": edge(), "budget": Budget(1000, 1e-3), **said}
    engine = usual.pop("engine", "duckdb")
    more = {name: usual.pop(name) for name in ("table",) if name in usual}
    here = open_graph(data, ledger=folder / f"{random.getrandbits(64)}.ledger", name="g", **usual)  # a name
    found = data if elsewhere is None else elsewhere
    place = folder / f"{random.getrandbits(64)}.ledger"
    there = open_graph(found, engine=engine, ledger=place, name="g", **usual, **more)
    try:
        yield here, there
    finally:
        here.close()
        there.close()


def differences(here: Network, there: Network) -> list[str]:
    """The names of what is not the same, to the last digit."""
    assert here.public.nodes == there.public.nodes
    assert list(here.data.labels) == list(there.data.labels)
    if here.public.directed:
        one, other = here.data.directed, there.data.directed
        return [s.name for s in DIRECTED if not same(s.exact(one), s.exact(other))]
    one, other = here.data.graph, there.data.graph
    level = Triangles().local(one)
    found: dict[str, tuple[Any, Any]] = {
        "edges": (np.int64(one.edges), np.int64(other.edges)),
        "degrees": (one.degrees, other.degrees),
        "counts": (np.stack(one.degree_counts()), np.stack(other.degree_counts())),
        "pairs": (np.array(leading_pairs(one), np.int64), np.array(other.leading_pairs(), np.int64)),
        "triangles": (np.int64(level[0]), np.int64(other.triangles())),
        "local": (np.int64(level[1]), np.int64(other.local())),
    }
    return [name for name, pair in found.items() if not same(*pair)]


def unlike(here: Network, there: Network) -> list[str]:
    """The same, statistic by statistic, with the levels that noise follows."""
    one, other = here.data.graph, there.data.graph
    measures: list[tuple[str, Callable[[Any], Any]]] = [(s.name, s.exact) for s in [*UNDIRECTED, *COUNTS]]
    measures += [("local", Triangles().local)]
    measures += [(f"level {k}", Stars(k).level) for k in (2, 3)]
    measures += [("widths", lambda graph: Stars(3).widths(graph, 5))]
    return [name for name, measure in measures if not same(measure(one), measure(other))]


def same(one: Any, other: Any) -> bool:
    """Whether two vectors or numbers are equal, and exact."""
    first, second = np.asarray(one), np.asarray(other)
    return first.dtype == second.dtype == np.int64 and np.array_equal(first, second)

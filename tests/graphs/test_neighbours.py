"""Neighbouring inputs from every source: both open, both answer, and no statistic moves further than it says."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from defocus import Budget, edge, node
from defocus.graphs import Network, open_graph
from defocus.graphs.statistics import Degrees, Edges
from defocus.graphs.statistics.node_level import CappedEdges, ProjectedHistogram

networkx = pytest.importorskip("networkx")

pytestmark = pytest.mark.slow  # many small graphs

ODD: list[Any] = [
    "x",
    'a"b',
    "007",
    "",
    "\ud800",
    2**70,
    -(2**63),
    2.5,
    float("nan"),
    None,
    True,
    b"\xff",
    (1, "a"),
    [1],
]
"""Names that one node, or one end of an edge, may have."""


def as_text(value: Any) -> str:
    return "" if value is None else str(value).encode("utf-8", "replace").decode().replace('"', '""')


def csv(pairs: list[Any], folder: Path) -> Path:
    lines = [f'"{as_text(left)}","{as_text(right)}"\n' for left, right in pairs]
    (folder / "e.csv").write_text("u,v\n" + "".join(lines), encoding="utf-8")
    return folder / "e.csv"


def parquet(pairs: list[Any], folder: Path) -> Path:
    pq.write_table(arrow(pairs, folder), folder / "e.parquet")
    return folder / "e.parquet"


def arrow(pairs: list[Any], _folder: Path) -> pa.Table:
    """Text of bytes that need not be characters."""
    sides = [[side if isinstance(side, bytes) else as_text(side).encode() for side in each] for each in columns(pairs)]
    return pa.table(
        {name: pa.array(side, pa.binary()).view(pa.string()) for name, side in zip("uv", sides, strict=True)}
    )


def objects(pairs: list[Any], _folder: Path) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(side, dtype=object) for name, side in zip("uv", columns(pairs), strict=True)})


def categories(pairs: list[Any], folder: Path) -> pd.DataFrame:
    return objects([[as_text(end) or None for end in pair] for pair in pairs], folder).astype("category")


def nullable(pairs: list[Any], _folder: Path) -> pd.DataFrame:
    return pd.DataFrame(
        {n: pd.Series(whole(side), dtype="Int64") for n, side in zip("uv", columns(pairs), strict=True)}
    )


def of_polars(pairs: list[Any], _folder: Path) -> pl.DataFrame:
    return pl.DataFrame(
        {n: pl.Series(whole(side), dtype=pl.Int64) for n, side in zip("uv", columns(pairs), strict=True)}
    )


def graph(pairs: list[Any], _folder: Path) -> Any:
    return networkx.Graph([pair for pair in pairs if all(hashable(end) for end in pair)])


def listed(pairs: list[Any], _folder: Path) -> list[Any]:
    return [tuple(pair) for pair in pairs]


def columns(pairs: list[Any]) -> tuple[list[Any], list[Any]]:
    return [left for left, _ in pairs], [right for _, right in pairs]


def whole(values: list[Any]) -> list[int | None]:
    return [value if type(value) is int and abs(value) < 2**62 else None for value in values]


def hashable(value: Any) -> bool:
    """Whether networkx takes it for a node of its own; it takes True for 1."""
    return value is not None and not isinstance(value, list | bool)


SOURCES = [csv, parquet, arrow, objects, categories, nullable, of_polars, graph, listed]


def opened(data: Any, folder: Path, **said: Any) -> Network:
    return open_graph(data, budget=Budget(1000), ledger=folder / f"{random.getrandbits(64)}.ledger", **said)  # a name


def moved(statistic: Any, one: Network, other: Network) -> bool:
    sensitivity = statistic.sensitivity(one.public)
    far = statistic.exact(one.data.graph).astype(object) - statistic.exact(other.data.graph).astype(object)
    return bool(sum(abs(far)) > sensitivity.l1 or sum(far * far) > sensitivity.l2_squared)


def small_graph(generator: random.Random) -> tuple[list[Any], list[list[Any]]]:
    names = list(range(8))
    return names, [generator.sample(names, 2) for _ in range(14)]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("odd", ODD, ids=ascii)
def test_one_edge_moves_no_statistic_further_than_said(source: Callable[..., Any], odd: Any, tmp_path: Path) -> None:
    generator = random.Random(ascii(odd))  # the same each time
    names, pairs = small_graph(generator)
    known = [*map(str, names), "x"] if source in {parquet, arrow, categories} else [*names, "x"]
    more = [*pairs, [odd, generator.choice(names)]]
    generator.shuffle(more)
    networks = [
        opened(source(each, folder), folder, unit=edge(), nodes=known)
        for each, folder in zip((pairs, more), folders(tmp_path), strict=True)
    ]
    assert networks[0].public == networks[1].public
    for statistic in (Edges(), Degrees()):
        assert not moved(statistic, *networks)
    for network in networks:
        assert network.edges().release(epsilon=1).value is not None


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("odd", ODD, ids=ascii)
def test_one_node_moves_no_statistic_further_than_said(source: Callable[..., Any], odd: Any, tmp_path: Path) -> None:
    generator = random.Random(ascii(odd))  # the same each time
    names, pairs = small_graph(generator)
    more, others = [*pairs, *([odd, name] for name in names)], [*names, odd]
    generator.shuffle(more)
    generator.shuffle(others)
    written = source in {parquet, arrow, categories}
    networks = []
    for each, nodes, folder in zip((pairs, more), (names, others), folders(tmp_path), strict=True):
        known = [name if isinstance(name, bytes) else as_text(name) for name in nodes] if written else nodes
        networks.append(opened(source(each, folder), folder, unit=node(), nodes=known))
    for statistic in (CappedEdges(2), ProjectedHistogram(1), ProjectedHistogram(2, cumulative=True)):
        assert not moved(statistic, *networks)
    for network in networks:
        assert network.degree_histogram(at_most=2).release(epsilon=1).value is not None
    unlisted = [
        opened(source(each, folder), folder, unit=node())
        for each, folder in zip((pairs, more), folders(tmp_path), strict=True)
    ]
    assert not moved(CappedEdges(2), *unlisted)


def folders(place: Path) -> list[Path]:
    made = [place / "one", place / "two"]
    for each in made:
        each.mkdir(exist_ok=True)
    return made


def test_a_move_that_is_too_far_is_noticed(tmp_path: Path) -> None:
    one, other = (opened(np.array(p), tmp_path, unit=edge(), nodes=4) for p in ([[0, 1]], [[0, 1], [1, 2], [2, 3]]))
    assert moved(Edges(), one, other)

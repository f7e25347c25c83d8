"""The graphs that are timed: every edge once, written as two columns of node numbers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SEED = 20_260


def power_law(nodes: int, draws: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Both ends of an edge are drawn by weights that fall as a power of the rank, exponent 2.2 of the degrees."""
    draw = np.random.default_rng(SEED)
    weights = np.cumsum((np.arange(nodes) + 10.0) ** (-1 / 1.2))
    left, right = (np.searchsorted(weights / weights[-1], draw.random(draws)) for _ in range(2))
    names = draw.permutation(nodes)
    return names[left], names[right]


def uniform(nodes: int, draws: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Both ends are drawn uniformly: a graph without hubs."""
    draw = np.random.default_rng(SEED)
    return draw.integers(0, nodes, draws), draw.integers(0, nodes, draws)


def ensure(folder: Path, kind: str, nodes: int, draws: int) -> Path:
    """The folder of one graph, made if it is not there."""
    place = folder / f"graph-{kind}-{nodes}-{draws}"
    if not (place / "about.json").exists():
        left, right = {"power-law": power_law, "uniform": uniform}[kind](nodes, draws)
        low, high = np.minimum(left, right), np.maximum(left, right)
        key = np.unique((low * nodes + high)[low != high])
        mixed = np.random.default_rng(SEED).permutation(len(key))
        place.mkdir(parents=True, exist_ok=True)
        np.save(place / "left.npy", key[mixed] // nodes)
        np.save(place / "right.npy", key[mixed] % nodes)
        (place / "about.json").write_text(json.dumps({"nodes": nodes, "edges": len(key)}))
    return place


def load(place: Path) -> tuple[int, NDArray[Any], NDArray[Any]]:
    """How many nodes, and the ends of all edges."""
    about = json.loads((place / "about.json").read_text())
    return about["nodes"], np.load(place / "left.npy"), np.load(place / "right.npy")


def parquet(place: Path) -> tuple[int, Path]:
    """How many nodes, and the edges as a Parquet file, made if it is not there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    nodes = json.loads((place / "about.json").read_text())["nodes"]
    file = place / "edges.parquet"
    if not file.exists():
        _, left, right = load(place)
        pq.write_table(pa.table({"u": left, "v": right}), file)
    return nodes, file

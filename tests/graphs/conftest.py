"""A small graph with a ledger in a folder of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from defocus import Budget, edge
from defocus.graphs import Network, open_graph

FRIENDS = [("ada", "bob"), ("bob", "cyd"), ("cyd", "ada"), ("ada", "dan"), ("dan", "eve")]
NAMES = ["ada", "bob", "cyd", "dan", "eve", "fay"]
TABLE = pa.table({"source": [u for u, _ in FRIENDS], "target": [v for _, v in FRIENDS]})


def named_edges(network: Network) -> set[tuple[Any, Any]]:
    """The edges as names; tests may look, questions may not."""
    graph = network.data.graph
    return {(network.data.labels[u], network.data.labels[v]) for u, v in zip(*graph.pairs(), strict=True)}


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Network]]:
    """Open a graph with edge privacy, a large budget and a ledger of its own, unless told otherwise."""
    made: list[Network] = []

    def open_it(data: Any = None, **said: Any) -> Network:
        place = tmp_path / f"graph{len(made)}.ledger"
        usual = {"unit": edge(), "budget": Budget(1000, 1e-3), "nodes": NAMES, "ledger": place}
        made.append(open_graph(FRIENDS if data is None else data, **{**usual, **said}))
        return made[-1]

    yield open_it
    for network in made:
        network.close()


@pytest.fixture
def friends(opened: Callable[..., Network]) -> Network:
    """Six people, five friendships, one triangle."""
    return opened(name="friends")

"""A small graph with a ledger in a folder of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from defocus import Budget, edge
from defocus.graphs import Network, open_graph

FRIENDS = [("ada", "bob"), ("bob", "cyd"), ("cyd", "ada"), ("ada", "dan"), ("dan", "eve")]
NAMES = ["ada", "bob", "cyd", "dan", "eve", "fay"]


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

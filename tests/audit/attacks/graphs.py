"""Graphs: an edge between two nodes that share all others, and a node joined to all others."""

from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.audit.attacks.attack import AMPLE, Attack, Room, less_noise

import defocus as dp
from defocus.audit import batched
from defocus.graphs import Network, Released
from defocus.graphs.neighbour_sums import neighbour_sums
from defocus.graphs.network import GraphQuery
from defocus.graphs.question import Result
from defocus.mechanisms import Ramp
from defocus.noise import Bits
from defocus.noise.testing import seeded

Edges = list[tuple[int, int]]


def _seen(result: Result | Released) -> Any:
    """Values and ends of intervals, which tell what was found on the way, such as a cap."""
    return np.concatenate([np.r_[each.values, np.nan_to_num(each.low, nan=-1e6)] for each in result.columns])


def attack(
    folder: Path,
    ask: Callable[[Network], GraphQuery],
    pair: tuple[Edges, Edges],
    *,
    epsilon: int,
    book: Callable[[Path, str], dp.Ledger] | None = None,
    listed: Iterable[int] | None = None,
    **facts: Any,
) -> Attack:
    """An attack on a question about two graphs, each with a ledger of its own, or the one that ``book`` makes.

    Where all nodes must be known, those without an edge are ``listed``.
    """
    bits, charges = seeded(21), set()
    paths = [folder / f"{i}.ledger" for i in range(len(pair))]
    opened = []
    for path, each in zip(paths, pair, strict=True):
        known: dict[str, Any] = {}
        if listed is not None:
            known["nodes"] = sorted({*listed, *(node for edge in each for node in edge)})
        ledger = path if book is None else book(folder, path.stem)
        opened.append(dp.open_graph(each, budget=AMPLE, ledger=ledger, **facts, **known, name="g"))
    queries = [ask(each) for each in opened]
    method = queries[0].plan(epsilon=epsilon)

    def repeated(which: int, drawn: Bits) -> Any:
        with queries[which].data.steady() as data:
            return _seen(method.run(data, drawn))

    def whole(which: int, drawn: Bits) -> Any:
        answer = queries[which].release(epsilon=epsilon, bits=drawn)
        charges.add(answer.receipt.event)
        return _seen(answer)

    return Attack(
        release=lambda which: repeated(which, bits), pair=(0, 1), event=method.event, charges=charges,
        repeated=repeated, whole=whole,
    )  # fmt: skip


def _hubs(nodes: int) -> tuple[Edges, Edges]:
    """Two nodes that are joined to all others, and in the second graph to each other."""
    others: Edges = [(hub, other) for hub in (0, 1) for other in range(2, nodes)]
    return others, [*others, (0, 1)]


def edges(folder: Path, _runs: int) -> Attack:
    return attack(folder, Network.edges, _hubs(8), epsilon=1, unit=dp.edge(), nodes=8)


def triangles(folder: Path, _runs: int) -> Attack:
    return attack(folder, Network.triangles, _hubs(8), epsilon=1, unit=dp.edge(), nodes=8)


def followed(folder: Path, _runs: int) -> Attack:
    """Noise that follows the graph: where there are more nodes, the default for triangles."""
    return attack(folder, Network.triangles, _hubs(60), epsilon=2, unit=dp.edge(), nodes=60)


def histogram(folder: Path, _runs: int) -> Attack:
    nobody: Edges = [(2, 3)]
    return attack(folder, Network.degree_histogram, (nobody, [*nobody, (0, 1)]), epsilon=1, unit=dp.edge(), nodes=6)


def degrees(folder: Path, _runs: int) -> Attack:
    return attack(folder, Network.degrees, _hubs(6), epsilon=1, unit=dp.edge(), nodes=6)


def node(folder: Path, _runs: int) -> Attack:
    """A node that is joined to all others, where nobody else has so many neighbours."""
    path: Edges = [(i, i + 1) for i in range(20)]
    star: Edges = [*path, *[(99, i) for i in range(21)]]
    return attack(folder, Network.edges, (path, star), epsilon=1, unit=dp.node())


def _star() -> tuple[Edges, Edges]:
    """Few nodes, and one that is joined to all of them."""
    ring: Edges = [(i, (i + 1) % 8) for i in range(8)]
    return ring, [*ring, *[(99, i) for i in range(8)]]


def node_histogram(folder: Path, _runs: int) -> Attack:
    """Many nodes of each degree, so that the fit takes nothing away; and a node that joins four without an edge."""
    cliques: Edges = []
    for first in range(100, 1200, 20):  # numbers of their own
        size = 2 + first // 20 % 4
        cliques += [(first + i, first + j) for i in range(size) for j in range(i)]
    star: Edges = [*cliques, *[(99, i) for i in range(4)]]
    return attack(
        folder,
        lambda net: net.degree_histogram(at_most=4),
        (cliques, star),
        epsilon=1,
        unit=dp.node(),
        listed=range(60),
    )


def node_triangles(folder: Path, _runs: int) -> Attack:
    return attack(folder, Network.triangles, _star(), epsilon=1, unit=dp.node())


def sums(folder: Path, runs: int) -> Attack:
    """Each pair of nodes is a world, in which one lists the other, at full length, or owns nothing."""
    bits, charges = seeded(23), set()
    ledger = dp.Ledger.open(folder / "sums.ledger", budget=AMPLE, unit=dp.user("page"), dataset="pages")
    sources, values = np.arange(0, 2 * runs, 2), np.repeat(1e300, 2 * runs)[:, None]
    price: dict[str, Any] = {"epsilon": 2, "delta": 1e-3}

    def release(there: int, n: int) -> Any:
        edges = (sources[: there * runs], sources[: there * runs] + 1)
        found = neighbour_sums(edges, there * values, nodes=2 * runs, ledger=ledger, bits=bits, **price)
        charges.add(found.receipt.event)
        return np.asarray(found.value)[1::2, 0][:n]

    edges = (sources[:1], sources[:1] + 1)
    event = neighbour_sums(edges, values, nodes=2 * runs, ledger=ledger, bits=bits, **price).event
    return Attack(release=batched(release), pair=(0, 1), event=event, charges=charges, delta=0.05)


def lower_level(patch: pytest.MonkeyPatch) -> None:
    """Noise follows an eighth of what it should."""
    honest = Ramp.sample
    patch.setattr(Ramp, "sample", lambda self, value, bits: honest(self, (value[0], value[1] // 8), bits))


HALF, QUARTER, SLIGHTLY = less_noise(Fraction(1, 2)), less_noise(Fraction(1, 4)), less_noise(Fraction(2, 3))
ROOMS = (
    Room(name="edges", make=edges, faults=(HALF,), slight=(SLIGHTLY,), few=1500, many=8000, near=0.7, again=True),
    Room(
        name="triangles", make=triangles, faults=(HALF,), slight=(SLIGHTLY,), few=1500, many=8000, near=0.7, again=True
    ),
    Room(
        name="triangles, noise follows", make=followed, faults=(), slight=(lower_level,), few=0, many=1500, again=True
    ),
    Room(name="degree histogram", make=histogram, faults=(), slight=(HALF,), few=0, many=2500, near=0.4, again=True),
    Room(name="degrees", make=degrees, faults=(), slight=(HALF,), few=0, many=3000, near=0.1, again=True),
    Room(name="edges, node privacy", make=node, faults=(), slight=(QUARTER,), few=0, many=1500, again=True),
    Room(
        name="degree histogram, node privacy",
        make=node_histogram,
        faults=(),
        slight=(QUARTER,),
        few=0,
        many=6000,
        near=0.4,
        again=True,
    ),
    Room(
        name="triangles, node privacy", make=node_triangles, faults=(), slight=(QUARTER,), few=0, many=1500, again=True
    ),
    Room(name="sums over neighbours", make=sums, faults=(HALF,), slight=(SLIGHTLY,), few=6000, near=0.5),
)

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import defocus as dp
from defocus.errors import InvalidParameterError, SourceError
from defocus.noise.testing import seeded
from defocus.synthesis import GraphGenerator, GraphSynthesiser


def triangles(pairs: Any, nodes: int) -> float:
    joined = np.zeros((nodes, nodes))
    joined[pairs[0], pairs[1]] = joined[pairs[1], pairs[0]] = 1
    return float(np.trace(joined @ joined @ joined) / 6)


@pytest.fixture(scope="module")
def communities() -> tuple[list[str], list[tuple[int, int]]]:
    """Two groups, whose members meet in triples."""
    rng = np.random.default_rng(0)
    labels = ["a"] * 100 + ["b"] * 100
    found = set()
    for _ in range(250):
        own = rng.choice(100, 3, replace=False) + 100 * rng.integers(0, 2)
        found |= {(int(min(p)), int(max(p))) for p in ((own[0], own[1]), (own[1], own[2]), (own[0], own[2]))}
    found |= {(int(a), int(100 + b)) for a, b in rng.integers(0, 100, (60, 2))}
    return labels, sorted(found)


@pytest.mark.slow
@pytest.mark.parametrize("grouped", [False, True])
def test_a_synthetic_graph_has_the_degrees_triangles_and_groups(
    communities: Any, grouped: bool, tmp_path: Path
) -> None:
    labels, edges = communities
    how: dict[str, Any] = {
        "unit": dp.edge(),
        "nodes": 200,
        "ledger": tmp_path / "a",
        "name": "g",
        "budget": dp.Budget(50),
    }
    with dp.open_graph(np.array(edges), **how) as network:
        wanted = GraphSynthesiser(network, labels if grouped else None)
        assert set(wanted.preview(epsilon=20)) == {"degrees", "triangles", *(["groups"] if grouped else [])}
        assert not [entry for entry in network.ledger.entries() if entry.kind == "charge"]
        made = wanted.fit(epsilon=20, bits=seeded(1))
        assert len([entry for entry in network.ledger.entries() if entry.kind == "charge"]) == 2 + grouped
        assert network.remaining().epsilon == pytest.approx(30, rel=0.02)
    graph = made.sample(bits=seeded(2))
    real = triangles(np.array(edges).T, 200)
    assert triangles(graph.pairs(), 200) == pytest.approx(real, rel=0.25)
    assert graph.edges == pytest.approx(len(edges), rel=0.15)  # edges drawn twice are one
    assert np.sort(graph.degrees)[-20:].mean() == pytest.approx(
        np.sort(np.bincount(np.ravel(edges), minlength=200))[-20:].mean(), rel=0.2
    )
    if grouped:
        left, right = graph.pairs()
        assert ((left < 100) != (right < 100)).sum() == pytest.approx(60, abs=25)
    made.save(tmp_path / "g.json")
    again = GraphGenerator.load(tmp_path / "g.json").sample(bits=seeded(2))
    assert [part.tolist() for part in again.pairs()] == [part.tolist() for part in graph.pairs()]


def test_what_is_no_network_or_no_saved_graph_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match="made from a network"):
        GraphSynthesiser([(0, 1)])  # type: ignore[arg-type]
    (tmp_path / "x.json").write_text("[]", "utf-8")
    with pytest.raises(SourceError, match="saved graph"):
        GraphGenerator.load(tmp_path / "x.json")

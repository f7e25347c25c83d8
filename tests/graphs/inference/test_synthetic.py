"""Synthetic graphs have the degrees and the mixing they are made from."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from defocus import Budget, edge
from defocus.errors import DefocusError
from defocus.graphs import Network, build, open_graph
from defocus.graphs.inference import synthetic_graph, to_networkx
from defocus.graphs.inference.synthetic import _poisson
from defocus.noise.testing import seeded


def test_degrees_are_those_asked_for_on_average() -> None:
    wanted = np.concatenate([np.full(50, 60.0), np.full(950, 6.0)])
    made = np.mean([synthetic_graph(wanted, bits=seeded(s)).degrees for s in range(8)], axis=0)
    assert made[:50].mean() == pytest.approx(60, rel=0.1)
    assert made[50:].mean() == pytest.approx(6, rel=0.05)


def test_blocks_mix_as_asked() -> None:
    labels = ["a"] * 200 + ["b"] * 200
    graph = synthetic_graph(np.full(400, 10.0), labels=labels, mixing=[[900, 200], [200, 900]], bits=seeded(1))
    left, right = graph.pairs()
    across = int(((left < 200) != (right < 200)).sum())
    assert across == pytest.approx(200, abs=60)
    assert graph.edges == pytest.approx(2000, rel=0.08)


def test_noisy_degrees_of_any_sign_are_taken() -> None:
    graph = synthetic_graph([-5.0, 3.3, 0.2, 100.0, np.nan], bits=seeded(1))
    assert graph.nodes == 5


def test_nobody_has_no_edges() -> None:
    assert synthetic_graph([0, 0, 0]).edges == 0
    assert synthetic_graph([]).nodes == 0


@pytest.mark.statistical
@pytest.mark.parametrize("mean", [0.3, 20.0, 5000.0])
def test_poisson_numbers_are_such(mean: float) -> None:
    bits = seeded(2)
    drawn = np.array([_poisson(mean, bits) for _ in range(3000)])
    assert abs(drawn.mean() - mean) < 5 * np.sqrt(mean / 3000) + 0.01
    assert drawn.var() == pytest.approx(mean, rel=0.15)


def test_labels_without_mixing_and_mixing_of_the_wrong_size_are_refused() -> None:
    with pytest.raises(DefocusError, match="Blocks need"):
        synthetic_graph([1, 1], labels=["a", "b"])
    with pytest.raises(DefocusError, match="2 rows and columns"):
        synthetic_graph([1, 1], labels=["a", "b"], mixing=[[1]])
    with pytest.raises(DefocusError, match="Blocks need"):
        synthetic_graph([1, 1], labels=["a"], mixing=[[1]])


def test_a_synthetic_graph_says_that_it_is_public() -> None:
    made = synthetic_graph([2, 2, 2], bits=seeded(1))
    assert repr(made) == f"<a synthetic graph, which is public: 3 nodes, {made.edges} edges>"


def test_nodes_without_an_edge_are_handed_over() -> None:
    made = synthetic_graph([3, 3, 3, 3, 0, 0], bits=seeded(1))
    assert len(made.to_networkx()) == 6
    assert made.to_networkx().number_of_edges() == made.edges
    assert set(made.to_networkx("abcdef").nodes) == set("abcdef")


@pytest.fixture
def friends(tmp_path: Path) -> Iterator[Network]:
    draw = np.random.default_rng(3)
    ends = draw.integers(0, 60, 400), draw.integers(0, 60, 400)
    with open_graph(ends, unit=edge(), budget=Budget(400), nodes=60, ledger=tmp_path / "g.ledger") as network:
        yield network


@pytest.mark.parametrize("ask", ["degrees", "degree_sequence", "degree_histogram"])
def test_an_answer_about_degrees_makes_a_graph_of_about_as_many_edges(friends: Network, ask: str) -> None:
    made = synthetic_graph(getattr(friends, ask)().release(epsilon=50), bits=seeded(1))
    edges = friends.edges().release(epsilon=50).value
    assert made.nodes == pytest.approx(60, abs=2)
    assert made.edges == pytest.approx(edges, rel=0.25)


def test_other_answers_are_refused_in_words(friends: Network) -> None:
    for answer in (friends.edges().release(epsilon=1), friends.pagerank().release(epsilon=1)):
        with pytest.raises(DefocusError, match="No degrees were released"):
            synthetic_graph(answer)


def test_a_histogram_is_not_taken_for_degrees(friends: Network) -> None:
    counts = friends.degree_histogram().release(epsilon=50).value
    with pytest.raises(DefocusError, match="look like a histogram"):
        synthetic_graph(counts)
    assert synthetic_graph(counts, counts=True, bits=seeded(1)).nodes == pytest.approx(60, abs=2)
    assert synthetic_graph(counts, counts=False, bits=seeded(1)).nodes == len(counts)


def test_nodes_and_edges_arrive_with_their_names() -> None:
    made = to_networkx(build(4, [0, 1], [1, 2]), ["a", "b", "c", "d"])
    assert sorted(made.nodes) == ["a", "b", "c", "d"]
    assert {frozenset(pair) for pair in made.edges} == {frozenset("ab"), frozenset("bc")}
    assert sorted(to_networkx(build(3, [0], [2])).edges) == [(0, 2)]


@pytest.mark.parametrize("labels", [["a"], ["a", "a", "b"], []])
def test_labels_that_do_not_tell_nodes_apart_are_refused(labels: list[str]) -> None:
    with pytest.raises(DefocusError, match="as many different labels"):
        to_networkx(build(3, [0], [2]), labels)

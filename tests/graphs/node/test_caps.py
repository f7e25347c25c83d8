import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from defocus.errors import DefocusError
from defocus.graphs import Graph, build
from defocus.graphs.certificates import all_graphs, without_node
from defocus.graphs.node import CapRule, capped_edges_twice, hirsch
from defocus.mechanisms import PermuteAndFlip
from defocus.noise.testing import seeded


def heavy(nodes: int, edges: int) -> Graph:
    generator = np.random.default_rng(6)
    weights = (np.arange(nodes) + 10.0) ** -0.6
    ends = generator.choice(nodes, size=(2, edges), p=weights / weights.sum())
    return build(nodes, ends[0], ends[1])


@pytest.mark.parametrize("nodes", [2, 3, 4, 5])
def test_no_node_moves_the_number_of_hubs_by_more_than_one(nodes: int) -> None:
    moves = {hirsch(graph) - hirsch(without_node(graph, node)) for graph in all_graphs(nodes) for node in range(nodes)}
    assert moves <= {0, 1}
    assert 1 in moves


@pytest.mark.parametrize("nodes", [3, 4, 5])
def test_no_node_moves_a_score_of_a_cap_by_more_than_one(nodes: int) -> None:
    rule, moves = CapRule(), []
    for graph in all_graphs(nodes)[:: 1 if nodes < 5 else 7]:
        before = rule.scores(graph, Fraction(1))
        for node in range(nodes):
            after = rule.scores(without_node(graph, node), Fraction(1))
            moves += [abs(one - other) for one, other in zip(before, after, strict=True)]
    assert max(moves) <= 1
    assert max(moves) > Fraction(1, 2)


def test_a_hub_however_large_moves_a_score_by_one_at_most() -> None:
    ring = [(i, (i + 1) % 300) for i in range(300)]
    before = build(301, *zip(*ring, strict=True))
    after = build(301, *zip(*(ring + [(300, i) for i in range(300)]), strict=True))
    scores = zip(CapRule().scores(before, Fraction(1)), CapRule().scores(after, Fraction(1)), strict=True)
    assert max(abs(one - other) for one, other in scores) <= 1


def hubs() -> Graph:
    """Thirty nodes of degree 400, and nobody else with more than a few: the structural cut-off is 155."""
    draw = np.random.default_rng(3)
    others = np.concatenate([draw.choice(np.arange(30, 3000), 400, replace=False) for _ in range(30)])
    return build(3000, np.repeat(np.arange(30), 400), others)


def test_more_epsilon_counts_more_of_the_edges_of_hubs() -> None:
    graph, bits = hubs(), seeded(4)
    left = []
    for epsilon in (0.1, 4, 20):
        caps = [CapRule().find(graph, epsilon, bits) for _ in range(9)]
        left.append(capped_edges_twice(graph, int(np.median(caps))) / 2 / graph.edges)
    assert left == sorted(left)
    assert left[0] < 0.5
    assert left[1:] == [1, 1]


def test_the_cap_stays_in_bounds_whatever_the_noise() -> None:
    graph = heavy(300, 4000)
    caps = {CapRule().find(graph, 0.001, seeded(seed)) for seed in range(40)}
    assert caps <= {math.ceil(1.5 * 2**power) for power in range(18)}
    assert len(caps) > 1


def test_an_empty_graph_gets_a_small_cap_and_no_error() -> None:
    empty = build(10, [], [])
    assert np.median([CapRule().find(empty, 1, seeded(seed)) for seed in range(20)]) <= 6


@pytest.mark.parametrize("changes", [1, 2])
def test_the_choice_is_paid_by_its_share_and_made_for_as_many_changes(
    changes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[PermuteAndFlip] = []
    real = PermuteAndFlip.sample

    def recorded(self: PermuteAndFlip, *given: Any) -> int:
        made.append(self)
        return real(self, *given)

    monkeypatch.setattr(PermuteAndFlip, "sample", recorded)
    rule = CapRule(changes)
    rule.find(heavy(200, 500), 2, seeded(3))
    (choice,) = made
    assert choice.epsilon == 2 * rule.share
    assert choice.sensitivity == changes


def school() -> Graph:
    """2 000 pupils with friends in the same class and elsewhere: 33 at most, 21 on average."""
    draw = np.random.default_rng(7)
    left, right = draw.integers(0, 2000, 30_000), draw.integers(0, 2000, 30_000)
    same = draw.random(30_000) < 0.8
    return build(2000, left, np.where(same, 25 * (left // 25) + right % 25, right))


@pytest.mark.parametrize("epsilon", [1, 4])
def test_where_nobody_stands_out_the_cap_is_near_the_largest_degree(epsilon: float) -> None:
    """The structural cut-off of this graph is 204, and far above every degree."""
    graph, bits = school(), seeded(2)
    caps = [CapRule().find(graph, epsilon, bits) for _ in range(15)]
    assert 24 <= np.median(caps) <= 96


def test_a_node_that_leaves_takes_two_at_most_out_of_those_that_are_paired_off() -> None:
    """A star has one pair, however many nodes have an edge; so a hub that leaves cannot be told by it."""
    star = build(101, np.zeros(100, int), np.arange(1, 101))
    assert capped_edges_twice(star, 1) == 2
    moves = {
        capped_edges_twice(graph, 1) - capped_edges_twice(without_node(graph, node), 1)
        for graph in all_graphs(5)[::5]
        for node in range(5)
    }
    assert moves <= {0, 1, 2}


def by_program(graph: Graph, cap: int) -> float:
    """The linear program itself, solved as such."""
    left, right = graph.pairs()
    if not len(left):
        return 0.0
    rows = np.zeros((graph.nodes, len(left)))
    rows[left, np.arange(len(left))] = rows[right, np.arange(len(left))] = 1
    return -float(linprog(-np.ones(len(left)), A_ub=rows, b_ub=np.full(graph.nodes, cap), bounds=(0, 1)).fun)


@pytest.mark.parametrize("cap", [1, 2, 3])
def test_the_flow_is_twice_the_value_of_the_program(cap: int) -> None:
    for graph in all_graphs(4)[::3] + all_graphs(5)[::37]:
        assert capped_edges_twice(graph, cap) == pytest.approx(2 * by_program(graph, cap))


@pytest.mark.parametrize("cap", [1, 2, 3])
def test_a_node_adds_between_nothing_and_its_cap(cap: int) -> None:
    for graph in all_graphs(5)[::5]:
        value = capped_edges_twice(graph, cap)
        steps = [value - capped_edges_twice(without_node(graph, node), cap) for node in range(5)]
        assert min(steps) >= 0
        assert max(steps) <= 2 * cap


def test_dropping_large_nodes_or_cutting_degrees_is_not_safe() -> None:
    """The traps: with a hub more or less, both move by far more than the cap."""
    n, cap = 40, 2
    ring = [(i, (i + 1) % n) for i in range(n)]
    spokes = [(n, i) for i in range(n)]
    before = build(n + 1, *zip(*ring, strict=True))
    after = build(n + 1, *zip(*(ring + spokes), strict=True))

    def dropped(graph: Graph) -> int:
        left, right = graph.pairs()
        return int(((graph.degrees[left] <= cap) & (graph.degrees[right] <= cap)).sum())

    assert abs(dropped(after) - dropped(before)) == n
    assert capped_edges_twice(after, cap) - capped_edges_twice(before, cap) <= 2 * cap


def test_a_cap_above_all_degrees_counts_every_edge() -> None:
    for graph in all_graphs(4):
        assert capped_edges_twice(graph, 3) == 2 * graph.edges
        assert capped_edges_twice(graph, 10**6) == 2 * graph.edges


def test_more_room_never_counts_less() -> None:
    generator = np.random.default_rng(2)
    graph = build(300, generator.integers(0, 300, 3000) ** 2 // 300, generator.integers(0, 300, 3000))
    values = [capped_edges_twice(graph, cap) for cap in (1, 2, 5, 10, 40, 100)]
    assert values == sorted(values)
    gains = [b - a for a, b in itertools.pairwise([capped_edges_twice(graph, cap) for cap in range(1, 12)])]
    assert gains == sorted(gains, reverse=True), "concave in the cap"


@pytest.mark.parametrize("cap", [0, -1, 1.5, True, None])
def test_a_cap_that_is_no_count_is_refused(cap: int) -> None:
    with pytest.raises(DefocusError, match="cap"):
        capped_edges_twice(all_graphs(3)[-1], cap)

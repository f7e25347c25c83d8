from typing import Any

import numpy as np
import pytest
from tests.graphs.asking.small import answer, public, random_graph, ways

from defocus import Budget, edge
from defocus.errors import DefocusError
from defocus.graphs import Network, build
from defocus.graphs.question import chosen
from defocus.graphs.questions import AskPageRank, AskTop
from defocus.graphs.statistics import PageRank
from defocus.noise.testing import seeded


def test_ranks_come_back_in_shares_with_noise_of_the_bound() -> None:
    star = build(2000, [0] * 1500, list(range(1, 1501)))
    method = ways(AskPageRank(0.5), 2000, Budget(1))["laplace"]
    column = answer(method, star).columns[0]
    truth = PageRank(0.5).shares(star)
    off = np.abs(column.values - truth)
    assert off.mean() == pytest.approx(2 / 2000, rel=0.1)
    assert off.mean() == pytest.approx(method.error, rel=0.1)
    assert (off <= method.interval).mean() > 0.93


def test_only_the_highest_are_shown_when_asked() -> None:
    star = build(500, [7] * 400, list(range(8, 408)))
    result = answer(ways(AskPageRank(0.5, top=3), 500, Budget(5))["laplace"], star)
    assert result.keys["node"][0] == 7
    assert len(result.columns[0].values) == 3
    assert "look higher" in result.processing[0]


def test_bad_numbers_are_refused() -> None:
    for bad in (0, -1, True, 1.5):
        with pytest.raises(DefocusError, match="top"):
            AskPageRank(0.5, top=bad)  # type: ignore[arg-type]  # on purpose
    with pytest.raises(DefocusError, match="only 9 nodes"):
        AskPageRank(0.5, top=10).methods(public(9), Budget(1))
    with pytest.raises(DefocusError, match="damping"):
        AskPageRank(1.0)


def test_ranks_are_written_with_the_digits_that_the_noise_leaves(friends: Network) -> None:
    """Ranks are small numbers: one digit below their error is shown, however small both are."""
    column = friends.pagerank(damping=0.5).release(epsilon=900, bits=seeded(1))["pagerank"]
    places = column.places[0]
    assert places is not None
    assert 10.0**-places <= column.spread[0] / 2
    assert 10.0**-places > column.spread[0] / 20


def test_clear_winners_are_found_by_every_method() -> None:
    hubs = build(200, [h for h in (3, 7, 50) for _ in range(90)], list(range(100, 190)) * 3)
    for unit in (edge(), edge(replace=True)):
        for method in ways(AskTop(3), 200, Budget(4, 1e-6), unit).values():
            assert sorted(answer(method, hubs).keys["node"]) == [3, 7, 50], method.name


def test_noisy_degrees_come_with_their_numbers_and_a_warning() -> None:
    graph = random_graph(100, 900)
    result = answer(ways(AskTop(5), 100, Budget(1))["noisy degrees, laplace"], graph)
    values = result.columns[0].values
    assert values.tolist() == sorted(values.tolist(), reverse=True)
    assert "look larger" in result.processing[0]


def test_the_subset_shows_no_degree() -> None:
    result = answer(ways(AskTop(5), 100, Budget(1))["subset"], random_graph(100, 900))
    assert result.columns[0].values.tolist() == [1] * 5
    assert np.isnan(result.columns[0].errors).all()


def test_one_node_costs_half_the_noise_of_two() -> None:
    one, two = (ways(AskTop(k), 100, Budget(1))["subset"] for k in (1, 2))
    assert one.mechanism.rate == 2 * two.mechanism.rate  # type: ignore[attr-defined]  # a Chosen


@pytest.mark.parametrize("bad", [0, -1, True, 1.5, "3", None])
def test_a_number_that_is_no_count_is_refused(bad: Any) -> None:
    with pytest.raises(DefocusError, match="k"):
        AskTop(bad)


def test_more_than_all_and_directed_graphs_are_refused() -> None:
    with pytest.raises(DefocusError, match="only 10 nodes"):
        AskTop(11).methods(public(10), Budget(1))
    with pytest.raises(DefocusError, match="directed"):
        AskTop(2).methods(public(10, directed=True), Budget(1))


@pytest.mark.parametrize(("epsilon", "used"), [(1, "degrees, laplace"), (50, "laplace")])
def test_ranks_of_a_few_hundred_nodes_are_useful_by_default(epsilon: int, used: str) -> None:
    """Where noise on ranks hides them, degrees tell more; where it does not, nothing is left out."""
    generator = np.random.default_rng(5)
    ends = (200 * generator.random((2, 1500)) ** 2).astype(int)
    graph = build(200, *ends)
    methods = ways(AskPageRank(), 200, Budget(epsilon))
    best = chosen(AskPageRank(), list(methods.values()), None)
    assert best.name == used
    truth = PageRank().shares(graph)
    off = {name: 200 * np.abs(answer(methods[name], graph).columns[0].values - truth).mean() for name in methods}
    assert off[used] < 0.25
    assert off["laplace"] > 8 / epsilon


def test_ranks_by_degrees_say_what_they_leave_out(friends: Network) -> None:
    preview = friends.pagerank().preview(epsilon=1, method="degrees, laplace")
    assert "whom a node is joined to is left out" in str(preview)
    assert "95 % of the noise only" in str(preview)
    result = friends.pagerank().release(epsilon=5, method="degrees, laplace", bits=seeded(1))
    assert result.value.sum() == pytest.approx(1)
    assert np.isnan(result["pagerank"].errors).all()


def test_a_preview_says_how_large_the_error_is_beside_the_average_rank(friends: Network) -> None:
    n = friends.public.n
    text = str(friends.pagerank().preview(epsilon=1, method="laplace"))
    assert f"11 times the average rank, 1/{n}: only ranks far above it stand out" in text
    assert "stand out" not in str(friends.pagerank().preview(epsilon=100, method="laplace"))


def test_the_bound_on_one_entry_is_offered_by_name_and_says_what_it_does_not_promise() -> None:
    for unit, changes in ((edge(), 1), (edge(replace=True), 2), (edge(per_person=3), 3)):
        method = ways(AskPageRank(0.85), 400, Budget(1), unit)["entrywise, laplace"]
        assert method.error == pytest.approx(changes * 0.85 / 0.15, rel=1e-3)
        assert any("alone promises nothing about several" in rule for rule in method.rules)
    # of a few nodes and little damping the L1 bound is larger, and is what the noise is for
    few = ways(AskPageRank(0.1), 2, Budget(1))
    assert few["entrywise, laplace"].error >= few["laplace"].error

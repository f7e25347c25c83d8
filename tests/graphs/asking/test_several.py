from typing import Any

import pytest
from tests.graphs.asking.small import answer, random_graph, ways

from defocus import Budget, edge
from defocus.errors import DefocusError
from defocus.graphs.asking import AskSubgraphs
from defocus.graphs.statistics import Edges, Stars, Triangles


@pytest.mark.parametrize("unit", [edge(), edge(replace=True)])
@pytest.mark.parametrize("budget", [Budget(1), Budget(1, 1e-6)])
def test_all_parts_together_cost_the_budget(unit: Any, budget: Budget) -> None:
    assert ways(AskSubgraphs(("edges", "triangles", "stars_2", "stars_3")), 100, budget, unit)  # each fits its budget


def test_every_shape_is_counted() -> None:
    graph = random_graph(300, 3000)
    (method,) = ways(AskSubgraphs(), 300, Budget(30)).values()
    found = [column.values[0] for column in answer(method, graph).columns]
    exact = [Edges().exact(graph)[0], Stars(2).exact(graph)[0], Triangles().exact(graph)[0]]
    assert found == pytest.approx(exact, rel=0.1)


@pytest.mark.parametrize("shapes", [(), ("triangles", "triangles"), ("squares",), ("stars_x",), (3,), ("stars_1",)])
def test_shapes_without_proven_noise_are_refused(shapes: Any) -> None:
    with pytest.raises(DefocusError):
        AskSubgraphs(shapes)

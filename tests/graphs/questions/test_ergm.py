from typing import Any

import numpy as np
import pytest
from tests.graphs.asking.small import answer, planted, public, random_graph, ways

from defocus import Budget
from defocus.errors import DefocusError
from defocus.graphs.question import foretold
from defocus.graphs.questions import AskErgm


def test_a_random_graph_is_fitted_from_noisy_statistics() -> None:
    """With much spent the fit converges, and the truth, log-odds of the density and no triangles, lies inside."""
    graph = random_graph(60, 300)
    (method,) = ways(AskErgm(("edges", "triangles")), 60, Budget(40)).values()
    result = answer(method, graph)
    assert list(result.keys["term"]) == ["edges", "triangles"]
    coefficients, statistics = result.columns
    assert statistics.values[0] == pytest.approx(graph.edges, abs=10)
    density = graph.edges / (60 * 59 / 2)
    assert "not" not in result.notes[-1]
    assert coefficients.low[0] < np.log(density / (1 - density)) < coefficients.high[0]
    assert coefficients.low[1] < 0 < coefficients.high[1]


def test_statistics_out_of_reach_give_no_coefficients_and_say_so() -> None:
    graph = random_graph(20, 15)
    (method,) = ways(AskErgm(("edges", "triangles")), 20, Budget(0.001)).values()
    failed = [answer(method, graph, seed) for seed in range(3)]
    told = [result for result in failed if "did not converge" in result.notes[-1]]
    assert told
    assert np.isnan(told[0].columns[0].values).all()


def test_a_degenerate_model_says_which_term_to_take() -> None:
    groups = planted(90, 9, inside=0.9, across=0.01)
    (method,) = ways(AskErgm(("edges", "triangles")), 90, Budget(50)).values()
    assert any("with edges and gwesp there is" in told for told in foretold(method))
    result = answer(method, groups)
    assert 'ask for ergm("edges", "gwesp") instead' in result.notes[-1]
    assert np.isnan(result.columns[0].values).all()
    (method,) = ways(AskErgm(), 90, Budget(50)).values()
    assert not any("gwesp there is" in told for told in foretold(method))
    result = answer(method, groups)
    assert "the fit converged" in result.notes[-1]
    assert result.columns[0].values[1] > 0.5


def test_engines_count_models_without_gwesp() -> None:
    assert AskErgm(("edges", "stars_2", "triangles")).in_sql
    assert not AskErgm().in_sql


@pytest.mark.parametrize("terms", [(), ("triangles",), ("edges", "edges"), ("edges", "squares"), "edges"])
def test_terms_that_make_no_model_are_refused(terms: Any) -> None:
    with pytest.raises(DefocusError):
        AskErgm(terms)


def test_graphs_too_large_to_simulate_are_refused() -> None:
    with pytest.raises(DefocusError, match="too long to simulate"):
        AskErgm().methods(public(5001), Budget(1))


def test_what_has_noise_and_what_is_fitted_are_told_apart() -> None:
    (method,) = ways(AskErgm(("edges", "triangles")), 30, Budget(4)).values()
    coefficient, statistic = answer(method, random_graph(30, 100)).columns
    assert coefficient.how == "none of its own: fitted to the noisy statistics"
    assert statistic.how.startswith("edges: discrete Laplace noise")
    assert "; triangles: " in statistic.how
    assert not method.rules

"""Simulated models beside exact ones, and fits that come back to where they started."""

import itertools
import math

import numpy as np
import pytest

from defocus.errors import DefocusError
from defocus.graphs import Graph, build
from defocus.graphs.certificates import all_graphs
from defocus.graphs.inference import fit_ergm, simulate_ergm
from defocus.graphs.statistics import ClosedEdges, Stars, Triangles
from defocus.noise.testing import seeded


def exact_means(theta: list[float], n: int) -> np.ndarray:
    """Mean statistics of the model, summed over all graphs."""
    stats = np.array(
        [[g.edges, *(int(each.exact(g)[0]) for each in (Stars(2), Triangles(), ClosedEdges()))] for g in all_graphs(n)],
        dtype=float,
    )
    logs = stats @ np.array(theta)
    weights = np.exp(logs - logs.max())
    means: np.ndarray = (stats * weights[:, None]).sum(axis=0) / weights.sum()
    return means


@pytest.mark.statistical
@pytest.mark.parametrize(
    "theta", [[0.0] * 4, [-1.0, 0.1, 0.5, 0.0], [0.5, -0.3, 1.0, 0.0], [-3.0, 0.0, 0.0, 0.0], [-1.0, 0.0, -0.2, 0.6]]
)
def test_simulated_means_are_the_exact_ones(theta: list[float]) -> None:
    terms = ("edges", "stars_2", "triangles", "gwesp")
    drawn = simulate_ergm(terms, np.array(theta), 5, seeded(3), samples=4000)
    means = exact_means(theta, 5)
    spread = drawn.std(axis=0) / math.sqrt(len(drawn)) + 1e-3
    assert (np.abs(drawn.mean(axis=0) - means) < 6 * spread).all()
    other = exact_means([theta[0] + 0.5, *theta[1:]], 5)
    assert (np.abs(drawn.mean(axis=0) - other) > 4 * spread).any()


@pytest.mark.statistical
def test_a_random_graph_is_fitted_by_the_logit_of_its_density() -> None:
    fit = fit_ergm(("edges",), np.array([400.0]), np.array([0.0]), 60, seeded(1))
    density = 400 / math.comb(60, 2)
    assert fit.converged
    assert fit.coefficients[0] == pytest.approx(math.log(density / (1 - density)), abs=3 * fit.standard_errors[0])
    assert fit.standard_errors[0] == pytest.approx(1 / math.sqrt(400 * (1 - density)), rel=0.3)


@pytest.mark.statistical
def test_coefficients_come_back_within_their_errors() -> None:
    terms, truth, bits = ("edges", "triangles"), np.array([-2.5, 0.4]), seeded(9)
    target = simulate_ergm(terms, truth, 50, bits, samples=600).mean(axis=0)
    fit = fit_ergm(terms, target, np.zeros(2), 50, bits)
    assert fit.converged
    assert (np.abs(fit.coefficients - truth) < 2 * fit.standard_errors).all()


@pytest.mark.statistical
def test_noise_widens_standard_errors() -> None:
    terms, target = ("edges", "triangles"), np.array([150.0, 40.0])
    quiet, loud = (fit_ergm(terms, target, np.array([2.0, noise]), 50, seeded(5)) for noise in (0.0, 800.0))
    assert loud.standard_errors[1] > 1.5 * quiet.standard_errors[1]


def test_statistics_out_of_reach_do_not_converge_and_say_so() -> None:
    fit = fit_ergm(("edges", "triangles"), np.array([20.0, 500.0]), np.zeros(2), 30, seeded(2))
    assert not fit.converged


@pytest.mark.parametrize("terms", [(), ("edges", "edges"), ("squares",), ("edges", "stars_3")])
def test_unknown_terms_are_refused(terms: tuple[str, ...]) -> None:
    with pytest.raises(DefocusError, match="terms"):
        fit_ergm(terms, np.zeros(len(terms)), np.zeros(len(terms)), 10, seeded(1))


def test_graphs_too_large_or_too_small_are_refused() -> None:
    for nodes in (2, 5001, -1, True):
        with pytest.raises(DefocusError):
            fit_ergm(("edges",), np.array([1.0]), np.zeros(1), nodes, seeded(1))


def test_the_same_bits_give_the_same_fit() -> None:
    fits = [fit_ergm(("edges",), np.array([50.0]), np.zeros(1), 30, seeded(4)).coefficients for _ in range(2)]
    assert fits[0].tolist() == fits[1].tolist()
    assert len(set(itertools.chain(*[f.tolist() for f in fits]))) == 1


def clustered(groups: int, size: int, inside: float, across: float) -> Graph:
    """Groups whose members are mostly joined to each other."""
    generator, nodes = np.random.default_rng(11), groups * size
    same = np.arange(nodes)[:, None] // size == np.arange(nodes)[None, :] // size
    return build(nodes, *np.nonzero(np.triu(generator.random((nodes, nodes)) < np.where(same, inside, across), 1)))


@pytest.mark.statistical
def test_a_clustered_graph_has_coefficients_with_gwesp_and_none_with_triangles() -> None:
    graph = clustered(20, 10, 0.6, 0.005)
    edges, triangles, closed = graph.edges, int(Triangles().exact(graph)[0]), int(ClosedEdges().exact(graph)[0])
    fits = [
        fit_ergm(("edges", "gwesp"), np.array([edges, closed], float), np.zeros(2), 200, seeded(seed))
        for seed in (1, 2)
    ]
    for fit in fits:
        assert fit.converged
        assert fit.coefficients[1] > 1
        assert fit.simulated == pytest.approx([edges, closed], rel=0.1)
    apart = np.abs(fits[0].coefficients - fits[1].coefficients)
    assert (apart < fits[0].standard_errors).all()
    raw = fit_ergm(("edges", "triangles"), np.array([edges, triangles], float), np.zeros(2), 200, seeded(1))
    assert not raw.converged


@pytest.mark.long
def test_two_thousand_nodes_are_fitted() -> None:
    fit = fit_ergm(("edges", "gwesp"), np.array([6000.0, 3000.0]), np.zeros(2), 2000, seeded(3))
    assert fit.converged
    assert fit.simulated == pytest.approx([6000, 3000], rel=0.1)

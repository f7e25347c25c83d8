"""Edges under node privacy with a cap that is found, beside the best fixed cap, over graphs of many kinds.

    python benchmarks/graphs.py caps FOLDER

FOLDER is that of accuracy.py. The constants of the rule were chosen among a few round numbers on every other generated
graph; the others and the three public graphs had no part in it.
"""

import math
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from accuracy import NAMES, load, node_edges

from defocus.graphs import Graph, build

EPSILONS = (0.1, 0.5, 1.0, 4.0, 20.0)


def caps(folder: Path, *, quick: bool = False) -> dict[str, Any]:
    public = {name: load(folder / f"{name}.txt.gz") for name in NAMES}
    graphs = {**zoo(), **({} if quick else public)}
    ratios = {
        name: [node_edges(graph, 30 if quick else 200, epsilon)["best fixed"]["found / best"] for epsilon in EPSILONS]
        for name, graph in graphs.items()
    }
    groups = {
        "constants chosen here": list(zoo())[::2],
        "no part in that": [name for name in graphs if name not in list(zoo())[::2]],
    }
    print("found / best fixed cap, mean absolute error:", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS), sep=" | ")
    for name, row in ratios.items():
        print(name, *(f"{ratio:.2f}" for ratio in row), sep=" | ")
    summary = {}
    for group, members in groups.items():
        logs = np.log([ratios[name] for name in members])
        summary[group] = {
            "geometric mean": np.exp(logs.mean(axis=0)).tolist(),
            "largest": np.exp(logs.max(axis=0)).tolist(),
        }
        print(
            group,
            *(f"{math.exp(m):.2f} / {math.exp(w):.1f}" for m, w in zip(logs.mean(0), logs.max(0), strict=True)),
            sep=" | ",
        )
    return {"ratios": ratios, **summary}


def zoo() -> dict[str, Graph]:
    """Generated graphs: random, grown, clustered, regular, bipartite, of given degrees, with hubs."""
    draw = np.random.default_rng(5)
    hubs = np.concatenate([draw.choice(np.arange(30, 5000), 1000, replace=False) for _ in range(30)])
    made = {
        "random, degree 10": nx.gnp_random_graph(500, 0.02, seed=1),
        "random, degree 10, larger": nx.gnm_random_graph(5000, 25_000, seed=1),
        "random, dense": nx.gnp_random_graph(300, 0.3, seed=1),
        "Barabási–Albert, 3 each": nx.barabasi_albert_graph(5000, 3, seed=1),
        "Barabási–Albert, 10 each": nx.barabasi_albert_graph(2000, 10, seed=1),
        "small world": nx.watts_strogatz_graph(3000, 8, 0.1, seed=1),
        **{f"given degrees, exponent {slope}": given(slope, 5000, 2000, draw) for slope in (2.1, 2.5, 3.0)},
        "given degrees, exponent 2.1, small": given(2.1, 800, 400, draw),
        "grid": nx.grid_2d_graph(60, 60),
        "regular, degree 6": nx.random_regular_graph(6, 3000, seed=1),
        "power law, clustered": nx.powerlaw_cluster_graph(4000, 5, 0.4, seed=1),
        "blocks": nx.stochastic_block_model([300] * 4, np.full((4, 4), 0.005) + np.eye(4) * 0.045, seed=1),
        "caves": nx.connected_caveman_graph(60, 20),
        "a clique and a path": nx.lollipop_graph(120, 2000),
        "bipartite, 50 and 3000": nx.bipartite.random_graph(50, 3000, 0.1, seed=1),
        "duplication": nx.duplication_divergence_graph(3000, 0.45, seed=1),
        "tree": nx.random_labeled_tree(4000, seed=1),
        "Dorogovtsev–Goltsev–Mendes": nx.dorogovtsev_goltsev_mendes_graph(8),
        "geometric": nx.random_geometric_graph(2000, 0.05, seed=1),
        "karate club": nx.karate_club_graph(),
        "Les Misérables": nx.les_miserables_graph(),
        "30 hubs of degree 1000": nx.Graph(zip(np.repeat(np.arange(30), 1000).tolist(), hubs.tolist(), strict=True)),
    }
    return {name: plain(graph) for name, graph in made.items()}


def given(slope: float, nodes: int, largest: int, draw: np.random.Generator) -> Any:
    degrees = np.minimum(2 * (1 - draw.random(nodes)) ** (-1 / (slope - 1)), largest).astype(int)
    degrees[0] += degrees.sum() % 2
    return nx.configuration_model(degrees.tolist(), seed=1)


def plain(graph: Any) -> Graph:
    simple = nx.convert_node_labels_to_integers(nx.Graph(graph))
    simple.remove_edges_from(list(nx.selfloop_edges(simple)))
    return build(simple.number_of_nodes(), *np.array(list(simple.edges)).T)

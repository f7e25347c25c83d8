"""Making released numbers consistent: post-processing, which costs nothing and never sees the data."""

from defocus.graphs.inference.degrees import falling, graphical, is_graphical, plausible_counts, realised, rising
from defocus.graphs.inference.ergm import ErgmFit, fit_ergm, simulate_ergm
from defocus.graphs.inference.partition import Partition, least_strength, partition, recovery
from defocus.graphs.inference.synthetic import SyntheticGraph, synthetic_graph, to_networkx

__all__ = [
    "ErgmFit",
    "Partition",
    "SyntheticGraph",
    "falling",
    "fit_ergm",
    "graphical",
    "is_graphical",
    "least_strength",
    "partition",
    "plausible_counts",
    "realised",
    "recovery",
    "rising",
    "simulate_ergm",
    "synthetic_graph",
    "to_networkx",
]

"""Making released numbers consistent: post-processing, which costs nothing and never sees the data."""

from defocus.graphs.inference.degrees import falling, graphical, is_graphical, plausible_counts, realised, rising
from defocus.graphs.inference.ergm import ErgmFit, fit_ergm, simulate_ergm
from defocus.graphs.inference.synthetic import SyntheticGraph, synthetic_graph, to_networkx

__all__ = [
    "ErgmFit",
    "SyntheticGraph",
    "falling",
    "fit_ergm",
    "graphical",
    "is_graphical",
    "plausible_counts",
    "realised",
    "rising",
    "simulate_ergm",
    "synthetic_graph",
    "to_networkx",
]

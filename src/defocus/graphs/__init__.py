"""Private statistics of graphs: edges, degrees, stars, triangles and more, under edge or node privacy.

>>> from defocus import graphs
>>> graphs.build(3, [0, 1], [1, 2]).edges
2

A graph is opened with :func:`open_graph`, beside its ledger; every question is free to preview. Each statistic has an
exact sensitivity, checked on all small graphs by its certificate: see :mod:`defocus.graphs.certificates`.
"""

from defocus.answers import Answer, Preview, Released
from defocus.graphs.certificates import Certificate, Entry, Finding
from defocus.graphs.data import build, build_directed
from defocus.graphs.graph import DirectedGraph, Graph
from defocus.graphs.neighbour_sums import neighbour_sums
from defocus.graphs.network import GraphQuery, Network
from defocus.graphs.open import open_graph
from defocus.graphs.public import Public
from defocus.graphs.statistics import ENTRIES, Degrees, Edges, Histogram, Joint, Stars, Statistic, Triangles
from defocus.privacy.sensitivity import Sensitivity

__all__ = [
    "ENTRIES",
    "Answer",
    "Certificate",
    "Degrees",
    "DirectedGraph",
    "Edges",
    "Entry",
    "Finding",
    "Graph",
    "GraphQuery",
    "Histogram",
    "Joint",
    "Network",
    "Preview",
    "Public",
    "Released",
    "Sensitivity",
    "Stars",
    "Statistic",
    "Triangles",
    "build",
    "build_directed",
    "neighbour_sums",
    "open_graph",
]

"""Private statistics of graphs: edges, degrees, triangles, stars and more, under edge or node privacy."""

from defocus.graphs.building import build, build_directed
from defocus.graphs.certificates import Certificate, Finding
from defocus.graphs.graph import DirectedGraph, Graph
from defocus.graphs.public import Public
from defocus.graphs.reach import Reach
from defocus.graphs.registry import Entry

__all__ = ["Certificate", "DirectedGraph", "Entry", "Finding", "Graph", "Public", "Reach", "build", "build_directed"]

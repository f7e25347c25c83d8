"""Statistics of graphs, one file each, all registered with a certificate that the test suite runs."""

from defocus.graphs.registry import Entry
from defocus.graphs.statistic import IntVector, Statistic
from defocus.graphs.statistics import (
    arcs,
    capped,
    degrees,
    edges,
    histogram,
    joint,
    pagerank,
    projected,
    stars,
    triangles,
)
from defocus.graphs.statistics.arcs import ArcDegrees, ArcHistogram
from defocus.graphs.statistics.capped import CappedEdges, CappedTriangles
from defocus.graphs.statistics.degrees import Degrees
from defocus.graphs.statistics.edges import Edges
from defocus.graphs.statistics.histogram import Histogram
from defocus.graphs.statistics.joint import Joint
from defocus.graphs.statistics.pagerank import PageRank
from defocus.graphs.statistics.projected import ProjectedHistogram
from defocus.graphs.statistics.stars import Stars
from defocus.graphs.statistics.triangles import Triangles

__all__ = [
    "ENTRIES",
    "ArcDegrees",
    "ArcHistogram",
    "CappedEdges",
    "CappedTriangles",
    "Degrees",
    "Edges",
    "Entry",
    "Histogram",
    "IntVector",
    "Joint",
    "PageRank",
    "ProjectedHistogram",
    "Stars",
    "Statistic",
    "Triangles",
]

ENTRIES: tuple[Entry, ...] = (
    edges.ENTRY,
    degrees.ENTRY,
    histogram.ENTRY,
    stars.ENTRY,
    triangles.ENTRY,
    joint.ENTRY,
    arcs.ENTRY,
    capped.ENTRY,
    capped.TRIANGLES,
    projected.ENTRY,
    pagerank.ENTRY,
)
"""Every statistic that can be asked for. A statistic joins by its ``ENTRY``, which demands a certificate."""

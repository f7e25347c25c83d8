"""Statistics of graphs, one file each, all registered with a certificate that the test suite runs."""

from defocus.graphs.registry import Entry
from defocus.graphs.statistic import IntVector, Statistic
from defocus.graphs.statistics import degrees, edges
from defocus.graphs.statistics.degrees import Degrees
from defocus.graphs.statistics.edges import Edges

__all__ = ["ENTRIES", "Degrees", "Edges", "Entry", "IntVector", "Statistic"]

ENTRIES: tuple[Entry, ...] = (
    edges.ENTRY,
    degrees.ENTRY,
)
"""Every statistic that can be asked for. A statistic joins by its ``ENTRY``, which demands a certificate."""

"""Statistics of graphs, one file each, all registered with a certificate that the test suite runs."""

from defocus.errors import InvalidParameterError
from defocus.graphs.certificates import Entry
from defocus.graphs.statistic import IntVector, Statistic
from defocus.graphs.statistics import (
    arcs,
    blocks,
    capped,
    degrees,
    edges,
    histogram,
    hubs,
    interactions,
    joint,
    pagerank,
    projected,
    spectrum,
    stars,
    triangles,
    weights,
)
from defocus.graphs.statistics.arcs import ArcDegrees, ArcHistogram
from defocus.graphs.statistics.blocks import Likelihood
from defocus.graphs.statistics.capped import CappedEdges, CappedTriangles
from defocus.graphs.statistics.degrees import Degrees
from defocus.graphs.statistics.edges import Edges
from defocus.graphs.statistics.histogram import Histogram
from defocus.graphs.statistics.hubs import Hubs
from defocus.graphs.statistics.interactions import Interactions
from defocus.graphs.statistics.joint import Joint
from defocus.graphs.statistics.pagerank import PageRank
from defocus.graphs.statistics.projected import ProjectedHistogram
from defocus.graphs.statistics.spectrum import Gap
from defocus.graphs.statistics.stars import Stars
from defocus.graphs.statistics.triangles import Triangles
from defocus.graphs.statistics.weights import WeightSums

__all__ = [
    "ENTRIES",
    "ArcDegrees",
    "ArcHistogram",
    "CappedEdges",
    "CappedTriangles",
    "Degrees",
    "Edges",
    "Entry",
    "Gap",
    "Histogram",
    "Hubs",
    "IntVector",
    "Interactions",
    "Joint",
    "Likelihood",
    "PageRank",
    "ProjectedHistogram",
    "Stars",
    "Statistic",
    "Triangles",
    "WeightSums",
    "registered",
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
    hubs.ENTRY,
    pagerank.ENTRY,
    pagerank.USUAL,
    spectrum.ENTRY,
    blocks.ENTRY,
    weights.ENTRY,
    interactions.ENTRY,
)
"""Every statistic that can be asked for. A statistic joins by its ``ENTRY``, which demands a certificate."""


def registered(statistic: Statistic) -> Statistic:
    """The statistic, if it and all of its parts have a certificate; else a refusal: nobody checked how far they move.

    >>> registered(Edges())
    Edges()
    """
    known = {type(each) for entry in ENTRIES for each in entry.certificate.statistics}
    for part in (statistic, *(statistic.parts if isinstance(statistic, Joint) else ())):
        if type(part) not in known:
            raise InvalidParameterError(
                f"{type(part).__name__} is not registered, so that no certificate says how far one unit moves it.",
                fix="take a statistic of defocus.graphs.ENTRIES; or ask(…) a question that answers for its own noise.",
            )
    return statistic

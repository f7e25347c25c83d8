"""Statistics of graphs, all registered with a certificate that the test suite runs."""

from defocus.errors import InvalidParameterError
from defocus.graphs.certificates import Entry
from defocus.graphs.public import IntVector, Statistic
from defocus.graphs.statistics import blocks, degrees, joint, node_level, spectrum, subgraphs, weights
from defocus.graphs.statistics.blocks import GroupEdges, Likelihood
from defocus.graphs.statistics.degrees import ArcDegrees, ArcHistogram, Degrees, Histogram
from defocus.graphs.statistics.joint import Joint
from defocus.graphs.statistics.node_level import CappedEdges, CappedTriangles, Hubs, ProjectedHistogram
from defocus.graphs.statistics.spectrum import Gap, PageRank
from defocus.graphs.statistics.subgraphs import Adjacent, ClosedEdges, Edges, Stars, Triangles
from defocus.graphs.statistics.weights import Interactions, WeightSums

__all__ = [
    "ENTRIES",
    "Adjacent",
    "ArcDegrees",
    "ArcHistogram",
    "CappedEdges",
    "CappedTriangles",
    "ClosedEdges",
    "Degrees",
    "Edges",
    "Entry",
    "Gap",
    "GroupEdges",
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
    subgraphs.PAIRS_ENTRY,
    subgraphs.EDGES_ENTRY,
    degrees.DEGREES_ENTRY,
    degrees.HISTOGRAM_ENTRY,
    subgraphs.STARS_ENTRY,
    subgraphs.TRIANGLES_ENTRY,
    subgraphs.CLOSED_ENTRY,
    joint.ENTRY,
    degrees.ARCS_ENTRY,
    node_level.CAPPED_EDGES_ENTRY,
    node_level.CAPPED_TRIANGLES_ENTRY,
    node_level.PROJECTED_ENTRY,
    node_level.HUBS_ENTRY,
    spectrum.PAGERANK_ENTRY,
    spectrum.USUAL_PAGERANK_ENTRY,
    spectrum.SPECTRUM_ENTRY,
    blocks.ENTRY,
    blocks.GROUPS_ENTRY,
    weights.WEIGHTS_ENTRY,
    weights.PERSONS_WEIGHTS_ENTRY,
    weights.INTERACTIONS_ENTRY,
)
"""Every statistic that can be asked for. A statistic joins by an entry, which demands a certificate."""


def registered(statistic: Statistic) -> Statistic:
    """The statistic, if it and all of its parts have a certificate; else a refusal: nobody checked how far they move.

    >>> registered(Edges())
    Edges()
    """
    kinds = {type(statistic) for entry in ENTRIES for statistic in entry.certificate.statistics}
    for part in (statistic, *(statistic.parts if isinstance(statistic, Joint) else ())):
        if type(part) not in kinds:
            raise InvalidParameterError(
                f"{type(part).__name__} is not registered, so that no certificate says how far one unit moves it.",
                fix="take a statistic of defocus.graphs.ENTRIES; or ask(…) a question that answers for its own noise.",
            )
    return statistic

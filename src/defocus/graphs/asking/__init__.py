"""Questions about graphs, one file each: which methods can answer them, and how the answers are laid out."""

from defocus.graphs.asking.clustering import AskClustering
from defocus.graphs.asking.communities import AskCommunities, AskLabellings
from defocus.graphs.asking.counts import AskEdges, AskStars, AskTriangles
from defocus.graphs.asking.degrees import AskDegrees, AskHistogram
from defocus.graphs.asking.ergm import AskErgm
from defocus.graphs.asking.interactions import AskInteractions
from defocus.graphs.asking.joint import AskJoint
from defocus.graphs.asking.pagerank import AskPageRank
from defocus.graphs.asking.several import AskSubgraphs
from defocus.graphs.asking.top import AskTop
from defocus.graphs.asking.weights import AskWeights

__all__ = [
    "AskClustering",
    "AskCommunities",
    "AskDegrees",
    "AskEdges",
    "AskErgm",
    "AskHistogram",
    "AskInteractions",
    "AskJoint",
    "AskLabellings",
    "AskPageRank",
    "AskStars",
    "AskSubgraphs",
    "AskTop",
    "AskTriangles",
    "AskWeights",
]

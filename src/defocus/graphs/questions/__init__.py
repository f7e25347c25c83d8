"""Questions about graphs, one file each: which methods can answer them, and how the answers are laid out."""

from defocus.graphs.questions.communities import AskClustering, AskCommunities, AskLabellings
from defocus.graphs.questions.counts import AskEdges, AskStars, AskTriangles
from defocus.graphs.questions.degrees import AskDegrees, AskHistogram
from defocus.graphs.questions.ergm import AskErgm
from defocus.graphs.questions.groups import AskGroups
from defocus.graphs.questions.interactions import AskInteractions
from defocus.graphs.questions.joint import AskJoint, AskSubgraphs
from defocus.graphs.questions.partition import AskPartition
from defocus.graphs.questions.ranking import AskPageRank, AskTop
from defocus.graphs.questions.weights import AskWeights

__all__ = [
    "AskClustering",
    "AskCommunities",
    "AskDegrees",
    "AskEdges",
    "AskErgm",
    "AskGroups",
    "AskHistogram",
    "AskInteractions",
    "AskJoint",
    "AskLabellings",
    "AskPageRank",
    "AskPartition",
    "AskStars",
    "AskSubgraphs",
    "AskTop",
    "AskTriangles",
    "AskWeights",
]

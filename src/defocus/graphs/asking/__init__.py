"""Questions about graphs, one file each: which methods can answer them, and how the answers are laid out."""

from defocus.graphs.asking.counts import AskEdges, AskStars, AskTriangles
from defocus.graphs.asking.degrees import AskDegrees, AskHistogram
from defocus.graphs.asking.joint import AskJoint

__all__ = ["AskDegrees", "AskEdges", "AskHistogram", "AskJoint", "AskStars", "AskTriangles"]

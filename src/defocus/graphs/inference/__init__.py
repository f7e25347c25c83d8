"""Making released numbers consistent: post-processing, which costs nothing and never sees the data."""

from defocus.graphs.inference.graphical import graphical, is_graphical, realised
from defocus.graphs.inference.isotonic import falling, rising
from defocus.graphs.inference.plausible import plausible_counts

__all__ = ["falling", "graphical", "is_graphical", "plausible_counts", "realised", "rising"]

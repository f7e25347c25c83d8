"""Statistics that one node with all its edges cannot move far: capped counts by linear programs, and their caps."""

from defocus.graphs.node.caps import CapRule, capped_edges_twice, hirsch
from defocus.graphs.node.programs import GRAIN, capped_triangles

__all__ = ["GRAIN", "CapRule", "capped_edges_twice", "capped_triangles", "hirsch"]

"""Floor 7: attacking mechanisms, to find faults and to measure how much is really lost."""

from defocus.audit.findings import Finding
from defocus.audit.lower_bounds import Pairs, lower_bound, search
from defocus.audit.neighbours import Pair, neighbours
from defocus.audit.running import batched

__all__ = ["Finding", "Pair", "Pairs", "batched", "lower_bound", "neighbours", "search"]

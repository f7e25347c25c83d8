"""Rényi divergences of events, and what they say about (epsilon, delta).

``curve(event, orders, adjacency)`` is the one entry: an upper bound on the divergence at each order, composition,
sampling and private selection included.
"""

from defocus.privacy.accounting.renyi import sampling
from defocus.privacy.accounting.renyi import sampling as selection
from defocus.privacy.accounting.renyi.conversion import delta_at, epsilon_at, textbook_epsilon_at
from defocus.privacy.accounting.renyi.curves import Floats, curve

__all__ = ["Floats", "curve", "delta_at", "epsilon_at", "sampling", "selection", "textbook_epsilon_at"]

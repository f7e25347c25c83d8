"""Defocus: learn from a crowd without showing a person.

A release is a mechanism applied to data under a unit, charged to one ledger before it is sampled.
"""

from defocus.privacy.budgets import Budget
from defocus.privacy.units import edge, event, node, rows, user, weight

__all__ = ["Budget", "edge", "event", "node", "rows", "user", "weight"]

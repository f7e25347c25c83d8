"""Defocus: learn from a crowd without showing a person.

A release is a mechanism applied to data under a unit, charged to one ledger before it is sampled.

>>> import defocus as dp
>>> count = dp.mechanisms.Laplace.calibrated(epsilon=0.1)
>>> count.error, count.interval(0.95)
(9.98..., 30)
>>> dp.Budget(1, 1e-6).covers(dp.privacy.account(5 * count.event))
True

Rooms are opened when they are first asked for, so that importing this page stays quick.
"""

from importlib import import_module
from typing import Any

from defocus import errors, privacy
from defocus.privacy.budgets import Budget
from defocus.privacy.units import edge, event, node, rows, user, weight

__all__ = [
    "Budget",
    "Ledger",
    "audit",
    "correlation",
    "count",
    "count_distinct",
    "count_units",
    "covariance",
    "edge",
    "errors",
    "event",
    "graphs",
    "histogram",
    "learning",
    "ledger",
    "local",
    "max",
    "mean",
    "mechanisms",
    "median",
    "min",
    "node",
    "noise",
    "open",
    "open_graph",
    "parts",
    "power",
    "privacy",
    "quantile",
    "quantiles",
    "ratio",
    "release",
    "report",
    "rows",
    "std",
    "sum",
    "tables",
    "user",
    "variance",
    "weight",
    "weighted_mean",
    "workloads",
]

_ROOMS = ("audit", "graphs", "learning", "ledger", "local", "mechanisms", "noise", "release", "tables", "workloads")
_TABLES = (
    "correlation",
    "count",
    "count_distinct",
    "count_units",
    "covariance",
    "histogram",
    "max",
    "mean",
    "median",
    "min",
    "open",
    "parts",
    "power",
    "quantile",
    "quantiles",
    "ratio",
    "report",
    "std",
    "sum",
    "variance",
    "weighted_mean",
)
"""What the tables room offers at the front door: how a table is opened, and what can be asked of it."""


def __getattr__(name: str) -> Any:
    """Open a room. What type checkers see of it is in ``__init__.pyi``."""
    if name == "Ledger":
        return import_module("defocus.ledger").Ledger
    if name == "open_graph":
        return import_module("defocus.graphs").open_graph
    if name in _TABLES:
        return getattr(import_module("defocus.tables"), name)
    if name in _ROOMS:
        return import_module(f"defocus.{name}")
    raise AttributeError(f"module 'defocus' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

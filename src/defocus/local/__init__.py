"""Collection without trust: each person randomises on their own device, and a server estimates from the reports.

>>> from defocus import local
>>> asked = local.oracle("oue", 100, epsilon=1)
>>> reports = asked.encode([3] * 1000 + [7] * 500)
>>> estimate = asked.estimate(reports)
>>> bool(abs(estimate.counts[3] - 1000) < 8 * estimate.errors[3])
True
"""

from defocus.local.clients import Client
from defocus.local.domains import Categories, Interval
from defocus.local.estimates import Estimate
from defocus.local.means import Mean, MeanEstimate, mean
from defocus.local.oracle import Oracle, oracle
from defocus.local.reports import Reports
from defocus.local.servers import Server, State

__all__ = [
    "Categories",
    "Client",
    "Estimate",
    "Interval",
    "Mean",
    "MeanEstimate",
    "Oracle",
    "Reports",
    "Server",
    "State",
    "mean",
    "oracle",
]

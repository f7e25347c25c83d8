"""Collection without trust: each person randomises on their own device, and a server estimates from the reports.

>>> from defocus import local
>>> asked = local.oracle("oue", 100, epsilon=1)
>>> reports = asked.encode([3] * 1000 + [7] * 500)
>>> estimate = asked.estimate(reports)
>>> bool(abs(estimate.counts[3] - 1000) < 8 * estimate.errors[3])
True
"""

from defocus.local import shuffling
from defocus.local.attributes import Attributes, Tables, attributes
from defocus.local.choosing import Choice, best, best_mean, choices
from defocus.local.clients import Client, Memory
from defocus.local.collecting import collect, collection_event
from defocus.local.comparing import Comparison, Option, compare
from defocus.local.designs import Rappor
from defocus.local.domains import Categories, Interval
from defocus.local.estimates import Estimate
from defocus.local.files import count_files, from_arrow, to_arrow, write_parquet
from defocus.local.hitters import Hitter, Hitters, heavy_hitters
from defocus.local.means import Mean, MeanEstimate, mean
from defocus.local.oracle import Oracle, oracle
from defocus.local.processing import process
from defocus.local.reports import Reports
from defocus.local.servers import Server, State

__all__ = [
    "Attributes",
    "Categories",
    "Choice",
    "Client",
    "Comparison",
    "Estimate",
    "Hitter",
    "Hitters",
    "Interval",
    "Mean",
    "MeanEstimate",
    "Memory",
    "Option",
    "Oracle",
    "Rappor",
    "Reports",
    "Server",
    "State",
    "Tables",
    "attributes",
    "best",
    "best_mean",
    "choices",
    "collect",
    "collection_event",
    "compare",
    "count_files",
    "from_arrow",
    "heavy_hitters",
    "mean",
    "oracle",
    "process",
    "shuffling",
    "to_arrow",
    "write_parquet",
]

from defocus import audit as audit
from defocus import errors as errors
from defocus import graphs as graphs
from defocus import learning as learning
from defocus import ledger as ledger
from defocus import local as local
from defocus import mechanisms as mechanisms
from defocus import noise as noise
from defocus import privacy as privacy
from defocus import release as release
from defocus import tables as tables
from defocus import workloads as workloads
from defocus.graphs import open_graph as open_graph
from defocus.ledger import Ledger as Ledger
from defocus.privacy.budgets import Budget as Budget
from defocus.privacy.units import edge as edge
from defocus.privacy.units import event as event
from defocus.privacy.units import node as node
from defocus.privacy.units import rows as rows
from defocus.privacy.units import user as user
from defocus.privacy.units import weight as weight
from defocus.tables import correlation as correlation
from defocus.tables import count as count
from defocus.tables import count_distinct as count_distinct
from defocus.tables import count_units as count_units
from defocus.tables import covariance as covariance
from defocus.tables import histogram as histogram
from defocus.tables import max as max
from defocus.tables import mean as mean
from defocus.tables import median as median
from defocus.tables import min as min
from defocus.tables import open as open
from defocus.tables import parts as parts
from defocus.tables import power as power
from defocus.tables import quantile as quantile
from defocus.tables import quantiles as quantiles
from defocus.tables import ratio as ratio
from defocus.tables import report as report
from defocus.tables import std as std
from defocus.tables import sum as sum
from defocus.tables import variance as variance
from defocus.tables import weighted_mean as weighted_mean

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

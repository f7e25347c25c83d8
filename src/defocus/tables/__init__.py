"""Floor 7: tables. Private statistics on tables of people, computed where the data is.

A table is opened, a question is built from it, previewed for free, and released against the table's ledger.
"""

from defocus.answers import Answer, AnswerColumn, Preview, PreviewColumn, Released
from defocus.engines.schema import Column, Kind, Schema
from defocus.tables.aggregates import (
    count_units,
    histogram,
    max,  # noqa: A004  # reads as dp.max
    median,
    min,  # noqa: A004  # reads as dp.min
    quantile,
    quantiles,
)
from defocus.tables.budget_choice import Choice, choose_budget
from defocus.tables.bulk import Written
from defocus.tables.contribution import Bound
from defocus.tables.cubes import Cube
from defocus.tables.distinct_values import count_distinct
from defocus.tables.examples import Examples
from defocus.tables.hierarchy import Invariants
from defocus.tables.open import open  # noqa: A004  # reads as dp.open
from defocus.tables.parts import parts
from defocus.tables.power import Power, power
from defocus.tables.query import Query
from defocus.tables.report import report
from defocus.tables.statistics import (
    correlation,
    count,
    covariance,
    mean,
    ratio,
    std,
    sum,  # noqa: A004  # reads as dp.sum
    variance,
    weighted_mean,
)
from defocus.tables.table import Grouped, Table

__all__ = [
    "Answer",
    "AnswerColumn",
    "Bound",
    "Choice",
    "Column",
    "Cube",
    "Examples",
    "Grouped",
    "Invariants",
    "Kind",
    "Power",
    "Preview",
    "PreviewColumn",
    "Query",
    "Released",
    "Schema",
    "Table",
    "Written",
    "choose_budget",
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
]

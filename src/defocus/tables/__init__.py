"""Floor 6: tables. Private statistics on tables of people, computed where the data is.

A table is opened, a question is built from it, previewed for free, and released against the table's ledger.
"""

from defocus.answers.columns import AnswerColumn
from defocus.engines.columns import Column, Schema
from defocus.engines.kinds import Kind
from defocus.tables.aggregates import (
    correlation,
    count,
    count_distinct,
    count_units,
    covariance,
    histogram,
    max,  # noqa: A004  # reads as dp.max
    mean,
    median,
    min,  # noqa: A004  # reads as dp.min
    quantile,
    quantiles,
    ratio,
    std,
    sum,  # noqa: A004  # reads as dp.sum
    variance,
    weighted_mean,
)
from defocus.tables.answers import Answer
from defocus.tables.bounding import Bound
from defocus.tables.cubes import Cube
from defocus.tables.dividing import parts
from defocus.tables.opening import open  # noqa: A004  # reads as dp.open
from defocus.tables.previewing import Preview, PreviewColumn
from defocus.tables.query import Query
from defocus.tables.reporting import report
from defocus.tables.sizing import Power, power
from defocus.tables.table import Grouped, Table

__all__ = [
    "Answer",
    "AnswerColumn",
    "Bound",
    "Column",
    "Cube",
    "Grouped",
    "Kind",
    "Power",
    "Preview",
    "PreviewColumn",
    "Query",
    "Schema",
    "Table",
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

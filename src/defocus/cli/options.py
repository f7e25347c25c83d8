"""The options that commands share, with their help."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "FILE",
    "Accountant",
    "Accountants",
    "Adjacency",
    "AtMost",
    "Bounds",
    "BudgetDelta",
    "BudgetEpsilon",
    "Dataset",
    "DatasetOrLedger",
    "Delta",
    "Dialect",
    "Epsilon",
    "Explain",
    "Expression",
    "Find",
    "Json",
    "LedgerPlace",
    "Method",
    "Mu",
    "Neighbours",
    "Out",
    "Part",
    "Plot",
    "Purpose",
    "Question",
    "Request",
    "Rho",
    "Spend",
    "SpendDelta",
    "TableName",
    "Where",
    "Who",
]

FILE = Path("defocus.toml")
"""Where a dataset file is looked for."""


class Adjacency(StrEnum):
    """The ways to say which data sets are neighbours."""

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"


class Bounds(StrEnum):
    """What to do about bounds that nobody declared."""

    FIND = "find"


Expression = Annotated[str, typer.Argument(help="What happens, e.g. '1000 * sampled(gaussian(1.0), 0.01)'.")]
Json = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON instead of a table.")]
Neighbours = Annotated[Adjacency, typer.Option("--adjacency", help="Which data sets are neighbours.")]
_EPSILON = "What the release may cost."
_METHOD = "Which accountant: pld, rdp, zcdp, gdp, advanced or basic"
Epsilon = Annotated[float | None, typer.Option(help=_EPSILON)]
Delta = Annotated[float | None, typer.Option(help="The delta it may cost; 1e-6 by default.")]
Rho = Annotated[float | None, typer.Option(help="What it may cost in zero-concentrated DP, instead.")]
Mu = Annotated[float | None, typer.Option(help="What it may cost in Gaussian DP, instead.")]
Accountant = Annotated[str | None, typer.Option("--method", help=f"{_METHOD}; the default suits the price.")]
Accountants = Annotated[list[str] | None, typer.Option("--method", help=f"{_METHOD}; may be repeated.")]
Method = Annotated[str | None, typer.Option(help="Which method of the preview; by default the least error.")]
Where = Annotated[str, typer.Argument(metavar="FILE", help="The ledger: a file, or the URL of a database.")]


Question = Annotated[str, typer.Argument(metavar="SQL", help="A SELECT about the data set; one SELECT is one release.")]
Dataset = Annotated[Path, typer.Option("--dataset", "-d", help="The dataset file.")]
DatasetOrLedger = Annotated[
    str, typer.Option("--dataset", "-d", help="The dataset file, or a ledger: a file or the URL of a database.")
]
Spend = Annotated[float, typer.Option(help=_EPSILON)]
SpendDelta = Annotated[float | None, typer.Option(help="The delta it may cost; none by default.")]
BudgetEpsilon = Annotated[float | None, typer.Option("--budget", help="The epsilon that all releases may cost.")]
BudgetDelta = Annotated[float, typer.Option("--budget-delta", help="The delta that all releases may cost.")]
LedgerPlace = Annotated[str | None, typer.Option("--ledger", help="The ledger; beside the data by default.")]
TableName = Annotated[str | None, typer.Option("--table", help="Which table of a database.")]
Purpose = Annotated[str | None, typer.Option(help="Why, in one line; goes into the ledger.")]
Who = Annotated[str | None, typer.Option(help="By whom; the account's name by default.")]
Request = Annotated[str | None, typer.Option(help="Keep the answer under this name; asked again it is free.")]
Plot = Annotated[Path | None, typer.Option(help="Plot the answer: a .png, .svg or .pdf file.")]
Explain = Annotated[bool, typer.Option("--explain", metavar="", help="Explain it in plain words.")]
Find = Annotated[Bounds | None, typer.Option("--bounds", help="Pay for finding bounds that nobody declared.")]
AtMost = Annotated[int, typer.Option(help="How many different values one person brings to COUNT(DISTINCT …).")]
Dialect = Annotated[str, typer.Option(help="Which SQL it is, such as postgres or spark.")]
Part = Annotated[
    list[str] | None, typer.Option("--part", help="Ask about this part alone, such as a day; may be repeated.")
]
Out = Annotated[Path | None, typer.Option(help="Write the answer to a .csv, .parquet or .json file.")]

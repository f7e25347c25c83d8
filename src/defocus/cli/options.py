"""The options that commands share, with their help."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "FILE",
    "Adjacency",
    "AtMost",
    "Bounds",
    "By",
    "Dataset",
    "DatasetOrLedger",
    "Delta",
    "Dialect",
    "Epsilon",
    "Explain",
    "Expression",
    "Find",
    "Json",
    "Mu",
    "Neighbours",
    "Out",
    "Part",
    "Question",
    "Rho",
    "Spend",
    "SpendDelta",
    "Where",
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


class By(StrEnum):
    """The accountants."""

    PLD = "pld"
    RDP = "rdp"
    ZCDP = "zcdp"
    GDP = "gdp"
    ADVANCED = "advanced"
    BASIC = "basic"


Expression = Annotated[str, typer.Argument(help="What happens, e.g. '1000 * sampled(gaussian(1.0), 0.01)'.")]
Json = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON instead of a table.")]
Neighbours = Annotated[Adjacency, typer.Option("--adjacency", help="Which data sets are neighbours.")]
Epsilon = Annotated[float | None, typer.Option(help="The epsilon of the budget.")]
Delta = Annotated[float | None, typer.Option(help="The delta that goes with epsilon; 1e-6 unless told.")]
Rho = Annotated[float | None, typer.Option(help="A budget of zero-concentrated DP instead.")]
Mu = Annotated[float | None, typer.Option(help="A budget of Gaussian DP instead.")]
Where = Annotated[str, typer.Argument(metavar="FILE", help="The ledger: a file, or the URL of a database.")]


Question = Annotated[str, typer.Argument(metavar="SQL", help="A SELECT about the data set; one SELECT is one release.")]
Dataset = Annotated[Path, typer.Option("--dataset", "-d", help="The dataset file.")]
DatasetOrLedger = Annotated[
    str, typer.Option("--dataset", "-d", help="The dataset file, or a ledger: a file or the URL of a database.")
]
Spend = Annotated[float, typer.Option(help="What the release may cost.")]
SpendDelta = Annotated[float | None, typer.Option(help="The delta it may cost; none unless told.")]
Explain = Annotated[bool, typer.Option("--explain", metavar="", help="Explain it in plain words.")]
Find = Annotated[Bounds | None, typer.Option("--bounds", help="Pay for finding bounds that nobody declared.")]
AtMost = Annotated[int, typer.Option(help="How many different values one person brings to COUNT(DISTINCT …).")]
Dialect = Annotated[str, typer.Option(help="Which SQL it is, such as postgres or spark.")]
Part = Annotated[
    list[str] | None, typer.Option("--part", help="Ask about this part alone, such as a day; may be repeated.")
]
Out = Annotated[Path | None, typer.Option(help="Write the answer to a .csv, .parquet or .json file.")]

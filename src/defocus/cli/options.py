"""The options that commands share, with their help."""

from collections.abc import Callable
from enum import StrEnum
from inspect import Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from defocus.errors import InvalidParameterError, Number, positive, probability
from defocus.privacy.budgets import Budget
from defocus.privacy.calibration import check_budget

__all__ = [
    "DELTA",
    "FILE",
    "Accountant",
    "Accountants",
    "Adjacency",
    "AtMost",
    "Bounds",
    "BudgetDelta",
    "BudgetEpsilon",
    "Confidence",
    "Dataset",
    "DatasetOrLedger",
    "Delta",
    "Dialect",
    "Epsilon",
    "Explain",
    "Expression",
    "Find",
    "Format",
    "FormatName",
    "Groups",
    "Intervals",
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
    "Reason",
    "Request",
    "Rho",
    "Rows",
    "Server",
    "Spend",
    "SpendDelta",
    "TableName",
    "Where",
    "Who",
    "asked",
    "paid",
    "price_of",
    "shown",
    "taking",
    "total",
    "written",
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


class FormatName(StrEnum):
    """How an answer is printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


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
Reason = Annotated[str | None, typer.Option(help="With --server: why, for the officer who decides.")]
Server = Annotated[
    str | None,
    typer.Option(help="Ask a server, whose data set --dataset names; your token is in DEFOCUS_TOKEN."),
]
Request = Annotated[str | None, typer.Option(help="Keep the answer under this name; asked again it is free.")]
Plot = Annotated[Path | None, typer.Option(help="Plot the answer: a .png, .svg or .pdf file.")]
Explain = Annotated[bool, typer.Option("--explain", metavar="", help="Explain it in plain words.")]
Find = Annotated[Bounds | None, typer.Option("--bounds", help="Pay for finding bounds that nobody declared.")]
AtMost = Annotated[
    int | None, typer.Option(help="How many different values one person brings to COUNT(DISTINCT …); found by default.")
]
Intervals = Annotated[
    bool, typer.Option("--intervals", metavar="", help="Give MEDIAN and the like an interval; they err more then.")
]
Dialect = Annotated[str, typer.Option(help="Which SQL it is, such as postgres or spark.")]
Part = Annotated[
    list[str] | None, typer.Option("--part", help="Ask about this part alone, such as a day; may be repeated.")
]
Out = Annotated[Path | None, typer.Option(help="Write the answer to a .csv, .xlsx, .parquet or .json file.")]
Rows = Annotated[
    str | None, typer.Option("--rows", help="How many rows one person counts with at most, or find, the default.")
]
Groups = Annotated[int | None, typer.Option("--groups", help="In how many groups one person counts at most.")]
Confidence = Annotated[float, typer.Option("--confidence", help="The probability with which an interval holds.")]
Format = Annotated[FormatName, typer.Option("--format", help="Print a table, or exact numbers as CSV or JSON.")]


def asked(
    question: Question,
    *,
    epsilon: Spend,
    delta: SpendDelta = None,
    bounds: Find = None,
    at_most: AtMost = None,
    rows: Rows = None,
    groups: Groups = None,
    dialect: Dialect = "duckdb",
    part: Part = None,
) -> None:
    """The options of a question."""


def paid(*, purpose: Purpose = None, who: Who = None) -> None:
    """The options of a charge."""


def written(
    *, out: Out = None, plot: Plot = None, confidence: Confidence = 0.95, shape: Format = FormatName.TABLE
) -> None:
    """The options of an answer."""


def shown(*, explain: Explain = False, as_json: Json = False) -> None:
    """The options of what is printed."""


def taking(*lists: Callable[..., None]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command that takes the options of these lists, in this order, and hands them on: ``def query(**given)``."""
    options = [option for each in lists for option in signature(each).parameters.values()]

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        stated: Any = command
        stated.__signature__ = Signature(options)
        stated.__annotations__ = {option.name: option.annotation for option in options}
        return command

    return with_options


DELTA = 1e-6
"""The delta that goes with --epsilon, and the one epsilon is given at, by default."""


def price_of(
    *,
    epsilon: float | None,
    delta: float | None,
    rho: float | None,
    mu: float | None = None,
    usual: float = DELTA,
    choices: str = "--epsilon, --rho and --mu",
) -> Budget:
    """The price in one of the ``choices``; an epsilon without a delta gets the ``usual`` one.

    >>> price_of(epsilon=1, delta=None, rho=None)
    Budget(epsilon=1, delta=1e-06)
    """
    given = [f"--{name}" for name, value in (("epsilon", epsilon), ("rho", rho), ("mu", mu)) if value is not None]
    if len(given) != 1:
        raise InvalidParameterError(
            f"A price is one of {choices}, but got {' and '.join(given) or 'none'}.",
            fix="add for example --epsilon 1 --delta 1e-6, or --rho 0.5.",
        )
    if epsilon is None and delta:
        raise InvalidParameterError(f"A price of {given[0]} has no delta.", fix="leave --delta out.")
    if epsilon is None:
        return Budget(rho=rho, mu=mu)
    return check_budget(Budget(epsilon, usual if delta is None else delta))


def total(budget: Number | None, budget_delta: Number) -> Budget | None:
    """The budget of a ledger, of --budget and --budget-delta; None where none is given.

    >>> total(3, 1e-6)
    Budget(epsilon=3, delta=1e-06)
    """
    if budget is None:
        return None
    return Budget(positive("budget", budget), probability("budget_delta", budget_delta, one=False))

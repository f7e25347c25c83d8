"""The commands about data sets: draft, check, preview, query, export. Their work is loaded when one is called."""

from pathlib import Path
from typing import Annotated

import typer

from defocus.cli.options import (
    FILE,
    AtMost,
    BudgetDelta,
    BudgetEpsilon,
    Dataset,
    Dialect,
    Explain,
    Find,
    Json,
    Out,
    Part,
    Plot,
    Purpose,
    Question,
    Request,
    Spend,
    SpendDelta,
    TableName,
    Who,
)

__all__ = ["commands"]

commands = typer.Typer()


@commands.command()
def init(
    data: Annotated[
        list[str],
        typer.Argument(help="Parquet or CSV files; or a DuckDB file or a PostgreSQL address, with --table."),
    ],
    *,
    out: Annotated[Path, typer.Option(help="Where to write the dataset file.")] = FILE,
    table: TableName = None,
    name: Annotated[str | None, typer.Option(help="What to call the data set.")] = None,
    unit: Annotated[str | None, typer.Option(help="The column that names the person.")] = None,
    by_rows: Annotated[bool, typer.Option("--rows", metavar="", help="Protect each row alone instead.")] = False,
    budget: BudgetEpsilon = None,
    budget_delta: BudgetDelta = 1e-6,
    force: Annotated[bool, typer.Option("--force", metavar="", help="Replace the file if there is one.")] = False,
) -> None:
    """Write a first dataset file from the schema of the data; no row is looked at. Exit code 1 if it is incomplete."""
    from defocus.cli import draft  # noqa: PLC0415 # a command loads what it needs

    done = draft.init(
        data,
        out=out,
        table=table,
        name=name,
        unit=unit,
        by_rows=by_rows,
        budget=budget,
        budget_delta=budget_delta,
        force=force,
    )
    raise typer.Exit(0 if done else 1)


@commands.command()
def check(dataset: Dataset = FILE) -> None:
    """Say whether a dataset file is complete and fits the schema of its data, and its ledger. Exit code 1 if not."""
    from defocus.cli import draft  # noqa: PLC0415 # a command loads what it needs

    raise typer.Exit(0 if draft.validate(dataset) else 1)


@commands.command()
def query(
    question: Question,
    *,
    epsilon: Spend,
    delta: SpendDelta = None,
    dataset: Dataset = FILE,
    bounds: Find = None,
    at_most: AtMost = 1,
    dialect: Dialect = "duckdb",
    part: Part = None,
    purpose: Purpose = None,
    who: Who = None,
    request: Request = None,
    out: Out = None,
    plot: Plot = None,
    explain: Explain = False,
    as_json: Json = False,
) -> None:
    """Release the answer to a question: charged first, then computed, then shown."""
    from defocus.cli import questions  # noqa: PLC0415 # a command loads what it needs

    questions.query(
        question,
        dataset=dataset,
        epsilon=epsilon,
        delta=delta,
        bounds=None if bounds is None else bounds.value,
        at_most=at_most,
        dialect=dialect,
        parts=part or [],
        purpose=purpose,
        who=who,
        request=request,
        out=out,
        plot=plot,
        explain=explain,
        as_json=as_json,
    )


@commands.command()
def preview(
    question: Question,
    *,
    epsilon: Spend,
    delta: SpendDelta = None,
    dataset: Dataset = FILE,
    bounds: Find = None,
    at_most: AtMost = 1,
    dialect: Dialect = "duckdb",
    part: Part = None,
    explain: Explain = False,
    as_json: Json = False,
) -> None:
    """Say how exact an answer would be and what it would cost. Free; no row is looked at."""
    from defocus.cli import questions  # noqa: PLC0415 # a command loads what it needs

    questions.preview(
        question,
        dataset=dataset,
        epsilon=epsilon,
        delta=delta,
        bounds=None if bounds is None else bounds.value,
        at_most=at_most,
        dialect=dialect,
        parts=part or [],
        explain=explain,
        as_json=as_json,
    )


@commands.command()
def export(
    request: Annotated[str, typer.Argument(help="The name under which the answer was kept.")],
    out: Annotated[Path, typer.Argument(help="A .csv, .parquet or .json file.")],
    *,
    dataset: Dataset = FILE,
) -> None:
    """Write an answer that was kept. It was paid for and is public, so this is free."""
    from defocus.cli import questions  # noqa: PLC0415 # a command loads what it needs

    questions.export(request, dataset=dataset, out=out)

"""The commands about budgets and ledgers. Their work is loaded when one is called."""

from pathlib import Path
from typing import Annotated

import typer

from defocus.cli.options import FILE, DatasetOrLedger, Json, Where

__all__ = ["commands"]

commands = typer.Typer()
ledger = typer.Typer(help="Read and verify ledgers.", no_args_is_help=True)
commands.add_typer(ledger, name="ledger")


@commands.command()
def budget(
    dataset: DatasetOrLedger = str(FILE),
    *,
    part: Annotated[str | None, typer.Option(help="What is left for a question about this part alone.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Plot how the budget burnt down.")] = None,
    as_json: Json = False,
) -> None:
    """Print what is left of the budget, and how it burnt down."""
    from defocus.cli import budget as budget_command  # noqa: PLC0415 # a command loads what it needs

    budget_command.show(dataset, part=part, plot=plot, as_json=as_json)


@commands.command()
def history(
    dataset: DatasetOrLedger = str(FILE),
    *,
    last: Annotated[int | None, typer.Option(help="Only so many of the last entries.")] = None,
    as_json: Json = False,
) -> None:
    """Print every charge of a data set: when, who, why, what, and its epsilon."""
    from defocus.cli import ledgers  # noqa: PLC0415 # a command loads what it needs

    ledgers.show(dataset, last=last, as_json=as_json)


@ledger.command("show")
def ledger_show(
    where: Where,
    *,
    last: Annotated[int | None, typer.Option(help="Only so many of the last entries.")] = None,
    as_json: Json = False,
) -> None:
    """Print what was charged and what is left."""
    from defocus.cli import ledgers  # noqa: PLC0415 # a command loads what it needs

    ledgers.show(where, last=last, as_json=as_json)


@ledger.command("verify")
def ledger_verify(
    where: Where,
    *,
    anchor: Annotated[str | None, typer.Option(help="An anchor kept elsewhere, written number:hash.")] = None,
    anchor_file: Annotated[Path | None, typer.Option(help="The anchor file; beside the ledger unless told.")] = None,
    as_json: Json = False,
) -> None:
    """Check every entry of a ledger. Exit code 1 if it was tampered with."""
    from defocus.cli import ledgers  # noqa: PLC0415 # a command loads what it needs

    raise typer.Exit(0 if ledgers.verify(where, anchor=anchor, anchor_file=anchor_file, as_json=as_json) else 1)

"""The commands and their options. Their work is in the other files, loaded when a command is called."""

import io
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from defocus.errors import DefocusError, ExpressionError, InvalidParameterError

__all__ = ["app", "main"]

app = typer.Typer(
    name="defocus",
    help="Differential privacy on one ledger: ask tables, account, calibrate, audit, and read ledgers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 refused or a violation found, 2 the command was not understood.",
)

ledger = typer.Typer(help="Read and verify ledgers.", no_args_is_help=True)
app.add_typer(ledger, name="ledger")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; a refusal is told in words, without a traceback."""
    if arguments is None:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # a terminal without Greek still gets its answer
        arguments = sys.argv[1:]
    try:
        app(list(arguments), prog_name="defocus")
    except DefocusError as error:
        from defocus.cli.terminal import tell  # noqa: PLC0415 # rich is loaded only by who needs it

        tell(error)
        return 2 if isinstance(error, ExpressionError | InvalidParameterError) else 1
    except OSError as error:
        from defocus.cli.terminal import tell  # noqa: PLC0415 # rich is loaded only by who needs it

        place = "" if error.filename is None else f" to use {str(error.filename)[:200]!r}"
        why = error.strerror or type(error).__name__
        tell(DefocusError(f"The system refused{place}: {why}.", fix="check that it is there, and that you may use it."))
        return 1
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    return 0


_FILE = Path("defocus.toml")
"""Where a dataset file is looked for."""


class _Adjacency(StrEnum):
    """The ways to say which data sets are neighbours."""

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"


class _Bounds(StrEnum):
    """What to do about bounds that nobody declared."""

    FIND = "find"


class _By(StrEnum):
    """The accountants."""

    PLD = "pld"
    RDP = "rdp"
    ZCDP = "zcdp"
    GDP = "gdp"
    ADVANCED = "advanced"
    BASIC = "basic"


_Expression = Annotated[str, typer.Argument(help="What happens, e.g. '1000 * sampled(gaussian(1.0), 0.01)'.")]
_Json = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON instead of a table.")]
_Neighbours = Annotated[_Adjacency, typer.Option("--adjacency", help="Which data sets are neighbours.")]
_Epsilon = Annotated[float | None, typer.Option(help="The epsilon of the budget.")]
_Delta = Annotated[float | None, typer.Option(help="The delta that goes with epsilon; 1e-6 unless told.")]
_Rho = Annotated[float | None, typer.Option(help="A budget of zero-concentrated DP instead.")]
_Mu = Annotated[float | None, typer.Option(help="A budget of Gaussian DP instead.")]
_Where = Annotated[str, typer.Argument(metavar="FILE", help="The ledger: a file, or the URL of a database.")]


_Question = Annotated[
    str, typer.Argument(metavar="SQL", help="A SELECT about the data set; one SELECT is one release.")
]
_Dataset = Annotated[Path, typer.Option("--dataset", "-d", help="The dataset file.")]
_DatasetOrLedger = Annotated[
    str, typer.Option("--dataset", "-d", help="The dataset file, or a ledger: a file or the URL of a database.")
]
_Spend = Annotated[float, typer.Option(help="What the release may cost.")]
_SpendDelta = Annotated[float | None, typer.Option(help="The delta it may cost; none unless told.")]
_Explain = Annotated[bool, typer.Option("--explain", metavar="", help="Explain it in plain words.")]
_Find = Annotated[_Bounds | None, typer.Option("--bounds", help="Pay for finding bounds that nobody declared.")]
_AtMost = Annotated[int, typer.Option(help="How many different values one person brings to COUNT(DISTINCT …).")]
_Dialect = Annotated[str, typer.Option(help="Which SQL it is, such as postgres or spark.")]
_Part = Annotated[
    list[str] | None, typer.Option("--part", help="Ask about this part alone, such as a day; may be repeated.")
]
_Out = Annotated[Path | None, typer.Option(help="Write the answer to a .csv, .parquet or .json file.")]


@app.callback(invoke_without_command=True)
def _start(
    version: Annotated[bool, typer.Option("--version", metavar="", help="Print the version and leave.")] = False,
) -> None:
    if version:
        from importlib.metadata import version as installed  # noqa: PLC0415 # slow to load

        typer.echo(f"defocus {installed('defocus')}")
        raise typer.Exit


@app.command()
def init(
    data: Annotated[list[Path], typer.Argument(help="Parquet or CSV files, or a DuckDB file with --table.")],
    *,
    out: Annotated[Path, typer.Option(help="Where to write the dataset file.")] = _FILE,
    table: Annotated[str | None, typer.Option(help="Which table of a database.")] = None,
    name: Annotated[str | None, typer.Option(help="What to call the data set.")] = None,
    unit: Annotated[str | None, typer.Option(help="The column that names the person.")] = None,
    by_rows: Annotated[bool, typer.Option("--rows", metavar="", help="Protect each row alone instead.")] = False,
    epsilon: _Epsilon = None,
    delta: _Delta = None,
    force: Annotated[bool, typer.Option("--force", metavar="", help="Replace the file if there is one.")] = False,
) -> None:
    """Write a first dataset file from the schema of the data; no row is looked at. Exit code 1 if it is incomplete."""
    from defocus.cli import drafting  # noqa: PLC0415 # a command loads what it needs

    done = drafting.init(
        data, out=out, table=table, name=name, unit=unit, by_rows=by_rows, epsilon=epsilon, delta=delta, force=force
    )
    raise typer.Exit(0 if done else 1)


@app.command()
def check(dataset: _Dataset = _FILE) -> None:
    """Say whether a dataset file is complete and fits the schema of its data. Exit code 1 if not."""
    from defocus.cli import drafting  # noqa: PLC0415 # a command loads what it needs

    raise typer.Exit(0 if drafting.validate(dataset) else 1)


@app.command()
def query(
    question: _Question,
    *,
    epsilon: _Spend,
    delta: _SpendDelta = None,
    dataset: _Dataset = _FILE,
    bounds: _Find = None,
    at_most: _AtMost = 1,
    dialect: _Dialect = "duckdb",
    part: _Part = None,
    purpose: Annotated[str | None, typer.Option(help="Why, in one line; goes into the ledger.")] = None,
    who: Annotated[str | None, typer.Option(help="By whom; the account's name unless told.")] = None,
    request: Annotated[
        str | None, typer.Option(help="Keep the answer under this name; asked again it is free.")
    ] = None,
    out: _Out = None,
    plot: Annotated[Path | None, typer.Option(help="Plot the answer with its intervals.")] = None,
    explain: _Explain = False,
    as_json: _Json = False,
) -> None:
    """Release the answer to a question: charged first, then computed, then shown."""
    from defocus.cli import asking  # noqa: PLC0415 # a command loads what it needs

    asking.query(
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


@app.command()
def preview(
    question: _Question,
    *,
    epsilon: _Spend,
    delta: _SpendDelta = None,
    dataset: _Dataset = _FILE,
    bounds: _Find = None,
    at_most: _AtMost = 1,
    dialect: _Dialect = "duckdb",
    part: _Part = None,
    explain: _Explain = False,
    as_json: _Json = False,
) -> None:
    """Say how exact an answer would be and what it would cost. Free; no row is looked at."""
    from defocus.cli import asking  # noqa: PLC0415 # a command loads what it needs

    asking.preview(
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


@app.command()
def export(
    request: Annotated[str, typer.Argument(help="The name under which the answer was kept.")],
    out: Annotated[Path, typer.Argument(help="A .csv, .parquet or .json file.")],
    *,
    dataset: _Dataset = _FILE,
) -> None:
    """Write an answer that was kept. It was paid for and is public, so this is free."""
    from defocus.cli import asking  # noqa: PLC0415 # a command loads what it needs

    asking.export(request, dataset=dataset, out=out)


@app.command()
def budget(
    dataset: _DatasetOrLedger = str(_FILE),
    *,
    plot: Annotated[Path | None, typer.Option(help="Plot how the budget burnt down.")] = None,
    as_json: _Json = False,
) -> None:
    """Print what is left of the budget, and how it burnt down."""
    from defocus.cli import budgets  # noqa: PLC0415 # a command loads what it needs

    budgets.show(dataset, plot=plot, as_json=as_json)


@app.command()
def history(
    dataset: _DatasetOrLedger = str(_FILE),
    *,
    last: Annotated[int | None, typer.Option(help="Only so many of the last entries.")] = None,
    as_json: _Json = False,
) -> None:
    """Print every charge of a data set: when, who, why, what, and its epsilon."""
    from defocus.cli import budgets, ledgers  # noqa: PLC0415 # a command loads what it needs

    ledgers.show(budgets.ledger_of(dataset), last=last, as_json=as_json)


@app.command()
def account(
    expression: _Expression,
    *,
    delta: Annotated[float, typer.Option(help="At which delta to give epsilon.")] = 1e-6,
    by: Annotated[list[_By] | None, typer.Option(help="Ask this accountant only; may be repeated.")] = None,
    adjacency: _Neighbours = _Adjacency.ADD_REMOVE,
    plot: Annotated[Path | None, typer.Option(help="Plot epsilon against the number of repetitions.")] = None,
    as_json: _Json = False,
) -> None:
    """Print every accountant's epsilon for an event, side by side."""
    from defocus.cli import accounting  # noqa: PLC0415 # a command loads what it needs

    accounting.show(
        expression,
        delta=delta,
        by=[name.value for name in by or ()],
        adjacency=accounting.Adjacency[adjacency.name],
        as_json=as_json,
        plot=plot,
    )


@app.command()
def calibrate(
    expression: Annotated[str, typer.Argument(help="An event with x for the number to find, e.g. 'gaussian(x)'.")],
    *,
    epsilon: _Epsilon = None,
    delta: _Delta = None,
    rho: _Rho = None,
    mu: _Mu = None,
    by: Annotated[
        _By | None, typer.Option(help="Which accountant vouches for it; the one that suits the budget unless told.")
    ] = None,
    adaptive: Annotated[
        bool,
        typer.Option("--adaptive", metavar="", help="For a ledger: releases chosen after seeing earlier answers."),
    ] = False,
    adjacency: _Neighbours = _Adjacency.ADD_REMOVE,
    as_json: _Json = False,
) -> None:
    """Find the least noise that meets a budget."""
    from defocus.cli import calibrating  # noqa: PLC0415 # a command loads what it needs

    calibrating.show(
        expression,
        budget=calibrating.budget(epsilon=epsilon, delta=delta, rho=rho, mu=mu),
        by=None if by is None else by.value,
        adaptive=adaptive,
        adjacency=calibrating.Adjacency[adjacency.name],
        as_json=as_json,
    )


@app.command()
def advise(
    *,
    epsilon: _Epsilon = None,
    delta: Annotated[
        float | None, typer.Option(help="The delta that goes with epsilon; none unless told, which rules Gaussian out.")
    ] = None,
    rho: _Rho = None,
    dimension: Annotated[int, typer.Option(help="How many numbers are released together.")] = 1,
    l1: Annotated[int | None, typer.Option(help="Their L1 sensitivity on the integer grid.")] = None,
    l2: Annotated[float | None, typer.Option(help="Their L2 sensitivity.")] = None,
    linf: Annotated[int | None, typer.Option(help="How far one of them can move.")] = None,
    candidates: Annotated[int | None, typer.Option(help="Choose one of so many candidates instead.")] = None,
    monotone: Annotated[
        bool, typer.Option("--monotone", metavar="", help="All utilities move in one direction.")
    ] = False,
    as_json: _Json = False,
) -> None:
    """Say which mechanism errs least at a budget, and why."""
    from defocus.cli import advising  # noqa: PLC0415 # a command loads what it needs

    budget = advising.budget(epsilon=epsilon, delta=delta, rho=rho, usual=0.0, choices="--epsilon and --rho")
    if candidates is None:
        advising.show_numbers(budget=budget, dimension=dimension, l1=l1, l2=l2, linf=linf, as_json=as_json)
    else:
        advising.show_choice(budget=budget, candidates=candidates, l1=l1, monotone=monotone, as_json=as_json)


@app.command()
def audit(
    name: Annotated[str | None, typer.Argument(help="A subject from --list, or your own as module:function.")] = None,
    *,
    claimed: Annotated[
        float | None, typer.Option(help="The epsilon it is said to lose; required for your own.")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="The delta that goes with it.")] = None,
    pairs: Annotated[
        str | None, typer.Option(help="What your own takes: count, value, numbers, integers or keys.")
    ] = None,
    trials: Annotated[int | None, typer.Option(help="Runs on each data set.")] = None,
    confidence: Annotated[float, typer.Option(help="How sure a violation must be.")] = 0.999,
    seconds: Annotated[float, typer.Option(help="Stop after about so many seconds.")] = 60.0,
    plot: Annotated[Path | None, typer.Option(help="Plot what tells the two data sets apart.")] = None,
    listing: Annotated[bool, typer.Option("--list", metavar="", help="List the subjects and leave.")] = False,
    as_json: _Json = False,
) -> None:
    """Attack a mechanism: a sound lower bound on the epsilon it really loses. Exit code 1 on a violation."""
    from defocus.cli import auditing  # noqa: PLC0415 # a command loads what it needs

    if listing or name is None:
        auditing.show_list(as_json=as_json)
        raise typer.Exit(0 if listing else 2)
    target = auditing.find(name, claimed=claimed, delta=delta, pairs=pairs)
    found = auditing.show(target, trials=trials, confidence=confidence, seconds=seconds, plot=plot, as_json=as_json)
    raise typer.Exit(1 if found.violation else 0)


@ledger.command("show")
def ledger_show(
    where: _Where,
    *,
    last: Annotated[int | None, typer.Option(help="Only so many of the last entries.")] = None,
    as_json: _Json = False,
) -> None:
    """Print what was charged and what is left."""
    from defocus.cli import ledgers  # noqa: PLC0415 # a command loads what it needs

    ledgers.show(where, last=last, as_json=as_json)


@ledger.command("verify")
def ledger_verify(
    where: _Where,
    *,
    anchor: Annotated[str | None, typer.Option(help="An anchor kept elsewhere, written number:hash.")] = None,
    anchor_file: Annotated[Path | None, typer.Option(help="The anchor file that follows the ledger.")] = None,
    as_json: _Json = False,
) -> None:
    """Check every entry of a ledger. Exit code 1 if it was tampered with."""
    from defocus.cli import ledgers  # noqa: PLC0415 # a command loads what it needs

    raise typer.Exit(0 if ledgers.verify(where, anchor=anchor, anchor_file=anchor_file, as_json=as_json) else 1)

"""The commands about collecting without trust: choose, estimate, shuffler. Their work is loaded when one is called."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from defocus.cli.options import Explain, Json, Out, Plot

__all__ = ["ProcessName", "TaskName", "choose", "commands", "estimate", "shuffler"]

commands = typer.Typer()


class TaskName(StrEnum):
    """What is to be estimated."""

    COUNT = "count"
    HISTOGRAM = "histogram"
    MEAN = "mean"


class ProcessName(StrEnum):
    """What may be done to counts afterwards."""

    NORM_SUB = "norm-sub"
    SIMPLEX = "simplex"
    ISOTONIC = "isotonic"


@commands.command()
def choose(
    task: Annotated[TaskName, typer.Argument(help="A count of yes, a histogram, or the mean of numbers in [0, 1].")],
    *,
    users: Annotated[int, typer.Option(help="How many people take part.")],
    epsilon: Annotated[float, typer.Option(help="What each person's data may cost.")],
    delta: Annotated[float | None, typer.Option(help="The delta that goes with it; at most 1e-6 unless told.")] = None,
    categories: Annotated[int, typer.Option(help="How many categories a histogram has.")] = 16,
    error: Annotated[float | None, typer.Option(help="The largest standard error that is acceptable.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Plot the errors against the number of users.")] = None,
    as_json: Json = False,
) -> None:
    """Compare a trusted collector, a shuffler and no trust at all, and recommend one."""
    from defocus.cli import collection  # noqa: PLC0415 # a command loads what it needs

    question = collection.Asked(
        task=task.value, users=users, epsilon=epsilon, delta=delta, categories=categories, error=error
    )
    collection.show_choice(question, plot=plot, as_json=as_json)


@commands.command()
def estimate(
    oracle: Annotated[Path, typer.Argument(help="The description of an oracle, as to_json wrote it.")],
    reports: Annotated[list[str], typer.Argument(help="Parquet files of reports, folders or globs.")],
    *,
    processing: Annotated[
        ProcessName | None, typer.Option(help="Make counts closer to the truth on average, and biased.")
    ] = None,
    engine: Annotated[
        str | None, typer.Option(help="Where Spark runs, such as spark://host:7077 or local[4]; else DuckDB counts.")
    ] = None,
    out: Out = None,
    plot: Plot = None,
    explain: Explain = False,
    as_json: Json = False,
) -> None:
    """Count reports where they lie, and estimate how many people are in each category, or the mean."""
    from defocus.cli import collection  # noqa: PLC0415 # a command loads what it needs

    collection.run_estimate(
        oracle,
        reports,
        processing=None if processing is None else processing.value,
        engine=engine,
        out=out,
        plot=plot,
        explain=explain,
        as_json=as_json,
    )


@commands.command()
def shuffler(
    oracle: Annotated[Path, typer.Argument(help="The description of an oracle, as Oracle.to_json wrote it.")],
    *,
    users: Annotated[int, typer.Option(help="How many reports a batch must have.")],
    analyser: Annotated[str, typer.Option(help="The analyser's public key: Key.public.hex().")],
    out: Annotated[Path, typer.Option(help="Where to write the round, for devices and the analyser.")],
    port: Annotated[int, typer.Option(help="Which port of this machine; any free one unless told.")] = 0,
    batches: Annotated[int | None, typer.Option(help="Leave once the analyser acknowledged so many batches.")] = None,
) -> None:
    """Run a shuffler on this machine: it forgets who sent a report, and seals batches for the analyser."""
    from defocus.cli import collection  # noqa: PLC0415 # a command loads what it needs

    collection.run_shuffler(oracle, users=users, analyser=analyser, out=out, port=port, batches=batches)

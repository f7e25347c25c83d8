"""The commands about data: tables, graphs and training. Their work is loaded when one is called."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from defocus.cli.options import (
    FILE,
    BudgetDelta,
    BudgetEpsilon,
    Confidence,
    Dataset,
    DatasetOrLedger,
    Explain,
    Intervals,
    Json,
    LedgerPlace,
    Method,
    Out,
    Part,
    Plot,
    Purpose,
    Reason,
    Request,
    Server,
    Spend,
    SpendDelta,
    TableName,
    Who,
    asked,
    paid,
    shown,
    taking,
    written,
)

__all__ = ["Example", "GraphUnit", "commands", "graph", "predict", "train"]


commands = typer.Typer()


@commands.command(epilog="Example: defocus init visits.parquet --unit patient_id --budget 3")
def init(
    data: Annotated[
        list[str],
        typer.Argument(help="Parquet or CSV files; or a DuckDB file or the address of a server, with --table."),
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
    given = dict(locals())
    from defocus.cli import draft  # noqa: PLC0415 # a command loads what it needs

    raise typer.Exit(0 if draft.init(**given) else 1)


@commands.command(epilog="Example: defocus check --dataset defocus.toml")
def check(dataset: Dataset = FILE) -> None:
    """Say whether a dataset file is complete and fits the schema of its data, and its ledger. Exit code 1 if not."""
    from defocus.cli import draft  # noqa: PLC0415 # a command loads what it needs

    raise typer.Exit(0 if draft.validate(dataset) else 1)


def _here_or_there(*, dataset: Dataset = FILE, intervals: Intervals = False, server: Server = None) -> None:
    """The options of a question about one data set, here or on a server."""


def _kept(*, request: Request = None, reason: Reason = None) -> None:
    """The options of an answer that is kept, or waits for an officer."""


@commands.command(
    epilog="Example: defocus query 'SELECT ward, COUNT(*) AS visits FROM visits GROUP BY ward' --epsilon 0.5"
)
@taking(asked, _here_or_there, paid, _kept, written, shown)
def query(**given: Any) -> None:
    """Release the answer to a question: charged first, then computed, then shown."""
    from defocus.cli import questions  # noqa: PLC0415 # a command loads what it needs

    questions.query(**given)


@commands.command(epilog="Example: defocus preview 'SELECT AVG(days) AS stay FROM visits' --epsilon 0.5 --rows 3")
@taking(asked, _here_or_there, shown)
def preview(**given: Any) -> None:
    """Say how exact an answer would be and what it would cost. Free; no row is looked at."""
    from defocus.cli import questions  # noqa: PLC0415 # a command loads what it needs

    questions.preview(**given)


@commands.command(
    epilog="Example: defocus synthesise --out synthetic.parquet --epsilon 1 --delta 1e-6 --report quality.html"
)
def synthesise(
    *,
    out: Annotated[Path | None, typer.Option(help="Write synthetic rows to a .parquet or .csv file.")] = None,
    epsilon: Spend,
    delta: SpendDelta = None,
    dataset: Dataset = FILE,
    find: Annotated[
        list[str] | None, typer.Option(help="A text column whose frequent values are to be found; may be repeated.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Synthesise this column; may be repeated; all by default.")
    ] = None,
    constraint: Annotated[
        list[str] | None, typer.Option(help="A condition that every synthetic row meets; may be repeated.")
    ] = None,
    number: Annotated[
        int | None, typer.Option("--n", help="How many rows to write; about as many as there are.")
    ] = None,
    method: Annotated[
        str, typer.Option(help="The model: marginals, or to compare with: bayesian network, independent.")
    ] = "marginals",
    focus: Annotated[
        list[str] | None, typer.Option(help="What must be good: one to three columns, as age,ward; may be repeated.")
    ] = None,
    accept: Annotated[
        float | None, typer.Option(help="The largest mean distance of pairs, or of the focus, to accept: 0.05.")
    ] = None,
    part: Part = None,
    purpose: Purpose = None,
    who: Who = None,
    request: Request = None,
    server: Server = None,
    reason: Reason = None,
    save: Annotated[Path | None, typer.Option(help="Keep the generator in a .json file, to draw more rows.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a page about the quality, an .html file.")] = None,
    preview: Annotated[bool, typer.Option("--preview", metavar="", help="Only say what it would cost.")] = False,
    explain: Explain = False,
    as_json: Json = False,
) -> None:
    """Make synthetic rows: charged first, then counted with noise, then fitted and written."""
    given = dict(locals())
    from defocus.cli import synthesis  # noqa: PLC0415 # a command loads what it needs

    synthesis.synthesise(**given)


@commands.command(epilog="Example: defocus export may may.xlsx")
def export(
    request: Annotated[str, typer.Argument(help="The name under which the answer was kept.")],
    out: Annotated[Path, typer.Argument(help="A .csv, .xlsx, .parquet or .json file.")],
    *,
    dataset: Dataset = FILE,
    confidence: Confidence = 0.95,
) -> None:
    """Write an answer that was kept. It was paid for and is public, so this is free."""
    from defocus.cli import questions  # noqa: PLC0415 # a command loads what it needs

    questions.export(request, dataset=dataset, out=out, confidence=confidence)


@commands.command(epilog="Example: defocus report may.html --title May")
def report(
    out: Annotated[Path, typer.Argument(help="The page to write, an .html file.")] = Path("report.html"),
    *,
    dataset: DatasetOrLedger = str(FILE),
    title: Annotated[str | None, typer.Option(help="What stands above it.")] = None,
    request: Annotated[
        list[str] | None, typer.Option("--only", metavar="REQUEST", help="Only this kept answer; may be repeated.")
    ] = None,
) -> None:
    """Write a page of all answers that were kept, with plots, and where the budget went. Free."""
    from defocus.cli import questions  # noqa: PLC0415 # a command loads what it needs

    questions.report(out, dataset=dataset, title=title, requests=request or [])


class GraphUnit(StrEnum):
    """What is protected in a graph."""

    EDGE = "edge"
    NODE = "node"
    WEIGHT = "weight"
    EVENT = "event"


@commands.command(epilog="Example: defocus graph calls.parquet edges --unit edge --nodes 500 --budget 3 --epsilon 0.5")
def graph(
    data: Annotated[
        str,
        typer.Argument(
            help="A Parquet, CSV or DuckDB file of edges; or where they are: postgresql://…; its name with --server."
        ),
    ],
    question: Annotated[str, typer.Argument(help="What to ask, such as edges, degree-histogram or triangles.")],
    *,
    epsilon: Spend,
    delta: SpendDelta = None,
    unit: Annotated[GraphUnit | None, typer.Option(help="What is protected; as in the ledger by default.")] = None,
    nodes: Annotated[
        str | None, typer.Option(help="How many public nodes, 'as-listed', or a file with a name in each line.")
    ] = None,
    budget: BudgetEpsilon = None,
    budget_delta: BudgetDelta = 0.0,
    ledger: LedgerPlace = None,
    name: Annotated[str | None, typer.Option(help="What the data is called in the ledger.")] = None,
    ends: Annotated[str | None, typer.Option(help="The two columns of ends, e.g. 'from_id,to_id'.")] = None,
    table: TableName = None,
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header", help="Whether the first line has names of columns; in .csv and .tsv by default."
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(help="Count there, read no edges into memory: duckdb, postgresql, mariadb, or where Spark runs."),
    ] = None,
    memory: Annotated[str | None, typer.Option(help="How much memory the engine may use, such as 2GB.")] = None,
    directed: Annotated[bool, typer.Option("--directed", metavar="", help="Edges have a direction.")] = False,
    weights: Annotated[str | None, typer.Option(help="The column of weights.")] = None,
    time: Annotated[str | None, typer.Option(help="The column of times.")] = None,
    bound: Annotated[float | None, typer.Option(help="The largest degree of a node, or the largest weight.")] = None,
    per_person: Annotated[
        int | None, typer.Option(help="Protect a person with at most so many edges, events or weights.")
    ] = None,
    method: Method = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="A setting of the question, e.g. k=3 or statistics=edges,triangles; may be repeated."
        ),
    ] = None,
    purpose: Purpose = None,
    who: Who = None,
    request: Request = None,
    server: Server = None,
    dataset: Dataset = FILE,
    reason: Reason = None,
    out: Out = None,
    plot: Plot = None,
    preview: Annotated[bool, typer.Option("--preview", metavar="", help="Only say what it would be like.")] = False,
    confidence: Confidence = 0.95,
    explain: Explain = False,
    as_json: Json = False,
) -> None:
    """Ask a private graph: charged first, then computed, then shown. With --preview it is free."""
    given = dict(locals())
    from defocus.cli import graph as graph_command  # noqa: PLC0415 # a command loads what it needs

    graph_command.ask(**given)


class Example(StrEnum):
    """What a drafted file is about."""

    TABLE = "table"
    ARRAYS = "arrays"
    IMAGES = "images"
    TEXTS = "texts"
    SERVER = "server"


@commands.command(epilog="Example: defocus train model.toml --preview")
def train(
    config: Annotated[
        Path | None, typer.Argument(metavar="TOML", help="What to train, on what, and at which price.")
    ] = None,
    *,
    example: Annotated[
        Example | None,
        typer.Option(help="Print a file to begin with: for a table, arrays, folders of images or texts, a server."),
    ] = None,
    preview: Annotated[bool, typer.Option("--preview", metavar="", help="Only say what would be done. Free.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", metavar="", help="Show no progress.")] = False,
    force: Annotated[
        bool, typer.Option("--force", metavar="", help="Write over a model that is there already.")
    ] = False,
    server: Server = None,
    as_json: Json = False,
) -> None:
    """Train a model on private data: charged first, then trained, then written and reported."""
    from defocus.cli import training  # noqa: PLC0415 # a command loads what it needs

    if example is not None:
        training.draft(example.value)
        return
    training.train(config, server=server, preview=preview, quiet=quiet, force=force, as_json=as_json)


@commands.command(epilog="Example: defocus predict model.json people.csv --out predictions.csv")
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What defocus train wrote: .json or .safetensors.")],
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="A .csv, .tsv or .parquet table; for networks .npz, or a folder of images or texts.",
        ),
    ],
    *,
    out: Annotated[
        Path | None, typer.Option(help="Write predictions here, as .csv or .parquet; else they are printed.")
    ] = None,
    keep: Annotated[list[str] | None, typer.Option(help="A column of the table to write beside them.")] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", metavar="", help="Write the probability of each class too.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Predict with a trained model. Free: the data that it was trained on is not looked at."""
    from defocus.cli import prediction  # noqa: PLC0415 # a command loads what it needs

    prediction.predict(model, data, out=out, keep=keep or [], probabilities=probabilities, as_json=as_json)

"""``defocus graph``: the command and its options. Its work is in graph_command.py, loaded when it is called."""

from enum import StrEnum
from typing import Annotated

import typer

from defocus.cli.options import (
    BudgetDelta,
    BudgetEpsilon,
    Explain,
    Json,
    LedgerPlace,
    Method,
    Out,
    Plot,
    Purpose,
    Request,
    Spend,
    SpendDelta,
    TableName,
    Who,
)

__all__ = ["GraphUnit", "commands", "graph"]

commands = typer.Typer()


class GraphUnit(StrEnum):
    """What is protected in a graph."""

    EDGE = "edge"
    NODE = "node"
    WEIGHT = "weight"
    EVENT = "event"


@commands.command()
def graph(
    data: Annotated[
        str, typer.Argument(help="A Parquet, CSV or DuckDB file of edges; or where they are, such as postgresql://….")
    ],
    question: Annotated[str, typer.Argument(help="What to ask, such as edges, degree-histogram or triangles.")],
    *,
    epsilon: Spend,
    delta: SpendDelta = None,
    unit: Annotated[GraphUnit | None, typer.Option(help="What is protected; as in the ledger unless told.")] = None,
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
            "--header/--no-header", help="Whether the first line has names of columns; in .csv and .tsv unless told."
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(help="Count there and read no edges into memory: duckdb, postgresql, or where Spark runs."),
    ] = None,
    memory: Annotated[str | None, typer.Option(help="How much memory the engine may use, such as 2GB.")] = None,
    directed: Annotated[bool, typer.Option("--directed", metavar="", help="Edges have a direction.")] = False,
    weights: Annotated[str | None, typer.Option(help="The column of weights.")] = None,
    time: Annotated[str | None, typer.Option(help="The column of times.")] = None,
    bound: Annotated[float | None, typer.Option(help="The largest degree of a node, or the largest weight.")] = None,
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
    out: Out = None,
    plot: Plot = None,
    preview: Annotated[bool, typer.Option("--preview", metavar="", help="Only say what it would be like.")] = False,
    explain: Explain = False,
    as_json: Json = False,
) -> None:
    """Ask a private graph: charged first, then computed, then shown. With --preview it is free."""
    from defocus.cli import graph as graph_command  # noqa: PLC0415 # a command loads what it needs

    graph_command.ask(
        graph_command.Opening(
            data=data,
            unit=None if unit is None else unit.value,
            nodes=nodes,
            budget=budget,
            budget_delta=budget_delta,
            ledger=ledger,
            name=name,
            ends=ends,
            table=table,
            header=header,
            engine=engine,
            memory=memory,
            directed=directed,
            weights=weights,
            time=time,
            bound=bound,
        ),
        graph_command.Asked(
            question=question,
            settings=tuple(settings or ()),
            method=method,
            epsilon=epsilon,
            delta=delta,
            purpose=purpose,
            who=who,
            request=request,
        ),
        graph_command.Shown(out=out, plot=plot, preview=preview, explain=explain, as_json=as_json),
    )

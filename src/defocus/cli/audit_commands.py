"""The commands that attack: mechanisms, fits, releases with canaries, tables of scores, and histories."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from defocus.cli.options import Adjacency, Json, Neighbours, Where

__all__ = ["commands"]


commands = typer.Typer()


class _Audit(TyperGroup):
    """``defocus audit NAME`` is ``defocus audit mechanism NAME``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["mechanism", *args]
        return list(super().parse_args(ctx, args))


audit = typer.Typer(cls=_Audit, help="Attack mechanisms, fits and histories: what is really lost, at least.")
commands.add_typer(audit, name="audit")
AuditReport = Annotated[Path | None, typer.Option("--report", help="Write a page with what was found, an .html file.")]
Plotted = Annotated[Path | None, typer.Option("--plot", help="Plot what was found.")]
Keep = Annotated[
    str | None, typer.Option(metavar="LEDGER", help="Write what was found into this ledger too, free of charge.")
]
Request = Annotated[str | None, typer.Option(help="The name of that record, for defocus ledger bundle.")]
Claimed = Annotated[float | None, typer.Option(help="The epsilon that the release promises each canary.")]
AtDelta = Annotated[float, typer.Option("--delta", help="The delta that goes with it.")]
Event = Annotated[
    str | None, typer.Option(help="What the release was charged instead, e.g. '30 * gaussian(5)': a stronger test.")
]
Independent = Annotated[
    bool, typer.Option("--independent", metavar="", help="With --event: noise for each canary is drawn by itself.")
]
Sure = Annotated[float, typer.Option("--confidence", help="How sure a violation must be.")]


@audit.command("mechanism", epilog="Example: defocus audit mechanism laplace --seconds 10")
def audit_mechanism(
    name: Annotated[str | None, typer.Argument(help="A subject from --list, or your own as module:function.")] = None,
    *,
    claimed: Annotated[
        float | None, typer.Option(help="The epsilon it is said to lose; required for your own.")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="The delta that goes with it.")] = None,
    pairs: Annotated[
        str | None,
        typer.Option(
            help="What your own takes: count, value, numbers, integers, keys, edges, nodes, gradients, or columns of a"
            ' table: "age=0:99; ward=A,B".'
        ),
    ] = None,
    trials: Annotated[int | None, typer.Option(help="Runs on each data set.")] = None,
    confidence: Annotated[float, typer.Option(help="How sure a violation must be.")] = 0.999,
    seconds: Annotated[float, typer.Option(help="Stop after about so many seconds.")] = 60.0,
    plot: Annotated[Path | None, typer.Option(help="Plot what tells the two data sets apart.")] = None,
    report: AuditReport = None,
    keep: Keep = None,
    request: Request = None,
    listing: Annotated[bool, typer.Option("--list", metavar="", help="List the subjects and leave.")] = False,
    as_json: Json = False,
) -> None:
    """Attack a mechanism: a sound lower bound on the epsilon it really loses. Exit code 1 on a violation."""
    from defocus.cli import audit as audits  # noqa: PLC0415 # a command loads what it needs

    if listing or name is None:
        audits.show_list(as_json=as_json)
        raise typer.Exit(0 if listing else 2)
    audits.prepare(plot, keep, request)
    target = audits.find(name, claimed=claimed, delta=delta, pairs=pairs)
    finding = audits.show(target, trials=trials, confidence=confidence, seconds=seconds, plot=plot, as_json=as_json)
    audits.write(report, finding, keep=keep, request=request or f"audit of {name}"[:200])
    raise typer.Exit(1 if finding.violation else 0)


@audit.command(
    "membership", epilog="Example: defocus audit membership mine:fit people.parquet --claimed 1 --shadows 16"
)
def audit_membership(
    fit: Annotated[str, typer.Argument(help="Your function of rows, as module:function: a model, or synthetic rows.")],
    data: Annotated[Path, typer.Argument(help="Rows that a half is drawn from, a .parquet or .csv file.")],
    *,
    score: Annotated[
        str | None, typer.Option(help="Your function of a model and rows; by default rows are synthetic.")
    ] = None,
    person: Annotated[str | None, typer.Option(help="The column that names the person of a row.")] = None,
    claimed: Annotated[float | None, typer.Option(help="The epsilon that the fit promises each person.")] = None,
    delta: Annotated[float, typer.Option(help="The delta that goes with it.")] = 0.0,
    shadows: Annotated[int, typer.Option(help="How many shadow models.")] = 0,
    runs: Annotated[int, typer.Option(help="How many independent targets.")] = 1,
    confidence: Annotated[float, typer.Option(help="How sure a violation must be.")] = 0.999,
    workers: Annotated[int, typer.Option(help="How many processes fit in parallel.")] = 1,
    plot: Annotated[Path | None, typer.Option(help="Plot the curves of all attacks.")] = None,
    report: AuditReport = None,
    as_json: Json = False,
) -> None:
    """Say who was in: attacks on what a fit gives away. For whoever holds the rows. Exit code 1 on a violation."""
    from defocus.cli import audit as audits  # noqa: PLC0415 # a command loads what it needs

    how = {"claimed": claimed, "delta": delta, "shadows": shadows, "runs": runs, "confidence": confidence}
    found = audits.show_membership(
        fit, data, score=score, person=person, plot=plot, as_json=as_json, **how, workers=workers
    )
    audits.write(report, found)
    raise typer.Exit(1 if found.violation else 0)


@audit.command("canaries", epilog="Example: defocus audit canaries mine:release --canaries 300 --claimed 1")
def audit_canaries(
    release: Annotated[
        str,
        typer.Argument(help="Your function of the planted canaries, a list of numbers from 0, as module:function."),
    ],
    *,
    canaries: Annotated[int, typer.Option(help="How many there are, each planted by a coin of its own.")],
    score: Annotated[
        str | None,
        typer.Option(help="Your function of what was released and a canary; by default that is a number for each."),
    ] = None,
    claimed: Claimed = None,
    delta: AtDelta = 0.0,
    event: Event = None,
    independent: Independent = False,
    adjacency: Neighbours = Adjacency.ADD_REMOVE,
    runs: Annotated[int, typer.Option(help="How often to release, with new coins each time.")] = 1,
    confidence: Sure = 0.999,
    plot: Plotted = None,
    report: AuditReport = None,
    keep: Keep = None,
    request: Request = None,
    as_json: Json = False,
) -> None:
    """Plant canaries in a release of any kind, and bound what it tells of one. Exit code 1 on a violation."""
    from defocus.cli import audit as audits  # noqa: PLC0415 # a command loads what it needs

    audits.prepare(plot, keep, request)
    claim = audits.claim(claimed, delta, event, adjacency.name, independent=independent)
    found = audits.show_canaries(release, canaries, score, claim | {"runs": runs, "confidence": confidence})
    audits.told(found, plot=plot, as_json=as_json)
    audits.write(report, found, keep=keep, request=request or f"audit of {release}"[:200])
    raise typer.Exit(1 if found.violation else 0)


@audit.command("scores", epilog="Example: defocus audit scores canaries.csv --event 'gaussian(1)' --delta 1e-5")
def audit_scores(
    file: Annotated[
        Path, typer.Argument(help="A .csv or .parquet file with the columns score and planted (0 or 1), maybe group.")
    ],
    *,
    claimed: Claimed = None,
    delta: AtDelta = 0.0,
    event: Event = None,
    independent: Independent = False,
    adjacency: Neighbours = Adjacency.ADD_REMOVE,
    confidence: Sure = 0.999,
    plot: Plotted = None,
    report: AuditReport = None,
    keep: Keep = None,
    request: Request = None,
    as_json: Json = False,
) -> None:
    """Bound epsilon by scores of canaries that another program planted. Exit code 1 on a violation."""
    from defocus.cli import audit as audits  # noqa: PLC0415 # a command loads what it needs

    audits.prepare(plot, keep, request)
    claim = audits.claim(claimed, delta, event, adjacency.name, independent=independent)
    found = audits.show_scores(file, claim | {"confidence": confidence})
    audits.told(found, plot=plot, as_json=as_json)
    audits.write(report, found, keep=keep, request=request or f"audit of {file.name}"[:200])
    raise typer.Exit(1 if found.violation else 0)


@audit.command("reconstruction", epilog="Example: defocus audit reconstruction mine:answers queries.csv --claimed 2")
def audit_reconstruction(
    release: Annotated[str, typer.Argument(help="Your function of secret bits to answers, as module:function.")],
    queries: Annotated[Path, typer.Argument(help="A line for each answer, a column for each person: .csv, .parquet.")],
    *,
    method: Annotated[str, typer.Option(help="'linear program' or 'least squares'.")] = "linear program",
    claimed: Annotated[
        float | None, typer.Option(help="The epsilon at which a secret is hidden: twice that of adding a person.")
    ] = None,
    delta: AtDelta = 0.0,
    confidence: Sure = 0.999,
    plot: Plotted = None,
    report: AuditReport = None,
    as_json: Json = False,
) -> None:
    """Find secret bits of people in answers about them, by linear programs. Exit code 1 on a violation."""
    from defocus.cli import audit as audits  # noqa: PLC0415 # a command loads what it needs

    audits.prepare(plot)
    how = {"method": method, "claimed": claimed, "delta": delta, "confidence": confidence}
    found = audits.show_reconstruction(release, queries, how)
    audits.told(found, plot=plot, as_json=as_json)
    audits.write(report, found)
    raise typer.Exit(1 if found.violation else 0)


@audit.command("history", epilog="Example: defocus audit history visits.ledger --report history.html")
def audit_history(
    where: Where,
    *,
    plot: Annotated[Path | None, typer.Option(help="Plot the most that any test for one person can reach.")] = None,
    report: AuditReport = None,
    request: Annotated[str | None, typer.Option(help="Keep it in the ledger under this name, for free.")] = None,
    as_json: Json = False,
) -> None:
    """Say what an attacker with all published answers can do at most, and which are about nearly the same people."""
    from defocus.cli import audit as audits  # noqa: PLC0415 # a command loads what it needs

    found = audits.show_history(where, plot=plot, as_json=as_json)
    audits.write(report, found, keep=None if request is None else where, request=request)

"""The commands about events and mechanisms. Their work is loaded when one is called."""

from pathlib import Path
from typing import Annotated

import typer

from defocus.cli.options import (
    Accountant,
    Accountants,
    Adjacency,
    Delta,
    Epsilon,
    Expression,
    Json,
    Mu,
    Neighbours,
    Rho,
    SpendDelta,
)

__all__ = ["commands"]

commands = typer.Typer()


@commands.command()
def account(
    expression: Expression,
    *,
    delta: Annotated[float, typer.Option(help="At which delta to give epsilon.")] = 1e-6,
    method: Accountants = None,
    adjacency: Neighbours = Adjacency.ADD_REMOVE,
    plot: Annotated[Path | None, typer.Option(help="Plot epsilon against the number of repetitions.")] = None,
    as_json: Json = False,
) -> None:
    """Print every accountant's epsilon for an event, side by side."""
    from defocus.cli import privacy  # noqa: PLC0415 # a command loads what it needs

    privacy.show_account(
        expression,
        delta=delta,
        methods=method or [],
        adjacency=privacy.Adjacency[adjacency.name],
        as_json=as_json,
        plot=plot,
    )


@commands.command()
def calibrate(
    expression: Annotated[str, typer.Argument(help="An event with x for the number to find, e.g. 'gaussian(x)'.")],
    *,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    mu: Mu = None,
    method: Accountant = None,
    adaptive: Annotated[
        bool,
        typer.Option("--adaptive", metavar="", help="For a ledger: releases chosen after seeing earlier answers."),
    ] = False,
    adjacency: Neighbours = Adjacency.ADD_REMOVE,
    as_json: Json = False,
) -> None:
    """Find the least noise that meets a price."""
    from defocus.cli import privacy  # noqa: PLC0415 # a command loads what it needs

    privacy.show_calibration(
        expression,
        price=privacy.price_of(epsilon=epsilon, delta=delta, rho=rho, mu=mu),
        method=method,
        adaptive=adaptive,
        adjacency=privacy.Adjacency[adjacency.name],
        as_json=as_json,
    )


@commands.command()
def advise(
    *,
    epsilon: Epsilon = None,
    delta: SpendDelta = None,
    rho: Rho = None,
    dimension: Annotated[int, typer.Option(help="How many numbers are released together.")] = 1,
    l1: Annotated[int | None, typer.Option(help="Their L1 sensitivity on the integer grid.")] = None,
    l2: Annotated[float | None, typer.Option(help="Their L2 sensitivity.")] = None,
    linf: Annotated[int | None, typer.Option(help="How far one of them can move.")] = None,
    candidates: Annotated[int | None, typer.Option(help="Choose one of so many candidates instead.")] = None,
    monotone: Annotated[
        bool, typer.Option("--monotone", metavar="", help="All utilities move in one direction.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say which mechanism errs least at a price, and why."""
    from defocus.cli import privacy  # noqa: PLC0415 # a command loads what it needs

    price = privacy.price_of(epsilon=epsilon, delta=delta, rho=rho, usual=0.0, choices="--epsilon and --rho")
    if candidates is None:
        privacy.show_numbers(price=price, dimension=dimension, l1=l1, l2=l2, linf=linf, as_json=as_json)
    else:
        privacy.show_choice(price=price, candidates=candidates, l1=l1, monotone=monotone, as_json=as_json)


@commands.command()
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
    as_json: Json = False,
) -> None:
    """Attack a mechanism: a sound lower bound on the epsilon it really loses. Exit code 1 on a violation."""
    from defocus.cli import audit as audits  # noqa: PLC0415 # a command loads what it needs

    if listing or name is None:
        audits.show_list(as_json=as_json)
        raise typer.Exit(0 if listing else 2)
    target = audits.find(name, claimed=claimed, delta=delta, pairs=pairs)
    found = audits.show(target, trials=trials, confidence=confidence, seconds=seconds, plot=plot, as_json=as_json)
    raise typer.Exit(1 if found.violation else 0)

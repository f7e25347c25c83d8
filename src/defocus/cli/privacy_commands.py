"""The commands about events, mechanisms, ledgers and collections. Their work is loaded when one is called."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from defocus.cli.options import (
    FILE,
    Accountant,
    Accountants,
    Adjacency,
    DatasetOrLedger,
    Delta,
    Epsilon,
    Explain,
    Expression,
    Json,
    Mu,
    Neighbours,
    Out,
    Plot,
    Rho,
    SpendDelta,
    Where,
    Who,
    price_of,
)

__all__ = [
    "KindName",
    "LawName",
    "ProcessName",
    "TaskName",
    "TrustName",
    "choose",
    "choose_budget",
    "commands",
    "estimate",
    "shuffler",
]


commands = typer.Typer()


@commands.command(epilog="Example: defocus account '1000 * sampled(gaussian(1.0), 0.01)' --delta 1e-5")
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
    from defocus.cli.accounting import show_account  # noqa: PLC0415 # a command loads what it needs
    from defocus.privacy.units import Adjacency as Neighbouring  # noqa: PLC0415

    show_account(
        expression,
        delta=delta,
        methods=method or [],
        adjacency=Neighbouring[adjacency.name],
        as_json=as_json,
        plot=plot,
    )


@commands.command(epilog="Example: defocus calibrate '10 * gaussian(x)' --epsilon 1 --delta 1e-6")
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
    from defocus.cli.accounting import show_calibration  # noqa: PLC0415 # a command loads what it needs
    from defocus.privacy.units import Adjacency as Neighbouring  # noqa: PLC0415

    show_calibration(
        expression,
        price=price_of(epsilon=epsilon, delta=delta, rho=rho, mu=mu),
        method=method,
        adaptive=adaptive,
        adjacency=Neighbouring[adjacency.name],
        as_json=as_json,
    )


@commands.command(epilog="Example: defocus advise --epsilon 1 --dimension 20 --linf 1")
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
    from defocus.cli.advice import show_choice, show_numbers  # noqa: PLC0415 # a command loads what it needs

    price = price_of(epsilon=epsilon, delta=delta, rho=rho, usual=0.0, choices="--epsilon and --rho")
    if candidates is None:
        show_numbers(price=price, dimension=dimension, l1=l1, l2=l2, linf=linf, as_json=as_json)
    else:
        show_choice(price=price, candidates=candidates, l1=l1, monotone=monotone, as_json=as_json)


ledger = typer.Typer(help="Read and verify ledgers.", no_args_is_help=True)
commands.add_typer(ledger, name="ledger")


@commands.command(epilog="Example: defocus budget --plot burndown.svg")
def budget(
    dataset: DatasetOrLedger = str(FILE),
    *,
    part: Annotated[str | None, typer.Option(help="What is left for a question about this part alone.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Plot how the budget burnt down.")] = None,
    as_json: Json = False,
) -> None:
    """Print what is left of the budget, and how it burnt down."""
    from defocus.cli import ledgers  # noqa: PLC0415 # a command loads what it needs

    ledgers.show_budget(dataset, part=part, plot=plot, as_json=as_json)


@commands.command(epilog="Example: defocus history --last 10")
def history(
    dataset: DatasetOrLedger = str(FILE),
    *,
    last: Annotated[int | None, typer.Option(help="Only so many of the last entries.")] = None,
    as_json: Json = False,
) -> None:
    """Print every charge of a data set: when, who, why, what, and its epsilon."""
    from defocus.cli import ledgers  # noqa: PLC0415 # a command loads what it needs

    ledgers.show(dataset, last=last, as_json=as_json)


@ledger.command("show", epilog="Example: defocus ledger show visits.ledger")
def ledger_show(
    where: Where,
    *,
    last: Annotated[int | None, typer.Option(help="Only so many of the last entries.")] = None,
    as_json: Json = False,
) -> None:
    """Print what was charged and what is left."""
    from defocus.cli import ledgers  # noqa: PLC0415 # a command loads what it needs

    ledgers.show(where, last=last, as_json=as_json)


@ledger.command("verify", epilog="Example: defocus ledger verify visits.ledger --anchor-file visits.anchor")
def ledger_verify(
    where: Where,
    *,
    anchor: Annotated[str | None, typer.Option(help="An anchor kept elsewhere, written number:hash.")] = None,
    anchor_file: Annotated[Path | None, typer.Option(help="The anchor file; beside the ledger by default.")] = None,
    as_json: Json = False,
) -> None:
    """Check every entry of a ledger. Exit code 1 if it was tampered with."""
    from defocus.cli import ledgers  # noqa: PLC0415 # a command loads what it needs

    raise typer.Exit(0 if ledgers.verify(where, anchor=anchor, anchor_file=anchor_file, as_json=as_json) else 1)


_Key = Annotated[Path, typer.Option(help="The file of the key that signs; made if there is none.")]
_OutFile = Annotated[Path | None, typer.Option(help="Write it to this file instead of printing it.")]


@ledger.command("bundle", epilog="Example: defocus ledger bundle visits.ledger may --key me.key --out may.json")
def ledger_bundle(
    where: Where,
    request: Annotated[str, typer.Argument(help="The request under which the answer was released.")],
    *,
    key: _Key,
    out: Annotated[Path, typer.Option(help="The file to write.")],
) -> None:
    """Write a released answer to a signed file that proves itself: see defocus verify."""
    from defocus.cli import bundles  # noqa: PLC0415 # a command loads what it needs

    bundles.bundle(where, request, key=key, out=out)


@ledger.command("head", epilog="Example: defocus ledger head visits.ledger --key me.key --out head.json")
def ledger_head(
    where: Where,
    *,
    key: _Key,
    since: Annotated[Path | None, typer.Option(help="An earlier head, to prove that this one follows from it.")] = None,
    out: _OutFile = None,
) -> None:
    """Print a signed line that commits to every entry of a ledger, for others to keep."""
    from defocus.cli import bundles  # noqa: PLC0415 # a command loads what it needs

    bundles.head(where, key=key, since=since, out=out)


@commands.command(epilog="Example: defocus verify may.bundle --report may.html")
def verify(
    file: Annotated[Path, typer.Argument(help="The file of a bundle.")],
    *,
    key: Annotated[str | None, typer.Option(help="The public key that is expected, in hexadecimal.")] = None,
    newer: Annotated[Path | None, typer.Option(help="A later head with a proof since that of the bundle.")] = None,
    registry: Annotated[Path | None, typer.Option(help="Write a record of the OpenDP deployments registry.")] = None,
    nist: Annotated[Path | None, typer.Option(help="Write claims and evidence by NIST SP 800-226, as HTML.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a page for people: out.html or out.pdf.")] = None,
    as_json: Json = False,
) -> None:
    """Check a signed release without the data: signature, ledger, noise, cost and epsilon. Exit code 1 if untrue."""
    from defocus.cli import bundles  # noqa: PLC0415 # a command loads what it needs

    exports = {"registry": registry, "nist": nist, "report": report}
    raise typer.Exit(0 if bundles.verify(file, key=key, newer=newer, as_json=as_json, **exports) else 1)


@commands.command(epilog="Example: defocus witness head.json --key me.key --memory witnessed.json")
def witness(
    file: Annotated[Path, typer.Argument(help="The head of somebody else's ledger.")],
    *,
    key: _Key,
    memory: Annotated[Path, typer.Option(help="The file that remembers the last head of each ledger.")],
    out: _OutFile = None,
) -> None:
    """Sign the head of a ledger if it follows from the last one that you signed, so that history stays one."""
    from defocus.cli import bundles  # noqa: PLC0415 # a command loads what it needs

    bundles.witness(file, key=key, memory=memory, out=out)


@ledger.command(
    "declare",
    epilog="Example: defocus ledger declare visits.ledger visits --why 'the contract ended' --purpose planning",
)
def ledger_declare(
    where: Where,
    name: Annotated[str, typer.Argument(help="Which data set of the ledger.")],
    *,
    why: Annotated[str, typer.Option(help="Why, in one line, for the record.")],
    who: Annotated[str | None, typer.Option(help="Who declares it; the account's name by default.")] = None,
    purpose: Annotated[
        list[str] | None, typer.Option(help="What it may be used for from now on. May be repeated.")
    ] = None,
    per_person: Annotated[
        int | None, typer.Option(min=1, help="How many rows, edges or events one person has at most from now on.")
    ] = None,
    renew: Annotated[bool, typer.Option("--renew", help="The data is a new version, about the same persons.")] = False,
    no_invariants: Annotated[bool, typer.Option("--no-invariants", help="From now on no total is exact.")] = False,
) -> None:
    """Change what a ledger knows about one of its data sets. The change is an entry of its own."""
    from defocus.cli import ledgers  # noqa: PLC0415 # a command loads what it needs

    how = {"per_person": per_person, "renew": renew, "no_invariants": no_invariants}
    ledgers.declare(where, name, why=why, who=who, purposes=purpose, **how)  # type: ignore[arg-type]


@commands.command(epilog="Example: defocus units visits.ledger")
def units(
    where: Annotated[str | None, typer.Argument(help="A ledger or a dataset file, for its own data sets.")] = None,
    *,
    as_json: Json = False,
) -> None:
    """Print how a person may appear in data, and what each way costs; with a ledger, its persons and data sets."""
    from defocus.cli import ledgers  # noqa: PLC0415 # a command loads what it needs

    ledgers.show_units(where, as_json=as_json)


class KindName(StrEnum):
    """How a budget is stated."""

    PURE = "pure"
    GAUSSIAN = "gaussian"
    APPROXIMATE = "approximate"


@commands.command(
    "choose-budget", epilog="Example: defocus choose-budget --posterior 0.5 0.75 --error 20 --releases 10"
)
def choose_budget(
    *,
    posterior: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="PRIOR LARGEST", help="A belief that one person is in the data, and the largest after."),
    ] = None,
    attack: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="FPR TPR", help="A test's false-positive rate, and the largest true-positive rate."),
    ] = None,
    error: Annotated[float | None, typer.Option(help="The largest expected error of a count, or of a mean.")] = None,
    bounds: Annotated[
        tuple[float, float] | None, typer.Option(metavar="LOW HIGH", help="The least and largest value of a mean.")
    ] = None,
    people: Annotated[int | None, typer.Option(help="How many people a mean or a test is about.")] = None,
    power: Annotated[float | None, typer.Option(help="The probability with which a test notices --effect.")] = None,
    effect: Annotated[float | None, typer.Option(help="The difference that the test is to notice.")] = None,
    proportion: Annotated[float | None, typer.Option(help="The proportion without an effect.")] = None,
    mean: Annotated[float | None, typer.Option(help="The mean without an effect; needs --bounds.")] = None,
    releases: Annotated[int, typer.Option(help="How many such releases the budget must allow.")] = 1,
    kind: Annotated[KindName, typer.Option(help="Epsilon alone, mu, or epsilon and delta.")] = KindName.PURE,
    delta: Annotated[float | None, typer.Option(help="The delta of an approximate budget.")] = None,
    exception: Annotated[
        float | None, typer.Option(help="The probability with which a belief may be above the largest.")
    ] = None,
    ledger: Annotated[
        str | None, typer.Option("--sign", metavar="LEDGER", help="Write the choice into a ledger with this budget.")
    ] = None,
    who: Who = None,
    plot: Annotated[Path | None, typer.Option(help="Plot the risk against the error.")] = None,
    explain: Explain = False,
    as_json: Json = False,
) -> None:
    """Choose a budget by the risk it may bring, the error or power it must allow, or both. See also choose.

    Exit code 1 if what is needed takes more than the risk allows. defocus choose compares models of trust instead.
    """
    from defocus.cli import budget_choice  # noqa: PLC0415 # a command loads what it needs

    need = budget_choice.Asked(
        error=error, bounds=bounds, people=people, power=power, effect=effect, proportion=proportion, mean=mean
    )
    found = budget_choice.choose(
        need,
        posterior=posterior,
        attack=attack,
        releases=releases,
        kind=kind.value,
        delta=delta,
        exception=exception,
    )
    budget_choice.show(found, ledger=ledger, who=who, plot=plot, explain=explain, as_json=as_json)
    raise typer.Exit(0 if found.meets else 1)


class TaskName(StrEnum):
    """What is to be estimated."""

    COUNT = "count"
    HISTOGRAM = "histogram"
    MEAN = "mean"
    QUANTILE = "quantile"
    TRAINING = "training"
    EDGES = "edges"
    TRIANGLES = "triangles"


class TrustName(StrEnum):
    """Who is trusted at most."""

    NOBODY = "nobody"
    SHUFFLER = "shuffler"
    CURATOR = "curator"


class LawName(StrEnum):
    """What is promised: epsilon alone, or epsilon and delta."""

    PURE = "pure"
    APPROXIMATE = "approximate"


class ProcessName(StrEnum):
    """What may be done to counts afterwards."""

    NORM_SUB = "norm-sub"
    SIMPLEX = "simplex"
    ISOTONIC = "isotonic"
    NON_NEGATIVE = "non-negative"
    EMPIRICAL_BAYES = "empirical-bayes"


@commands.command(epilog="Example: defocus choose mean --users 10000 --epsilon 1")
def choose(
    task: Annotated[
        TaskName, typer.Argument(help="A count of yes, a histogram, the mean or a quantile of numbers in [0, 1], …")
    ],
    *,
    users: Annotated[int, typer.Option(help="How many people take part; of a graph, how many nodes there are.")],
    epsilon: Annotated[float, typer.Option(help="What each person's data may cost.")],
    delta: Annotated[float | None, typer.Option(help="The delta that goes with it; at most 1e-6 by default.")] = None,
    categories: Annotated[int, typer.Option(help="How many categories a histogram has, or buckets a quantile.")] = 16,
    parameters: Annotated[int, typer.Option(help="How many trainable parameters a model has.")] = 1000,
    trust: Annotated[TrustName | None, typer.Option(help="Who is trusted at most: list rooms, with lines.")] = None,
    law: Annotated[LawName | None, typer.Option(help="Epsilon alone, or with delta: list rooms, with lines.")] = None,
    error: Annotated[float | None, typer.Option(help="The largest standard error that is acceptable.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Plot the errors against the number of users.")] = None,
    as_json: Json = False,
) -> None:
    """Compare a trusted collector, a shuffler and no trust at all, and recommend one. See also choose-budget."""
    from defocus.cli import collection  # noqa: PLC0415 # a command loads what it needs

    kind: Any = task.value
    if trust or law or kind not in collection.COMPARED:
        collection.show_recommendation(
            task=kind,
            people=users,
            epsilon=epsilon,
            delta=delta,
            trust=(trust or TrustName.CURATOR).value,
            law=(law or LawName.APPROXIMATE).value,
            categories=categories,
            parameters=parameters,
            as_json=as_json,
        )
        return
    question = collection.Asked(
        task=kind, users=users, epsilon=epsilon, delta=delta, categories=categories, error=error
    )
    collection.show_choice(question, plot=plot, as_json=as_json)


@commands.command(epilog="Example: defocus estimate oracle.json monday.parquet --out colours.csv")
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
    given = dict(locals())
    from defocus.cli import collection  # noqa: PLC0415 # a command loads what it needs

    collection.run_estimate(**given)


@commands.command(epilog="Example: defocus shuffler oracle.json --users 1000 --analyser 6f2b… --out round.json")
def shuffler(
    oracle: Annotated[
        Path,
        typer.Argument(help="The description of an oracle, by Oracle.to_json, or of a protocol, by protocol_to_json."),
    ],
    *,
    users: Annotated[int, typer.Option(help="How many users a batch must have.")],
    honest: Annotated[int | None, typer.Option(help="On how many of them privacy counts; all by default.")] = None,
    analyser: Annotated[str, typer.Option(help="The analyser's public key: Key.public.hex().")],
    out: Annotated[Path, typer.Option(help="Where to write the round, for devices and the analyser.")],
    port: Annotated[int, typer.Option(help="Which port of this machine; any free one by default.")] = 0,
    batches: Annotated[int | None, typer.Option(help="Leave once the analyser acknowledged so many batches.")] = None,
) -> None:
    """Run a shuffler on this machine: it forgets who sent a report, and seals batches for the analyser."""
    given = dict(locals())
    from defocus.cli import collection  # noqa: PLC0415 # a command loads what it needs

    collection.run_shuffler(**given)

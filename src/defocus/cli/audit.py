"""``defocus audit``: attack a mechanism by name, one of ours, one broken on purpose, or the user's own."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from defocus.audit import (
    Finding,
    History,
    Membership,
    OneRun,
    Reconstruction,
    Target,
    history,
    membership,
    neighbours,
    one_run,
    reconstruction,
    run,
    search,
    targets,
)
from defocus.audit.domains import read_columns
from defocus.audit.report import Found, picture, report
from defocus.audit.report import keep as keep_in
from defocus.cli.ledgers import ledger_at
from defocus.cli.plots import ready, save
from defocus.cli.terminal import console, facts, plain, table, to_json
from defocus.errors import DefocusError, InvalidParameterError, LedgerUnavailableError, UnknownColumnError, whole
from defocus.ledger import Ledger
from defocus.privacy.expressions import parse
from defocus.privacy.numbers import roughly
from defocus.privacy.units import Adjacency as Neighbouring

__all__ = [
    "claim",
    "find",
    "prepare",
    "show",
    "show_canaries",
    "show_history",
    "show_list",
    "show_membership",
    "show_reconstruction",
    "show_scores",
    "told",
    "write",
]


def find(name: str, *, claimed: float | None, delta: float | None, pairs: str | None) -> Target:
    """The target of this name; ``module:function`` is the user's own, imported from here or the working folder."""
    if ":" not in name:
        by_name = targets()
        if name not in by_name:
            raise _unknown(name, list(by_name))
        if claimed is not None or delta is not None or pairs is not None:
            raise InvalidParameterError(
                f"{name} has a claim of its own.", fix="give --claimed, --delta and --pairs only for module:function."
            )
        return by_name[name]
    if claimed is None or pairs is None:
        raise InvalidParameterError(
            "A mechanism of your own needs a claim and a kind of data.",
            fix="add for example --claimed 1 --pairs numbers.",
        )
    domain = read_columns(pairs) if "=" in pairs else pairs
    neighbours(domain)
    return Target(
        name=name,
        about="",
        mechanism=_own(name),
        pairs=partial(neighbours, domain),
        epsilon=claimed,
        delta=delta or 0.0,
    )


def _unknown(name: str, names: list[str]) -> InvalidParameterError:
    near = get_close_matches(name[:60], names, n=1)
    module, _, function = name.rpartition(".")
    own = f"write {plain(module)}:{plain(function)}" if module and function else "write module:function"
    return InvalidParameterError(
        f"There is nothing to audit called {plain(name[:60])!r}.",
        fix=f"{f'did you mean {near[0]}? ' if near and not module else ''}for a function of your own {own},"
        " and run defocus audit --list for all other names.",
    )


def show_list(*, as_json: bool) -> None:
    """Print what can be audited by name."""
    listed = targets().values()
    if as_json:
        to_json([{"name": t.name, "about": t.about, "epsilon": t.epsilon, "delta": t.delta} for t in listed])
        return
    rows = [(t.name, roughly(t.epsilon), t.about) for t in listed]
    console().print(table(("name", "claim", "about"), rows, numbers=("claim",)))


def show(
    target: Target, *, trials: int | None, confidence: float, seconds: float, plot: Path | None, as_json: bool
) -> Finding:
    """Attack, with a spinner while it runs, and print what was found."""
    if plot is not None:
        ready(plot)
    with _spinner(f"attacking {plain(target.name)}"):
        wanted = target.trials if trials is None else trials
        finding = search(
            target.mechanism,
            target.pairs,
            wanted,
            confidence,
            delta=target.delta,
            claimed=target.epsilon,
            seconds=seconds,
        )
    if plot is not None:
        save(finding.plot(), plot)
    if as_json:
        to_json({"target": target.name} | finding.to_json())
        return finding
    screen = console()
    screen.print(plain(target.name), style="bold")
    screen.print(plain(finding.verdict), style="red" if finding.violation else "green")
    rows = [
        (
            "claimed",
            f"epsilon {roughly(target.epsilon)}" + (f" at delta {roughly(target.delta)}" if target.delta else ""),
        ),
        ("lower bound", f"epsilon {roughly(finding.epsilon_lower)} at {100 * finding.confidence:.6g} % confidence"),
        ("event", finding.event),
        ("happens in", f"{finding.p:.4%} and {finding.q:.4%} of runs"),
        ("data sets", finding.pair),
        ("runs", _runs(finding, wanted)),
        *(("note", note) for note in finding.notes),
    ]
    screen.print(facts(rows))
    return finding


def show_membership(
    fit: str,
    data: Path,
    *,
    score: str | None,
    person: str | None,
    plot: Path | None,
    as_json: bool,
    **how: Any,
) -> Membership:
    """Attack what a function of the user's gives away about the rows of a file, and print what was found."""
    if plot is not None:
        ready(plot)
    rows = _rows(data)
    if person is not None and person not in rows.column_names:
        raise UnknownColumnError(person, rows.column_names)
    people = None if person is None else rows[person].to_pylist()
    own = None if score is None else _own(score)
    known = rows if person is None else rows.drop_columns([person])
    with _told_if_raised(fit):
        found = membership(_own(fit), known, score=own, person=people, **how)
    told(found, plot=plot, as_json=as_json)
    return found


def show_history(where: str, *, plot: Path | None, as_json: bool) -> History:
    """Print what all releases of a ledger give away at most."""
    if plot is not None:
        ready(plot)
    opened = ledger_at(where)
    if opened is None:
        raise LedgerUnavailableError(
            "Nothing was released yet, so there is no ledger.", fix="ask a question first: defocus query …."
        )
    with opened as ledger:
        found = history(ledger)
    if _handed_on(found, plot, as_json=as_json):
        return found
    screen = console()
    screen.print(facts(list(found.facts.items())))
    if found.twins:
        rows = [(each.words, _told_number(each.epsilon), _told_number(each.error)) for each in found.twins]
        names = ("about nearly the same people", "epsilon of both", "error of the difference")
        screen.print(table(names, rows, numbers=names[1:]))
    if found.repeated:
        again = [(plain(each.question), str(len(each.entries)), _told_number(each.epsilon)) for each in found.repeated]
        screen.print(table(("asked again", "times", "epsilon of all"), again, numbers=("times", "epsilon of all")))
    return found


def prepare(plot: Path | None, keep: str | None = None, request: str | None = None) -> None:
    """Refuse places that cannot be written, before minutes are spent."""
    if plot is not None:
        ready(plot)
    if request is not None and keep is None:
        raise InvalidParameterError(
            "--request names a record, and no ledger is named for it.", fix="add --keep LEDGER."
        )
    if keep is not None:
        Ledger.open(keep).close()


def claim(
    claimed: float | None, delta: float, event: str | None, adjacency: str, *, independent: bool
) -> dict[str, Any]:
    """What is promised, as the auditor takes it: an epsilon, or an event."""
    if (claimed is None) == (event is None):
        raise InvalidParameterError(
            "Say what the release promises, in one way.", fix="add --claimed 1, or --event 'gaussian(2)', and --delta."
        )
    said = {} if event is None else {"event": parse(event), "adjacency": Neighbouring[adjacency]}
    return {"claimed": claimed, "delta": delta, "independent": independent} | said


def show_canaries(release: str, canaries: int, score: str | None, how: dict[str, Any]) -> OneRun:
    """What a function of the user's gives away about canaries."""
    number = whole("canaries", canaries, at_least=2)
    own = None if score is None else _own(score)
    with _told_if_raised(release), _spinner(f"planting {number} canaries in {plain(release)}"):
        return run(_own(release), range(number), own, **how)


def show_scores(file: Path, how: dict[str, Any]) -> OneRun:
    """What scores of canaries show, which are in a file with their coins."""
    rows = _rows(file)
    for name in ("score", "planted"):
        if name not in rows.column_names:
            raise UnknownColumnError(name, rows.column_names)
    scores, planted = (_numbers(rows[name], name) for name in ("score", "planted"))
    groups = rows["group"].to_pylist() if "group" in rows.column_names and "event" in how else None
    return one_run(scores, planted, groups=None if groups is None else [str(each) for each in groups], **how)


def show_reconstruction(release: str, queries: Path, how: dict[str, Any]) -> Reconstruction:
    """How many secrets are found in the answers of a function of the user's."""
    rows = _rows(queries)
    asked = np.stack([_numbers(rows[name], name) for name in rows.column_names], axis=1)
    with _told_if_raised(release), _spinner(f"solving for {asked.shape[1]} secrets"):
        return reconstruction(_own(release), asked, **how)


def _numbers(column: pa.ChunkedArray, name: str) -> Any:
    """A column as floats; booleans are 0 and 1."""
    try:
        return column.cast(pa.int8() if pa.types.is_boolean(column.type) else column.type).cast(pa.float64()).to_numpy()
    except pa.ArrowException:
        raise InvalidParameterError(
            f"The column {plain(name)!r} holds no numbers.", fix="write a number in each of its lines."
        ) from None


def write(where: Path | None, found: Found, *, keep: str | None = None, request: str | None = None) -> None:
    """Write a page with what was found, and a record in a ledger, where these are wanted."""
    if where is not None:
        report(where, found)
    if keep is not None:
        with Ledger.open(keep) as ledger:
            kept = keep_in(found, ledger=ledger, request=str(request))  # type: ignore[arg-type]  # it refuses others
        console(error=True).print(plain(f"kept as {request!r}, entry {kept.sequence} of {keep}"), soft_wrap=True)


def told(
    found: Membership | OneRun | Reconstruction, *, plot: Path | None, as_json: bool
) -> Membership | OneRun | Reconstruction:
    """Print what was found, and write a picture of it where one is wanted."""
    if _handed_on(found, plot, as_json=as_json):
        return found
    screen = console()
    screen.print(plain(found.verdict), style="red" if found.violation else "green")
    lines = str(found).split("\n")
    screen.print("\n".join(plain(line) for line in (lines[0].partition(": ")[2], *lines[1:])), markup=False)
    return found


def _handed_on(found: Found, plot: Path | None, *, as_json: bool) -> bool:
    """Plot what was found, and print it as JSON; whether that was asked for instead of text."""
    if plot is not None:
        save(picture(found), plot)
    if as_json:
        to_json(found.to_json())
    return as_json


@contextmanager
def _told_if_raised(name: str) -> Iterator[None]:
    """What the user's function raises is no violation, and not told as a fault of ours."""
    try:
        yield
    except DefocusError:
        raise
    except Exception as error:
        raise InvalidParameterError(
            f"{plain(name)} raised {type(error).__name__}: {plain(str(error))[:200]}.",
            fix="call it by itself first, with what the audit gives it.",
        ) from error


def _spinner(words: str) -> Progress:
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    progress = Progress(*columns, console=console(error=True), transient=True)
    progress.add_task(words, total=None)
    return progress


def _rows(data: Path) -> pa.Table:
    try:
        if data.suffix.lower() == ".parquet":
            return pq.read_table(data)
        if data.suffix.lower() == ".csv":
            return pa_csv.read_csv(data)
    except (OSError, pa.ArrowException):
        raise InvalidParameterError(f"{plain(str(data))} cannot be read.", fix="name a file of rows.") from None
    raise InvalidParameterError("Rows are read from .parquet or .csv.", fix="write for example people.parquet.")


def _told_number(value: float | None) -> str:
    return "" if value is None else roughly(value)


def _runs(finding: Finding, wanted: int) -> str:
    words = f"{finding.trials} on each, {finding.seconds:.1f} s"
    if finding.trials >= wanted:
        return words
    return f"{words}; stopped early, {'since this is enough' if finding.violation else 'since time was up'}"


def _own(name: str) -> Any:
    module, _, attribute = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        mechanism = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # whatever the user's module raises while it is loaded
        raise InvalidParameterError(
            f"{plain(name)} could not be loaded: {type(error).__name__}: {plain(error)}.",
            fix="write it as module:function, for example mine:noisy_count.",
        ) from error
    if not callable(mechanism):
        raise InvalidParameterError(f"{plain(name)} cannot be called.", fix="name a function of one data set.")
    return mechanism

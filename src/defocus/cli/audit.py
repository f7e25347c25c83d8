"""``defocus audit``: attack a mechanism by name, one of ours, one broken on purpose, or the user's own."""

import importlib
import sys
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from defocus.audit import Finding, Target, neighbours, search, targets
from defocus.cli.plots import ready, save
from defocus.cli.terminal import console, facts, plain, table, to_json
from defocus.errors import InvalidParameterError
from defocus.privacy.numbers import roughly

__all__ = ["find", "show", "show_list"]


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
    neighbours(pairs)
    return Target(
        name=name,
        about="",
        mechanism=_own(name),
        pairs=partial(neighbours, pairs),
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
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console(error=True), transient=True) as progress:
        progress.add_task(f"attacking {plain(target.name)}", total=None)
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

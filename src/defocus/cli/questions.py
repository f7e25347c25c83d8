"""``defocus query``, ``preview`` and ``export``, and how commands show and write an answer, whatever it is about."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from defocus.cli.plots import ready, save
from defocus.cli.terminal import console, plain, to_json
from defocus.errors import InvalidParameterError, Number
from defocus.tables import Table
from defocus.tables import open as open_table
from defocus.tables.answers import from_record
from defocus.tables.dataset_check import ledger_of
from defocus.tables.dataset_file import read

__all__ = ["check_places", "deliver", "export", "preview", "query", "show", "write", "writer"]


_FORMATS = {".csv": "to_csv", ".parquet": "to_parquet", ".json": "to_json"}


def show(shown: Any, *, explain: bool, as_json: bool, spoken: Callable[[str], str] = str) -> None:
    """Print an answer or a preview, and what it means if asked; ``spoken`` puts lines into words of the command."""
    if as_json:
        to_json(shown.to_dict())
        return
    screen = console()
    for line in (f"{shown}\n\n{shown.explain()}" if explain else str(shown)).split("\n"):
        screen.print(plain(spoken(line)), soft_wrap=True)


def write(answer: Any, out: Path) -> None:
    """Write an answer in the format that the ending of the name says."""
    getattr(answer, writer(out))(out)


def writer(out: Path) -> str:
    """The method that writes to ``out``, or a refusal: ask before anything is paid for."""
    method = _FORMATS.get(out.suffix.lower())
    if method is None:
        raise InvalidParameterError(
            f"An answer is written as {', '.join(_FORMATS)}, but the name ends in {out.suffix or 'nothing'}.",
            fix="write for example --out answer.csv.",
        )
    if not out.absolute().parent.is_dir():
        raise InvalidParameterError(
            f"There is no folder {str(out.parent)!r:.200} for the answer.", fix="make it, or choose another for --out."
        )
    return method


def check_places(out: Path | None, plot: Path | None) -> None:
    """Refuse places where no answer or plot can be written: ask before anything is paid for."""
    if out is not None:
        writer(out)
    if plot is not None:
        ready(plot)


def deliver(answer: Any, *, out: Path | None, plot: Path | None, **how: Any) -> None:
    """Write, show and plot an answer; ``how`` is that of :func:`show`."""
    try:
        if out is not None:
            write(answer, out)
    finally:
        show(answer, **how)  # it is paid for, so it is shown whatever else fails
    if plot is not None:
        save(answer.plot(), plot)


def query(
    *,
    dataset: Path,
    purpose: str | None,
    who: str | None,
    request: str | None,
    out: Path | None,
    plot: Path | None,
    explain: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    """Release the answer to what is ``asked``, print it, and write it where asked."""
    check_places(out, plot)
    with _progress(shown=not as_json) as progress, open_table(_file(dataset), progress=progress) as table:
        query, price = _query(table, **asked)
        answer = query.release(**price, purpose=purpose, who=who, request=request, progress=progress)
    deliver(answer, out=out, plot=plot, explain=explain, as_json=as_json)


def preview(*, dataset: Path, explain: bool, as_json: bool, **asked: Any) -> None:
    """Print what a question would cost and how exact its answer would be. Free."""
    with _looked_at(_file(dataset)) as table:
        query, price = _query(table, **asked)
        foreseen = query.preview(**price)
    show(foreseen, explain=explain, as_json=as_json)


def _query(
    table: Table,
    *,
    question: str,
    epsilon: Number,
    delta: Number | None,
    bounds: StrEnum | None,
    at_most: int,
    dialect: str,
    part: list[str] | None,
) -> tuple[Any, dict[str, Any]]:
    """The question, and its price."""
    about = table.part(*part) if part else table
    way = None if bounds is None else bounds.value
    query = about.sql_query(question, bounds=way, at_most=at_most, dialect=dialect)
    return query, {"epsilon": epsilon, "delta": delta}


def export(request: str, *, dataset: Path, out: Path) -> None:
    """Write an answer that was kept under the name of a request; it is public already, so this is free."""
    writer(out)
    ledger = ledger_of(read(_file(dataset)))
    with nullcontext() if ledger is None else ledger:
        kept = None if ledger is None else ledger.recall(request)
    if kept is None:
        raise InvalidParameterError(
            f"No answer was kept under the name {request!r:.80}.",
            fix="name a request when you ask: defocus query … --request NAME.",
        )
    write(from_record(kept.value, kept.receipt), out)
    console().print(f"written: {plain(out)}", soft_wrap=True)


@contextmanager
def _looked_at(dataset: Path) -> Iterator[Table]:
    """The table, with its ledger for reading only; where there is none yet, with one that is gone afterwards."""
    with TemporaryDirectory() as folder, ExitStack() as opened:
        ledger = ledger_of(read(dataset))
        place = Path(folder) / "preview.ledger" if ledger is None else opened.enter_context(ledger)
        yield opened.enter_context(open_table(dataset, ledger=place))


def _file(dataset: Path) -> Path:
    """The dataset file. Data itself would be opened without the owner's purposes, bounds and columns."""
    if dataset.suffix.lower() != ".toml":
        raise InvalidParameterError(
            f"{dataset.name!r:.120} is no dataset file, and data is asked only as its file says.",
            fix="pass --dataset with a .toml file; defocus init drafts one.",
        )
    return dataset


@contextmanager
def _progress(*, shown: bool) -> Iterator[Callable[[float], None] | None]:
    """A bar on the terminal for questions that take a while; nothing when the output is read by a program."""
    if not shown or not sys.stderr.isatty():
        yield None
        return
    columns: list[Any] = [TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()]
    with Progress(*columns, console=console(error=True), transient=True) as bar:
        task = bar.add_task("computing", total=100.0)
        yield lambda percent: bar.update(task, completed=percent)

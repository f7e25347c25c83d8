"""``defocus query``, ``preview``, ``export`` and ``report``, and how commands show and write an answer of any kind."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from defocus.answers.columns import CONFIDENCE
from defocus.answers.plots import blank
from defocus.answers.progress import shown as progress_shown
from defocus.cli.ledgers import ledger_at
from defocus.cli.options import FILE
from defocus.cli.plots import ready, save
from defocus.cli.terminal import console, plain, to_json
from defocus.errors import InvalidParameterError, LedgerUnavailableError, MissingExtraError, Number, probability
from defocus.ledger import Ledger
from defocus.ledger.entries import CHARGE
from defocus.tables import Table
from defocus.tables import open as open_table
from defocus.tables.answers import from_record
from defocus.tables.dataset_check import ledger_of
from defocus.tables.dataset_file import read
from defocus.tables.report import report as write_report

__all__ = [
    "check_places",
    "deliver",
    "elsewhere",
    "export",
    "preview",
    "query",
    "remote_table",
    "report",
    "show",
    "write",
    "writer",
]


_FORMATS = {".csv": "to_csv", ".xlsx": "to_excel", ".parquet": "to_parquet", ".json": "to_json"}


def show(shown: Any, *, explain: bool, as_json: bool, spoken: Callable[[str], str] = str, **how: Any) -> None:
    """Print an answer or a preview, and what it means if asked; ``spoken`` puts lines into words of the command.

    ``how`` is the confidence of an answer's intervals, where it is another one.
    """
    if as_json:
        to_json(shown.to_dict(**how))
        return
    text = shown.to_text(**how) if how else str(shown)
    for line in (f"{text}\n\n{shown.explain()}" if explain else text).split("\n"):
        console().print(plain(spoken(line)), soft_wrap=True)


def write(answer: Any, out: Path, **how: Any) -> None:
    """Write an answer in the format that the ending of the name says."""
    getattr(answer, writer(out))(out, **how)


def writer(out: Path) -> str:
    """The method that writes to ``out``, or a refusal: ask before anything is paid for."""
    method = _FORMATS.get(out.suffix.lower())
    if method is None:
        raise InvalidParameterError(
            f"An answer is written as {', '.join(_FORMATS)}, but the name ends in {out.suffix or 'nothing'}.",
            fix="write for example --out answer.csv.",
        )
    if method == "to_excel":
        try:
            import_module("openpyxl")
        except ImportError as error:
            raise MissingExtraError("An Excel file", package="openpyxl", extra="excel") from error
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


def deliver(
    answer: Any,
    *,
    out: Path | None,
    plot: Path | None,
    confidence: Number = CONFIDENCE,
    as_csv: bool = False,
    **how: Any,
) -> None:
    """Write, show and plot an answer; ``how`` is that of :func:`show`."""
    level: dict[str, Any] = {} if confidence == CONFIDENCE else {"confidence": confidence}
    try:
        if out is not None:
            write(answer, out, **level)
    finally:  # it is paid for, so it is shown whatever else fails
        if as_csv:
            console().print(answer.to_csv(**level), soft_wrap=True, end="")
        else:
            show(answer, **how, **level)
    if plot is not None:
        save(answer.plot(**level), plot)


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
    shape: StrEnum,
    confidence: Number,
    server: str | None = None,
    reason: str | None = None,
    **asked: Any,
) -> None:
    """Release the answer to what is ``asked``, print it, and write it where asked."""
    check_places(out, plot)
    level = float(probability("confidence", confidence, zero=False, one=False))
    if server is not None:
        query, price = elsewhere(remote_table(server, dataset), **asked)
        answer = query.release(**price, purpose=purpose, reason=reason, request=request)
    else:
        with progress_shown(None, "opening") as progress, open_table(_file(dataset), progress=progress) as table:
            query, price = _query(table, **asked)
            answer = query.release(**price, purpose=purpose, who=who, request=request)
    how = {"as_json": as_json or shape == "json", "as_csv": shape == "csv" and not as_json}
    deliver(answer, out=out, plot=plot, explain=explain, confidence=level, **how)


def preview(*, dataset: Path, explain: bool, as_json: bool, server: str | None = None, **asked: Any) -> None:
    """Print what a question would cost and how exact its answer would be. Free."""
    if server is not None:
        query, price = elsewhere(remote_table(server, dataset), **asked)
        show(query.preview(**price), explain=explain, as_json=as_json)
        return
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
    at_most: int | None,
    intervals: bool,
    dialect: str,
    part: list[str] | None,
    rows: str | None,
    groups: int | None,
) -> tuple[Any, dict[str, Any]]:
    """The question, and its price."""
    about = table.part(*part) if part else table
    if rows is not None or groups is not None:
        most: Any = int(rows) if rows is not None and rows.isascii() and rows.isdecimal() and len(rows) < 20 else rows
        about = about.bound(rows=most, groups=groups)
    way = None if bounds is None else bounds.value
    query = about.sql_query(question, bounds=way, at_most=at_most, intervals=intervals, dialect=dialect)
    return query, {"epsilon": epsilon, "delta": delta}


def elsewhere(
    asked: Any,
    *,
    question: str,
    epsilon: Number,
    delta: Number | None,
    bounds: StrEnum | None,
    **how: Any,
) -> tuple[Any, dict[str, Any]]:
    """The question to a table that is asked elsewhere, on a server or at several sites, and its price."""
    said = {name: value for name, value in how.items() if value is not None and value is not False and value != []}
    if "rows" in said and said["rows"].isascii() and said["rows"].isdecimal() and len(said["rows"]) < 20:
        said["rows"] = int(said["rows"])
    if bounds is not None:
        said["bounds"] = bounds.value
    return asked.sql_query(question, **said), {"epsilon": epsilon, "delta": delta}


def remote_table(server: str, dataset: Path) -> Any:
    """The data set of a server that --dataset names; its only one by default."""
    from defocus.server.client import connect  # noqa: PLC0415 # slow to load

    token = os.environ.get("DEFOCUS_TOKEN")
    if not token:
        raise InvalidParameterError(
            "There is no token in DEFOCUS_TOKEN.", fix="make one on the account page of the server, and export it."
        )
    return connect(server, token, None if dataset == FILE else str(dataset))


def export(request: str, *, dataset: Path, out: Path, confidence: Number) -> None:
    """Write an answer that was kept under the name of a request; it is public already, so this is free."""
    writer(out)
    level = float(probability("confidence", confidence, zero=False, one=False))
    ledger = ledger_of(read(_file(dataset)))
    with nullcontext() if ledger is None else ledger:
        kept = None if ledger is None else ledger.recall(request)
    if kept is None:
        raise InvalidParameterError(
            f"No answer was kept under the name {request!r:.80}.",
            fix="name a request when you ask: defocus query … --request NAME.",
        )
    write(from_record(kept.value, kept.receipt), out, confidence=level)
    console().print(f"written: {plain(out)}", soft_wrap=True)


def report(out: Path, *, dataset: str, title: str | None, requests: list[str]) -> None:
    """Write one page of the answers that a ledger kept, and of its budget; they are public already, so this is free."""
    if out.suffix.lower() not in {".html", ".htm"}:
        raise InvalidParameterError("A report is an HTML file.", fix="write for example defocus report answers.html.")
    blank(1, 1)
    opened = ledger_at(dataset)
    if opened is None:
        raise LedgerUnavailableError(
            "Nothing was released yet, so there is no ledger.", fix="ask a question first: defocus query …."
        )
    with opened as ledger:
        answers, others = _kept(ledger, requests)
        write_report(answers, out, title=title or f"Answers about {ledger.dataset}", ledger=ledger)
    for name in others:
        console(error=True).print(f"not shown, since it is no table of numbers: {plain(name)}", soft_wrap=True)
    number = f"{len(answers)} answer{'' if len(answers) == 1 else 's'}"
    console().print(f"written: {plain(out)}, with {number}", soft_wrap=True)


def _kept(ledger: Ledger, requests: list[str]) -> tuple[list[Any], list[str]]:
    """The answers that were kept, all or those of some requests; and the names of values that are no answers."""
    charged = (entry.content.get("request") for entry in ledger.entries() if entry.kind == CHARGE)
    answers, others = [], []
    for name in requests or dict.fromkeys(request for request in charged if request):
        kept = ledger.recall(name)
        if kept is None:
            if requests:
                raise InvalidParameterError(
                    f"No answer was kept under the name {name!r:.80}.", fix="defocus history lists what there is."
                )
            continue
        value = kept.value
        if not isinstance(value, dict) or "columns" not in value:
            others.append(name)
            continue
        made = from_record
        if value.get("kind") == "graph":
            from defocus.graphs.question import from_record as made  # noqa: PLC0415 # slow to load
        answers.append(made(value, kept.receipt))
    return answers, others


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

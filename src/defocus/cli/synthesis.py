"""``defocus synthesise``: synthetic rows of the table of a dataset file, written to a file."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from defocus.answers import export
from defocus.cli.questions import remote_table, show
from defocus.cli.terminal import console, plain, to_json
from defocus.errors import InvalidParameterError
from defocus.synthesis import Generator, Synthesiser
from defocus.tables import open as open_table

__all__ = ["synthesise"]


def synthesise(
    *,
    out: Path | None,
    epsilon: float,
    delta: float | None,
    dataset: Path,
    find: list[str] | None,
    only: list[str] | None,
    constraint: list[str] | None,
    number: int | None,
    method: str,
    focus: list[str] | None,
    accept: float | None,
    part: list[str] | None,
    purpose: str | None,
    who: str | None,
    request: str | None,
    server: str | None,
    reason: str | None,
    save: Path | None,
    report: Path | None,
    preview: bool,
    explain: bool,
    as_json: bool,
) -> None:
    """Preview, or charge, fit, and write synthetic rows."""
    for place in (out, save, report):
        _writable(place)
    if out is not None and out.suffix.lower() not in {".csv", ".parquet"}:
        raise InvalidParameterError(
            f"Synthetic rows are written as .csv or .parquet, but the name ends in {out.suffix or 'nothing'}.",
            fix="write for example synthetic.parquet.",
        )
    given: dict[str, Any] = {
        "columns": dict.fromkeys(find or ()),
        "only": only,
        "constraints": tuple(constraint or ()),
        "method": method,
        "focus": [[name.strip() for name in one.split(",")] for one in focus or ()],
    }
    with ExitStack() as stack:
        opened: Any = stack.enter_context(open_table(dataset)) if server is None else remote_table(server, dataset)
        table = opened.part(*part) if part else opened
        wanted: Any = Synthesiser(table, **given) if server is None else table.synthesis(**given)
        if preview:
            show(wanted.preview(epsilon=epsilon, delta=delta), explain=explain, as_json=as_json)
            return
        if out is None:
            raise InvalidParameterError(
                "No file was named for the synthetic rows.", fix="write for example --out synthetic.parquet."
            )
        if server is None:
            made = wanted.fit(epsilon=epsilon, delta=delta, accept=accept, purpose=purpose, who=who, request=request)
        else:
            made = wanted.release(epsilon=epsilon, delta=delta, purpose=purpose, reason=reason, request=request)
    _deliver(made, out=out, number=number, save=save, report=report)
    if as_json:
        to_json({"records": len(made.fitted.records), "distance": made.distance, "error": made.distance_error})
        return
    said = made.explain() if explain else str(_summary(made, out))
    for line in said.split("\n"):
        console().print(plain(line), soft_wrap=True)


def _deliver(made: Generator, *, out: Path, number: int | None, save: Path | None, report: Path | None) -> None:
    if save is not None:  # first, so that what was paid for is kept
        made.save(save)
    rows = made.sample(number)
    if out.suffix.lower() == ".parquet":
        export.write_parquet(rows, out)
    else:
        sink = pa.BufferOutputStream()
        pa_csv.write_csv(rows, sink)
        export.write_bytes(out, sink.getvalue().to_pybytes())
    if report is not None:
        made.report(report)


def _summary(made: Generator, out: Path) -> str:
    quality = f"pairs of columns are off by {made.distance:.3f} ± {made.distance_error:.1g} on average"
    return f"{out}: {len(made.fitted.records)} records were fitted; {quality} (total variation distance)"


def _writable(place: Any) -> None:
    if place is not None and not place.absolute().parent.is_dir():
        raise InvalidParameterError(f"There is no folder {str(place.parent)!r:.200}.", fix="make it, or name another.")

"""``defocus estimate``: from a description and files of reports to counts, or to the mean."""

from collections.abc import Sequence
from pathlib import Path

from defocus.cli.answering import show, write, writer
from defocus.cli.plots import ready, save
from defocus.errors import InvalidParameterError
from defocus.local.aggregating import count_files
from defocus.local.answering import CollectedAnswer
from defocus.local.designs import Categorical, Design, Numeric, from_json
from defocus.local.means import Mean
from defocus.local.oracles import Oracle
from defocus.local.processing import Process
from defocus.local.servers import State

__all__ = ["described", "run"]

_LONGEST = 1 << 26


def run(
    oracle: Path,
    reports: Sequence[str],
    *,
    processing: Process | None,
    engine: str | None,
    out: Path | None,
    plot: Path | None,
    explain: bool,
    as_json: bool,
) -> None:
    """Count the reports where they lie, estimate, and show."""
    if out is not None:
        writer(out)
    if plot is not None:
        ready(plot)
    design = described(oracle)
    answer = _estimated(design, count_files(design, list(reports), engine=engine), processing)
    if out is not None:
        write(answer, out)
    if plot is not None:
        save(answer.plot(), plot)
    show(answer, explain=explain, as_json=as_json)


def described(oracle: Path) -> Design:
    """The description in a file."""
    with oracle.open("rb") as file:
        return from_json(file.read(_LONGEST))


def _estimated(design: Design, counted: State, processing: Process | None) -> CollectedAnswer:
    if isinstance(design, Numeric):
        if processing is not None:
            raise InvalidParameterError(
                "A processing is for counts, but this oracle is about numbers.", fix="leave processing= out."
            )
        return Mean(design).estimate(counted)
    assert isinstance(design, Categorical)  # noqa: S101 # designs are of one kind or the other
    return Oracle(design).estimate(counted, processing=processing)

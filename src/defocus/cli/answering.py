"""``--out``, ``--json`` and ``--explain``: how the commands show and write an answer, whatever it is about."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from defocus.cli.terminal import console, plain, to_json
from defocus.errors import InvalidParameterError

__all__ = ["show", "write", "writer"]

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
    known = _FORMATS.get(out.suffix.lower())
    if known is None:
        raise InvalidParameterError(
            f"An answer is written as {', '.join(_FORMATS)}, but the name ends in {out.suffix or 'nothing'}.",
            fix="write for example --out answer.csv.",
        )
    if not out.absolute().parent.is_dir():
        raise InvalidParameterError(
            f"There is no folder {str(out.parent)!r:.200} for the answer.", fix="make it, or choose another for --out."
        )
    return known

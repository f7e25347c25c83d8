"""``defocus train``: the command and its options. Its work is in training.py, loaded when it is called."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from defocus.cli.options import Json

__all__ = ["Example", "commands", "train"]

commands = typer.Typer()


class Example(StrEnum):
    """What a drafted file is about."""

    TABLE = "table"
    ARRAYS = "arrays"
    IMAGES = "images"


@commands.command()
def train(
    config: Annotated[
        Path | None, typer.Argument(metavar="TOML", help="What to train, on what, and at which price.")
    ] = None,
    *,
    example: Annotated[
        Example | None, typer.Option(help="Print a file to begin with: for a table, arrays or folders of images.")
    ] = None,
    preview: Annotated[bool, typer.Option("--preview", metavar="", help="Only say what would be done. Free.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", metavar="", help="Show no progress.")] = False,
    as_json: Json = False,
) -> None:
    """Train a model on private data: charged first, then trained, then written and reported."""
    from defocus.cli import training  # noqa: PLC0415 # a command loads what it needs

    if example is not None:
        training.draft(example.value)
        return
    training.train(config, preview=preview, quiet=quiet, as_json=as_json)

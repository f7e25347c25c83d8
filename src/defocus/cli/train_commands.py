"""``defocus train`` and ``predict``: the commands and their options. Their work is loaded when they are called."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from defocus.cli.options import Json

__all__ = ["Example", "commands", "predict", "train"]

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
    force: Annotated[
        bool, typer.Option("--force", metavar="", help="Write over a model that is there already.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Train a model on private data: charged first, then trained, then written and reported."""
    from defocus.cli import training  # noqa: PLC0415 # a command loads what it needs

    if example is not None:
        training.draft(example.value)
        return
    training.train(config, preview=preview, quiet=quiet, force=force, as_json=as_json)


@commands.command()
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What defocus train wrote: a .json or .pt file.")],
    data: Annotated[
        Path,
        typer.Argument(metavar="DATA", help="A .csv, .tsv or .parquet table; for networks .npz or a folder of images."),
    ],
    *,
    out: Annotated[
        Path | None, typer.Option(help="Write predictions here, as .csv or .parquet; else they are printed.")
    ] = None,
    keep: Annotated[list[str] | None, typer.Option(help="A column of the table to write beside them.")] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", metavar="", help="Write the probability of each class too.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Predict with a trained model. Free: the data that it was trained on is not looked at."""
    from defocus.cli import prediction  # noqa: PLC0415 # a command loads what it needs

    prediction.predict(model, data, out=out, keep=keep or [], probabilities=probabilities, as_json=as_json)

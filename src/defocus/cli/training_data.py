"""The data of ``defocus train`` for networks: arrays and folders of images. Refusals never quote what is in them."""

import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from defocus.cli.training_files import Training
from defocus.errors import MissingExtraError, UnfitDataError

__all__ = ["NO_CLASS", "arrays", "inputs"]

NO_CLASS = -100
"""The class of an example that has none of the declared ones: it adds nothing to the loss."""

_SIDE = 28
_IMAGES = {".png", ".jpg", ".jpeg", ".bmp", ".webp"}


def arrays(asked: Training, place: Path) -> tuple[Any, Any, Any]:
    """Inputs, classes and users of a .npz file or of a folder with a folder of images for each class."""
    if place.is_dir():
        return (*_images(asked, place), None)
    kept = _kept(place)
    users = asked.unit.column
    for name in ("x", "y", *([] if users is None else [users])):
        if name not in kept:
            raise UnfitDataError(
                f"The data has no array {name!r:.60}.", fix=f"write it with numpy.savez(file, …, {name}=…)."
            )
    x, y = kept["x"], kept["y"]
    if x.dtype.kind not in "fiub" or x.ndim < 2 or y.dtype.kind not in "iub" or y.shape != (len(x),):
        raise UnfitDataError(
            "x must hold numbers with an example in each row, and y the whole number of its class.",
            fix="write for example x of shape (n, 28, 28) and y of shape (n,).",
        )
    inside = (y >= 0) & (y < len(asked.values))
    return x.astype(np.float32), np.where(inside, y, NO_CLASS).astype(np.int64), None if users is None else kept[users]


def _kept(place: Path) -> dict[str, Any]:
    """The arrays of an .npz file; pickles in it are not opened."""
    try:
        with place.open("rb") as raw:
            file = np.load(raw, allow_pickle=False)
            if isinstance(file, np.lib.npyio.NpzFile):
                return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, KeyError, BadZipFile):
        pass  # what is wrong with it would quote it
    raise UnfitDataError(
        f"The arrays in {place.name!r:.100} cannot be read.",
        fix='name an .npz file written with numpy.savez(file, x=…, y=…), or a folder of images, as data = "…".',
    )


def inputs(place: Path, side: int | None, *, colour: bool) -> tuple[Any, list[str] | None]:
    """Inputs to predict: the array x of an .npz file, or the images of a folder with their names."""
    if place.is_dir():
        files = _files(place)
        read = _reader(side, colour=colour)
        if not files:
            raise UnfitDataError("There is no image in the folder.", fix=f"put there {', '.join(sorted(_IMAGES))}.")
        found = [read(file) for file in files]
        if any(image is None for image in found):
            raise UnfitDataError("An image cannot be read.", fix="take out what is no image, and run it again.")
        return np.stack(found), [file.name for file in files]
    x = _kept(place).get("x")
    if x is None or x.dtype.kind not in "fiub" or x.ndim < 2 or not len(x):
        raise UnfitDataError(
            "x must hold numbers with an example in each row.", fix="write it with numpy.savez(file, x=…)."
        )
    return x.astype(np.float32), None


def _files(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if each.suffix.lower() in _IMAGES)


def _reader(side: int | None, *, colour: bool) -> Callable[[Path], Any]:
    """What makes an array of numbers from 0 to 1 of an image, channels first; None of what cannot be read."""
    try:
        opened = import_module("PIL.Image").open
    except ImportError as error:
        raise MissingExtraError("Reading images", package="Pillow", extra="plot") from error
    size, mode = (side or _SIDE, side or _SIDE), "RGB" if colour else "L"

    def read(file: Path) -> Any:
        with suppress(Exception), warnings.catch_warnings(action="ignore"):  # whatever a file does that is no image
            with opened(file) as image:
                pixels = np.asarray(image.convert(mode).resize(size), dtype=np.float32) / 255
            return pixels.transpose(2, 0, 1) if colour else pixels[None]
        return None

    return read


def _images(asked: Training, place: Path) -> tuple[Any, Any]:
    """Images and their classes; one that cannot be read is a black one without a class, so that none makes it fail."""
    read = _reader(asked.side, colour=asked.colour)
    black = np.zeros((3 if asked.colour else 1, asked.side or _SIDE, asked.side or _SIDE), np.float32)
    found, classes = [], []
    for number, name in enumerate(asked.values):
        folder = place / str(name)
        if not folder.is_dir():
            raise UnfitDataError(
                f"There is no folder {str(name)!r:.60} in the data.", fix="list the folders as values = […] in [model]."
            )
        for file in _files(folder):
            image = read(file)
            found.append(black if image is None else image)
            classes.append(NO_CLASS if image is None else number)
    if not found:
        raise UnfitDataError("There is no image in the data.", fix=f"put them there as {', '.join(sorted(_IMAGES))}.")
    return np.stack(found), np.array(classes, dtype=np.int64)

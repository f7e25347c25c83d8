"""The data of ``defocus train``: tables, arrays and folders of images. Refusals never quote what is in them."""

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from defocus.cli.training_files import Training
from defocus.errors import MissingExtraError, UnfitDataError, UnknownColumnError

__all__ = ["NO_CLASS", "arrays", "columns", "inputs", "table", "table_of"]

NO_CLASS = -100
"""The class of an example that has none of the declared ones: it adds nothing to the loss."""

_Floats = npt.NDArray[np.float64]
_SIDE = 28
_IMAGES = {".png", ".jpg", ".jpeg", ".bmp", ".webp"}


def table(asked: Training, place: Path) -> tuple[_Floats, Any]:
    """Features and targets of a CSV or Parquet file.

    What is no number in a feature is NaN, for which estimators declare what it counts as; so is a target that is none.
    A class is its place among the declared ones; -1, which counts for nothing, for any other.
    """
    found = table_of(place)
    missing = [name for name in (*asked.features, *_named(asked)) if name not in found.column_names]
    if missing:
        raise UnknownColumnError(missing[0], found.column_names)
    features = columns(found, asked.features)
    if not asked.supervised or asked.target is None:
        return features, None
    if asked.range is not None:
        return features, _numbers(found[asked.target])
    return features, _classes(found[asked.target], asked.values)


def columns(found: pa.Table, names: Iterable[str]) -> _Floats:
    """These columns of a table as numbers."""
    return np.column_stack([_numbers(found[name], name) for name in names])


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


def _named(asked: Training) -> Sequence[str]:
    return [] if asked.target is None or not asked.supervised else [asked.target]


def table_of(place: Path) -> pa.Table:
    """A CSV file as texts, or a Parquet file as it is; every column has a name of its own."""
    found = _read(place)
    names = found.column_names
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UnfitDataError(f"Two columns of the table are called {twice!r:.60}.", fix="rename one of them.")
    return found


def _read(place: Path) -> pa.Table:
    try:
        if place.suffix.lower() in {".parquet", ".pq"}:
            return pq.read_table(place)
        if place.suffix.lower() in {".csv", ".tsv"}:
            dialect = pacsv.ParseOptions(delimiter="\t" if place.suffix.lower() == ".tsv" else ",")
            names = pacsv.open_csv(place, parse_options=dialect).schema.names
            texts = pacsv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True)
            return pacsv.read_csv(place, parse_options=dialect, convert_options=texts)
    except (pa.ArrowException, ValueError):
        problem = "cannot be read"
    except OSError as error:
        problem = error.strerror or "cannot be opened"
    else:
        problem = "is neither a CSV nor a Parquet file"
    raise UnfitDataError(
        f"The table {place.name!r:.100} {problem}.", fix="name a .csv, .tsv or .parquet file, written whole."
    )


def _numbers(column: pa.ChunkedArray, name: str = "of the target") -> _Floats:
    """A column as numbers; NaN for whatever is none."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return np.array([_number(text) for text in column.to_pylist()], dtype=np.float64)
    if pa.types.is_decimal(column.type) or pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
        column = pc.cast(column, pa.float64(), safe=False)
    if not pa.types.is_floating(column.type):
        raise UnfitDataError(
            f"The column {name!r:.60} is of type {column.type}, which is no number.",
            fix="leave it out of [features], or convert it.",
        )
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return float("nan")


def _classes(column: pa.ChunkedArray, values: Sequence[Any]) -> npt.NDArray[np.int64]:
    places = {_spelt(value): i for i, value in enumerate(values)}
    return np.array([places.get(_spelt(value), -1) for value in column.to_pylist()], dtype=np.int64)


def _spelt(value: Any) -> str:
    """A class as text: 1, 1.0, true and "1" are told apart from others by how they are written."""
    if isinstance(value, bool):
        return str(value).lower()
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else str(value).strip()


def inputs(place: Path, side: int | None, *, colour: bool) -> tuple[Any, list[str] | None]:
    """Inputs to predict: the array x of an .npz file, or the images of a folder with their names."""
    if place.is_dir():
        files = _files(place)
        read = _reader(side, colour=colour)
        if not files:
            raise UnfitDataError("There is no image in the folder.", fix=f"put there {', '.join(sorted(_IMAGES))}.")
        return np.stack([read(file) for file in files]), [file.name for file in files]
    x = _kept(place).get("x")
    if x is None or x.dtype.kind not in "fiub" or x.ndim < 2 or not len(x):
        raise UnfitDataError(
            "x must hold numbers with an example in each row.", fix="write it with numpy.savez(file, x=…)."
        )
    return x.astype(np.float32), None


def _files(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if each.suffix.lower() in _IMAGES)


def _reader(side: int | None, *, colour: bool) -> Callable[[Path], Any]:
    """What makes an array of numbers from 0 to 1 of an image; channels first."""
    try:
        opened = import_module("PIL.Image").open
    except ImportError as error:
        raise MissingExtraError("Reading images", package="Pillow", extra="plot") from error
    size, mode = (side or _SIDE, side or _SIDE), "RGB" if colour else "L"

    def read(file: Path) -> Any:
        try:
            with opened(file) as image:
                pixels = np.asarray(image.convert(mode).resize(size), dtype=np.float32) / 255
        except (OSError, ValueError, SyntaxError):
            pixels = None
        if pixels is None:
            raise UnfitDataError("An image cannot be read.", fix="take out what is no image, and run it again.")
        return pixels.transpose(2, 0, 1) if colour else pixels[None]

    return read


def _images(asked: Training, place: Path) -> tuple[Any, Any]:
    read = _reader(asked.side, colour=asked.colour)
    found, classes = [], []
    for number, name in enumerate(asked.values):
        folder = place / str(name)
        if not folder.is_dir():
            raise UnfitDataError(
                f"There is no folder {str(name)!r:.60} in the data.", fix="list the folders as values = […] in [model]."
            )
        for file in _files(folder):
            found.append(read(file))
            classes.append(number)
    if not found:
        raise UnfitDataError("There is no image in the data.", fix=f"put them there as {', '.join(sorted(_IMAGES))}.")
    return np.stack(found), np.array(classes, dtype=np.int64)

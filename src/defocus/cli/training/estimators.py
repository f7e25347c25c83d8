"""Estimators of ``defocus train`` and ``predict``, on tables.

The tables of ``defocus train`` and ``predict``: no cell makes them unreadable, and refusals never quote one.
"""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from defocus import learning
from defocus.cli.training.files import Training
from defocus.errors import InvalidParameterError, UnfitDataError, UnknownColumnError

__all__ = [
    "CLASSIFIERS",
    "ESTIMATORS",
    "Kept",
    "classes_of",
    "columns",
    "kept",
    "loaded",
    "table",
    "table_of",
    "texts_of",
    "write",
]


_Floats: TypeAlias = npt.NDArray[np.float64]
_CSV = {".csv": ",", ".tsv": "\t"}
_PARQUET = {".parquet", ".pq"}


def table(asked: Training, place: Path) -> tuple[_Floats, Any]:
    """Features and targets of a CSV or Parquet file.

    What is no number in a feature is NaN, for which estimators declare what it counts as; so is a target that is none.
    A class is its place among the declared ones; -1, which counts for nothing, for any other.
    """
    rows = table_of(place)
    target = asked.target if asked.supervised else None
    for name in (*asked.features, *([] if target is None else [target])):
        if name not in rows.column_names:
            raise UnknownColumnError(name, rows.column_names)
    features = columns(rows, asked.features)
    if target is None:
        return features, None
    if asked.range is not None:
        return features, _numbers(rows[target], target)
    return features, classes_of(rows, target, asked.values, typed=place)


def columns(rows: pa.Table, names: Iterable[str]) -> _Floats:
    """These columns of a table as numbers."""
    return np.column_stack([_numbers(rows[name], name) for name in names])


def table_of(place: Path) -> pa.Table:
    """A CSV file as texts, or a Parquet file as it is; every column has a name of its own.

    Each line of a CSV file is a row, whatever stands in it and around it: one with more or fewer cells than there are
    columns is a row of missing cells, and bytes that are no UTF-8 are replaced.
    """
    content = _read(place)
    names = content.column_names
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UnfitDataError(f"Two columns of the table are called {twice!r:.60}.", fix="rename one of them.")
    return content


def _read(place: Path) -> pa.Table:
    try:
        if place.suffix.lower() in _PARQUET:
            return pq.read_table(place)
        if place.suffix.lower() in _CSV:
            lines = _lines(place.read_bytes(), _CSV[place.suffix.lower()])
            names = next(lines, [])
            if names:
                return _texts_of(names, lines)
            problem = "has no line with the names of its columns"
        else:
            problem = "is neither a CSV nor a Parquet file"
    except (pa.ArrowException, ValueError):
        problem = "cannot be read"
    except OSError as error:
        problem = f"cannot be opened: {(error.strerror or type(error).__name__).lower()}"
    raise UnfitDataError(
        f"The table {place.name!r:.100} {problem}.", fix="name a .csv, .tsv or .parquet file, written whole."
    )


def _lines(raw: bytes, delimiter: str) -> Iterator[list[str]]:
    """The cells of every line that is not blank, each line by itself; none where a line cannot be divided."""
    for line in raw.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        text = line.decode("utf-8", "replace").rstrip("\r")
        if text:
            try:
                yield next(csv.reader([text], delimiter=delimiter))
            except csv.Error:
                yield []


def _texts_of(names: list[str], lines: Iterable[list[str]]) -> pa.Table:
    """A table of texts, with nothing in empty cells."""
    cells: list[list[str | None]] = [[] for _ in names]
    for line in lines:
        fits = len(line) == len(names)
        for place, column in enumerate(cells):
            column.append((line[place] or None) if fits else None)
    return pa.table([pa.array(column, pa.string()) for column in cells], names=names)


def texts_of(rows: pa.Table, name: str) -> list[str | None]:
    """A column of texts; refused by its type alone."""
    column = _plain(rows[name])
    if _is_text(column.type):
        return _texts(column)
    raise UnfitDataError(
        f"The column {name!r:.60} is of type {column.type}, which is no text.", fix='name another one: text = "…".'
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_number(kind: pa.DataType) -> bool:
    of = pa.types
    return bool(of.is_floating(kind) or of.is_integer(kind) or of.is_boolean(kind) or of.is_decimal(kind))


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    """The texts of a column; what is no UTF-8 in them is replaced."""
    return [None if raw is None else raw.decode("utf-8", "replace") for raw in column.cast(pa.binary()).to_pylist()]


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _numbers(column: pa.ChunkedArray, name: str) -> _Floats:
    """A column as numbers; NaN for whatever is none."""
    column = _plain(column)
    if _is_text(column.type):
        return np.array([_number(text) for text in _texts(column)], dtype=np.float64)
    if not _is_number(column.type):
        raise UnfitDataError(
            f"The column {name!r:.60} is of type {column.type}, which is no number.",
            fix="leave it out of [features], or convert it.",
        )
    floats = column if pa.types.is_floating(column.type) else pc.cast(column, pa.float64(), safe=False)
    return np.asarray(floats.to_numpy(), dtype=np.float64)


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return float("nan")


def classes_of(rows: pa.Table, name: str, values: Sequence[Any], *, typed: Path) -> npt.NDArray[np.int64]:
    """The place of each label in a column among ``values``, or -1; ``typed`` is the file that the rows stood in.

    A text is a class that is declared as that text. Numbers and truth values are found however they are spelt: 1 is
    1.0 and "1.0", and true is "True". Where the table has types, they must be those of a declared class.
    """
    texts = {each.strip(): place for place, each in enumerate(values) if isinstance(each, str)}
    others = [(each, place) for place, each in enumerate(values) if not isinstance(each, str)]
    numbers: dict[Any, int] = dict(reversed(others))  # of 1 and true, the first
    truths = {str(each).lower(): place for place, each in enumerate(values) if isinstance(each, bool)}
    column = _plain(rows[name])
    textual = _is_text(column.type)
    if typed.suffix.lower() in _PARQUET and not (texts if textual else numbers if _is_number(column.type) else None):
        raise UnfitDataError(
            f"The target is of type {column.type}, but no declared class is.",
            fix='write numbers without quotation marks and texts with them, as in values = [0, 1] or ["no", "yes"].',
        )
    if not textual:
        return np.array([numbers.get(label, -1) for label in column.to_pylist()], dtype=np.int64)

    def place(text: str | None) -> int:
        label = (text or "").strip()
        return texts.get(label, truths.get(label.lower(), numbers.get(_number(label), -1)))

    labels = _texts(column)
    classes = {label: place(label) for label in set(labels)}
    return np.array([classes[label] for label in labels], dtype=np.int64)


ESTIMATORS = {
    "logistic": "LogisticRegression",
    "additive": "AdditiveModel",
    "naive-bayes": "NaiveBayes",
    "linear-regression": "LinearRegression",
    "k-means": "KMeans",
    "pca": "PCA",
}
CLASSIFIERS = ("LogisticRegression", "AdditiveModel", "NaiveBayes")
_FORMAT = "defocus model 1"
_LONGEST = 1 << 28
_FAR = 1e300


@final
@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """A model that predicts, the bounds of the features that it takes, and the classes that its numbers stand for."""

    kind: str
    model: Any
    features: Mapping[str, tuple[float, float]]
    classes: tuple[Any, ...]


def write(place: Path, kind: str, features: Mapping[str, Any], classes: tuple[Any, ...], released: Any) -> None:
    """Keep what a fit released, and nothing else."""
    fitted = {name: value.tolist() if hasattr(value, "tolist") else value for name, value in released.items()}
    told = {"format": _FORMAT, "model": kind, "features": features, "classes": list(classes), "fitted": fitted}
    place.write_text(json.dumps(told, indent=2, default=float) + "\n", encoding="utf-8")


def loaded(place: Path, form: str) -> Mapping[str, Any]:
    """The object in a JSON file that says it is of this ``form``."""
    content = None
    try:
        with place.open("rb") as file:
            content = json.loads(file.read(_LONGEST))
    except OSError as error:
        problem = error.strerror or "cannot be opened"
    except (ValueError, RecursionError):
        problem = "is damaged or no model"
    else:
        problem = "was not written by this version of defocus train"
    if isinstance(content, dict) and content.get("format") == form:
        return content
    raise UnfitDataError(f"The model {place.name!r:.100}: {problem}.", fix="name the file that defocus train wrote.")


def kept(place: Path) -> Kept:
    """The model in a file. What does not fit together is refused."""
    told = loaded(place, _FORMAT)
    kind, features, classes = str(told.get("model")), told.get("features"), told.get("classes")
    model = None
    if kind in ESTIMATORS.values() and _bounds(features) and _names(classes):
        low, high = zip(*features.values(), strict=True)
        with suppress(InvalidParameterError):
            model = getattr(learning, kind).restored(told.get("fitted"), bounds=(low, high))
        numbered = kind not in CLASSIFIERS or (model and model.classes_.tolist() == list(range(len(classes))))
        if model is not None and numbered and model.n_features_in_ == len(features):
            return Kept(kind, model, features, tuple(classes))
    raise UnfitDataError(
        f"The model {place.name!r:.100} is damaged: its parts do not fit together.", fix="write it again."
    )


def _bounds(features: Any) -> TypeGuard[dict[str, tuple[float, float]]]:
    """Whether this is a least and a largest value for every feature."""
    return bool(features) and isinstance(features, dict) and all(map(_pair, features.values()))


def _names(classes: Any) -> TypeGuard[list[str | int]]:
    """Whether this can be a list of classes."""
    return isinstance(classes, list) and all(isinstance(label, str | int) for label in classes)


def _pair(ends: Any) -> bool:
    if not isinstance(ends, list) or len(ends) != 2:
        return False
    numbers = all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends)
    return numbers and -_FAR < ends[0] < ends[1] < _FAR

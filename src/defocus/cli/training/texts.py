"""Texts of ``defocus train``: folders and columns of them as numbers, by a public rule. Refusals never quote one."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np
import numpy.typing as npt

from defocus.cli.training.estimators import classes_of, table_of, texts_of
from defocus.cli.training.files import TextForm, Training
from defocus.errors import InvalidParameterError, UnfitDataError, UnknownColumnError

__all__ = ["labelled_texts", "plain_texts", "tokens"]

_Whole: TypeAlias = npt.NDArray[np.int64]
_WORD = re.compile(r"\w+")
_ENDING = ".txt"


def tokens(text: str | None, form: TextForm) -> _Whole:
    """The first tokens of a text as numbers from one on, and zeros after them; nothing is looked up in other texts.

    A word is what stands between others, whatever its case, and its number follows from CRC-32. Bytes are those of
    UTF-8.

    >>> tokens("A day, a DAY", TextForm(column=None, tokens="words", buckets=1000, length=5)).tolist()
    [172, 200, 172, 200, 0]
    """
    told = text or ""
    if form.tokens == "words":
        numbers = [1 + crc32(word.encode()) % (form.buckets - 1) for word in _WORD.findall(told.casefold())]
    else:
        numbers = [1 + byte for byte in told.encode()]
    made = np.zeros(form.length, np.int64)
    made[: len(numbers)] = numbers[: form.length]
    return made


def labelled_texts(asked: Training, form: TextForm, place: Path, nobody: int) -> tuple[_Whole, _Whole, Any]:
    """Texts, classes and users of a table, or of a folder with a folder of texts for each class.

    A text without a declared class has the class ``nobody``, and so has a file that cannot be read.
    """
    if not place.is_dir():
        rows, users = table_of(place), asked.unit.column
        if form.column is None or asked.target is None:
            raise InvalidParameterError(
                "It is not said where the texts of the table are, or what is to be learned.",
                fix='write text = "…" in [model] and column = "…" in [target], or name a folder as data.',
            )
        for name in (form.column, asked.target, *([] if users is None else [users])):
            if name not in rows.column_names:
                raise UnknownColumnError(name, rows.column_names)
        read = texts_of(rows, form.column)
        classes = classes_of(rows, asked.target, asked.values, typed=place)
        whose = None if users is None else np.array([*rows[users].to_pylist(), None], dtype=object)[:-1]
        return _stacked(read, form), np.where(classes < 0, nobody, classes), whose
    if asked.unit.column is not None:
        raise InvalidParameterError(
            "A folder of texts does not say whose each of them is.",
            fix="write rows = true in [unit], or put the texts into a table with a column of users.",
        )
    read = []
    numbers: list[int] = []
    for number, name in enumerate(asked.values):
        folder = place / str(name)
        if not folder.is_dir():
            raise UnfitDataError(
                f"There is no folder {str(name)!r:.60} in the data.", fix="list the folders as values = […] in [model]."
            )
        found = [_read(file) for file in _files(folder)]
        read += found
        numbers += [nobody if text is None else number for text in found]
    return _stacked(read, form), np.array(numbers, dtype=np.int64), None


def plain_texts(place: Path, form: TextForm) -> tuple[_Whole, list[str] | None]:
    """Texts to predict: the column of a table, or the files of a folder with their names."""
    if place.is_dir():
        files = _files(place)
        return _stacked([_read(file) for file in files], form), [file.name for file in files]
    rows = table_of(place)
    if form.column is None or form.column not in rows.column_names:
        raise UnknownColumnError(form.column or "text", rows.column_names)
    return _stacked(texts_of(rows, form.column), form), None


def _stacked(read: list[str | None], form: TextForm) -> _Whole:
    if not read:
        raise UnfitDataError("There is no text in the data.", fix=f"put {_ENDING} there, or rows into a table.")
    return np.stack([tokens(text, form) for text in read])


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.suffix.lower() == _ENDING)


def _read(file: Path) -> str | None:
    """The text of a file, whatever bytes are in it; nothing of one that cannot be opened."""
    with suppress(OSError):
        return file.read_bytes().decode("utf-8", "replace")
    return None

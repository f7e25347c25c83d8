"""Inputs of estimators: cells as numbers and labels, bounds and norms.

Cells of tables as numbers and labels, so that no single one can make a fit fail.

What a column is declared to be, its type, decides whether it is refused and what its cells are read as; what is in it
never does. Where nothing is declared (objects, lists), every cell has an outcome by itself: a number, or text that
spells one, is that number, and all else is NaN, which estimators declare what it counts as; a label is a number or a
text, and all else is nobody's. A list of one cell is that cell.
"""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypeVar, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from defocus.errors import InvalidParameterError, NotDeclaredError, UnfitDataError, positive
from defocus.errors.checks import Plain, guarded, number
from defocus.learning.estimators.grid import Ball, Floats, Matrix, Persons
from defocus.learning.examples import PrivateExamples, owners, said_once
from defocus.mechanisms.grid import columns_of, declared, read_column
from defocus.privacy.numbers import nearest

__all__ = [
    "Bounds",
    "Data",
    "Marks",
    "bounds_of",
    "data_of",
    "family",
    "held",
    "in_units_of_data",
    "l1_norm_of",
    "mark",
    "marks",
    "numbers",
    "outward",
    "persons_of",
    "scaled",
    "seen",
    "seen_with",
    "table",
]


_NUMBERS = "biuf"
_TEXTS = ("str", "string", "large_string", "string_view", "utf8", "enum", "categorical")
_ANYTHING = {"object"}
_LEAST, _BEYOND = -(2**63), 2**64
"""Whole numbers of 64 bits, with a sign or without."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """Labels: of the type that was declared for them, or objects; and which rows have one, all where that is None.

    In ``values``, NaN and None are nobody's, too.
    """

    values: NDArray[Any]
    there: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.values)


def table(X: Any) -> Matrix:
    """Rows of numbers from an array, a frame, a sparse matrix or lists; shapes of arrays are left as they are.

    Lists have no shape that is declared: most of them say how many features there are, and one of another length, or
    that is no list, is a row of which everything is missing.
    """
    if sp.issparse(X):  # of numbers, as all of them are
        return X
    columns = columns_of(X)
    if columns is not None:
        columns_read = [_as_numbers(column, f"The feature {str(name)!r:.60}") for name, column in columns]
        return np.column_stack(columns_read) if columns_read else np.empty((len(X), 0))
    return _as_numbers(X, "X") if _is_array(X) else _rows(list(X))


def numbers(y: Any) -> Floats:
    """Targets as numbers."""
    column = _only_column(y)
    values = _as_numbers(column, "y") if _is_array(column) else _each(column)
    flat: Floats = column_or_1d(values, warn=True)
    return flat


def marks(y: Any) -> Marks:
    """Labels of one type as they are; of any type as whole numbers, fractions and texts, and None for nobody's.

    Zero has no sign, and lists have no type: truth values in one are numbers, as they would be beside other numbers.
    """
    column = _only_column(y)
    if not _is_array(column):
        return Marks(_objects(column))
    values, there = read_column(column)
    if values.dtype.kind == "f":
        values = values.astype(np.float64) + 0.0
    elif values.dtype.kind in "OT":
        values = _objects(values.ravel().tolist()).reshape(values.shape)
    elif values.dtype.kind not in _NUMBERS + "UM":
        raise _unfit("y", values.dtype, "pass numbers, texts or dates.")
    return Marks(column_or_1d(values, warn=True), None if there is None else there.ravel())


def family(values: Any) -> str | None:
    """What labels are by their type alone: numbers, texts, or None where the type does not say."""
    dtype = declared(values)
    kind = getattr(dtype, "kind", "O")
    if kind in _NUMBERS:
        return "numbers"
    return "texts" if kind in "UT" or _is_text(dtype) else None


def mark(cell: Any) -> int | float | str | None:
    """One label; equal numbers are one label, however they are written, and whole ones of 64 bits are exact."""
    if type(cell) is str or (type(cell) is int and _LEAST <= cell < _BEYOND):
        return cell
    return guarded(_mark, cell, None)


def _mark(cell: Any) -> int | float | str | None:
    value: Any = _bare(cell)
    if value is None or isinstance(value, str):
        return value
    if _LEAST <= value < _BEYOND:
        whole = int(value)
        return whole if whole == value else float(value)
    return value if isinstance(value, float) and not math.isnan(value) else None


def _is_array(values: Any) -> bool:
    return hasattr(values, "dtype") or hasattr(values, "__array__")


def _only_column(y: Any) -> Any:
    """The column of a frame that has no other, or what is no frame as it is."""
    columns = columns_of(y)
    if columns is None:
        return y
    if len(columns) != 1:
        raise UnfitDataError("y should be a 1d array, but it has several columns.", fix="pass one target for each row.")
    return columns[0][1]


def _as_numbers(values: Any, what: str) -> Floats:
    """Numbers of any shape, of what has a type."""
    dtype = declared(values)
    _refuse_types(dtype, what)
    if str(dtype) in _ANYTHING:
        warnings.warn(
            f"{what} is of type {dtype}: what is no number in it counts as missing.", UserWarning, stacklevel=6
        )
    read, there = read_column(values)
    if read.dtype.kind in _NUMBERS + "c":  # complex numbers are refused by their type, by who asks
        return read if there is None else np.where(there, read.astype(np.float64), np.nan)
    _refuse_types(read.dtype, what)
    return _each(read.ravel().tolist()).reshape(read.shape)


def _each(cells: Iterable[Any]) -> Floats:
    return np.array([_number(cell) for cell in cells], dtype=np.float64)


def _rows(rows: list[Any]) -> Floats:
    """Rows of lists: as long as most of them are, and the longer where as many are; of no row a list, as they are."""
    read = [_row(row) for row in rows]
    lengths = Counter(-1 if row is None else len(row) for row in read)
    width = max(lengths, key=lambda length: (lengths[length], length), default=-1)
    if width < 0:
        return _each(rows)
    missing = [math.nan] * width
    told = [missing if row is None or len(row) != width else row for row in read]
    return np.array(told, dtype=np.float64).reshape(len(told), width)


def _row(row: Any) -> list[float] | None:
    """The cells of a row that is a list or like one; None for anything else."""
    return guarded(_listed, row, None)


def _listed(row: Any) -> list[float] | None:
    if isinstance(row, list | tuple) or getattr(row, "ndim", 0) == 1:
        return [cell if type(cell) is float else _number(cell) for cell in row]
    return None


def _objects(cells: Iterable[Any]) -> NDArray[Any]:
    """Labels of no type, each by itself."""
    marked = [mark(cell) for cell in cells]
    array = np.empty(len(marked), dtype=object)
    array[:] = marked
    return array


def _refuse_types(dtype: Any, what: str) -> None:
    """Refuse a type that holds no numbers, whatever is in it."""
    if _is_text(dtype) or getattr(dtype, "kind", "O") in "USTMmV":
        raise _unfit(what, dtype, "encode it first, over declared categories or as numbers.")


def _is_text(dtype: Any) -> bool:
    return str(dtype).lower().split("[")[0].split("(")[0] in _TEXTS


def _unfit(what: str, dtype: Any, fix: str) -> UnfitDataError:
    return UnfitDataError(f"{what} is of type {str(dtype)[:40]}, which does not fit.", fix=fix)


def _bare(cell: Any) -> Plain | None:
    """A cell without what is around it: a list of one, or an array of one number; an array of several fails."""
    value = number(cell)
    if value is None and isinstance(cell, list | tuple) and len(cell) == 1:
        return number(cell[0])
    return number(cell.item()) if value is None and getattr(cell, "ndim", 2) < 2 else value


def _number(cell: Any) -> float:
    """One cell as a number: NaN for what is not a number, infinity beyond the range of floats."""
    return guarded(_nearest, cell, math.nan)


def _nearest(cell: Any) -> float:
    value: Any = _bare(cell)
    return math.nan if value is None else nearest(value)


_Targets = TypeVar("_Targets", Floats, Marks)

_PUBLIC = ("The feature names should match", "Feature names are only supported", "X has ", "Sparse ")
"""How texts begin that hold names, numbers and types of features alone, which are public."""
_ABOUT_ROWS = {
    "Expected 2D array": (
        "Expected 2D array: X must have rows and columns.",
        "Reshape your data, with reshape(-1, 1) for one feature and reshape(1, -1) for one row.",
    ),
    "Complex data not supported": ("Complex data not supported.", "pass the two parts as two features."),
    "Found array with 0 sample(s)": (
        "Found array with 0 sample(s) while a minimum of 1 is required.",
        "pass one row at least.",
    ),
    "Found array with 0 feature(s)": (
        "Found array with 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.",
        "pass one feature at least.",
    ),
    "": ("X is no table of numbers.", "pass an array or a frame of numbers, with as many in each row."),
}
_ABOUT_TARGETS = {
    "y should be a 1d array": ("y should be a 1d array, but it has several columns.", "pass one target for each row."),
    "": ("y is no list of targets.", "pass one number or label for each row."),
}


def seen(estimator: Any, X: Any, *, reset: bool, sparse: bool = False) -> Matrix:
    """Rows as numbers: types and shapes are checked, values are not, and never quoted."""

    def check() -> Matrix:
        rows = table(X)
        kinds = "csr" if sparse else False
        told = {"estimator": estimator, "input_name": "X"}
        rows = check_array(rows, accept_sparse=kinds, dtype=np.float64, ensure_all_finite=False, **told)
        validate_data(estimator, X if hasattr(X, "columns") else rows, reset=reset, skip_check_array=True)
        return rows

    taken, problem = _attempted(check, _ABOUT_ROWS)
    if problem is not None:
        raise problem
    return taken


def seen_with(
    estimator: Any, X: Any, y: Any, read: Callable[[Any], _Targets], *, sparse: bool = False
) -> tuple[Matrix, _Targets]:
    """Rows to fit, and one target for each, which ``read`` makes numbers or labels of."""
    if y is None:
        raise InvalidParameterError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None.",
            fix="pass fit(X, y), or name the target of a table: examples(inputs, target).",
        )
    rows = seen(estimator, X, reset=True, sparse=sparse)
    target, problem = _attempted(lambda: read(y), _ABOUT_TARGETS)
    if problem is not None:
        raise problem
    if len(target) != rows.shape[0]:
        raise UnfitDataError("X and y have different numbers of rows.", fix="pass one target for each row.")
    return rows, target


@final
class Data:
    """What a fit was handed: rows, targets, and whose each row is. Examples of a table are read when first asked for.

    ``persons`` says whether a unit is a person, and ``names`` what a table calls its inputs.
    """

    def __init__(self, read: Callable[[], tuple[Any, Any, Any]], *, persons: bool, names: tuple[str, ...] = ()) -> None:
        self._read, self.persons, self.names = read, persons, names

    @cached_property
    def parts(self) -> tuple[Any, Any, Any]:
        """Rows, targets and persons."""
        return self._read()

    @property
    def X(self) -> Any:  # noqa: N802 -- as scikit-learn calls it
        """The rows."""
        return self.parts[0]

    @property
    def y(self) -> Any:
        """The targets."""
        return self.parts[1]

    @property
    def users(self) -> Any:
        """Whose each row is."""
        return self.parts[2]


def data_of(told: Any, X: Any, y: Any, users: Any) -> Data:
    """What is fitted to. Of examples of a table, the ledger and what is declared become parameters of ``told``.

    Bounds that are given may be wider than those of the table: a filter makes its own tighter than what is declared.
    """
    if not isinstance(X, PrivateExamples):
        return Data(lambda: (X, y, users), persons=users is not None)
    said_once(X, ledger=told.ledger, y=y, users=users)
    told.ledger = X.ledger
    bounds = X.input_bounds
    usual = {field.name: field.default for field in fields(told)}
    facts: dict[str, tuple[Any, Callable[[Any], Any]]] = {
        "bounds": (bounds, lambda ends: _ends(ends, 0 if bounds is None else len(bounds[0]))),
        "target": (X.target_bounds, lambda ends: _ends(ends, 1)),
        "classes": (
            X.target_values,
            lambda listed: {mark(each) for each in np.asarray(listed, dtype=object).ravel().tolist()},
        ),
    }
    for name, (fact, read) in facts.items():
        if name not in usual:
            continue
        own = getattr(told, name)
        by_default = repr(own) == repr(usual[name])
        if fact is not None and by_default:
            setattr(told, name, fact)
        elif fact is not None and not _agrees(read(own), read(fact)):
            raise InvalidParameterError(
                f"{name}= says something else about the columns than the table does.", fix=f"leave {name}= out."
            )
        elif fact is None and by_default and not _goes_without(told, name, usual):
            raise NotDeclaredError(
                f"{name}= was not given, and the table does not declare it of every column.",
                fix=f"declare it, table.declare(days=(0, 30)), before examples(…); or pass {name}=.",
            )
    return Data(X.read_examples, persons=X.unit.kind == "user", names=X.inputs)


def _agrees(own: Any, fact: Any) -> bool:
    """Whether classes are the same, and bounds hold those of the table."""
    if isinstance(own, set):
        return bool(own == fact)
    low, high = (np.subtract(*pair) for pair in zip(own, fact, strict=True))
    return bool((low <= 0).all() and (high >= 0).all())


def _goes_without(told: Any, name: str, usual: Mapping[str, Any]) -> bool:
    """Whether an estimator finds what is not declared, or holds rows to a norm that was given."""
    return usual[name] is None and ("norm" not in usual or name != "bounds" or told.norm != usual["norm"])


def _ends(declared: Any, features: int) -> list[list[float]]:
    limits = bounds_of(declared, features)
    return [limits.low.tolist(), limits.high.tolist()]


def persons_of(users: Any, length: int) -> Persons | None:
    """Whose each row is; None where nobody said. Refused by type and length alone."""
    return None if users is None else Persons(owners(users, length))


def _attempted(check: Callable[[], Any], words: Mapping[str, tuple[str, str]]) -> tuple[Any, Exception | None]:
    """What a check of scikit-learn gives, or a refusal in ``words`` of ours, found by how its own begin.

    Its own often quote values. A refusal is given and not raised, so that its context is not the one that it replaces.
    """
    try:
        with np.errstate(all="ignore"):  # a warning about one number tells of it
            return check(), None
    except UnfitDataError as problem:
        return None, problem
    except (ValueError, TypeError, ArithmeticError) as problem:
        said = str(problem)
        if said.startswith(_PUBLIC):
            return None, UnfitDataError(said.rstrip(), fix="pass the features that were fitted, and dense rows.")
        what = next((ours for theirs, ours in words.items() if said.startswith(theirs)), words[""])
        return None, UnfitDataError(what[0], fix=what[1])


_FINE = 26
"""Rows to predict are held to a finer grid than those that are counted."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """The least and the largest value of each feature. What becomes of an entry depends on that entry alone."""

    low: Floats
    high: Floats

    @property
    def middle(self) -> Floats:
        """Halfway between them; halves first, which cannot overflow."""
        return np.asarray(self.low / 2 + self.high / 2)

    @property
    def half(self) -> Floats:
        """How far it is from there to either."""
        return np.asarray(self.high / 2 - self.low / 2)

    def inward(self, X: Floats) -> Floats:
        """Features that go from -1 to 1: what lies outside is cut, and what is missing is 0."""
        with np.errstate(invalid="ignore", over="ignore"):
            moved = np.clip((X - self.middle) / self.half, -1.0, 1.0)
        return np.where(np.isnan(moved), 0.0, moved)

    def outward(self, X: Floats) -> Floats:
        """Features as they come, from those that go from -1 to 1."""
        return np.asarray(self.middle + X * self.half)

    def cut(self, X: Floats) -> Floats:
        """Features as they come, with what is missing in the middle."""
        return np.where(np.isnan(X), self.middle, np.clip(X, self.low, self.high))

    def cells(self, X: Floats, parts: int) -> NDArray[np.int64]:
        """Which of so many equal parts between the bounds each entry lies in; what is missing in the middle one."""
        with np.errstate(invalid="ignore", over="ignore"):
            shares = (X / 2 - self.low / 2) / self.half * parts
        within = np.nan_to_num(shares, nan=parts / 2, posinf=parts, neginf=0).clip(0, parts - 0.5)
        numbers: NDArray[np.int64] = np.floor(within).astype(np.int64)
        return numbers


def bounds_of(declared: Any, features: int) -> Bounds:
    """The declared bounds of so many features."""
    problem = InvalidParameterError(
        "bounds must be a pair of the least and the largest value, each a number or one for every feature.",
        fix="declare for example bounds=(0, 100), or bounds=([0, 18], [1, 90]) for two features, from what is known"
        " about them and not from the data.",
    )
    if isinstance(declared, str | bytes) or not hasattr(declared, "__len__") or len(declared) != 2:
        raise problem
    if isinstance(declared, list) and all(isinstance(pair, tuple) for pair in declared):
        raise InvalidParameterError(
            f"bounds={declared!r:.80} can be read as one pair for each feature, or as the two ends of all.",
            fix="write the least values and then the largest: bounds=([0, 18], [1, 90]) for 0 to 1 and 18 to 90.",
        )
    try:
        low, high = (np.asarray(end, dtype=np.float64) for end in declared)
    except (TypeError, ValueError):
        raise problem from None
    if any(end.shape not in {(), (features,)} for end in (low, high)):
        raise problem
    low, high = (np.broadcast_to(end, (features,)) for end in (low, high))
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise problem
    return Bounds(low, high)


def held(X: Matrix, bounds: Any, norm: Any, l1_norm: Any = None) -> Matrix:
    """Rows to predict: cut to the bounds, with what is missing in the middle; or held to the norms."""
    if bounds is None:
        ball = Ball(float(positive("norm", norm)), _FINE, l1_norm=l1_norm_of(l1_norm, bounds))
        return ball.hold(X) * (ball.norm / ball.radius)
    return _of_dense(X, bounds).cut(X)


def l1_norm_of(declared: Any, bounds: Any) -> float:
    """The largest L1 norm of a row, infinite where none was declared."""
    if declared is None:
        return math.inf
    if bounds is not None:
        raise InvalidParameterError(
            "l1_norm= is for rows as they come, and bounds= moves them.", fix="pass norm= in place of bounds=."
        )
    return float(positive("l1_norm", declared))


def scaled(X: Matrix, bounds: Any, norm: Any) -> tuple[Matrix, float]:
    """Rows in the units of the model, and the norm that they are held to.

    With ``bounds``, each feature goes from its two ends to -1 and 1, and a missing one to 0, so no row is longer than
    the root of the number of features. Without, rows stay as they are, and are held to ``norm``.
    """
    if bounds is None:
        return X, float(positive("norm", norm))
    return _of_dense(X, bounds).inward(X), math.sqrt(X.shape[1])


def outward(X: Floats, bounds: Any, *, cut: bool = False) -> Floats:
    """Rows in the units of the data, from those of the model; inside of the bounds, if they are ``cut``."""
    return X if bounds is None else bounds_of(bounds, X.shape[-1]).outward(X.clip(-1, 1) if cut else X)


def in_units_of_data(coef: Floats, intercept: Floats, bounds: Any) -> tuple[Floats, Floats]:
    """Coefficients and intercepts of features as they come, from those of features that go from -1 to 1."""
    if bounds is None:
        return coef, intercept
    limits = bounds_of(bounds, coef.shape[1])
    plain = coef / limits.half
    return plain, intercept - plain @ limits.middle


def _of_dense(X: Matrix, bounds: Any) -> Bounds:
    """The bounds of rows that are not sparse."""
    if sp.issparse(X):
        raise InvalidParameterError(
            "bounds= moves zeros, so that sparse rows would not stay sparse.", fix="pass norm= instead, or dense rows."
        )
    return bounds_of(bounds, X.shape[1])

"""What is handed to an estimator: types and shapes are checked, values are not, and no refusal quotes one."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_array, validate_data

from defocus.errors import InvalidParameterError, UnfitDataError
from defocus.learning.estimators.balls import Floats, Matrix
from defocus.learning.estimators.cells import Marks, table

__all__ = ["seen", "seen_with"]

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
            f"{type(estimator).__name__} requires y to be passed, but the target y is None.", fix="pass fit(X, y)."
        )
    rows = seen(estimator, X, reset=True, sparse=sparse)
    target, problem = _attempted(lambda: read(y), _ABOUT_TARGETS)
    if problem is not None:
        raise problem
    if len(target) != rows.shape[0]:
        raise UnfitDataError("X and y have different numbers of rows.", fix="pass one target for each row.")
    return rows, target


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

"""Scikit-learn's own checks of estimators. The few that contradict privacy fail, each for a reason given here."""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from defocus import Budget
from defocus.learning import (
    PCA,
    AdditiveModel,
    KMeans,
    LinearRegression,
    LogisticRegression,
    NaiveBayes,
    StandardScaler,
)

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")]

BUDGET = Budget(400, 1e-2)
"""Nobody's privacy: the checks fit a few dozen rows and expect to learn from them."""
QUICK = Budget(rho=2000)
"""Likewise, and quicker to account for where no classes must be found."""

_NOISE = "noise is fresh in every fit, so two fits to the same rows differ"
_LABELS = "whether labels look continuous depends on single rows; rare labels are left out instead, and charged for"
_TARGETS = "an error that depends on a single target is a leak; NaN and infinite targets have a declared outcome"

_CELLS = "an error that depends on a single cell is a leak; what is no number is missing"

_FRESH = {"check_fit_idempotent": _NOISE, "check_dtype_object": _CELLS}
_CLASSES = {
    "check_classifiers_regression_target": _LABELS,
    "check_supervised_y_no_nan": _TARGETS,
    "check_supervised_y_2d": _NOISE,
    **_FRESH,
}
_EXPECTED: dict[str, dict[str, str]] = {
    "LinearRegression": {
        **_FRESH,
        "check_supervised_y_no_nan": _TARGETS,
        "check_supervised_y_2d": _NOISE,
        "check_regressors_int": _NOISE,
        "check_regressor_data_not_an_array": _NOISE,
    },
}


def expected(estimator: Any) -> dict[str, str]:
    """The checks that fail, and why."""
    kind = type(estimator).__name__
    return _EXPECTED.get(kind, _CLASSES if kind in {"LogisticRegression", "NaiveBayes", "AdditiveModel"} else _FRESH)


@parametrize_with_checks(
    [
        LogisticRegression(epsilon=400, delta=1e-2, max_iter=60, norm=3.0),
        NaiveBayes(epsilon=400, delta=1e-2, bounds=(-4, 4)),
        AdditiveModel(epsilon=400, delta=1e-2, bounds=(-4, 4), max_depth=4, max_iter=60),
        LinearRegression(rho=2000, target=(-100, 100), max_iter=60),
        KMeans(3, rho=2000, norm=5.0),
        PCA(rho=2000),
        StandardScaler(rho=2000),
    ],
    expected_failed_checks=expected,
    xfail_strict=False,
)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)

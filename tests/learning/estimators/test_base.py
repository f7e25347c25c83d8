"""What estimators share: how they are cloned, kept and restored."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from tests.learning.estimators.every import EVERY, ROWS

from defocus.errors import InvalidParameterError
from defocus.learning import PCA, LogisticRegression
from defocus.noise.testing import seeded


def test_a_clone_has_the_same_parameters_and_keeps_how_it_hands_out_frames() -> None:
    bits = seeded(1)
    model = PCA(1, norm=3.0, bits=bits).set_output(transform="pandas")
    copied = clone(model)
    assert copied.bits is bits
    assert copied.norm == 3.0
    frame = copied.fit_transform(np.zeros((3, 2)))
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == ["pca0"]


def test_noise_that_can_be_drawn_again_is_refused_and_no_parameter_of_scikit_learn() -> None:
    assert "random_state" not in PCA(random_state=None).get_params()
    with pytest.raises(InvalidParameterError, match="can take it off"):
        clone(PCA(random_state=0)).fit(np.zeros((3, 2)))


def lengths(value: Any) -> set[int]:
    return {*np.shape(value)} if isinstance(value, np.ndarray | list | tuple) else set()


@pytest.mark.parametrize("unfitted", EVERY, ids=lambda each: type(each).__name__)
def test_nothing_with_an_entry_for_each_row_is_released_or_pickled(unfitted: Any) -> None:
    rng = np.random.default_rng(0)
    model = clone(unfitted).fit(rng.random((ROWS, 2)), rng.integers(0, 2, ROWS))
    released = model.released()
    assert {"n_features_in_"} < set(released)
    assert all(ROWS not in lengths(value) for value in released.values())
    fitted = {name for name in vars(model) if name.endswith("_")}
    assert fitted - set(released) <= {"event_", "receipt_", "labels_", "n_iter_", "bounds_"}
    assert vars(model).get("bounds_") in {None, unfitted.bounds}  # what was declared, and nothing that was found
    assert getattr(model, "n_iter_", None) == getattr(unfitted, "max_iter", None)
    kept = pickle.loads(pickle.dumps(model))  # noqa: S301  # our own
    assert all(ROWS not in lengths(value) for value in vars(kept).values())
    assert not hasattr(kept, "labels_")


@pytest.mark.parametrize("unfitted", EVERY, ids=lambda each: type(each).__name__)
def test_what_was_released_is_enough_to_predict_with(unfitted: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((50, 2)) * 2 - 0.5
    model = clone(unfitted).fit(X, rng.integers(0, 2, 50))
    given = {name: getattr(model, name) for name in ("bounds", "norm") if hasattr(model, name)}
    again = type(model).restored(model.released(), **given)
    name = next(name for name in ("predict_proba", "predict", "transform") if hasattr(model, name))
    np.testing.assert_array_equal(getattr(again, name)(X), getattr(model, name)(X))


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"coef_": None},
        {"coef_": [[1.0]]},
        {"coef_": [["one", "two"]]},
        {"coef_": [[np.nan, 1.0]]},
        {"coef_": [[1.0, 2.0], [3.0, 4.0]]},
        {"classes_": [0, 1, 2]},
        {"classes_": [0, {}]},
        {"intercept_": 1.0},
        {"n_features_in_": 3},
    ],
)
def test_what_was_not_released_is_refused(wrong: Any) -> None:
    good = {"n_features_in_": 2, "classes_": [0, 1], "coef_": [[1.0, 2.0]], "intercept_": [0.5]}
    assert LogisticRegression.restored(good).predict([[0.5, 0.5]]).tolist() == [1]
    with pytest.raises(InvalidParameterError, match="not what a LogisticRegression released"):
        LogisticRegression.restored({**good, **wrong} if wrong else {})

"""What is said about data that does not fit: its type and its shape, and nothing that is in it."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from defocus.errors import UnfitDataError
from defocus.learning import KMeans, LinearRegression, StandardScaler


def test_other_features_than_fitted_are_refused_by_name_and_number() -> None:
    frame = pd.DataFrame({"age": [0.1, 0.2], "height": [0.3, 0.4]})
    model = StandardScaler(bounds=(0, 1)).fit(frame)
    assert model.get_feature_names_out().tolist() == ["age", "height"]
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame.rename(columns={"age": "weight"}))
    with pytest.raises(ValueError, match="features"):
        KMeans(2).fit(np.zeros((3, 2))).predict(np.zeros((1, 3)))


@pytest.mark.parametrize(
    "X",
    [
        np.array([1234.5, 2.0, 3.0]),
        np.array([[1234.5 + 1j], [2.0], [3.0]]),
        np.array([["secret"], ["2"], ["3"]]),
        np.array([["2020"], ["2021"], ["2022"]], dtype="M8[Y]"),
        pd.DataFrame({"sex": ["secret", "f", "f"]}),
        pd.DataFrame({"sex": pd.Categorical(["secret", "f", "f"])}),
        pl.DataFrame({"sex": ["secret", "f", "f"]}),
        [1234.5, 2.0, 3.0],
        pa.table({"sex": ["secret", "f", "f"]}),
    ],
)
def test_types_and_shapes_of_features_are_refused_and_no_cell_is_quoted(X: Any) -> None:
    with pytest.raises(UnfitDataError) as caught:
        LinearRegression(target=(0, 1)).fit(X, [0.0, 1.0, 0.0])
    assert "1234" not in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("y", [["secret", "b", "c"], [["secret"], [1, 2], []]])
def test_targets_without_a_type_are_numbers_or_missing(y: Any) -> None:
    LinearRegression(target=(0, 1), steps=2).fit(np.eye(3), y)
    with pytest.raises(UnfitDataError, match="encode it first") as caught:
        LinearRegression(target=(0, 1)).fit(np.eye(3), np.array(list(map(str, y))))
    assert "secret" not in str(caught.value)

"""Reading private tables and arrays for training, without a word about what is in them."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from defocus.cli.training_data import NO_CLASS, arrays, table
from defocus.cli.training_files import parsed
from defocus.errors import UnfitDataError, UnknownColumnError

TOP = "[unit]\nrows = true\n[budget]\nepsilon = 1\ndelta = 1e-6\n"
TABLE = (
    f'data = "people.csv"\n{TOP}[model]\nkind = "logistic"\n[target]\ncolumn = "ill"\nvalues = ["no", 1, true]\n'
    "[features]\nage = [18, 90]\n"
)
ARRAYS = f'data = "people.npz"\n{TOP}[model]\nkind = "mlp"\nclasses = 3\n'


def test_what_is_no_number_is_nan_and_what_is_no_class_counts_for_nothing(tmp_path: Path) -> None:
    place = tmp_path / "people.csv"
    place.write_text("age,ill\n40,no\n\x1b[2J,1\n,true\n1e400,maybe\n7 ,\n", encoding="utf-8")
    features, classes = table(parsed(TABLE), place)
    np.testing.assert_array_equal(features[:, 0], [40, np.nan, np.nan, np.inf, 7])
    assert classes.tolist() == [0, 1, 2, -1, -1]


def test_a_parquet_table_says_the_same_as_a_csv(tmp_path: Path) -> None:
    kept = pa.table({"ill": pa.array(["no", "1", None]).dictionary_encode(), "age": pa.array([40, None, 3])})
    pq.write_table(kept, tmp_path / "people.parquet")
    features, classes = table(parsed(TABLE), tmp_path / "people.parquet")
    np.testing.assert_array_equal(features[:, 0], [40, np.nan, 3])
    assert classes.tolist() == [0, 1, -1]


def test_a_broken_table_is_refused_without_a_word_of_it(tmp_path: Path) -> None:
    place = tmp_path / "people.csv"
    place.write_text("age,ill\n40,no\nsecret,secret,secret\n", encoding="utf-8")
    with pytest.raises(UnfitDataError, match="cannot be read") as refused:
        table(parsed(TABLE), place)
    assert "secret" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None


def test_a_column_that_is_missing_or_no_number_is_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"age": [1], "sick": ["no"]}), tmp_path / "people.parquet")
    with pytest.raises(UnknownColumnError, match="'ill'"):
        table(parsed(TABLE), tmp_path / "people.parquet")
    pq.write_table(pa.table({"age": pa.array([0], pa.date32()), "ill": ["no"]}), tmp_path / "people.parquet")
    with pytest.raises(UnfitDataError, match="date32"):
        table(parsed(TABLE), tmp_path / "people.parquet")


def test_classes_beyond_the_declared_ones_count_for_nothing(tmp_path: Path) -> None:
    np.savez(tmp_path / "people.npz", x=np.zeros((4, 2)), y=np.array([0, 2, 3, -1]))
    x, y, users = arrays(parsed(ARRAYS), tmp_path / "people.npz")
    assert x.dtype == np.float32
    assert y.tolist() == [0, 2, NO_CLASS, NO_CLASS]
    assert users is None


def test_users_are_an_array_of_the_name_of_the_unit(tmp_path: Path) -> None:
    np.savez(tmp_path / "people.npz", x=np.zeros((2, 2)), y=np.array([0, 1]), who=np.array([7, 7]))
    asked = parsed(ARRAYS.replace("rows = true", 'column = "who"'))
    assert arrays(asked, tmp_path / "people.npz")[2].tolist() == [7, 7]
    with pytest.raises(UnfitDataError, match="no array 'whom'"):
        arrays(parsed(ARRAYS.replace("rows = true", 'column = "whom"')), tmp_path / "people.npz")


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.zeros(3), np.zeros(3, int)),
        (np.zeros((3, 2)), np.zeros(2, int)),
        (np.zeros((3, 2)), np.zeros(3)),
        (np.array([["a", "b"]]), np.zeros(1, int)),
    ],
)
def test_arrays_of_other_shapes_and_types_are_refused(tmp_path: Path, x: np.ndarray, y: np.ndarray) -> None:
    np.savez(tmp_path / "people.npz", x=x, y=y)
    with pytest.raises(UnfitDataError, match="example in each row"):
        arrays(parsed(ARRAYS), tmp_path / "people.npz")


@pytest.mark.parametrize("raw", [b"", b"PK\x03\x04 cut off", b"no arrays"])
def test_files_that_hold_no_arrays_are_refused(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "people.npz").write_bytes(raw)
    with pytest.raises(UnfitDataError, match="cannot be read"):
        arrays(parsed(ARRAYS), tmp_path / "people.npz")


def test_pickles_are_never_opened(tmp_path: Path) -> None:
    np.savez(tmp_path / "people.npz", x=np.array([{"a": 1}, {}], dtype=object), y=np.zeros(2, int))
    with pytest.raises(UnfitDataError, match="cannot be read"):
        arrays(parsed(ARRAYS), tmp_path / "people.npz")

"""Reading private arrays for training, without a word about what is in them."""

from pathlib import Path

import numpy as np
import pytest

from defocus.cli.training.files import parsed
from defocus.cli.training.networks import NO_CLASS, arrays
from defocus.errors import UnfitDataError

TOP = "epsilon = 1\ndelta = 1e-6\n[unit]\nrows = true\n"
ARRAYS = f'data = "people.npz"\n{TOP}[model]\nkind = "mlp"\nclasses = 3\n'


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

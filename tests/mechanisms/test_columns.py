"""Columns: their types are those that were declared, whichever cells are missing."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from defocus.mechanisms.columns import columns_of, declared, read_column

MAKERS = {
    "pandas Int8": lambda cells: pd.array(cells, dtype="Int8"),
    "pandas UInt64": lambda cells: pd.Series(cells, dtype="UInt64"),
    "pandas Float64": lambda cells: pd.Series(cells, dtype="Float64"),
    "pandas index": lambda cells: pd.Index(cells, dtype="Int64"),
    "pandas double on Arrow": lambda cells: pd.Series(cells, dtype="double[pyarrow]"),
    "pandas uint8 on Arrow": lambda cells: pd.Series(cells, dtype="uint8[pyarrow]"),
    "polars UInt8": lambda cells: pl.Series(cells, dtype=pl.UInt8),
    "polars Float32": lambda cells: pl.Series(cells, dtype=pl.Float32),
    "Arrow int16": lambda cells: pa.array(cells, pa.int16()),
    "Arrow halffloat": lambda cells: pa.array([None if c is None else np.float16(c) for c in cells], pa.float16()),
    "masked": lambda cells: np.ma.array([c or 0 for c in cells], mask=[c is None for c in cells]),
}


@pytest.mark.parametrize("made", MAKERS.values(), ids=MAKERS)
def test_a_missing_cell_changes_neither_the_type_nor_other_cells(made: Any) -> None:
    whole, everyone = read_column(made([1, 2, 3]))
    part, there = read_column(made([1, None, 3]))
    assert part.dtype == whole.dtype
    assert part[[0, 2]].tolist() == [1, 3]
    assert everyone is None or everyone.all()
    assert there.tolist() == [True, False, True] if there is not None else np.isnan(part[1])


def test_categories_have_the_type_of_all_of_them() -> None:
    column = pd.Series(pd.Categorical([2**60 + 1, None], categories=[2**60, 2**60 + 1]))
    found, there = read_column(column)
    assert found.tolist()[0] == 2**60 + 1
    assert there is not None
    assert there.tolist() == [True, False]
    assert declared(column) == np.int64
    assert read_column(pd.Categorical([None, None]))[0].tolist() == [None, None]


def test_frames_are_columns_with_names() -> None:
    for frame in (pd.DataFrame, pl.DataFrame, pa.table):
        columns = columns_of(frame({"a": [1], "b": [2]}))
        assert columns is not None
        assert [(name, read_column(column)[0].tolist()) for name, column in columns] == [("a", [1]), ("b", [2])]
    assert columns_of(np.zeros((2, 2))) is columns_of([[1, 2]]) is None

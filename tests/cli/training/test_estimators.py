"""Reading private tables for training: no cell makes them unreadable, and no word is said about what is in them."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from defocus.cli.training.estimators import table, table_of
from defocus.cli.training.files import parsed
from defocus.errors import UnfitDataError, UnknownColumnError

TABLE = (
    'data = "people.csv"\nepsilon = 1\ndelta = 1e-6\n[unit]\nrows = true\n'
    '[model]\nkind = "logistic"\n[target]\ncolumn = "ill"\nvalues = ["no", 1, true]\n[features]\nage = [18, 90]\n'
)


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
    place = tmp_path / "people.parquet"
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


@pytest.mark.parametrize(
    "odd", [b"1,2,3", b"1", b'"', b'50,"no', b"50,n\xffo", b"\x00", b"5\r0,no", b"," * 9, b"a" * 140_000]
)
def test_no_line_changes_how_another_one_is_read(tmp_path: Path, odd: bytes) -> None:
    place = tmp_path / "people.csv"
    place.write_bytes(b"\xef\xbb\xbfage,ill\r\n40,no\r\n" + odd + b'\n"60","no"\n\n70,1')
    features, classes = table(parsed(TABLE), place)
    assert features[[0, 2, 3], 0].tolist() == [40, 60, 70]
    assert classes[[0, 2, 3]].tolist() == [0, 0, 1]
    assert len(features) == len(classes) == 4


def test_texts_of_a_parquet_file_that_are_no_utf8_are_replaced(tmp_path: Path) -> None:
    raw = pa.array([b"no", b"n\xffo", None], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"ill": raw, "age": raw}), tmp_path / "people.parquet")
    features, classes = table(parsed(TABLE), tmp_path / "people.parquet")
    assert classes.tolist() == [0, -1, -1]
    assert np.isnan(features).all()


@pytest.mark.parametrize(
    ("values", "spelt"),
    [
        ("[0, 1]", ["0", "1.0", " 1 ", "1e0", "one", "", "nan"]),
        ("[false, true]", ["FALSE", "True", "true", "1", "yes", "", "t"]),
        ('["0", "1"]', ["0", "1", " 1 ", "1", "1.0", "", "one"]),
    ],
)
def test_classes_are_found_as_their_type_is_spelt(tmp_path: Path, values: str, spelt: list[str]) -> None:
    place = tmp_path / "people.csv"
    place.write_text("age,ill\n" + "".join(f"1,{each}\n" for each in spelt), encoding="utf-8")
    _, classes = table(parsed(TABLE.replace('["no", 1, true]', values)), place)
    assert classes.tolist() == [0, 1, 1, 1, -1, -1, -1]


@pytest.mark.parametrize("values", ["[0, 1]", "[false, true]"])
@pytest.mark.parametrize("kept", [[0, 1], [0.0, 1.0], [False, True]])
def test_numbers_and_truth_values_of_a_typed_column_are_classes(tmp_path: Path, values: str, kept: list[Any]) -> None:
    pq.write_table(pa.table({"ill": kept, "age": [1, 2]}), tmp_path / "people.parquet")
    _, classes = table(parsed(TABLE.replace('["no", 1, true]', values)), tmp_path / "people.parquet")
    assert classes.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("values", "kept"), [("[0, 1]", ["no", "yes"]), ('["0", "1"]', [0, 1]), ("[0, 1]", np.zeros(2, "M8[ns]"))]
)
def test_classes_of_another_type_than_the_column_are_refused_by_its_type(
    tmp_path: Path, values: str, kept: Any
) -> None:
    pq.write_table(pa.table({"ill": kept, "age": [1, 2]}), tmp_path / "people.parquet")
    with pytest.raises(UnfitDataError, match="The target is of type"):
        table(parsed(TABLE.replace('["no", 1, true]', values)), tmp_path / "people.parquet")


def test_a_file_without_a_line_has_no_columns(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("\n\n", encoding="utf-8")
    with pytest.raises(UnfitDataError, match="names of its columns"):
        table_of(tmp_path / "people.csv")

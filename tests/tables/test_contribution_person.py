"""Whoever differs in the data differs in the column that names the person, whatever was declared about it."""

from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import psycopg
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables.opening import column, write_csv

import defocus as dp
from defocus.engines.sources import source
from defocus.errors import UnknownColumnError, WrongKindError
from defocus.tables.contribution import naming

spellings = st.integers(-(2**65), 2**65).flatmap(
    lambda whole: st.sampled_from([f"{whole}", f"0{whole}", f"{whole}.4", f" {whole}", f"{whole} ", f"+{whole}"])
)
few = st.sampled_from(["1", "01", "1.4", "1e0", "+1", "0x1", "1_0", "10", "-0", "0", "", "-1", "١", "true", "1.0", "x"])
MOMENTS = pa.array([10**9 + 1, 10**9 + 2], pa.int64())


def opened(where: Path, data: Any, **more: Any) -> Any:
    terms: dict[str, Any] = {"unit": dp.user("u"), "budget": dp.Budget(10), "ledger": where / "t.ledger", "name": "t"}
    return dp.open(data, **terms | more)


def people(data: Any, **more: Any) -> list[Any]:
    return column(naming(source(data, **more), "u"), "u")


@settings(max_examples=30)
@given(st.lists(few | spellings, min_size=1, max_size=12, unique=True))
def test_no_two_texts_are_the_same_integer(texts: list[str]) -> None:
    found = [one for one in people(pa.table({"u": texts}), types={"u": "integer"}) if one is not None]
    assert sorted(map(str, found)) == sorted(set(map(str, found)))
    assert set(map(str, found)) <= set(texts)


def test_text_is_an_integer_only_as_integers_are_written(tmp_path: Path) -> None:
    written = ["1", "1.4", "01", "-7", "-0", "100", "0100", str(2**63 - 1), str(2**63)]
    path = write_csv(tmp_path / "t.csv", ["u", "x"], [[one, "2.4"] for one in written])
    rows = naming(source(path, types={"u": "integer", "x": "integer"}, missing={"u": [-7]}), "u")
    assert column(rows, "u") == sorted([1, 100, 2**63 - 1, *[None] * 6], key=repr)
    assert set(column(rows, "x")) == {2}  # another column is read as it always is


@pytest.mark.parametrize("kind", ["integer", "text"])
def test_one_person_more_moves_no_other_person_out_of_the_bound(tmp_path: Path, kind: str) -> None:
    """Were '1' and '01' one person of whom one row counts, the second would take the place of the first."""
    counted = []
    for name, rows in (("before", [["01", "b"]]), ("after", [["01", "b"], *[["1", "a"]] * 2000])):
        path = write_csv(tmp_path / f"{name}.csv", ["u", "k"], [["7", "b"], *rows])
        with opened(tmp_path, path, types={"u": kind}, ledger=tmp_path / f"{name}.ledger", budget=dp.Budget(1e4)) as t:
            asked = t.bound(rows=1).group_by("k", keys=["a", "b"]).agg(n=dp.count())
            (released,) = asked.release(epsilon=2000).columns
            counted.append([round(number) for number in released.values])  # noqa: PD011 - no frame
    before, after = counted
    assert sum(abs(one - other) for one, other in zip(before, after, strict=True)) == 1


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2], pa.uint64()),
        pa.array([1, 2], pa.int8()),
        pa.array(["a", "A"]),
        pa.array(["a", "A"]).dictionary_encode(),
        pa.array([date(2020, 1, 1), date(2020, 1, 2)]),
        MOMENTS.cast(pa.timestamp("us")),
        MOMENTS.cast(pa.timestamp("ms")),
        MOMENTS.cast(pa.timestamp("us", "Europe/Berlin")),
        pa.array([1, 2], pa.decimal128(20, 0)),
        pa.array([True, False]),
    ],
    ids=lambda values: str(values.type),
)
@pytest.mark.parametrize("types", [{}, {"u": "text"}])
def test_exact_values_name_people_as_they_are_or_as_text(values: Any, types: dict[str, str]) -> None:
    found = people(pa.table({"u": values}), types=types)
    assert len(set(found)) == 2
    assert None not in found


@pytest.mark.parametrize("kind", [None, "integer", "text", "date", "timestamp"])
@pytest.mark.parametrize(
    "values",
    [
        MOMENTS.cast(pa.timestamp("ns")),
        MOMENTS.cast(pa.timestamp("ns", "UTC")),
        MOMENTS.cast(pa.date64()),
        pa.array([100.3, 100.4]),
        pa.array([100.3, 100.4], pa.float32()),
        pa.array([1, 2], pa.decimal128(20, 2)),
    ],
    ids=lambda values: str(values.type),
)
def test_values_that_are_read_coarser_than_they_are_name_nobody(tmp_path: Path, values: Any, kind: str | None) -> None:
    table = pa.table({"u": values})
    for data in (table, pads.dataset(table)):
        with pytest.raises(WrongKindError):
            opened(tmp_path, data, types={"u": kind} if kind else None)
    assert not (tmp_path / "t.ledger").exists()


@pytest.mark.parametrize("old", [True, False])
def test_nanoseconds_in_a_parquet_file_name_nobody_even_where_the_engine_drops_them(tmp_path: Path, old: bool) -> None:
    path = tmp_path / "t.parquet"
    table = pa.table({"u": MOMENTS.cast(pa.timestamp("ns"))})
    pq.write_table(table, path, use_deprecated_int96_timestamps=old)
    with pytest.raises(WrongKindError, match="two people could become one"):
        opened(tmp_path, path)


def test_nanoseconds_in_a_database_name_nobody(tmp_path: Path) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (u TIMESTAMP_NS)")
    with pytest.raises(WrongKindError, match="two people could become one"):
        opened(tmp_path, connection, table="t")


@pytest.mark.parametrize(
    ("value", "kind"),
    [("1", "date"), ("1", "timestamp"), ("1", "boolean"), (1, "boolean"), (datetime(2020, 1, 1), "date")],  # noqa: DTZ001
)
def test_another_kind_that_is_not_exact_is_refused_with_a_remedy(tmp_path: Path, value: Any, kind: str) -> None:
    data = pa.table({"u": pa.array([value], pa.timestamp("us") if isinstance(value, datetime) else None)})
    with pytest.raises(WrongKindError, match="one person of two") as refused:
        opened(tmp_path, data, types={"u": kind})
    assert "leave out what is declared" in str(refused.value)


def test_whole_numbers_that_pandas_made_floats_are_refused_with_a_remedy(tmp_path: Path) -> None:
    frame = pd.DataFrame({"u": [1, None, 2]})
    with pytest.raises(WrongKindError, match="Int64"):
        opened(tmp_path, frame, types={"u": "integer"})
    opened(tmp_path, frame.astype({"u": "Int64"})).close()


def test_another_private_table_is_held_to_the_same_rule(tmp_path: Path) -> None:
    write_csv(tmp_path / "v.csv", ["u"], [["1"], ["2"]])
    write_csv(tmp_path / "p.csv", ["u", "age"], [["1", 30], ["01", 40], ["1.4", 50]])
    text = 'name = "v"\ndata = "v.csv"\nunit.column = "u"\nbudget.epsilon = 1e4\ncolumns.u.kind = "{0}"\n'
    text += 'private.p.data = "p.csv"\nprivate.p.unit = "u"\nprivate.p.columns.u.kind = "{1}"\n'
    (tmp_path / "v.toml").write_text(text.format("integer", "integer"))
    with dp.open(tmp_path / "v.toml") as table:
        joined = table.join("p", on="u", how="inner").bound(rows=5).agg(n=dp.count())
        (released,) = joined.release(epsilon=5000).columns
        assert round(released.values[0]) == 1  # noqa: PD011 - no frame
    (tmp_path / "w.toml").write_text(text.format("integer", "date"))
    with pytest.raises(WrongKindError, match="one person of two"):
        dp.open(tmp_path / "w.toml", ledger=tmp_path / "w.ledger")
    with pytest.raises(WrongKindError, match="two people could become one"):
        opened(tmp_path, pa.table({"u": [1]}), private={"p": pa.table({"u": MOMENTS.cast(pa.timestamp("ns"))})})


def test_a_column_that_is_not_there_or_holds_no_values_names_nobody() -> None:
    with pytest.raises(UnknownColumnError):
        naming(source(pa.table({"v": [1]})), "u")
    with pytest.raises(WrongKindError):
        naming(source(pa.table({"u": [[1]]})), "u")


def test_postgresql_follows_the_same_rule(server: str) -> None:
    with psycopg.connect(server, autocommit=True) as owner:
        owner.execute("CREATE TABLE people (u text, n numeric, i numeric(20, 0))")
        owner.execute("INSERT INTO people VALUES ('1', 1, 1), ('01', 1.4, 2), ('1.4', 2, 99999999999999999999)")
    opened = source(server, table="people", types={"u": "integer"})
    try:
        assert column(naming(opened, "u"), "u") == [1, None, None]
        assert column(naming(opened, "i"), "i") == [1, 2, None]
        with pytest.raises(WrongKindError):
            naming(opened, "n")
    finally:
        opened.engine.close()
        with psycopg.connect(server, autocommit=True) as owner:
            owner.execute("DROP TABLE people")

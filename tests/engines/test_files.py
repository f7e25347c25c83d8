import csv
import gzip
import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp
from tests.tables.opening import column, rows, write_csv

from defocus.engines.duckdb import DuckDbEngine
from defocus.engines.files import find
from defocus.engines.sources import source, together
from defocus.errors import SourceError

fields = st.text(max_size=12).map(lambda text: text.encode("utf-8", "ignore").decode())
records = st.lists(st.tuples(fields, fields, fields), max_size=8)
STRANGE = [
    "a'; DROP TABLE x; --",
    "a[1]",
    "a*b",
    "q?",
    "b}{",
    'say "x"',
    "%s",
    "spa ce",
    "ünï",
    "-rf",
    "{a,b}",
    "a\\b",
    "$HOME",
]


@pytest.fixture(scope="module")
def strange(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("strange")
    for each in (*STRANGE, "a1", "axb", "q1", "a", "b"):
        pq.write_table(pa.table({"x": [each]}), folder / f"{each}.parquet")
        write_csv(folder / f"{each}.csv", ["x"], [[each]])
    return folder


@pytest.mark.parametrize("name", STRANGE)
def test_a_strange_file_name_is_a_name_and_never_a_pattern_or_sql(strange: Path, name: str) -> None:
    both = together(*(source(strange / f"{name}{ending}") for ending in (".parquet", ".csv")))
    assert [column(one) for one in both] == [[name], [name]]


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(records, st.sampled_from(["\n", "\r\n"]), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_a_csv_file_holds_the_rows_that_were_written(
    tmp_path_factory: pytest.TempPathFactory, table: list[tuple[str, str, str]], end: str, quoting: int
) -> None:
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    if (end, quoting) == ("\n", csv.QUOTE_MINIMAL):  # some versions of Python then write a bare carriage return
        table = [(a.replace("\r", ""), b.replace("\r", ""), c.replace("\r", "")) for a, b, c in table]
    numbered = [(str(i), *record) for i, record in enumerate(table)]
    write_csv(path, ["i", "a", "b", "c"], numbered, lineterminator=end, quoting=quoting)
    got = sorted((list(row.values()) for row in rows(source(path))), key=lambda row: int(row[0]))
    assert got == [[field or None for field in record] for record in numbered]


HOSTILE = [
    b"7,short\n",
    b"7,a,b,c,d,e\n",
    b"7,\xff\xfe,1\n",
    b"7,a\0b,1\n",
    b'7,"quoted ""twice"" and,\nbroken",1\n',
    b'7,un"quoted",1\n',
    b'7,"half"way,1\n',
    b"\n",
    b",,\n",
    b"7," + b"x" * 3_000_000 + b",1\n",
    b"id,name,age\n",
    b"NaN,inf,-0\n",
    b"7,'; DROP TABLE t; --,1e999\n",
    b"7,a,99999999999999999999999\r\n",
]


@pytest.mark.parametrize("extra", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("place", [0, 2])
def test_one_more_row_of_any_sort_changes_no_other_row_and_no_schema(tmp_path: Path, extra: bytes, place: int) -> None:
    lines = [b"1,ann,5\n", b'2,"bo\nb",6\n', b"3,cy,7\n"]
    before = [
        {"id": 1, "name": "ann", "age": 5},
        {"id": 2, "name": "bo\nb", "age": 6},
        {"id": 3, "name": "cy", "age": 7},
    ]
    path = tmp_path / "t.csv"
    path.write_bytes(b"id,name,age\n" + b"".join([*lines[:place], extra, *lines[place:]]))
    more = source(path, types={"id": "integer", "age": "number"})
    assert [str(one.kind) for one in more.schema] == ["integer", "text", "number"]
    kept = rows(more)
    for row in before:
        kept.remove(row)
    assert len(kept) <= 1


@pytest.mark.parametrize("used", [["id"], ["age"], ["id", "age"], ["name"], ["id", "name"]])
def test_whether_a_row_is_read_does_not_depend_on_what_is_asked(tmp_path: Path, used: list[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"id,name,age\n1,a,5\ntwo,b,6\n3,c,seven\n4,d,99999999999999999999\n5,\xff,1\n,,\n\n6,e\n")
    opened = source(path, types={"id": "integer", "age": "integer"})
    table = exp.select(*used).from_(opened.relation.subquery("t"))
    assert opened.engine.run(table).num_rows == 5
    assert opened.engine.run(table.where("age IS NULL")).num_rows == 3


def test_text_stays_text_until_a_type_is_declared(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", ["x"], [["1"], ["2"], ["three"]])
    assert column(source(path)) == ["1", "2", "three"]
    assert column(source(path, types={"x": "integer"})) == [1, 2, None]
    assert source(path).schema == source(write_csv(tmp_path / "u.csv", ["x"], [])).schema


@pytest.mark.parametrize("separator", [",", ";", "|", "\t"])
def test_the_separator_is_read_from_the_header(tmp_path: Path, separator: str) -> None:
    path = write_csv(tmp_path / "t.csv", ["a", "b"], [["1,2;3", "x"]], delimiter=separator)
    assert rows(source(path)) == [{"a": "1,2;3", "b": "x"}]


def test_the_separator_does_not_depend_on_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1;2;3;4,x\n")
    assert rows(source(path)) == [{"a": "1;2;3;4", "b": "x"}]


def test_compressed_and_tabbed_files_and_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_bytes(b"\xef\xbb\xbfa\tb,c\n1\t2\n")
    assert rows(source(tmp_path / "t.tsv")) == [{"a": "1", "b,c": "2"}]
    with gzip.open(tmp_path / "t.csv.gz", "wt") as file:
        file.write("a,b\n1,2\n")
    opened = source(tmp_path / "t.csv.gz")
    assert (opened.name, rows(opened)) == ("t", [{"a": "1", "b": "2"}])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"\xff\xfe\n1\n",
        b"a,a\n1,2\n",
        b"a,A\n1,2\n",
        b"a,,b\n",
        b"a\0,b\n1,2\n",
        b"x" * (1 << 20),
        b"a\rb\r",
        b",\n",
    ],
)
def test_a_header_that_cannot_be_used_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(SourceError, match="To fix: "):
        source(tmp_path / "t.csv")


def test_a_bad_byte_in_a_row_does_not_decide_whether_a_file_opens(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"a,b\n\xff\xff,\xff\n1,2\n")
    assert rows(source(tmp_path / "t.csv")) == [{"a": "1", "b": "2"}]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"no parquet at all" * 100, b"PAR1" + b"\0" * 100 + b"PAR1"])
def test_a_damaged_parquet_file_is_refused_without_quoting_it(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.parquet").write_bytes(content)
    with pytest.raises(SourceError, match="not a Parquet file") as caught:
        source(tmp_path / "t.parquet")
    assert caught.value.__context__ is None


def test_files_with_no_rows_are_tables(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": pa.array([], pa.int64())}), tmp_path / "t.parquet")
    write_csv(tmp_path / "t.csv", ["x"], [])
    (tmp_path / "bare.csv").write_text("x")
    for name in ("t.parquet", "t.csv", "bare.csv"):
        assert rows(source(tmp_path / name)) == []


@pytest.mark.parametrize(
    "other", [{"x": ["1"]}, {"y": [1]}, {"x": [1], "y": [1]}, {"x": pa.array([1], pa.int32())}, {"x": [1.0]}]
)
def test_parquet_files_with_different_columns_are_refused(tmp_path: Path, other: dict[str, object]) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table(other), tmp_path / "b.parquet")
    with pytest.raises(SourceError, match=r"is not the same in a\.parquet and b\.parquet"):
        source(tmp_path)


def test_the_order_of_columns_does_not_matter_in_parquet_and_does_in_csv(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1], "y": ["a"]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"y": ["b"], "x": [2]}), tmp_path / "b.parquet")
    assert column(source(tmp_path / "*.parquet")) == [1, 2]
    write_csv(tmp_path / "a.csv", ["x", "y"], [])
    write_csv(tmp_path / "b.csv", ["y", "x"], [])
    with pytest.raises(SourceError, match="different headers"):
        source(tmp_path / "*.csv")


def test_duplicate_columns_of_parquet_are_refused_before_duckdb_renames_them(tmp_path: Path) -> None:
    for names in (["a", "a"], ["a", "A"]):
        pq.write_table(pa.table([[1], [2]], names=names), tmp_path / "t.parquet")
        with pytest.raises(SourceError, match="look the same"):
            source(tmp_path / "t.parquet")


def test_folders_called_key_value_become_a_text_column(tmp_path: Path) -> None:
    for value, x in (("1", 10), ("b", 20), ("O'Hara", 30), ("__HIVE_DEFAULT_PARTITION__", 40)):
        (tmp_path / f"ward={value}").mkdir()
        pq.write_table(pa.table({"x": [x]}), tmp_path / f"ward={value}" / "part.parquet")
    for data in (tmp_path, f"{tmp_path}/**/*.parquet", f"{tmp_path}/*/part.parquet"):
        opened = source(data)
        assert opened.schema.names == ["x", "ward"]
        assert column(opened, "ward") == ["1", "O'Hara", "b", None] or set(column(opened, "ward")) == {
            "1",
            "b",
            "O'Hara",
            None,
        }
    assert column(source(tmp_path, types={"ward": "integer"}), "ward") == [1, None, None, None]


def test_folders_of_numbers_do_not_become_a_column_of_numbers(tmp_path: Path) -> None:
    for year in (2019, 2020):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(pa.table({"x": [year]}), tmp_path / f"year={year}" / "part.parquet")
    assert column(source(tmp_path), "year") == ["2019", "2020"]


def test_a_partition_key_that_is_also_a_column_and_mixed_layouts_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x=1").mkdir()
    pq.write_table(pa.table({"x": [1]}), tmp_path / "x=1" / "part.parquet")
    with pytest.raises(SourceError, match="look the same"):
        source(tmp_path)
    pq.write_table(pa.table({"x": [1]}), tmp_path / "loose.parquet")
    with pytest.raises(SourceError, match="different folders called key=value"):
        source(tmp_path)


def test_moments_in_milliseconds_are_of_no_use_and_cannot_make_others_fail(tmp_path: Path) -> None:
    moments = pa.array([2**62, 0], pa.int64()).cast(pa.timestamp("ms"))
    pq.write_table(pa.table({"when": moments, "x": [1, 2]}), tmp_path / "t.parquet")
    opened = source(tmp_path / "t.parquet")
    assert str(opened.schema["when"].kind) == "other"
    assert column(opened) == [1, 2]


@pytest.mark.parametrize(
    "data",
    [
        "nowhere.parquet",
        "no*thing.parquet",
        "https://example.org/x.parquet",
        "s3://bucket/x.parquet",
        "a\0b.csv",
        "",
        [],
    ],
)
def test_what_is_not_there_is_refused_with_help(data: str | list[str]) -> None:
    with pytest.raises(SourceError, match="To fix: "):
        source(data)


def test_files_of_two_formats_unknown_ones_and_repeated_ones_are_refused(tmp_path: Path) -> None:
    a = write_csv(tmp_path / "a.csv", ["x"], [])
    pq.write_table(pa.table({"x": [1]}), tmp_path / "b.parquet")
    (tmp_path / "c.xlsx").write_bytes(b"")
    for data, why in (
        ([a, tmp_path / "b.parquet"], "different formats"),
        (tmp_path / "c.xlsx", "cannot be told"),
        ([a, a], "named twice"),
        ([a, tmp_path / "*.csv"], "named twice"),
    ):
        with pytest.raises(SourceError, match=why):
            find(data)


def test_nothing_but_the_header_is_read_when_a_file_is_opened(tmp_path: Path) -> None:
    secret = io.StringIO()
    csv.writer(secret).writerows([["Ada", "gout"]] * 50)
    path = tmp_path / "t.csv"
    path.write_text("name,disease\n" + secret.getvalue())
    opened = source(path)
    assert "gout" not in repr(opened)
    assert "gout" not in opened.relation.sql("duckdb")


def partitioned(root: Path, *folders: str) -> Path:
    """A small file in each folder, with the number of the folder in it."""
    for number, folder in enumerate(folders):
        (root / folder).mkdir(parents=True)
        pq.write_table(pa.table({"x": [number]}), root / folder / "0.parquet")
    return root


VALUES = {
    "day=2026-11-14": "2026-11-14",
    "day=a%20b": "a b",
    "day=a%2Fb": "a/b",
    "day=a%3Db": "a=b",
    "day=%C3%A9": "é",
    "day=a+b": "a+b",
    "day=%zz": "%zz",
    "day=100%": "100%",
    "day=": "",
    "day=NULL": "NULL",
    "day=[x]*": "[x]*",
    "day=%3F%5C": "?\\",
    "day=a'b": "a'b",
    "day=__HIVE_DEFAULT_PARTITION__": None,
}


def test_folders_are_read_as_hive_writes_them_here_and_in_the_engine(tmp_path: Path) -> None:
    root = partitioned(tmp_path / "visits", *VALUES)
    files = find(root)
    assert files.partitions == ("day",)
    read = {path.parent.name: values for path, values in zip(files.paths, files.values, strict=True)}
    assert read == {folder: (value,) for folder, value in VALUES.items()}
    opened = source(root)
    found = {row["x"]: row["day"] for row in opened.engine.run(opened.relation).to_pylist()}
    assert [found[number] for number in range(len(VALUES))] == list(VALUES.values())
    opened.engine.close()


def test_folders_within_folders_and_those_above_the_one_that_was_opened(tmp_path: Path) -> None:
    root = partitioned(tmp_path / "env=prod" / "visits", "day=1/ward=a", "day=1/ward=b", "day=2/ward=a")
    opened = source(root)
    assert opened.schema.names == ["x", "day", "ward"]
    found = sorted(tuple(row.values()) for row in opened.engine.run(opened.relation).to_pylist())
    assert found == [(0, "1", "a"), (1, "1", "b"), (2, "2", "a")]
    opened.engine.close()
    opened = source(str(tmp_path / "env=*" / "visits" / "**" / "*.parquet"))
    assert opened.schema.names == ["x", "env", "day", "ward"]
    opened.engine.close()


@pytest.mark.parametrize("folder", ["day=a=b", "day=1/day=2", "day=1/ward=a/day=1", "day=a?b", "day=a\\b", "day=a\nb"])
def test_a_folder_that_says_two_things_is_refused_by_its_name(tmp_path: Path, folder: str) -> None:
    with pytest.raises(SourceError, match="does not say what 'day' is"):
        find(partitioned(tmp_path / "visits", folder))


def test_a_key_that_is_already_in_the_path_is_refused(tmp_path: Path) -> None:
    """DuckDB would take the outer one, and put every row into that part."""
    with pytest.raises(SourceError, match="another folder on the way"):
        find(partitioned(tmp_path / "day=old" / "visits", "day=1"))


@pytest.mark.parametrize("folder", ["day=%FF", "day=a%00"])
def test_a_folder_that_is_no_text_is_refused(tmp_path: Path, folder: str) -> None:
    with pytest.raises(SourceError, match="not called by a text"):
        find(partitioned(tmp_path / "visits", folder))


def test_a_file_that_arrives_later_is_in_the_next_opening(tmp_path: Path) -> None:
    root = partitioned(tmp_path / "visits", "day=1", "day=2")
    opened = source(root)
    partitioned(root, "day=3")
    pq.write_table(pa.table({"x": [9]}), root / "day=1" / "1.parquet")
    assert opened.engine.run(opened.relation).num_rows == 2
    opened.engine.close()
    opened = source(root)
    assert opened.engine.run(opened.relation).num_rows == 4
    opened.engine.close()


@pytest.mark.parametrize(("types", "condition"), [({}, "day = '2'"), ({"day": "integer"}, "day IN (2)")])
def test_a_filter_on_folders_leaves_other_files_unread(tmp_path: Path, types: dict[str, str], condition: str) -> None:
    root = partitioned(tmp_path / "visits", *(f"day={day}" for day in range(300)))
    opened = source(root, types=types)
    kept = exp.select("COUNT(*)").from_(opened.relation.subquery("t")).where(condition)
    engine = opened.engine
    assert isinstance(engine, DuckDbEngine)
    plan = engine._connection.execute(f"EXPLAIN ANALYZE {kept.sql('duckdb')}").fetchall()[0][1]
    assert "Scanning Files: 1/300" in plan
    for path in find(root).paths[1:]:  # the first one tells the columns
        if path.parent.name != "day=2":
            path.write_bytes(b"not read")
    assert engine.run(kept).column(0).to_pylist() == [1]
    engine.close()


def test_files_of_which_one_lacks_a_column_or_has_another_type_are_named(tmp_path: Path) -> None:
    for name, other in (("lacks", {"y": [1]}), ("other", {"x": ["1"]})):
        root = partitioned(tmp_path / name, "day=1")
        pq.write_table(pa.table(other), root / "day=1" / "odd one.parquet")
        with pytest.raises(SourceError, match=r"odd one\.parquet"):
            source(root)

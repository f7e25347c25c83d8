"""Edges in files: no line decides how others are read, and nothing of a file is quoted."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.graphs.conftest import FRIENDS, TABLE, named_edges

from defocus import item, node
from defocus.errors import SourceError
from defocus.graphs import Network


def test_files_that_are_not_what_they_say_are_refused_without_a_word_of_them(
    opened: Callable[..., Network], tmp_path: Path
) -> None:
    (tmp_path / "bad.parquet").write_text("secret,edges\n", encoding="utf-8")
    with pytest.raises(SourceError, match="could not be read as a table of edges") as caught:
        opened(tmp_path / "bad.parquet")
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    (tmp_path / "e.duckdb").write_text("secret", encoding="utf-8")
    with pytest.raises(SourceError, match="could not be read"):
        opened(tmp_path / "e.duckdb", table="edges")
    with pytest.raises(SourceError, match="name of a table"):
        opened(tmp_path / "e.duckdb")
    pq.write_table(TABLE, tmp_path / "e.parquet")
    with pytest.raises(SourceError, match="name of a table"):
        opened(tmp_path / "e.parquet", table="edges")


def test_crooked_lines_of_a_file_are_left_out(opened: Callable[..., Network], tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("u,v\nada,bob\nada\n\nbob,cyd,dan\n,\ncyd,ada\n", encoding="utf-8")
    assert {("ada", "bob"), ("ada", "cyd")} <= named_edges(opened(tmp_path / "e.csv"))


HOSTILE = [
    b'a"b,c,1,1', b'"a""b",c,1,1', b'"x\ny",z,2,2', b"\xff\xfe,dan,1,1", b"ada,bob,\xff,1", b"#ada,bob,1,1", b"a;b;c,d",
    b"ada,bob,1,1,1,1,1,1", b"ada", b"", b",,,", b"ada,dan,1e999,9e99", b"ada,eve,nan,infinity", b"x" * 3_000_000,
    b"ada,bob,1,290000-01-01", b"'ada,bob',1", b"ada,bob\\,1,1", b"u,v,w,t",
]  # fmt: skip


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda line: ascii(line[:20]))
@pytest.mark.parametrize("at", [0, 30])
def test_no_line_of_a_file_decides_how_others_are_read(
    opened: Callable[..., Network], tmp_path: Path, hostile: bytes, at: int
) -> None:
    lines = [f"{left},{right},1.5,{i}".encode() for i in range(12) for left, right in FRIENDS]
    places = [tmp_path / f"{name}.csv" for name in ("clean", "hostile")]
    places[0].write_bytes(b"\n".join([b"u,v,w,t", *lines, b""]))
    places[1].write_bytes(b"\n".join([b"u,v,w,t", *lines[:at], hostile, *lines[at:], b""]))
    clean, dirty = (opened(place, weights="w", time="t", unit=item()).data.pairs for place in places)
    rows_of: list[list[Any]] = []
    for each in (clean, dirty):
        assert each.weights is not None
        assert each.times is not None
        rows_of.append(list(zip(each.left, each.right, each.weights, each.times, strict=True)))
    assert len(rows_of[1]) - len(rows_of[0]) in {0, 1}
    assert rows_of[0] == [*rows_of[1][:at], *rows_of[1][at + len(rows_of[1]) - len(rows_of[0]) :]]


def test_signs_of_patterns_in_the_name_of_a_file_are_part_of_it(opened: Callable[..., Network], tmp_path: Path) -> None:
    for name in ("e1", "e2", "e[12]", "e*"):
        for ending in ("csv", "parquet"):
            table = pa.table({"u": ["ada"], "v": ["bob" if name.startswith("e[") else "cyd"]})
            place = tmp_path / f"{name}.{ending}"
            pq.write_table(table, place) if ending == "parquet" else table.to_pandas().to_csv(place, index=False)
    for ending in ("csv", "parquet"):
        assert named_edges(opened(tmp_path / f"e[12].{ending}")) == {("ada", "bob")}


def test_broken_characters_in_parquet_and_arrow_are_read(opened: Callable[..., Network], tmp_path: Path) -> None:
    left = pa.array([b"ada", b"\xff", b"bob"], pa.binary()).view(pa.string())
    table = pa.table({"u": left, "v": ["bob", "ada", "cyd"]})
    pq.write_table(table, tmp_path / "e.parquet")
    for data in (table, tmp_path / "e.parquet"):
        assert named_edges(opened(data)) == {("ada", "bob"), ("bob", "cyd")}
        assert opened(data, unit=node(), nodes=None).data.graph.edges == 3

"""Edges in files of text: with a header or without, and nothing of an edge in an error."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.graphs.conftest import named_edges

from defocus import edge, item
from defocus.errors import DefocusError, SourceError
from defocus.graphs import Network
from defocus.graphs.edge_texts import text_columns

SNAP = "# Undirected graph: friends.txt\n# FromNodeId\tToNodeId\n0\t1\n1 2\n  2   3 \n# 4 5\n\n3\n"


def placed(folder: Path, name: str, text: str) -> Path:
    place = folder / name
    place.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return place


@pytest.mark.parametrize("name", ["e.txt", "e.txt.gz", "E.TXT"])
def test_lists_of_the_snap_collection_are_read_as_they_are(
    opened: Callable[..., Network], tmp_path: Path, name: str
) -> None:
    g = opened(placed(tmp_path, name, SNAP), nodes=6)
    assert named_edges(g) == {(0, 1), (1, 2), (2, 3)}
    assert g.name in {"e", "E"}


@pytest.mark.parametrize(("name", "sign"), [("e.csv", ","), ("e.tsv", "\t"), ("e.csv.gz", ","), ("e.tsv.gz", "\t")])
def test_without_a_header_the_first_line_is_an_edge(
    opened: Callable[..., Network], tmp_path: Path, name: str, sign: str
) -> None:
    place = placed(tmp_path, name, f"ada{sign}bob{sign}2.5\nbob{sign}cyd{sign}x\ncyd\n")
    g = opened(place, header=False, weights="3", nodes=["ada", "bob", "cyd"])
    assert named_edges(g) == {("ada", "bob"), ("bob", "cyd")}
    assert g.data.pairs.weights is not None
    assert g.data.pairs.weights[0] == 2.5


@pytest.mark.parametrize("text", ["101,102\n102,103\n", "1,2\n1,2\n", "7,7\n", "3.5,x\n1,2\n", "source,9\n1,2\n"])
def test_a_first_line_that_looks_like_an_edge_is_neither_lost_nor_shown(
    opened: Callable[..., Network], tmp_path: Path, text: str
) -> None:
    place = placed(tmp_path, "e.csv", text)
    for said in ({}, {"ends": ("1", "2")}, {"ends": ("source", "target")}):
        with pytest.raises(DefocusError, match="does not look like the names of columns") as caught:
            opened(place, **said)
        assert not any(
            value in str(caught.value) for value in text.strip().replace("\n", ",").split(",") if len(value) > 1
        )
        assert "header=False" in caught.value.fix
        assert caught.value.__context__ is None or "10" not in str(caught.value.__context__)


@pytest.mark.parametrize("said", [{}, {"ends": ("from_id", "to_id")}, {"ends": ("zoe", "from_id")}])
def test_names_that_may_be_people_are_not_shown_unless_they_are_said_to_be_a_header(
    opened: Callable[..., Network], tmp_path: Path, said: Any
) -> None:
    place = placed(tmp_path, "e.csv", "zoe,yan\nada,bob\n")
    with pytest.raises(DefocusError) as caught:
        opened(place, **said)
    assert "yan" not in str(caught.value)
    assert "header=True" in caught.value.fix
    with pytest.raises(DefocusError) as caught:
        opened(place, header=True, **said)
    assert "yan" in str(caught.value)


def test_a_header_that_is_declared_may_have_numbers(opened: Callable[..., Network], tmp_path: Path) -> None:
    place = placed(tmp_path, "e.csv", "2023,2024\nada,bob\n")
    assert named_edges(opened(place, header=True, ends=("2023", "2024"), nodes=["ada", "bob"])) == {("ada", "bob")}


def test_a_list_between_blanks_may_have_a_header_that_is_declared(
    opened: Callable[..., Network], tmp_path: Path
) -> None:
    place = placed(tmp_path, "e.txt", "# made by hand\nfrom to when\nada bob 3\nbob  cyd 4\n")
    g = opened(place, header=True, unit=item(), time="when", nodes=["ada", "bob", "cyd"])
    assert len(g.data.pairs) == 2
    assert g.data.pairs.times is not None
    assert g.data.pairs.times.tolist() == [3, 4]
    with pytest.raises(SourceError, match="does not name the columns"):
        opened(placed(tmp_path, "f.txt", "# nothing\n"), header=True)


HOSTILE = [
    b"\xff\xfe 3",
    b"\x1f\x1f",
    b'"0 1',
    b"0" * 3_000_000,
    b"# 0 5",
    b"0\x005",
    b"\t\t",
    b"'",
    b"0 1 2 3 4 5 6 7",
]


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda line: ascii(line[:12]))
@pytest.mark.parametrize("at", [0, 30])
@pytest.mark.parametrize("name", ["e.txt", "e.csv"])
def test_no_line_decides_how_others_are_read(
    opened: Callable[..., Network], tmp_path: Path, hostile: bytes, at: int, name: str
) -> None:
    sign = b"," if name == "e.csv" else b" "
    lines = [b"%d%s%d" % (i % 5, sign, (i + 1) % 5) for i in range(60)]
    place = tmp_path / name
    found = []
    for body in (lines, [*lines[:at], hostile, *lines[at:]]):
        place.write_bytes(b"\n".join([*body, b""]))
        pairs = opened(place, header=False, unit=edge(), nodes=5).data.pairs
        found.append([(a, b) for a, b in zip(pairs.left, pairs.right, strict=True) if a >= 0 and b >= 0])
    assert found[0] == found[1] or len(found[1]) == len(found[0]) + 1


@pytest.mark.parametrize("header", [0, 1, "no", 2.5])
def test_a_header_is_there_or_not(opened: Callable[..., Network], tmp_path: Path, header: Any) -> None:
    with pytest.raises(DefocusError, match="header must be"):
        opened(placed(tmp_path, "e.csv", "u,v\nada,bob\n"), header=header)


def test_other_data_has_no_header(opened: Callable[..., Network]) -> None:
    with pytest.raises(SourceError, match="Only files of text"):
        opened([("ada", "bob")], header=False)


ODD_LINES = {
    "open quote": b'"0,2,1,5',
    "open quote at the end": b'0,2,1,"5',
    "quote within": b'0"x,2,1,5',
    "text behind a quote": b'"0"x,2,1,5',
    "three quotes": b'"""0,2,1,5',
    "no text": b"\xff,2,1,5",
    "zero": b"0\x00,2,1,5",
    "half a line": b"0",
    "long": b"9" * 100_000 + b",2,1,5",
    "carriage return": b"0,\r2,1,5",
    "separator of units": b"0\x1f,2,1,5",
}


@pytest.mark.parametrize("line", ODD_LINES.values(), ids=ODD_LINES)
@pytest.mark.parametrize("place", [0, 1, 3])
def test_no_line_without_a_header_changes_what_other_lines_are(tmp_path: Path, line: bytes, place: int) -> None:
    lines = [b'"0","1",2,1', b"1,2,3,12", b"2,3,4,22"]
    path = tmp_path / "edges.csv"
    path.write_bytes(b"\n".join([*lines[:place], line, *lines[place:]]) + b"\n")
    _, read = text_columns(path, ".csv", header=False)
    rows = read(["1", "2", "3", "4"], rows=True).to_pylist()
    expected = [("0", "1", 2.0, 1), ("1", "2", 3.0, 12), ("2", "3", 4.0, 22)]
    found = [tuple(row.values()) for row in rows]
    assert [row for row in found if row in expected] == expected
    assert len(found) <= 5


def test_fields_between_quotes_hold_separators_and_quotes(tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_bytes(b'"a,b","say ""hi""",1,2\r\n,x,,\r\n"",y,3,4\r\n')
    _, read = text_columns(path, ".csv", header=False)
    found = [tuple(row.values()) for row in read(["1", "2", "3", "4"], rows=True).to_pylist()]
    assert found == [("a,b", 'say "hi"', 1.0, 2), (None, "x", None, None), (None, "y", 3.0, 4)]

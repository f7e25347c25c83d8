"""Asking a graph from a terminal."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import defocus as dp
from defocus import machine_code
from defocus.ledger import Ledger

SAID = ("--unit", "edge", "--nodes", "50", "--budget", "4", "--budget-delta", "1e-6")


@pytest.fixture
def edges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ring of fifty nodes with chords, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    around = np.arange(50)
    left, right = np.tile(around, 2), np.concatenate([np.roll(around, 1), np.roll(around, 2)])
    pq.write_table(pa.table({"source": left, "target": right}), tmp_path / "ring.parquet")
    return tmp_path / "ring.parquet"


def test_a_count_is_charged_and_printed(defocus: Callable[..., Any], edges: Path) -> None:
    ran = defocus("graph", edges, *SAID, "triangles", "--epsilon", 0.5, "--explain")
    assert ran.code == 0, ran.err
    assert "triangles" in ran.out
    assert "95 % interval" in ran.out
    assert "protected" in ran.out
    with Ledger.open(edges.with_name("ring.ledger"), read_only=True) as ledger:
        assert ledger.remaining().epsilon == pytest.approx(3.5)
        assert ledger.dataset == "ring, ends 'source' and 'target'"


def test_an_engine_counts_without_reading_edges(defocus: Callable[..., Any], edges: Path) -> None:
    there = ("--engine", "duckdb", "--memory", "500MB")
    ran = defocus("graph", edges, *SAID, *there, "triangles", "--epsilon", 3, "--method", "laplace", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["method"] == "laplace"
    refused = defocus("graph", edges, *SAID, *there, "pagerank", "--epsilon", 0.5)
    assert refused.code == 2
    assert "leave --engine out" in refused.err
    assert "degree-histogram" in refused.err
    unknown = defocus("graph", edges, *SAID, "--engine", "abacus", "edges", "--epsilon", 0.5)
    assert unknown.code == 1
    assert "'abacus', which is no engine" in unknown.err
    with Ledger.open(edges.with_name("ring.ledger"), read_only=True) as ledger:
        assert ledger.remaining().epsilon == pytest.approx(1)


def test_a_preview_is_free_and_lists_the_methods(defocus: Callable[..., Any], edges: Path) -> None:
    ran = defocus("graph", edges, *SAID, "stars", "--set", "k=3", "--epsilon", 1, "--preview")
    assert ran.code == 0, ran.err
    assert "ramp" in ran.out
    assert "laplace" in ran.out
    assert not (edges.parent / "ring.ledger").exists()
    refused = defocus("graph", edges, "stars", "--nodes", "50", "--epsilon", 1, "--preview")
    assert refused.code == 1
    assert "ring.ledger" in refused.err.replace("\n", "")
    assert defocus("graph", edges, *SAID, "edges", "--epsilon", 0.1).code == 0
    found = defocus("graph", edges, "stars", "--nodes", "50", "--epsilon", 1, "--preview", "--json").json
    assert found["fits"] is True
    assert {each["name"] for each in found["methods"]} == {"ramp", "ramp, measured", "laplace", "ladder"}
    with Ledger.open(edges.with_name("ring.ledger"), read_only=True) as ledger:
        assert len(ledger) == 3


def test_an_answer_is_written_kept_and_plotted(defocus: Callable[..., Any], edges: Path) -> None:
    words = ("graph", edges, *SAID, "degree-histogram", "--set", "at_most=6", "--epsilon", 1, "--request", "monthly")
    ran = defocus(*words, "--out", "a.csv", "--plot", "a.png", "--json")
    assert ran.code == 0, ran.err
    assert [row["degree"] for row in ran.json["rows"]] == list(range(7))
    assert len(Path("a.csv").read_text(encoding="utf-8").splitlines()) == 8
    assert Path("a.png").stat().st_size > 1000
    again = defocus(*words, "--json")
    assert again.json["rows"] == ran.json["rows"]
    assert again.json["receipt"] == ran.json["receipt"]


def test_a_method_can_be_named(defocus: Callable[..., Any], edges: Path) -> None:
    ran = defocus("graph", edges, *SAID, "triangles", "--epsilon", 0.5, "--method", "ladder", "--json")
    assert ran.json["method"] == "ladder"
    refused = defocus("graph", edges, *SAID, "edges", "--epsilon", 0.5, "--method", "ladder")
    assert refused.code == 2
    assert "laplace" in refused.err


def test_several_statistics_are_listed_with_commas(defocus: Callable[..., Any], edges: Path) -> None:
    words = ("graph", edges, *SAID, "joint", "--set", "statistics=edges, triangles", "--epsilon", 1, "--json")
    assert list(defocus(*words).json["columns"]) == ["edges", "triangles"]


def test_names_of_nodes_come_from_a_file(defocus: Callable[..., Any], edges: Path) -> None:
    names = edges.with_name("names.txt")
    names.write_text("\n".join(map(str, range(50))), encoding="utf-8")
    ran = defocus(
        "graph", edges, "--unit", "edge", "--budget", 1, "--nodes", names, "degrees", "--epsilon", 1, "--json"
    )
    assert ran.code == 0, ran.err
    assert [row["node"] for row in ran.json["rows"]] == list(range(50))


@pytest.mark.parametrize("odd", [b"\xff\xfe", b"9" * 5000, b"x", b"\r", b""], ids=lambda line: ascii(line[:4]))
def test_no_line_of_a_file_of_names_can_fail(defocus: Callable[..., Any], edges: Path, odd: bytes) -> None:
    names = edges.with_name("names.txt")
    names.write_bytes(b"\n".join([*(str(i).encode() for i in range(50)), odd]))
    words = ("graph", edges, "--unit", "node", "--budget", 100, "--nodes", names, "edges", "--epsilon", 50, "--json")
    ran = defocus(*words)
    assert ran.code == 0, ran.err
    assert ran.json["rows"][0]["edges"] > 30


def test_a_person_with_several_edges_is_protected(defocus: Callable[..., Any], edges: Path) -> None:
    words = ("graph", edges, *SAID, "--per-person", 20, "edges", "--epsilon", 0.5)
    assert "40 (± 120)" in defocus(*words, "--preview").out
    assert defocus(*words).code == 0
    with Ledger.open(edges.with_name("ring.ledger"), read_only=True) as ledger:
        assert ledger.unit == dp.edge(per_person=20)
    refused = defocus("graph", edges, "--unit", "node", "--budget", 1, "--per-person", 3, "edges", "--epsilon", 0.5)
    assert refused.code == 2
    assert "leave --per-person out" in refused.err


def test_nodes_as_listed_are_declared(defocus: Callable[..., Any], edges: Path) -> None:
    words = ("graph", edges, "--unit", "edge", "--budget", 1, "edges", "--epsilon", 0.5)
    refused = defocus(*words)
    assert refused.code == 2
    assert "its nodes are public" in refused.err
    assert "a file with one name per line, or --nodes as-listed to say" in refused.err
    assert not edges.with_name("ring.ledger").exists()
    assert defocus(*words, "--nodes", "as-listed").code == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("squares",), "cannot be asked 'squares'"),
        (("stars", "--set", "size=3"), "no setting 'size'"),
        (("stars", "--set", "k"), "not a setting"),
        (("interactions",), "To fix: pass --set every=…."),
        (("degrees", "--set", "side=in"), "leave --set side out, or open the graph with --directed."),
        (("weights",), 'open it with --unit weight --bound … and --weights "name of the column".'),
        (("stars", "--set", "k=two"), "k must be a whole number"),
        (("edges", "--bound", "3"), "--bound"),
        (("edges", "--per-person", "0"), "--per-person must be"),
        (("edges", "--ends", "source"), "two columns"),
        (("edges", "--ends", "source,goal"), "no column 'goal'"),
        (("edges", "--out", "a.ods"), "ends in .ods"),
        (("edges", "--out", "nowhere/a.csv"), "no folder"),
        (("ask",), "cannot be asked"),
        (("close",), "cannot be asked"),
    ],
)
def test_refusals_come_before_the_charge(defocus: Callable[..., Any], edges: Path, words: Any, says: str) -> None:
    ran = defocus("graph", edges, *SAID, *words, "--epsilon", 0.5)
    assert ran.code == 2
    assert says in ran.err
    assert "To fix" in ran.err
    ledger = edges.with_name("ring.ledger")
    if ledger.exists():
        with Ledger.open(ledger, read_only=True) as book:
            assert len(book) == 1


def test_what_a_new_ledger_needs_is_named_by_options(defocus: Callable[..., Any], edges: Path) -> None:
    ran = defocus("graph", edges, "triangles", "--epsilon", 1, "--preview")
    assert ran.code == 1
    assert "give --unit and --budget as well" in ran.err
    assert "--dataset" not in ran.err
    assert not edges.with_name("ring.ledger").exists()


def test_nodes_that_are_nothing_are_refused(defocus: Callable[..., Any], edges: Path) -> None:
    ran = defocus("graph", edges, "--unit", "edge", "--budget", 1, "--nodes", "many", "edges", "--epsilon", 1)
    assert ran.code == 2
    assert "neither a number" in ran.err


def test_more_than_the_budget_is_refused_with_another_exit_code(defocus: Callable[..., Any], edges: Path) -> None:
    ran = defocus("graph", edges, *SAID, "edges", "--epsilon", 5)
    assert ran.code == 1
    assert "remaining" in ran.err


def test_without_numba_it_says_what_to_install_and_makes_no_ledger(
    defocus: Callable[..., Any], edges: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(machine_code, "import_module", missing)
    ran = defocus("graph", edges, *SAID, "edges", "--epsilon", 1)
    assert ran.code == 1
    assert "defocus[graph]" in ran.err
    assert [path.name for path in edges.parent.iterdir()] == [edges.name]


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("degree-histogram", "pass --nodes and a file of all nodes, one per line; it stays private."),
        ("degrees", "such as edges or triangles; or protect edges: --unit edge, --nodes …."),
    ],
)
def test_remedies_for_nodes_are_options(defocus: Callable[..., Any], edges: Path, question: str, says: str) -> None:
    ran = defocus("graph", edges, "--unit", "node", "--budget", 1, question, "--epsilon", 1)
    assert says in ran.err


def test_a_method_without_a_guess_is_named_as_an_option(defocus: Callable[..., Any], edges: Path) -> None:
    ran = defocus("graph", edges, *SAID, "triangles", "--epsilon", 1, "--method", "ramp")
    assert '--method "ramp, measured" gives one' in ran.out


def test_a_list_without_a_header_is_opened_as_such_and_its_first_line_not_shown(
    defocus: Callable[..., Any], edges: Path
) -> None:
    place = edges.with_name("plain.csv")
    place.write_text("11,12\n12,13\n", encoding="utf-8")
    refused = defocus("graph", place, *SAID, "edges", "--epsilon", 1)
    assert refused.code != 0
    assert "pass --no-header if it is an edge; or --header if it has the names" in " ".join(refused.err.split())
    assert "11" not in refused.err
    ran = defocus("graph", place, *SAID, "--no-header", "edges", "--epsilon", 1, "--json")
    assert ran.code == 0, ran.err


def test_columns_that_are_not_clear_are_asked_for_by_an_option_that_works(
    defocus: Callable[..., Any], edges: Path
) -> None:
    pq.write_table(pa.table({"a": [1], "b": [2]}), edges.with_name("odd.parquet"))
    refused = defocus("graph", edges.with_name("odd.parquet"), *SAID, "edges", "--epsilon", 1)
    assert "To fix: say it: --ends from_id,to_id." in " ".join(refused.err.split())
    both = defocus("graph", edges, *SAID, "--ends", "source,source", "edges", "--epsilon", 1)
    assert "name two different columns" in " ".join(both.err.split())

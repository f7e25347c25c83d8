"""Which ledger answers for a graph: one reading of the data, in memory or in an engine."""

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from defocus import Budget, edge
from defocus.errors import InvalidParameterError, LedgerMismatchError
from defocus.graphs.open import Holding, open_graph
from defocus.ledger import Ledger

CALLS = {"a": [0, 0, 0], "b": [1, 1, 1], "c": [1, 2, 3]}
SAID: dict[str, Any] = {"unit": edge(), "budget": Budget(1), "nodes": 4}


def test_a_ledger_answers_for_two_columns(tmp_path: Path) -> None:
    frame = pd.DataFrame(CALLS)
    said = {**SAID, "ledger": tmp_path / "l", "name": "calls"}
    with open_graph(frame, ends=("a", "b"), **said) as g:
        assert g.name == "calls"
        assert g.ledger.dataset == "calls, ends 'a' and 'b'"
        with pytest.raises(LedgerMismatchError, match="ends 'a' and 'b', you gave calls, ends 'a' and 'c'"):
            open_graph(frame, ends=("a", "c"), **(said | {"ledger": g.ledger}))
        with open_graph(frame, ends=("b", "a"), nodes=4, ledger=g.ledger) as turned:
            assert turned.name == "calls"
    with pytest.raises(LedgerMismatchError, match="dataset"):
        open_graph(frame, ends=("a", "c"), **said)
    with pytest.raises(LedgerMismatchError, match="dataset"):
        open_graph(frame, ends=("a", "b"), directed=True, **said)


def test_a_file_has_one_ledger_in_memory_and_in_an_engine(tmp_path: Path) -> None:
    for ending in ("parquet", "csv"):
        path = tmp_path / f"{ending}.{ending}"
        frame = pd.DataFrame(CALLS).rename(columns={"a": "source", "b": "target"})
        pq.write_table(pa.Table.from_pandas(frame), path) if ending == "parquet" else frame.to_csv(path, index=False)
        with open_graph(path, **SAID) as here, open_graph(path, engine="duckdb", **SAID) as there:
            assert here.ledger.dataset == there.ledger.dataset == f"{ending}, ends 'source' and 'target'"
        for engine in (None, "duckdb"):
            with pytest.raises(LedgerMismatchError, match="dataset"):
                open_graph(path, ends=("source", "c"), engine=engine, **SAID)
            with open_graph(path, ends=("source", "target"), engine=engine, **SAID) as again:
                assert again.remaining().epsilon == pytest.approx(1)


@pytest.mark.parametrize("directed", [False, True])
def test_a_ledger_that_was_made_before_stays_open(tmp_path: Path, directed: bool) -> None:
    earlier = "calls, directed" if directed else "calls"
    with Ledger.open(tmp_path / "l", budget=Budget(1), unit=edge(), dataset=earlier) as book:
        for place in (book, tmp_path / "l"):
            said = {**SAID, "ledger": place, "name": "calls", "ends": ("a", "b")}
            with pytest.raises(LedgerMismatchError, match="dataset"):
                open_graph(pd.DataFrame(CALLS), directed=not directed, **said)
            with open_graph(pd.DataFrame(CALLS), directed=directed, **said) as g:
                assert g.ledger.dataset == earlier


@pytest.mark.parametrize("name", ["x, directed", "x, ends 'a' and 'b'", "x, ends 'a' and 'b', directed"])
def test_names_that_read_like_a_reading_are_refused(tmp_path: Path, name: str) -> None:
    for said in ({"name": name, "ledger": tmp_path / "l"}, {"ledger": tmp_path / f"{name}.ledger"}):
        with pytest.raises(InvalidParameterError, match="cannot be called") as caught:
            open_graph([(0, 1)], **said, **SAID)
        assert "name=" in caught.value.fix
    assert not list(tmp_path.iterdir())


def test_columns_of_any_name_make_one_line() -> None:
    assert "\\n" in Holding("x", ("a\n", "b")).dataset
    long = [Holding("x", ("a" * 100, other)).dataset for other in ("b", "c")]
    assert len(set(long)) == 2
    assert all(len(each) == len("x, ends ") + 16 for each in long)

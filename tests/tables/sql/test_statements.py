"""The statements that are counted in ``benchmarks/`` are answered as DuckDB answers them, or refused with a remedy."""

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.mark.slow
@pytest.mark.parametrize(("which", "least"), [("airline", 30), ("shop and census", 136)])
def test_statements_are_right_or_refused(monkeypatch: pytest.MonkeyPatch, which: str, least: int) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    statements = importlib.import_module("statements")
    found = statements.counted(*statements.LISTS[which], show=True)
    assert (found["wrong"], found["raw error"]) == (0, 0)
    assert found["right"] >= least

"""Answers made by hand, with a real charge behind them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.answers.making import charged, column

from defocus.answers import AnswerColumn, Effect, Released, Rule
from defocus.tables.answers import answered as made


def answered(folder: Path, keys: Any = None, columns: Sequence[AnswerColumn] | None = None, **more: Any) -> Released:
    named = {"ward": ["surgery", "cardiology", "oncology"]} if keys is None else keys
    return made(
        keys=pa.table(named),
        columns=(column(), column("stay", [4.123, 12.0, 7.77], [0.3, 3, 0.6], integral=False))
        if columns is None
        else tuple(columns),
        question="count and mean stay by ward",
        receipt=charged(folder),
        rules=(Rule("a patient counts with at most 5 visits", Effect.BOUND), "stays are clipped to [0, 30]"),
        **more,
    )

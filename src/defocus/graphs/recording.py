"""Answers about graphs as a ledger keeps them: names of nodes keep their types as far as JSON has them."""

from datetime import datetime
from typing import Any

import numpy as np

from defocus.answers.recording import asked_in, asked_out, columns_in, columns_out, reading
from defocus.answers.spelling import spelt
from defocus.graphs.answers import GraphAnswer
from defocus.graphs.questions import Result
from defocus.ledger import Receipt

__all__ = ["from_record", "to_record"]

_LONG = 10**1000
"""Whole numbers from here on are kept as text: JSON is read with limits of its own."""


def to_record(answer: GraphAnswer) -> dict[str, Any]:
    """The answer with JSON types only. Names of nodes that are neither text nor numbers are kept as text."""
    return {
        "kind": "graph",
        "keys": {name: _keys(values) for name, values in answer.keys.items()},
        "columns": columns_out(answer.columns),
        "question": answer.question,
        "rules": list(answer.rules),
        "method": answer.method,
        "processing": list(answer.result.processing),
        "notes": list(answer.result.notes),
        "asked": asked_out(answer.asked),
    }


def from_record(record: Any, receipt: Receipt) -> GraphAnswer:
    """The answer that :func:`to_record` wrote down, with the receipt that paid for it."""
    with reading(receipt, "a graph"):
        keys = {name: _listed(values) for name, values in record["keys"].items()}
        columns = columns_in(record["columns"], absolute=True)
        result = Result(columns, keys, tuple(record["processing"]), tuple(record["notes"]))
        asked = asked_in(record.get("asked"))
        return GraphAnswer(result, record["question"], receipt, tuple(record["rules"]), record["method"], asked)


def _listed(values: Any) -> Any:
    if isinstance(values, dict) and "moments" in values:
        return [datetime.fromisoformat(text) for text in values["moments"]]
    return range(*values["range"]) if isinstance(values, dict) else list(values)


def _keys(values: Any) -> Any:
    if isinstance(values, range):
        return {"range": [values.start, values.stop, values.step]}
    listed = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    if listed and all(type(x) is datetime and x.tzinfo is None for x in listed):
        return {"moments": [x.isoformat() for x in listed]}
    return [_plain(x) for x in listed]


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    short = isinstance(value, int | np.integer) and abs(int(value)) < _LONG
    return int(value) if short else spelt(value)

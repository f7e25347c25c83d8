"""Answers as a ledger keeps them: the same request asked again is answered from there, free of charge."""

import math
from typing import Any

import numpy as np

from defocus.errors import LedgerDamagedError
from defocus.graphs.answers import GraphAnswer
from defocus.graphs.columns import Column
from defocus.graphs.questions import Result
from defocus.ledger import Receipt

__all__ = ["from_record", "to_record"]

_NUMBERS = ("values", "errors", "low", "high")


def to_record(answer: GraphAnswer) -> dict[str, Any]:
    """The answer with JSON types only. Names of nodes that are neither text nor numbers are kept as text."""
    return {
        "kind": "graph",
        "keys": {name: _keys(values) for name, values in answer.keys.items()},
        "columns": [
            {"name": column.name, "how": column.how, "integral": column.integral}
            | {part: [x if math.isfinite(x) else str(x) for x in getattr(column, part).tolist()] for part in _NUMBERS}
            for column in answer.columns
        ],
        "question": answer.question,
        "rules": list(answer.rules),
        "method": answer.method,
        "processing": list(answer.result.processing),
        "notes": list(answer.result.notes),
    }


def from_record(record: Any, receipt: Receipt) -> GraphAnswer:
    """The answer that :func:`to_record` wrote down, with the receipt that paid for it."""
    try:
        columns = tuple(
            Column(
                name=column["name"],
                how=column["how"],
                integral=column["integral"],
                **{part: np.array([float(x) for x in column[part]], dtype=np.float64) for part in _NUMBERS},
            )
            for column in record["columns"]
        )
        keys = {
            name: range(*values["range"]) if isinstance(values, dict) else list(values)
            for name, values in record["keys"].items()
        }
        result = Result(columns, keys, tuple(record["processing"]), tuple(record["notes"]))
        return GraphAnswer(result, record["question"], receipt, tuple(record["rules"]), record["method"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise LedgerDamagedError(
            f"What the ledger kept for charge {receipt.sequence} is not the answer to a question about a graph.",
            fix="ask under another request name.",
        ) from None


def _keys(values: Any) -> Any:
    if isinstance(values, range):
        return {"range": [values.start, values.stop, values.step]}
    listed = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    return [x if x is None or isinstance(x, bool | int | str) else _plain(x) for x in listed]


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, np.integer) else str(value)

"""Answers as a ledger keeps them: the same question asked again is answered from there, free of charge."""

import math
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from defocus.errors import LedgerDamagedError
from defocus.ledger import Receipt
from defocus.privacy.budgets import Budget
from defocus.privacy.wire import read_number, write_number
from defocus.tables.answer_columns import AnswerColumn
from defocus.tables.answers import Answer

__all__ = ["from_record", "to_record"]

_NUMBERS = ("values", "errors", "low", "high")
_TYPES = {
    str(kind): kind
    for kind in (pa.bool_(), pa.int64(), pa.int32(), pa.string(), pa.date32(), pa.timestamp("us"), pa.null())
}


def to_record(answer: Answer) -> dict[str, Any]:
    """The answer with JSON types only, for :meth:`~defocus.ledger.Ledger.record`; nothing of it is lost.

    Keys of other types than a question can have are kept as text.
    """
    keys, asked = answer.keys, answer.asked
    return {
        "keys": [
            {"name": name, "type": _type(column.type), "values": [_out(value) for value in column.to_pylist()]}
            for name, column in zip(keys.column_names, keys.columns, strict=True)
        ],
        "columns": [
            {"name": column.name, "how": column.how, "integral": column.integral}
            | {part: [_number_out(x) for x in getattr(column, part).tolist()] for part in _NUMBERS}
            for column in answer.columns
        ],
        "question": answer.question,
        "rules": list(answer.rules),
        "threshold": answer.threshold,
        "processing": list(answer.processing),
        "arranged": answer.arranged,
        "asked": None if asked is None else [write_number(asked.epsilon), write_number(asked.delta)],
    }


def from_record(record: Any, receipt: Receipt) -> Answer:
    """The answer that :func:`to_record` wrote down, with the receipt that paid for it."""
    try:
        keys = {key["name"]: _array(key["type"], key["values"]) for key in record["keys"]}
        columns = tuple(
            AnswerColumn(
                name=column["name"],
                how=column["how"],
                integral=column["integral"],
                **{part: np.array([_number_in(x) for x in column[part]], dtype=np.float64) for part in _NUMBERS},
            )
            for column in record["columns"]
        )
        return Answer(
            keys=pa.table(keys),
            columns=columns,
            question=record["question"],
            receipt=receipt,
            rules=tuple(record["rules"]),
            threshold=record["threshold"],
            processing=tuple(record["processing"]),
            arranged=record["arranged"],
            asked=_asked(record.get("asked")),
        )
    except (KeyError, TypeError, ValueError, AttributeError, pa.ArrowException):
        raise LedgerDamagedError(
            f"What the ledger kept for charge {receipt.sequence} is not the answer to a question about a table.",
            fix="ask under another request name.",
        ) from None


def _asked(written: Any) -> Budget | None:
    """What was asked for; answers that were kept by earlier versions do not say."""
    return None if written is None else Budget(*map(read_number, written))


def _type(kind: pa.DataType) -> str:
    return str(kind) if str(kind) in _TYPES else str(pa.string())


def _array(kind: str, values: list[Any]) -> pa.Array:
    read = {"date32[day]": date.fromisoformat, "timestamp[us]": datetime.fromisoformat}.get(kind)
    return pa.array([x if x is None or read is None else read(x) for x in values], _TYPES[kind])


def _out(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    return value.isoformat() if isinstance(value, date) else str(value)


def _number_out(number: float) -> float | str:
    return number if math.isfinite(number) else str(number)


def _number_in(number: float | str) -> float:
    return float(number)

"""Answers about tables as a ledger keeps them: keys keep their types."""

from datetime import date, datetime
from typing import Any

import pyarrow as pa

from defocus.answers.recording import asked_in, asked_out, columns_in, columns_out, reading
from defocus.ledger import Receipt
from defocus.tables.answers import Answer

__all__ = ["from_record", "to_record"]

_TYPES = {
    str(kind): kind
    for kind in (pa.bool_(), pa.int64(), pa.int32(), pa.string(), pa.date32(), pa.timestamp("us"), pa.null())
}


def to_record(answer: Answer) -> dict[str, Any]:
    """The answer with JSON types only, for :meth:`~defocus.ledger.Ledger.record`; nothing of it is lost.

    Keys of other types than a question can have are kept as text.
    """
    keys = answer.keys
    return {
        "keys": [
            {"name": name, "type": _type(column.type), "values": [_out(value) for value in column.to_pylist()]}
            for name, column in zip(keys.column_names, keys.columns, strict=True)
        ],
        "columns": columns_out(answer.columns),
        "question": answer.question,
        "rules": list(answer.rules),
        "threshold": answer.threshold,
        "processing": list(answer.processing),
        "arranged": answer.arranged,
        "asked": asked_out(answer.asked),
    }


def from_record(record: Any, receipt: Receipt) -> Answer:
    """The answer that :func:`to_record` wrote down, with the receipt that paid for it."""
    with reading(receipt, "a table"):
        keys = {key["name"]: _array(key["type"], key["values"]) for key in record["keys"]}
        return Answer(
            keys=pa.table(keys),
            columns=columns_in(record["columns"], absolute=False),
            question=record["question"],
            receipt=receipt,
            rules=tuple(record["rules"]),
            threshold=record["threshold"],
            processing=tuple(record["processing"]),
            arranged=record["arranged"],
            asked=asked_in(record.get("asked")),
        )


def _type(kind: pa.DataType) -> str:
    return str(kind) if str(kind) in _TYPES else str(pa.string())


def _array(kind: str, values: list[Any]) -> pa.Array:
    read = {"date32[day]": date.fromisoformat, "timestamp[us]": datetime.fromisoformat}.get(kind)
    return pa.array([x if x is None or read is None else read(x) for x in values], _TYPES[kind])


def _out(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    return value.isoformat() if isinstance(value, date) else str(value)

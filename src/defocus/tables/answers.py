"""Answers about tables: the order of their groups, and how a ledger keeps them."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from defocus.answers import Released
from defocus.answers.answer import read, written
from defocus.answers.columns import AnswerColumn
from defocus.answers.rules import Effect, rules_of
from defocus.errors import InvalidParameterError
from defocus.ledger import Receipt

__all__ = ["answered", "from_record", "to_record"]

_THINGS = ("group", "groups")
_THRESHOLD = 0.1
_EARLIER = {"counts with at most": Effect.BOUND, "no folder ": Effect.TOLD}
"""Words of rules in records that do not say what a rule does."""


def answered(
    keys: pa.Table,
    columns: Sequence[AnswerColumn],
    question: str,
    receipt: Receipt,
    rules: Sequence[str] = (),
    *,
    ordered: bool = False,
    **more: Any,
) -> Released:
    """The answer of these groups: in the order of their keys, never in that of the data.

    Keys that are ``ordered`` are public keys in an order that depends on nothing else.
    """
    for i, field in enumerate(keys.schema):
        if pa.types.is_dictionary(field.type):
            keys = keys.set_column(i, field.name, keys.column(i).cast(field.type.value_type))
    named = dict(zip(keys.column_names, keys.columns, strict=True))
    given: dict[str, Any] = {"threshold": _THRESHOLD, "things": _THINGS, **more}
    answer = Released(named, tuple(columns), question, receipt, rules_of(rules), **given)
    if not named or ordered:
        return answer
    if keys.group_by(keys.column_names).aggregate([]).num_rows != keys.num_rows:
        raise InvalidParameterError("A key appears twice in an answer.", fix="name each group once.")
    order = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names])
    return replace(
        answer,
        keys={name: column.take(order) for name, column in named.items()},
        columns=tuple(column.taken(order.to_numpy()) for column in answer.columns),
    )


_TYPES = {
    str(kind): kind
    for kind in (
        pa.bool_(),
        pa.int64(),
        pa.int32(),
        pa.float64(),
        pa.string(),
        pa.date32(),
        pa.timestamp("us"),
        pa.null(),
    )
}


def to_record(answer: Released) -> dict[str, Any]:
    """The answer with JSON types only, for :meth:`~defocus.ledger.Ledger.record`; nothing of it is lost.

    Keys of other types than a question can have are kept as text.
    """
    keys = [
        {"name": name, "type": _type(column.type), "values": _values(column)} for name, column in answer.keys.items()
    ]
    more = {"notes": list(answer.notes), "things": list(answer.things), "figure": answer.figure}
    shown = {"threshold": answer.threshold, "arranged": bool(answer.processing), **more}
    return {"keys": keys, **written(answer), **shown}


def from_record(record: Any, receipt: Receipt) -> Released:
    """The answer that :func:`to_record` wrote down, with the receipt that paid for it; groups in their order there."""

    def made(**parts: Any) -> Released:
        keys = {key["name"]: _array(key["type"], key["values"]) for key in record["keys"]}
        return Released(
            keys=keys,
            threshold=record["threshold"],
            notes=tuple(record.get("notes", ())),  # earlier versions had none of these
            things=tuple(record.get("things", _THINGS)),
            figure=record.get("figure", "bars"),
            **parts,
        )

    return read(record, receipt, "a table", made, absolute=False, earlier=_EARLIER)


def _type(kind: pa.DataType) -> str:
    return str(kind) if str(kind) in _TYPES else str(pa.string())


def _array(kind: str, values: list[Any]) -> pa.Array:
    parse = {"date32[day]": date.fromisoformat, "timestamp[us]": datetime.fromisoformat}.get(kind)
    return pa.array([x if x is None or parse is None else parse(x) for x in values], _TYPES[kind])


def _values(column: Any) -> list[Any]:
    values = column.to_pylist()
    return values if str(column.type) in {"string", "int64", "bool"} else [_out(value) for value in values]


def _out(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return value.isoformat() if isinstance(value, date) else str(value)

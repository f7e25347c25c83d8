"""The column that names the person: whoever differs in the data differs in the rows that are counted."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from defocus.engines.schema import Kind
from defocus.engines.sources import Source, without
from defocus.engines.syntax import column, named, sub
from defocus.errors import WrongKindError

__all__ = ["naming"]


def naming(opened: Source, name: str) -> Source:
    """The source with a column that can name the person.

    Guarantee:
        No two different values of the column in the source are one value other than NULL in the relation. What one
        person contributes is bounded for each value of the relation; if two people shared one, adding the second
        could push the first out of the bound, and the answer would move by twice the sensitivity. A person whose
        value has no counterpart is NULL: nobody, and in no answer.

        Whole numbers, text, dates, booleans and moments in microseconds keep their values, and may be declared to be
        text. Text declared to be integers is one only as an integer is written: "1", and neither "01" nor "1.4".
        Anything else is refused by its type, whatever is in it.
    Assumes:
        pandas and polars columns of Python objects name people by their text: 1 and "1" are the same person.
    """
    column = opened.schema.usable(name)
    own, kind = opened.own.usable(name).kind, column.kind
    if not kind.countable:
        raise WrongKindError(
            f"{name!r:.60} is of kind {kind}, which cannot name a person exactly.", fix="use a whole number or text."
        )
    if not own.countable or _rounded(opened, name):
        raise WrongKindError(
            f"{name!r:.60} holds values that differ by less than {kind} can tell, so two people could become one.",
            fix="name people by whole numbers or text: store the column as such (in pandas, as Int64 or string).",
        )
    if (own, kind) == (Kind.TEXT, Kind.INTEGER):
        return replace(opened, relation=_as_written(opened, name))
    if kind not in {own, Kind.TEXT}:
        raise WrongKindError(
            f"{name!r:.60} holds {own} and was declared {kind}, which could make one person of two.",
            fix=f"leave out what is declared about it, so that people are named by {own}, or declare it as text.",
        )
    return opened


def _rounded(opened: Source, name: str) -> bool:
    """Whether the column is of a type that is read coarser than it is stored, here or on the way into the engine."""
    stored = opened.origin.stored().get(name)
    if stored is None:
        return name in opened.engine.finer(opened.raw)
    return _is_finer(stored.value_type if pa.types.is_dictionary(stored) else stored)


def _is_finer(stored: Any) -> bool:
    """Days that are stored in milliseconds, and nanoseconds, which DuckDB drops itself from old Parquet files."""
    return bool(pa.types.is_date64(stored) or (pa.types.is_timestamp(stored) and stored.unit == "ns"))


def _as_written(opened: Source, name: str) -> exp.Select:
    """The rows with an integer where the text is the one way to write it, and NULL elsewhere."""
    kinds = {key: Kind(kind) for key, kind in opened.origin.types.items()} | {name: Kind.TEXT}
    texts = opened.engine.canonical(opened.raw, kinds)
    text = column(name)
    whole = exp.TryCast(this=text, to=exp.DataType.build("BIGINT"))
    same = exp.EQ(this=exp.Cast(this=whole.copy(), to=exp.DataType.build("TEXT")), expression=text.copy())
    number = exp.Case(ifs=[exp.If(this=same, true=whole)])
    made = [named(number if key == name else column(key), key) for key in opened.schema.names]
    select = exp.select(*made).from_(sub(texts, "t"))
    return without(select, opened.origin.missing, opened.schema)

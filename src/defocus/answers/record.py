"""Answers as a ledger keeps them: the same question asked again is answered from there, free of charge.

Ledgers outlive code. What is written here is read by every later version: fields are added, never renamed.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from defocus.answers.answer import Released
from defocus.answers.columns import NUMBERS, AnswerColumn, Tails
from defocus.answers.rules import Effect, rules_in, rules_out
from defocus.errors import LedgerDamagedError
from defocus.ledger import Receipt
from defocus.privacy.budgets import Budget
from defocus.privacy.wire import read_number, write_number

__all__ = ["columns_in", "columns_out", "read", "written"]


def columns_out(columns: Sequence[AnswerColumn]) -> list[dict[str, Any]]:
    """The columns with JSON types only; numbers that are not finite as text."""
    return [
        {
            "name": column.name,
            "how": column.how,
            "integral": column.integral,
            "absolute": column.absolute,
            "tails": str(column.tails),
        }
        | {part: [x if math.isfinite(x) else str(x) for x in getattr(column, part).tolist()] for part in NUMBERS}
        for column in columns
    ]


def columns_in(written: Any, *, absolute: bool) -> tuple[AnswerColumn, ...]:
    """The columns that :func:`columns_out` wrote; earlier versions did not say what is ``absolute``, nor the tails."""
    return tuple(
        AnswerColumn(
            name=column["name"],
            how=column["how"],
            integral=column["integral"],
            absolute=bool(column.get("absolute", absolute)),
            tails=Tails(column.get("tails", Tails.UNKNOWN)),
            **{part: np.array([float(x) for x in column[part]], dtype=np.float64) for part in NUMBERS},
        )
        for column in written
    )


def written(answer: Released) -> dict[str, Any]:
    """What every record of an answer has, with JSON types only; rooms add the keys."""
    asked = answer.asked
    return {
        "columns": columns_out(answer.columns),
        "question": answer.question,
        **rules_out(answer.rules),
        "processing": list(answer.processing),
        "asked": None if asked is None else [write_number(asked.epsilon), write_number(asked.delta)],
    }


def read(
    record: Any,
    receipt: Receipt,
    about: str,
    make: Callable[..., Released],
    *,
    absolute: bool,
    earlier: Mapping[str, Effect],
) -> Released:
    """The answer that ``make`` makes of the parts that :func:`written` wrote; it finds the others in the record.

    Whatever is wrong with a record is told as a damaged ledger. Answers that were kept by earlier versions do not say
    what was asked for, and not whether errors are ``absolute`` nor what a rule does, which ``earlier`` knows.
    """
    try:
        asked = record.get("asked")
        return make(
            columns=columns_in(record["columns"], absolute=absolute),
            question=record["question"],
            receipt=receipt,
            rules=rules_in(record, earlier),
            processing=tuple(record["processing"]),
            asked=None if asked is None else Budget(*map(read_number, asked)),
        )
    except (KeyError, TypeError, ValueError, AttributeError, pa.ArrowException):
        raise LedgerDamagedError(
            f"What the ledger kept for charge {receipt.sequence} is not the answer to a question about {about}.",
            fix="ask under another request name.",
        ) from None

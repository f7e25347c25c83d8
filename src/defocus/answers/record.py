"""Answers as a ledger keeps them: the same question asked again is answered from there, free of charge.

Ledgers outlive code. What is written here is read by every later version: fields are added, never renamed.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from defocus.answers.columns import NUMBERS, AnswerColumn, Tails
from defocus.errors import LedgerDamagedError
from defocus.ledger import Receipt
from defocus.privacy.budgets import Budget
from defocus.privacy.wire import read_number, write_number

__all__ = ["asked_in", "asked_out", "columns_in", "columns_out", "reading"]


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


def asked_out(asked: Budget | None) -> list[Any] | None:
    """What an answer was allowed to cost."""
    return None if asked is None else [write_number(asked.epsilon), write_number(asked.delta)]


def asked_in(written: Any) -> Budget | None:
    """The same again; answers that were kept by earlier versions do not say."""
    return None if written is None else Budget(*map(read_number, written))


@contextmanager
def reading(receipt: Receipt, about: str) -> Iterator[None]:
    """Whatever is wrong with a record that is read in here is told as a damaged ledger."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, pa.ArrowException):
        raise LedgerDamagedError(
            f"What the ledger kept for charge {receipt.sequence} is not the answer to a question about {about}.",
            fix="ask under another request name.",
        ) from None

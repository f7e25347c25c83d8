"""Columns made by hand, and a real charge behind them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from defocus.answers import Released
from defocus.answers.columns import AnswerColumn
from defocus.ledger import Ledger, Receipt
from defocus.privacy.budgets import Budget
from defocus.privacy.events import DiscreteLaplace, Event
from defocus.privacy.units import user

HOSTILE = [
    "<script>alert(1)</script>",
    "=HYPERLINK(1)",
    "+1",
    "-1",
    "@SUM(A1)",
    "\tx",
    "a,b",
    'say "no"',
    "line\nbreak",
    "\x1b[2Jgone",
    "\u202edesrever",
    "$x^2$",
    "$\\frac{1$",
    "",
    "'quoted",
    "患者",
    "&amp;",
]


def opened(folder: Path) -> Ledger:
    return Ledger.open(
        folder / "visits.ledger", budget=Budget(3, 1e-6), unit=user("patient_id"), dataset="ward <visits>"
    )


def charged(folder: Path, event: Event | None = None, purpose: str = "visits by ward") -> Receipt:
    with opened(folder) as ledger:
        return ledger.charge(event or DiscreteLaplace(10, 5), purpose=purpose, who="Ada")


def column(
    name: str = "visits",
    values: Sequence[float] | NDArray[np.float64] = (1041.2, -3.7, 220.0),
    errors: Sequence[float] | float = 14.1,
    *,
    integral: bool = True,
) -> AnswerColumn:
    x = np.array(values, dtype=float)
    spread = np.broadcast_to(np.array(errors, dtype=float), x.shape)
    return AnswerColumn(name, x, spread, x - 2 * spread, x + 2 * spread, integral, f"noise of {name}")


def released(folder: Path, keys: Mapping[str, Any], *columns: AnswerColumn) -> Released:
    return Released(keys, columns, "visits", charged(folder))

from collections.abc import Iterator
from pathlib import Path

import pytest

from defocus.ledger import Ledger
from defocus.privacy.budgets import Budget
from defocus.privacy.units import user


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    terms = {"unit": user("patient_id"), "dataset": "ward visits"}
    with Ledger.open(tmp_path / "visits.ledger", budget=Budget(3, 1e-6), **terms) as book:  # type: ignore[arg-type]
        yield book

from collections.abc import Iterator
from pathlib import Path

import pytest

from defocus import Budget, user
from defocus.ledger import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    unit = user("patient_id")
    with Ledger.open(tmp_path / "visits.ledger", budget=Budget(3, 1e-5), unit=unit, dataset="ward visits") as book:
        yield book

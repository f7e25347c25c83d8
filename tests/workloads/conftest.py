from collections.abc import Iterator
from pathlib import Path

import pytest

from defocus import Budget, rows
from defocus.ledger import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "visits.ledger", budget=Budget(3, 1e-5), unit=rows(), dataset="ward visits") as book:
        yield book

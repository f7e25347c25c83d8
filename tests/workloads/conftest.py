from collections.abc import Iterator
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it has no types of its own

from defocus import Budget, rows
from defocus.ledger import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "visits.ledger", budget=Budget(rho=3), unit=rows(), dataset="ward visits") as book:
        yield book


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """As in a plan: small matrices on busy cores are multiplied faster without help."""
    with threadpool_limits(1):
        yield

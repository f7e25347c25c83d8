import pytest
from tests.answers.making import charged
from tests.release.conftest import ledger

from defocus.ledger import Receipt

__all__ = ["ledger", "receipt"]


@pytest.fixture(scope="package")
def receipt(tmp_path_factory: pytest.TempPathFactory) -> Receipt:
    return charged(tmp_path_factory.mktemp("receipts"))

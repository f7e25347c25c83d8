from tests.release.conftest import ledger

__all__ = ["ledger"]

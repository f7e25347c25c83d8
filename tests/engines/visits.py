"""A table of visits to a hospital, opened with a ledger of its own."""

from pathlib import Path
from typing import Any

import defocus as dp
from defocus.tables.table import Table


def opened(data: Any, folder: Path, **more: Any) -> Table:
    return dp.open(data, unit=dp.user("patient"), budget=dp.Budget(1000), ledger=folder / "v.ledger", name="v", **more)

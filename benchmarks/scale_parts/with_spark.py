"""The question on local Spark, timed as the peers of tables.py are."""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tables_parts"))

from asking import opened, release
from places import session
from protocol import measure


def begin(path: str) -> Any:
    """The opened table, and what keeps it open. The start of Spark is timed apart, as loading."""
    stack = ExitStack()
    spark = stack.enter_context(session())
    return stack.enter_context(opened(path, engine=spark)), stack


if __name__ == "__main__":
    measure("defocus", begin, lambda ready: release(ready[0]))

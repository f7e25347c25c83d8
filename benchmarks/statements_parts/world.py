"""What a statement can be asked of: tables, whom they are about, and what their owner declared."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import pyarrow as pa


@final
@dataclass(frozen=True, slots=True)
class World:
    """Private tables of the same people, the first under ``name``, and public tables beside them."""

    name: str
    person: str
    tables: Mapping[str, pa.Table]
    declared: Mapping[str, Any]
    private: tuple[str, ...] = ()
    public: tuple[str, ...] = field(default=())
    rows: int = 64
    """How many rows one person counts with at most: nobody has more, after joins either."""

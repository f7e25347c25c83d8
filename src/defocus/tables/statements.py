"""One statement of a release, as people look at it before it is sent."""

from dataclasses import dataclass
from typing import final

__all__ = ["Statement"]


@final
@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a release: what it is for, its text, and the work it asks for, outermost first."""

    purpose: str
    sql: str
    work: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([self.purpose, *(f"  {line}" for line in self.work)])

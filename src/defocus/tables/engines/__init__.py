"""Where tables are computed. An engine is one small file that keeps the promises of :class:`Engine`."""

from defocus.tables.engines.duckdb import DuckDbEngine
from defocus.tables.engines.engine import Engine, integers

__all__ = ["DuckDbEngine", "Engine", "integers"]

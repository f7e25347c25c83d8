"""Where tables are computed. An engine is one small file that keeps the promises of :class:`Engine`."""

from defocus.engines.duckdb import DuckDbEngine
from defocus.engines.engine import Engine, integers

__all__ = ["DuckDbEngine", "Engine", "integers"]

"""Floor 6: tables. Private statistics on tables of people, computed where the data is."""

from defocus.tables.columns import Column, Schema
from defocus.tables.kinds import Kind

__all__ = ["Column", "Kind", "Schema"]

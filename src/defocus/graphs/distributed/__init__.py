"""Graphs whose edges stay where they are: counted in SQL by an engine, so that they need not fit in memory."""

__all__: list[str] = []

"""Refusals of the graphs room. They depend on what is public about a graph, never on an edge."""

from collections.abc import Iterable

from defocus.errors.base import DefocusError

__all__ = ["UnknownQuestionError"]


class UnknownQuestionError(DefocusError, AttributeError):
    """A graph was asked something that no method of it asks.

    >>> print(UnknownQuestionError("betweenness", ["edges", "triangles"]))
    A graph has no betweenness.
    To fix: ask one of edges(), triangles().
    """

    def __init__(self, name: str, known: Iterable[str]) -> None:
        asks = ", ".join(f"{each}()" for each in known)
        super().__init__(f"A graph has no {name[:60]}.", fix=f"ask one of {asks}.")

"""Which rules about a graph no interval tells."""

from collections.abc import Sequence

__all__ = ["biased"]

_BIASING = (
    "at each node, at most",
    "up to a cap at each node",
    "where a node would have more",
)
"""Rules that take edges away, by words that are in them."""


def biased(rules: Sequence[str]) -> list[str]:
    """What takes edges away by rule, which no interval tells: a line, if there is anything.

    >>> biased(["an edge from a node to itself is left out", "at each node, at most 9 of its edges count"])
    ['not in the intervals: at each node, at most 9 of its edges count']
    """
    found = [rule for rule in rules if any(words in rule for words in _BIASING)]
    return [f"not in the intervals: {'; '.join(found)}"] if found else []

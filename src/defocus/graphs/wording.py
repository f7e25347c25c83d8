"""Rules that take edges away, which no interval tells: how they are worded, and how they are known again."""

from collections.abc import Sequence

__all__ = ["INTERVAL", "NOISE_ONLY", "WEIGHTS_CUT", "beyond", "biased", "cap_found", "capped", "covered", "projected"]

INTERVAL = "95 % interval"
NOISE_ONLY = "95 % of the noise only"
"""What stands above intervals, and above those that do not hold the truth as often, since edges are left out."""
WEIGHTS_CUT = "weights are cut to their declared range"

_CAPPED = "at each node, at most"
_CAP_FOUND = "count up to a cap at each node, which is found"
_PROJECTED = "are left out where a node would have more than"


def capped(most: int, what: str) -> str:
    """A cap on what counts at a node."""
    return f"{_CAPPED} {most} of its {what} count"


def cap_found(what: str) -> str:
    """The same, where the cap is found."""
    return f"{what} {_CAP_FOUND}; what is beyond it is lost"


def projected(most: object) -> str:
    """Edges beyond a largest degree."""
    return f"edges {_PROJECTED} {most}"


def biased(rules: Sequence[str]) -> list[str]:
    """What takes edges away by rule, which no interval tells: a line, if there is anything.

    Answers keep their rules as sentences, so they are known by the words that the functions above put into them.

    >>> biased(["an edge from a node to itself is left out", capped(9, "edges")])
    ['not in the intervals: at each node, at most 9 of its edges count']
    """
    found = beyond(rules)
    return [f"not in the intervals: {'; '.join(found)}"] if found else []


def beyond(rules: Sequence[str]) -> list[str]:
    """The rules that take edges or parts of weights away: how much that is stays private."""
    return [rule for rule in rules if any(words in rule for words in (_CAPPED, _CAP_FOUND, _PROJECTED, WEIGHTS_CUT))]


def covered(rules: Sequence[str]) -> str:
    """What intervals hold, and how often.

    >>> covered([capped(9, "edges")])
    'the noise only, with 95 %; the truth may lie outside: at each node, at most 9 of its edges count'
    """
    found = beyond(rules)
    return (
        f"the noise only, with 95 %; the truth may lie outside: {'; '.join(found)}" if found else "the truth, with 95 %"
    )

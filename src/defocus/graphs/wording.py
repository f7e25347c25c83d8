"""What a release about a graph promises, in plain words."""

from collections.abc import Sequence

from defocus.errors import UnsupportedEventError
from defocus.ledger import Terms
from defocus.privacy.events import Event
from defocus.privacy.expressions import unparse
from defocus.privacy.units import Adjacency, Unit
from defocus.release.promises import Promise, promise

__all__ = ["alone", "biased", "cost", "odds", "owed", "protection"]

_LONGEST = 300
_BIASING = (
    "at each node, at most",
    "up to a cap at each node",
    "where a node would have more",
    "one of the nodes, is left",
)
"""Rules that take edges away, by words that are in them."""


def alone(event: Event, terms: Terms) -> Promise | None:
    """(epsilon, delta) and posterior odds of one event alone, or None if no accountant expresses it."""
    try:
        return promise(event, terms.budget, terms.unit.adjacency)
    except UnsupportedEventError:
        return None


def protection(unit: Unit, dataset: str) -> str:
    """What stays hidden."""
    same = "with or without it" if unit.adjacency is Adjacency.ADD_REMOVE else "with it or with another in its place"
    return f"{unit}, in {dataset}: every answer comes out almost as often {same}"


def biased(rules: Sequence[str]) -> list[str]:
    """What takes edges away by rule, which no interval tells: a line, if there is anything.

    >>> biased(["an edge from a node to itself is left out", "at each node, at most 9 of its edges count"])
    ['not in the intervals: at each node, at most 9 of its edges count']
    """
    found = [rule for rule in rules if any(words in rule for words in _BIASING)]
    return [f"not in the intervals: {'; '.join(found)}"] if found else []


def odds(promised: Promise | None, unit: Unit) -> list[str]:
    """What the guarantee means for one edge or node, in odds."""
    if promised is None:
        return ["no accountant can put this answer alone into odds; the ledger's budget holds all the same"]
    exception = f", except with probability {promised.delta:.3g}" if promised.delta else ""
    return [
        (
            f"whatever someone knows already, this answer multiplies their odds about one {unit.kind} by at most"
            f" {promised.odds:.4g}{exception}"
        ),
        f"who was 50 % sure of something about it is at most {100 * promised.posterior:.3g} % sure afterwards",
    ]


def cost(promised: Promise | None) -> str:
    """What a release costs by itself."""
    return "in epsilon: not known for this answer alone" if promised is None else f"{promised} for this answer alone"


def owed(event: Event) -> str:
    """The same as the ledger writes it."""
    text = unparse(event)
    return f"as an event: {text if len(text) <= _LONGEST else f'{text[: _LONGEST - 1]}…'}"

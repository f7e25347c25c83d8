"""What a question about a graph is, and the ways in which one can be answered.

A question lists its methods for a budget, each with its event and the error that is to be expected of it, all from
public facts. The one that errs least is taken unless one is named. Only after the charge does it see the data.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, final, runtime_checkable

from defocus.answers.columns import AnswerColumn
from defocus.errors import InvalidParameterError, choice
from defocus.graphs.data import Data
from defocus.graphs.public import Public
from defocus.mechanisms.mechanism import NOISES
from defocus.noise import Bits
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event

__all__ = [
    "TIME",
    "Checking",
    "Foretelling",
    "InSql",
    "Method",
    "Question",
    "Result",
    "Silent",
    "chosen",
    "foretold",
    "silent",
]

TIME = "from"
"""What the key of results along time is called: when each step begins."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What a method releases: columns, what their entries are about, and what was done to them.

    ``keys`` has one public value for each entry, such as ``{"degree": range(100)}``; it is empty for single numbers.
    ``notes`` are sentences that became known by paying, such as a bound that was found.
    """

    columns: tuple[AnswerColumn, ...]
    keys: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    processing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@runtime_checkable
class Method(Protocol):
    """One way to answer a question, with its noise already fixed. Everything but :meth:`run` is public and free.

    Guarantee:
        ``event`` is what :meth:`run` owes, whatever the data is.
    """

    @property
    def name(self) -> str:
        """What ``method=`` calls it, such as "laplace" or "ladder"."""

    @property
    def event(self) -> Event:
        """What one release owes to the ledger."""

    @property
    def error(self) -> float:
        """The absolute error to expect of an entry, from public facts and guesses only: what methods compete by."""

    @property
    def interval(self) -> float:
        """The half-width to expect at 95 %; NaN where it cannot be foretold."""

    @property
    def how(self) -> str:
        """The noise in a few words, for people."""

    @property
    def rules(self) -> tuple[str, ...]:
        """Sentences about what is cut, guessed or assumed, for people."""

    def run(self, data: Data, bits: Bits) -> Result:
        """Compute exactly, add noise, post-process. The ledger has been charged before this is called."""


@runtime_checkable
class InSql(Protocol):
    """A question that says whether an engine can count what it asks for. Those that say nothing are for memory."""

    @property
    def in_sql(self) -> bool:
        """Whether it has a form in SQL."""


@runtime_checkable
class Checking(Protocol):
    """A question that can say at once whether it can be asked of a graph."""

    def check(self, public: Public) -> None:
        """Refuse what can be asked of other graphs only."""


@runtime_checkable
class Silent(Protocol):
    """A method that may be unable to show an interval, because the size of its noise stays private."""

    @property
    def silent(self) -> bool:
        """Whether its answers come without an interval."""


@runtime_checkable
class Foretelling(Protocol):
    """A method that says on what its foretold error rests, or what it depends on where it cannot be foretold."""

    @property
    def foretold(self) -> tuple[str, ...]:
        """Sentences for previews."""


def silent(method: Method) -> bool:
    """Whether the answers of a method come without an interval."""
    return isinstance(method, Silent) and method.silent


def foretold(method: Method) -> tuple[str, ...]:
    """What a method says about its foretold error."""
    return method.foretold if isinstance(method, Foretelling) else ()


@runtime_checkable
class Question(Protocol):
    """Something to ask of a graph. Immutable, and public in all its parts."""

    @property
    def words(self) -> str:
        """What is asked, in one line."""

    def methods(self, public: Public, budget: Budget) -> Sequence[Method]:
        """Every way to answer it within ``budget``, in any order; a refusal where there is none."""


def chosen(question: Question, methods: Sequence[Method], name: str | None) -> Method:
    """The method of this ``name``, else the one that errs least among those whose answers have an interval.

    All of this is public, so that the choice tells nothing about the graph.
    """
    if not methods:
        raise InvalidParameterError(
            f"There is no way to release this here at this price: {question.words}.",
            fix="spend a larger epsilon, or a delta; or ask about a smaller graph.",
        )
    if name is None:
        spoken = [method for method in methods if not silent(method)]
        return min(spoken or methods, key=lambda method: method.error)
    known = {method.name: method for method in reversed(methods)}
    return known[choice(f'method for "{question.words}"', name, sorted(known), NOISES)]

"""What a question about a graph is, the ways in which one can be answered, and the answer that results.

A question lists its methods for a budget, each with its event and the error that is to be expected of it, all from
public facts. The one that errs least is taken unless one is named. Only after the charge does it see the data.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, final, runtime_checkable

import numpy as np

from defocus.answers import Effect, Released, Rule, plots
from defocus.answers.answer import Figure, read, written
from defocus.answers.columns import AnswerColumn
from defocus.answers.rules import rules_of
from defocus.answers.tables import spelt
from defocus.errors import InvalidParameterError, choice
from defocus.graphs.data import Data
from defocus.graphs.public import Public
from defocus.ledger import Receipt
from defocus.mechanisms.mechanism import NOISES
from defocus.noise import Bits
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event

__all__ = [
    "TIME",
    "WEIGHTS_CUT",
    "Checking",
    "Depending",
    "Foretelling",
    "InSql",
    "Method",
    "Question",
    "Result",
    "Silent",
    "answered",
    "cap_found",
    "capped",
    "chosen",
    "depends",
    "foretold",
    "from_record",
    "projected",
    "silent",
    "to_record",
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


@runtime_checkable
class Depending(Protocol):
    """A method whose error cannot be foretold, and that says in a few words what is known about it."""

    @property
    def depends(self) -> str:
        """What a preview shows instead of a number, such as "1.1 × the cap that is found"."""


def silent(method: Method) -> bool:
    """Whether the answers of a method come without an interval."""
    return isinstance(method, Silent) and method.silent


def foretold(method: Method) -> tuple[str, ...]:
    """What a method says about its foretold error."""
    return method.foretold if isinstance(method, Foretelling) else ()


def depends(method: Method) -> str:
    """What is known about an error that a method cannot foretell, in a few words."""
    return method.depends if isinstance(method, Depending) else "depends on the graph"


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
    by_name = {method.name: method for method in reversed(methods)}
    return by_name[choice(f'method for "{question.words}"', name, sorted(by_name), NOISES)]


WEIGHTS_CUT = Rule("weights are cut to their declared range", Effect.CUT)
_EARLIER = dict.fromkeys(
    (
        "at each node, at most",
        "count up to a cap at each node, which is found",
        "are left out where a node would have more than",
        "weights are cut to their declared range",
    ),
    Effect.CUT,
)
"""Words of rules in records that do not say what a rule does."""


def capped(most: int, what: str, *, declared: bool = False) -> Rule:
    """A cap on what counts at a node: no count is too large; where the cap is ``declared``, none is too small."""
    effect = Effect.TOLD if declared else Effect.OPEN
    return Rule(f"at each node, at most {most} of its {what} count{', as declared' if declared else ''}", effect)


def cap_found(what: str) -> Rule:
    """The same, where the cap is found."""
    return Rule(f"{what} count up to a cap at each node, which is found; what is beyond it is lost", Effect.OPEN)


def projected(most: object, *, declared: bool = False) -> Rule:
    """Edges beyond a largest degree: numbers move up and down, by how much stays private."""
    if declared:
        return Rule(f"no node has more than {most} edges, as declared; more are left out", Effect.TOLD)
    return Rule(f"edges are left out where a node would have more than {most}, so there is no interval", Effect.CUT)


def answered(result: object, question: str, receipt: Receipt, rules: Sequence[str], **more: Any) -> Released:
    """The answer that the result of a method is."""
    if not isinstance(result, Result) or not result.columns:
        raise InvalidParameterError("A method gave no result.", fix="let run() return a Result with columns.")
    return Released(
        result.keys,
        result.columns,
        question,
        receipt,
        rules_of(rules),
        processing=result.processing,
        notes=result.notes,
        figure=_figure(result.keys, len(result.columns[0].values)),
        **more,
    )


def _figure(keys: Mapping[str, Sequence[Any]], entries: int) -> Figure:
    """Numbers along time are steps, and along many degrees or ranks a curve."""
    if list(keys) == [TIME] and entries > 1:
        return "series"
    along = any(isinstance(values, range) and name != "node" for name, values in list(keys.items())[:1])
    return "curve" if along and entries > plots.MOST else "bars"


_LONG = 10**1000
"""Whole numbers from here on are kept as text: JSON is read with limits of its own."""


def to_record(answer: Released) -> dict[str, Any]:
    """The answer with JSON types only. Names of nodes that are neither text nor numbers are kept as text."""
    keys = {name: _keys(values) for name, values in answer.keys.items()}
    return {"kind": "graph", "keys": keys, **written(answer), "method": answer.method, "notes": list(answer.notes)}


def from_record(record: Any, receipt: Receipt) -> Released:
    """The answer that :func:`to_record` wrote down, with the receipt that paid for it."""

    def made(*, columns: Any, processing: Any, **parts: Any) -> Released:
        keys = {name: _listed(values) for name, values in record["keys"].items()}
        result = Result(columns, keys, processing, tuple(record["notes"]))
        return answered(result, method=record["method"], **parts)

    return read(record, receipt, "a graph", made, absolute=True, earlier=_EARLIER)


def _listed(values: Any) -> Any:
    if isinstance(values, dict) and "moments" in values:
        return [datetime.fromisoformat(text) for text in values["moments"]]
    return range(*values["range"]) if isinstance(values, dict) else list(values)


def _keys(values: Any) -> Any:
    if isinstance(values, range):
        return {"range": [values.start, values.stop, values.step]}
    listed = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    if listed and all(type(x) is datetime and x.tzinfo is None for x in listed):
        return {"moments": [x.isoformat() for x in listed]}
    return [_plain(x) for x in listed]


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    short = isinstance(value, int | np.integer) and abs(int(value)) < _LONG
    return int(value) if short else spelt(value)

"""A release: a noisy value with everything needed to read it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from defocus.answers.columns import CONFIDENCE
from defocus.answers.explanation import Promise, odds, promise, protection
from defocus.errors import InvalidParameterError, ReleaseFailedError
from defocus.ledger import Ledger, Receipt
from defocus.ledger.entries import plain
from defocus.ledger.filter import Guard
from defocus.mechanisms import Grid, Mechanism, RandomizedResponse
from defocus.noise import Bits
from defocus.noise.bits import source
from defocus.privacy.events import Event, described
from defocus.privacy.expressions import unparse
from defocus.privacy.html import html_facts
from defocus.privacy.units import Adjacency, Unit
from defocus.release.paid_computation import perform

__all__ = [
    "Release",
    "answers_with",
    "checked_mechanism",
    "checked_neighbours",
    "in_units",
    "named",
    "release",
]


_POSITION = " (the position of what was chosen, counted from 0)"


@final
@dataclass(frozen=True, slots=True)
class Release:
    """A noisy value, what it owed, how far off it may be, and the receipt that paid for it.

    ``error`` is the expected absolute error of an entry and ``interval`` the half-width that
    holds with 95 % probability: both describe the noise alone, and both are public.
    Everything here may be shown to anyone.

    >>> from defocus import examples
    >>> from defocus.mechanisms import Laplace
    >>> book = examples.ledger()
    >>> answer = release(Laplace(scale=4), 1402, ledger=book, purpose="patients")
    >>> answer.error, answer.interval, answer.promise().epsilon
    (3.9586351633020005, 12.0, 0.25)
    >>> book.close()
    """

    value: Any
    event: Event
    error: float
    interval: float
    receipt: Receipt
    mechanism: str
    answer: str = "number"
    """What kind of answer the value is; see :class:`~defocus.mechanisms.Mechanism`."""
    but: str = ""
    """What of the unit is not protected here, if anything."""

    def promise(self) -> Promise:
        """(epsilon, delta) and posterior odds of this release alone."""
        terms = self.receipt.terms
        return promise(self.event, terms.budget, terms.unit.adjacency)

    def explain(self) -> str:
        """The release in plain words: what was protected, from whom, how well, and at which cost."""
        return "\n".join(f"{name + ':':<12} {text}" for name, text in self._facts().items())

    def to_dict(self) -> dict[str, Any]:
        """The release with JSON types only."""
        return {
            "value": plain(self.value),
            "error": self.error,
            "interval": self.interval,
            "confidence": CONFIDENCE,
            "mechanism": self.mechanism,
            "receipt": self.receipt.to_dict(),
        }

    def __str__(self) -> str:
        spread = "" if self.answer != "number" else f" ± {self.interval:.6g} (95 %)"
        return f"{_shown(self.value)}{spread}, {self.receipt.purpose}"

    def _repr_html_(self) -> str:
        return html_facts(self._facts())

    def _accuracy(self) -> str:
        if self.answer == "report":
            return f"a report is not the truth with probability {self.error:.4g}"
        size = f"{self.error:.4g} on average, at most {self.interval:.6g} with 95 % probability"
        if self.answer == "crossings":
            return f"one comparison is off by {size}"
        return f"{size}, in the utility of what was chosen" if self.answer == "candidate" else size

    def _facts(self) -> Mapping[str, str]:
        terms, owed = self.receipt.terms, self.promise()
        left = Guard.of(terms).remaining(self.receipt.spent)
        return {
            "value": _shown(self.value) + (_POSITION if self.answer == "candidate" else ""),
            "error": self._accuracy(),
            "purpose": f"{self.receipt.purpose} ({self.receipt.who}, {self.receipt.time[:10]})",
            "protected": protection(terms.unit, terms.dataset, what="the value") + (self.but and f"; {self.but}"),
            "guarantee": f"{owed} for this release alone",
            "in odds": "; ".join(odds(owed, terms.unit, what="this value")),
            "mechanism": self.mechanism,
            "cost": f"{unparse(self.event)}, entry {self.receipt.sequence} of the ledger",
            "remaining": f"{left}; the whole budget is {terms.budget}",
        }


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return np.array2string(value, threshold=8, edgeitems=3, separator=", ")
    if isinstance(value, float):
        return f"{value:.10g}"
    text = str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def checked_mechanism(mechanism: object, grid: object) -> Event:
    """The event of ``mechanism``, once it and the grid are known to be what they should be."""
    if isinstance(mechanism, type) or not isinstance(mechanism, Mechanism):
        raise InvalidParameterError(
            f"A release needs a mechanism, but got {described(mechanism)}.",
            fix="pass for example mechanisms.Laplace(scale=2).",
        )
    if not isinstance(mechanism.event, Event):
        raise InvalidParameterError(
            f"The mechanism {type(mechanism).__name__} does not say what it owes.",
            fix="let its event property return a privacy event.",
        )
    if grid is not None and not isinstance(grid, Grid):
        raise InvalidParameterError(
            f"grid must be a Grid, but it is {type(grid).__name__}.", fix='write for example Grid("0.01").'
        )
    if grid is not None and answers_with(mechanism) != "number":
        raise InvalidParameterError(
            f"{type(mechanism).__name__} does not release a number, so it has no grid.", fix="leave grid out."
        )
    return mechanism.event


def checked_neighbours(mechanism: Mechanism, value: Any, unit: Unit) -> None:
    """Refuse what does not hold for the neighbours of this ledger.

    Noise for units that come or go, where one is replaced. Half the noise for "monotone" utilities, where a unit is
    replaced: some rise while others fall. One report for each unit, where units are added or removed: their number
    shows who is there.
    """
    if isinstance(mechanism, RandomizedResponse) and np.ndim(value) and unit.per_person not in {None, 1}:
        raise InvalidParameterError(
            f"A list of reports has one for each person, but this ledger protects {unit}.",
            fix="release one report at a time, as many as a person has; or protect persons: unit=user(column).",
        )
    if isinstance(mechanism, RandomizedResponse) and np.ndim(value) and unit.adjacency is Adjacency.ADD_REMOVE:
        raise InvalidParameterError(
            f"A list of reports has as many entries as there are units, but this ledger protects {unit}, so the"
            " number itself would show who is there.",
            fix="protect the answers where the number of people is public: open the ledger with a unit made by"
            " rows(replace=True) or user(column, replace=True).",
        )
    if getattr(mechanism, "replace", True) is False and unit.adjacency is Adjacency.REPLACE:
        raise InvalidParameterError(
            f"{type(mechanism).__name__} was made for units added or removed, but this ledger protects {unit}.",
            fix="make the mechanism with replace=True.",
        )
    if getattr(mechanism, "monotone", False) and unit.adjacency is Adjacency.REPLACE:
        raise InvalidParameterError(
            f"{type(mechanism).__name__} was made for utilities that all move in one direction between neighbours,"
            f" but this ledger protects {unit}, so some can rise while others fall.",
            fix="make the mechanism with monotone=False.",
        )


def answers_with(mechanism: object) -> str:
    """What a mechanism answers with: a number unless it says otherwise."""
    return str(getattr(mechanism, "answers_with", "number"))


def in_units(number: float, grid: Grid | None) -> float:
    """An error or half-width in the units of the data."""
    return float(number) if grid is None or not math.isfinite(number) else float(grid.step) * float(number)


def named(mechanism: Any) -> str:
    """A mechanism with its public parameters, in one line."""
    text = " ".join(repr(mechanism).split())
    return text if len(text) <= 300 else f"{text[:299]}…"


def _named_in_full(mechanism: object) -> str:
    """A mechanism with all its public parameters; one that does not tell them, by its type."""
    kind = type(mechanism)
    return kind.__qualname__ if kind.__repr__ is object.__repr__ else repr(mechanism)


def release(
    mechanism: Mechanism,
    value: Any,
    *,
    ledger: Ledger,
    purpose: str,
    who: str | None = None,
    bits: Bits | None = None,
    grid: Grid | None = None,
    request: str | None = None,
) -> Release:
    """Release ``value`` through ``mechanism``, charged to ``ledger`` before the first random bit is drawn.

    Guarantee:
        Everything public is validated first, and a refusal then costs nothing. The charge is on
        disk before noise is drawn. Whatever fails afterwards keeps the charge and says nothing
        about private values. The ledger notes a digest of what is shown before it is shown.
    Assumes:
        ``value`` was computed from the data of this ledger, and its sensitivity under the
        ledger's unit and adjacency is the one the mechanism was made for.

    Args:
        mechanism: what to release through.
        value: the private value, in integers.
        ledger: what to charge.
        purpose: why, in one line.
        who: by whom; the account's name by default.
        bits: the source of random bits; the system's by default.
        grid: brings the noisy integers back to the units of the data.
        request: a name for this request. If an answer to it was recorded, that answer is
            returned again, free of charge and without looking at ``value``.

    >>> from defocus import examples
    >>> from defocus.mechanisms import Laplace
    >>> with examples.ledger() as book:
    ...     result = release(Laplace(scale=2), 1041, ledger=book, purpose="number of visits")
    >>> result.error, result.interval
    (1.919..., 6.0)
    """
    event = checked_mechanism(mechanism, grid)
    if not isinstance(ledger, Ledger):
        raise InvalidParameterError(
            f"A release is charged to a Ledger, but got {type(ledger).__name__}.", fix="open one: Ledger.open(path, …)."
        )
    checked_neighbours(mechanism, value, ledger.unit)
    drawn_from = source(bits)
    error, interval = in_units(mechanism.error, grid), in_units(mechanism.interval(CONFIDENCE), grid)

    def shown(result: Any, receipt: Receipt) -> Release:
        return Release(result, event, error, interval, receipt, named(mechanism), answers_with(mechanism))

    def compute(receipt: Receipt) -> Release:
        noisy = mechanism.sample(value, drawn_from)
        if grid is None:
            return shown(noisy, receipt)
        return shown(grid.decimal(noisy if isinstance(noisy, np.ndarray) else int(noisy)), receipt)

    return perform(
        event,
        compute,
        ledger=ledger,
        purpose=purpose,
        description=named(mechanism),
        written=lambda made: made.value,
        read=lambda kept, receipt: shown(_arrayed(kept), receipt),
        facts=f"{_named_in_full(mechanism)}, {grid!r}",
        who=who,
        request=request,
        check=lambda: mechanism.check(value),
        failed=lambda charge, _why: ReleaseFailedError(charge=charge, mechanism=type(mechanism).__name__),
        what="release",
    )


def _arrayed(kept: Any) -> Any:
    """A kept vector of numbers as the array it was."""
    numbers = isinstance(kept, list) and all(type(x) in {int, float} for x in kept)
    return np.array(kept) if numbers else kept

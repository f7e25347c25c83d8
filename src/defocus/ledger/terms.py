"""What a ledger was made for: written once in its first entry, and held against every later opening."""

import json
import secrets
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, final

from defocus.errors import DefocusError, LedgerDamagedError, LedgerMismatchError, Number
from defocus.ledger.parts import Parts
from defocus.ledger.text import line
from defocus.privacy.budgets import Budget
from defocus.privacy.filters import rule
from defocus.privacy.units import Unit
from defocus.privacy.wire import read_number, read_unit, write_number, write_unit

__all__ = ["Terms"]


@final
@dataclass(frozen=True, slots=True)
class Terms:
    """One data set, one unit with its adjacency, one budget, the version of the filter that guards it, and parts.

    >>> from defocus import Budget, rows
    >>> terms = Terms.new(dataset="visits", unit=rows(), budget=Budget(1), filter_version="1")
    >>> terms.dataset, terms.budget
    ('visits', Budget(epsilon=1))
    """

    dataset: str
    unit: Unit
    budget: Budget
    filter: str
    id: str
    parts: Parts | None = None
    """What divides the data into parts that are charged apart; None where every charge is everybody's."""
    person: Unit | None = None
    """Whom the ledger protects, where ``unit`` says how that person appears in one of its data sets."""

    @classmethod
    def new(
        cls, *, dataset: object, unit: Unit, budget: Budget, filter_version: str, parts: Parts | None = None
    ) -> "Terms":
        """Terms for a ledger that does not exist yet, with a random identity."""
        if unit.column is not None:
            line("the column of the unit", unit.column)
        divided = None if parts is None else parts.check(unit)
        return cls(line("dataset", dataset, longest=200), unit, budget, filter_version, secrets.token_hex(16), divided)

    def to_dict(self) -> dict[str, Any]:
        """The terms with JSON types only."""
        divided = {} if self.parts is None else {"parts": self.parts.to_dict()}
        person = {} if self.person is None else {"person": write_unit(self.person)}
        return {
            "dataset": self.dataset,
            "unit": write_unit(self.unit),
            "budget": {name: write_number(getattr(self.budget, name)) for name in ("epsilon", "delta", "rho", "mu")},
            "filter": self.filter,
            "id": self.id,
            **divided,
            **person,
        }

    @classmethod
    def read(cls, data: Any) -> "Terms":
        """Read terms back; anything malformed is refused."""
        try:
            unit = read_unit(data["unit"])
            return cls(
                dataset=line("dataset", data["dataset"]),
                unit=unit,
                budget=Budget(
                    **{name: read_number(value) for name, value in data["budget"].items()},
                    direct=_direct(data["filter"]),
                ),
                filter=line("filter", data["filter"], longest=3_000),
                id=line("id", data["id"]),
                parts=Parts(**data["parts"]).check(unit) if "parts" in data else None,
            )
        except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError, DefocusError):
            raise LedgerDamagedError(
                "The first entry does not say what the ledger is for.", fix="restore the ledger from a trusted copy."
            ) from None

    def hold(
        self,
        *,
        dataset: object,
        unit: Unit | None,
        budget: Budget | None,
        parts: Parts | None = None,
        filter: str | None = None,  # noqa: A002 - what it is called everywhere
    ) -> None:
        """Refuse to be opened as something else, and say what differs."""
        if budget is not None and ":" not in self.filter and replace(budget, direct=self.budget.direct) == self.budget:
            budget = None  # under this rule nobody chose a part for direct spending
        mine = {"dataset": self.dataset, "unit": self.unit, "budget": self.budget, "parts": self.parts}
        mine["filter"] = self.filter.partition("/")[0]
        given = {"dataset": dataset, "unit": unit, "budget": budget, "parts": parts}
        given["filter"] = None if filter is None else rule(self.budget, filter)
        differ = [
            f"{name}: the ledger has {'none' if mine[name] is None else mine[name]!s}, you gave {given[name]!s}"
            for name in mine
            if given[name] is not None and given[name] != mine[name]
        ]
        if differ:
            raise LedgerMismatchError(
                f"This ledger was made for something else. {'; '.join(differ)}.",
                fix=f"{self._remedy(dataset, parts)} Only another data set may have a ledger of its own: a second"
                " ledger for the same people would be a second budget.",
            )

    def _remedy(self, dataset: object, parts: Parts | None) -> str:
        """How to open the ledger as what it is; about the name or parts, where those that were given are not its."""
        if dataset is not None and dataset != self.dataset:
            return f"if it is the same data under a new name, call it {self.dataset} again, as in the ledger."
        mine = self.parts
        if parts is None or parts == mine:
            return "open it without repeating these."
        if mine is None:
            return "leave parts out: this ledger has none, so that each charge is everybody's."
        if mine.column == parts.column and mine.kind != parts.kind:
            kinds = f"{{{json.dumps(mine.column, ensure_ascii=False)}: {json.dumps(mine.kind)}}}"
            return f"declare types={kinds}, in a dataset file the kind of that column, as when the ledger was made."
        return f"divide the data as when the ledger was made, into {mine}."


def _direct(rule: str) -> Number:
    """The part of delta that releases may spend themselves, as the name of a filter says; in version 1 an eighth."""
    if rule in ("first/1", "union/1"):
        return Fraction(1, 8)
    _, chosen, part = rule.partition("/2:")
    if not chosen:
        return Budget(1).direct
    return 0 if part == "0" else Fraction(read_number(part))  # never a decimal, whose exponent might be huge

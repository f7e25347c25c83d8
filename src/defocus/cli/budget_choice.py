"""``defocus choose-budget``: a budget from a risk, from an error or a power, or from both."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from defocus.cli.plots import ready, save
from defocus.cli.terminal import console, to_json
from defocus.errors import InvalidParameterError
from defocus.ledger import Ledger
from defocus.tables.budget_choice import Choice, choose_budget
from defocus.tables.power import Power, power

__all__ = ["Asked", "choose", "show"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What releases must be good for: an error, or a test."""

    error: float | None
    bounds: tuple[float, float] | None
    people: int | None
    power: float | None
    effect: float | None
    proportion: float | None
    mean: float | None

    @property
    def test(self) -> Power | None:
        """The test, planned with the least epsilon that it needs alone."""
        if self.power is None and self.effect is self.proportion is self.mean is None:
            return None
        if self.power is None or self.effect is None or self.people is None:
            raise InvalidParameterError(
                "A test needs a power, an effect and a number of people.",
                fix="pass power=0.8, effect=0.05 and people=1000.",
            )
        low, high = (None, None) if self.bounds is None else self.bounds
        return power(
            proportion=self.proportion,
            mean=self.mean,
            low=low,
            high=high,
            effect=self.effect,
            n=self.people,
            power=self.power,
        )


def choose(need: Asked, **how: Any) -> Choice:
    """The choice; ``how`` are the other parameters of :func:`defocus.choose_budget`."""
    if (test := need.test) is not None:
        return choose_budget(error=need.error, power=test, **how)
    return choose_budget(error=need.error, bounds=need.bounds, people=need.people, **how)


def show(
    found: Choice, *, ledger: str | None, who: str | None, plot: Path | None, explain: bool, as_json: bool
) -> None:
    """Plot the choice, write it into a ledger where asked, and print it."""
    if plot is not None:
        ready(plot)
        save(found.plot(), plot)
    if ledger is not None:
        with Ledger.open(ledger) as opened:
            found.sign(opened, who=who)
    if as_json:
        to_json(found.to_dict())
        return
    console().print(found.explain() if explain else str(found), soft_wrap=True)

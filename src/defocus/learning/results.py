"""What a run hands out: batches on the way, and what it did at the end."""

import math
from dataclasses import dataclass, field
from typing import Any, final

from defocus.learning.examples import Examples, Units
from defocus.learning.planning import Plan
from defocus.learning.watching import Glance
from defocus.ledger import Receipt
from defocus.noise.integers import Integers
from defocus.privacy.pages import html_facts

__all__ = ["Sample", "Trained"]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The units drawn for one step. Private: which they are, and how many."""

    step: int
    units: Integers = field(repr=False)
    _data: Examples = field(repr=False)
    _owners: Units = field(repr=False)

    def load(self) -> Any:
        """The inputs and targets of the batch: *private*, for the data's owner only."""
        return self._data.take(self._owners.examples_of(self.units)[0])


@final
@dataclass(frozen=True, slots=True)
class Trained:
    """How a run went, as far as everyone may know it."""

    plan: Plan
    steps: int
    epsilon: float
    """What the steps taken cost by themselves, at ``plan.delta``; all planned ones were charged."""
    receipt: Receipt | None
    glance: Glance | None
    clips: tuple[float, ...]

    @property
    def facts(self) -> dict[str, str]:
        """Names and words."""
        made = self.plan
        promised = f"epsilon {self.epsilon:.4g} at delta {made.delta:.3g}"
        found = {
            "protected": str(made.unit),
            "steps": f"{self.steps} of {made.steps}, {made.batch:g} of {made.size} expected in each",
            "cost": promised if self.steps == made.steps else f"{promised}; {made.budget} was charged for all steps",
            "noise": f"{made.ratio:.4g} times the sensitivity of a step",
            "clip": f"{math.hypot(*self.clips):.4g}",
        }
        if self.glance is not None and str(self.glance):
            found["at the end"] = f"{self.glance} (with noise, paid for)"
        if self.receipt is not None:
            found["charged"] = str(self.receipt)
        return found

    def __str__(self) -> str:
        width = max(map(len, self.facts))
        return "\n".join(f"{name:<{width}}  {words}" for name, words in self.facts.items())

    def _repr_html_(self) -> str:
        return html_facts(self.facts)

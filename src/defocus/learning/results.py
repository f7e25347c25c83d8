"""What a run hands out: batches on the way, and what it did at the end."""

import math
from dataclasses import dataclass, field
from typing import Any, final

from defocus.answers.plotting import PALE, TEAL, blank
from defocus.answers.showing import text_facts
from defocus.errors import InvalidParameterError
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

    plan: Plan = field(repr=False)
    steps: int
    epsilon: float
    """What the steps taken cost by themselves, at ``plan.delta``; all planned ones were charged."""
    receipt: Receipt | None = field(repr=False)
    glance: Glance | None = field(repr=False)
    clips: tuple[float, ...]
    explanation: str = field(repr=False)

    @property
    def facts(self) -> dict[str, str]:
        """Names and words."""
        made = self.plan
        correlated = "" if made.strategy is None else ", of which later steps take back a part"
        found = {
            "protected": str(made.unit),
            "steps": f"{self.steps} of {made.steps}, {made.batch:g} of {made.size} expected in each",
            "cost": self._cost(),
            "noise": f"{made.noise_in_words()} times the sensitivity of a step{correlated}",
            "clip": f"{math.hypot(*self.clips):.4g}",
        }
        if self.glance is not None and str(self.glance):
            found["at the end"] = self.glance.words()
        if self.receipt is not None:
            found["charged"] = str(self.receipt)
        return found

    def explain(self) -> str:
        """What was done and promised, line by line, for whoever must approve it."""
        return self.explanation

    def plot(self) -> Any:
        """The loss over the steps, as far as it was paid for, and epsilon, as a matplotlib figure."""
        if self.glance is None or not self.glance.noisy:
            raise InvalidParameterError(
                "No losses were paid for, so there is nothing to draw.", fix='train with watch="paid", and take steps.'
            )
        figure = blank(6, 3.6)
        axes = figure.subplots()
        course = self.glance.course()
        steps = range(1, len(course) + 1)
        axes.fill_between(steps, *([mean + side * error for mean, error in course] for side in (-1, 1)), color=PALE)
        axes.plot(steps, [mean for mean, _ in course], color=TEAL)
        axes.set(xlabel="steps", ylabel="loss, with noise", title=self._cost())
        axes.grid(visible=True, alpha=0.3)
        return figure

    def _cost(self) -> str:
        promised = f"epsilon {self.epsilon:.4g} at delta {self.plan.delta:.3g}"
        if self.steps == self.plan.steps:
            return promised
        charged = "will be" if self.receipt is None else "was"
        return f"{promised}; {self.plan.budget} {charged} charged for all steps"

    def __str__(self) -> str:
        return text_facts({name: [words] for name, words in self.facts.items()})

    def _repr_html_(self) -> str:
        return html_facts(self.facts)

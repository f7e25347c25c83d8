"""What a run hands out: batches and a progress bar on the way, and what it did at the end."""

import math
from dataclasses import dataclass, field
from typing import Any, final

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from defocus.answers.plots import PALE, TEAL, blank
from defocus.answers.tables import text_facts
from defocus.errors import InvalidParameterError
from defocus.learning.accountant import Plan
from defocus.learning.data import Examples, Units
from defocus.learning.metrics import NoisyMetrics, PrivateMetrics, Tally
from defocus.learning.noise import Correlated, Cryptographic
from defocus.learning.step import Stepper
from defocus.ledger import Receipt
from defocus.noise.ranges import Integers
from defocus.privacy.events import Approximate
from defocus.privacy.expressions import unparse
from defocus.privacy.html import html_facts
from defocus.privacy.one_run import OneRun

__all__ = ["Progress", "Sample", "Silent", "TrainingResult", "explained"]


@final
class Sample:
    """The units drawn for one step. Private: which they are, and how many.

    No dataclass, which loops of others (Lightning, Accelerate) would take apart, copy and move to a device: the run
    knows its batch by identity.
    """

    __slots__ = ("_data", "_owners", "canaries", "step", "units")

    def __init__(self, step: int, units: Integers, canaries: Integers, data: Examples, owned: Units) -> None:
        self.step, self.units, self.canaries, self._data, self._owners = step, units, canaries, data, owned

    def __repr__(self) -> str:
        return f"Sample(step={self.step})"

    def load(self) -> Any:
        """The inputs and targets of the batch: *private*, for the data's owner only."""
        return self._data.take(self._owners.examples_of(self.units)[0])


@final
@dataclass(frozen=True, slots=True)
class TrainingResult:
    """How a run went, as far as everyone may know it.

    >>> from defocus import examples
    >>> run = examples.trainer()
    >>> result = run.fit(progress=False)
    >>> result.steps, result.epsilon <= 4, result.receipt.sequence
    (3, True, 1)
    >>> run.close()
    """

    plan: Plan = field(repr=False)
    steps: int
    epsilon: float
    """What the steps taken cost by themselves, at ``plan.delta``; all planned ones were charged."""
    receipt: Receipt | None = field(repr=False)
    metrics: NoisyMetrics | None = field(repr=False)
    """Noisy losses and norms, if they were paid for."""
    clips: tuple[float, ...]
    explanation: str = field(repr=False)
    passed: int = 0
    """How many batches were drawn and passed over without a step."""
    scratch: bool = False
    """Whether the data was said to be public or made up, so that nobody is protected and nothing was charged."""
    audit: OneRun | None = None
    """What the canaries of ``audit=`` show: a lower bound on epsilon, at 95 % confidence."""

    @property
    def facts(self) -> dict[str, str]:
        """Names and words."""
        plan = self.plan
        facts = plan.facts | {
            "steps": f"{self.steps} of {plan.steps}, {plan.batch_size:g} of {plan.size} expected in each"
            + (f"; {self.passed} batches were passed over without run.step" if self.passed else ""),
            "cost": self._cost(),
            "clip": f"{math.hypot(*self.clips):.4g}",
        }
        if self.metrics is not None and str(self.metrics):
            facts["at the end"] = self.metrics.words()
        if self.audit is not None:
            facts["audit"] = str(self.audit)
        if self.scratch:
            facts["protected"] = f"nobody: a scratch run. With private data: {facts['protected']}"
        elif self.receipt is not None:
            facts["charged"] = str(self.receipt)
        return facts

    def explain(self) -> str:
        """What was done and promised, line by line, for whoever must approve it."""
        return self.explanation

    def plot(self) -> Any:
        """The loss over the steps, as far as it was paid for, and epsilon, as a matplotlib figure."""
        if self.metrics is None or not str(self.metrics):
            raise InvalidParameterError(
                "No losses were paid for, so there is nothing to draw.",
                fix='train with metrics="paid", and take steps.',
            )
        figure = blank(6, 3.6)
        axes = figure.subplots()
        course = self.metrics.course()
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
        return f"{promised}; {self.plan.price} {charged} charged for all steps"

    def __str__(self) -> str:
        return text_facts({name: [words] for name, words in self.facts.items()})

    def _repr_html_(self) -> str:
        return html_facts(self.facts)


_LONGEST = 400
_UNPROMISED = (
    "Not promised: sums, sines and logarithms are floats, so neither sensitivity nor noise holds to the last digit;"
    " how long a step takes depends on how many were drawn. run.step computes gradients and lets the optimizer take its"
    " step: what other code does to the weights with private examples is not covered. What the model and the loss hold"
    " beside what is trained (buffers, constants, frozen weights) is taken as public."
)


def explained(
    plan: Plan, stepper: Stepper, ways: str, prospect: str, *, receipt: Receipt | None, declared: bool
) -> str:
    """Line by line: what is protected, what is drawn, clipped, noised, shown, charged, and what is not promised.

    ``ways`` is how gradients are made, as it was found on synthetic examples: later ways may follow from private ones.
    ``prospect`` says whether the ledger would cover the run.
    """
    return "\n".join(
        [
            f"Protected: {plan.unit}. Everything that leaves the run comes out almost as often without it.",
            *_owners(plan, stepper.units),
            _size(plan, declared=declared),
            f"Batches: {plan.sampling.words()}; {plan.batch_size:g} are expected in each of {plan.steps} steps.",
            f"Clipping: {stepper.clipping.words()}."
            + (" A user's examples are clipped one by one and averaged." if plan.unit.kind == "user" else ""),
            _noise(plan, stepper),
            _seen(plan, stepper),
            f"Gradients: {' '.join(ways.splitlines())}",
            *(() if stepper.canaries is None else (f"Audit: {stepper.canaries.cost()}",)),
            _charge(plan, receipt, prospect),
            _UNPROMISED,
        ]
    )


def _owners(plan: Plan, units: Units) -> list[str]:
    """Where a person has several rows: what is public of it, or taken on somebody's word."""
    if plan.unit.per_person is None:
        return []
    most = f"nobody has more than {plan.rows} example{'s' * (plan.rows > 1)}"
    if units.shared is None:
        told = (
            f"Assumed: {most}, whoever else is in them. Nothing checks it; users=, the owners of each, would see to it."
        )
        return [told]
    left = units.shared - units.count
    nobody = f", {units.nobody} of them since nobody owns them" if units.nobody else ""
    told = (
        "Public: who owns which example, and so which are used. What they are, and whether those of one person count,"
        f" is protected. {left} of {units.shared} are left out, so that {most}{nobody}."
    )
    return [told]


def _size(plan: Plan, *, declared: bool) -> str:
    if declared:
        return f"Public: the number of units was declared as {plan.size}, and decides the rate of sampling."
    return (
        f"Public: the number of units in the data, {plan.size}, is taken as public: it decides the rate of sampling;"
        " declare another one with size= if it is not."
    )


def _noise(plan: Plan, stepper: Stepper) -> str:
    drawn = stepper.noise.source if isinstance(stepper.noise, Correlated) else stepper.noise
    source = (
        "from AES-256 in counter mode"
        if isinstance(drawn, Cryptographic) or next(stepper.model.parameters()).device.type == "cpu"
        else "from torch's generator, not cryptographic"
    )
    correlated = (
        ""
        if plan.strategy is None
        else f", correlated over {plan.strategy.words()}, of which later ones take back a part"
    )
    return (
        f"Noise: Gaussian, {plan.noise_in_words(0)} times the clip on the sum of a step{correlated}, {source};"
        f" the sum is divided by the expected {plan.batch_size:g}."
    )


def _seen(plan: Plan, stepper: Stepper) -> str:
    if stepper.private is not None:
        return (
            "Shown on the way: exact losses and norms. They are PRIVATE, for the data's owner only, and not paid for."
        )
    if stepper.glance is None:
        return "Shown on the way: steps and epsilon, which are public."
    if isinstance(stepper.glance.metrics, Tally):
        return (
            f"Counted on the way, with noise: {stepper.glance.metrics.cells} kinds of examples, for which"
            f" {100 * plan.shares[2]:g} % of the precision of each step pays."
        )
    return (
        "Shown on the way: steps and epsilon, which are public, and losses and norms with noise, for which"
        f" {100 * plan.shares[2]:g} % of the precision of each step pays."
    )


def _charge(plan: Plan, receipt: Receipt | None, prospect: str) -> str:
    text = unparse(plan.event)
    whole = (
        f"Cost: {plan.price} for the whole run, as one event: {text[:_LONGEST]}{'…' if len(text) > _LONGEST else ''}."
    )
    if receipt is None:
        told = f"{whole} It is charged before the first batch is drawn, and not again when the run is resumed."
        return f"{told} {prospect}".rstrip()
    how = ""
    if isinstance(receipt.event, Approximate):
        how = " The ledger had no room for that event, and was charged the epsilon and delta that it keeps."
    return f"{whole} Charged as entry {receipt.sequence} of {receipt.terms.dataset}.{how}"


_BAR = 10
"""Narrow, so that a line fits in 80 columns."""
_TIMES = 20
"""How often epsilon is computed anew."""


@final
class Progress:
    """Step, epsilon so far, and what may be seen of losses and norms."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._price = plan.price if plan.price.epsilon is None else f"{float(plan.price.epsilon):.4g}"
        self._bar = Bar(
            BarColumn(bar_width=_BAR),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[words]}", markup=False),
        )
        self._task = self._bar.add_task("training", total=plan.steps, words="")
        self._epsilon = 0.0

    def __enter__(self) -> "Progress":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, taken: int, glance: NoisyMetrics | None, private: PrivateMetrics | None) -> None:
        """Show the state after ``taken`` steps."""
        if taken % max(1, self._plan.steps // _TIMES) == 0 or taken == self._plan.steps:
            self._epsilon = self._plan.epsilon_after(taken)
        seen = [f"ε {self._epsilon:.3g} of {self._price}"]
        if glance is not None:
            seen.append(str(glance))
        if private is not None:
            seen.append(_exact(private))
        self._bar.update(self._task, completed=taken, words=" · ".join(seen))


@final
class Silent:
    """No progress bar."""

    def __enter__(self) -> "Silent":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, taken: int, glance: NoisyMetrics | None, private: PrivateMetrics | None) -> None:
        """Show nothing."""


def _exact(private: PrivateMetrics) -> str:
    if not private.losses:
        return ""
    low, middle, high = private.quantiles[-1]
    norms = f"norms {low:.2g}/{middle:.2g}/{high:.2g}"
    unusable = f", unusable {private.unusable}" if private.unusable else ""
    return f"PRIVATE: loss {private.losses[-1]:.3g}, {norms}{unusable}"

"""A run in plain words, for its owner and for whoever must approve it."""

from defocus.learning.noising import Correlated, Cryptographic
from defocus.learning.planning import Plan
from defocus.learning.stepping import Stepper
from defocus.ledger import Receipt
from defocus.privacy.events import Approximate
from defocus.privacy.expressions import unparse

__all__ = ["explained"]

_LONGEST = 400
_UNPROMISED = (
    "Not promised: sums, sines and logarithms are floats, so neither sensitivity nor noise holds to the last digit;"
    " how long a step takes depends on how many were drawn. run.step computes gradients and lets the optimizer take its"
    " step: what other code does to the weights with private examples is not covered."
)


def explained(
    plan: Plan, stepper: Stepper, ways: str, prospect: str, *, receipt: Receipt | None, declared: bool
) -> str:
    """Line by line: what is protected, what is drawn, clipped, noised, shown, charged, and what is not promised.

    ``ways`` is how gradients are made, as it was found on made-up examples: later ways may follow from private ones.
    ``prospect`` says whether the ledger would cover the run.
    """
    return "\n".join(
        [
            f"Protected: {plan.unit}. Everything that leaves the run comes out almost as often without it.",
            _size(plan, declared=declared),
            f"Batches: {plan.sampling.words()}; {plan.batch:g} are expected in each of {plan.steps} steps.",
            f"Clipping: {stepper.clipping.words()}."
            + (" A user's examples are clipped one by one and averaged." if plan.unit.kind == "user" else ""),
            _noise(plan, stepper),
            _seen(plan, stepper),
            f"Gradients: {' '.join(ways.splitlines())}",
            _charge(plan, receipt, prospect),
            _UNPROMISED,
        ]
    )


def _size(plan: Plan, *, declared: bool) -> str:
    if declared:
        return f"Public: the number of units was declared as {plan.size}, and decides the rate of sampling."
    return (
        f"Public: the number of units in the data, {plan.size}, is taken as public: it decides the rate of sampling;"
        " declare another one with size= if it is not."
    )


def _noise(plan: Plan, stepper: Stepper) -> str:
    made = stepper.noise.source if isinstance(stepper.noise, Correlated) else stepper.noise
    source = (
        "from AES-256 in counter mode"
        if isinstance(made, Cryptographic) or next(stepper.model.parameters()).device.type == "cpu"
        else "from torch's generator, not cryptographic"
    )
    correlated = (
        ""
        if plan.strategy is None
        else f", correlated over {len(plan.strategy.column)} steps, of which later ones take back a part"
    )
    return (
        f"Noise: Gaussian, {plan.noise_in_words(0)} times the clip on the sum of a step{correlated}, {source};"
        f" the sum is divided by the expected {plan.batch:g}."
    )


def _seen(plan: Plan, stepper: Stepper) -> str:
    if stepper.private is not None:
        return (
            "Shown on the way: exact losses and norms. They are PRIVATE, for the data's owner only, and not paid for."
        )
    if stepper.glance is None:
        return "Shown on the way: steps and epsilon, which are public."
    return (
        "Shown on the way: steps and epsilon, which are public, and losses and norms with noise, for which"
        f" {100 * plan.shares[2]:g} % of the precision of each step pays."
    )


def _charge(plan: Plan, receipt: Receipt | None, prospect: str) -> str:
    text = unparse(plan.event)
    whole = (
        f"Cost: {plan.budget} for the whole run, as one event: {text[:_LONGEST]}{'…' if len(text) > _LONGEST else ''}."
    )
    if receipt is None:
        told = f"{whole} It is charged before the first batch is drawn, and not again when the run is resumed."
        return f"{told} {prospect}".rstrip()
    how = ""
    if isinstance(receipt.event, Approximate):
        how = " The ledger had no room for that event, and was charged the epsilon and delta that it keeps."
    return f"{whole} Charged as entry {receipt.sequence} of {receipt.terms.dataset}.{how}"

"""Looking before spending: what a release would cost and how far off it would be, free of charge."""

from dataclasses import dataclass
from typing import final

from defocus.errors import Number, probability
from defocus.ledger import Ledger, Remaining
from defocus.mechanisms import Grid, Mechanism
from defocus.privacy.events import Event
from defocus.privacy.expressions import unparse
from defocus.release.checks import checked_mechanism, in_units, named
from defocus.release.promises import Promise, promise
from defocus.release.results import CONFIDENCE

__all__ = ["Preview", "preview"]


@final
@dataclass(frozen=True, slots=True)
class Preview:
    """What is known about a release before it is made. No data was touched, no random bit drawn, nothing charged."""

    mechanism: str
    event: Event
    error: float
    interval: float
    confidence: float
    promise: Promise | None
    fits: bool | None
    remaining: Remaining | None

    def __str__(self) -> str:
        lines = [
            f"mechanism:   {self.mechanism}",
            f"error:       {self.error:.4g} on average, at most {self.interval:.6g} at {100 * self.confidence:.4g} %",
            f"cost:        {unparse(self.event)}" + (f", {self.promise}" if self.promise else ""),
        ]
        if self.fits is not None:
            lines.append(f"budget:      {'covers it' if self.fits else 'does not cover it'}; {self.remaining} left now")
        return "\n".join(lines)


def preview(
    mechanism: Mechanism, *, ledger: Ledger | None = None, grid: Grid | None = None, confidence: Number = CONFIDENCE
) -> Preview:
    """Say what a release with ``mechanism`` would cost and how exact it would be.

    Guarantee:
        Depends on public parameters only, and charges nothing.

    >>> from defocus.mechanisms import Laplace
    >>> print(preview(Laplace(scale=2)))
    mechanism:   Laplace(scale=2, sensitivity=1)
    error:       1.919 on average, at most 6 at 95 %
    cost:        discrete_laplace(2)
    """
    event = checked_mechanism(mechanism, grid)
    level = float(probability("confidence", confidence, zero=False, one=False))
    return Preview(
        mechanism=named(mechanism),
        event=event,
        error=in_units(mechanism.error, grid),
        interval=in_units(mechanism.interval(level), grid),
        confidence=level,
        promise=None if ledger is None else promise(event, ledger.budget, ledger.unit.adjacency),
        fits=None if ledger is None else ledger.admits(event),
        remaining=None if ledger is None else ledger.remaining(),
    )

"""An attack on what a user calls: a release, its charge and two neighbouring data sets; and faults to be caught.

Two ways make thousands of runs cheap, and neither leaves anything out that a run would look at.

*Worlds.* A release about many groups (or entries, weights, people) that nobody shares is many runs at once: world
i holds a few rows and, in the neighbouring data, one person more, who is in no other world. What is released
about world i depends on its rows and its noise alone, so worlds are independent and alike, and restricted to world i
the release owes its person what it was charged. The whole path is run, once for all of them.

*Repeated.* Where an answer is one number, the plan is made once and its data stage is run again and again. That it is
the release is tested: given the same bits, it shows the same numbers as one that is planned, charged and recorded.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias, final

import pytest

from defocus import Budget, noise
from defocus.audit import Finding, Pair, lower_bound
from defocus.audit.runs import Mechanism
from defocus.noise import Bits
from defocus.privacy import tightest
from defocus.privacy.events import Event

AMPLE = Budget(10**6, 1e-2)
"""A ledger that covers all runs of an audit."""
CONFIDENCE = 1 - 1e-9
"""All audits of a test run together, some two hundred, raise a false alarm with probability 1e-6 at most."""

Once: TypeAlias = Callable[[Any, Bits], Any]
Fault: TypeAlias = Callable[[pytest.MonkeyPatch], None]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """A release of a data set, as the auditor calls it, and what it owes."""

    release: Mechanism
    pair: tuple[Any, Any]
    event: Event
    paid: Event | None = None
    """What the ledger should be charged, where that is a bound on ``event``."""
    charges: set[Event] = field(default_factory=set)
    """What the ledger was charged."""
    delta: float = 0.0
    """Where the claim is tested: epsilon at this delta, of the event that was charged."""
    repeated: Once | None = None
    """One run of ``release``, where that leaves out the plan and the ledger."""
    whole: Once | None = None
    """The same with everything."""

    @property
    def charged(self) -> Event:
        """What the ledger should be charged."""
        return self.event if self.paid is None else self.paid

    @property
    def claimed(self) -> float:
        """The epsilon that was charged, at :attr:`delta`."""
        return tightest(self.event).epsilon(self.delta)

    def judged(self, trials: int) -> Finding:
        """What the auditor finds."""
        pair = Pair("with and without one", *self.pair)
        return lower_bound(self.release, pair, trials, CONFIDENCE, delta=self.delta, claimed=self.claimed)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """An attack by name: how it is made for a number of runs, and faults that it must catch."""

    name: str
    make: Callable[..., Attack]
    faults: tuple[Fault, ...]
    """Caught by few runs."""
    slight: tuple[Fault, ...] = ()
    """Caught by many."""
    few: int = 2500
    """Runs on each data set; none where few show too little."""
    many: int = 20_000
    again: bool = False
    """Whether a stage of the release is repeated."""
    near: float = 0.0
    """Which part of the charge many runs show at least: an attack that shows nothing tells nothing."""


def less_noise(part: Fraction) -> Fault:
    """Every integer sampler draws with a scale that is this part of what was asked for."""

    def fault(patch: pytest.MonkeyPatch) -> None:
        for name in ("discrete_laplace", "discrete_gaussian"):
            honest = getattr(noise, name)
            for module in _users(name, honest):
                patch.setattr(module, name, partial(_drawn, honest, part))

    return fault


def _drawn(honest: Callable[..., Any], part: Fraction, scale: Any, *rest: Any, **more: Any) -> Any:
    return honest(float(scale * part) if isinstance(scale, float) else scale * part, *rest, **more)


def _users(name: str, honest: object) -> Iterator[Any]:
    """Modules that draw. Not where samplers are from: who imports one of those meanwhile gets an honest one."""
    for module in list(sys.modules.values()):
        path = getattr(module, "__name__", "")
        drawing = path.startswith("defocus.") and not path.startswith("defocus.noise")
        if drawing and getattr(module, name, None) is honest:
            yield module


def table(found: dict[str, Finding]) -> str:
    """Charged epsilon, lower bound and their ratio, one line for each audit."""
    wide = max(map(len, found))
    lines = [f"{'':{wide}}  {'at delta':>8}  {'charged':>8}  {'at least':>8}  {'ratio':>5}  {'runs':>6}  event"]
    for name, one in found.items():
        charged = float(one.claimed or 0)
        lines.append(
            f"{name:{wide}}  {one.delta:8.2g}  {charged:8.4f}  {one.epsilon_lower:8.4f}  "
            f"{one.epsilon_lower / charged:5.2f}  {one.trials:6d}  {one.event:.60}"
        )
    return "\n".join(lines)

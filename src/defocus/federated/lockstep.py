"""Sites that go through one plan in lockstep: a secure sum where it meets noise, and the same sum at each of them."""

import hashlib
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import DefocusError, ProtocolError
from defocus.federated.coordinator import Coordinator
from defocus.federated.identity import Identity
from defocus.federated.party import Party
from defocus.federated.sum_plan import SumPlan
from defocus.mechanisms import Gaussian, Laplace
from defocus.mechanisms.noise_shares import NoiseShare, SpareNoise

__all__ = ["Circle", "Hub", "Link", "after", "sum_plan"]

_BITS = 64
"""Sums of tables are exact modulo 2**64, as they are in one table."""


class Circle(Protocol):
    """Those who answer one question together, as one of them reaches the others."""

    @property
    def parties(self) -> tuple[bytes, ...]:
        """The public keys of all of them."""

    @property
    def name(self) -> bytes:
        """What tells this question, asked now, from all others: 32 bytes."""

    @property
    def failure(self) -> DefocusError | None:
        """Why there is no sum, where it is not this site's fault."""

    @property
    def survivors(self) -> frozenset[int]:
        """Whose rows are in the last sum, as far as is known here."""

    @property
    def dropouts(self) -> int:
        """How many may be gone."""

    def plan(self, step: int, length: int, seen: bytes, spare: SpareNoise | None) -> SumPlan:
        """What is agreed on for one sum."""

    def exchange(self, number: int, plan: SumPlan, message: bytes) -> bytes | NDArray[np.int64]:
        """Hand in a message, and wait for what to do next: another message, or the sum."""

    def leave(self, number: int) -> None:
        """Say that a site takes part no more."""


def sum_plan(
    parties: tuple[bytes, ...],
    dropouts: int,
    colluding: int,
    name: bytes,
    at: tuple[int, int, bytes, SpareNoise | None],
) -> SumPlan:
    """The plan of one sum, at a step, of a length, after sums with a digest, with noise for those who may be gone.

    What was seen before is part of its name. A coordinator that tells sites different sums, to make one of them bound
    people less than the noise of the others is for, brings them into different sums, of which none is finished.
    """
    step, length, seen, spare = at
    told = hashlib.sha256(name + step.to_bytes(8) + seen).digest()
    return SumPlan(parties, length, _BITS, dropouts, colluding, told, spare)


def after(seen: bytes, total: NDArray[np.int64]) -> bytes:
    """The digest of all sums so far, with one more."""
    return hashlib.sha256(seen + total.astype("<i8").tobytes()).digest()


@final
@dataclass(slots=True, eq=False)
class Link:
    """What one site is connected by: it draws shares of noise and takes part in one secure sum after the other."""

    hub: "Circle"
    number: int
    identity: Identity
    honest: int
    overlap: int
    asked: Any = None
    steps: int = 0
    seen: bytes = b""
    """The digest of all sums so far: who was told other numbers is in another sum from then on."""
    failed: bool = False
    """Whether this site failed by itself, and not for want of others."""
    refused: str = ""
    """Why it went on no more, where that is for what others said, and so tells nothing of its rows."""
    missing: int | None = None
    """How many were gone from the last sum, as enough sites signed."""

    @property
    def key(self) -> int:
        """128 bits that all sites know."""
        return int.from_bytes(hashlib.sha256(b"defocus.federated/1 rows" + self.hub.name).digest()[:16])

    def share(self, mechanism: Laplace | Gaussian) -> NoiseShare:
        """The noise of a sum over all sites."""
        parties, gone, missing = len(self.hub.parties), self.hub.dropouts, list[int | None]()

        def added(vector: NDArray[np.int64], spare: SpareNoise | None) -> NDArray[np.int64]:
            total = self._added(vector, spare)
            missing[:] = [self.missing]
            return total

        return NoiseShare(mechanism, self.honest, parties, added, gone, lambda: missing[0] if missing else None)

    def _added(self, vector: NDArray[np.int64], spare: SpareNoise | None) -> NDArray[np.int64]:
        self.steps += 1
        plan = self.hub.plan(self.steps, len(vector), self.seen, spare)
        party = Party(plan, self.number, self.identity, vector)
        message = party.begin()
        while True:
            reply = self.hub.exchange(self.number, plan, message)
            if not isinstance(reply, bytes):
                if party.due is not None:  # else a coordinator could tell each site that others are missing
                    raise ProtocolError("A sum came before its survivors were signed by enough sites.")
                self.seen, self.missing = after(self.seen, reply), party.missing
                return reply
            try:
                message = party.receive(reply)
            except ProtocolError as problem:
                self.refused = problem.what
                raise


@final
@dataclass(slots=True, eq=False)
class Hub:
    """The coordinator: it answers each site when all that are left have spoken. Each is heard in its own thread."""

    parties: tuple[bytes, ...]
    name: bytes
    dropouts: int
    colluding: int
    left: set[int] = field(default_factory=set)
    turn: threading.Condition = field(default_factory=threading.Condition)
    coordinator: Coordinator | None = None
    session: bytes = b""
    opening: dict[int, tuple[SumPlan, bytes]] = field(default_factory=dict)
    """The next sum, as each site that has come to it plans it, with its first message."""
    refused: dict[int, DefocusError] = field(default_factory=dict)
    replies: dict[int, bytes | NDArray[np.int64]] = field(default_factory=dict)
    failure: DefocusError | None = None
    survivors: frozenset[int] = frozenset()
    """Whose rows are in the last sum."""

    @property
    def _there(self) -> set[int]:
        return set(range(1, len(self.parties) + 1)) - self.left

    def plan(self, step: int, length: int, seen: bytes, spare: SpareNoise | None) -> SumPlan:
        """What is agreed on for one sum; see :func:`sum_plan`."""
        return sum_plan(self.parties, self.dropouts, self.colluding, self.name, (step, length, seen, spare))

    def exchange(self, number: int, plan: SumPlan, message: bytes) -> bytes | NDArray[np.int64]:
        """Hand in a message, and wait for what to do next: another message, or the sum."""
        with self.turn:
            if self.coordinator is None or self.coordinator.due is None:
                self.opening[number] = plan, message
            else:
                self._accept(self.coordinator, plan, message)
            self._go_on()
            self.turn.wait_for(lambda: {number} & {*self.replies, *self.refused} or self.failure is not None)
            if number in self.refused:
                raise self.refused.pop(number)
            if self.failure is not None:
                raise ProtocolError(f"There is no sum: {self.failure.what}")
            return self.replies.pop(number)

    def leave(self, number: int) -> None:
        """Say that a site takes part no more."""
        with self.turn:
            self.left.add(number)
            self._go_on()

    def _accept(self, coordinator: Coordinator, plan: SumPlan, message: bytes) -> None:
        if plan.session != self.session:
            raise ProtocolError("It computes something else than the others.")
        coordinator.accept(message)

    def _begin(self) -> None:
        """Begin the sum that most of those who are left plan; who plans another one takes part no more."""
        planned = Counter(plan.session for plan, _ in self.opening.values())
        self.session = planned.most_common(1)[0][0]
        plan = next(plan for plan, _ in self.opening.values() if plan.session == self.session)
        self.coordinator = coordinator = Coordinator(plan)
        for number, (own, message) in self.opening.items():
            try:
                self._accept(coordinator, own, message)
            except DefocusError as problem:
                self.refused[number] = problem
                self.left.add(number)
        self.opening = {}

    def _go_on(self) -> None:
        """End the step when nobody is missing who is still there."""
        if self.opening and not self._there - self.opening.keys():
            self._begin()
            self.turn.notify_all()
        coordinator = self.coordinator
        if coordinator is None or coordinator.due is None or coordinator.missing - self.left:
            return
        try:
            replies: dict[int, bytes | NDArray[np.int64]] = dict(coordinator.advance())
            if not replies:  # the last step is over
                total = coordinator.sum()
                self.survivors = coordinator.survivors
                replies = {number: total.copy() for number in self.survivors}
        except Exception as problem:  # noqa: BLE001  # nobody may wait for ever
            self.failure = problem if isinstance(problem, DefocusError) else ProtocolError("The coordinator failed.")
            replies = {}
        self.replies |= {number: reply for number, reply in replies.items() if number not in self.left}
        self.turn.notify_all()

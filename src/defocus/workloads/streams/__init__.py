"""Continual release: a running count or vector sum over a stream, charged once as a whole."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np

from defocus.errors import InvalidParameterError, Number, choice, count, positive
from defocus.ledger import Ledger
from defocus.mechanisms.mechanism import NOISES, checked_budget
from defocus.noise import Bits
from defocus.noise.bits import source
from defocus.privacy.budgets import Budget
from defocus.privacy.events import DiscreteGaussian, DiscreteLaplace
from defocus.privacy.expressions import unparse
from defocus.privacy.html import html_facts
from defocus.privacy.units import Adjacency, Unit, rows
from defocus.release.charge import charge
from defocus.workloads.strategy import covers
from defocus.workloads.streams.design import METHODS, SHORT, Design, Errors, Participation, design
from defocus.workloads.streams.run import Running, counted, memory_of
from defocus.workloads.streams.state import (
    StateFile,
    codes_of,
    design_of,
    load,
    must_be_ledger,
    newest,
    opened,
    paid,
    resting,
    take,
)
from defocus.workloads.streams.strategies import Floats

__all__ = ["RunningSum"]

_LONGEST = 2**24
_ALSO = {"sqrt": "square root", "binarytree": "tree"}
"""What others call these methods."""


@final
@dataclass(frozen=True, slots=True)
class RunningSum:
    r"""A plan to release the running sum after each of ``steps`` steps, at one price for the whole stream.

    What is noised are the rows of an integer lower-triangular strategy C: :math:`y_t = (Cx)_t + z_t`, exact integers
    plus independent discrete noise. The running sum after step t is computed from :math:`y_1 … y_t` alone.

    Guarantee:
        The whole stream is one event. Neighbouring streams differ in the participations of one unit, which move
        the rows by at most the declared sensitivity, computed exactly from the integer columns. This holds even if
        each step is chosen after seeing every sum before it: C is lower triangular and each row has noise of its
        own, so given what was seen, row t is one release whose shift is fixed, and along every path the squared
        shifts add up to at most the squared sensitivity (the absolute shifts, for Laplace noise). For
        discrete Gaussian noise the rows are, up to the factor the accountant carries, roundings of rows with
        continuous Gaussian noise, for which adaptive streams lose no more than fixed ones.
    Assumes:
        A unit takes part in at most ``participations`` steps, any two at least ``separation`` apart, and moves
        each by at most ``contribution`` in L2 norm (L1 for Laplace noise). Under add/remove its participations are
        absent from the neighbouring stream; under replace they, and when they take place, may be others, which
        doubles the sensitivity. The steps themselves (how many, and when) are public.

    Error:
        Unbiased unless entries are cut to ±``largest``. With the column-normalised square root, 1024 steps
        and noise 1 for sensitivity 1, the mean and largest variance are 8.95 and 9.49, against 55 and 110
        for the binary tree; they grow with the square of ln(T)/π.
    Reference:
        Denisov, McMahan, Rush, Smith, Thakurta (2022), Improved differential privacy for SGD via optimal private
        linear operators on adaptive streams, Theorem 2.1 (adaptivity); Henzinger, Upadhyay, Upadhyay (2023);
        Henzinger, Kalinin, Upadhyay (2025); Kalinin, Lampert (2024); Andersson, Pagh (2024).

    Args:
        steps: how many steps the stream has, at most.
        epsilon: what the whole stream may cost, with ``delta`` where it has one.
        delta: likewise.
        rho: what it may cost in zero-concentrated DP, instead.
        mu: what it may cost in Gaussian DP, instead; no discrete noise can meet it exactly, so it is refused.
        entries: the length of each step's vector; None for a stream of single numbers.
        contribution: how much one participation moves the sum of its step.
        participations: in how many steps one unit may take part.
        separation: how many steps apart any two of them are, at least.
        unit: what the ledger protects; one row, added or removed by default. What is said above about one unit is
            said about this one.
        noise: "gaussian", or "laplace" for a price without a delta (with the tree only).
        method: "square root" (column-normalised for single participation; remembers every step), "binned" (nearly the
            same error, remembers O(log T) partial sums), "banded" (remembers ``bandwidth`` steps; best for many
            participations far apart, where it is searched for in seconds), "tree" (for comparison), or "auto".
        bandwidth: how many steps "banded" remembers; the one with the least error by default.
        spread: how many partial sums "binned" keeps of each size; more are more accurate.
        largest: the largest entry of a step; larger ones are cut to it.

    >>> visits = RunningSum(365, epsilon=1, delta=1e-6)
    >>> visits.method, round(visits.standard_error(365), 1), round(visits.interval(365), 1)
    ('square root', 10.1, 19.8)
    >>> round(RunningSum(365, epsilon=1, delta=1e-6, method="tree").standard_error(365), 1)
    31.0
    """

    steps: int
    epsilon: Number | None = field(default=None, kw_only=True)
    delta: Number | None = field(default=None, kw_only=True)
    rho: Number | None = field(default=None, kw_only=True)
    mu: Number | None = field(default=None, kw_only=True)
    entries: int | None = field(default=None, kw_only=True)
    contribution: Number = field(default=1, kw_only=True)
    participations: int = field(default=1, kw_only=True)
    separation: int = field(default=1, kw_only=True)
    unit: Unit = field(default_factory=rows, kw_only=True)
    noise: str = field(default="gaussian", kw_only=True)
    method: str = field(default="auto", kw_only=True)
    bandwidth: int | None = field(default=None, kw_only=True)
    spread: int = field(default=16, kw_only=True)
    largest: int = field(default=2**24, kw_only=True)
    _design: Design = field(init=False, repr=False, compare=False)
    _errors: Errors = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        price = self.price
        if count("steps", self.steps) > _LONGEST:
            raise InvalidParameterError(
                f"A stream has at most {_LONGEST} steps.", fix="make steps longer, or split the stream in years."
            )
        entries = 1 if self.entries is None else count("entries", self.entries)
        if positive("contribution", self.contribution) < 1:
            raise InvalidParameterError(
                "contribution is below 1, but integers that differ are at least 1 apart.",
                fix="give it in steps of the integer grid that the data is on.",
            )
        times = min(
            count("participations", self.participations), -(-self.steps // count("separation", self.separation))
        )
        if not isinstance(self.unit, Unit):
            raise InvalidParameterError(
                "unit must be a Unit.", fix="write for example unit=rows() or unit=ledger.unit."
            )
        covers(self.unit, self.contribution)
        replace = self.unit.adjacency is Adjacency.REPLACE
        object.__setattr__(self, "noise", choice("noise", self.noise, ("gaussian", "laplace"), NOISES))
        object.__setattr__(self, "method", choice("method", self.method, ("auto", *METHODS), _ALSO))
        object.__setattr__(self, "method", self._chosen(times))
        designed = design(
            steps=self.steps,
            entries=entries,
            largest=count("largest", self.largest),
            price=price,
            laplace=self.noise == "laplace",
            participation=Participation(times, self.separation, self.contribution, replace),
            method=self.method,
            bandwidth=None if self.bandwidth is None else count("bandwidth", self.bandwidth),
            spread=count("spread", self.spread),
        )
        object.__setattr__(self, "_design", designed)
        object.__setattr__(self, "_errors", Errors(designed))

    def _chosen(self, times: int) -> str:
        if self.noise == "laplace" and self.method not in ("auto", "tree"):
            raise InvalidParameterError(
                f"Laplace noise does not suit the method {self.method!r}: its columns are short in L2, but long in L1.",
                fix='use noise="gaussian" with a delta, or method="tree".',
            )
        if self.bandwidth is not None and self.method != "banded":
            raise InvalidParameterError("Only a banded strategy has a bandwidth.", fix='pass method="banded" with it.')
        if self.method == "square root" and self.steps > 4 * SHORT:
            raise InvalidParameterError(
                f"The square root remembers every step, and {self.steps} are too many for that.",
                fix='use method="binned", which remembers O(log steps) partial sums at nearly the same error.',
            )
        if self.method != "auto":
            return self.method
        if self.noise == "laplace":
            return "tree"
        if times > 1:
            return "banded"
        return "square root" if self.steps <= SHORT else "binned"

    @property
    def price(self) -> Budget:
        """What the whole stream may cost."""
        return checked_budget(epsilon=self.epsilon, delta=self.delta, rho=self.rho, mu=self.mu)

    @property
    def event(self) -> DiscreteGaussian | DiscreteLaplace:
        """What the whole stream owes, charged when it starts."""
        return self._design.noise.event

    @property
    def memory(self) -> int:
        """How many partial sums, of each entry, are remembered from step to step."""
        return self._design.strategy.memory

    @property
    def variances(self) -> Floats:
        """The variance of one entry of the running sum after each step. Long streams take a while: see the guide."""
        return self._errors.all()

    def variance(self, step: int) -> float:
        """The variance of one entry of the running sum after ``step`` steps, counted from one."""
        return self._errors.variance(self._step(step))

    def standard_error(self, step: int) -> float:
        """The standard deviation of one entry after ``step`` steps."""
        return float(np.sqrt(self.variance(step)))

    def interval(self, step: int, confidence: Number = 0.95) -> float:
        """A half-width that one entry's error after ``step`` steps stays within with probability ``confidence``."""
        return self._errors.half_width(self._step(step), confidence)

    def start(
        self,
        *,
        ledger: Ledger,
        purpose: str,
        who: str | None = None,
        state_file: str | Path | None = None,
        bits: Bits | None = None,
    ) -> Running:
        """Charge the whole stream to ``ledger`` and start it.

        A stream takes no ``request``: its sums are released step by step, and :meth:`resume` goes on with them.

        Args:
            ledger: what to charge, once, before any noise is drawn.
            purpose: why, in one line.
            who: by whom; the account's name by default.
            state_file: where to keep the secret state after each step, so that the stream survives a crash. It must
                not exist yet. Without one the stream ends with the process, or with :meth:`Running.save`.
            bits: the source of random bits; the system's by default.
        """
        drawn_from = source(bits)
        must_be_ledger(ledger)
        if ledger.unit != self.unit:
            raise InvalidParameterError(
                f"The plan protects {self.unit}, but the ledger protects {ledger.unit}; nothing was charged.",
                fix="plan with unit=ledger.unit, and say how often such a unit takes part and how much it contributes.",
            )
        file = None if state_file is None else StateFile(state_file)
        if file is not None:
            file.hold(new=True)
        try:
            if file is not None:
                codes_of(ledger, sequence=0, digest="").ready()
            receipt = charge(self.event, ledger=ledger, purpose=purpose, who=who)
            codes = codes_of(ledger, sequence=receipt.sequence, digest=receipt.hash)
            header = {
                "charge": receipt.sequence,
                "hash": receipt.hash,
                "number": 0,
                "single": self.entries is None,
                "file": None if file is None else file.home,
                "design": self._design.to_dict(),
            }
            return _running(self._design, self._errors, header, file, drawn_from, codes=codes)
        except BaseException:
            if file is not None:
                file.let_go()
            raise

    @staticmethod
    def resume(
        state: Mapping[str, Any] | str | Path, *, ledger: Ledger, who: str | None = None, bits: Bits | None = None
    ) -> Running:
        """Go on with a stream from what :meth:`Running.save` returned, or from the path of its state file.

        It must be the newest state, as it was kept: edited ones and older copies are refused. Each state can be left
        once: the ledger notes that it was, and a second time is refused. Nothing is charged.
        """
        drawn_from = source(bits)
        must_be_ledger(ledger)
        file = StateFile(state) if isinstance(state, str | Path) else None
        if file is not None:
            file.hold(new=False)
        try:
            kept = opened(state) if file is None else file.read()
            event = paid(ledger, kept)
            codes = codes_of(ledger, sequence=kept["charge"], digest=kept["hash"])
            kept = newest(kept, file, codes)
            designed = design_of(kept, event)
            memory = memory_of(designed)
            load(memory, kept)
            number = int(kept["number"])
            with resting(kept, file):
                take(ledger, digest=kept["hash"], number=number, who=who)
            header = {name: kept[name] for name in ("charge", "hash", "single", "design")}
            header |= {"number": number + 1, "file": None if file is None else file.home}
            before = {"memory": memory, "last": kept["last"], "code": kept["checksum"]}
            return _running(designed, Errors(designed), header, file, drawn_from, codes=codes, **before)
        except BaseException:
            if file is not None:
                file.let_go()
            raise

    def __str__(self) -> str:
        end = f", {self._at_the_end()}" if self.steps <= SHORT else ""
        return (
            f"running sum over {counted(self.steps, 'step')} by {self.method}{end}; it remembers {self._remembered()}"
        )

    def _repr_html_(self) -> str:
        facts = {"running sum": f"over {counted(self.steps, 'step')} by {self.method}"}
        if self.steps <= SHORT:
            facts["error"] = self._at_the_end()
        price, event = str(self.price), unparse(self.event)
        return html_facts(
            {**facts, "remembers": self._remembered(), "protected": str(self.unit), "price": price, "cost": event}
        )

    def _at_the_end(self) -> str:
        return f"standard error {self.standard_error(self.steps):.4g} at the end"

    def _remembered(self) -> str:
        return counted(self.memory, "partial sum")

    def _step(self, step: object) -> int:
        number = count("step", step)
        if number > self.steps:
            raise InvalidParameterError(
                f"There is no step {number} in a stream of {self.steps}.", fix=f"pass 1 <= step <= {self.steps}."
            )
        return number


def _running(
    designed: Design,
    errors: Errors,
    header: dict[str, Any],
    file: StateFile | None,
    bits: Bits,
    *,
    memory: Any = None,
    **kept: Any,
) -> Running:
    memory = memory_of(designed) if memory is None else memory
    told = {"last": None, "code": None, **kept}
    return Running(designed, errors, memory, single=header["single"], bits=bits, header=header, file=file, **told)

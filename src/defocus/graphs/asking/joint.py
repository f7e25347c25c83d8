"""Several statistics in one release."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from defocus.graphs.columns import Column, noisy
from defocus.graphs.data import Data
from defocus.graphs.noising import Finish, VectorNoise, attempted, noises
from defocus.graphs.public import Public
from defocus.graphs.questions import Method, Result
from defocus.graphs.statistic import IntVector
from defocus.graphs.statistics import Joint
from defocus.mechanisms import Laplace
from defocus.noise import Bits
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event, compose

__all__ = ["AskJoint", "ScaledNoise"]


@final
@dataclass(frozen=True, slots=True)
class AskJoint:
    """All entries of several statistics, charged as one event."""

    statistic: Joint

    @property
    def words(self) -> str:
        """What is asked."""
        return f"{self.statistic.name}, together"

    def methods(self, public: Public, budget: Budget) -> Sequence[Method]:
        """The same noise on all entries of one vector, or noise for each statistic on its own scale."""
        lengths = [part.length(public) for part in self.statistic.parts]
        titles = [part.name for part in self.statistic.parts]
        finish = _columns(titles) if set(lengths) == {1} else _rows(titles, lengths)
        return attempted(
            [
                *(
                    (lambda made=made: made)
                    for made in noises(self.statistic, public, budget, finish, prefix="vector, ")
                ),
                lambda: _scaled(self.statistic, public, budget, lengths),
            ]
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class ScaledNoise:
    r"""Laplace noise of its own scale for each statistic.

    Guarantee:
        With sensitivities :math:`\Delta_i` and scales :math:`b_i`, :math:`\sum_i \Delta_i/b_i`-DP: the event is the
        composition of all parts. One scale for all is the special case of the joint vector.

    Error:
        With :math:`l_i` entries each, the total error :math:`\sum l_i b_i` at a given epsilon is least for
        :math:`b_i \propto \sqrt{\Delta_i/l_i}`, and never more than that of one scale.
    """

    statistic: Joint
    mechanisms: tuple[Laplace, ...]
    lengths: tuple[int, ...]
    directed: bool
    name: str = "scaled, laplace"
    rules: tuple[str, ...] = ()

    @property
    def event(self) -> Event:
        """All parts, composed."""
        return compose([mechanism.event for mechanism in self.mechanisms])

    @property
    def error(self) -> float:
        """The expected absolute error of an entry, averaged over all."""
        total = sum(n * mechanism.error for n, mechanism in zip(self.lengths, self.mechanisms, strict=True))
        return total / sum(self.lengths)

    @property
    def interval(self) -> float:
        """Differs between the statistics."""
        return math.nan

    @property
    def how(self) -> str:
        """The scale for each statistic."""
        scales = ", ".join(f"{float(mechanism.scale):.4g}" for mechanism in self.mechanisms)
        return f"discrete Laplace noise of scales {scales}"

    def run(self, data: Data, bits: Bits) -> Result:
        """Count everything, then add noise part by part."""
        graph = data.directed if self.directed else data.graph
        titles = [part.name for part in self.statistic.parts]
        columns = []
        for part, title, mechanism in zip(self.statistic.parts, titles, self.mechanisms, strict=True):
            values = np.asarray(mechanism.sample(part.exact(graph), bits))
            how = f"discrete Laplace noise of scale {float(mechanism.scale):.6g}"
            half = float(mechanism.interval(0.95))
            columns.append(noisy(title, values, error=mechanism.error, half=half, how=how))
        if set(self.lengths) == {1}:
            return Result(tuple(columns))
        return _stacked(titles, columns, self.how)


def _scaled(statistic: Joint, public: Public, budget: Budget, lengths: list[int]) -> ScaledNoise:
    reaches = [part.reach(public) for part in statistic.parts]
    weights = [math.isqrt(10**12 * reach.l1 // n) + 1 for reach, n in zip(reaches, lengths, strict=True)]
    # With b_i = w_i c, the sum of Δ_i / b_i is epsilon for c = Σ(Δ_i / w_i) / epsilon.
    unit = sum((Fraction(reach.l1, w) for reach, w in zip(reaches, weights, strict=True)), Fraction(0))
    epsilon: Any = budget.epsilon
    mechanisms = [
        Laplace(scale=_up(unit * w / Fraction(epsilon)), sensitivity=reach.l1)
        for reach, w in zip(reaches, weights, strict=True)
    ]
    return ScaledNoise(statistic, tuple(mechanisms), tuple(lengths), public.directed)


def _up(scale: Fraction) -> Fraction:
    """The scale in millionths, rounded up: shorter to write down, and a little more private."""
    return Fraction(math.ceil(scale * 10**6), 10**6)


def _columns(titles: Sequence[str]) -> Finish:
    def finish(method: VectorNoise, values: IntVector, _data: Data) -> Result:
        error, half, how = method.mechanism.error, method.interval, method.how
        parts = zip(titles, values, strict=True)
        return Result(tuple(noisy(title, [value], error=error, half=half, how=how) for title, value in parts))

    return finish


def _rows(titles: Sequence[str], lengths: Sequence[int]) -> Finish:
    def finish(method: VectorNoise, values: IntVector, _data: Data) -> Result:
        error, half, how = method.mechanism.error, method.interval, method.how
        parts = np.split(values, np.cumsum(lengths)[:-1])
        return _stacked(titles, [noisy("", part, error=error, half=half, how=how) for part in parts], how)

    return finish


def _stacked(titles: Sequence[str], columns: Sequence[Column], how: str) -> Result:
    """One row for each entry, where statistics differ in length."""
    fields = {
        field: np.concatenate([getattr(column, field) for column in columns])
        for field in ("values", "errors", "low", "high")
    }
    keys: dict[str, Sequence[Any]] = {
        "statistic": [title for title, column in zip(titles, columns, strict=True) for _ in column.values],
        "entry": [entry for column in columns for entry in range(len(column.values))],
    }
    return Result((Column("value", **fields, integral=True, how=how),), keys=keys)

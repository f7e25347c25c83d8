"""How a budget is shared between measurements, and with which noise each is made."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias, final

from defocus.errors import CannotCalibrateError
from defocus.privacy import calibrate
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event, Exponential, Pure, compose
from defocus.tables.noises import CellNoise, Reach, gaussian, gaussian_event, laplace

__all__ = ["Key", "Noises", "Task", "shared"]

Key: TypeAlias = tuple[str, str | int]
"""Which measurement: its kind, and its number or name. Names that people choose cannot meet those of other kinds."""


@final
@dataclass(frozen=True, slots=True)
class Noises:
    """What was found for each task: noise if it adds some, else what it may spend."""

    made: Mapping[Key, CellNoise | Fraction]

    def noise(self, key: Key, reach: Reach) -> CellNoise:
        """The noise of a task with this reach."""
        found = self.made[key]
        if not isinstance(found, CellNoise) or found.reach != reach:
            raise AssertionError(f"{key} was planned for another reach")  # also where asserts are left out
        return found

    def epsilon(self, key: Key) -> Fraction:
        """What a task without a reach may spend."""
        found = self.made[key]
        assert isinstance(found, Fraction), f"{key} was planned to add noise"  # noqa: S101  # a slip of the planner
        return found


@final
@dataclass(frozen=True, slots=True)
class Task:
    """One measurement that wants a share. It adds noise to cells if it has a reach, else it chooses or is pure."""

    key: Key
    importance: float
    reach: Reach | None = None
    fixed: Fraction | None = None
    chooses: bool = False
    """Whether it is an exponential mechanism, of bounded range; what has no reach and does not choose is pure."""


def shared(tasks: Sequence[Task], epsilon: Fraction, delta: Fraction) -> tuple[Noises, bool]:
    """The noise of each task with the least total relative error, and whether it uses the delta."""
    pure = _pure(tasks, epsilon)
    mixed = _mixed(tasks, epsilon, delta) if delta else None
    if mixed is not None and _error(tasks, mixed) < _error(tasks, pure):
        return Noises(mixed), True
    return Noises(pure), False


def _pure(tasks: Sequence[Task], epsilon: Fraction) -> dict[Key, CellNoise | Fraction]:
    """Shares of epsilon. The variance of a task is proportional to 1/share², so shares go with the cube root."""
    shares = _shares(tasks, 1 / 3)
    return {
        task.key: laplace(task.reach, epsilon * share) if task.reach is not None else epsilon * share
        for task, share in zip(tasks, shares, strict=True)
    }


def _mixed(tasks: Sequence[Task], epsilon: Fraction, delta: Fraction) -> dict[Key, CellNoise | Fraction] | None:
    """Gaussian noise where noise is added. Variances are proportional to 1/share of rho, so shares go with the root."""
    if all(task.reach is None for task in tasks):
        return None
    shares = _shares(tasks, 1 / 2)
    wanted = tuple((task.reach, task.chooses, share) for task, share in zip(tasks, shares, strict=True))
    try:
        x = _calibrated(wanted, epsilon, delta)
    except CannotCalibrateError:
        return None
    return {
        task.key: _spent(chooses, share, x) if reach is None else gaussian(reach, x / math.sqrt(share))
        for task, (reach, chooses, share) in zip(tasks, wanted, strict=True)
    }


@lru_cache(maxsize=256)
def _calibrated(wanted: tuple[tuple[Reach | None, bool, Fraction], ...], epsilon: Fraction, delta: Fraction) -> float:
    """The least x for which a task with share s may have Gaussian noise of x/√s times its reach."""

    def family(x: float) -> Event:
        parts: list[Event] = []
        for reach, chooses, share in wanted:
            if reach is not None:
                parts.append(gaussian_event(reach, x / math.sqrt(share)))
            else:
                spent = _spent(chooses, share, x)
                parts.append(Exponential(spent) if chooses else Pure(spent))
        return compose(parts)

    return calibrate(family, Budget(epsilon, delta))


def _spent(chooses: bool, share: Fraction, x: float) -> Fraction:
    """What a task without a reach may spend in epsilon: as much of rho, s/(2x²), as Gaussian noise of ratio x/√s.

    A choice of bounded range e is (e²/8)-zCDP. Laplace noise for e, which trees and searches for bounds add, is at
    most (e²/2)-zCDP.
    """
    return Fraction((2 if chooses else 1) * math.sqrt(share) / x)


def _shares(tasks: Sequence[Task], power: float) -> list[Fraction]:
    """Parts of one: what is fixed first, the rest by importance."""
    fixed = sum((task.fixed for task in tasks if task.fixed is not None), Fraction(0))
    scale = min(Fraction(1), Fraction(1, 2) / fixed) if fixed else Fraction(1)
    rest = 1 - fixed * scale
    free = [task.importance**power for task in tasks if task.fixed is None]
    if not free:
        return [Fraction(1, len(tasks)) for _ in tasks]
    parts = iter(_parts(free))
    return [task.fixed * scale if task.fixed is not None else rest * next(parts) for task in tasks]


def _parts(numbers: Sequence[float]) -> list[Fraction]:
    """Numbers as exact parts of one."""
    whole = [max(1, round(number / sum(numbers) * 10**6)) for number in numbers]
    return [Fraction(part, sum(whole)) for part in whole]


def _error(tasks: Sequence[Task], noises: Mapping[Key, CellNoise | Fraction]) -> float:
    """What is minimised: the variance of each task relative to its reach, weighted by importance."""
    total = 0.0
    for task in tasks:
        made = noises[task.key]
        if isinstance(made, CellNoise):
            reach = 1.0 if task.reach is None else float(task.reach.l1)
            total += task.importance * made.variance / reach**2
        else:
            total += task.importance * 8 / float(made) ** 2
    return total

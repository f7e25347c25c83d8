"""Profiles of losses with finitely many values."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from defocus.privacy.accounting.pld.profiles import Curve, Floats, Tails, U

__all__ = ["Atoms"]


@final
@dataclass(frozen=True, slots=True)
class Atoms:
    """A loss with finitely many values: randomised response, and the worst pure or approximate mechanism.

    ``losses`` increase; ``p`` and ``q`` are the masses of P and Q there, correct to ``error`` relative;
    each law puts ``at_infinity`` where the other has none.
    """

    losses: tuple[float, ...]
    p: tuple[float, ...]
    q: tuple[float, ...]
    at_infinity: float = 0.0
    symmetric: bool = True
    error: float = 16 * U
    atomic = True

    @property
    def top(self) -> float:
        """See the protocol."""
        return self.losses[-1]

    @property
    def bottom(self) -> float:
        """See the protocol."""
        return -math.inf if self.at_infinity else self.losses[0]

    def curve(self, l: Floats) -> Curve:
        """See the protocol: a sum over the atoms beyond l."""
        atoms, p, q = (np.asarray(a)[:, None] for a in (self.losses, self.p, self.q))
        gain = np.where(
            l >= 0,
            np.where(atoms > l, p * -np.expm1(np.minimum(l - atoms, 0.0)), 0.0),
            np.where(atoms < l, q * np.exp(np.minimum(l, 0.0)) * -np.expm1(np.minimum(atoms - l, 0.0)), 0.0),
        )
        steep = np.where(
            l >= 0, np.where(atoms >= l, p, 0.0), np.where(atoms <= l, q * np.exp(np.minimum(l, 0.0)), 0.0)
        )
        damp = np.exp(np.minimum(l, 0.0)) * self.at_infinity
        excess = gain.sum(axis=0) + damp
        slope = steep.sum(axis=0) + damp
        worst = max(abs(self.losses[0]), abs(self.losses[-1]))
        return Curve(excess, (self.error + 16 * U) * excess + 32 * U * (1 + worst) * slope + 1e-300, slope)

    def tails(self, l: Floats) -> Tails:
        """See the protocol."""
        atoms, p, q = (np.asarray(a)[:, None] for a in (self.losses, self.p, self.q))
        above = atoms > l
        lost = self.at_infinity
        return Tails(
            (p * above).sum(axis=0) + lost,
            (p * ~above).sum(axis=0),
            (q * above).sum(axis=0),
            (q * ~above).sum(axis=0) + lost,
            np.full_like(l, self.error + 8 * U * len(self.losses)),
        )

    def atoms(self) -> "Atoms":
        """See the protocol."""
        return self

    def grid(self, step: float, log_tail: float) -> Floats:
        """See the protocol."""
        del step, log_tail
        return np.asarray(self.losses)

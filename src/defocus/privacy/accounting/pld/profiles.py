r"""Privacy profiles: what one release does to the odds, as a curve with certified rounding error.

For a pair of output laws (P, Q) with privacy loss :math:`L = \log dP/dQ`, the profile is
:math:`\delta(l) = \sup_S P(S) - e^l Q(S)`. It never lies below :math:`\max(0, 1-e^l)`; a
profile here reports its *excess* over that floor, which is the quantity that can be
computed with small relative error on both sides of zero:

.. math:: x(l) = \delta(l) - \max(0, 1 - e^l).

Swapping P and Q gives :math:`x'(l) = e^l x(-l)`, so both directions of an adjacency come
from one curve. Poisson sampling at rate q maps the curve to :math:`q\,x(l)` at
:math:`l' = \log(1 - q + q e^l)`.

Reference:
    Zhu, Dong, Wang (2022), Optimal accounting of differential privacy via characteristic
    function, Theorem 11; Doroshenko et al. (2022), Connect the dots.
"""

from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Curve", "Floats", "Masses", "Profile", "Tails", "U"]

Floats: TypeAlias = NDArray[np.float64]
U = 2.0**-53


class Curve(NamedTuple):
    """Values of a profile at some losses."""

    excess: Floats
    """x(l), computed."""
    pad: Floats
    """Bound on the absolute error of ``excess``."""
    steep: Floats
    """Bound on |dx/dl|: what an error in l costs."""


class Tails(NamedTuple):
    """Probabilities of the loss lying above or not above some thresholds, and their relative error."""

    p_above: Floats
    p_below: Floats
    q_above: Floats
    q_below: Floats
    error: Floats


class Masses(Protocol):
    """A loss with few values: what can be enumerated."""

    @property
    def losses(self) -> tuple[float, ...]:
        """The values, increasing."""

    @property
    def p(self) -> tuple[float, ...]:
        """P's masses there."""

    @property
    def q(self) -> tuple[float, ...]:
        """Q's masses there."""

    @property
    def at_infinity(self) -> float:
        """What each law puts where the other has none."""

    @property
    def symmetric(self) -> bool:
        """Whether swapping P and Q gives the same profile."""

    @property
    def error(self) -> float:
        """Relative error of the masses."""


class Profile(Protocol):
    """One pair of output laws."""

    @property
    def top(self) -> float:
        """The largest finite loss."""

    @property
    def bottom(self) -> float:
        """The least loss."""

    @property
    def at_infinity(self) -> float:
        """Mass that P puts where Q puts none."""

    @property
    def symmetric(self) -> bool:
        """Whether swapping P and Q gives the same profile."""

    @property
    def atomic(self) -> bool:
        """Whether the loss takes few values, so that a grid should bracket each of them."""

    def curve(self, l: Floats) -> Curve:
        """The profile at losses ``l``."""

    def tails(self, l: Floats) -> Tails:
        """Probabilities beyond ``l`` under both laws of a pair that occurs."""

    def atoms(self) -> Masses | None:
        """The pair as finitely many atoms, where it is one with few."""

    def grid(self, step: float, log_tail: float) -> Floats:
        """Increasing losses that resolve the law, leaving out about e^log_tail of mass at each end."""

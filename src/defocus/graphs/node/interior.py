"""An interior point method for weights of many things that share few nodes."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from defocus.answers.digits import Floats

__all__ = ["Corners", "solved"]

Corners: TypeAlias = NDArray[np.int64]
"""One row for each kind of thing: its nodes, and the number of nodes where it has less than three."""

_STEPS = 200
"""Usual are five to some dozens; whoever calls proves what was found, however it ended."""
_NEAR = 1e-4
"""No further steps are taken below this gap between weights and prices."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """Weights, their room, the room of nodes, and the prices of each; or a step of all of them, with that of y."""

    x: Floats
    t: Floats
    s: Floats
    z: Floats
    w: Floats
    price: Floats
    y: Floats | float = 0.0

    @property
    def product(self) -> float:
        """What is missing to the optimum."""
        return float(self.x @ self.z + self.t @ self.w + self.s @ self.price)

    def moved(self, step: "_State", one: float, two: float) -> "_State":
        """A step of length ``one`` for amounts and ``two`` for prices."""
        amounts = (self.x + one * step.x, self.t + one * step.t, self.s + one * step.s)
        return _State(*amounts, self.z + two * step.z, self.w + two * step.w, self.price + two * step.price)

    def direction(
        self,
        corners: Corners,
        *,
        theta: Floats,
        loose: Floats,
        system: Callable[[Floats], Floats],
        off: tuple[Floats, Floats, Floats],
        goals: tuple[Floats, Floats, Floats],
    ) -> tuple["_State", float, float]:
        """Newton's step to these products of amounts and prices, and how far each may go."""
        inner = off[1] - goals[0] / self.x + goals[1] / self.t
        right = off[0] + _at_nodes(corners, theta * inner, len(loose)) + loose * (off[2] - goals[2] / self.s)
        y = system(right)
        x = theta * (_at_corners(corners, y) - inner)
        s = loose * (y - off[2] + goals[2] / self.s)
        z, w = (goals[0] - self.z * x) / self.x, (goals[1] + self.w * x) / self.t
        price = (goals[2] - self.price * s) / self.s
        one = min(1.0, _longest(self.x, x), _longest(self.t, -x), _longest(self.s, s))
        two = min(1.0, _longest(self.z, z), _longest(self.w, w), _longest(self.price, price))
        return _State(x, -x, s, z, w, price, y), one, two


def solved(corners: Corners, many: NDArray[np.int64], nodes: int, cap: int) -> tuple[Floats, Floats]:
    r"""Maximise :math:`\sum_T x_T` with :math:`0 \le x_T \le` ``many`` and at most ``cap`` at each node.

    Returns the weights and the prices of nodes, in floating point: whoever calls proves what they are worth. Each step
    solves one symmetric system of as many unknowns as there are nodes, however many things there are.

    Reference:
        Mehrotra (1992), On the implementation of a primal-dual interior point method.
    """
    room = many.astype(np.float64)
    x, t = room / 2, room / 2
    s = np.maximum(cap - _at_nodes(corners, x, nodes), 0.1 * cap)
    z, w = np.ones(len(room)), np.ones(len(room))
    y, price = np.full(nodes, -0.5), np.full(nodes, 0.5)
    best, kept = math.inf, (x, price)
    for _ in range(_STEPS):
        short = cap - _at_nodes(corners, x, nodes) - s
        off = -1.0 - _at_corners(corners, y) - z + w
        off_price = -y - price
        gap = cap * price.sum() + (w * room).sum() - x.sum()
        worst = abs(gap) + np.abs(short).sum() + np.abs(off).max() * room.sum()
        if worst < best:
            best, kept = worst, (x, price)
        if worst < _NEAR:
            break
        mean = (x @ z + t @ w + s @ price) / (2 * len(x) + nodes)
        theta, loose = 1 / (z / x + w / t), s / price
        system = _factored(corners, theta, loose, nodes)
        if system is None:
            break
        state = _State(x, t, s, z, w, price)
        fixed: dict[str, Any] = {"theta": theta, "loose": loose, "system": system, "off": (short, off, off_price)}
        ahead = partial(state.direction, corners, **fixed)
        # How far a step towards the corner goes says how much to stay in the middle.
        aim, one, two = ahead(goals=(-x * z, -t * w, -s * price))
        left = state.moved(aim, one, two).product / (2 * len(x) + nodes)
        target = mean * (left / mean) ** 3
        goals = (
            target - x * z - aim.x * aim.z,
            target - t * w - aim.t * aim.w,
            target - s * price - aim.s * aim.price,
        )
        aim, one, two = ahead(goals=goals)
        one, two = 0.9995 * one, 0.9995 * two
        new = state.moved(aim, one, two)
        x, t, s, z, w, price = new.x, new.t, new.s, new.z, new.w, new.price
        y = y + two * aim.y
    return kept


def _at_nodes(corners: Corners, amounts: Floats, nodes: int) -> Floats:
    """What each node has of all amounts."""
    sums = np.zeros(nodes + 1)
    for side in range(3):
        sums += np.bincount(corners[:, side], weights=amounts, minlength=nodes + 1)
    return sums[:nodes]


def _at_corners(corners: Corners, amounts: Floats) -> Floats:
    """What the nodes of each thing have together."""
    known = np.append(amounts, 0.0)
    together: Floats = known[corners[:, 0]] + known[corners[:, 1]] + known[corners[:, 2]]
    return together


def _factored(corners: Corners, theta: Floats, loose: Floats, nodes: int) -> Callable[[Floats], Floats] | None:
    """A solver for the system of one step; None where floating point can no longer tell."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve  # noqa: PLC0415  # slow to load

    wide = nodes + 1
    flat = np.zeros(wide * wide)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        flat += np.bincount(corners[:, one] * wide + corners[:, other], weights=theta, minlength=wide * wide)
    matrix = flat.reshape(wide, wide)[:nodes, :nodes]
    matrix = matrix + matrix.T
    matrix[np.diag_indices(nodes)] += _at_nodes(corners, theta, nodes) + loose
    try:
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    return lambda right: cho_solve(factor, right, check_finite=False)


def _longest(values: Floats, steps: Floats) -> float:
    """How far values can go before one is zero."""
    falling = steps < 0
    return float(np.min(-values[falling] / steps[falling], initial=math.inf))

"""Linear programs for node privacy, solved with a proof."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from defocus.answers.columns import Floats
from defocus.errors import count, in_range
from defocus.graphs.graph import Graph
from defocus.graphs.kernels.rows import Ints, Longs
from defocus.machine_code import compiled

__all__ = ["GRAIN", "LARGEST", "Corners", "capped_triangles", "optimum", "solved", "triangle_list"]


_ZERO, _SIMPLEX_ONE = Fraction(0), Fraction(1)


def optimum(corners: Sequence[Sequence[int]], many: Sequence[int], nodes: int, cap: int) -> Fraction:
    r"""The largest :math:`\sum_T x_T` with :math:`0 \le x_T \le` ``many`` and at most ``cap`` at each node, exactly.

    ``corners`` lists the nodes of each kind of thing; numbers from ``nodes`` on stand for no node.

    Guarantee:
        It ends, with the optimum, whatever the numbers are. With :math:`\bar x_T = m_T - x_T` beside every
        :math:`x_T`, and a room :math:`s_v` at every node, all variables are bounded below only, and each step here is
        one pivot of the plain simplex method in these variables. A step that raises the total leaves all bases
        before it behind. After one that does not, of the variables that may enter, and of those that may leave, the
        first in a fixed order is taken until the total rises again, so that no basis comes twice meanwhile (Bland).
        There are finitely many bases. Numbers are rational, so that nothing is rounded.

    Error:
        None. The number of steps can be exponential, and is seen to be a few for each thing.
    Reference:
        Bland (1977), New finite pivoting rules for the simplex method.

    >>> optimum([(0, 1, 2), (0, 1, 3), (0, 3, 3)], [1, 1, 4], nodes=3, cap=2)
    Fraction(2, 1)
    """
    state = _Tableau([[v for v in thing if v < nodes] for thing in corners], list(many), nodes, cap)
    while state.pivot():
        pass
    return state.total


@final
@dataclass(slots=True, eq=False)
class _Tableau:
    """A basis, its inverse, and the values of what is in it. After the things, variables are the rooms of nodes."""

    things: list[list[int]]
    many: list[int]
    nodes: int
    cap: int
    full: list[bool] = field(init=False)
    """Which things outside of the basis are at their upper end."""
    basis: list[int] = field(init=False)
    inverse: list[list[Fraction]] = field(init=False)
    values: list[Fraction] = field(init=False)
    prices: list[Fraction] = field(init=False)
    rose: bool = True
    """Whether the last step raised the total."""

    def __post_init__(self) -> None:
        size = len(self.things)
        self.full = [False] * size
        self.basis = [size + v for v in range(self.nodes)]
        self.inverse = [[_SIMPLEX_ONE if u == v else _ZERO for u in range(self.nodes)] for v in range(self.nodes)]
        self.values = [Fraction(self.cap)] * self.nodes
        self.prices = [_ZERO] * self.nodes

    @property
    def total(self) -> Fraction:
        """What all things weigh."""
        size, inside = len(self.things), set(self.basis)
        outside = sum(m for j, m in enumerate(self.many) if self.full[j] and j not in inside)
        return outside + sum((x for j, x in zip(self.basis, self.values, strict=True) if j < size), _ZERO)

    def pivot(self) -> bool:
        """One step; False where none can be an improvement any more."""
        entering = self._entering()
        if entering is None:
            return False
        nodes = self._nodes(entering)
        falling = entering < len(self.things) and self.full[entering]
        column = [sum((row[v] for v in nodes), _ZERO) for row in self.inverse]
        rates = column if falling else [-rate for rate in column]
        # The thing itself may go from one end to the other before anything else is at an end.
        step, order, leaving = self._first_end(entering, rates, falling=falling)
        self.rose = step > 0
        self.values = [x + step * rate for x, rate in zip(self.values, rates, strict=True)]
        if leaving is None:
            self.full[entering] = not falling
            return True
        gone = self.basis[leaving]
        if gone < len(self.things):
            self.full[gone] = order % 2 == 1
        start = Fraction(self.many[entering]) if falling else _ZERO
        self.values[leaving] = start - step if falling else start + step
        self._exchange(leaving, entering, column)
        return True

    def _entering(self) -> int | None:
        """A variable outside of the basis by which the total can rise: the one that raises it fastest, or the first."""
        inside, size = set(self.basis), len(self.things)
        best, most = None, _ZERO
        for j in range(size + self.nodes):
            if j in inside:
                continue
            gain = self._gain(j)
            if j < size and self.full[j]:
                gain = -gain
            if gain > most:
                best, most = j, gain
                if not self.rose:
                    break
        return best

    def _gain(self, variable: int) -> Fraction:
        """By how much the total rises if there is one more of a variable, and less of those that share its nodes."""
        taken = sum((self.prices[v] for v in self._nodes(variable)), _ZERO)
        return (variable < len(self.things)) - taken

    def _first_end(self, entering: int, rates: list[Fraction], *, falling: bool) -> tuple[Fraction, int, int | None]:
        """How far the step goes, the number of the variable that ends it, and its row; None where it is itself.

        Variable j has the number 2j where it is at zero, and 2j + 1 where it is full.
        """
        size = len(self.things)
        ends: list[tuple[Fraction, int, int | None]] = []
        if entering < size:
            ends.append((Fraction(self.many[entering]), 2 * entering + (not falling), None))
        for row, (j, x, rate) in enumerate(zip(self.basis, self.values, rates, strict=True)):
            if rate < 0:
                ends.append((x / -rate, 2 * j, row))
            elif rate > 0 and j < size:
                ends.append(((self.many[j] - x) / rate, 2 * j + 1, row))
        return min(ends, key=lambda end: end[:2])

    def _exchange(self, leaving: int, entering: int, column: list[Fraction]) -> None:
        """Put one variable into the basis in place of another."""
        gain = self._gain(entering)
        pivot = [entry / column[leaving] for entry in self.inverse[leaving]]
        for row, factor in enumerate(column):
            if row != leaving and factor:
                self.inverse[row] = [x - factor * p for x, p in zip(self.inverse[row], pivot, strict=True)]
        self.inverse[leaving] = pivot
        self.prices = [y + gain * p for y, p in zip(self.prices, pivot, strict=True)]
        self.basis[leaving] = entering

    def _nodes(self, variable: int) -> list[int]:
        """Where a variable takes room."""
        size = len(self.things)
        return self.things[variable] if variable < size else [variable - size]


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
    padded = np.append(amounts, 0.0)
    together: Floats = padded[corners[:, 0]] + padded[corners[:, 1]] + padded[corners[:, 2]]
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


GRAIN = 64
"""Capped numbers of triangles are counted in so many parts of one."""

_TIGHT = Fraction(1, 2)
"""How many parts weights and prices may differ by: with rounding down, a value is off by at most 1.5 parts."""
_ONE = 1 << 40
"""Weights and prices are rounded to so many parts of one."""
_DENSE = 4000
"""Up to so many nodes are solved for with one square matrix: 128 MB, factored in a second or two."""
LARGEST = 1 << 22
"""With larger caps, sums of weights would not fit in 64 bits."""


_Solver: TypeAlias = Callable[[Longs, Longs, int, int], tuple[Floats, Floats]]
"""From the corners of kinds, how many there are of each, the number of nodes and the cap to weights and prices."""


def capped_triangles(graph: Graph, cap: int) -> int:
    r"""The largest total weight of triangles, each at most 1, at most ``cap`` at every node: in 64ths, rounded down.

    Guarantee:
        As for edges, the value :math:`f_D` moves by at most D when a node comes or goes, and is the number of triangles
        if no node is in more than D of them. A solver works in floating point, so its word is not taken: its weights
        are made feasible in exact arithmetic, and so are its prices (a price :math:`y_v \ge 0` for each node proves
        :math:`f_D \le D\sum_v y_v + \sum_T \max(0, 1 - \sum_{v \in T} y_v)`). If the two bounds are less than half a
        64th apart, the lower one, rounded down, is within 1.5 of :math:`64 f_D`, so that the integer moves by at
        most 64 D + 3. If they are not, the next solver is asked, and at last one that computes with rational numbers
        and always ends with the optimum itself (:func:`~defocus.graphs.node.programs.optimum`). So every graph has an
        answer: an error for some of them would tell which they are, and no epsilon covers that. How long it
        takes is not hidden.
    Reference:
        Kasiviswanathan, Nissim, Raskhodnikova, Smith (2013), Section 4; Raskhodnikova, Smith (2016).

    >>> from defocus.graphs import build
    >>> fan = build(5, [0, 0, 0, 0, 1, 2, 3], [1, 2, 3, 4, 2, 3, 4])
    >>> [round(capped_triangles(fan, cap) / GRAIN, 1) for cap in (1, 2, 3)]
    [1.0, 2.0, 3.0]
    """
    most = int(in_range("cap", count("cap", cap), 1, LARGEST))
    corners = triangle_list(graph)
    at_node = np.bincount(corners.ravel(), minlength=graph.nodes)
    if not len(corners) or most >= int(at_node.max()):
        return GRAIN * len(corners)
    kinds = _Kinds.of(corners, at_node > most)
    for solve in (solved, _sparse) if kinds.nodes <= _DENSE else (_sparse,):
        weights, prices = kinds.attempt(solve, most)
        low, high = _least(corners, graph.nodes, most, weights), _most(corners, most, prices)
        if high - low <= _TIGHT / GRAIN:
            return math.floor(GRAIN * low)
    return math.floor(GRAIN * kinds.optimum(most))


def triangle_list(graph: Graph) -> Longs:
    """The corners of every triangle, one row each."""
    corners = _triangles(graph.offsets, graph.targets)
    return corners.reshape(-1, 3)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Kinds:
    """Triangles by their heavy corners, which are in more triangles than the cap.

    Any other node has room for all of its triangles, and triangles with the same heavy corners are alike: what is
    left to solve has few nodes, and the kinds of triangles among them. A triangle without a heavy corner counts whole.
    """

    heavy: NDArray[np.bool_]
    nodes: int
    rows: Longs
    """The heavy corners of each kind that has one, by number; ``nodes`` stands for any other."""
    many: Longs
    bound: NDArray[np.bool_]
    of_triangle: Longs

    @classmethod
    def of(cls, corners: Longs, heavy: NDArray[np.bool_]) -> "_Kinds":
        """The kinds of these triangles."""
        few = int(heavy.sum())
        numbers = np.where(heavy, np.cumsum(heavy) - 1, few)
        placed = np.sort(numbers[corners], axis=1)
        codes, kinds, many = np.unique(
            (placed[:, 0] * (few + 1) + placed[:, 1]) * (few + 1) + placed[:, 2],
            return_inverse=True,
            return_counts=True,
        )
        rows = np.stack([codes // (few + 1) ** 2, codes // (few + 1) % (few + 1), codes % (few + 1)], axis=1)
        bound = rows[:, 0] < few  # the first corner is the smallest, so that without it there is none
        return cls(heavy, few, rows[bound], many, bound, kinds)

    def attempt(self, solve: _Solver, cap: int) -> tuple[Floats, Floats]:
        """Weights of triangles and prices of nodes, in floating point; zeros where the solver found none."""
        weights, prices = np.ones(len(self.many)), np.zeros(len(self.heavy))
        many = self.many[self.bound]
        try:
            with np.errstate(all="ignore"):
                amounts, duals = solve(self.rows, many, self.nodes, cap)
                weights[self.bound], prices[self.heavy] = amounts / many, duals
        except Exception:  # noqa: BLE001  # whether and how a solver fails depends on the graph, so nobody may notice
            weights, prices = np.zeros(len(weights)), np.zeros(len(prices))
        return _finite(weights)[self.of_triangle], _finite(prices)

    def optimum(self, cap: int) -> Fraction:
        """The largest total itself."""
        free = int(self.many[~self.bound].sum())
        return free + optimum(self.rows.tolist(), self.many[self.bound].tolist(), self.nodes, cap)


def _finite(values: Floats) -> Floats:
    return np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)


def _sparse(rows: Longs, many: Longs, nodes: int, cap: int) -> tuple[Floats, Floats]:
    """The same as :func:`~defocus.graphs.node.programs.solved`, where one square matrix would be too large."""
    from scipy.optimize import linprog  # noqa: PLC0415  # slow to load
    from scipy.sparse import csr_array  # noqa: PLC0415

    there = rows < nodes
    places = np.broadcast_to(np.arange(len(rows))[:, None], rows.shape)
    incidence = csr_array((np.ones(int(there.sum())), (rows[there], places[there])), shape=(nodes, len(rows)))
    bounds = np.stack([np.zeros(len(rows)), many.astype(np.float64)], axis=1)
    solution = linprog(
        -np.ones(len(rows)), A_ub=incidence, b_ub=np.full(nodes, float(cap)), bounds=bounds, method="highs"
    )
    return np.asarray(solution.x), -np.asarray(solution.ineqlin.marginals)


def _least(corners: Longs, nodes: int, cap: int, weights: Floats) -> Fraction:
    """A total that feasible weights attain: rounded down, then shrunk until every node has room."""
    parts = np.floor(np.clip(weights, 0, 1) * _ONE).astype(np.int64)
    loads = np.zeros((2, nodes), np.int64)  # the upper and the lower half of each sum, so that none wraps around
    for side in range(3):
        np.add.at(loads[0], corners[:, side], parts >> 20)
        np.add.at(loads[1], corners[:, side], parts & ((1 << 20) - 1))
    worst = max(((upper << 20) + lower for upper, lower in zip(*loads.tolist(), strict=True)), default=0)
    shrink = min(Fraction(1), Fraction(cap * _ONE, worst)) if worst else Fraction(1)
    return shrink * _total(parts) / _ONE


def _most(corners: Longs, cap: int, prices: Floats) -> Fraction:
    """A total that no feasible weights exceed, proven by rounded prices."""
    parts = np.round(np.clip(prices, 0, 1) * _ONE).astype(np.int64)
    left = np.maximum(_ONE - parts[corners].sum(axis=1), 0)
    return Fraction(cap * _total(parts) + _total(left), _ONE)


def _total(parts: Longs) -> int:
    """The exact sum, of any size."""
    return (int((parts >> 20).sum()) << 20) + int((parts & ((1 << 20) - 1)).sum())


@compiled
def _triangles(offsets: Longs, targets: Ints) -> Longs:
    """Corners i < j < k of every triangle, one after the other."""
    nodes = len(offsets) - 1
    corners = np.empty(96, np.int64)
    size = 0
    for i in range(nodes):
        for a in range(offsets[i], offsets[i + 1]):
            j = targets[a]
            if j <= i:
                continue
            p, q = a + 1, offsets[j]
            while p < offsets[i + 1] and q < offsets[j + 1]:
                if targets[p] < targets[q]:
                    p += 1
                elif targets[p] > targets[q]:
                    q += 1
                else:
                    if targets[p] > j:
                        if size + 3 > len(corners):
                            larger = np.empty(2 * len(corners), np.int64)
                            larger[:size] = corners[:size]
                            corners = larger
                        corners[size] = i
                        corners[size + 1] = j
                        corners[size + 2] = targets[p]
                        size += 3
                    p += 1
                    q += 1
    return corners[:size].copy()

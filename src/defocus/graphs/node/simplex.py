"""The simplex method in rational numbers: slow, and certain to end with the optimum."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

__all__ = ["optimum"]

_ZERO, _ONE = Fraction(0), Fraction(1)


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
        self.inverse = [[_ONE if u == v else _ZERO for u in range(self.nodes)] for v in range(self.nodes)]
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

"""The likelihood of a stochastic block model whose labels are public."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, Number, probability
from defocus.graphs.certificates import Certificate, Entry
from defocus.graphs.graph import Graph
from defocus.graphs.public import IntVector, Public, edge_sensitivity
from defocus.privacy.sensitivity import Sensitivity
from defocus.privacy.units import edge

__all__ = ["ENTRY", "GROUPS_ENTRY", "Blocks", "GroupEdges", "Likelihood"]

_GRAIN = 1024
"""Values are counted in so many parts of one: fine beside a sensitivity of at least ln(51/49), 41 of them."""
_MOST = 1000
"""With so many blocks half a million pairs of blocks are counted, in 8 MB and about a second."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    r"""How well a public labelling of the nodes explains the edges: the largest log-likelihood of a block model.

    .. math:: \ell(G) = \max_{\eta \le p_{ab} \le 1-\eta} \sum_{a \le b} e_{ab}\ln p_{ab} + (n_{ab}-e_{ab})\ln(1-p_{ab})

    with :math:`e_{ab}` edges among the :math:`n_{ab}` pairs between blocks a and b.

    Guarantee:
        Edge privacy: for fixed probabilities one edge moves the sum by
        :math:`|\ln\frac{p}{1-p}| \le \ln\frac{1-\eta}{\eta}`. The largest of many functions that move by at most that
        moves by at most that, so the bound holds for the maximum over the probabilities, too: it is attained at
        :math:`e_{ab}/n_{ab}` cut to the range. It does not hold where labels are found by a search in the same
        graph: they must be public. Values are rounded down to 1024ths, which adds one.
    Reference:
        Holland, Laskey, Leinhardt (1983), Stochastic blockmodels: first steps.

    >>> round(float(Blocks([0, 0, 1, 1], 0.1).sensitivity), 3)
    2.199
    """

    labels: Sequence[Any]
    least: Number = 0.01

    def __post_init__(self) -> None:
        eta = probability("least", self.least, zero=False, one=False)
        if not Fraction(1, 10**9) <= eta <= Fraction(49, 100):
            raise InvalidParameterError("least must lie between 1e-9 and 0.49.", fix="pass for example least=0.001.")
        given: object = self.labels
        if isinstance(given, str) or not hasattr(given, "__len__") or len(self.labels) < 2:
            raise InvalidParameterError("A labelling needs one label for each node.", fix="pass a list of labels.")
        if self.blocks > _MOST:
            raise InvalidParameterError(
                f"A labelling has at most {_MOST} different labels, and this one has {self.blocks}.",
                fix="merge labels: blocks of a few nodes explain nothing.",
            )

    @property
    def sensitivity(self) -> Fraction:
        """The bound with room for rounding: of the value to 1024ths, and of the sum of terms in floating point."""
        eta, nodes = float(self.least), len(self.labels)
        bound = math.log((1 - eta) / eta)
        wrong = 2.0**-48 * nodes * nodes * math.log(1 / eta)
        return Fraction(math.ceil((bound + wrong + 2e-6) * 10**6), 10**6) + Fraction(2, _GRAIN)

    @property
    def blocks(self) -> int:
        """How many different labels there are."""
        return len(set(self._numbers().tolist()))

    def log_likelihood(self, graph: Graph) -> Fraction:
        """The value, in 1024ths, rounded down."""
        numbers = self._numbers()
        k = int(numbers.max()) + 1
        sizes = np.bincount(numbers, minlength=k)
        left, right = graph.pairs()
        low, high = np.minimum(numbers[left], numbers[right]), np.maximum(numbers[left], numbers[right])
        edges = np.bincount(low * k + high, minlength=k * k).reshape(k, k)
        eta = float(self.least)
        terms = []
        for a in range(k):
            for b in range(a, k):
                pairs = int(sizes[a]) * int(sizes[b]) if a != b else math.comb(int(sizes[a]), 2)
                if pairs:
                    count = int(edges[a, b])
                    p = min(max(count / pairs, eta), 1 - eta)
                    terms += [count * math.log(p), (pairs - count) * math.log1p(-p)]
        return Fraction(math.floor(_GRAIN * math.fsum(terms)), _GRAIN)

    def _numbers(self) -> NDArray[np.int64]:
        _, numbers = np.unique([str(label) for label in self.labels], return_inverse=True)
        return numbers.astype(np.int64)


@final
@dataclass(frozen=True, slots=True)
class Likelihood:
    """The value of :class:`Blocks` in 1024ths; of more labels than nodes, the first ones count.

    Guarantee:
        Edge privacy: ``Blocks.sensitivity``, which is derived there.
    """

    labels: tuple[int, ...]
    least: Number = 0.01
    name: ClassVar[str] = "likelihood of a block model"

    def exact(self, graph: Any) -> IntVector:
        """The value, in a vector of one."""
        likelihood = Blocks(self.labels[: graph.nodes], self.least).log_likelihood(graph)
        return np.array([likelihood * _GRAIN], np.int64)

    def length(self, public: Public) -> int:  # noqa: ARG002  # the same for every graph
        """One number."""
        return 1

    def sensitivity(self, public: Public) -> Sensitivity:
        """The odds of one edge at the end of the range, and rounding."""
        if len(self.labels) < public.n:
            raise InvalidParameterError(
                f"There are {len(self.labels)} labels for {public.n} nodes.", fix="pass one label for each node."
            )
        most = math.floor(Blocks(self.labels[: public.n], self.least).sensitivity * _GRAIN)
        return edge_sensitivity(public, Sensitivity(most, most * most), name=self.name)


ENTRY = Entry(
    "blocks",
    Likelihood,
    Certificate(
        statistics=(Likelihood((0, 1) * 3, 0.1), Likelihood((0, 0, 0, 1, 1, 1), 0.01)),
        units=(edge(),),
        smallest=3,
        slack="room for rounding is added to what one edge moves",
    ),
)


@final
@dataclass(frozen=True, slots=True)
class GroupEdges:
    r"""How many edges there are inside and between public groups: one count for each pair of groups, in order.

    Guarantee:
        Edge privacy: one edge is inside one group or between two, so :math:`\Delta_1 = \Delta_2 = 1`, however many
        groups there are. Of more labels than nodes, the first ones count.

    >>> GroupEdges(("a", "b", "b")).pairs
    (('a', 'a'), ('a', 'b'), ('b', 'b'))
    """

    groups: tuple[Any, ...]
    name: ClassVar[str] = "edges between groups"

    def __post_init__(self) -> None:
        given: object = self.groups
        hashed = isinstance(given, tuple) and all(isinstance(label, Hashable) for label in given)
        if not hashed or not given or len(self.names) > _MOST:
            raise InvalidParameterError(
                f"Groups are a label for each node, of at most {_MOST} kinds.", fix="pass groups=[label of a node, …]."
            )

    @property
    def names(self) -> tuple[Any, ...]:
        """The groups, in the order in which they come first."""
        return tuple(dict.fromkeys(self.groups))

    @property
    def pairs(self) -> tuple[tuple[Any, Any], ...]:
        """Which two groups each count is about."""
        names = self.names
        return tuple((one, other) for place, one in enumerate(names) for other in names[place:])

    def exact(self, graph: Any) -> IntVector:
        """The counts."""
        places = {name: place for place, name in enumerate(self.names)}
        numbers = np.array([places[label] for label in self.groups[: graph.nodes]], np.int64)
        left, right = (numbers[side] for side in graph.pairs())
        low, high, k = np.minimum(left, right), np.maximum(left, right), len(places)
        return np.bincount(low * k - low * (low - 1) // 2 + high - low, minlength=k * (k + 1) // 2).astype(np.int64)

    def length(self, public: Public) -> int:  # noqa: ARG002  # the same for every graph
        """One for each pair."""
        return math.comb(len(self.names) + 1, 2)

    def sensitivity(self, public: Public) -> Sensitivity:
        """One edge is in one pair."""
        if len(self.groups) < public.n:
            raise InvalidParameterError(
                f"There are {len(self.groups)} labels for {public.n} nodes.",
                fix="pass one label for each node, in their order.",
            )
        return edge_sensitivity(public, Sensitivity(1, 1), name=self.name)


GROUPS_ENTRY = Entry(
    "edges between groups",
    GroupEdges,
    Certificate(
        statistics=(GroupEdges((0, 1) * 3), GroupEdges((0, 0, 1, 1, 2, 2)), GroupEdges((0,) * 6)), units=(edge(),)
    ),
)

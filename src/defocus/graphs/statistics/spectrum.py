"""The largest singular values of the adjacency matrix: how many communities stand out of the noise."""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, final

import numpy as np

from defocus.errors import InvalidParameterError, count, in_range
from defocus.graphs.certificates import Certificate, Entry
from defocus.graphs.graph import Graph
from defocus.graphs.public import Public
from defocus.graphs.statistic import IntVector, edge_sensitivity
from defocus.privacy.sensitivity import Sensitivity
from defocus.privacy.units import edge

__all__ = ["ENTRY", "MOST_NODES", "SENSITIVITY", "Gap", "checked_size", "gaps", "singular_values"]

MOST_NODES = 8000
"""Up to so many nodes all eigenvalues can be computed, with a proven error."""
SENSITIVITY = Fraction(101, 100)
"""How far a utility moves by one edge, with the rounding."""
_GRAIN = 1000
"""Utilities are rounded down to so many parts of one: a tenth of the room that SENSITIVITY leaves above 1."""


def checked_size(nodes: int, at_most: int) -> None:
    """Refuse graphs whose spectrum cannot be computed with a proven error; public facts only."""
    most = count("at_most", at_most)
    if nodes > MOST_NODES:
        raise InvalidParameterError(
            f"The eigenvalues of a graph of {nodes} nodes cannot be computed with a proven error here.",
            fix=f"ask it of a graph of at most {MOST_NODES} nodes, or compare labellings: communities(labellings=[…]).",
        )
    if most + 1 > nodes:
        raise InvalidParameterError(
            f"A graph of {nodes} nodes has at most {nodes - 1} communities here.", fix="pass a smaller at_most."
        )


def singular_values(graph: Graph, many: int) -> list[float]:
    r"""The ``many`` largest absolute eigenvalues of the adjacency matrix, largest first.

    Guarantee:
        One edge changes the matrix by one of spectral norm 1, so by Weyl's inequality each singular value, in order
        of size, moves by at most 1. Computed by a backward stable method on the full matrix, each is off by at most
        :math:`16 n 2^{-53} \|A\|_2 \le 16 n^2 2^{-53}`, below :math:`10^{-6}` for n up to 8000.
    Reference:
        Weyl (1912); Horn, Johnson (2013), Matrix analysis, Corollary 7.3.5; Anderson et al. (1999), LAPACK users'
        guide, Section 4.7 for the error.
    """
    from scipy.linalg import eigvalsh  # noqa: PLC0415  # slow to load

    n = graph.nodes
    matrix = np.zeros((n, n))
    matrix[np.repeat(np.arange(n), graph.degrees), graph.targets] = 1.0
    values = np.abs(eigvalsh(matrix, overwrite_a=True, check_finite=False))
    values[::-1].sort()
    return [float(value) for value in values[:many]]


def gaps(values: list[float], threshold: float) -> list[Fraction]:
    r"""The utility of 1, 2, … communities: :math:`u(k) = \min(\sigma_k - \tau, \tau - \sigma_{k+1})`, in 1000ths.

    Guarantee:
        :math:`\tau` is fixed, so each utility moves by at most 1 between neighbours, and with rounding, and with the
        error of both computations, by less than 1.01.

    >>> gaps([9.0, 5.0, 2.0], 4.0)
    [Fraction(-1, 1), Fraction(1, 1)]
    """
    return [
        Fraction(math.floor(_GRAIN * min(above - threshold, threshold - below)), _GRAIN)
        for above, below in pairwise(values)
    ]


@final
@dataclass(frozen=True, slots=True)
class Gap:
    """How clearly ``k`` singular values stand out of a fixed ``threshold``: one utility of :func:`gaps`, in 1000ths.

    Guarantee:
        Edge privacy: at most :data:`SENSITIVITY`, 1010 thousandths. What is chosen by these utilities needs no more,
        since each of them moves by at most that.

    >>> Gap(1, 1.5).sensitivity(Public(edge(), 100))
    Sensitivity(l1=1010, l2_squared=1020100)
    """

    k: int
    threshold: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", count("k", self.k))
        object.__setattr__(self, "threshold", float(in_range("threshold", self.threshold, 0, MOST_NODES)))

    @property
    def name(self) -> str:
        """What it is called."""
        return f"gap after {self.k} singular values"

    def exact(self, graph: Any) -> IntVector:
        """The utility, in a vector of one."""
        found = gaps(singular_values(graph, self.k + 1), self.threshold)[self.k - 1]
        return np.array([found * _GRAIN], np.int64)

    def length(self, public: Public) -> int:  # noqa: ARG002  # the same for every graph
        """One number."""
        return 1

    def sensitivity(self, public: Public) -> Sensitivity:
        """One singular value moves by one, and is rounded. Graphs that have fewer values, or too many, are refused."""
        checked_size(public.n, self.k)
        most = math.ceil(SENSITIVITY * _GRAIN)
        return edge_sensitivity(public, Sensitivity(most, most * most), name=self.name)


ENTRY = Entry(
    "spectrum",
    Gap,
    Certificate(
        statistics=(Gap(1, 0.4), Gap(2, 1.0)),
        units=(edge(),),
        smallest=3,
        slack="a singular value moves by one at most; the hundredth above it is for rounding",
    ),
)

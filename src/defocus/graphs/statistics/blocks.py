"""The likelihood of a stochastic block model whose labels are public."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.errors import InvalidParameterError, Number, probability
from defocus.graphs.graph import Graph

__all__ = ["Blocks"]

_GRAIN = 1024


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
                    found = int(edges[a, b])
                    p = min(max(found / pairs, eta), 1 - eta)
                    terms += [found * math.log(p), (pairs - found) * math.log1p(-p)]
        return Fraction(math.floor(_GRAIN * math.fsum(terms)), _GRAIN)

    def _numbers(self) -> NDArray[np.int64]:
        _, numbers = np.unique([str(label) for label in self.labels], return_inverse=True)
        return numbers.astype(np.int64)

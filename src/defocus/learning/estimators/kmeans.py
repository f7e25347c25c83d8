"""K-means by noisy sums."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.cluster import KMeans as Plain
from sklearn.utils.validation import check_is_fitted

from defocus.errors import count
from defocus.learning.estimators.base import PrivateEstimator
from defocus.learning.estimators.descent import noised
from defocus.learning.estimators.fit_budget import Noise, Sum, deviation, planned
from defocus.learning.estimators.grid import Ball, Floats, Persons, squares, summed
from defocus.learning.estimators.inputs import held, outward, persons_of, scaled, seen
from defocus.mechanisms.mechanism import IntVector

__all__ = ["KMeans", "assigned", "starts", "summed_up"]

_BITS = 12
_COUNT = 0.5
"""What a row weighs in the size of its cluster, where the radius of the ball is one."""
_CANDIDATES = 20
"""How many points there are to choose each start from; five times as many keep starts 1 to 8 % farther apart."""
_CELLS, _FEWEST, _MOST = 16, 64, 512
"""How many small clusters there are first, for each one that is wanted, and at least and at most."""
_WHERE, _FIRST = 0.03, 0.47
"""The shares of the budget that find where rows lie, and for these."""
_AT_ONCE = 1 << 20
"""How many numbers are worked on at a time."""
_CERTAIN = 4.0
"""Rows lie in the middle of the ball unless their number is so many times its noise."""


@final
@dataclass(eq=False, repr=False, kw_only=True)
class KMeans(ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, PrivateEstimator):
    r"""Clusters around noisy means.

    First, the mean and the spread of all rows say where they lie. There, many small clusters around fixed points are
    summed up; from their noisy sizes and means, which are public then, ordinary k-means with several starts finds where
    to begin. Rounds of Lloyd's algorithm on the rows themselves follow.

    Guarantee:
        The fit owes ``event_``, calibrated to its price; one row is added or removed, or replaced where the ledger
        says so. Once, the number of rows, their sum and that of their squared lengths is released: a row weighs
        :math:`2^{11}` in the first and at most :math:`2^{12}` in each of the others, together at most
        :math:`3\cdot2^{11}` in L2 norm. For the small clusters and in each of ``max_iter`` rounds, the size and the
        sum of every cluster is released. A row is in one cluster, and there it weighs :math:`2^{11}` in the size and at
        most :math:`2^{12}` in the sum: at most :math:`2^{11}\sqrt5` in L2 norm, at any centres. In L1 norm, for d
        features, that is at most :math:`2^{11} + 2^{12}\sqrt d`. Which cluster a row is in depends on whole numbers
        only, so no rounding of another row can change it.
    Assumes:
        ``norm`` or ``bounds`` were not read off the data; longer rows are scaled down. NaN is zero, with
        ``bounds`` the middle. The number of clusters is public.

    Error:
        A mean errs by the noise of its sum over its size; a cluster that might be all noise stays where it is.
        ``labels_`` are of the rows that were fitted, each a function of that row and the centres: show them to nobody
        but its owner. They stay in memory, and are neither pickled nor written.
    Reference:
        Blum, Dwork, McSherry, Nissim (2005), Practical privacy: the SuLQ framework; Su, Cao, Li, Bertino, Jin (2016),
        Differentially private k-means clustering, for summaries first and rounds after.

    Args:
        n_clusters: how many clusters to find.
        norm: the longest that a row may be, where there are no ``bounds``.
        bounds: the least and the largest value, each a number or one for every feature.
        max_iter: how many rounds of Lloyd's algorithm there are.
        epsilon, delta, rho, ledger, unit, budget, purpose, who, bits, random_state: see :class:`PrivateEstimator`.

    >>> from tempfile import TemporaryDirectory
    >>> from defocus import Budget
    >>> from defocus.noise.testing import seeded
    >>> X = np.tile([[-0.5, -0.5], [0.5, 0.5]], (3000, 1))
    >>> with TemporaryDirectory() as home:
    ...     model = KMeans(2, ledger=f"{home}/people.ledger", budget=Budget(1, 1e-6), bits=seeded(1))
    ...     sorted(model.fit(X).cluster_centers_.round(1).tolist())
    [[-0.5, -0.5], [0.5, 0.5]]
    """

    _RELEASED: ClassVar = {"cluster_centers_": ("clusters", "features")}
    _WITHHELD: ClassVar = ("labels_",)

    n_clusters: int = field(default=8, kw_only=False)
    norm: Any = 1.0
    bounds: Any = None
    max_iter: int = 2

    def fit(self, X: Any, y: Any = None, users: Any = None) -> "KMeans":
        """Charge, then fit; ``users`` says whose each row is, and ``y`` is not looked at."""
        told, means, drawn, data = self._told(X, y, users)
        clusters, rounds = count("n_clusters", told.n_clusters), count("max_iter", told.max_iter)
        rows = seen(self, data.X, reset=True)
        persons = persons_of(data.users, rows.shape[0])
        width = rows.shape[1]
        moved, norm = scaled(rows, told.bounds, told.norm)
        ball = Ball(norm, _BITS)
        weight = int(_COUNT * 2**_BITS)
        reach = (weight**2 + 4**_BITS) ** 0.5 * (1 + 1e-12)
        near = weight + math.isqrt(width * 4**_BITS)  # in L1 norm
        cells = min(max(_CELLS * clusters, _FEWEST), _MOST)
        plan = planned(
            means,
            [
                Sum(3 * weight, width + 2, _WHERE),
                Sum(reach, cells * (width + 1), _FIRST, l1_bound=near),
                Sum(reach, clusters * (width + 1), 1 - _WHERE - _FIRST, rounds, l1_bound=near),
            ],
        )

        def compute() -> Floats:
            kept = ball.hold(moved)
            whole = kept.toarray() if hasattr(kept, "toarray") else kept

            def measured(around: Floats, noise: Noise) -> tuple[Floats, Floats]:
                exact = summed_up(whole, around, weight, persons)
                return _read(noised(exact, noise, drawn), weight, deviation(noise), ball.radius)

            where, many, refine = plan.noises
            ones = np.full(len(whole), float(weight))
            exact = summed(np.column_stack([whole, ones, np.floor(squares(whole) / 2**_BITS)]), persons)
            area = _area(np.asarray(where.sample(exact, drawn), dtype=np.float64), weight, where, ball.radius)
            sizes, places = measured(np.rint(area.points(cells)), many)
            centres = np.rint(_begun(sizes, places, clusters, area))
            for _ in range(rounds):
                sizes, places = measured(centres, refine)
                centres = np.rint(np.where(sizes[:, np.newaxis] > 0, places, centres))
            return centres

        centres = self._spend(plan, means, compute)
        self.cluster_centers_ = outward(centres * (norm / ball.radius), told.bounds, cut=True)
        self.n_iter_ = rounds
        self.bounds_ = told.bounds
        self.__dict__.pop("labels_", None)
        if data.X is X:  # rows of a table have no order to label them in
            self.labels_ = self.predict(X)
        return self

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The nearest centre of each row, held to the bounds or the ball as when fitting."""
        return assigned(*self._inside(X))

    def transform(self, X: Any) -> Floats:
        """The distance of each row to each centre; with ``bounds``, of features that go from -1 to 1."""
        rows, centres = self._inside(X)
        apart = [((part[:, np.newaxis, :] - centres) ** 2).sum(axis=2) for part in _parts(rows, centres.size)]
        distances: Floats = np.sqrt(np.vstack(apart))
        return distances

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _inside(self, X: Any) -> tuple[Floats, Floats]:
        """Rows and centres in the units in which distances are measured."""
        check_is_fitted(self)
        rows = seen(self, X, reset=False)
        kept = held(rows, self._limits, self.norm)
        dense: Floats = kept.toarray() if hasattr(kept, "toarray") else kept
        moved, centres = (scaled(points, self._limits, self.norm)[0] for points in (dense, self.cluster_centers_))
        return moved, centres


def assigned(rows: Floats, centres: Floats) -> NDArray[np.int64]:
    """The nearest centre of each row; of whole numbers, so exactly, and the first of several."""
    lengths = (centres**2).sum(axis=1)
    return np.concatenate(
        [(2 * (part @ centres.T) - lengths).argmax(axis=1) for part in _parts(rows, len(centres))]
    ).astype(np.int64)


def summed_up(rows: Floats, centres: Floats, weight: int, persons: Persons | None = None) -> IntVector:
    """The sum of the rows of each cluster and, last, ``weight`` for each of them: whole numbers, exactly."""
    width = rows.shape[1] + 1
    total = np.zeros(len(centres) * width, np.int64)
    for part in _parts(rows, len(centres) + width) if persons is None else [rows]:  # a person's rows may be anywhere
        beside = np.column_stack([part, np.full(len(part), float(weight))])
        places = assigned(part, centres)[:, np.newaxis] * width + np.arange(width)
        ends_at = np.arange(0, beside.size + 1, width)
        spread = sp.csr_matrix((beside.ravel(), places.ravel(), ends_at), (len(part), total.size))
        total += summed(spread, persons)
    return total.reshape(len(centres), width)


def _parts(rows: Floats, needed: int) -> Iterator[Floats]:
    """Some rows after the other, where a row needs so many numbers: not all of them at once."""
    size = max(1, _AT_ONCE // needed)
    return (rows[start : start + size] for start in range(0, len(rows), size))


def starts(clusters: int, width: int) -> Floats:
    """Centres that keep apart: of many fixed points in the ball, each the farthest from those before.

    The points are those of an additive recurrence, which fill a cube evenly in any dimension (Roberts 2018).
    """
    root = 2.0
    for _ in range(64):
        root = (1 + root) ** (1 / (width + 2))  # of x ** (width + 2) = x + 1
    steps = root ** -np.arange(1.0, width + 2)
    even = (0.5 + np.outer(np.arange(1, _CANDIDATES * clusters + 1), steps)) % 1  # spread evenly over a cube
    points = ndtri(even[:, :width].clip(1e-9, 1 - 1e-9))
    points *= even[:, width:] ** (1 / width) / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-9)
    chosen = [points[0]]
    apart = np.full(len(points), np.inf)
    for _ in range(clusters - 1):
        apart = np.minimum(apart, ((points - chosen[-1]) ** 2).sum(axis=1))
        chosen.append(points[int(apart.argmax())])
    return np.array(chosen)


def _read(noisy: Floats, weight: int, sigma: float, radius: int) -> tuple[Floats, Floats]:
    """Sizes and means of clusters, inside the ball; the size of one that might be all noise is zero."""
    sizes = noisy[:, -1] / weight
    means = noisy[:, :-1] / np.maximum(sizes, 1e-9)[:, np.newaxis]
    lengths = np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)
    return np.where(sizes > 3 * sigma / weight, sizes, 0.0), means * np.minimum(1.0, radius / lengths)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Area:
    """Where rows lie: around the middle, by about the spread, in the ball."""

    middle: Floats
    spread: float
    radius: int

    def points(self, number: int) -> Floats:
        """Points there that keep apart."""
        points = self.middle + self.spread * starts(number, len(self.middle))
        lengths = np.linalg.norm(points, axis=1, keepdims=True)
        return np.asarray(points * np.minimum(1.0, self.radius / np.maximum(lengths, 1.0)))


def _area(noisy: Floats, weight: int, noise: Noise, radius: int) -> _Area:
    """Where rows lie, from their noisy sum, number and squared lengths.

    The mean is drawn to the middle of the ball by how much of it may be noise (James, Stein 1961), and stays there
    where most of it may be.
    """
    width, sigma = len(noisy) - 2, deviation(noise)
    total, rows_about = noisy[:width], noisy[width] / weight
    certain = 1 - width * sigma**2 / max(float(total @ total), 1.0)
    if certain < 0.5 or rows_about < _CERTAIN * sigma / weight:
        return _Area(np.zeros(width), radius / 2, radius)
    middle = certain * total / rows_about
    middle *= min(1.0, radius / max(float(np.linalg.norm(middle)), 1.0))
    variance = noisy[-1] * 2**_BITS / rows_about - middle @ middle
    return _Area(middle, math.sqrt(min(max(variance, (radius / 10) ** 2), radius**2)), radius)


def _begun(sizes: Floats, places: Floats, clusters: int, area: _Area) -> Floats:
    """Where to begin, from what was released: k-means of the means, each weighing its size."""
    seen = sizes > 0
    if seen.sum() < clusters:
        return area.points(clusters)
    plain = Plain(clusters, n_init=10, random_state=0).fit(places[seen], sample_weight=sizes[seen])
    return np.asarray(plain.cluster_centers_, dtype=np.float64)

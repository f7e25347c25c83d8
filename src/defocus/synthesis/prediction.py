r"""How well a model that was trained on synthetic rows predicts private ones, measured with held-back budget.

A logistic model of a column of two values, given the bins of all others, is trained on the finished records. Its
weights are rounded to whole numbers, so that a private row's score is a sum that every engine computes alike. Private
rows are counted by class of score and by the value of the column: one table, as any other, with discrete Gaussian
noise. The area under the curve follows from these noisy counts.

Guarantee:
    The model and the classes depend on released numbers only. A row is in one cell of the table, so a person moves it
    by at most what they weigh, in L1 norm and hence in L2 norm.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.synthesis.targets import Floats, Noisy

__all__ = ["CLASSES", "Prediction", "Scores", "area", "labels_of", "scores_of"]

CLASSES = 16
"""Private rows are counted in so many classes of their scores."""
_ROUNDED = 1 << 12
"""Weights add up to at most so much."""
_TRAINED = 20_000
"""So many records train the model."""
_STEPS, _RIDGE = 12, 1.0


@final
@dataclass(frozen=True, slots=True)
class Prediction:
    """How well a column is predicted by a model that saw synthetic rows only."""

    column: str
    auc: float
    """The area under the curve on private rows, with noise; 0.5 tells nothing."""
    error: float
    """Its standard error by noise, as far as that is small."""
    synthetic: float
    """The same area on the synthetic rows themselves."""

    def to_json(self) -> dict[str, Any]:
        """Everything about it, as JSON."""
        return asdict(self) | {"error": self.error if math.isfinite(self.error) else None}

    @classmethod
    def from_json(cls, written: Any) -> "Prediction | None":
        """What :meth:`to_json` wrote."""
        if written is None:
            return None
        error = math.inf if written["error"] is None else float(written["error"])
        return cls(str(written["column"]), float(written["auc"]), error, float(written["synthetic"]))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """A public rule that gives each row a class: whole weights by bins are added up and compared with cuts."""

    target: int
    """The column that is predicted, whose first two codes are told apart."""
    weights: tuple[NDArray[np.int64], ...]
    """For each column the weight of each bin; none in the target."""
    cuts: tuple[int, ...]
    """Where the second, third, … class begins."""

    def totals(self, records: NDArray[Any]) -> NDArray[np.int64]:
        """The score of each record of bins."""
        total = np.zeros(len(records), np.int64)
        for i, own in enumerate(self.weights):
            total += own[records[:, i]]
        return total

    def counted(self, records: NDArray[Any], labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many records are in each class, by label."""
        classes = np.searchsorted(np.array(self.cuts, np.int64), self.totals(records), side="right")
        known = labels >= 0
        return np.bincount(classes[known] * 2 + labels[known], minlength=CLASSES * 2).reshape(CLASSES, 2)


def labels_of(records: NDArray[Any], target: int, bins: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which of the first two codes each record has; -1 for all others. Codes that share a bin are not told apart.

    >>> labels_of(np.array([[0], [2], [1]]), 0, np.array([1, 0, 2])).tolist()
    [1, -1, 0]
    """
    own = records[:, target]
    return np.where(own == bins[0], 0, np.where(own == bins[1], 1, -1))


def scores_of(
    records: NDArray[Any], sizes: Sequence[int], target: int, labels: NDArray[np.int64], random: np.random.Generator
) -> Scores:
    """The rule of a logistic model of the labels, trained on synthetic records.

    >>> rng = np.random.default_rng(1)
    >>> one = rng.integers(0, 3, 3000)
    >>> labels = (rng.random(3000) < one / 2).astype(int)
    >>> made = scores_of(np.stack([one, labels], 1), [3, 2], 1, labels, rng)
    >>> bool(np.diff(made.weights[0]).min() > 0)
    True
    """
    known = random.permutation(np.flatnonzero(labels >= 0))[:_TRAINED]
    others = [i for i in range(len(sizes)) if i != target]
    ends = np.cumsum([sizes[i] for i in others]).tolist()
    starts = dict(zip(others, [0, *ends[:-1]], strict=True))
    table = np.zeros((len(known), ends[-1] + 1))
    table[:, -1] = 1.0
    for i, start in starts.items():
        table[np.arange(len(known)), start + records[known, i].astype(np.int64)] = 1.0
    wanted, found = labels[known] == 1, np.zeros(table.shape[1])
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(table @ found, -30, 30)))
        slope = table.T @ (wanted - chance) - _RIDGE * found
        bend = (table * np.maximum(chance * (1 - chance), 1e-6)[:, None]).T @ table + _RIDGE * np.eye(len(found))
        step = np.linalg.solve(bend, slope)
        found = found + step * min(1.0, 5 / max(float(np.abs(step).max()), 1e-12))
    parts = {i: found[start : start + sizes[i]] for i, start in starts.items()}
    unit = max(sum(float(np.ptp(part)) for part in parts.values()), 1e-9) / _ROUNDED
    weights = [np.zeros(size, np.int64) for size in sizes]
    for i, part in parts.items():
        weights[i] = np.rint((part - part.min()) / unit).astype(np.int64)
    plain = Scores(target, tuple(weights), ())
    cuts = np.quantile(plain.totals(records), np.arange(1, CLASSES) / CLASSES, method="higher")
    return Scores(target, tuple(weights), tuple(int(cut) for cut in cuts))


def area(noisy: Noisy) -> tuple[float, float]:
    """The area under the curve of counts by class and value, and its error by noise: a half, where nothing is told.

    >>> area(Noisy(np.array([[30.0, 10.0], [10.0, 30.0]]), 0.0))
    (0.75, 0.0)
    """
    none, some = noisy.counts[:, 0], noisy.counts[:, 1]
    all_none, all_some = float(none.sum()), float(some.sum())
    least = 3 * noisy.sigma * math.sqrt(len(none))
    if min(all_none, all_some) <= least:
        return 0.5, math.inf
    below, above = _before(none) / all_none, 1 - _before(some) / all_some
    found = float(some @ below) / all_some
    slopes = np.concatenate([(below - found) / all_some, (above - found) / all_none])
    return min(1.0, max(0.0, found)), noisy.sigma * float(np.sqrt(slopes @ slopes))


def _before(counts: Floats) -> Floats:
    """How many are in classes before each, with half of its own."""
    return np.asarray(np.cumsum(counts) - counts / 2)

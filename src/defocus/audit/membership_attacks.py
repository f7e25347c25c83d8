"""Attacks on membership: scores of rows by a model or by synthetic rows, and their calibration by shadow models."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, TypeAlias, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from defocus.errors import InvalidParameterError, UnknownColumnError

__all__ = ["CALIBRATIONS", "ClosestRecord", "MarginalDensity", "Score", "SecretGuess", "columns_of", "of_tables"]

_Floats: TypeAlias = NDArray[np.float64]
Score: TypeAlias = Callable[[Any, Any], Any]
"""``score(model, rows)``: one number for each row, higher where the model knows it better."""
_BINS = 12
_HALF = 0.5
_PRIOR = 4.0
"""For so many residuals the mean variance of all persons counts in the variance of one."""
_MOST_DIMENSIONS = 24
_BLOCK = 2048


def columns_of(rows: Any) -> dict[str, NDArray[Any]]:
    """The columns of a table, a frame, a dictionary or a matrix, by name.

    >>> columns_of(np.array([[1, 2], [3, 4]]))["1"].tolist()
    [2, 4]
    """
    if isinstance(rows, pa.Table):
        return {name: rows[name].to_numpy() for name in rows.column_names}
    if isinstance(rows, Mapping):
        return {str(name): np.asarray(values) for name, values in rows.items()}
    if hasattr(rows, "columns"):
        return {str(name): rows[name].to_numpy() for name in rows.columns}
    matrix: NDArray[Any] = np.zeros(0) if isinstance(rows, tuple) else np.asarray(rows)
    if matrix.ndim != 2:
        raise InvalidParameterError(
            "Synthetic rows must be a table, a frame or a matrix.",
            fix="return one, or give score=, a function of yours.",
        )
    return {str(i): matrix[:, i] for i in range(matrix.shape[1])}


@final
@dataclass(frozen=True, slots=True)
class ClosestRecord:
    """Minus the distance to the closest synthetic row: numbers by their range, other values alike or not.

    >>> near = ClosestRecord.of(np.array([[0, 0], [10, 5]]))
    >>> near(np.array([[10, 5]]), np.array([[10, 5], [5, 5]])).tolist()
    [-0.0, -0.5]
    """

    ranges: Mapping[str, tuple[float, float]] = field(repr=False)
    values: Mapping[str, Sequence[Any]] = field(repr=False)

    @classmethod
    def of(cls, rows: Any) -> "ClosestRecord":
        """With the ranges and values of these rows, which an attacker knows."""
        columns = columns_of(rows)
        numbers = {name: _float(own) for name, own in columns.items() if own.dtype.kind in "iuf"}
        ranges = {name: (float(np.nanmin(own)), float(np.nanmax(own)) or 1.0) for name, own in numbers.items()}
        return cls(ranges, {name: sorted(set(map(str, own))) for name, own in columns.items() if name not in ranges})

    def __call__(self, synthetic: Any, rows: Any) -> _Floats:
        """The scores of ``rows``."""
        from scipy.spatial import cKDTree  # noqa: PLC0415  # slow to load

        made, asked = self.places(synthetic), self.places(rows)
        if made.shape[1] <= _MOST_DIMENSIONS:
            return -np.asarray(cKDTree(made).query(asked, p=1)[0], np.float64)
        found = np.full(len(asked), np.inf)
        for start in range(0, len(made), _BLOCK):
            for i, own in enumerate(asked):
                found[i] = min(found[i], np.abs(made[start : start + _BLOCK] - own).sum(axis=1).min())
        return -found

    def places(self, rows: Any) -> _Floats:
        """Rows as points, in which the sum of absolute differences is the distance."""
        columns = columns_of(rows)
        parts: list[_Floats] = []
        for name, (low, high) in self.ranges.items():
            parts.append(np.nan_to_num((_float(columns[name]) - low) / ((high - low) or 1.0), nan=-1.0)[:, None])
        for name, known in self.values.items():
            own = np.searchsorted(np.array(known, dtype=str), np.array(list(map(str, columns[name])), dtype=str))
            parts.append(np.eye(len(known) + 1)[own] / 2)
        return np.hstack(parts)


@final
@dataclass(frozen=True, slots=True)
class MarginalDensity:
    """The log-ratio of synthetic to reference density over marginals: what knows which ones were measured.

    A marginal that a synthesiser measured is reproduced with the people in it and its noise, so the cells of those who
    were in are fuller than in a reference. The sum runs over ``marginals``, by default all columns and all pairs.

    Reference:
        Golob et al. (2024), Privacy vulnerabilities in marginals-based synthetic data (MAMA-MIA).

    >>> crowd = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> MarginalDensity.of(crowd)(np.array([[0, 0], [0, 0]]), crowd).argsort()[::-1][0].item()
    0
    """

    edges: Mapping[str, Any] = field(repr=False)
    marginals: tuple[tuple[str, ...], ...]
    reference: tuple[Mapping[int, float], ...] = field(repr=False)
    people: int

    @classmethod
    def of(cls, rows: Any, marginals: Sequence[Sequence[str]] | None = None) -> "MarginalDensity":
        """With these rows as the reference: all that the attacker thinks may be in."""
        columns = columns_of(rows)
        edges = {name: _edges(own) for name, own in columns.items()}
        chosen = [(name,) for name in columns] + list(combinations(columns, 2)) if marginals is None else marginals
        for name in (name for own in chosen for name in own):
            if str(name) not in columns:
                raise UnknownColumnError(str(name), list(columns))
        named = tuple(tuple(map(str, own)) for own in chosen)
        made = cls(edges, named, (), len(next(iter(columns.values()))))
        counts = tuple(_counted(cells) for cells in made._cells(rows))
        return cls(edges, named, counts, made.people)

    def __call__(self, synthetic: Any, rows: Any) -> _Floats:
        """The scores of ``rows``."""
        asked, made = self._cells(rows), self._cells(synthetic)
        number = len(next(iter(columns_of(synthetic).values())))
        total = np.zeros(len(asked[0]))
        for own, there, known in zip(asked, made, self.reference, strict=True):
            counts, size = _counted(there), _HALF * len(known)
            few = np.array([counts.get(cell, 0.0) for cell in own.tolist()])
            all_ = np.array([known.get(cell, 0.0) for cell in own.tolist()])
            total += np.log((few + _HALF) / (number + size)) - np.log((all_ + _HALF) / (self.people + size))
        return total

    def _cells(self, rows: Any) -> list[NDArray[np.int64]]:
        columns = columns_of(rows)
        codes = {name: _coded(columns[name], edges) for name, edges in self.edges.items()}
        sizes = {name: len(edges) + 2 for name, edges in self.edges.items()}
        found = []
        for names in self.marginals:
            cells = np.zeros(len(next(iter(codes.values()))), np.int64)
            for name in names:
                cells = cells * sizes[name] + codes[name]
            found.append(cells)
        return found


@final
@dataclass(frozen=True, slots=True)
class SecretGuess:
    """How sure an attacker who knows the other columns is of the right value of a secret one: attribute inference.

    The synthetic rows that agree most with a person vote. What holds of everybody with these columns is no leak: as a
    score of :func:`~defocus.audit.membership` it is compared between persons in and out, for whom it holds as well.

    >>> guess = SecretGuess("1", votes=1)
    >>> guess(np.array([[0, 7], [1, 9]]), np.array([[0, 7], [1, 7]])).tolist()
    [1.0, 0.0]
    """

    secret: str
    votes: int = 5

    def __call__(self, synthetic: Any, rows: Any) -> _Floats:
        """The share of the votes for the value that each of ``rows`` has."""
        from scipy.spatial import cKDTree  # noqa: PLC0415  # slow to load

        made, asked = columns_of(synthetic), columns_of(rows)
        if self.secret not in asked:
            raise UnknownColumnError(self.secret, list(asked))
        secrets, own = (np.array(list(map(str, columns.pop(self.secret)))) for columns in (made, asked))
        near = ClosestRecord.of(asked)
        votes = min(self.votes, len(secrets))
        closest = cKDTree(near.places(made)).query(near.places(asked), k=votes, p=1)[1].reshape(len(own), votes)
        return np.asarray((secrets[closest] == own[:, None]).mean(axis=1), np.float64)


def of_tables(rows: Any) -> dict[str, Score]:
    """The attacks on synthetic rows that need nothing to be known: distances, and all marginals of two columns."""
    return {"closest record": ClosestRecord.of(rows), "marginals": MarginalDensity.of(rows)}


def _lira(score: _Floats, shadow: _Floats, inside: NDArray[np.bool_]) -> _Floats:
    r"""Log-likelihood ratio of in to out, by what the shadow models with and without a row made of it.

    With few shadow models a variance of one row is hardly known: it is drawn to that of all rows by a conjugate prior,
    and scores are compared as Student's t, so that a ratio is as sure as the models are many.

    Reference:
        Carlini et al. (2022), Membership inference attacks from first principles.
    """
    number = [np.maximum(side.sum(axis=0), 0) for side in (~inside, inside)]
    means = [_mean(shadow, side) for side in (~inside, inside)]
    gap = np.nanmean(means[1] - means[0]) if np.isfinite(means[1] - means[0]).any() else 0.0
    means = [
        np.where(np.isnan(means[0]), means[1] - gap, means[0]),
        np.where(np.isnan(means[1]), means[0] + gap, means[1]),
    ]
    free = len(shadow) - (number[0] > 0).astype(int) - (number[1] > 0)
    squares = ((shadow - np.where(inside, means[1], means[0])) ** 2).sum(axis=0)
    overall = max(float(squares.sum() / max(free.sum(), 1)), 1e-24)
    variance = (_PRIOR * overall + squares) / (_PRIOR + free)
    logs = [_student(score, mean, variance * (1 + 1 / np.maximum(n, 1)), _PRIOR + free)
            for mean, n in zip(means, number, strict=True)]  # fmt: skip
    return logs[1] - logs[0]


def _lira_offline(score: _Floats, shadow: _Floats, inside: NDArray[np.bool_]) -> _Floats:
    """By how many standard deviations a row is known better than to shadow models without it."""
    mean = _mean(shadow, ~inside)
    mean = np.where(np.isnan(mean), np.nanmean(mean), mean)
    squares = np.where(inside, 0.0, (shadow - mean) ** 2).sum(axis=0)
    free = np.maximum((~inside).sum(axis=0) - 1, 0)
    overall = max(float(squares.sum() / max(free.sum(), 1)), 1e-24)
    return np.asarray((score - mean) / np.sqrt((_PRIOR * overall + squares) / (_PRIOR + free)))


def _rmia(score: _Floats, shadow: _Floats, inside: NDArray[np.bool_]) -> _Floats:
    """The likelihood of a row over its mean among shadow models, half of which saw it.

    The published attack asks for which share of other rows z the ratio of a row is larger than that of z. That is a
    rising function of the ratio, the same for all rows of a model, so it ranks them as the ratio does.

    Reference:
        Zarifzadeh, Liu, Shokri (2024), Low-cost high-power membership inference attacks.
    """
    one, other = _log_mean(shadow, inside), _log_mean(shadow, ~inside)
    one, other = np.where(np.isneginf(one), other, one), np.where(np.isneginf(other), one, other)
    return np.asarray(score - np.logaddexp(one, other))


def _log_mean(shadow: _Floats, side: NDArray[np.bool_]) -> _Floats:
    return np.asarray(logsumexp(np.where(side, shadow, -np.inf), axis=0) - np.log(np.maximum(side.sum(axis=0), 1)))


def _mean(shadow: _Floats, side: NDArray[np.bool_]) -> _Floats:
    number = side.sum(axis=0)
    return np.where(number > 0, np.where(side, shadow, 0.0).sum(axis=0) / np.maximum(number, 1), np.nan)


def _student(x: _Floats, mean: _Floats, variance: _Floats, free: _Floats) -> _Floats:
    apart = (x - mean) ** 2 / variance
    top = gammaln((free + 1) / 2) - gammaln(free / 2) - np.log(np.pi * free * variance) / 2
    return np.asarray(top - (free + 1) / 2 * np.log1p(apart / free))


CALIBRATIONS: Mapping[str, Callable[[_Floats, _Floats, NDArray[np.bool_]], _Floats]] = {
    "lira": _lira,
    "lira offline": _lira_offline,
    "rmia": _rmia,
}
"""Calibrated scores, made of the target's scores, of each shadow model's, and of which rows each of these saw."""


def _float(values: NDArray[Any]) -> _Floats:
    return np.asarray(values, np.float64)


def _edges(values: NDArray[Any]) -> Any:
    """The upper ends of bins: each value where there are few, else quantiles; for what is no number, its values."""
    if values.dtype.kind not in "iuf":
        return np.array(sorted(set(map(str, values))))
    known = np.unique(_float(values)[np.isfinite(_float(values))])
    if len(known) <= _BINS:
        return known
    return np.unique(np.quantile(_float(values)[np.isfinite(_float(values))], np.linspace(0, 1, _BINS + 1)[1:]))


def _coded(values: NDArray[Any], edges: Any) -> NDArray[np.int64]:
    if edges.dtype.kind in "US":
        return np.searchsorted(edges, np.array(list(map(str, values)))).astype(np.int64)
    return np.searchsorted(edges, np.nan_to_num(_float(values), nan=np.inf)).astype(np.int64)


def _counted(cells: NDArray[np.int64]) -> dict[int, float]:
    found, counts = np.unique(cells, return_counts=True)
    return dict(zip(found.tolist(), counts.astype(float).tolist(), strict=True))

r"""From noisy cells to accuracy, AUC and calibration, with what noise, sampling and buckets do to each of them.

A measure is a smooth function f of the cells, with gradient g. By the delta method, noise of variance v on every cell
has a standard error of :math:`\sqrt{v \sum g_i^2}`. Were the rows drawn independently from many others, so that cell i
has about :math:`n_i` of them, sampling has one of :math:`\sqrt{\sum g_i^2 n_i}`, for measures that do not change if all
cells are multiplied. Of the AUC that is DeLong's; of a share, Agresti and Coull's is used, which is
right near 0 and 1 as well. Where persons count with the average of their rows, it is an upper bound: the variance of an
average over a person's rows is at most that of a row drawn from them.

Reference:
    DeLong, DeLong, Clarke-Pearson (1988), Comparing the areas under two or more correlated ROC curves; Agresti, Coull
    (1998), Approximate is better than "exact" for interval estimation of binomial proportions.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from defocus.answers import AnswerColumn, Tails
from defocus.answers.columns import brief
from defocus.learning.estimators.grid import Floats

__all__ = ["Measure", "area", "calibration_error", "column", "difference", "moments", "share"]

_Z = 1.96
_ENOUGH = 3.0
"""What is divided by must be so many standard errors of its noise above zero, or nothing is said."""


@final
@dataclass(frozen=True, slots=True)
class Measure:
    """A number, its standard errors by noise and by sampling, and how far buckets may have moved it at most."""

    value: float = math.nan
    noise: float = math.nan
    sampling: float = math.nan
    slack: float = 0.0

    def half(self, width: float) -> float:
        """Half of the 95 % interval."""
        return math.hypot(width * self.noise, _Z * self.sampling) + self.slack


def share(above: Floats, below: Floats, cells: Floats, variance: float, *, slack: Floats | None = None) -> Measure:
    """A ratio of two combinations of cells; ``slack`` is how far a row of each cell may be off, at most."""
    whole = float((below * cells).sum())
    if not whole > _ENOUGH * math.sqrt(variance * float(np.square(below).sum())):
        return Measure()
    value = float((above * cells).sum()) / whole
    slope = (above - value * below) / whole
    noise = math.sqrt(variance * float(np.square(slope).sum()))
    if slack is None:  # of rows that are counted, or not
        tried, hit = whole + 4, float(np.clip(value * whole, 0, whole)) + 2
        sampling = math.sqrt(hit / tried * (1 - hit / tried) / tried)
        return Measure(value, noise, sampling)
    sampling = math.sqrt(float((np.square(slope) * np.maximum(cells, 0)).sum()))
    return Measure(value, noise, sampling, float((slack * np.maximum(cells, 0)).sum()) / whole)


def area(negative: Floats, positive: Floats, variance: float, *, ties: bool) -> Measure:
    """The area under the ROC curve, from the cells of the two classes in order of their scores.

    Two rows of one bucket count as a tie, which is half. They need not be one: where ``ties`` are not those of scores,
    the area is off by at most half the share of such pairs, which is the slack.
    """
    below, above = float(negative.sum()), float(positive.sum())
    least = _ENOUGH * math.sqrt(variance * len(negative))
    if not (below > least and above > least):
        return Measure()
    lower = (np.cumsum(negative) - negative / 2) / below
    higher = (above - np.cumsum(positive) + positive / 2) / above
    value = float(positive @ lower) / above
    up, down = (lower - value) / above, (higher - value) / below
    noise = math.sqrt(variance * float(up @ up + down @ down))
    drawn = np.square(up) @ np.maximum(positive, 0) + np.square(down) @ np.maximum(negative, 0)
    pairs = float(np.maximum(negative, 0) @ np.maximum(positive, 0)) / (2 * below * above)
    return Measure(value, noise, math.sqrt(float(drawn)), 0.0 if ties else min(pairs, 0.5))


def calibration_error(wrong: Floats, right: Floats, edges: Floats, bins: Sequence[slice], variance: float) -> Measure:
    r"""The expected calibration error: over bins, the mean of the distance between scores and shares of outcomes.

    Noise and sampling only raise a sum of distances. What they are expected to add to its square is
    taken off each distance, and the interval follows from the triangle inequality: the sum moves by no more than
    :math:`\sum |e_b|` for errors :math:`e_b`.
    """
    whole = float(wrong.sum() + right.sum())
    if not whole > _ENOUGH * math.sqrt(2 * variance * len(wrong)):
        return Measure()
    middle, reach = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    found, noises, drawn, slack = 0.0, [], [], 0.0
    for part in bins:
        no, yes, score = wrong[part], right[part], middle[part]
        apart = float(yes @ (1 - score) - no @ score) / whole
        weights = np.concatenate([1 - score, score]) / whole
        counts = np.maximum(np.concatenate([yes, no]), 0)
        noise, sample = variance * float(weights @ weights), float(np.square(weights) @ counts)
        found += math.sqrt(max(apart**2 - noise - sample, 0.0))
        noises.append(noise)
        drawn.append(sample)
        slack += float(reach[part] @ np.maximum(no + yes, 0)) / whole
    return Measure(found, _sum_of_sizes(noises), _sum_of_sizes(drawn), slack)


def _sum_of_sizes(variances: Sequence[float]) -> float:
    """The standard error whose 95 % half-width holds the sum of the sizes of normal errors."""
    roots = np.sqrt(variances)
    return float(roots.sum() * math.sqrt(2 / math.pi) / _Z + math.sqrt((1 - 2 / math.pi) * float(np.sum(variances))))


def moments(sums: Floats, variance: float, span: float) -> dict[str, Measure]:
    """Errors of foretold numbers from sums of 1, e, e², e⁴, y and y², for errors e and targets y from 0 to 1.

    Sampling follows from the same sums. For R² it is an upper bound: the variance of squared distances from the mean is
    at most their mean times one minus it, since none is above 1.
    """
    rows, absolute, squared, fourth, target, twice = map(float, sums)
    names = ("mae", "mse", "rmse", "r2")
    if not rows > _ENOUGH * math.sqrt(variance):
        return dict.fromkeys(names, Measure())
    error = math.sqrt(variance)

    def mean(total: float, spread: float) -> tuple[float, float, float]:
        value = total / rows
        return value, error * math.hypot(1, value) / rows, math.sqrt(max(spread, 0.0) / rows)

    mae = mean(absolute, (squared - absolute**2 / rows) / rows)
    mse = mean(squared, (fourth - squared**2 / rows) / rows)
    made = {"mae": Measure(*(span * x for x in mae)), "mse": Measure(*(span**2 * x for x in mse)), "rmse": Measure()}
    root = math.sqrt(max(mse[0], 0.0))
    if mse[0] > _ENOUGH * mse[1]:
        made["rmse"] = Measure(*(span * x for x in (root, mse[1] / (2 * root), mse[2] / (2 * root))))
    middle = target / rows
    spread = twice / rows - middle**2
    off = error * math.sqrt(1 + 4 * middle**2 + (2 * middle**2 - twice / rows) ** 2) / rows
    if not spread > _ENOUGH * off:
        return {**made, "r2": Measure()}
    left = mse[0] / spread
    slope = np.array([-left * middle**2, 1.0, 2 * left * middle, -left]) / (rows * spread)
    sampled = (mse[2] + left * math.sqrt(max(spread * (1 - spread), 0.0) / rows)) / spread
    return {**made, "r2": Measure(1 - left, error * float(np.linalg.norm(slope)), sampled)}


def difference(one: Measure, other: Measure) -> Measure:
    """How much larger one measure is than another of other rows."""
    return Measure(
        one.value - other.value,
        math.hypot(one.noise, other.noise),
        math.hypot(one.sampling, other.sampling),
        one.slack + other.slack,
    )


def column(
    name: str, measures: Sequence[Measure], width: float, how: str, limits: tuple[float, float] = (0.0, 1.0)
) -> AnswerColumn:
    """A column of an answer: errors are those of the noise; intervals hold noise, sampling and buckets."""
    values = np.array([each.value for each in measures])
    half = np.array([each.half(width) for each in measures])
    low, high = limits
    said = [how]
    known = [each for each in measures if math.isfinite(each.value)]
    if known and any(each.sampling for each in known):
        said.append(f"sampling has a standard error of {_range([each.sampling for each in known])}")
    if any(each.slack for each in known):
        said.append(f"buckets hide at most {_range([each.slack for each in known])}")
    return AnswerColumn(
        name,
        values.clip(low, high),
        np.array([each.noise for each in measures]),
        np.maximum(values - half, low),
        np.minimum(values + half, high),
        integral=False,
        how="; ".join(said),
        tails=Tails.LOG_CONCAVE,
    )


def _range(numbers: Sequence[float]) -> str:
    least, most = brief(min(numbers)), brief(max(numbers))
    return least if least == most else f"{least} to {most}"

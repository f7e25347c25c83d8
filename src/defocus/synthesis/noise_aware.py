r"""Honest intervals for what is computed of synthetic rows: several noise-aware draws, and the rule that combines them.

Rows that were drawn once look like data without noise: an interval computed on them ignores both the noise of the
release and that the people were themselves a sample. Several tables, each drawn from a model that was fitted to *other*
plausible measurements, vary by as much as the truth is unknown.

*Draws.* Measured were :math:`y = c + \text{noise}`, where the counts c of the n people have mean :math:`n\mu(\theta)`.
With a flat prior, and where estimates are nearly linear in y, the law of :math:`\theta` given y is that of the estimate
from :math:`y + e`, with e distributed as :math:`y - n\mu`: a bootstrap sample of n records less their mean, plus fresh
noise of the known sigma. For each draw the model is fitted to such counts, and rows are drawn from it. Interactions are
not shrunk here, which would pull estimates towards independence.

*Combining.* Let m tables give estimates :math:`q_i` with variances :math:`u_i`, each as if its rows were real. The
variance b between the :math:`q_i` is that of :math:`\theta` given y plus that of drawing rows, whose mean is u. So

.. math:: T = (1 + 1/m)\, b - u, \qquad \nu = (m - 1)\,\bigl(1 - u / ((1 + 1/m)\, b)\bigr)^2 .

The rule holds for tables of any number of rows; four times as many as there are people make u small beside b, so that
T is well known from twenty tables.

Assumes:
    What the analysis needs was measured, as ``focus=`` makes sure: a pair that was not is taken as independent given
    the others. Values within a cell are spread evenly, of which :mod:`defocus.synthesis.inference` takes care, and
    codes in one bin are alike in all other columns. Where all draws agree exactly, the error is infinite.
    Counts are not negative, so where they are below their noise the estimate varies by less from draw to draw than
    the noise makes it unsure: noise there is drawn wider, by a factor that was found by simulation.
    Where a person may have R rows, people are drawn as if each had R rows that are alike, which none exceeds.

Reference:
    Räisä, Jälkö, Kaski, Honkela (2023), Noise-aware statistical inference with differentially private synthetic data;
    Raghunathan, Reiter, Rubin (2003), Multiple imputation for statistical disclosure limitation, for the rule.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from defocus.errors import InvalidParameterError, Number, probability
from defocus.synthesis.field import MarkovField, counted
from defocus.synthesis.measurement import MOST, PLAIN, Fitted
from defocus.synthesis.targets import Floats, Noisy, pooled_margins, raked, simplex, smoothed

__all__ = ["Combined", "combine", "hold", "redrawn"]

_SWEEPS, _AGAIN, _MIXING = 60, 25, 8
"""Sweeps for the first fit, for that of each draw, and in the end, so that rows forget where they came from."""
_TIMES = 4
"""How many times as many rows a draw has as there are records."""
_SEEN, _WIDER = 3.0, 1.5
"""Counts below so many standard deviations are drawn with so much wider noise."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Combined:
    """Estimates from several synthetic tables, with errors that know about the noise. Made by :func:`combine`.

    >>> made = combine([[2.0], [2.2], [1.9], [2.1]], [[0.01]] * 4)
    >>> made.estimate.round(2).tolist(), made.error.round(3).tolist()
    ([2.05], [0.104])
    """

    estimate: Floats
    error: Floats
    """Standard errors; infinite where all tables agree exactly, which says nothing about private rows."""
    degrees: Floats
    """Degrees of freedom of the t distribution."""

    def interval(self, confidence: Number = 0.95) -> tuple[Floats, Floats]:
        """The ends of an interval for each estimate."""
        level = float(probability("confidence", confidence, zero=False, one=False))
        reach = stdtrit(self.degrees, (1 + level) / 2) * self.error
        return self.estimate - reach, self.estimate + reach


def combine(estimates: ArrayLike, variances: ArrayLike) -> Combined:
    """One estimate from those of several synthetic tables, which ``Generator.draws`` made.

    Args:
        estimates: a row for each table, with one or several estimates.
        variances: the squares of their standard errors, each computed as if its table were real.

    >>> low, high = combine([1.0, 1.2, 0.9, 1.1], [0.001] * 4).interval(0.9)
    >>> bool(low[0] < 1.05 < high[0])
    True
    """
    found, within = (np.asarray(own, np.float64) for own in (estimates, variances))
    found, within = (own[:, None] if own.ndim == 1 else own for own in (found, within))
    if found.shape != within.shape or found.ndim != 2 or len(found) < 2 or (within < 0).any():
        raise InvalidParameterError(
            f"Estimates of shape {found.shape} and variances of shape {within.shape} cannot be combined.",
            fix="pass a row of estimates and a row of variances for each of at least two synthetic tables.",
        )
    between = (1 + 1 / len(found)) * found.var(axis=0, ddof=1)
    rest = between - within.mean(axis=0)
    # Too few tables may vary by less than their rows: then what they vary by stands for all of it.
    total = np.where(rest > 0, rest, between)
    # No noise and no other people change it: it lies within a bin or was declared, and its error is not known.
    total = np.where((between == 0) & (within == 0).all(axis=0), np.inf, total)
    share = np.divide(total, between, out=np.ones_like(total), where=np.isfinite(total) & (between > 0))
    return Combined(found.mean(axis=0), np.sqrt(total), np.maximum(1.0, (len(found) - 1) * share**2))


def redrawn(fitted: Fitted, number: int, random: np.random.Generator, *, together: int = 1) -> Iterator[Fitted]:
    """So many times other records, each drawn given other measurements that are as plausible as those made.

    ``together`` is how many rows may be of one person: so many fewer people are drawn, each with so many rows. Sums
    over rows of people who have at most R rows vary by at most what they do if all have R rows that are alike.
    """
    sizes, records = [int(own.max()) + 1 for own in fitted.bins], len(fitted.records)
    field = MarkovField(sizes, records, random)
    hold(field, fitted.margins, fitted.tables)
    field.fit(_SWEEPS)
    start = field.records.copy()
    times = max(1, min(_TIMES, MOST // max(1, records)))
    for _ in range(number):
        # Other people, drawn as how often each record is there: as much memory as for the records, however many people.
        people = max(1, round(fitted.total / together))
        often = random.multinomial(people, np.full(records, 1 / records)) * np.float64(records / people) - 1

        def other(columns: tuple[int, ...], noisy: Noisy, shift: Floats = often) -> Noisy:
            apart = counted(start, columns, sizes, shift)
            hidden = noisy.counts < _SEEN * noisy.sigma
            noise = random.normal(0, noisy.sigma, noisy.counts.shape) * np.where(hidden, _WIDER, 1.0)
            return Noisy(noisy.counts + apart + noise, noisy.sigma)

        margins = [other((i,), noisy) for i, noisy in enumerate(fitted.margins)]
        tables = {columns: other(columns, noisy) for columns, noisy in fitted.tables.items()}
        hold(field, margins, tables)
        field.fit(_AGAIN)
        within = tuple(_within_again(fitted, i, together, random) for i in range(len(sizes)))
        yield replace(fitted, records=field.drawn(times, _MIXING), within=within)


def _within_again(fitted: Fitted, column: int, together: int, random: np.random.Generator) -> Floats:
    """About how many records have each code, as other noise and other people would tell: rare codes share a bin."""
    counts, margin, bins = fitted.within[column], fitted.margins[column], fitted.bins[column]
    shared = np.bincount(bins)[bins] > 1
    sigma = margin.sigma * math.sqrt(len(margin.counts) / len(counts))
    again = counts + random.normal(0, np.sqrt(sigma**2 + together * counts))
    if shared.sum() > PLAIN and (np.diff(bins) >= 0).all():  # cells in their order, as they were counted
        again[shared] = smoothed(again[shared], sigma)
    again[-1] *= counts[-1] > 0  # if nobody is missing, nobody is made so
    return np.asarray(np.where(shared, np.maximum(again, 0), counts))


def hold(field: MarkovField, margins: Sequence[Noisy], tables: dict[tuple[int, ...], Noisy]) -> None:
    """Give the field what was measured, pooled and made consistent, and nothing else done to it."""
    pooled = pooled_margins(margins, tables, field.number)
    field.hold_margins(pooled)
    for columns, noisy in tables.items():
        own = [pooled[i] for i in columns]
        product = reduce(np.multiply.outer, own) / field.number ** (len(own) - 1)
        target = np.where(np.isnan(noisy.counts), product, noisy.counts)
        for _ in range(2):  # margins are known better than cells: they are set before and after cells become counts
            for axis, margin in enumerate(own):
                others = tuple(other for other in range(target.ndim) if other != axis)
                shape = [-1 if other == axis else 1 for other in range(target.ndim)]
                apart = margin - target.sum(axis=others)
                target = target + apart.reshape(shape) / math.prod(target.shape[other] for other in others)
        field.hold(columns, raked(simplex(target, float(field.number)), own))

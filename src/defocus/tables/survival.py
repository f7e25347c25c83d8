"""Survival curves from noisy histograms of times, with noise and the choice of people told apart."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from defocus.answers import AnswerColumn, PreviewColumn, Released
from defocus.tables.most_frequent import segments
from defocus.tables.planner import Plan
from defocus.tables.reading import Reading, histogram_noise
from defocus.tables.statistics import SIZES

__all__ = ["Curve", "Survival", "kaplan_meier"]

_Floats: TypeAlias = npt.NDArray[np.float64]
_FEW = 5
"""A curve ends where the number at risk is below so many standard errors of its noise."""
_Z = 1.959963984540054


@final
@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The share that survives each step, from 1 before the first; standard errors by noise and by sampling; ends."""

    values: _Floats
    noise: _Floats
    sampling: _Floats
    low: _Floats
    high: _Floats


def kaplan_meier(events: _Floats, censored: _Floats, variance: float) -> Curve:
    r"""The curve of noisy numbers of events and of censored people in each step; the last step is beyond the horizon.

    With :math:`d_i` events, :math:`c_i` censored and :math:`r_i` at risk, those censored are at risk for half of their
    step, :math:`e_i = r_i - c_i/2`, and :math:`S_t = \prod_{i \le t}(1 - d_i/e_i)`, made monotone by pooling
    neighbours.

    Error:
        Sampling by Greenwood's formula, with :math:`G_j = \sum_{i \le j} g_i` and :math:`g_i = d_i/(e_i(e_i-d_i))`.
        Noise by the derivatives of :math:`\ln S_t`, which are for :math:`j \le t` by the events
        :math:`G_{j-1} - 1/e_j` and by those censored :math:`G_{j-1} + g_j/2`, and for later steps :math:`G_t`. The
        interval holds both, on the logarithmic scale. Numbers at risk are sums of many noisy cells, but a curve hardly
        feels that: its noise is nearly that of the events, and a tree of sums would add more to these than it takes
        from those.
    Reference:
        Kaplan, Meier (1958), Nonparametric estimation from incomplete observations; Cutler, Ederer (1958), Maximum
        utilization of the life table method; Gondara, Wang (2020), Differentially private survival function estimation.
    """
    steps = len(events) - 1
    at_risk = np.cumsum((events + censored)[::-1])[::-1]
    deviation = np.sqrt(variance * 2 * np.arange(steps + 1, 0, -1))
    exposed = at_risk - censored / 2
    fine = (at_risk > _FEW * deviation) & (exposed > np.maximum(events, 0.0))
    known = steps if fine[:steps].all() else int(np.argmin(fine[:steps]))
    e, d = exposed[:known], events[:known]
    logs, own = np.cumsum(np.log1p(-d / e)), d / (e * (e - d))
    sums = np.cumsum(own)
    greenwood = np.maximum.accumulate(np.maximum(sums, 0.0))
    # The squared derivatives by the cells of steps up to t, and by those of later ones, at t itself.
    before = sums - own
    felt = np.cumsum((before - 1 / e) ** 2 + (before + own / 2) ** 2) + 2 * (steps - np.arange(known)) * sums**2
    values = np.minimum(_falling(np.exp(logs)), 1.0)
    half = _Z * np.sqrt(variance * felt + greenwood)
    curve = [values, values * np.sqrt(variance * felt), values * np.sqrt(greenwood)]
    curve += [values * np.exp(-half), np.minimum(values * np.exp(half), 1.0)]
    high = float(curve[4][-1]) if known else 1.0
    unknown = (np.nan, np.nan, np.nan, 0.0, high)
    starts = (1.0, 0.0, 0.0, 1.0, 1.0)
    full = [
        np.concatenate([[start], part, np.full(steps - known, rest)])
        for start, part, rest in zip(starts, curve, unknown, strict=True)
    ]
    return Curve(*full)


def _falling(values: _Floats) -> _Floats:
    """The nearest values that never rise, by pooling neighbours."""
    pools: list[tuple[float, int]] = []
    for value in values.tolist():
        mean, size = value, 1
        while pools and pools[-1][0] < mean:
            before, more = pools.pop()
            mean, size = (mean * size + before * more) / (size + more), size + more
        pools.append((mean, size))
    return np.concatenate([np.full(size, mean) for mean, size in pools]) if pools else values


@final
@dataclass(frozen=True, slots=True)
class Survival(Reading):
    """The share of people to whom an event has not happened, by time.

    Guarantee:
        As for the histogram that it is read from: each person is in one cell, of one step, with the event or censored.
    Assumes:
        Rows of different people are independent, and censoring has nothing to do with the event. Within a step, people
        are censored half-way.
    """

    time: str
    event: str
    by: str | None
    edges: tuple[float, ...]

    @property
    def words(self) -> str:
        """What is asked, in words."""
        groups = "" if self.by is None else f", by {self.by}"
        return f"survival curve of {self.time} until {self.event}, up to {self.edges[-1]:g}{groups}"

    def read(self, answer: Released, planned: Plan) -> Released:
        """One curve for each group, on the edges of the steps, and its median."""
        variance, table = _variance(planned), pa.table(dict(answer.keys))
        counts = np.stack([column.values for column in answer.columns], axis=1)
        happened = np.array(answer.keys[self.event].to_pylist(), dtype=np.bool_)
        curves, names, notes = [], [], []
        for members in segments(table, 0 if self.by is None else 1):
            events, censored = (counts[members[happened[members] == flag][0]] for flag in (True, False))
            curve = kaplan_meier(events, censored, variance)
            name = None if self.by is None else table.column(self.by)[int(members[0])].as_py()
            curves.append(curve)
            names.append(name)
            notes.append(self._median(curve, name))
        how = f"Kaplan–Meier, by steps, from a histogram with {histogram_noise(planned).words}, made monotone"
        both = f"{how}; the interval holds the noise and the choice of people"
        parts = {part: np.concatenate([getattr(each, part) for each in curves]) for part in Curve.__slots__}
        ends = parts["low"], parts["high"]
        unknown = np.full(len(parts["values"]), np.nan)
        columns = (
            AnswerColumn("survival", parts["values"], parts["noise"], *ends, integral=False, how=both),
            AnswerColumn("sampling", parts["sampling"], unknown, unknown, unknown, integral=False, how=_SAMPLING),
        )
        keys = {"time": pa.array(list(self.edges) * len(curves), pa.float64())}
        if self.by is not None:
            groups = [name for name in names for _ in self.edges]
            keys = {self.by: pa.array(groups, table.column(self.by).type), **keys}
        return replace(
            answer,
            keys=keys,
            columns=columns,
            threshold=None,
            things=("point", "points"),
            figure="series",
            notes=(*answer.notes, *notes),
        )

    def foreseen(self, columns: Sequence[PreviewColumn], planned: Plan) -> tuple[list[PreviewColumn], tuple[str, ...]]:
        """The error at the horizon of groups that half survive, if nobody is censored before."""
        del columns
        steps = len(self.edges) - 1
        shares = 0.5 ** (np.arange(steps + 1) / steps)
        by_size = []
        for n in SIZES:
            events = np.append(-n * np.diff(shares), 0.0)
            curve = kaplan_meier(events, np.append(np.zeros(steps), n / 2), _variance(planned))
            half = float(curve.high[-1] - curve.low[-1]) / 2
            by_size.append((n, float(curve.noise[-1]), half))
        within = "what it stays within holds the choice of people, where half survive and nobody is censored"
        how = f"Kaplan–Meier at the horizon, {histogram_noise(planned).words}; {within}"
        return [PreviewColumn("survival", how, by_size=tuple(by_size))], ()

    def _median(self, curve: Curve, group: object) -> str:
        """Half survive until when, as a sentence; straight between the edges of steps."""
        where = "" if self.by is None else f" where {self.by} is {group}"
        middle, first, last = (self._reached(part) for part in (curve.values, curve.low, curve.high))
        if middle is None or first is None:
            return f"the median of {self.time}{where} is not reached by {self.edges[-1]:g}"
        until = f"{last:.4g}" if last is not None else f"beyond {self.edges[-1]:g}"
        return f"the median of {self.time}{where} is {middle:.4g}, 95 % interval {first:.4g} to {until}"

    def _reached(self, shares: _Floats) -> float | None:
        below = np.flatnonzero(shares <= 0.5)
        if not below.size:
            return None
        i = int(below[0])
        return float(np.interp(0.5, [shares[i], shares[i - 1]], [self.edges[i], self.edges[i - 1]]))


_SAMPLING = "standard error of the survival by the choice of people, by Greenwood's formula"


def _variance(planned: Plan) -> float:
    """The variance of the noise of one cell, in rows."""
    return float(histogram_noise(planned).variance) / float(planned.grid) ** 2

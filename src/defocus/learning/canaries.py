r"""Canaries of a run: made-up persons, each in or out (or one of two) by a coin, to see how much a run tells.

A canary is one person more, treated as the others are: drawn for a step by the same sampling, with a gradient that is
clipped by the same rule, in a sum with the same noise. Its gradient is as long as may be, and lies in coordinates that
no other canary has: of one parameter (of one in each group where groups are clipped apart), with signs that are drawn
anew for each step, so that what the gradients of real examples have in these coordinates averages out. They are the
coordinates in which least was seen so far: those that real gradients seldom move, and those that lack noise.

Guarantee:
    *To real people nothing changes.* What a canary adds depends on coins, on the key of the run and on what was
    released before, never on a row, so it moves the sums of neighbouring data alike, to which the same noise is added.
    The scores are made of what was released, so the bound is post-processing, and free. Where batches have a fixed
    size, canaries take places in them, and a person is drawn for one no more often than was charged.

    *What is tested is what is charged.* Let canary i be drawn for a step, and let :math:`c_i` be its vector, of the
    length of the clip C. The step releases :math:`g + \sum_i b_i D_i c_i + n` with Gaussian noise n; g and the
    :math:`c_i` depend on what was released before, and the :math:`c_i` are orthogonal. So the numbers
    :math:`z_i = b_i D_i C + \langle n, c_i\rangle/C` of all steps are independent between canaries, and the release is
    made of them and of what is independent of them: the promise that :func:`~defocus.privacy.guesses.independent`
    tests, in which canary i keeps the curve of the event, as it is drawn and noised like anybody else. With noise of
    another scale in each group, the same holds after division by the scales. Where a unit is replaced by another, as in
    batches of fixed size, the coin decides between :math:`c_i` and :math:`-c_i`, and the curve is that of the event
    for a unit replaced by another. Where one is added or removed, these are two changes apart, and keep the curve of
    two. That shows more of runs that are charged little, and less of others, in whose batches a canary is seldom, and
    seen then: which of both is done follows from the charged epsilon.
    In shuffled batches and those of a fixed size who is drawn depends on the others, and the test is
    :func:`~defocus.privacy.guesses.tradeoff`.

    Clipping of real examples is not seen: a canary's gradient is made, not computed from an example; it passes the
    rule that makes factors of norms, and everything after it. :func:`defocus.audit.run` plants examples.

Error:
    A canary that is drawn is noise for the model: see :meth:`Canaries.cost`. Scores are the likelihoods of a canary's
    numbers under the charged noise, made wider where the gradients of real examples disturb them, which lowers the
    bound. With correlated noise directions stay what they are for the whole run, and disturb more.
Reference:
    Steinke, Nasr, Jagielski (2023), Privacy auditing with one (1) training run; Andrew et al. (2024), One-shot
    empirical privacy estimation for federated learning.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.signal import lfilter

from defocus.errors import InvalidParameterError, count
from defocus.learning.accountant import Plan
from defocus.learning.clipping import Clipping, PerLayerClipping
from defocus.learning.noise import Stream
from defocus.learning.noise_schedule import BufferedStrategy, Strategy
from defocus.learning.sampling import BallsInBins, Cyclic, FixedSize, Poisson, Sampling, Shuffled
from defocus.noise import bernoulli, uniform
from defocus.noise.ranges import Integers
from defocus.privacy.one_run import OneRun, one_run

__all__ = ["Canaries"]

_Floats = NDArray[np.float64]

_LONG = 1e4
"""How often a canary's gradient is as long as the clip, before it is clipped."""
_LITTLE = 2.0
"""Up to which charged epsilon coins decide between two persons, where one may be added or removed."""
_SPREAD = 1.4826
"""A standard deviation over the median of what is as far from the middle as a Gaussian."""
_ENOUGH = 16
"""From how many scores a spread is read."""
_MOST = 1 << 26
"""How many scores of single steps are kept for correlated noise."""
_LOOKED = 256
"""Among how many coordinates of a parameter canaries choose, for each of them."""
_QUIET = 4
"""One in so many is taken: those in which least was seen."""


@final
@dataclass(slots=True)
class _Cell:
    """The canaries of one parameter, and the coordinates that each has of it."""

    group: int
    name: str
    first: int
    places: torch.Tensor
    """A row of coordinates for each canary."""
    energies: torch.Tensor
    """What was seen so far in the coordinates to choose among, squared, in units of the noise."""

    @classmethod
    def of(cls, group: int, name: str, first: int, canaries: int, size: int) -> "_Cell":
        """Blocks of the coordinates to choose among."""
        width = min(size // canaries, _LOOKED)
        places = torch.arange(canaries * width).view(canaries, width)
        return cls(group, name, first, places, torch.zeros(canaries * width))

    @property
    def canaries(self) -> int:
        """How many there are."""
        return int(self.places.shape[0])

    @property
    def width(self) -> int:
        """How many coordinates each has."""
        return int(self.places.shape[1])

    @property
    def fewest(self) -> int:
        """In how many coordinates they are together once they have chosen."""
        return self.canaries * max(1, len(self.energies) // _QUIET // self.canaries)

    def on(self, total: torch.Tensor) -> torch.Tensor:
        """The coordinates, where a sum is."""
        self.places = self.places.to(total.device)
        return self.places

    def blocks(self, total: torch.Tensor) -> torch.Tensor:
        """These coordinates of a sum, a row for each canary."""
        return total.view(-1)[self.on(total)]

    def learn(self, total: torch.Tensor, scale: float, *, move: bool) -> None:
        """Note what was seen, in units of the noise; and move to where least was."""
        self.energies = self.energies.to(total.device)
        seen = total.view(-1)[: len(self.energies)].float()
        self.energies.addcmul_(seen, seen, value=scale**-2)
        if move:
            best = self.energies.topk(self.fewest, largest=False, sorted=False).indices
            self.places = best.sort().values.view(self.canaries, -1)


@final
class Canaries:
    """The canaries of one run, their coins, and what was seen of them so far."""

    __slots__ = (
        "_cells",
        "_clipping",
        "_coins",
        "_epoch",
        "_labels",
        "_looks",
        "_minus",
        "_names",
        "_plan",
        "_plus",
        "_rowed",
        "_seen",
        "_steps",
        "_total",
        "_xs",
        "changes",
        "count",
        "replaced",
    )

    def __init__(self, number: int, parameters: dict[str, torch.nn.Parameter], plan: Plan, clipping: Clipping) -> None:
        self.count = count("audit", number)
        swapped = plan.sampling.replace or isinstance(plan.sampling, FixedSize | Shuffled)
        self.replaced = swapped or plan.epsilon_after(plan.steps) <= _LITTLE
        """Whether the coin decides between two vectors, and not between one and none."""
        self.changes = 2 if self.replaced and not swapped else 1
        """How many changes of a person are between both sides of a coin."""
        self._plan, self._clipping, self._names = plan, clipping, list(parameters)
        groups = clipping.names if isinstance(clipping, PerLayerClipping) else (tuple(parameters),)
        sizes = {name: each.numel() for name, each in parameters.items()}
        self._cells = [cell for i, names in enumerate(groups) for cell in _cells(self.count, i, names, sizes)]
        self._labels = None
        if len(groups) == 1:
            self._labels = np.repeat([cell.first for cell in self._cells], [cell.canaries for cell in self._cells])
        if self.count < 2:
            raise InvalidParameterError("One canary shows nothing.", fix="pass audit=1000, or at least audit=2.")
        if plan.strategy is not None and self.count * plan.steps > _MOST:
            raise InvalidParameterError(
                f"With correlated noise, scores of {self.count} canaries are kept for each of {plan.steps} steps.",
                fix=f"pass audit={max(2, _MOST // plan.steps)}, or leave noise= out.",
            )
        self._coins: tuple[bytes, NDArray[np.bool_]] | None = None
        self._rowed: tuple[bytes, int, list[_Floats]] | None = None
        self._total = np.zeros(self.count)
        self._plus, self._minus = (np.full(self.count, -np.inf) for _ in range(2))
        self._epoch, self._seen, self._looks = 0, 0, 0
        self._steps: list[int] = []
        self._xs: list[_Floats] = []

    @property
    def independent(self) -> bool:
        """Whether who is drawn does not depend on the others."""
        return isinstance(self._plan.sampling, Poisson | BallsInBins | Cyclic)

    def coins(self, key: bytes) -> NDArray[np.bool_]:
        """The coins of a run: they follow from its key, so that it can be resumed."""
        if self._coins is None or self._coins[0] != key:
            tossed = np.asarray(bernoulli(Fraction(1, 2), self.count, Stream(key, "canaries", "coins")))
            tossed.flags.writeable = False
            self._coins = key, tossed
        return self._coins[1]

    def add(self, sums: Sequence[torch.Tensor], drawn: Integers, step: int, key: bytes, clips: Sequence[float]) -> None:
        """Add the clipped gradients of the canaries that were drawn and are in."""
        coins = self.coins(key)[drawn]
        signs = np.where(coins, 1.0, -1.0) if self.replaced else np.ones(len(drawn))
        inside = np.ones(len(drawn), bool) if self.replaced else coins
        norms = torch.tensor(clips, dtype=torch.float64)[:, None] * _LONG
        factors = self._clipping.rule(clips)(norms if len(clips) > 1 else norms[0]).reshape(-1)
        rows = self._rows(step, key)
        for cell, row in zip(self._cells, rows, strict=True):
            mine = inside & (drawn >= cell.first) & (drawn < cell.first + cell.canaries)
            if mine.any():
                total = sums[self._names.index(cell.name)]
                length = float(norms[cell.group, 0] * factors[cell.group])
                vectors = torch.from_numpy(np.outer(signs[mine] * length, row)).to(total)
                mine_at = cell.on(total)[torch.from_numpy(drawn[mine] - cell.first).to(total.device)]
                total.view(-1).index_add_(0, mine_at.view(-1), vectors.view(-1))

    def see(
        self,
        released: Sequence[torch.Tensor],
        scales: Sequence[float],
        step: int,
        key: bytes,
        clips: Sequence[float],
    ) -> None:
        """Score all canaries by the noisy means that a step released, times what they were divided by."""
        weighted, precision = np.zeros(self.count), np.zeros(self.count)
        for cell, row in zip(self._cells, self._rows(step, key), strict=True):
            at = self._names.index(cell.name)
            total, clip = released[at], clips[cell.group]
            seen = cell.blocks(total) @ torch.from_numpy(row).to(total)
            x = seen.double().cpu() * (self._plan.batch_size / clip)
            noise = scales[at] / clip
            if cell.canaries >= _ENOUGH:
                x -= x.median()
                noise = max(noise, _SPREAD * float(x.abs().median()))
            mine = slice(cell.first, cell.first + cell.canaries)
            weighted[mine] += x.numpy() / noise**2
            precision[mine] += 1 / noise**2
            if self._plan.strategy is None:
                cell.learn(total, scales[at] / self._plan.batch_size, move=self._looks & (self._looks + 1) == 0)
        self._looks += 1
        self._note(weighted / precision, precision, step)

    def _note(self, x: _Floats, precision: _Floats, step: int) -> None:
        if self._plan.strategy is not None:
            self._xs.append(x)
            self._steps.append(step)
            return
        epoch = step // _turn(self._plan.sampling, self.count)[0]
        if epoch != self._epoch:
            self._total = self._sum()
            self._plus, self._minus = (np.full(self.count, -np.inf) for _ in range(2))
            self._epoch, self._seen = epoch, 0
        self._plus = np.logaddexp(self._plus, (x - 0.5) * precision)
        if self.replaced:
            self._minus = np.logaddexp(self._minus, (-x - 0.5) * precision)
        self._seen += 1

    def _sum(self) -> _Floats:
        """The scores, with the epoch that has begun."""
        rate = _turn(self._plan.sampling, self.count)[1]
        with np.errstate(divide="ignore"):
            rest, one = np.log(max(0.0, 1 - self._seen * rate)), math.log(rate)
        scores = self._total + np.logaddexp(rest, one + self._plus)
        return scores - np.logaddexp(rest, one + self._minus) if self.replaced else scores

    def scores(self, key: bytes, units: int) -> _Floats:
        """How likely each canary is in, in the logarithm of odds, beside so many units."""
        if self._plan.strategy is None:
            return self._sum()
        return self._filtered(self._plan.strategy, key, units)

    def _filtered(self, strategy: Strategy | BufferedStrategy, key: bytes, units: int) -> _Floats:
        """The same where noise is correlated: C times what was seen has independent noise, and a turn is a column."""
        sampling = self._plan.sampling
        if not isinstance(sampling, Cyclic) or not self._steps:
            return np.zeros(self.count)
        last = self._steps[-1] + 1
        seen = np.zeros((last, self.count))
        seen[self._steps] = self._xs
        column = strategy.first(last)
        noises = lfilter(column, [1.0], seen, axis=0)
        taken = np.zeros(last, bool)
        taken[self._steps] = True
        variance = (self._plan.ratio_of(0, 0) * strategy.norm) ** 2
        rate = float(sampling.rate)
        groups = np.asarray(uniform(sampling.groups, units + self.count, Stream(key, "groups")))[units:]
        found = np.zeros(self.count)
        for group in range(sampling.groups):
            mine = groups == group
            turns = [at for at in range(group, last, sampling.groups) if taken[at]]
            if not mine.any() or not turns:
                continue
            shifts = np.zeros((len(turns), last))
            for place, at in enumerate(turns):
                shifts[place, at:] = column[: last - at]
            shifts = shifts * taken
            if rate == 1:  # columns may overlap, and all turns are one
                shifts = shifts.sum(axis=0, keepdims=True)
            x, length = shifts @ noises[:, mine], (shifts**2).sum(axis=1)[:, None]
            odds = np.logaddexp(_log(1 - rate), _log(rate) + (x - length / 2) / variance)
            if self.replaced:
                odds = odds - np.logaddexp(_log(1 - rate), _log(rate) + (-x - length / 2) / variance)
            found[mine] = odds.sum(axis=0)
        return found

    def result(self, key: bytes, units: int, steps: int, confidence: float) -> OneRun | None:
        """The bound of so many steps, beside what they were charged; None before the first."""
        plan = self._plan
        if not steps:
            return None
        return one_run(
            self.scores(key, units),
            self.coins(key),
            delta=plan.delta,
            confidence=confidence,
            event=plan.event_after(steps),
            adjacency=plan.unit.adjacency,
            independent=self.independent,
            groups=self._labels,
            changes=self.changes,
            exchanged=self.replaced and self.changes == 1,
        )

    def cost(self) -> str:
        """What the canaries do to the model, in words: vectors in random directions, as noise is."""
        plan = self._plan
        d = sum(cell.fewest if plan.strategy is None else cell.canaries * cell.width for cell in self._cells)
        drawn = self.count * plan.batch_size / plan.size * (1.0 if self.replaced else 0.5)
        noise = plan.noise_in_words(0)
        more = math.sqrt(1 + drawn / (d * plan.ratio_of(0, 0) ** 2)) - 1
        one = "" if plan.rows == 1 else f" and have one example each, of {plan.rows} that a person may have"
        taken = ""
        if self.replaced and not isinstance(plan.sampling, Poisson | BallsInBins | Cyclic):
            taken = f" They take one place in {(plan.size + self.count) / self.count:.3g} of a batch."
        return (
            f"{self.count} canaries, persons who are made up{one}, take part by coins: they act on the model as"
            f" {more:.2g} times more noise ({noise} times the clip) would.{taken} To real people they change nothing."
        )

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps: as secret as the key."""
        return {
            "sums": [torch.from_numpy(each.copy()) for each in (self._total, self._plus, self._minus, *self._xs)],
            "at": [self._epoch, self._seen, *self._steps],
            "cells": [[self._looks], *([cell.places.clone(), cell.energies.clone()] for cell in self._cells)],
        }

    def load(self, kept: dict[str, Any]) -> None:
        """Take over what a checkpoint kept."""
        self._total, self._plus, self._minus, *self._xs = (each.numpy().copy() for each in kept["sums"])
        self._epoch, self._seen, *self._steps = kept["at"]
        if "cells" in kept:  # checkpoints of earlier versions have none
            (self._looks,), *cells = kept["cells"]
            for cell, (places, energies) in zip(self._cells, cells, strict=True):
                cell.places, cell.energies = places, energies

    def _rows(self, step: int, key: bytes) -> list[_Floats]:
        """The signs of each cell's blocks, of length one; drawn anew for each step, but for correlated noise."""
        at = step if self._plan.strategy is None else -1
        if self._rowed is not None and self._rowed[:2] == (key, at):
            return self._rowed[2]
        stream, rows = Stream(key, "canaries", "signs", at), []
        for cell in self._cells:
            bits = np.unpackbits(stream.words(-(-cell.width // 64)).view(np.uint8))[: cell.width]
            rows.append(np.where(bits, 1.0, -1.0) / math.sqrt(cell.width))
        self._rowed = key, at, rows
        return rows


def _cells(canaries: int, group: int, names: Sequence[str], sizes: dict[str, int]) -> list[_Cell]:
    """Blocks for all canaries in the parameters of a group: more in larger ones, by the root of their sizes."""
    if canaries > sum(sizes[name] for name in names):
        raise InvalidParameterError(
            f"{canaries} canaries need a number of the model each, but"
            f" {'a group' if group or len(names) < len(sizes) else 'the model'} has only"
            f" {sum(sizes[name] for name in names)} that are trained.",
            fix="pass a smaller audit=.",
        )
    weight = sum(math.sqrt(sizes[name]) for name in names)
    given = {name: min(sizes[name], round(canaries * math.sqrt(sizes[name]) / weight)) for name in names}
    by_size = sorted(names, key=lambda name: -sizes[name])
    while (left := canaries - sum(given.values())) != 0:  # what rounding and small parameters leave
        for name in by_size:
            change = max(-given[name], min(left, sizes[name] - given[name]))
            given[name] += change
            left -= change
    cells, first = [], 0
    for name in names:
        if given[name]:
            cells.append(_Cell.of(group, name, first, given[name], sizes[name]))
            first += given[name]
    return cells


def _turn(sampling: Sampling, canaries: int) -> tuple[int, float]:
    """In how many steps a canary is drawn once at most, and how likely for each of them."""
    match sampling:
        case BallsInBins(bins=bins):
            return bins, 1 / bins
        case Shuffled(length=length, size=size):
            return sampling.batches, length / (size + canaries)
        case FixedSize(drawn=drawn, size=size):
            return 1, drawn / (size + canaries)
        case Poisson(rate=rate):
            return 1, float(rate)
    raise ValueError(sampling)


def _log(share: float) -> float:
    return math.log(share) if share > 0 else -math.inf

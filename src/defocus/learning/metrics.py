r"""What a run shows of itself on the way.

The step and epsilon so far are public. Losses and norms of gradients are not: they are functions of private data.
By default one hundredth of the precision of each step pays for them, so that what the progress shows is as private as
the model; ``metrics="private"`` shows them exactly, for the data's owner only, and ``metrics="nothing"`` neither.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeAlias, final

import torch

from defocus.errors import InvalidParameterError, Number, count, in_range, positive

__all__ = ["GRID", "Metrics", "NoisyMetrics", "Paid", "PrivateMetrics", "Tally", "as_metrics"]

_EDGES = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Where the histogram of norms is cut, in multiples of the clip."""
_LOSS, _NORM = math.sqrt(0.8), math.sqrt(0.2)
"""How the precision is divided between the loss and the norms."""
GRID = 2**32
"""What one unit adds to the sums beside the gradient, as a whole number: these are exact."""
_WINDOW = 64
_NEAR = 0.8
"""A mean of cut losses this near to the cut says that many were cut, and no more."""


@final
@dataclass(frozen=True, slots=True)
class Metrics:
    r"""A noisy mean loss and noisy quantiles of the norms, paid for with ``precision`` of each step.

    One unit adds the vector :math:`(a\min(\ell, L)/L,\ b\,e_k)`, with :math:`a^2 + b^2 = 1`, for its loss ℓ, cut to
    [0, L], and the bin k of its norm: of L2 norm at most one. Its noise has the ratio of the step over the square root
    of ``precision``; the inverse squares of the ratios add up, so that the gradient's noise grows by half of
    ``precision``. Gradient and vector are one release with Gaussian noise on one sample.

    Args:
        loss: the largest loss: losses above it count as that, and losses below zero as zero.
        precision: the part of the precision of each step.

    >>> Metrics(loss=10).precision
    0.01
    """

    loss: Number = 5
    precision: Number = 0.01

    def __post_init__(self) -> None:
        positive("loss", self.loss)
        in_range("precision", self.precision, 1e-6, 0.5)

    @property
    def share(self) -> float:
        """The part of the precision of a step."""
        return float(self.precision)

    @property
    def width(self) -> int:
        """How many numbers are released beside the gradient."""
        return 2 + len(_EDGES)

    def vector(
        self, losses: torch.Tensor, norms: torch.Tensor, clip: float, weight: float = 1.0, targets: Any = None
    ) -> torch.Tensor:
        """The sum of what these examples add, of a weight each: whole numbers, rounded down, in units of 1/``GRID``.

        An example that is not finite counts as the largest loss and norm.
        """
        del targets
        top, unit = float(self.loss), weight * GRID
        cut = torch.nan_to_num(losses.double(), nan=top, posinf=top, neginf=0.0).clamp(0.0, top) / top
        bins = torch.bucketize(torch.nan_to_num(norms.float() / clip, nan=torch.inf), _edges(norms.device))
        ones = torch.full_like(bins, int(_NORM * unit))
        counts = torch.zeros(len(_EDGES) + 1, dtype=torch.int64, device=norms.device).index_add_(0, bins, ones)
        return torch.cat([(_LOSS * unit * cut).long().sum().reshape(1).to(norms.device), counts])


@final
@dataclass(frozen=True, slots=True)
class Tally:
    r"""How many units are in each of some cells, counted with noise in every step, instead of losses and norms.

    The cell of an example is the last number of its target; one that is no whole number from 0 on and below ``cells``
    is in none. One unit adds :math:`e_k` for its cell k, of L2 norm at most one: see :class:`Metrics`.

    >>> Tally(3).vector(torch.ones(2), torch.ones(2), 1.0, 1.0, torch.tensor([[1.0, 2.0], [1.0, 0.5]])).tolist()
    [0, 0, 4294967296]
    """

    cells: int
    precision: Number = 0.02

    def __post_init__(self) -> None:
        count("cells", self.cells)
        in_range("precision", self.precision, 1e-6, 0.5)

    @property
    def share(self) -> float:
        """The part of the precision of a step."""
        return float(self.precision)

    @property
    def width(self) -> int:
        """How many numbers are released beside the gradient."""
        return self.cells

    def vector(
        self, losses: torch.Tensor, norms: torch.Tensor, clip: float, weight: float = 1.0, targets: Any = None
    ) -> torch.Tensor:
        """The sum of what these examples add, of a weight each, as :meth:`Metrics.vector` has it."""
        del losses, clip
        counts = torch.zeros(self.cells, dtype=torch.int64, device=norms.device)
        if targets is None:  # of examples that cannot be read
            return counts
        given = targets[:, -1].double()
        there = (given >= 0) & (given < self.cells) & (given == given.floor())
        places = torch.where(there, given, 0.0).long()
        return counts.index_add_(0, places, there.long() * int(weight * GRID))


Paid: TypeAlias = Metrics | Tally
"""What is released beside the gradient, for a part of the precision of each step."""


@final
@dataclass(slots=True)
class PrivateMetrics:
    """Exact losses, norms and counts of a run: *private*, for the data's owner only. Do not show or keep them."""

    losses: list[float] = field(default_factory=list)
    """The mean loss of each step."""
    quantiles: list[tuple[float, float, float]] = field(default_factory=list)
    """The quartiles of the norms of each step."""
    unusable: int = 0
    """How many times an example had a loss or gradient that is not finite, and counted as zero."""

    def __repr__(self) -> str:
        return f"Private(private, for the data's owner only: {len(self.losses)} steps)"

    def note(self, losses: torch.Tensor, norms: torch.Tensor, unusable: int) -> None:
        """Keep the numbers of one step."""
        self.unusable += unusable
        if not len(losses):
            return
        self.losses.append(float(losses[torch.isfinite(losses)].mean()))
        usable = norms[torch.isfinite(norms)].float()
        cuts = torch.tensor([0.25, 0.5, 0.75], device=usable.device)
        quantiles = torch.quantile(usable[: 2**20], cuts).tolist() if len(usable) else [math.nan] * 3
        self.quantiles.append((quantiles[0], quantiles[1], quantiles[2]))


@final
@dataclass(slots=True)
class NoisyMetrics:
    """What was paid for: the noisy numbers of every step, read over the latest ones. Anyone may see it."""

    metrics: Paid
    noisy: list[list[float]] = field(default_factory=list)
    clips: list[float] = field(default_factory=list)
    scales: list[float] = field(default_factory=list)
    batch: float = 1.0

    def note(self, noisy: Sequence[float], clip: float, scale: float) -> None:
        """Keep the noisy numbers of one step, with the standard deviation of their noise."""
        self.noisy.append(list(noisy))
        self.clips.append(clip)
        self.scales.append(scale)

    def loss(self, window: int = _WINDOW) -> tuple[float, float]:
        """The mean of the losses over the latest steps, each cut to [0, L], and its standard error by the noise."""
        return self._loss(len(self.noisy), window)

    def course(self, window: int = _WINDOW) -> list[tuple[float, float]]:
        """The same as it was after each step."""
        return [self._loss(step, window) for step in range(1, len(self.noisy) + 1)]

    def _loss(self, step: int, window: int) -> tuple[float, float]:
        rows, scales = self.noisy[max(0, step - window) : step], self.scales[max(0, step - window) : step]
        if not rows or not isinstance(self.metrics, Metrics):
            return math.nan, math.inf
        unit = float(self.metrics.loss) / len(rows) / self.batch / _LOSS
        return unit * sum(row[0] for row in rows), unit * math.hypot(*scales)

    def copy(self) -> "NoisyMetrics":
        """As it is now, whatever is noted later."""
        return replace(self, noisy=list(self.noisy), clips=list(self.clips), scales=list(self.scales))

    def quantile(self, q: float, window: int = _WINDOW) -> float:
        """About the q-quantile of the norms over the latest steps: the edge of the histogram where it lies."""
        rows = self.noisy[-window:]
        if not rows:
            return math.nan
        shares = [max(0.0, sum(row[1 + i] for row in rows)) for i in range(len(_EDGES) + 1)]
        left = q * sum(shares)
        for share, edge in zip(shares, _EDGES, strict=False):
            left -= share
            if left <= 0:
                return edge * self.clips[-1]
        return math.inf

    def __str__(self) -> str:
        if not self.noisy or not isinstance(self.metrics, Metrics):
            return ""
        loss, error = self.loss()
        top = float(self.metrics.loss)
        seen = f"loss {loss:.3f} ± {error:.3f}" if loss + error < _NEAR * top else f"loss {_NEAR * top:.3g} or more"
        half = self.quantile(0.5)
        norm = f"≤ {half:.3g}" if math.isfinite(half) else f"> {_EDGES[-1] * self.clips[-1]:.3g}"
        return f"{seen} · median norm {norm}"

    def words(self) -> str:
        """The same, with what it leaves out."""
        if not self.noisy or not isinstance(self.metrics, Metrics):
            return ""
        return f"{self} (with noise, paid for; losses count up to {float(self.metrics.loss):g})"


@cache
def _edges(device: torch.device) -> torch.Tensor:
    """Made once on each device: what is sent to a GPU waits for all it has to do."""
    return torch.tensor(_EDGES, device=device)


def as_metrics(metrics: object) -> Paid | str:
    """What to show on the way: "paid" (a :class:`Metrics`), "private" or "nothing"."""
    if isinstance(metrics, Metrics | Tally):
        return metrics
    named: dict[Any, Paid | str] = {"paid": Metrics(), "private": "private", "nothing": "nothing"}
    if not isinstance(metrics, str) or metrics not in named:
        raise InvalidParameterError(
            f"There are no metrics called {metrics!r:.60}.", fix='choose "paid", "private" or "nothing".'
        )
    return named[metrics]

"""What every kind of per-example gradient can do, and which of several equivalent ways is fastest, as measured."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import torch
from torch.nn import functional as F  # noqa: N812 -- its name everywhere

from defocus.learning.gradients.layouts import Region

__all__ = [
    "RUN",
    "Choices",
    "Paired",
    "Piece",
    "Rough",
    "Tools",
    "added",
    "dot",
    "matrix",
    "pairs",
    "product",
    "squared_norms",
    "weighted",
    "wide",
]


_ROUNDS = 3


@final
class Choices:
    """A memory of the fastest way for each kind and shape of work.

    ``remembered`` can be stored and given to a later run, which then rounds exactly as this one does. ``forced`` names
    ways that are taken wherever they are offered, unmeasured.
    """

    def __init__(self, remembered: Mapping[str, str] | None = None, *, forced: tuple[str, ...] = ()) -> None:
        self.remembered = dict(remembered or {})
        self._forced = forced

    def pick(self, work: str, ways: Mapping[str, Callable[[], Any]]) -> str:
        """The name of the way to take."""
        for name in self._forced:
            if name in ways:
                return name
        if len(ways) == 1:
            return next(iter(ways))
        known = self.remembered.get(work, "")
        if known not in ways:
            times = {name: _seconds(way) for name, way in ways.items()}
            known = min(times, key=lambda name: times[name])
            self.remembered[work] = known
        return known


def _seconds(way: Callable[[], Any]) -> float:
    """The least time of some rounds, after one that does not count."""
    least = float("inf")
    for turn in range(_ROUNDS + 1):
        start = _now()
        way()
        least = min(least, _now() - start) if turn else least
    return least


def _now() -> float:
    """When all work so far is done. On one thread, time that other processes took does not count."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    elif torch.get_num_threads() == 1:
        return time.thread_time()
    return time.perf_counter()


@final
class Tools:
    """Kept from batch to batch.

    On a CPU, fresh memory costs more than what is written into it, because the system clears every page; large results
    of a batch are therefore written where those of the last batch were. On a GPU the allocator does this by itself.
    Without ``margins``, norms are told as they come out, which is what a comparison needs and no clipping bears.
    """

    def __init__(self, choices: Choices, *, margins: bool = True) -> None:
        self.choices, self.margins = choices, margins
        self.grams: dict[tuple[int, ...], tuple[torch.Tensor, torch.Tensor]] = {}
        self._memory: dict[Any, torch.Tensor] = {}
        self._scaled: tuple[Any, torch.Tensor, torch.Tensor] | None = None
        self._squared: tuple[Any, torch.Tensor, torch.Tensor] | None = None

    def scaled(self, tensor: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        """A tensor times its factors, in at least 32 bits; the last is kept, because layers often share an input."""
        key = (*_name(tensor), scale.data_ptr())
        if self._scaled is None or self._scaled[0] != key:
            factors = scale.to(torch.promote_types(tensor.dtype, torch.float32))
            found = torch.mul(tensor, factors, out=self.room("scaled", tuple(tensor.shape), factors))
            self._scaled = (key, found, tensor)
        return self._scaled[1]

    def squared(self, values: torch.Tensor, squares: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        """The squared norms of the rows of a tensor; the last are kept, because a weight and a bias share them."""
        key = _name(values)
        if self._squared is None or self._squared[0] != key:
            self._squared = (key, squares(values), values)
        return self._squared[1]

    def forget(self) -> None:
        """Let go of what only this batch needs."""
        self.grams.clear()
        self._scaled = self._squared = None

    def room(self, owner: Any, shape: tuple[int, ...], like: torch.Tensor) -> torch.Tensor:
        """An uninitialised tensor. What the same owner was given before is overwritten."""
        if like.is_cuda:
            return like.new_empty(shape)
        size = 1
        for length in shape:
            size *= length
        known = self._memory.get(owner)
        if known is None or known.numel() < size or known.dtype != like.dtype or known.device != like.device:
            known = self._memory[owner] = like.new_empty(size)
        return known[:size].view(shape)


def _name(tensor: torch.Tensor) -> tuple[int, ...]:
    """What tells a tensor from others as long as it is held."""
    return (tensor.data_ptr(), tensor._version, *tensor.shape, *tensor.stride())  # noqa: SLF001 -- its only name


RUN = 64
"""How many products are added up in the precision at hand before a sum goes on in 64 bits."""
_LONG = 2**14


@final
@dataclass(frozen=True, slots=True)
class Rough:
    """Squared norms (B,) as they come out, and how far from the true ones they may be.

    ``reach`` (B,) is the sum of the norms of what is added up. Squares are off by ``rounding`` times its square, and
    the norms of what is added to the clipped sum by ``off`` times the reach. ``again`` tells upper bounds of the
    squares of single examples, by their numbers, with smaller margins.
    """

    squares: torch.Tensor
    reach: torch.Tensor
    rounding: float = 0.0
    off: float = 0.0
    again: Callable[[torch.Tensor], torch.Tensor] | None = None


@final
@dataclass(frozen=True, slots=True)
class Paired:
    """Two matrices (B, T, T) of products of pairs, whose inner products are squared norms; else as :class:`Rough`."""

    left: torch.Tensor
    right: torch.Tensor
    features: tuple[int, int]
    rounding: float
    off: float
    again: Callable[[torch.Tensor], torch.Tensor]


class Piece(ABC):
    """The gradients of all examples of a batch with respect to one region of a parameter."""

    __slots__ = ("region",)

    region: Region

    @abstractmethod
    def squares(self) -> torch.Tensor | Rough | Paired:
        """The squared norm of each example's gradient, (B,), or what it is made of."""

    @abstractmethod
    def total(self, factors: torch.Tensor) -> torch.Tensor:
        """The sum of the gradients, each times its factor, in the shape of the region."""

    @abstractmethod
    def each(self) -> torch.Tensor:
        """Every example's gradient written out, (B, ...)."""

    @abstractmethod
    def silence(self, usable: torch.Tensor) -> None:
        """Make the gradients of the examples that are not usable zero, whatever they were."""


def squared_norms(values: torch.Tensor) -> torch.Tensor:
    """The squared norms of the rows of a tensor (B, ...), summed in at least 32 bits, long ones in 64."""
    flat, kind = values.reshape(len(values), -1), wide(values.dtype)
    if values.dim() > 2 and flat.shape[1] > _LONG:
        parts = torch.linalg.vector_norm(values.flatten(1, -2), dim=2, dtype=kind)
        return torch.linalg.vector_norm(parts, dim=1, dtype=torch.float64).square_().to(kind)
    return torch.linalg.vector_norm(flat, dim=1, dtype=kind).square_()


def wide(dtype: torch.dtype) -> torch.dtype:
    """The type in which numbers of a type are added up: of at least 32 bits."""
    found: torch.dtype = torch.promote_types(dtype, torch.float32)
    return found


def weighted(factors: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """The sum of the rows of (B, ...), each times its factor, in at least 32 bits: see :func:`matrix`."""
    flat = values.reshape(len(values), -1)
    return matrix(factors.to(flat.dtype).view(1, -1), flat).view(values.shape[1:])


def matrix(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """A matrix product that adds up examples, with at least 32 bits.

    Rounding the sum of many examples to fewer bits would move it by more than one of them does, so that no clip would
    bound anyone: the factors may be narrow, their sum must not be. If only one of them is narrow, a GPU multiplies with
    the other as the sum of two narrow numbers: rounded to one, contributions that cancel would no longer do so.
    """
    if a.dtype == b.dtype and a.dtype in {torch.float32, torch.float64}:
        return a @ b
    if a.is_cuda and a.dtype != b.dtype:
        narrow = b.dtype if a.dtype == torch.float32 else a.dtype
        first, second = (_split(each, narrow) for each in (a, b))
        return torch.stack([torch.mm(x, y, out_dtype=torch.float32) for x in first for y in second]).sum(0)
    if a.is_cuda:
        return torch.mm(a, b, out_dtype=torch.float32)
    return a.float() @ b.float()


def _split(values: torch.Tensor, narrow: torch.dtype) -> list[torch.Tensor]:
    if values.dtype == narrow:
        return [values]
    high = values.to(narrow)
    return [high, (values - high).to(narrow)]


def product(a: torch.Tensor, b: torch.Tensor, width: int | None = None) -> torch.Tensor:
    """A batched matrix product whose result has at least 32 bits, made of parts of so many inner numbers."""
    if width is not None and width < a.shape[2]:
        parts = zip(a.split(width, 2), b.split(width, 1), strict=True)
        total = product(*next(parts))
        for part in parts:
            total += product(*part)
        return total
    if a.dtype in {torch.float32, torch.float64}:
        return torch.bmm(a, b)
    if a.is_cuda:
        return torch.bmm(a, b, out_dtype=torch.float32)
    return torch.bmm(a.float(), b.float())


def pairs(side: torch.Tensor, width: int | None, *, padded: bool | None = None) -> torch.Tensor:
    """The products (B, T, T) of pairs of positions of (B, T, features); where ``padded``, T is filled up with zeros.

    Matrix units of a GPU are slow where lengths are no multiples of four. Positions of the next example are then taken
    along, because they lie behind those of an example, and made zero afterwards.
    """
    examples, length, features = side.shape
    if not (side.is_cuda if padded is None else padded) or length % 4 == 0:
        return product(side, side.transpose(1, 2), width)
    more = -(-length // 4) * 4
    whole = features % 4 == 0 and features <= (width or features) and side.is_contiguous()
    if not whole or side.dtype != torch.float32:
        return F.pad(product(side, side.transpose(1, 2), width), (0, more - length, 0, more - length))
    found = side.new_zeros(examples, more, more)
    along = side.as_strided((examples - 1, more, features), side.stride())
    torch.bmm(along, along.transpose(1, 2), out=found[:-1])
    torch.mm(side[-1], side[-1].t(), out=found[-1, :length, :length])
    found[:, length:].zero_()
    found[:, :, length:].zero_()
    return found


def dot(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The inner products (B,) of the rows of two tensors (B, ...)."""
    return added((a * b).flatten(1))


def added(rows: torch.Tensor) -> torch.Tensor:
    """The sums over the last dimension: sums of runs of numbers, and of these in 64 bits."""
    whole = rows.shape[-1] // RUN * RUN
    found = rows[..., :whole].unflatten(-1, (-1, RUN)).sum(-1).sum(-1, dtype=torch.float64)
    return found if whole == rows.shape[-1] else found + rows[..., whole:].sum(-1)

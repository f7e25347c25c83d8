"""Which of several equivalent ways is fastest: measured once on real tensors, remembered by shape."""

import time
from collections.abc import Callable, Mapping
from typing import Any, final

import torch

__all__ = ["Choices", "Tools"]


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

"""Which of several equivalent ways is fastest: measured once on real tensors, remembered by shape."""

import time
from collections.abc import Callable, Mapping
from typing import Any, final

import torch

__all__ = ["Choices"]

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

"""How loops are compiled and shared between cores."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

from defocus.errors import MissingExtraError

__all__ = ["compiled", "cores", "in_pieces", "ready"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function as machine code, compiled on its first call and kept on disk for the next process.

    The code runs without Python's lock, so that threads share the work. Without numba it is refused: interpreted,
    the loops would take hundreds of times as long.
    """

    @wraps(function)
    def run(*arguments: _P.args, **named: _P.kwargs) -> _R:
        made: _R = _machine_code(function)(*arguments, **named)
        return made

    return run


def in_pieces(work: Callable[[int], _R], pieces: int) -> list[_R]:
    """What ``work`` gives for 0, 1, … ``pieces`` - 1, computed by as many threads as there are cores."""
    if pieces == 1 or cores() == 1:
        return [work(piece) for piece in range(pieces)]
    with ThreadPoolExecutor(max_workers=min(pieces, cores())) as pool:
        return list(pool.map(work, range(pieces)))


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ready() -> None:
    """Refuse if loops cannot be compiled here; asked before a ledger is made or charged."""
    _numba()


def _numba() -> Any:
    """The compiler. One that cannot be loaded is as good as none."""
    try:
        return import_module("numba")
    except ImportError as error:
        raise MissingExtraError("Counting in graphs", package="numba", extra="graph") from error


@cache
def _machine_code(function: Callable[..., Any]) -> Callable[..., Any]:
    made: Callable[..., Any] = _numba().njit(cache=True, nogil=True)(function)
    return made

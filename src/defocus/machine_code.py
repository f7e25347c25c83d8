"""Loops over arrays as machine code: compiled by numba when they are first called."""

from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

from defocus.errors import MissingExtraError

__all__ = ["compiled", "compiler"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function as machine code, compiled on its first call and kept on disk for the next process.

    The code runs without Python's lock, so that threads share the work. Without numba it is refused: interpreted,
    the loops would take hundreds of times as long.
    """

    @wraps(function)
    def run(*arguments: _P.args, **named: _P.kwargs) -> _R:
        result: _R = _machine_code(function)(*arguments, **named)
        return result

    return run


def compiler(what: str = "A compiled loop", *, extra: str = "graph") -> Any:
    """Numba, or the refusal to do ``what`` without it. One that cannot be loaded is as good as none."""
    try:
        return import_module("numba")
    except ImportError as error:
        raise MissingExtraError(what, package="numba", extra=extra) from error


@cache
def _machine_code(function: Callable[..., Any]) -> Callable[..., Any]:
    machine_code: Callable[..., Any] = compiler().njit(cache=True, nogil=True)(function)
    return machine_code

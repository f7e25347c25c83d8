"""Failures of engines, told without what the engine said about them."""

from collections.abc import Callable
from typing import TypeVar

from defocus.errors import DefocusError

__all__ = ["quietly"]

_T = TypeVar("_T")


def quietly(work: Callable[[], _T], refusal: Callable[[Exception], DefocusError]) -> _T:
    """Do the work, or refuse without quoting: the failure is gone when the refusal is raised, so it is no context.

    >>> from defocus.errors import EngineError
    >>> quietly(lambda: int("secret"), lambda problem: EngineError("It failed.", fix="ask again."))
    Traceback (most recent call last):
    ...
    defocus.errors.tables.EngineError: It failed.
    To fix: ask again.
    """
    try:
        return work()
    except DefocusError as refused:
        known = refused
    except Exception as error:  # noqa: BLE001 - whatever it is, it may quote a value
        known = refusal(error)
    raise known

"""Telling how far a search is: a share of the work, passed down and split among its parts."""

from collections.abc import Callable

from defocus.errors import InvalidParameterError

__all__ = ["Tell", "part", "percentages", "quiet"]

Tell = Callable[[float], None]
"""Takes the share of the work that is done, from 0 to 1."""


def quiet(share: float) -> None:
    """Tell nobody."""


def part(tell: Tell, start: float, end: float) -> Tell:
    """For a part of the work, between two shares of the whole.

    >>> part(print, 0.5, 1.0)(0.5)
    0.75
    """
    return lambda share: tell(start + (end - start) * share)


def percentages(progress: Callable[[float], None] | None) -> Tell:
    """What a user's ``progress`` is told: percentages that never fall."""
    if progress is None:
        return quiet
    if not callable(progress):
        raise InvalidParameterError(
            f"progress is called with a percentage, but it is {type(progress).__name__}.",
            fix="pass a function of one number, for example progress=print.",
        )
    highest = 0.0

    def tell(share: float) -> None:
        nonlocal highest
        highest = max(highest, min(100.0, 100.0 * share))
        progress(highest)

    return tell

"""Pictures that commands save: how epsilon grows with repetitions, and where a picture may be written."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from defocus.answers.plots import blank
from defocus.errors import DefocusError, InvalidParameterError, Number
from defocus.privacy.accounting import account
from defocus.privacy.events import Composed, Event, compose
from defocus.privacy.units import Adjacency

__all__ = ["curve", "growth", "once", "ready", "save", "steps"]


_POINTS = 13
_FEWEST = 100
_TYPES = (".png", ".svg", ".pdf")


def once(event: Event) -> tuple[Event, int]:
    """The largest repetition an event is made of: ``1000 * a`` is ``a``, a thousand times.

    >>> from defocus.privacy.events import Laplace
    >>> once(1000 * Laplace(2))
    (Laplace(ratio=2), 1000)
    """
    if not isinstance(event, Composed) or not event.parts:
        return event, 1
    times = math.gcd(*(number for _, number in event.parts))
    return compose([(number // times) * part for part, number in event.parts]), times


def steps(largest: int) -> list[int]:
    """About a dozen counts from 1 to ``largest``, evenly spread on a logarithmic scale.

    >>> steps(1000)
    [1, 2, 3, 6, 10, 18, 32, 56, 100, 178, 316, 562, 1000]
    """
    return sorted({round(largest ** (i / (_POINTS - 1))) for i in range(_POINTS)})


def curve(event: Event, delta: Number, method: str, adjacency: Adjacency, counts: Sequence[int]) -> list[float] | None:
    """Epsilon after each number of repetitions, or None if the accountant has none for the event at this delta."""
    try:
        return [account(times * event, method, adjacency).epsilon(delta) for times in counts]
    except DefocusError:
        return None


def growth(event: Event, delta: Number, adjacency: Adjacency, accountants: Sequence[str]) -> Any:
    """A matplotlib figure of epsilon against the number of repetitions, with a line of slope one half beside it."""
    figure = blank(7, 4.5)
    part, times = once(event)
    counts = steps(max(times, _FEWEST))
    axes = figure.add_subplot()
    least = math.inf
    for name in accountants:
        values = curve(part, delta, name, adjacency, counts)
        if values is not None and all(map(math.isfinite, values)):
            axes.plot(counts, values, marker="o", markersize=3, label=name)
            least = min(least, values[-1])
    if math.isfinite(least):
        axes.plot(counts, [least * math.sqrt(n / counts[-1]) for n in counts], "k:", label="square root of T")
        axes.legend()
    axes.set(xscale="log", yscale="log", xlabel="repetitions T", ylabel=f"epsilon at delta {float(delta):g}")
    axes.grid(visible=True, which="both", alpha=0.3)
    return figure


def ready(where: Path) -> None:
    """Refuse a place where no plot can be written, before anything is computed or paid for."""
    if where.suffix.lower() not in _TYPES:
        raise InvalidParameterError(
            f"A plot is written as {', '.join(_TYPES)}, but the name ends in {where.suffix or 'nothing'}.",
            fix="write for example --plot growth.png.",
        )
    if not where.absolute().parent.is_dir():
        raise InvalidParameterError(
            f"There is no folder {str(where.parent)!r:.200} for the plot.", fix="make it, or choose another for --plot."
        )
    blank(7, 4.5)


def save(figure: Any, where: Path) -> None:
    """Write a figure; the ending of the name says in which format."""
    ready(where)
    try:
        figure.savefig(where, dpi=150)
    except OSError as error:
        raise InvalidParameterError(
            f"The plot could not be written: {error.strerror}.", fix="choose another folder for --plot."
        ) from error

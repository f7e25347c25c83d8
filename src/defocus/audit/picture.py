"""The two output distributions of an audit, small enough to keep and to draw."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from defocus.audit.codings import Split, atoms
from defocus.audit.columns import Array, Column
from defocus.errors import MissingExtraError

__all__ = ["Picture", "draw", "sketch"]

_BARS = 60
_LABELS = 20


@final
@dataclass(frozen=True, slots=True)
class Picture:
    """Bars for the first and the second data set: shares of the judging runs."""

    of: str
    marks: tuple[str, ...] | tuple[float, ...]
    """Labels of the bars, or the edges between them where the outputs are numbers (one more than bars)."""
    first: tuple[float, ...]
    second: tuple[float, ...]


def sketch(columns: Sequence[Column], split: Split) -> Picture:
    """The column that says most at a glance: the output's kind if it varies, else its first number, else its text."""
    if not columns:
        return Picture("output", ("always the same",), (1.0,), (1.0,))
    column = max(columns, key=lambda c: 2 * (c.name == "kind of output") + c.numeric)
    first, second = split.of(column.values, "judge")
    finite = np.concatenate([first, second])
    finite = finite[np.isfinite(finite)]
    if column.labels is None and len(np.unique(finite[:10_000])) > _LABELS:
        low, high = np.quantile(finite, [0.005, 0.995])
        if low < high:
            edges = np.linspace(low, high, _BARS + 1)
            return Picture(column.name, tuple(map(float, edges)), _share(first, edges), _share(second, edges))
    coding = atoms(column, split)
    counts = [np.bincount(part, minlength=coding.size) / len(part) for part in split.of(coding.codes, "judge")]
    top = np.sort(np.argsort(-(counts[0] + counts[1]), kind="stable")[:_LABELS])
    names = [coding.tell(np.arange(coding.size) == i).removeprefix(f"{column.name} is exactly ") for i in top]
    names = ["another value" if i == coding.size - 1 else name for i, name in zip(top, names, strict=True)]
    return Picture(column.name, tuple(names), *(tuple(map(float, count[top])) for count in counts))


def draw(picture: Picture, *, title: str) -> Any:
    """A matplotlib figure with both distributions."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415  # an optional extra
    except ImportError as error:
        raise MissingExtraError("Plotting", package="matplotlib", extra="plot") from error
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    edges = [mark for mark in picture.marks if isinstance(mark, float)]
    if edges:
        axes.stairs(picture.first, edges, fill=True, alpha=0.5, label="first data set")
        axes.stairs(picture.second, edges, fill=True, alpha=0.5, label="second data set")
    else:
        place = np.arange(len(picture.marks))
        axes.bar(place - 0.2, picture.first, 0.4, label="first data set")
        axes.bar(place + 0.2, picture.second, 0.4, label="second data set")
        axes.set_xticks(place, [str(mark)[:30] for mark in picture.marks], rotation=30, ha="right")
    axes.set(xlabel=picture.of, ylabel="share of runs", title=title)
    axes.legend()
    return figure


def _share(values: Array, edges: Array) -> tuple[float, ...]:
    kept = values[np.isfinite(values)]
    return tuple(map(float, np.histogram(kept, edges)[0] / max(len(values), 1)))

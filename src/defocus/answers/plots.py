"""Pictures of answers and budgets (matplotlib, an optional extra)."""

import base64
import io
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from defocus.answers.columns import AnswerColumn
from defocus.errors import MissingExtraError
from defocus.privacy.filters import Remaining

__all__ = [
    "COLOURS",
    "DARK",
    "MOST",
    "PALE",
    "TEAL",
    "bars",
    "blank",
    "burn_down",
    "curve",
    "drawn",
    "embedded",
    "in_every_script",
    "literal",
    "points",
    "series",
]

MOST = 25
"""So many groups are drawn at most."""
TEAL, PALE, DARK = "#2a7f76", "#b7cfcc", "#333333"
_OTHERS = "other data"
COLOURS = ("#d98c3f", "#5b6fb5", "#b5527f", "#7a9a3c", "#8a6fae", "#4f9dc0", "#a0723f", "#777777")
"""Those of several things in one picture, told apart also by people who see red and green alike."""


def blank(width: float, height: float) -> Any:
    """An empty figure that belongs to no window."""
    try:
        figure_type = import_module("matplotlib.figure").Figure  # slow to load
    except ImportError as error:
        raise MissingExtraError("Plotting", package="matplotlib", extra="plot") from error
    return figure_type(figsize=(width, height), layout="constrained")


def drawn(column: AnswerColumn) -> list[int]:
    """Which groups are drawn: all, or of many those with the largest values, in their own order."""
    values = column.values
    if len(values) <= MOST:
        return list(range(len(values)))
    order = np.argsort(-np.where(np.isfinite(values), values, -np.inf), kind="stable")
    chosen: list[int] = np.sort(order[:MOST]).tolist()
    return chosen


def bars(
    labels: Sequence[str],
    columns: Sequence[AnswerColumn],
    shown: Sequence[int],
    *,
    by: str,
    threshold: float | None = None,
    things: str = "groups",
) -> Any:
    """One panel of bars for each column, with 95 % intervals; pale where the noise is above the threshold, if any.

    ``shown`` are the groups to draw, as :func:`drawn` chooses them, and ``labels`` are theirs.
    """
    figure = blank(1.6 + 4.2 * len(columns), 1.4 + 0.28 * max(len(shown), 2))
    panels = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
    place = np.arange(len(shown))
    for axes, column in zip(panels, columns, strict=True):
        part = column.taken(list(shown))
        values = np.nan_to_num(part.values, nan=0.0, posinf=0.0, neginf=0.0)
        pale = [] if threshold is None else [flag is not True for flag in part.reliable(threshold)]
        axes.barh(place, values, color=[PALE if flag else TEAL for flag in pale] or TEAL)
        known = np.isfinite(part.low) & np.isfinite(part.high) & np.isfinite(part.values)
        reach = [np.maximum(values - part.low, 0)[known], np.maximum(part.high - values, 0)[known]]
        axes.errorbar(values[known], place[known], xerr=reach, fmt="none", ecolor=DARK, capsize=2, linewidth=1)
        axes.set_title(literal(column.name), fontsize=10)
        axes.axvline(0, color=DARK, linewidth=0.8)
        axes.grid(visible=True, axis="x", alpha=0.3)
    panels[0].set_yticks(place, [literal(label) for label in labels], fontsize=8)
    panels[0].set_ylabel(literal(by))
    panels[0].invert_yaxis()
    note = "lines: 95 % intervals"
    if threshold is not None:
        note += f"; pale: noise above {100 * threshold:g} % of the value"
    if len(shown) < len(columns[0].values):
        note = f"the {len(shown)} of {len(columns[0].values)} {things} with the largest {columns[0].name}; {note}"
    figure.supxlabel(literal(note), fontsize=7)
    return figure


def points(labels: Sequence[str], columns: Sequence[AnswerColumn]) -> Any:
    """Single numbers: a panel for each, with a point, its 95 % interval, and room to see it."""
    figure = blank(6.5, 0.9 + 0.75 * len(columns))
    panels = figure.subplots(len(columns), 1, squeeze=False)[:, 0]
    for axes, label, column in zip(panels, labels, columns, strict=True):
        value, low, high = (float(part[0]) for part in (column.values, column.low, column.high))
        if np.isfinite(value):
            known = np.isfinite(low) and np.isfinite(high)
            reach = [[max(value - low, 0)], [max(high - value, 0)]] if known else None
            axes.errorbar([value], [0], xerr=reach, fmt="o", color=TEAL, ecolor=DARK, capsize=4, linewidth=1.2)
            axes.margins(x=0.25)
        axes.set_yticks([0], [literal(label)], fontsize=9)
        axes.set_ylim(-1, 1)
        axes.grid(visible=True, axis="x", alpha=0.3)
        axes.ticklabel_format(axis="x", style="plain", useOffset=False)
    figure.supxlabel("lines: 95 % intervals", fontsize=7)
    return figure


def series(moments: Sequence[Any], columns: Sequence[AnswerColumn], *, by: str) -> Any:
    """A panel for each column over time, as steps with a band of 95 % intervals: all of it, in its order."""
    figure = blank(7.5, 1.2 + 2.4 * len(columns))
    panels = figure.subplots(len(columns), sharex=True, squeeze=False)[:, 0]
    along = np.asarray(moments)
    for axes, column in zip(panels, columns, strict=True):
        axes.fill_between(along, column.low, column.high, color=PALE, linewidth=0, step="post")
        axes.step(along, column.values, where="post", color=TEAL, linewidth=1.2)
        axes.set(ylabel=literal(column.name))
        axes.grid(visible=True, alpha=0.3)
    panels[-1].set(xlabel=literal(by))
    panels[-1].tick_params(axis="x", labelrotation=20)
    figure.supxlabel("band: 95 % intervals of the noise, one entry at a time", fontsize=7)
    return figure


def curve(places: Sequence[float], column: AnswerColumn, *, by: str) -> Any:
    """The column along numbers, such as degrees, on logarithmic axes with a band of 95 % intervals.

    Zero cannot be on a logarithmic axis, so the axes are linear below one. What comes after the last value that is not
    zero is noise alone: it is left out, but for a tenth of the way.
    """
    figure = blank(7, 4)
    axes = figure.add_subplot()
    filled = np.flatnonzero(column.values)
    last = min(len(column.values), int(1.1 * filled[-1]) + 2) if filled.size else len(column.values)
    column, left_out = column.taken(slice(0, last)), len(column.values) - last
    along = np.asarray(places, dtype=np.float64)[:last]
    axes.fill_between(along, column.low, column.high, color=PALE, linewidth=0)
    axes.plot(along, column.values, ".", color=TEAL, markersize=3)
    axes.set_xscale("symlog", linthresh=1)
    axes.set_yscale("symlog", linthresh=1)
    axes.set(xlabel=literal(by), ylabel=literal(column.name))
    axes.grid(visible=True, alpha=0.3)
    beyond = f"; {left_out} more are zero" if left_out else ""
    figure.supxlabel(f"band: 95 % intervals of the noise, one entry at a time{beyond}", fontsize=7)
    return figure


def burn_down(left: Sequence[Remaining], labels: Sequence[str], data: Sequence[str] = ()) -> Any:
    """What was left after each charge, as steps: epsilon, and below it delta where the budget has one.

    Where charges are about several data sets, ``data`` names that of each, and what a charge took has its colour.
    """
    named = list(dict.fromkeys(data))
    if len(named) > len(COLOURS):  # the last colour is for all that have none of their own
        others = set(named[len(COLOURS) - 1 :])
        data = [_OTHERS if name in others else name for name in data]
        named = list(dict.fromkeys(data))
    colours = dict(zip(named, COLOURS, strict=False))
    rows = {"epsilon": [one.epsilon for one in left], "delta": [one.delta for one in left]}
    shown = [name for name, amounts in rows.items() if name == "epsilon" or any(amounts)]
    figure = blank(7, 2.6 + 1.4 * (len(shown) - 1))
    panels = figure.subplots(len(shown), sharex=True, squeeze=False)[:, 0]
    for axes, name in zip(panels, shown, strict=True):
        axes.stairs(rows[name], np.arange(len(left) + 1) - 0.5, fill=True, color=TEAL, alpha=0.7)
        axes.set(ylabel=f"{name} left", ylim=(0, None), xlim=(-0.5, len(left) - 0.5))
        axes.grid(visible=True, axis="y", alpha=0.3)
        for place, about in enumerate(data if len(colours) > 1 else (), start=1):
            before, after = rows[name][place - 1 : place + 1]
            axes.bar(place, before - after, width=1, bottom=after, color=colours[about])
    if len(colours) > 1:
        handles = [panels[0].bar(0, 0, color=colour) for colour in colours.values()]
        panels[0].legend(handles, [literal(name) for name in colours], fontsize=7, frameon=False)
    step = max(1, -(-len(left) // 12))
    named = [literal(label) for label in labels[::step]]
    panels[-1].set_xticks(range(0, len(left), step), named, rotation=20, ha="right", fontsize=7)
    return figure


def embedded(figure: Any, description: str) -> str:
    """A figure as an image tag that needs no other file; ``description`` must be escaped already."""
    sink = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a key in a script that the font lacks is drawn as boxes
        figure.savefig(sink, format="png", dpi=110)
    data = base64.b64encode(sink.getvalue()).decode("ascii")
    return f'<img alt="{description}" src="data:image/png;base64,{data}">'


_FAMILIES = ("Noto Sans CJK", "Source Han Sans", "WenQuanYi", "PingFang", "Microsoft YaHei", "SimHei", "Noto Sans")
"""Parts of the names of fonts that have Chinese, Japanese and Korean or other scripts."""


def in_every_script(figure: Any) -> Any:
    """The figure with its texts in fonts that are installed for letters which the usual one lacks."""
    texts = figure.findobj(import_module("matplotlib.text").Text)
    if all(text.get_text().isascii() for text in texts):
        return figure
    known = sorted({font.name for font in import_module("matplotlib.font_manager").fontManager.ttflist})
    more = [name for part in _FAMILIES for name in known if name.startswith(part)]
    for text in texts:
        text.set_fontfamily(["DejaVu Sans", *dict.fromkeys(more)][:8])
    return figure


def literal(text: str) -> str:
    """Text that is drawn as it is: a dollar sign starts no formula."""
    return text.replace("$", r"\$")

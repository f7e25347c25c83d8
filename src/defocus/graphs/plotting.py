"""Pictures of answers (matplotlib, an optional extra)."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from defocus.errors import MissingExtraError
from defocus.graphs.columns import Column
from defocus.graphs.printing import plain

__all__ = ["drawn"]

_MOST = 25
"""So many named entries are drawn at most; of more, those with the largest values."""
_TEAL, _PALE = "#2a7f76", "#b7cfcc"


def drawn(column: Column, keys: Mapping[str, Sequence[Any]], *, title: str) -> Any:
    """Degrees and ranks on logarithmic axes with a band of intervals; anything else as bars with intervals."""
    try:
        figure_type = import_module("matplotlib.figure").Figure
    except ImportError as error:
        raise MissingExtraError("Plotting", package="matplotlib", extra="plot") from error
    figure = figure_type(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    numeric = next(
        ((name, values) for name, values in keys.items() if isinstance(values, range) and name != "node"), None
    )
    if numeric is not None and len(numeric[1]) > _MOST:
        _curve(axes, column, *numeric)
    else:
        _bars(axes, column, keys)
    axes.set_title(_literal(title), fontsize=10)
    axes.grid(visible=True, alpha=0.3)
    figure.supxlabel("band and lines: 95 % intervals, one entry at a time", fontsize=7)
    return figure


def _curve(axes: Any, column: Column, name: str, values: Sequence[int]) -> None:
    """Entries of zero cannot be on a logarithmic axis, so the axes are linear below one."""
    places = np.asarray(values, dtype=np.float64)
    axes.fill_between(places, column.low, column.high, color=_PALE, linewidth=0)
    axes.plot(places, column.values, ".", color=_TEAL, markersize=3)
    axes.set_xscale("symlog", linthresh=1)
    axes.set_yscale("symlog", linthresh=1)
    axes.set(xlabel=_literal(name), ylabel=_literal(column.name))


def _bars(axes: Any, column: Column, keys: Mapping[str, Sequence[Any]]) -> None:
    count = len(column.values)
    shown = np.sort(np.argsort(-column.values, kind="stable")[:_MOST])
    part = column.taken(shown)
    place = np.arange(len(shown))
    axes.barh(place, part.values, color=_TEAL)
    reach = [np.maximum(part.values - part.low, 0), np.maximum(part.high - part.values, 0)]
    axes.errorbar(part.values, place, xerr=reach, fmt="none", ecolor="#333333", capsize=2, linewidth=1)
    labels = [", ".join(plain(values[i], widest=24) for values in keys.values()) or column.name for i in shown.tolist()]
    axes.set_yticks(place, [_literal(label) for label in labels], fontsize=8)
    axes.invert_yaxis()
    more = f", the {len(shown)} largest of {count}" if count > len(shown) else ""
    axes.set_xlabel(_literal(f"{column.name}{more}"))


def _literal(text: str) -> str:
    """Text that is drawn as it is: a dollar sign starts no formula."""
    return text.replace("$", r"\$")

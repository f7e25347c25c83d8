"""Which chart an answer with keys is, and how it is drawn: lines along time, bars, histograms, and panels of them."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import product
from typing import Any, Final, Literal, final

import numpy as np
import pyarrow as pa

from defocus.answers import tables
from defocus.answers.columns import NUMBERS, AnswerColumn, Floats
from defocus.answers.plots import COLOURS, DARK, HATCHES, MOST, PALE, TEAL, Look, literal, reach, wrapped

__all__ = ["binned", "chart", "moments"]

_SERIES: Final = 6
"""So many lines, or bars of one group, are in one panel at most."""
_PANELS: Final = 12
_COLOURS = (TEAL, *COLOURS)
_PAPER, _MUTED = "#ffffff", "#555555"
_STYLES = ((0, ()), (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)), (0, (2, 2)), (0, (6, 2, 2, 2)))
_MARKERS = "osD^vP"
_DENSE: Final = 60
"""From so many points on, markers are small and intervals of several lines are bands."""
_YEARS = (1000, 2999)
_PERIODS = {"year", "quarter", "month", "week", "day", "hour", "minute", "weekday", "dow", "doy"}
_OF_YEARS = {"year"}
_NAMES = {"node", "id", "code", "zip", "postcode", "number", "nr", "key"}
"""Whole numbers under such names are names."""
_QUARTER = re.compile(r"(\d{4})[- ]?Q([1-4])", re.ASCII | re.IGNORECASE)
_MONTH = re.compile(r"(\d{4})-(\d{2})", re.ASCII)
_DAY = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_YEAR = re.compile(r"\d{4}", re.ASCII)
_BIN = re.compile(r"(.+)_([^_]+)_to_([^_]+)", re.DOTALL)


@final
@dataclass(frozen=True, slots=True)
class _Along:
    """Places of entries on an axis, NaN where an entry has none; what stands at them, where the axis does not know."""

    places: Floats
    kind: Literal["time", "whole", "numbers"]
    labels: Sequence[str] | None = None


def moments(name: str, values: Any) -> _Along | None:
    """Places in time of a key's values, where it is one: days, moments, months, quarters, years; None where it is not.

    >>> moments("month", ["2024-01", "2024-03"]).kind, moments("year", [2023, 2024]).kind
    ('time', 'whole')
    >>> moments("ward", [3, 17])
    """
    listed = tables.arrow_key(values)
    if len(listed) - listed.null_count < 2:
        return None
    if pa.types.is_date(listed.type) or pa.types.is_timestamp(listed.type):
        return _days(listed.to_numpy(zero_copy_only=False) if isinstance(listed, pa.Array) else listed.to_numpy())
    texts = listed.to_pylist()
    if pa.types.is_integer(listed.type):
        numbers = _floats(texts)
        period = _words(name) & _PERIODS
        years = np.nanmin(numbers) >= _YEARS[0] and np.nanmax(numbers) <= _YEARS[1]
        return _Along(numbers, "whole") if period and (years or not period & _OF_YEARS) else None
    if pa.types.is_string(listed.type) or pa.types.is_large_string(listed.type):
        days = [_day(text) for text in texts]
        if "" in days or len(set(days)) < len(set(texts)):
            return None
        found = _days(np.array(days, dtype="datetime64[D]"))
        return None if found is None else replace(found, labels=[tables.plain(text, widest=12) for text in texts])
    return None


def _days(places: Any) -> _Along | None:
    """Moments as days since 1970, where a calendar has them."""
    years = places[~np.isnat(places)].astype("datetime64[Y]").astype(np.int64) + 1970
    if years.min() < 1 or years.max() > 9999:
        return None
    days = places.astype("datetime64[us]").astype(np.float64) / 86_400e6
    return _Along(np.where(np.isnat(places), math.nan, days), "time")


def _day(text: str | None) -> str | None:
    """The first day of what a text names; empty where it names no time."""
    if text is None:
        return None
    made = text if _DAY.fullmatch(text) else ""
    if quarter := _QUARTER.fullmatch(text):
        made = f"{quarter[1]}-{3 * int(quarter[2]) - 2:02d}-01"
    elif _MONTH.fullmatch(text):
        made = f"{text}-01"
    elif _YEAR.fullmatch(text):
        made = f"{text}-01-01"
    try:
        return str(np.datetime64(made, "D")) if made else ""
    except ValueError:
        return ""


def _numbers(values: Any) -> _Along | None:
    """Places along numbers, for keys that are numbers."""
    listed = tables.arrow_key(values)
    if not (pa.types.is_integer(listed.type) or pa.types.is_floating(listed.type)):
        return None
    places = _floats(listed.to_pylist())
    kind: Literal["whole", "numbers"] = "whole" if pa.types.is_integer(listed.type) else "numbers"
    return _Along(places, kind) if np.isfinite(places).sum() > 1 else None


def _words(name: str) -> set[str]:
    return set(re.split(r"[^a-z]+", name.casefold()))


def _floats(values: Sequence[Any]) -> Floats:
    return np.array([math.nan if x is None else float(x) for x in values], dtype=np.float64)


@final
@dataclass(frozen=True, slots=True)
class _Layout:
    """Which key is along the axis, which is told apart within a panel, and which have panels of their own."""

    axis: str = ""
    """Empty where each entry stands by itself."""
    series: str | None = None
    panels: tuple[str, ...] = ()
    along: _Along | None = None
    """Where the axis is time or numbers."""


def chart(
    keys: tables.Keys,
    columns: Sequence[AnswerColumn],
    look: Look,
    *,
    threshold: float | None = None,
    things: str = "groups",
    steps: bool = False,
) -> Any:
    """The chart of numbers with keys: of all of them, or with a note that says which are left out.

    Lines along time; bars for groups, side by side for a second key; outlines for columns that are a histogram; panels
    for further keys and columns. Intervals are always drawn, and what is drowned in noise is hollow.
    """
    listed = {name: tables.labels({name: values}, range(len(columns[0].values))) for name, values in keys.items()}
    drawing = _Drawing(listed, columns, threshold, things, look, steps=steps)
    bins = binned(columns)
    return drawing.histograms(bins) if bins else drawing.entries(_arranged(keys, listed, steps=steps))


def binned(columns: Sequence[AnswerColumn]) -> dict[str, tuple[list[float], list[AnswerColumn]]]:
    """The histograms among columns that are called as those of ``dp.histogram``: edges and columns, by name."""
    found: dict[str, tuple[list[float], list[AnswerColumn]]] = {}
    for column in columns:
        if (parts := _BIN.fullmatch(column.name)) is None:
            continue
        try:
            low, high = float(parts[2]), float(parts[3])
        except ValueError:
            continue
        edges, members = found.setdefault(parts[1], ([low], []))
        if edges[-1] == low < high:
            edges.append(high)
            members.append(column)
    return {name: (edges, members) for name, (edges, members) in found.items() if len(members) > 1}


def _arranged(keys: tables.Keys, listed: dict[str, list[str]], *, steps: bool) -> _Layout:
    number = {name: len(set(values)) for name, values in listed.items()}
    fewest = sorted(keys, key=lambda name: number[name])
    along = {name: found for name, values in keys.items() if (found := moments(name, values)) is not None}
    if not along and (steps or max(number.values()) > MOST):
        counted = [name for name in reversed(fewest) if not _words(name) & _NAMES]
        along = {name: found for name in counted if (found := _numbers(keys[name])) is not None}
    axis = next(iter(along), fewest[-1])
    others = [name for name in fewest if name != axis]
    series = others[0] if others and number[others[0]] <= _SERIES else None
    panels = tuple(name for name in keys if name in others and name != series)
    if axis not in along and (math.prod(number[name] for name in panels) > _PANELS or (others and series is None)):
        return _Layout()
    return _Layout(axis, series, panels, along.get(axis))


@final
@dataclass(frozen=True, slots=True)
class _Drawing:
    """What is drawn, and how."""

    keys: dict[str, list[str]]
    columns: Sequence[AnswerColumn]
    threshold: float | None
    things: str
    look: Look
    steps: bool

    def entries(self, layout: _Layout) -> Any:
        """Bars or lines, in as many panels as there are columns and values of further keys."""
        count = len(self.columns[0].values)
        axis = self.keys[layout.axis] if layout.axis else self._joined(list(self.keys))
        series = [""] * count if layout.series is None else self.keys[layout.series]
        panel = self._joined(layout.panels)
        parts, bars = list(dict.fromkeys(series)) or [""], layout.along is None
        groups = self._groups(axis, len(parts)) if bars else []
        panels = list(product(self.columns, dict.fromkeys(panel) or [""]))
        names = len({name for _, name in panels}) > 1
        height = 70 + 26 * max(2, len(groups) * max(1.0, 0.7 * len(parts))) if bars else 230
        figure, grid, beside = self._grid(min(len(panels), _PANELS), height, side_by_side=bars or names)
        first: dict[str, Any] = {}
        for spot, (axes, (column, name)) in enumerate(zip(grid, panels, strict=False)):
            title = ": ".join(each for each in (column.name if bars or names else "", name) if each)
            axes.set_title(wrapped(title, self.look, size=9, most=2), fontsize=9)
            if names and column.name in first:
                (axes.sharex if bars else axes.sharey)(first[column.name])
            first.setdefault(column.name, axes)
            for place, part in enumerate(parts):
                chosen = [i for i in range(count) if panel[i] == name and series[i] == part]
                if layout.along is None:
                    spots = {i: groups.index(axis[i]) for i in chosen if axis[i] in groups}
                    self._bars(axes, column, spots, (place, len(parts)))
                else:
                    self._line(axes, column, chosen, layout.along, (place, len(parts)))
            if layout.along is None:
                axes.set_yticks(range(len(groups)), [literal(group) for group in groups], fontsize=8.5)
                axes.set_ylim(len(groups) - 0.4, -0.6)
                axes.tick_params(labelleft=spot % beside == 0)
                by = layout.axis or ", ".join(self.keys)
                axes.set_ylabel("" if spot % beside else literal(by), fontsize=9)
                _amounts(axes.xaxis, self.look)
                axes.axvline(0, color=DARK, linewidth=0.8)
            else:
                _places(axes, layout.along, self.look, len(grid))
                axes.set_ylabel(literal(column.name), fontsize=9)
                _amounts(axes.yaxis, self.look)
                axes.set_xlabel(literal(layout.axis) if spot + beside >= len(grid) else "", fontsize=9)
            axes.grid(visible=True, axis="x" if bars else "both", alpha=0.5)
        _legend(grid[min(beside, len(grid)) - 1], parts, layout.series, self.look, bars=bars)
        notes = [*self._missing(layout, panels), *self._left_out(groups, axis, bars=bars)]
        self._noted(figure, notes, lines=bars or (len(parts) > 1 and not self._banded(layout.along)))
        return figure

    def _joined(self, names: Sequence[str]) -> list[str]:
        rows = zip(*(self.keys[name] for name in names), strict=True)
        return [", ".join(row) for row in rows] if names else [""] * len(self.columns[0].values)

    def _groups(self, axis: Sequence[str], parts: int) -> list[str]:
        """The groups that have bars: all, or of many those with the largest values, in their own order."""
        groups = list(dict.fromkeys(axis))
        most = max(4, MOST // parts)
        if len(groups) <= most:
            return groups
        values = self.columns[0].values
        largest = dict.fromkeys(groups, -math.inf)
        for group, value in zip(axis, np.where(np.isfinite(values), values, -np.inf).tolist(), strict=True):
            largest[group] = max(largest[group], value)
        chosen = set(sorted(groups, key=lambda group: -largest[group])[:most])
        return [group for group in groups if group in chosen]

    def _left_out(self, groups: Sequence[str], axis: Sequence[str], *, bars: bool) -> list[str]:
        number = len(set(axis))
        if not bars or len(groups) == number:
            return []
        return [f"the {len(groups)} of {number} {self.things} with the largest {self.columns[0].name}"]

    def _missing(self, layout: _Layout, panels: Sequence[Any]) -> list[str]:
        """What is not drawn: panels beyond the first, and entries that have no place along the axis."""
        said = []
        if len(panels) > _PANELS:
            said.append(f"the first {_PANELS} of {len(panels)} panels; plot one column, or ask for fewer groups")
        if layout.along is not None and (lost := np.flatnonzero(np.isnan(layout.along.places))).size:
            labels, column = self._joined(list(self.keys)), self.columns[0]
            told = [f"{labels[i]} ({column.name} {column.values[i]:.5g})" for i in lost[:3]]
            said.append(f"not drawn: {', '.join(told)}{' and others' if lost.size > 3 else ''}")
        return said

    def _banded(self, along: _Along | None) -> bool:
        """Whether intervals of several lines are bands: there is no room for one at each point."""
        return self.steps or (along is not None and len(np.unique(along.places)) > _DENSE)

    def _grid(self, number: int, height: float, *, side_by_side: bool) -> tuple[Any, list[Any], int]:
        """A figure with so many panels, as many beside each other as the width allows, and how many that are."""
        beside = max(1, self.look.width // 310) if side_by_side else 1
        beside = min(number, beside, 3 if number > 4 else 2)
        deep = -(-number // beside)
        figure = self.look.paper(deep * height + 110)
        grid = figure.subplots(deep, beside, squeeze=False).ravel().tolist()
        for axes in grid[number:]:
            axes.remove()
        for axes in grid[:number]:
            axes.tick_params(labelsize=8.5)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
        return figure, grid[:number], beside

    def _noted(self, figure: Any, notes: Sequence[str], *, lines: bool) -> None:
        said = [*notes, f"{'lines' if lines else 'band'}: {self.look.intervals}"]
        if self.threshold is not None and not self.steps:
            said.append(f"hollow: noise above {100 * self.threshold:g} % of the value")
        figure.supxlabel(wrapped("; ".join(said), self.look, size=8), fontsize=8, color=_MUTED)

    def _sure(self, column: AnswerColumn) -> Any:
        """Which values are not drowned in noise; all where nobody set a threshold."""
        if self.threshold is None:
            return np.ones(len(column.values), dtype=bool)
        return np.array([flag is True for flag in column.reliable(self.threshold)], dtype=bool)

    def _bars(self, axes: Any, column: AnswerColumn, spots: dict[int, int], place: tuple[int, int]) -> None:
        """Bars of the entries that have a spot."""
        part, (number, of) = column.taken(list(spots)), place
        thick = 0.8 / of
        at = np.array(list(spots.values())) + (number - (of - 1) / 2) * thick
        values = np.nan_to_num(part.values, nan=0.0, posinf=0.0, neginf=0.0)
        looks = [_bar(number, sure=bool(sure)) for sure in self._sure(part)]
        styles = {key: [style[key] for style in looks] for key in ("facecolor", "edgecolor", "linewidth", "hatch")}
        axes.barh(at, values, height=0.92 * thick, **styles)
        known = np.isfinite(part.low) & np.isfinite(part.high) & np.isfinite(part.values)
        around = {"ecolor": DARK, "capsize": 2, "linewidth": 1}
        axes.errorbar(part.values[known], at[known], xerr=reach(part, known), fmt="none", **around)

    def _line(
        self, axes: Any, column: AnswerColumn, chosen: Sequence[int], along: _Along, place: tuple[int, int]
    ) -> None:
        """A line through all places of the axis, with a break where this one has no number."""
        number, of = place
        spots = np.unique(along.places[np.isfinite(along.places)])
        entries = [i for i in chosen if np.isfinite(along.places[i])]
        at = np.searchsorted(spots, along.places[entries])
        values, low, high = (np.full(len(spots), np.nan) for _ in range(3))
        sure = np.zeros(len(spots), dtype=bool)
        part = column.taken(entries)
        values[at], low[at], high[at], sure[at] = part.values, part.low, part.high, self._sure(part)
        colour, dense, banded = _COLOURS[number], len(spots) > _DENSE, self._banded(along)
        band = {"step": "post"} if self.steps else {}
        if of == 1:
            axes.fill_between(spots, low, high, facecolor=PALE, edgecolor=colour, linewidth=0.5, **band)
        elif banded:
            axes.fill_between(spots, low, high, facecolor=colour, alpha=0.25, edgecolor=colour, linewidth=0.5, **band)
        style = {"color": colour, "linestyle": _STYLES[number], "linewidth": 1.4}
        axes.plot(spots, values, drawstyle="steps-post" if self.steps else "default", **style)
        if of > 1 and not banded:
            known = np.isfinite(low) & np.isfinite(high) & np.isfinite(values)
            ends = [np.maximum(values[known] - low[known], 0), np.maximum(high[known] - values[known], 0)]
            axes.errorbar(spots[known], values[known], yerr=ends, fmt="none", ecolor=colour, capsize=2, linewidth=1)
        for flag in () if self.steps else (True, False):
            marked = (sure == flag) & np.isfinite(values)
            face = colour if flag else _PAPER
            how = {"markersize": 2.5 if dense else 4.5, "markerfacecolor": face, "markeredgecolor": colour}
            axes.plot(spots[marked], values[marked], _MARKERS[number], **how)

    def histograms(self, bins: dict[str, tuple[list[float], list[AnswerColumn]]]) -> Any:
        """Outlines over the edges: groups in one panel where they are few, else each in a panel of its own."""
        groups = self._joined(list(self.keys))
        alike = not self.keys and len({tuple(edges) for edges, _ in bins.values()}) == 1 and len(bins) <= _SERIES
        panels: list[tuple[str, str, list[tuple[str, list[float], AnswerColumn]]]] = []
        if alike:
            panels.append(
                (", ".join(bins), "", [(name, edges, _turned(part, 0)) for name, (edges, part) in bins.items()])
            )
        for name, (edges, members) in () if alike else bins.items():
            each = [(group, edges, _turned(members, i)) for i, group in enumerate(groups)]
            panels += [(name, "", each)] if len(each) <= _SERIES else [(name, one[0], [one]) for one in each]
        shown = panels[:_PANELS]
        figure, grid, beside = self._grid(len(shown), 230, side_by_side=len(shown) > 1)
        for axes, (name, title, every) in zip(grid, shown, strict=True):
            axes.set_title(wrapped(title, self.look, size=9, most=2), fontsize=9)
            for number, (_, edges, column) in enumerate(every):
                self._outline(axes, np.array(edges), column, (number, len(every)))
            axes.set_xlabel(literal(name), fontsize=9)
            _amounts(axes.yaxis, self.look)
            _amounts(axes.xaxis, self.look)
            axes.axhline(0, color=DARK, linewidth=0.8)
            axes.grid(visible=True, axis="y", alpha=0.5)
        parts = [part for part, _, _ in shown[0][2]]
        _legend(grid[min(beside, len(grid)) - 1], parts, None if alike else ", ".join(self.keys), self.look, bars=False)
        others = [each.name for each in self.columns if not any(each in members for _, members in bins.values())]
        notes = [f"the first {_PANELS} of {len(panels)} {self.things}"] if len(panels) > _PANELS else []
        notes += [f"not drawn: {', '.join(others)}"] if others else []
        self._noted(figure, notes, lines=True)
        return figure

    def _outline(self, axes: Any, edges: Floats, column: AnswerColumn, place: tuple[int, int]) -> None:
        number, of = place
        values = np.nan_to_num(column.values, nan=0.0, posinf=0.0, neginf=0.0)
        widths = np.diff(edges)
        middle = edges[:-1] + widths * (0.5 + (number - (of - 1) / 2) * 0.6 / of)
        sure = self._sure(column)
        if of == 1:
            for x, width, value, flag in zip(middle, widths, values, sure, strict=True):
                axes.bar(
                    x, value, width=width, **{**_bar(0, sure=bool(flag)), "edgecolor": TEAL if not flag else _PAPER}
                )
        else:
            axes.stairs(values, edges, color=_COLOURS[number], linestyle=_STYLES[number], linewidth=1.4)
        known = np.isfinite(column.low) & np.isfinite(column.high) & np.isfinite(column.values)
        ecolor = DARK if of == 1 else _COLOURS[number]
        axes.errorbar(
            middle[known], column.values[known], yerr=reach(column, known), fmt="none", ecolor=ecolor, capsize=2
        )
        for flag in (True, False) if of > 1 else ():
            face = _COLOURS[number] if flag else _PAPER
            how = {"markersize": 4.5, "markerfacecolor": face, "markeredgecolor": _COLOURS[number]}
            axes.plot(middle[sure == flag], values[sure == flag], _MARKERS[number], **how)


def _turned(members: Sequence[AnswerColumn], row: int) -> AnswerColumn:
    """One entry of each column, as a column."""
    arrays: dict[str, Any] = {part: np.array([getattr(each, part)[row] for each in members]) for part in NUMBERS}
    return replace(members[0], **arrays)


def _bar(number: int, *, sure: bool) -> dict[str, Any]:
    """How a bar is filled: hollow where noise drowns it."""
    colour, hatch = _COLOURS[number], ("", *HATCHES)[number]
    edge = {"edgecolor": _PAPER, "linewidth": 0} if sure else {"edgecolor": colour, "linewidth": 1.2}
    return {"facecolor": colour if sure else _PAPER, "hatch": hatch, **edge}


def _legend(axes: Any, parts: Sequence[str], title: str | None, look: Look, *, bars: bool) -> None:
    """What tells parts apart, above the last panel of the first row."""
    if len(parts) < 2:
        return
    lines, patches = import_module("matplotlib.lines"), import_module("matplotlib.patches")
    handles = [
        patches.Patch(**_bar(number, sure=True))
        if bars
        else lines.Line2D([], [], color=_COLOURS[number], linestyle=_STYLES[number], marker=_MARKERS[number], ms=4.5)
        for number in range(len(parts))
    ]
    beside = max(1, min(len(parts), int((look.width - 20) / (60 + 6.5 * max(map(len, parts))))))
    above = 1 + 18 * len([part for part in axes.get_title().split("\n") if part]) / 130
    axes.legend(
        handles,
        [literal(part) for part in parts],
        title=None if title is None else literal(title),
        ncols=beside,
        handlelength=2.8,
        loc="lower right",
        bbox_to_anchor=(1, above),
        borderaxespad=0.2,
        frameon=False,
        fontsize=8.5,
        title_fontsize=8.5,
    )


def _amounts(axis: Any, look: Look) -> None:
    """Few ticks, with groups of three digits set apart."""
    ticker = import_module("matplotlib.ticker")
    axis.set_major_locator(ticker.MaxNLocator(nbins=4 if look.width < 560 else 5))
    axis.set_major_formatter(ticker.FuncFormatter(lambda x, _: f"{x:,.10g}".replace(",", "\u2009")))


def _places(axes: Any, along: _Along, look: Look, panels: int) -> None:
    """What stands along the axis."""
    ticker, dates = import_module("matplotlib.ticker"), import_module("matplotlib.dates")
    most = max(3, look.width // (80 if panels < 4 else 180))
    if along.labels is not None:
        shown = dict(
            sorted((place, text) for place, text in zip(along.places, along.labels, strict=True) if np.isfinite(place))
        )
        step = -(-len(shown) // most)
        axes.set_xticks(list(shown)[::step], [literal(text) for text in list(shown.values())[::step]])
    elif along.kind == "time":
        locator = dates.AutoDateLocator(maxticks=most)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    else:
        axes.xaxis.set_major_locator(ticker.MaxNLocator(nbins=most, integer=along.kind == "whole"))
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda x, _: f"{x:.10g}"))

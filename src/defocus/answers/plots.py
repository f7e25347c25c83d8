"""Pictures of answers and budgets (matplotlib, an optional extra): paper, colours, and what is drawn along no key."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, final

import numpy as np

from defocus.answers.columns import CONFIDENCE, AnswerColumn
from defocus.answers.tables import visible
from defocus.errors import MissingExtraError, Number, in_range, probability
from defocus.privacy.filters import Remaining

__all__ = [
    "COLOURS",
    "DARK",
    "HATCHES",
    "MOST",
    "PALE",
    "TEAL",
    "Look",
    "blank",
    "burn_down",
    "curve",
    "in_every_script",
    "literal",
    "points",
    "reach",
    "wrapped",
]

MOST = 25
"""So many groups are drawn as bars at most."""
TEAL, PALE, DARK = "#2a7f76", "#b7cfcc", "#222222"
_OTHERS = "other data"
COLOURS = ("#b85c1e", "#5b6fb5", "#b5527f", "#6b8a2e", "#8a6fae", "#3d87ab", "#a0723f", "#777777")
"""Those of several things in one picture, seen on any paper; each has a pattern too, for whom colours look alike."""
HATCHES = ("//", "..", "xx", "--", "\\\\", "++", "oo", "")
"""The patterns that go with the colours."""


@final
@dataclass(frozen=True, slots=True)
class Look:
    """How a picture is made: so many pixels wide, on light or dark paper, with intervals of which confidence."""

    width: int = 640
    dark: bool = False
    confidence: float = CONFIDENCE

    @classmethod
    def of(cls, *, width: Number = 640, dark: bool = False, confidence: Number = CONFIDENCE) -> "Look":
        """The same, checked."""
        level = float(probability("confidence", confidence, zero=False, one=False))
        return cls(int(in_range("width", width, 200, 10_000)), bool(dark), level)

    @property
    def percent(self) -> str:
        """The confidence in words."""
        return f"{100 * self.confidence:.6g} %"

    @property
    def intervals(self) -> str:
        """What intervals are called."""
        return f"{self.percent} intervals"

    def paper(self, height: float) -> Any:
        """An empty figure of this width, and so many pixels high."""
        made = blank(self.width / 100, height / 100)
        made.dark = self.dark
        return made


def blank(width: float, height: float) -> Any:
    """An empty figure that belongs to no window, of so many inches."""
    try:
        import_module("matplotlib.figure")  # slow to load
    except ImportError as error:
        raise MissingExtraError("Plotting", package="matplotlib", extra="plot") from error
    return import_module("defocus.answers.pictures").Picture(figsize=(width, height), dpi=100, layout="constrained")


def wrapped(text: str, look: Look, *, size: float, most: int = 6) -> str:
    """Text in lines that fit the width, in letters of so many points; literal, and cut if it is long."""
    letters = max(20, int(look.width / (size * 0.78)))
    lines = [line for part in text.split("\n") for line in textwrap.wrap(visible(part), letters)]
    shown = lines if len(lines) <= most else [*lines[: most - 1], f"{lines[most - 1][: letters - 1]}…"]
    return literal("\n".join(shown))


def reach(column: AnswerColumn, known: Any) -> list[Any]:
    """How far intervals reach below and above the values."""
    values, low, high = (part[known] for part in (column.values, column.low, column.high))
    return [np.maximum(values - low, 0), np.maximum(high - values, 0)]


def points(labels: Sequence[str], columns: Sequence[AnswerColumn], look: Look = Look()) -> Any:  # noqa: B008  # frozen
    """Single numbers: a panel for each, with a point, its interval, and room to see it."""
    figure = look.paper(90 + 75 * len(columns))
    panels = figure.subplots(len(columns), 1, squeeze=False)[:, 0]
    for axes, label, column in zip(panels, labels, columns, strict=True):
        value, low, high = (float(part[0]) for part in (column.values, column.low, column.high))
        if np.isfinite(value):
            known = np.isfinite(low) and np.isfinite(high)
            around = [[max(value - low, 0)], [max(high - value, 0)]] if known else None
            axes.errorbar([value], [0], xerr=around, fmt="o", color=TEAL, ecolor=DARK, capsize=4, linewidth=1.2)
            axes.margins(x=0.25)
        axes.set_yticks([0], [literal(label)], fontsize=9)
        axes.set_ylim(-1, 1)
        axes.grid(visible=True, axis="x", alpha=0.5)
        axes.locator_params(axis="x", nbins=5)
        axes.ticklabel_format(axis="x", style="plain", useOffset=False)
    figure.supxlabel(f"lines: {look.intervals}", fontsize=8)
    return figure


def curve(places: Sequence[float], column: AnswerColumn, *, by: str, look: Look = Look()) -> Any:  # noqa: B008  # frozen
    """The column along numbers, such as degrees, on logarithmic axes with a band of intervals.

    Zero cannot be on a logarithmic axis, so the axes are linear below one. What comes after the last value that is not
    zero is noise alone: it is left out, but for a tenth of the way.
    """
    figure = look.paper(400)
    axes = figure.add_subplot()
    filled = np.flatnonzero(column.values)
    last = min(len(column.values), int(1.1 * filled[-1]) + 2) if filled.size else len(column.values)
    column, left_out = column.taken(slice(0, last)), len(column.values) - last
    along = np.asarray(places, dtype=np.float64)[:last]
    axes.fill_between(along, column.low, column.high, facecolor=PALE, edgecolor=TEAL, linewidth=0.5)
    axes.plot(along, column.values, ".", color=DARK, markersize=3)
    axes.set_xscale("symlog", linthresh=1)
    axes.set_yscale("symlog", linthresh=1)
    axes.set(xlabel=literal(by), ylabel=literal(column.name))
    axes.grid(visible=True, alpha=0.5)
    beyond = f"; {left_out} more are zero" if left_out else ""
    note = f"band: {look.intervals} of the noise, one entry at a time{beyond}"
    figure.supxlabel(wrapped(note, look, size=8), fontsize=8)
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
    colours = dict(zip(named, zip(COLOURS, HATCHES, strict=True), strict=False))
    rows = {"epsilon": [one.epsilon for one in left], "delta": [one.delta for one in left]}
    shown = [name for name, amounts in rows.items() if name == "epsilon" or any(amounts)]
    figure = blank(7, 2.6 + 1.4 * (len(shown) - 1))
    panels = figure.subplots(len(shown), sharex=True, squeeze=False)[:, 0]
    for axes, name in zip(panels, shown, strict=True):
        axes.stairs(rows[name], np.arange(len(left) + 1) - 0.5, fill=True, color=TEAL)
        axes.set(ylabel=f"{name} left", ylim=(0, None), xlim=(-0.5, len(left) - 0.5))
        axes.grid(visible=True, axis="y", alpha=0.3)
        for place, about in enumerate(data if len(colours) > 1 else (), start=1):
            before, after = rows[name][place - 1 : place + 1]
            axes.bar(place, before - after, width=1, bottom=after, **_filled(*colours[about]))
    if len(colours) > 1:
        handles = [panels[0].bar(0, 0, **_filled(*look)) for look in colours.values()]
        panels[0].legend(handles, [literal(name) for name in colours], fontsize=8, frameon=False)
    step = max(1, -(-len(left) // 12))
    named = [literal(label) for label in labels[::step]]
    panels[-1].set_xticks(range(0, len(left), step), named, rotation=20, ha="right", fontsize=8)
    figure.alt = "; ".join(
        f"{label}: epsilon {one.epsilon:.4g}{f', delta {one.delta:.3g}' if one.delta else ''}"
        for label, one in list(zip(labels, left, strict=True))[-MOST:]
    )
    figure.alt = f"What was left of the budget after each of the last {min(MOST, len(left))} charges. {figure.alt}"
    return in_every_script(figure)


def _filled(colour: str, hatch: str) -> dict[str, Any]:
    return {"facecolor": colour, "edgecolor": "#ffffff", "hatch": hatch, "linewidth": 0}


_FAMILIES = ("Noto Sans CJK", "Source Han Sans", "WenQuanYi", "PingFang", "Microsoft YaHei", "SimHei", "Noto Sans")
"""Fonts to look at first for letters that the usual one lacks, by the beginning of their names."""
_LOOKED_AT = 300


def in_every_script(figure: Any) -> Any:
    """The figure with its texts in fonts that are installed and have the letters which the usual one lacks."""
    texts = figure.findobj(import_module("matplotlib.text").Text)
    missing = {ord(letter) for text in texts for letter in text.get_text() if letter > "\x7f"}
    fonts = import_module("matplotlib.font_manager")
    families = ["DejaVu Sans"]
    missing -= _letters(fonts, fonts.findfont("DejaVu Sans")) if missing else set()
    known = {font.name: font.fname for font in fonts.fontManager.ttflist}
    order = sorted(
        known, key=lambda name: (next((i for i, part in enumerate(_FAMILIES) if name.startswith(part)), 99), name)
    )
    for name in order[:_LOOKED_AT]:
        if not missing:
            break
        found = missing & _letters(fonts, known[name])
        if found:
            families.append(name)
            missing -= found
    for text in texts if len(families) > 1 else ():
        text.set_fontfamily(families)
    figure.outlines = len(families) > 1 and not missing
    return figure


def _letters(fonts: Any, file: str) -> set[int]:
    """The letters that a font has; none where it cannot be read."""
    try:
        return set(fonts.get_font(file).get_charmap())
    except (OSError, RuntimeError, ValueError):
        return set()


def literal(text: str) -> str:
    """Text that is drawn as it is: a dollar sign starts no formula, and no letter acts on a file or a reader."""
    return "\n".join(visible(line) for line in text.split("\n")).replace("$", r"\$")

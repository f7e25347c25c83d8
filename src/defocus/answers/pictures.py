"""A figure that tells what it shows: in words with the numbers, and in the colours of the reader's page."""

import base64
import contextlib
import io
import re
import warnings
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, final

import numpy as np
from matplotlib import rc_context
from matplotlib.collections import Collection
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

from defocus.answers.tables import visible

__all__ = ["DARK", "LIGHT", "Picture"]

_BLACK, _GRID = "#000000", "#b0b0b0"
LIGHT = {"ink": "#222222", "paper": "#ffffff", "grid": "#bdbdbd", "muted": "#555555", "pale": "#b7cfcc"}
"""Colours of everything but the data, on light paper."""
DARK = {"ink": "#e8e8e8", "paper": "#14181b", "grid": "#565d63", "muted": "#b4bcc2", "pale": "#2f4a48"}
"""The same on dark paper. Colours of data are the same on both, and seen well on both."""


@final
class Picture(Figure):
    """A matplotlib figure with a text for those who cannot see it, on light or dark paper.

    ``alt`` goes into every file: as title and description of an SVG, which also follows the colour scheme of the page
    it is on, and into the metadata of a PNG or PDF.
    """

    alt: str = ""
    dark: bool = False
    outlines: bool = False
    """Whether letters of an SVG are drawn by their outlines: some need fonts that not every reader has."""

    def savefig(self, fname: Any, **how: Any) -> None:
        """As matplotlib saves, with the text; the ending of the name or ``format`` says as what."""
        suffix = Path(fname).suffix[1:] if isinstance(fname, str | Path) else ""
        kind = str(how.pop("format", None) or suffix or "png").lower()
        if kind == "svg":
            content = self.svg().encode()
            if isinstance(fname, str | Path):
                Path(fname).write_bytes(content)
            else:
                fname.write(content)
            return
        subject = {"png": "Description", "pdf": "Subject"}.get(kind)
        if subject is not None:
            how["metadata"] = {"Title": self._title(), subject: self.told(), **(how.get("metadata") or {})}
        with self._on_paper():
            super().savefig(fname, format=kind, **{"facecolor": "auto", **how})

    def svg(self) -> str:
        """The figure as SVG that loads nothing; the same picture is the same text."""
        sink = io.StringIO()
        how: Any = {"svg.fonttype": "path" if self.outlines else "none", "svg.hashsalt": "defocus"}
        with self._on_paper(), rc_context(how):
            super().savefig(sink, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
        text = re.sub(r"<metadata>.*?</metadata>", "", sink.getvalue(), flags=re.DOTALL)
        text = re.sub(r"<\?xml.*?\?>|<!DOCTYPE.*?>", "", text, flags=re.DOTALL).strip()
        named = (
            f'<title id="defocus-title">{escape(self._title())}</title>'
            f'<desc id="defocus-desc">{escape(self.told())}</desc>'
        )
        head = f"{_opening(text)}{named}{'' if self.dark else _DARKENED}"
        return head + text[text.index(">") + 1 :] + "\n"

    def told(self) -> str:
        """What it shows, in words; of a figure that nobody described, its axes and the ends of its lines."""
        if self.alt:
            return visible(self.alt)
        said = []
        for axes in self.axes:
            said.append(f"{axes.get_ylabel() or axes.get_title() or 'values'} against {axes.get_xlabel() or 'x'}")
            for line in axes.get_lines():
                ends: Any = [np.ma.filled(np.ma.asarray(part, dtype=float), np.nan) for part in line.get_data()]
                known = np.isfinite(ends[0]) & np.isfinite(ends[1])
                if known.sum() > 1:
                    name, x, y = str(line.get_label()), ends[0][known], ends[1][known]
                    about = "" if name.startswith("_") else f"{name}: "
                    said.append(f"{about}from {y[0]:.4g} at {x[0]:.4g} to {y[-1]:.4g} at {x[-1]:.4g}")
        return visible(". ".join(said).replace(r"\$", "$"))

    def tag(self, *, narrow: "Picture | None" = None) -> str:
        """An image for a page that needs no other file; ``narrow`` is shown instead on narrow screens."""
        small = "" if narrow is None else f'<source media="(max-width: 560px)" srcset="{_address(narrow)}">'
        image = f'<img alt="{escape(self.told())}" src="{_address(self)}">'
        return f"<picture>{small}{image}</picture>" if small else image

    def _repr_html_(self) -> str:
        return self.tag()

    def _title(self) -> str:
        title = " ".join((self.get_suptitle() or self.told().split(".")[0]).split())
        return visible(title.replace(r"\$", "$"))

    @contextlib.contextmanager
    def _on_paper(self) -> Iterator[None]:
        """Every artist in the colours of the paper; a letter that no installed font has is no reason to warn."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            self.draw_without_rendering()  # makes all ticks
            _recoloured(self, DARK if self.dark else LIGHT)
            yield


def _opening(svg: str) -> str:
    tag = svg[: svg.index(">")]
    return f'{tag} role="img" aria-labelledby="defocus-title defocus-desc">'


def _address(picture: Picture) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(picture.svg().encode()).decode('ascii')}"


def _darkened() -> str:
    rules = "".join(
        f'[style*="{part}: {LIGHT[name]}"],[{part}="{LIGHT[name]}"]{{{part}:{DARK[name]}!important}}'
        for name in LIGHT
        for part in ("fill", "stroke")
    )
    return f"<style>@media (prefers-color-scheme: dark){{{rules}}}</style>"


_DARKENED = _darkened()


def _recoloured(figure: Figure, paper: dict[str, str]) -> None:
    """Ink, grid, paper and bands as on this ``paper``, whichever they were drawn for; other colours stay."""
    table = {colour: paper[name] for known in (LIGHT, DARK) for name, colour in known.items()}
    table |= {_BLACK: paper["ink"], _GRID: paper["grid"]}

    def on(colour: Any) -> Any:
        if isinstance(colour, str) and colour in {"none", "auto"}:
            return colour
        rgba = to_rgba(colour)
        found = table.get(to_hex(rgba))
        return colour if found is None else to_rgba(found, rgba[3])

    for axes in figure.axes:
        axes.tick_params(which="both", color=paper["ink"], labelcolor=paper["ink"], grid_color=paper["grid"])
    for artist in figure.findobj():
        if isinstance(artist, Text):
            artist.set_color(on(artist.get_color()))
        elif isinstance(artist, Line2D):
            artist.set_color(on(artist.get_color()))
            artist.set_markerfacecolor(on(artist.get_markerfacecolor()))
            artist.set_markeredgecolor(on(artist.get_markeredgecolor()))
        elif isinstance(artist, Patch):
            filled = artist.get_fill()
            artist.set_facecolor(on(artist.get_facecolor()))
            artist.set_edgecolor(on(artist.get_edgecolor()))
            artist.set_fill(filled)
        elif isinstance(artist, Collection):
            artist.set_facecolor([on(colour) for colour in artist.get_facecolor()])
            artist.set_edgecolor([on(colour) for colour in artist.get_edgecolor()])

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.answers.making import HOSTILE, column, released

from defocus.answers.columns import noisy
from defocus.answers.pictures import DARK as NIGHT
from defocus.answers.pictures import LIGHT
from defocus.answers.plots import COLOURS, TEAL, Look, blank, burn_down, curve, wrapped
from defocus.errors import InvalidParameterError, MissingExtraError
from defocus.privacy import Remaining


def luminance(colour: str) -> float:
    """As WCAG 2.2 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("paper", [LIGHT, NIGHT])
def test_letters_and_colours_are_seen_on_light_and_dark_paper(paper: dict[str, str]) -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    for letters in ("ink", "muted"):
        assert contrast(paper[letters], paper["paper"]) >= 4.5  # WCAG 1.4.3
    for colour in (TEAL, *COLOURS):
        assert contrast(colour, paper["paper"]) >= 3  # WCAG 1.4.11
    assert contrast(paper["ink"], paper["pale"]) >= 4.5


def test_a_curve_has_a_band_of_intervals_around_its_points() -> None:
    made = column(values=np.arange(100.0))
    (axes,) = curve(range(100), made, by="degree $d$").axes
    assert axes.lines[0].get_ydata().tolist() == made.values.tolist()
    (band,) = axes.collections
    assert band.get_datalim(axes.transData).y0 == made.low.min()
    assert axes.get_xlabel() == r"degree \$d\$"
    assert axes.get_xscale() == axes.get_yscale() == "symlog"


@pytest.mark.parametrize("charges", [0, 1, 12, 300])
def test_the_burn_down_has_a_step_for_each_charge(charges: int) -> None:
    left, deltas = np.linspace(3, 0, charges + 1), np.linspace(1e-6, 0, charges + 1)
    remaining = [Remaining(epsilon, 1.0, delta) for epsilon, delta in zip(left, deltas, strict=True)]
    figure = burn_down(remaining, [f"charge {i}" for i in range(charges + 1)])
    drawn = [axes.patches[0].get_data().values.tolist() for axes in figure.axes]
    assert drawn == [list(left), list(deltas)]
    assert len(figure.axes[-1].get_xticks()) <= 13
    assert f"charge {charges}: epsilon {left[-1]:.4g}" in figure.told()
    pure = burn_down([Remaining(epsilon, 1.0, 0.0) for epsilon in left], ["x"] * (charges + 1))
    assert [axes.get_ylabel() for axes in pure.axes] == ["epsilon left"]


def test_data_sets_of_a_burn_down_differ_by_pattern_and_not_by_colour_alone() -> None:
    left = [Remaining(epsilon, 1.0, 0.0) for epsilon in (3.0, 2.0, 1.0)]
    (axes,) = burn_down(left, ["start", "1", "2"], ["visits", "calls"]).axes
    taken = [patch for patch in axes.patches if getattr(patch, "get_height", int)()]
    assert len({patch.get_hatch() for patch in taken}) == 2


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"defocus\[plot\]"):
        blank(1, 1)


@pytest.mark.parametrize("bad", [{"width": 10}, {"width": float("nan")}, {"confidence": 1}, {"confidence": 0}])
def test_a_look_that_means_nothing_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError):
        Look.of(**{"width": 640, "dark": False, "confidence": 0.95, **bad})


def test_long_texts_are_broken_to_the_width_and_cut() -> None:
    lines = wrapped("word " * 400, Look(width=400), size=8).split("\n")
    assert len(lines) == 6
    assert max(map(len, lines)) <= 64
    assert lines[-1].endswith("…")
    assert wrapped("a\x1b[2J\n$b$", Look(), size=8) == "a\\x1b[2J\n\\$b\\$"


class Fonts:
    """Stands for what is installed: names and the letters they have."""

    def __init__(self, **letters: str) -> None:
        self.letters = {"DejaVu": "abc", **letters}
        self.looked_at: list[str] = []

    def get_font(self, file: str) -> Any:
        self.looked_at.append(file)
        if file == "broken":
            raise OSError
        return SimpleNamespace(get_charmap=lambda: {ord(letter): 1 for letter in self.letters[file]})


def test_letters_are_drawn_in_a_font_that_is_installed_and_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fonts = Fonts(other="xyz", han="人数科室内外", broken="")
    listed = [SimpleNamespace(name=name, fname=name) for name in ("broken", "han", "other")]
    monkeypatch.setattr("matplotlib.font_manager.fontManager.ttflist", listed)
    monkeypatch.setattr("matplotlib.font_manager.get_font", fonts.get_font)
    monkeypatch.setattr("matplotlib.font_manager.findfont", lambda *_, **__: "DejaVu")
    people = noisy("人数", [1.0, 2.0], error=1.0, half=2.0, how="Laplace")
    figure = released(tmp_path, {"科室": ["内科", "外科"]}, people).plot()
    labels = figure.axes[0].get_yticklabels()
    assert [label.get_text() for label in labels] == ["内科", "外科"]
    assert {tuple(label.get_fontfamily()) for label in labels} == {("DejaVu Sans", "han")}
    assert figure.outlines  # a reader may lack the font
    assert fonts.looked_at == ["DejaVu", "broken", "han"]
    plain = released(tmp_path, {"ward": ["a", "b"]}, people).plot("人数")
    assert not plain.axes[0].get_yticklabels()[0].get_text().strip("ab")


def test_hostile_labels_and_missing_numbers_are_drawn_as_they_are(tmp_path: Path) -> None:
    n = len(HOSTILE)
    values = np.array([np.nan, np.inf, *range(n - 2)])
    figure = released(tmp_path, {"$k$": HOSTILE}, column(values=values)).plot()
    shown = [tick.get_text().replace(r"\$", "$") for tick in figure.axes[0].get_yticklabels()]
    assert shown[:4] == ["<script>alert(1)</scrip…", "=HYPERLINK(1)", "+1", "-1"]
    assert "\\x1b[2Jgone" in shown
    assert "$x^2$" in shown
    assert "''" in shown

import sys
from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from tests.answers.making import HOSTILE, column, released

from defocus.answers.columns import noisy
from defocus.answers.plots import MOST, bars, blank, burn_down, curve, drawn, embedded
from defocus.errors import MissingExtraError
from defocus.privacy import Remaining


def test_bars_stand_for_the_values_with_their_intervals_and_are_pale_where_noise_drowns_them() -> None:
    made = column()
    figure = bars(["surgery", "cardiology", "oncology"], [made, made], [0, 1, 2], threshold=0.1, by="ward")
    axes, _ = figure.axes
    assert [bar.get_width() for bar in axes.patches] == [1041.2, -3.7, 220.0]
    assert len({bar.get_facecolor() for bar in axes.patches}) == 2
    (intervals,) = axes.containers[1].lines[2]
    ends = np.array([segment[:, 0] for segment in intervals.get_segments()])
    assert ends == pytest.approx(np.stack([made.low, made.high], axis=1))
    (plain,) = bars(["a"], [made], [0], by="ward").axes
    assert "pale" not in plain.figure.get_supxlabel()


def test_a_curve_has_a_band_of_intervals_around_its_points() -> None:
    made = column(values=np.arange(100.0))
    (axes,) = curve(range(100), made, by="degree $d$").axes
    assert axes.lines[0].get_ydata().tolist() == made.values.tolist()
    (band,) = axes.collections
    assert band.get_datalim(axes.transData).y0 == made.low.min()
    assert axes.get_xlabel() == r"degree \$d\$"
    assert axes.get_xscale() == axes.get_yscale() == "symlog"


def test_of_many_groups_the_largest_are_drawn_with_a_note() -> None:
    values = np.arange(100.0)
    many = column(values=-values)
    shown = drawn(many)
    assert shown == list(range(MOST))
    many = column(values=values)
    shown = drawn(many)
    figure = bars([str(i) for i in shown], [many], shown, threshold=0.1, by="k")
    (axes,) = figure.axes
    assert [bar.get_width() for bar in axes.patches] == list(values[-MOST:])
    assert f"the {MOST} of 100 groups with the largest visits" in figure.get_supxlabel()


def test_hostile_labels_and_missing_numbers_are_drawn_as_they_are() -> None:
    n = len(HOSTILE)
    values = np.array([np.nan, np.inf, *range(n - 2)])
    figure = bars(HOSTILE, [column(values=values)], range(n), threshold=0.1, by="$k$")
    picture = embedded(figure, "bars")
    assert picture.startswith('<img alt="bars" src="data:image/png;base64,iVBOR')
    assert [tick.get_text().replace(r"\$", "$") for tick in figure.axes[0].get_yticklabels()] == HOSTILE


@pytest.mark.parametrize("charges", [0, 1, 12, 300])
def test_the_burn_down_has_a_step_for_each_charge(charges: int) -> None:
    left, deltas = np.linspace(3, 0, charges + 1), np.linspace(1e-6, 0, charges + 1)
    remaining = [Remaining(epsilon, 1.0, delta) for epsilon, delta in zip(left, deltas, strict=True)]
    figure = burn_down(remaining, [f"charge {i}" for i in range(charges + 1)])
    drawn = [axes.patches[0].get_data().values.tolist() for axes in figure.axes]
    assert drawn == [list(left), list(deltas)]
    assert len(figure.axes[-1].get_xticks()) <= 13
    pure = burn_down([Remaining(epsilon, 1.0, 0.0) for epsilon in left], ["x"] * (charges + 1))
    assert [axes.get_ylabel() for axes in pure.axes] == ["epsilon left"]
    assert embedded(figure, "x")


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"defocus\[plot\]"):
        blank(1, 1)


def test_a_column_along_days_is_drawn_as_a_line_with_every_day(tmp_path: Path) -> None:
    days = pa.array([date(2024, 1, 1) + timedelta(days=i) for i in range(60)])
    numbers = np.arange(60.0)
    columns = [noisy(name, numbers, error=1.0, half=2.0, how="Laplace") for name in ("visits", "stays")]
    figure = released(tmp_path, {"day": days}, *columns).plot()
    assert [axes.get_ylabel() for axes in figure.axes] == ["visits", "stays"]
    for axes in figure.axes:
        assert not axes.patches
        assert axes.lines[0].get_ydata().tolist() == numbers.tolist()


def test_days_that_are_not_all_there_are_bars(tmp_path: Path) -> None:
    days = pa.array([date(2024, 1, 1), None])
    visits = noisy("visits", [1.0, 2.0], error=1.0, half=2.0, how="Laplace")
    assert released(tmp_path, {"day": days}, visits).plot().axes[0].patches


def test_names_in_chinese_are_drawn_with_a_font_that_has_them_where_one_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fonts = [SimpleNamespace(name=name) for name in ("Noto Sans CJK SC", "DejaVu Sans", "Comic Neue")]
    monkeypatch.setattr("matplotlib.font_manager.fontManager.ttflist", fonts)
    people = noisy("人数", [1.0, 2.0], error=1.0, half=2.0, how="Laplace")
    figure = released(tmp_path, {"科室": ["内科", "外科"]}, people).plot()
    labels = figure.axes[0].get_yticklabels()
    assert [label.get_text() for label in labels] == ["内科", "外科"]
    assert {tuple(label.get_fontfamily()) for label in labels} == {("DejaVu Sans", "Noto Sans CJK SC")}

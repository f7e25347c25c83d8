import itertools
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.image import imread
from tests.answers.making import HOSTILE, charged, column

from defocus.answers import Released, Tails
from defocus.answers.charts import binned, chart, moments
from defocus.answers.plots import MOST, Look
from defocus.errors import InvalidParameterError


def answered(folder: Path, keys: Any, *columns: Any, **more: Any) -> Released:
    given: dict[str, Any] = {"threshold": 0.1, "things": ("group", "groups"), **more}
    return Released(keys, columns, "visits", charged(folder), **given)


def bars_of(axes: Any) -> list[float]:
    return [bar.get_width() for bar in axes.patches if bar.get_height()]


def segments(axes: Any) -> Any:
    """The ends of all error bars of a panel."""
    return [bar.lines[2][0].get_segments() for bar in axes.containers if hasattr(bar, "has_xerr")]


def test_bars_stand_for_the_values_with_their_intervals_and_are_hollow_where_noise_drowns_them(tmp_path: Path) -> None:
    made = column()
    (axes,) = answered(tmp_path, {"ward": ["surgery", "cardiology", "oncology"]}, made).plot().axes
    assert bars_of(axes) == [1041.2, -3.7, 220.0]
    faces = [bar.get_facecolor()[:3] for bar in axes.patches]
    assert faces[1] == (1, 1, 1)
    assert faces[0] == faces[2] != faces[1]
    ends = np.array([segment[:, 0] for segment in segments(axes)[0]])
    assert ends == pytest.approx(np.stack([made.low, made.high], axis=1))
    plain = answered(tmp_path, {"ward": ["a", "b", "c"]}, made, threshold=None).plot()
    assert "hollow" not in plain.get_supxlabel()
    assert "95 % intervals" in plain.get_supxlabel()


def test_intervals_of_another_confidence_are_drawn_and_named(tmp_path: Path) -> None:
    made = replace(column(), tails=Tails.NORMAL)
    answer = answered(tmp_path, {"ward": ["a", "b", "c"]}, made)
    narrow, wide = (answer.plot(confidence=level) for level in (0.5, 0.999))
    reaches = [np.ptp(segments(figure.axes[0])[0][0][:, 0]) for figure in (narrow, answer.plot(), wide)]
    assert reaches == sorted(reaches)
    assert "50 % intervals" in narrow.get_supxlabel()
    assert "99.9 % intervals" in wide.told()
    low, high = answer.interval(0.999)
    assert reaches[2] == pytest.approx(high[0] - low[0])
    with pytest.raises(InvalidParameterError):
        answer.plot(confidence=1)
    with pytest.raises(InvalidParameterError, match=r"no interval with 99\.9 %"):
        answered(tmp_path, {"ward": ["a", "b", "c"]}, column()).plot(confidence=0.999)


DAYS = [date(2024, 1, 1) + timedelta(days=i) for i in range(60)]


@pytest.mark.parametrize(
    ("name", "values", "first", "last"),
    [
        ("day", pa.array(DAYS), 19723, 19782),
        ("at", pa.array([datetime(2024, 1, 1, 12), datetime(2024, 1, 2)]), 19723.5, 19724),  # noqa: DTZ001
        ("at", pa.array([datetime(2024, 1, 1, 12, tzinfo=UTC)] * 2), 19723.5, 19723.5),
        ("at", pa.chunked_array([pa.array(DAYS[:2]), pa.array(DAYS[2:4])]), 19723, 19726),
        ("m", ["2024-01", "2024-02"], 19723, 19754),
        ("q", ["2024Q1", "2024-Q2"], 19723, 19814),
        ("y", ["2023", "2024"], 19358, 19723),
        ("d", ["2024-01-01", "2024-01-02"], 19723, 19724),
        ("year", [2010, 2024], 2010, 2024),
        ("birth_year", pa.array([2010, 2024], pa.int32()), 2010, 2024),
        ("month", [1, 12], 1, 12),
        ("hour", [0, 23], 0, 23),
    ],
)
def test_what_lies_along_time(name: str, values: Any, first: float, last: float) -> None:
    found = moments(name, values)
    assert found is not None
    assert (found.places[0], found.places[-1]) == pytest.approx((first, last))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("ward", [3, 17]),
        ("year", [1, 2]),
        ("monthly_income", [1000, 2000]),
        ("code", ["2024-13", "2024-01"]),
        ("code", ["2024-01", "A"]),
        ("q", ["2024Q1", "2024-Q1"]),
        ("day", [None, None, date(2024, 1, 1)]),
        ("day", pa.array([2**40, 2**41], pa.timestamp("s"))),
        ("ward", [True, False]),
        ("ward", []),
        ("n", [2**70, 2**71]),
    ],
)
def test_what_lies_along_no_time(name: str, values: Any) -> None:
    assert moments(name, values) is None


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.none(), st.text(), st.integers(), st.floats(), st.dates(), st.datetimes()), max_size=5))
def test_no_keys_make_the_search_for_time_fail(values: list[Any]) -> None:
    found = moments("month", values)
    assert found is None or len(found.places) == len(values)


def test_a_column_along_days_is_a_line_with_every_day(tmp_path: Path) -> None:
    numbers = np.arange(60.0)
    both = [column(name, numbers, 1.0) for name in ("visits", "stays")]
    figure = answered(tmp_path, {"day": pa.array(DAYS)}, *both).plot()
    assert [axes.get_ylabel() for axes in figure.axes] == ["visits", "stays"]
    for axes in figure.axes:
        assert not axes.patches
        assert axes.lines[0].get_ydata().tolist() == numbers.tolist()
        (band,) = axes.collections
        assert band.get_datalim(axes.transData).y1 == both[0].high.max()
    assert figure.axes[1].get_xlabel() == "day"


def test_a_line_breaks_where_a_series_has_no_number_and_missing_moments_are_told(tmp_path: Path) -> None:
    keys = {"month": ["2024-01", "2024-02", "2024-04", "2024-03", None], "ward": ["a", "a", "a", "b", "b"]}
    figure = answered(tmp_path, keys, column(values=[1.0, 2, 3, 4, 5], errors=0.1)).plot()
    (axes,) = figure.axes
    first = axes.lines[0].get_ydata()
    assert first[[0, 1, 3]].tolist() == [1, 2, 3]
    assert np.isnan(first[2])
    assert "not drawn: NULL, b (visits 5)" in figure.get_supxlabel().replace("\n", " ")


def test_points_that_noise_drowns_are_hollow_on_lines_too(tmp_path: Path) -> None:
    (axes,) = answered(tmp_path, {"year": [2020, 2021, 2022]}, column(values=[1.0, 500, 500])).plot().axes
    faces = {line.get_markerfacecolor(): line.get_xdata().tolist() for line in axes.lines[1:]}
    assert faces["#ffffff"] == [2020]
    assert sorted(map(len, faces.values())) == [1, 2]


WARDS, SEXES = ["surgery", "cardiology", "oncology"], ["women", "men"]


def test_two_keys_are_bars_side_by_side_told_apart_by_patterns(tmp_path: Path) -> None:
    keys = {"ward": [w for w in WARDS for _ in SEXES], "sex": SEXES * 3}
    (axes,) = answered(tmp_path, keys, column(values=range(100, 700, 100), errors=1)).plot().axes
    assert [tick.get_text() for tick in axes.get_yticklabels()] == WARDS
    assert bars_of(axes) == [100, 300, 500, 200, 400, 600]
    assert len({patch.get_hatch() for patch in axes.patches}) == 2
    assert [text.get_text() for text in axes.get_legend().get_texts()] == SEXES
    assert axes.get_legend().get_title().get_text() == "sex"
    assert len(segments(axes)) == 2


def test_three_keys_and_several_columns_are_panels_on_one_scale(tmp_path: Path) -> None:
    rows = [(w, s, y) for w in WARDS for s in SEXES for y in ("x", "y", "z", "u")]
    keys = dict(zip(("ward", "sex", "class"), map(list, zip(*rows, strict=True)), strict=True))
    numbers = np.arange(1.0, 25)
    figure = answered(tmp_path, keys, column("n", numbers, 0.01), column("m", numbers, 0.01)).plot(width=1200)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [f"{name}: {ward}" for name in "nm" for ward in WARDS]
    assert sorted(bar for axes in figure.axes[:3] for bar in bars_of(axes)) == numbers.tolist()
    assert len({axes.get_xlim() for axes in figure.axes[:3]}) == 1


def test_lines_of_many_series_have_panels_and_what_is_left_out_is_told(tmp_path: Path) -> None:
    years, regions = range(2010, 2020), [f"r{i:02d}" for i in range(15)]
    keys = {"year": [y for y in years for _ in regions], "region": regions * 10}
    figure = answered(tmp_path, keys, column(values=np.arange(150.0))).plot()
    assert [axes.get_title() for axes in figure.axes] == [f"visits: {region}" for region in regions[:12]]
    assert "the first 12 of 15 panels" in figure.get_supxlabel()
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    for number, axes in enumerate(figure.axes):
        assert axes.lines[0].get_ydata().tolist() == list(range(number, 150, 15))


def test_many_numbers_are_a_line_without_holes_and_many_names_are_the_largest_with_a_note(tmp_path: Path) -> None:
    values = np.arange(100.0)
    (axes,) = answered(tmp_path, {"age": list(range(100))}, column(values=values)).plot().axes
    assert axes.lines[0].get_ydata().tolist() == values.tolist()
    figure = answered(tmp_path, {"ward": [f"w{i}" for i in range(100)]}, column(values=values)).plot()
    assert bars_of(figure.axes[0]) == list(values[-MOST:])
    assert f"the {MOST} of 100 groups with the largest visits" in figure.get_supxlabel()


def test_of_very_many_names_only_those_drawn_are_spelt(tmp_path: Path) -> None:
    values = np.arange(60_000.0)
    keys = {"ward": pa.array([f"w{i}" for i in range(60_000)]), "sex": pa.array(["f"] * 60_000)}
    figure = answered(tmp_path, keys, column(values=values)).plot()
    assert "the 25 of 60000 groups with the largest visits" in figure.get_supxlabel()
    assert bars_of(figure.axes[0]) == list(values[-MOST:])


def hist(name: str, edges: list[float], *rows: list[float]) -> list[Any]:
    pairs = itertools.pairwise(edges)
    return [
        column(f"{name}_{a:g}_to_{b:g}", part, 1.0) for (a, b), part in zip(pairs, zip(*rows, strict=True), strict=True)
    ]


def test_a_histogram_has_a_bar_between_each_two_edges(tmp_path: Path) -> None:
    figure = answered(tmp_path, {}, *hist("age", [0, 18, 65, 1e6], [30, 200, 5])).plot()
    (axes,) = figure.axes
    assert [(bar.get_x(), bar.get_width(), bar.get_height()) for bar in axes.patches] == [
        (0, 18, 30),
        (18, 47, 200),
        (65, 1e6 - 65, 5),
    ]
    assert axes.patches[2].get_facecolor()[:3] == (1, 1, 1)
    assert len(segments(axes)[0]) == 3
    assert "age_18_to_65 200 (198 to 202)" in figure.told()


def test_histograms_of_groups_or_of_columns_with_the_same_edges_are_in_one_plot(tmp_path: Path) -> None:
    groups = hist("age", [0, 18, 65], [30, 20], [40, 50])
    (axes,) = answered(tmp_path, {"sex": SEXES}, *groups).plot().axes
    assert [step.get_data().values.tolist() for step in axes.patches] == [[30, 20], [40, 50]]
    assert len({step.get_linestyle() for step in axes.patches}) == 2
    assert [text.get_text() for text in axes.get_legend().get_texts()] == SEXES
    both = [*hist("age", [0, 18, 65], [30, 20]), *hist("wait", [0, 18, 65], [1, 2]), column("n", [3.0])]
    figure = answered(tmp_path, {}, *both).plot()
    assert len(figure.axes) == 1
    assert "not drawn: n" in figure.get_supxlabel()
    apart = [*hist("age", [0, 18, 65], [30, 20]), *hist("wait", [0, 5, 9], [1, 2])]
    assert [axes.get_xlabel() for axes in answered(tmp_path, {}, *apart).plot().axes] == ["age", "wait"]
    many = hist("age", [0, 18, 65], *[[float(i), i] for i in range(20)])
    figure = answered(tmp_path, {"ward": [f"w{i}" for i in range(20)]}, *many).plot()
    assert len(figure.axes) == 12
    assert "the first 12 of 20 groups" in figure.get_supxlabel()


@pytest.mark.parametrize("names", [["a_0_to_1"], ["a_0_to_x", "a_x_to_2"], ["a_0_to_1", "a_2_to_3"], ["a", "b"]])
def test_other_columns_are_no_histogram(names: list[str]) -> None:
    assert not binned([column(name) for name in names])


def test_survival_and_streams_are_steps() -> None:
    figure = chart({"time": [0.0, 1.0, 2.5]}, [column(values=[1.0, 0.5, 0.2], errors=0.1)], Look(), steps=True)
    assert figure.axes[0].lines[0].get_drawstyle() == "steps-post"
    keys = {"ward": ["a", "a", "b", "b"], "time": [0.0, 1.0, 0.0, 1.0]}
    figure = chart(keys, [column(values=[1.0, 0.5, 0.2, 0.1], errors=0.1)], Look(), steps=True)
    assert len(figure.axes[0].collections) == 2
    assert figure.axes[0].get_xlabel() == "time"


@pytest.mark.slow
@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_pictures_are_as_wide_as_asked_and_hostile_names_stay_names(tmp_path: Path, width: int, number: int) -> None:
    names = HOSTILE[:number]
    rows = [[key] for key in HOSTILE]
    keys = {name: [row[0] for row in rows] for name in names}
    figure = answered(tmp_path, keys, column("<b>$x$</b>\x1b", range(len(rows)))).plot(width=width, dark=True)
    target = tmp_path / "picture.png"
    figure.savefig(target)
    assert imread(target).shape[1] == width

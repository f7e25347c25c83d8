import numpy as np

from defocus.audit.codings import Split
from defocus.audit.columns import read
from defocus.audit.picture import Picture, draw, sketch

SPLIT = Split(n=400, learn=100, train=200)


def test_numbers_get_bars_between_edges() -> None:
    rng = np.random.default_rng(1)
    picture = sketch(read((rng.normal(0, 1, 400), rng.normal(5, 1, 400)), 200), SPLIT)
    assert picture.of == "output"
    assert len(picture.marks) == len(picture.first) + 1 == len(picture.second) + 1
    assert np.argmax(picture.first) < np.argmax(picture.second)


def test_few_values_get_a_bar_each() -> None:
    picture = sketch(read((np.zeros(400, dtype=int), np.ones(400, dtype=int)), 200), SPLIT)
    assert picture == Picture("output", ("0", "1", "another value"), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0))


def test_the_kind_of_output_is_shown_where_it_varies() -> None:
    picture = sketch(read(([None] * 400, [1.0] * 400), 200), SPLIT)
    assert picture.of == "kind of output"
    assert picture.marks[:2] == ("NoneType", "float")


def test_a_constant_answer_has_a_picture_too() -> None:
    assert sketch([], SPLIT).first == (1.0,)
    assert sketch(read((["x"] * 400, ["x"] * 400), 200), SPLIT).second == (1.0,)


def test_values_that_are_never_finite_have_a_picture_too() -> None:
    outputs = np.full(400, np.nan)
    picture = sketch(read((outputs, outputs), 200), SPLIT)
    assert draw(picture, title="all NaN").axes


def test_drawing_shows_both_data_sets() -> None:
    figure = draw(Picture("output", ("a", "b"), (1.0, 0.0), (0.5, 0.5)), title="two letters")
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["first data set", "second data set"]
    assert axes.get_title() == "two letters"

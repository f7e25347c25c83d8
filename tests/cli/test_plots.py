"""The growth of epsilon as a picture."""

import math
import sys
from pathlib import Path
from typing import Any

import pytest

from defocus.cli.plots import curve, growth, once, ready, save, steps
from defocus.errors import InvalidParameterError, MissingExtraError
from defocus.privacy import NOTHING, Adjacency, Gaussian, Laplace, Sampled


def test_the_repeated_part_is_found() -> None:
    assert once(1000 * Laplace(2)) == (Laplace(2), 1000)
    assert once(20 * Laplace(2) + 30 * Gaussian(1)) == (2 * Laplace(2) + 3 * Gaussian(1), 10)
    assert once(Laplace(2)) == (Laplace(2), 1)
    assert once(NOTHING) == (NOTHING, 1)


@pytest.mark.parametrize("largest", [1, 2, 100, 10**6])
def test_steps_rise_from_one_to_the_largest(largest: int) -> None:
    found = steps(largest)
    assert found[0] == 1
    assert found[-1] == largest
    assert found == sorted(set(found))


def test_the_better_accountants_grow_like_the_square_root() -> None:
    at_first, four_times = curve(Gaussian(100), 1e-6, "pld", Adjacency.ADD_REMOVE, [256, 1024]) or (0, 0)
    assert four_times / at_first == pytest.approx(2, rel=0.15)
    at_first, four_times = curve(Laplace(100), 0, "basic", Adjacency.ADD_REMOVE, [256, 1024]) or (0, 0)
    assert four_times / at_first == pytest.approx(4)


def test_an_accountant_that_cannot_say_has_no_curve() -> None:
    assert curve(Sampled(Gaussian(1), 0.1), 1e-6, "gdp", Adjacency.ADD_REMOVE, [1]) is None


def test_the_figure_has_a_line_for_each_accountant_and_one_for_the_root() -> None:
    figure = growth(100 * Laplace(20), 1e-6, Adjacency.ADD_REMOVE, ("pld", "basic", "gdp"))
    (axes,) = figure.axes
    labels = [line.get_label() for line in axes.lines]
    assert labels == ["pld", "basic", "square root of T"]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert all(math.isfinite(y) for line in axes.lines for y in line.get_ydata())


def test_a_figure_with_nothing_to_show_is_still_a_figure(tmp_path: Path) -> None:
    save(growth(Gaussian(1), 0, Adjacency.ADD_REMOVE, ("pld",)), tmp_path / "empty.pdf")
    assert (tmp_path / "empty.pdf").read_bytes()[:4] == b"%PDF"


def test_the_ending_decides_the_format() -> None:
    with pytest.raises(InvalidParameterError, match=r"ends in \.gif") as caught:
        save(None, Path("growth.gif"))
    assert "--plot growth.png" in caught.value.fix


def test_a_missing_matplotlib_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    missing: Any = None
    monkeypatch.setitem(sys.modules, "matplotlib.figure", missing)
    with pytest.raises(MissingExtraError, match="matplotlib"):
        growth(Laplace(1), 0, Adjacency.ADD_REMOVE, ("basic",))
    with pytest.raises(MissingExtraError, match="matplotlib"):
        ready(Path("growth.png"))


def test_a_folder_that_is_not_there_is_told_before_anything_is_drawn(tmp_path: Path) -> None:
    ready(tmp_path / "growth.svg")
    with pytest.raises(InvalidParameterError, match="no folder"):
        ready(tmp_path / "plots" / "growth.svg")

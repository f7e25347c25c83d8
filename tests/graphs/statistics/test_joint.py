from typing import Any

import pytest

from defocus.errors import DefocusError
from defocus.graphs.statistics import Degrees, Edges, Histogram, Stars, Triangles
from defocus.graphs.statistics.joint import NAMES, named


def test_every_name_stands_for_its_statistic() -> None:
    assert [named(name) for name in NAMES] == [Edges(), Triangles(), Histogram(), Degrees(), Stars(2)]
    assert named("stars_12") == Stars(12)


@pytest.mark.parametrize(
    "name", ["", "stars_", "stars_²", "stars_٣", "stars_100", "stars_2 ", "stars_-2", None, 3, b"edges"]
)
def test_other_names_stand_for_nothing(name: Any) -> None:
    assert named(name) is None


def test_stars_of_no_sensible_size_are_refused() -> None:
    with pytest.raises(DefocusError, match="k"):
        named("stars_13")

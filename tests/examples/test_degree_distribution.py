"""The example of degree distributions, true and private."""

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from defocus import edge, node
from defocus.noise.testing import seeded

EXAMPLE = Path(__file__).parents[2] / "examples" / "degree_distribution.py"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


def test_the_graphs_have_the_shapes_that_their_names_say(example: dict[str, Any]) -> None:
    steep, even = example["power_law"](2000), example["random_graph"](2000)
    assert steep.edges == pytest.approx(5 * 2000, rel=0.05)
    assert even.edges == pytest.approx(5 * 2000, rel=0.05)
    assert steep.degrees.max() > 70
    assert even.degrees.max() < 30


def test_nodes_of_a_degree_or_more_are_added_up_from_the_end(example: dict[str, Any]) -> None:
    assert example["at_least"](np.array([4, 0, 2, 1])).tolist() == [7, 3, 3, 1]


def test_private_histograms_resemble_the_true_ones(example: dict[str, Any]) -> None:
    graph = example["power_law"](2000)
    near, far = (example["private"](graph, edge(), epsilon, seeded(1)) for epsilon in (1.0, 0.01))
    assert example["distance"](graph, near) < 0.1 < example["distance"](graph, far)
    people = example["private"](graph, node(), 4.0, seeded(1))
    assert example["distance"](graph, people) < 0.6
    assert example["distance"](graph, np.bincount(graph.degrees).astype(float)) == 0


@pytest.mark.slow
def test_it_prints_a_table_and_draws_a_plot(
    example: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example["main"](str(tmp_path / "plot.svg"), 400)
    out = capsys.readouterr().out
    assert "power law" in out
    assert "epsilon 0.1" in out
    assert "<svg" in (tmp_path / "plot.svg").read_text(encoding="utf-8")

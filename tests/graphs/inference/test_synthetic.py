"""Synthetic graphs have the degrees and the mixing they are made from."""

import numpy as np
import pytest

from defocus.errors import DefocusError
from defocus.graphs.inference import synthetic_graph
from defocus.graphs.inference.synthetic import _poisson
from defocus.noise.testing import seeded


def test_degrees_are_those_asked_for_on_average() -> None:
    wanted = np.concatenate([np.full(50, 60.0), np.full(950, 6.0)])
    made = np.mean([synthetic_graph(wanted, bits=seeded(s)).degrees for s in range(8)], axis=0)
    assert made[:50].mean() == pytest.approx(60, rel=0.1)
    assert made[50:].mean() == pytest.approx(6, rel=0.05)


def test_blocks_mix_as_asked() -> None:
    labels = ["a"] * 200 + ["b"] * 200
    graph = synthetic_graph(np.full(400, 10.0), labels=labels, mixing=[[900, 200], [200, 900]], bits=seeded(1))
    left, right = graph.pairs()
    across = int(((left < 200) != (right < 200)).sum())
    assert across == pytest.approx(200, abs=60)
    assert graph.edges == pytest.approx(2000, rel=0.08)


def test_noisy_degrees_of_any_sign_are_taken() -> None:
    graph = synthetic_graph([-5.0, 3.3, 0.2, 100.0, np.nan], bits=seeded(1))
    assert graph.nodes == 5


def test_nobody_has_no_edges() -> None:
    assert synthetic_graph([0, 0, 0]).edges == 0
    assert synthetic_graph([]).nodes == 0


@pytest.mark.statistical
@pytest.mark.parametrize("mean", [0.3, 20.0, 5000.0])
def test_poisson_numbers_are_such(mean: float) -> None:
    bits = seeded(2)
    drawn = np.array([_poisson(mean, bits) for _ in range(3000)])
    assert abs(drawn.mean() - mean) < 5 * np.sqrt(mean / 3000) + 0.01
    assert drawn.var() == pytest.approx(mean, rel=0.15)


def test_labels_without_mixing_and_mixing_of_the_wrong_size_are_refused() -> None:
    with pytest.raises(DefocusError, match="Blocks need"):
        synthetic_graph([1, 1], labels=["a", "b"])
    with pytest.raises(DefocusError, match="2 rows and columns"):
        synthetic_graph([1, 1], labels=["a", "b"], mixing=[[1]])
    with pytest.raises(DefocusError, match="Blocks need"):
        synthetic_graph([1, 1], labels=["a"], mixing=[[1]])

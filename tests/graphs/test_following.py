"""Noise that follows the graph, and intervals that rest on no guess."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from defocus import Budget, edge, privacy
from defocus.graphs import Public, build
from defocus.graphs.asking import AskStars, AskTriangles
from defocus.graphs.data import Data
from defocus.graphs.following import MeasuredRamp
from defocus.graphs.questions import Method
from defocus.graphs.statistics import Stars, Triangles
from defocus.noise.testing import seeded

HUBS = build(403, np.repeat(np.arange(3), 400), np.tile(np.arange(3, 403), 3))
"""Three nodes that share four hundred neighbours: far above the guess of 80."""


def named(methods: Any, name: str) -> Method:
    found: Method = next(method for method in methods if method.name == name)
    return found


@pytest.mark.statistical
@pytest.mark.parametrize("ask", [AskTriangles(), AskStars(2), AskStars(3)])
def test_measured_intervals_hold_where_the_guess_is_far_off(ask: Any) -> None:
    truth = int((Triangles() if isinstance(ask, AskTriangles) else Stars(ask.k)).exact(HUBS)[0])
    methods = ask.methods(Public(edge(), HUBS.nodes), Budget(1))
    data, bits = Data.of(HUBS), seeded(5)
    held = {}
    for name in ("ramp, measured", "ramp"):
        method = named(methods, name)
        columns = [method.run(data, bits).columns[0] for _ in range(150)]
        held[name] = np.mean([column.low[0] <= truth <= column.high[0] for column in columns])
    assert held["ramp, measured"] >= 0.91
    if isinstance(ask, AskTriangles):
        assert held["ramp"] < 0.9, "the guess should be far off here, or the test shows nothing"


def test_both_parts_are_paid_for() -> None:
    method = named(AskTriangles().methods(Public(edge(), 1000), Budget(2)), "ramp, measured")
    assert isinstance(method, MeasuredRamp)
    assert method.ramp.epsilon == Fraction(9, 5)
    assert method.level.epsilon == Fraction(1, 5)
    assert privacy.account(method.event).epsilon(0) == pytest.approx(2)
    assert "with 99 % probability" in method.run(Data.of(build(1000, [0], [1])), seeded(1)).notes[0]


def test_the_default_pays_for_the_answer_alone() -> None:
    methods = AskTriangles().methods(Public(edge(), 1000), Budget(1))
    assert min(methods, key=lambda method: method.error).name == "ramp"
    (rule,) = named(methods, "ramp").rules
    assert "ramp, measured" in rule


@pytest.mark.parametrize("nodes", [3, 4, 5, 40, 10**6])
def test_guesses_fit_the_graph(nodes: int) -> None:
    for method in AskTriangles().methods(Public(edge(), nodes), Budget(1, 1e-6)):
        assert method.error > 0
        assert method.interval >= 0

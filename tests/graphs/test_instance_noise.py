"""Noise that follows the graph, and intervals that rest on no guess."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from defocus import Budget, edge, privacy
from defocus.errors import DefocusError
from defocus.graphs import Public, build
from defocus.graphs.data import Data
from defocus.graphs.noise import MEASURED, MeasuredRamp
from defocus.graphs.question import Method, chosen, foretold, silent
from defocus.graphs.questions import AskStars, AskTriangles
from defocus.graphs.statistics import Stars, Triangles
from defocus.noise.testing import seeded
from defocus.privacy.accounting import tightest
from defocus.privacy.units import Adjacency

HUBS = build(403, np.repeat(np.arange(3), 400), np.tile(np.arange(3, 403), 3))
"""Three nodes that share four hundred neighbours: far above the guess of 80."""


def named(methods: Any, name: str) -> Method:
    found: Method = next(method for method in methods if method.name == name)
    return found


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("ask", [AskTriangles(), AskStars(2), AskStars(3)])
def test_measured_intervals_hold_where_the_guess_is_far_off(ask: Any) -> None:
    truth = int((Triangles() if isinstance(ask, AskTriangles) else Stars(ask.k)).exact(HUBS)[0])
    methods = ask.methods(Public(edge(), HUBS.nodes), Budget(1))
    data, bits = Data.of(HUBS), seeded(5)
    method = chosen(ask, methods, None)
    columns = [method.run(data, bits).columns[0] for _ in range(150)]
    assert np.mean([column.low[0] <= truth <= column.high[0] for column in columns]) >= 0.91
    guess = named(methods, "ramp").interval
    if isinstance(ask, AskTriangles):
        off = [abs(column.values[0] - truth) <= guess for column in columns]
        assert np.mean(off) < 0.9, "the guess should be far off here, or the test shows nothing"


def test_both_parts_are_paid_for() -> None:
    method = named(AskTriangles().methods(Public(edge(), 1000), Budget(2)), "ramp, measured")
    assert isinstance(method, MeasuredRamp)
    assert method.ramp.epsilon == Fraction(9, 5)
    assert method.level.epsilon == Fraction(1, 5)
    assert privacy.account(method.event).epsilon(0) == pytest.approx(2)
    assert "with 99 % probability" in method.run(Data.of(build(1000, [0], [1])), seeded(1)).notes[0]


@pytest.mark.parametrize("ask", [AskTriangles(), AskStars(2), AskStars(3), AskTriangles(typical=1)])
def test_no_interval_rests_on_a_guess(ask: Any) -> None:
    """Whatever is guessed, what is shown as 95 % was paid for; noise whose size stays private has no interval."""
    methods = ask.methods(Public(edge(), HUBS.nodes), Budget(1, 1e-6))
    assert chosen(ask, methods, None).name in {"ramp, measured", "noisy local sensitivity"}
    for method in methods:
        column = method.run(Data.of(HUBS), seeded(2)).columns[0]
        hidden = method.name in {"ramp", "ladder"}
        assert silent(method) == hidden
        assert all(math.isnan(x) == hidden for x in (column.low[0], column.high[0], column.errors[0]))
        assert bool(foretold(method)) == (method.name not in {"laplace", "gaussian"})


def test_a_hidden_interval_is_explained_by_a_method_that_is_offered() -> None:
    methods = AskTriangles().methods(Public(edge(), HUBS.nodes), Budget(1))
    (note,) = named(methods, "ramp").run(Data.of(HUBS), seeded(1)).notes
    assert "no interval" in note
    assert f'method="{MEASURED}"' in note
    assert MEASURED in {method.name for method in methods}


@pytest.mark.parametrize("nodes", [3, 4, 5, 40, 10**6])
def test_guesses_fit_the_graph(nodes: int) -> None:
    for method in AskTriangles().methods(Public(edge(), nodes), Budget(1, 1e-6)):
        assert method.error > 0
        assert method.interval >= 0


@pytest.mark.parametrize("ask", [AskTriangles(), AskStars(2), AskStars(4)])
def test_where_edges_are_replaced_noise_is_made_for_half_of_epsilon(ask: Any) -> None:
    """Two changes of one edge each: a mechanism that owes half to each owes the whole to both (group privacy)."""
    budget = Budget(2, 1e-6)
    one, two = ({m.name: m for m in ask.methods(Public(edge(replace=r), 2000), budget)} for r in (False, True))
    assert set(one) == set(two)
    for name, method in two.items():
        assert budget.covers(tightest(method.event, Adjacency.ADD_REMOVE)), name
        assert method.error > one[name].error
    assert two["ramp"].mechanism.epsilon == 1
    assert two[MEASURED].ramp.epsilon == Fraction(9, 10)
    assert two[MEASURED].level.sensitivity == 2


def test_many_stars_of_replaced_edges_are_released_where_noise_for_the_worst_graph_is_beyond_all_bounds() -> None:
    ask, facts = AskStars(4), Public(edge(replace=True), 20_000)
    assert chosen(ask, ask.methods(facts, Budget(1)), None).name == MEASURED


def test_where_no_method_can_be_made_the_refusal_says_why() -> None:
    ask, facts = AskStars(4), Public(edge(), 20_000)
    with pytest.raises(DefocusError) as refused:
        ask.methods(facts, Budget(Fraction(1, 2**61)))
    assert refused.value.fix
    with pytest.raises(DefocusError, match="no way to release") as refused:
        chosen(ask, [], None)
    assert "epsilon" in refused.value.fix


def test_a_bad_guess_is_refused_and_not_left_out() -> None:
    for ask in (AskTriangles(typical=0), AskStars(3, typical=-1)):
        with pytest.raises(DefocusError, match="typical"):
            ask.methods(Public(edge(), 100), Budget(1))

"""Weights: brute force over one weight replaced by any other, noise, refusals."""

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from tests.graphs.asking.small import public, ways

from defocus import Budget, edge, weight
from defocus.errors import DefocusError, InvalidParameterError, NotDeclaredError
from defocus.graphs import Network
from defocus.graphs.data import Data, Pairs
from defocus.graphs.question import chosen
from defocus.graphs.questions import AskWeights
from defocus.graphs.statistics.weights import STEPS, steps_of
from defocus.noise.testing import seeded

ENDS = (np.array([0, 1, 2, 2, -1]), np.array([1, 2, 2, 0, 1]))
"""Two edges, a loop, an edge, and one with an end that is no node."""


def data(weights: list[float]) -> Data:
    return Data(lambda: (Pairs(*ENDS, np.array(weights)), range(3)))


def sums(kind: str, weights: list[float]) -> np.ndarray:
    """What is released when there is next to no noise."""
    method = ways(AskWeights(kind), 3, Budget(2.0**24), weight(bound=2))["laplace"]
    found: np.ndarray = method.run(data(weights), seeded(1)).columns[0].values
    return found


@pytest.mark.parametrize(
    ("kind", "l1", "l2"), [("total", 2.0, 2.0), ("strength", 4.0, math.sqrt(8)), ("each", 2.0, 2.0)]
)
def test_no_weight_moves_the_sums_further_than_said(kind: str, l1: float, l2: float) -> None:
    values = [0.0, 0.7, 2.0, 5.0, -1.0, math.nan, math.inf, -math.inf]
    worst = [0.0, 0.0]
    for place in range(5):
        found = []
        for value in values:
            weights = [1.0] * 5
            weights[place] = value
            found.append(sums(kind, weights))
        for a in found:
            for b in found:
                worst = [max(worst[0], np.abs(a - b).sum()), max(worst[1], float(np.linalg.norm(a - b)))]
    assert worst[0] == pytest.approx(l1, abs=1e-3)
    assert worst[1] == pytest.approx(l2, abs=1e-3)


@pytest.mark.parametrize(("directed", "expected"), [(False, [0.5, 1.25]), (True, [1.75, 1.25])])
def test_an_edge_that_is_listed_twice_has_one_weight(directed: bool, expected: list[float]) -> None:
    ends = (np.array([0, 1, 0, 2]), np.array([1, 0, 1, 1]))
    twice = Data(lambda: (Pairs(*ends, np.array([0.5, 1.25, 2.0, 1.25])), range(3)))
    facts = dataclasses.replace(public(3, weight(bound=2)), directed=directed)
    for kind, sizes in (("total", [sum(expected)]), ("strength", [expected[0], sum(expected), expected[1]])):
        method = next(iter(AskWeights(kind).methods(facts, Budget(2.0**24))))
        assert method.run(twice, seeded(1)).columns[0].values == pytest.approx(sizes, abs=1e-3)
        assert any("more than once" in rule for rule in method.rules)


def test_sums_are_those_of_cut_weights() -> None:
    assert sums("total", [1, 3, -1, 0.5, 9])[0] == pytest.approx(3.5, abs=1e-3)
    assert sums("strength", [1, 3, 0.25, 0.5, 9]) == pytest.approx([1.5, 3, 2.5], abs=1e-3)  # a loop is left out
    assert sums("each", [1, 3, math.nan, 0.5, 9]) == pytest.approx([1, 2, 0, 0.5, 0], abs=1e-3)


@pytest.mark.statistical
def test_noise_has_the_scale_of_the_bound_and_no_other() -> None:
    method = ways(AskWeights(), 3, Budget(0.5), weight(bound=3))["laplace"]
    bits = seeded(3)
    sizes = np.abs([method.run(data([0.0] * 5), bits).columns[0].values[0] for _ in range(3000)])
    assert abs(sizes.mean() / 6 - 1) < 5 / math.sqrt(3000)
    assert abs(sizes.mean() / 6.6 - 1) > 0.05
    assert method.error == pytest.approx(6, rel=1e-6)


def test_gaussian_noise_is_offered_with_a_delta() -> None:
    assert set(ways(AskWeights("strength"), 500, Budget(1, 1e-6), weight(bound=1))) == {"laplace", "gaussian"}


@pytest.mark.statistical
def test_gaussian_noise_errs_less_where_a_person_has_many_weights() -> None:
    """All weights of a person are different entries: Laplace noise grows with their number, Gaussian with its root."""
    unit, many = weight(bound=1, per_person=20), 4000
    methods = ways(AskWeights("each"), 3, Budget(1, 1e-6), unit)
    assert chosen(AskWeights("each"), list(methods.values()), None).name == "gaussian"
    assert methods["gaussian"].error < 0.8 * methods["laplace"].error
    one = ways(AskWeights("each"), 3, Budget(1, 1e-6), weight(bound=1))["gaussian"].error
    assert methods["gaussian"].error == pytest.approx(math.sqrt(20) * one, rel=1e-3)
    ends = np.zeros(many, np.int64), np.ones(many, np.int64)
    listed = Data(lambda: (Pairs(*ends, np.zeros(many)), range(3)))
    column = methods["gaussian"].run(listed, seeded(4)).columns[0]
    assert len(column.values) == many
    assert np.abs(column.values).mean() == pytest.approx(methods["gaussian"].error, rel=0.06)


def test_steps_are_whole_and_within_their_range() -> None:
    generator = np.random.default_rng(1)
    weights = generator.normal(0.5, 1, 100)
    steps = steps_of(Pairs(np.zeros(100, np.int64), np.ones(100, np.int64), weights), Fraction(1))
    assert steps.min() == 0
    assert steps.max() == STEPS


def test_other_units_and_questions_are_refused() -> None:
    with pytest.raises(DefocusError, match="protect weights"):
        AskWeights().methods(public(5, edge()), Budget(1))
    with pytest.raises(DefocusError, match="no sum of weights named"):
        AskWeights("median")


def test_in_files_of_text_no_weight_decides_what_is_listed(opened: Callable[..., Network], tmp_path: Path) -> None:
    for i, field in enumerate((b"1", b"\xff", b"1" * 2_200_000)):
        place = tmp_path / f"{i}.csv"
        place.write_bytes(b"source,target,w\n0,1,1\n1,2," + field + b"\n2,3,1\n")
        g = opened(place, nodes=4, weights="w", unit=weight(bound=1))
        with pytest.raises(InvalidParameterError, match="line of text") as caught:
            g.weights("each")
        assert "Parquet" in caught.value.fix
        with pytest.raises(NotDeclaredError, match="which nodes are listed"):
            opened(place, nodes="as listed", weights="w", unit=weight(bound=1))
        for kind, entries in (("total", 1), ("strength", 4)):
            assert len(g.weights(kind).release(epsilon=1).columns[0].values) == entries
        assert opened(place, nodes="as listed").public.nodes in {2, 4}

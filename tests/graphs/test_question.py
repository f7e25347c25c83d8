"""Questions, the methods that can answer them, and what is refused before anything is charged."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from defocus import Budget, edge
from defocus.errors import InvalidParameterError
from defocus.graphs import Network
from defocus.graphs.question import foretold
from defocus.graphs.statistics import ArcDegrees
from defocus.noise.testing import seeded
from defocus.privacy import account
from defocus.privacy.accounting import tightest
from defocus.privacy.units import Adjacency


def test_counts_are_near_the_truth_when_much_is_spent(friends: Network) -> None:
    assert friends.edges().release(epsilon=40).value == 5
    assert friends.triangles().release(epsilon=40).value == 1
    assert friends.stars(2).release(epsilon=60).value == 6
    assert friends.degrees().release(epsilon=60).value.tolist() == [3, 2, 2, 2, 1, 0]
    assert friends.degree_sequence().release(epsilon=60).value.tolist() == [3, 2, 2, 2, 1, 0]
    assert friends.degree_histogram().release(epsilon=80).value.round().tolist() == [1, 1, 3, 1, 0, 0]
    joint = friends.joint().release(epsilon=200)
    assert [round(float(column.values[0])) for column in joint.columns] == [5, 6, 1]
    both = friends.joint("edges", "degree_histogram").release(epsilon=200, method="vector, laplace")
    assert both.value.tolist() == [5, 1, 1, 3, 1, 0, 0]
    assert list(both.keys["statistic"]) == ["edges", *["degree histogram"] * 6]


@pytest.mark.statistical
def test_released_noise_has_the_declared_scale_and_no_other(friends: Network) -> None:
    """The mean of |noise| over 4000 releases of a method, beside what it says, at five standard errors."""
    method = friends.edges().plan(epsilon=0.2)
    bits = seeded(11)
    noise = np.abs([method.run(friends.data, bits).columns[0].values[0] - 5 for _ in range(4000)])
    tolerance = 5 * float(noise.std()) / np.sqrt(len(noise))
    assert abs(float(noise.mean()) - method.error) < tolerance
    assert abs(float(noise.mean()) - 1.1 * method.error) > tolerance / 2


def test_methods_are_named_or_refused_by_name(friends: Network) -> None:
    with pytest.raises(InvalidParameterError, match=r"number of triangles.* named 'magic'") as caught:
        friends.triangles().preview(epsilon=1, method="magic")
    assert 'ladder, laplace, ramp, "ramp, measured"' in caught.value.fix
    with pytest.raises(InvalidParameterError, match="did you mean ladder"):
        friends.triangles().preview(epsilon=1, method="lader")
    with pytest.raises(InvalidParameterError, match="named 'gaussian'"):
        friends.edges().release(epsilon=1, method="gaussian")
    assert friends.edges().release(epsilon=1, delta=1e-6, method="gaussian").method == "gaussian"
    assert friends.edges().release(epsilon=1, method="Geometric").method == "laplace"
    assert friends.triangles().plan(epsilon=1, method="Ramp_measured").name == "ramp, measured"


@pytest.mark.parametrize("typical", [0, -1, True, 1.5, "many", float("nan"), 2**63])
def test_a_guess_that_is_none_is_refused(friends: Network, typical: Any) -> None:
    with pytest.raises(InvalidParameterError, match="typical"):
        friends.triangles(typical=typical).preview(epsilon=1)
    with pytest.raises(InvalidParameterError, match="typical"):
        friends.stars(typical=typical).preview(epsilon=1)


def test_a_guess_changes_the_preview_and_not_the_noise(opened: Callable[..., Network]) -> None:
    g = opened(nodes=[*range(1000)], data=np.array([[0, 1], [1, 2], [2, 0]]))
    small, large = (g.triangles(typical=t).plan(epsilon=1, method="ramp") for t in (2, 500))
    assert small.error < large.error
    assert small.run(g.data, seeded(4)).columns[0].values == large.run(g.data, seeded(4)).columns[0].values
    assert "taken to be 2;" in foretold(small)[0]


def test_where_edges_are_replaced_all_noise_is_for_two_changes(opened: Callable[..., Network]) -> None:
    g = opened(unit=edge(replace=True))
    named = {method.name: method for method in g.triangles().methods(epsilon=1, delta=1e-6)}
    assert set(named) == {"laplace", "gaussian", "ramp", "ramp, measured", "ladder", "noisy local sensitivity"}
    assert named["laplace"].event.sensitivity == 2 * (6 - 2)  # type: ignore[attr-defined]  # Laplace noise
    for method in named.values():
        assert Budget(1, 1e-6).covers(tightest(method.event, Adjacency.ADD_REMOVE)), method.name
    assert account(named["ramp"].event).epsilon(0) == pytest.approx(1)
    assert g.triangles().release(epsilon=1, method="ramp").value is not None


@pytest.mark.parametrize("wanted", ["squares", "stars_", "stars_x", 3, None, "edges "])
def test_joint_releases_of_unknown_statistics_are_refused(friends: Network, wanted: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"no statistic|has no|k must"):
        friends.joint("triangles", wanted)


def test_sides_belong_to_directed_graphs(opened: Callable[..., Network], friends: Network) -> None:
    with pytest.raises(InvalidParameterError, match="no direction"):
        friends.degrees(side="in").preview(epsilon=1)
    g = opened([("ada", "bob"), ("ada", "cyd"), ("bob", "ada")], directed=True)
    assert g.edges().release(epsilon=40).value == 3
    assert g.degrees().release(epsilon=40).value.tolist() == [2, 1, 0, 0, 0, 0]
    assert g.degrees(side="in").release(epsilon=40).value.tolist() == [1, 1, 1, 0, 0, 0]
    assert g.degree_sequence(side="in").release(epsilon=40).value.tolist() == [1, 1, 1, 0, 0, 0]
    assert g.degree_histogram(side="in").release(epsilon=60).value.round().tolist() == [3, 3, 0, 0, 0, 0]
    assert g.degrees().plan(epsilon=1).event.sensitivity == 1  # type: ignore[attr-defined]  # Laplace noise
    for ask in (g.triangles, g.stars):
        with pytest.raises(InvalidParameterError, match="directed"):
            ask()
    for side in ("both", 1, True):
        with pytest.raises(InvalidParameterError, match="go out or come in"):
            g.degrees(side=side)  # type: ignore[arg-type]  # the refusal is the test


def test_joint_releases_of_directed_graphs_count_arcs(opened: Callable[..., Network], friends: Network) -> None:
    g = opened([("ada", "bob"), ("bob", "ada")], directed=True)
    joint = g.joint("edges", ArcDegrees("in")).release(epsilon=60)
    assert joint.value.tolist() == [2, 1, 1, 0, 0, 0, 0]
    for wanted in ("triangles", "degrees", "degree_histogram"):
        with pytest.raises(InvalidParameterError, match="in undirected graphs, and this one is directed"):
            g.joint("edges", wanted).preview(epsilon=1)
    with pytest.raises(InvalidParameterError, match="in directed graphs, and this one is undirected"):
        friends.joint("edges", ArcDegrees("in")).preview(epsilon=1)


def test_only_questions_are_asked(friends: Network) -> None:
    with pytest.raises(InvalidParameterError, match="asked a question"):
        friends.ask("how many edges?")  # type: ignore[arg-type]  # the refusal is the test

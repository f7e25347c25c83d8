"""Every question through the front door: previewed, released, explained, exported."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import defocus as dp
from defocus import edge, item, node
from defocus.errors import DefocusError, UnknownQuestionError


@pytest.fixture
def friends(tmp_path: Path) -> Any:
    ends = np.random.default_rng(1).integers(0, 60, (400, 2))
    with dp.open_graph(
        ends, unit=dp.edge(), budget=dp.Budget(1000), nodes=60, ledger=tmp_path / "a.ledger", name="friends"
    ) as network:
        yield network


QUESTIONS = {
    "top": lambda g: g.top_degrees(5),
    "clustering": lambda g: g.clustering(),
    "subgraphs": lambda g: g.subgraph_counts("triangles", "stars_3"),
    "pagerank": lambda g: g.pagerank(damping=0.5, top=5),
    "communities": lambda g: g.communities(at_most=4),
    "labellings": lambda g: g.communities(labellings=[[0] * 60, [i % 2 for i in range(60)]]),
    "ergm": lambda g: g.ergm("edges"),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_is_previewed_for_free_and_released_for_what_it_said(friends: Any, name: str) -> None:
    query = QUESTIONS[name](friends)
    before = friends.ledger.spent()
    preview = query.preview(epsilon=2)
    assert friends.ledger.spent() == before
    assert str(preview)
    assert preview.explain()
    answer = query.release(epsilon=2)
    assert answer.event == preview.event
    assert friends.ledger.spent() != before
    for text in (str(answer), answer.explain(), answer.to_json(), answer.to_csv()):
        assert text
    assert len(answer.to_pandas()) == len(answer)


def test_other_methods_are_chosen_by_name(friends: Any) -> None:
    assert friends.top_degrees(3).release(epsilon=1, method="subset").method == "subset"
    with pytest.raises(DefocusError, match="choose one of"):
        friends.top_degrees(3).release(epsilon=1, method="guess")


def test_weights_and_interactions_need_their_units(friends: Any) -> None:
    for ask in (friends.weights, lambda: friends.interactions(every="1d", start="2024-01-01", end="2024-02-01")):
        with pytest.raises(DefocusError, match="protects one edge"):
            ask()


@pytest.mark.parametrize(
    ("unit", "directed", "ask"),
    [
        (edge(), False, lambda g: g.degrees(side="in")),
        (edge(), False, lambda g: g.degree_histogram(side="out")),
        (edge(), True, lambda g: g.triangles()),
        (edge(), True, lambda g: g.stars()),
        (edge(), True, lambda g: g.clustering()),
        (edge(), True, lambda g: g.joint()),
        (edge(), True, lambda g: g.top_degrees(k=1)),
        (node(), False, lambda g: g.stars()),
        (node(), False, lambda g: g.degrees()),
        (node(), False, lambda g: g.pagerank()),
        (node(), False, lambda g: g.communities(at_most=2)),
        (node(), False, lambda g: g.ergm()),
        (node(), False, lambda g: g.subgraph_counts("stars_2")),
        (item(), False, lambda g: g.edges()),
    ],
)
def test_questions_of_other_graphs_are_refused_when_they_are_made(
    opened: Any, unit: Any, directed: bool, ask: Any
) -> None:
    """Before a preview: whoever writes it sees it at once."""
    said: dict[str, Any] = {"unit": unit, "directed": directed or None}
    said |= {"time": "at"} if unit.kind == "event" else {}
    data = pd.DataFrame({"u": ["ada"], "v": ["bob"], "at": [1]}) if unit.kind == "event" else [("ada", "bob")]
    g = opened(data, **said)
    with pytest.raises(DefocusError):
        ask(g)
    assert len(g.ledger) == 1


def test_what_cannot_be_asked_is_answered_by_what_can(friends: Any) -> None:
    with pytest.raises(UnknownQuestionError, match="no betweenness") as caught:
        friends.betweenness()
    assert "triangles()" in caught.value.fix
    assert "ask()" not in caught.value.fix
    assert not hasattr(friends, "_repr_markdown_")
    assert pickle.loads(pickle.dumps(caught.value)).fix == caught.value.fix  # noqa: S301  # made here


def test_weights_and_interactions_are_asked_of_frames(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "a": [0, 1, 2, 0],
            "b": [1, 2, 0, 2],
            "kg": [1.0, 2.0, 30.0, None],
            "at": pd.to_datetime(["2024-01-01", "2024-01-01", "2024-01-03", None]),
        }
    )
    common: dict[str, Any] = {"budget": dp.Budget(100), "nodes": 3, "ends": ("a", "b")}
    with dp.open_graph(
        frame, unit=dp.weight(bound=5), weights="kg", ledger=tmp_path / "w.ledger", name="w", **common
    ) as network:
        assert network.weights().release(epsilon=90).value == pytest.approx(8, abs=2)
    with dp.open_graph(frame, unit=dp.item(), time="at", ledger=tmp_path / "t.ledger", name="t", **common) as network:
        series = network.interactions(every="1d", start="2024-01-01", end="2024-01-04").release(epsilon=90)
        assert series.value.tolist() == [2, 0, 1]


def test_node_privacy_through_the_front_door(tmp_path: Path) -> None:
    ends = np.random.default_rng(1).integers(0, 200, (2000, 2))
    with dp.open_graph(
        ends, unit=dp.node(), budget=dp.Budget(100), nodes=list(range(200)), ledger=tmp_path / "n.ledger", name="n"
    ) as network:
        assert network.edges().release(epsilon=20).value == pytest.approx(1900, rel=0.2)
        assert len(network.degree_histogram().release(epsilon=5)) > 5
        assert "the cap that was found" in network.triangles().release(epsilon=20).notes[0]
        with pytest.raises(DefocusError):
            network.pagerank().release(epsilon=1)
        with pytest.raises(DefocusError):
            network.top_degrees(3).release(epsilon=1)

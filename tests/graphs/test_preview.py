"""What a preview foretells is what a release has, in the units of the answer."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import defocus as dp
from defocus.answers.columns import Floats
from defocus.graphs import GraphQuery, Network
from defocus.graphs.noise import VectorNoise
from defocus.graphs.question import foretold, from_record, silent, to_record
from defocus.noise.testing import seeded

NODES = 60
EDGES: dict[str, Any] = {"unit": dp.edge(), "nodes": NODES}
PEOPLE: dict[str, Any] = {"unit": dp.node(), "nodes": list(range(NODES))}
WEIGHTS: dict[str, Any] = {"unit": dp.weight(bound=5), "nodes": NODES, "weights": "kg"}
EVENTS: dict[str, Any] = {"unit": dp.item(), "nodes": NODES, "time": "at"}
ARCS: dict[str, Any] = {"unit": dp.edge(), "nodes": NODES, "directed": True}

ASKED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("edges", EDGES, {}),
    ("edges", PEOPLE, {"cap": 30}),
    ("edges", PEOPLE, {}),
    ("degrees", EDGES, {}),
    ("degrees", ARCS, {"side": "in"}),
    ("degree_sequence", EDGES, {}),
    ("degree_histogram", EDGES, {"at_most": 20}),
    ("degree_histogram", PEOPLE, {"at_most": 6}),
    ("degree_histogram", PEOPLE, {}),
    ("triangles", EDGES, {"typical": 7}),
    ("triangles", PEOPLE, {"cap": 50}),
    ("stars", EDGES, {"typical": 20}),
    ("joint", EDGES, {}),
    ("top_degrees", EDGES, {"k": 5}),
    ("clustering", EDGES, {}),
    ("subgraph_counts", EDGES, {}),
    ("pagerank", EDGES, {}),
    ("pagerank", EDGES, {"damping": 0.5, "top": 5}),
    ("communities", EDGES, {"at_most": 4}),
    ("communities", EDGES, {"labellings": [[i % 2 for i in range(NODES)]]}),
    ("partition", EDGES, {"k": 2}),
    ("group_edges", EDGES, {"groups": [i % 3 for i in range(NODES)]}),
    ("group_edges", EDGES, {"groups": [i % 3 for i in range(NODES)], "queries": {"cut": [(0, 1), (0, 2)]}}),
    ("ergm", EDGES, {}),
    ("weights", WEIGHTS, {}),
    ("weights", WEIGHTS, {"kind": "strength"}),
    ("weights", WEIGHTS, {"kind": "each"}),
    ("interactions", EVENTS, {"every": 10, "start": 0, "end": 100}),
    ("interactions", EVENTS, {"every": 10, "start": 0, "end": 100, "running": True}),
]


def test_every_question_is_among_those_compared() -> None:
    asks = {
        name
        for name, method in inspect.getmembers(Network, inspect.isfunction)
        if inspect.signature(method).return_annotation is GraphQuery and name != "ask"
    }
    assert asks == {name for name, _, _ in ASKED}


@pytest.mark.parametrize(("name", "said", "settings"), ASKED)
def test_a_preview_has_the_errors_and_intervals_of_the_release(
    opened: Callable[..., Network], name: str, said: dict[str, Any], settings: dict[str, Any]
) -> None:
    network = opened(_interactions(), ends=("a", "b"), name="small", **said)
    asked = getattr(network, name)(**settings)
    for method in asked.methods(epsilon=2, delta=1e-5):
        preview = asked.preview(epsilon=2, delta=1e-5, method=method.name)
        columns = asked.release(epsilon=2, delta=1e-5, method=method.name, bits=seeded(5)).columns
        # A bound that is found with noise is larger than the guess; intervals are widened to hold fitted numbers.
        guessed = bool(foretold(method)) and not isinstance(method, VectorNoise)
        if silent(method):  # nothing was foretold of what has no interval
            continue
        slack = 5.0 if guessed else 1.5
        _agree(preview.error, np.concatenate([column.errors for column in columns]), slack)
        widest = [((column.high - column.low) / 2).max(keepdims=True) for column in columns]
        _agree(preview.interval, np.concatenate(widest), slack)
        if isinstance(method, VectorNoise):
            assert {column.how for column in columns} == {method.how}


LEFT_OUT = pytest.mark.parametrize(
    ("name", "said", "settings", "lost"),
    [
        ("edges", PEOPLE, {"cap": 3}, "at each node, at most 3 of its edges count"),
        ("edges", PEOPLE, {}, "edges count up to a cap at each node, which is found; what is beyond it is lost"),
        ("triangles", PEOPLE, {"cap": 2}, "at each node, at most 2 of its triangles count"),
        ("degree_histogram", PEOPLE, {"at_most": 4}, "edges are left out where a node would have more than 4"),
        ("degree_histogram", PEOPLE, {}, "edges are left out where a node would have more than a number that is found"),
        (
            "triangles",
            PEOPLE,
            {},
            "triangles count up to a cap at each node, which is found; what is beyond it is lost",
        ),
        ("weights", WEIGHTS, {}, "weights are cut to their declared range"),
    ],
)


@LEFT_OUT
def test_no_interval_that_leaves_something_out_is_called_one_of_the_truth(
    opened: Callable[..., Network], name: str, said: dict[str, Any], settings: dict[str, Any], lost: str
) -> None:
    """Such intervals hold the truth with any probability at all: whoever reads one of them reads that with it."""
    asked = getattr(opened(_interactions(), ends=("a", "b"), name="small", **said), name)(**settings)
    preview, answer = asked.preview(epsilon=2), asked.release(epsilon=2)
    capped = name in {"edges", "triangles"}  # what is cut there can only be too little, so that a lower end holds
    for shown in (preview,) if capped else (preview, answer):
        assert "95 % interval" not in str(shown) + shown._repr_html_() + shown.explain()
        assert "95 % of the noise only" in str(shown).split("\n")[0 if shown is answer else 1]
        assert "95 % of the noise only" in shown._repr_html_()
        assert shown.to_dict()["intervals"].startswith("the noise only, with 95 %; the truth may lie outside: ")
        assert lost in shown.to_dict()["intervals"]
        assert lost in shown.explain()
    assert lost in answer.to_arrow().schema.metadata[b"defocus.intervals"].decode()
    kept = from_record(to_record(answer), answer.receipt)
    assert str(kept) == str(answer)
    pages = " ".join(answer.explain().split())
    if capped:
        assert answer.to_dict()["intervals"] == f"the truth, with 95 %; ends are open: {lost}"
        assert "or more" in str(answer)
        assert "95 % that the truth is at least the lower end" in pages
    elif name == "degree_histogram":
        assert np.isnan(answer.columns[0].half).all()
        assert "how far off it is in value is not known" in pages
    else:
        assert "that is the noise alone, and the truth may lie outside" in pages
    assert lost in answer.plot().get_suptitle().replace("\n", " ")


def test_an_interval_that_leaves_nothing_out_is_one_of_the_truth(opened: Callable[..., Network]) -> None:
    answer = opened(_interactions(), ends=("a", "b"), name="small", **EDGES).edges().release(epsilon=2)
    assert "95 % interval" in str(answer)
    assert answer.to_dict()["intervals"] == "the truth, with 95 %"
    assert "outside" not in answer.explain()


@LEFT_OUT
def test_what_no_interval_tells_is_printed(
    opened: Callable[..., Network], name: str, said: dict[str, Any], settings: dict[str, Any], lost: str
) -> None:
    asked = getattr(opened(_interactions(), ends=("a", "b"), name="small", **said), name)(**settings)
    for shown in (asked.preview(epsilon=2), asked.release(epsilon=2)):
        told = ("not in the intervals: ", "ends are open: ")
        (line,) = [line for line in str(shown).split("\n") if line.startswith(told)]
        assert lost in line
        assert line.split(": ")[0] in shown._repr_html_()


@pytest.mark.parametrize(("name", "said"), [("edges", EDGES), ("weights", WEIGHTS)])
def test_how_edges_are_read_is_explained_and_not_repeated_below_every_answer(
    opened: Callable[..., Network], name: str, said: dict[str, Any]
) -> None:
    asked = getattr(opened(_interactions(), ends=("a", "b"), name="small", **said), name)()
    rule = "an edge with an end that is missing, or is not one of the nodes, is left out"
    for shown in (asked.preview(epsilon=2), asked.release(epsilon=2)):
        assert "missing" not in str(shown)
        assert rule in shown.explain()


def test_the_error_of_a_guess_is_foretold_and_no_interval_of_the_answer_rests_on_it(
    opened: Callable[..., Network],
) -> None:
    asked = opened(_interactions(), ends=("a", "b"), name="small", **EDGES).triangles()
    told = str(asked.preview(epsilon=2))
    assert "the error rests on a guess" in told
    assert "the most on any graph of this size" in told
    assert "guess" not in str(asked.release(epsilon=2))
    hidden = asked.release(epsilon=2, method="ramp")
    assert "no interval: " in str(hidden)
    assert np.isnan(hidden.error)
    assert asked.preview(epsilon=2).to_dict()["foretold"]


@pytest.mark.parametrize(("name", "said", "settings"), ASKED)
def test_a_preview_has_a_number_or_says_what_it_depends_on(
    opened: Callable[..., Network], name: str, said: dict[str, Any], settings: dict[str, Any]
) -> None:
    preview = getattr(opened(_interactions(), ends=("a", "b"), name="small", **said), name)(**settings).preview(
        epsilon=2
    )
    assert np.isfinite(preview.error) or any("depends on" in told for told in preview.foretold)
    assert "it takes long" in str(preview) or (name, said) != ("triangles", PEOPLE)


def _agree(foreseen: float, found: Floats, slack: float) -> None:
    """What was foreseen lies among what was found, where both are known."""
    known = found[np.isfinite(found)]
    if np.isfinite(foreseen) and known.size:
        assert known.min() / slack <= foreseen <= known.max() * slack


def _interactions() -> pd.DataFrame:
    draw = np.random.default_rng(1)
    ends = draw.integers(0, NODES, (300, 2))
    return pd.DataFrame(
        {"a": ends[:, 0], "b": ends[:, 1], "kg": draw.random(300) * 5, "at": draw.integers(0, 100, 300)}
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("edges", "1.7 × the cap found"),
        ("triangles", "1.7 × the cap found"),
        ("degree_histogram", "below 1.1 × (largest degree found + 1)"),
    ],
)
def test_an_error_that_is_not_known_is_told_in_words(opened: Callable[..., Network], name: str, said: str) -> None:
    preview = getattr(opened(**PEOPLE), name)().preview(epsilon=1)
    assert said in str(preview)
    assert "–" not in str(preview)
    assert preview.to_dict()["columns"][0]["depends"] == said


def test_no_preview_shows_a_dash_for_an_interval(opened: Callable[..., Network]) -> None:
    graph = opened(**EDGES)
    for query in (graph.clustering(), graph.communities(at_most=3), graph.ergm(), graph.joint()):
        assert "–" not in str(query.preview(epsilon=1))
    assert graph.edges().preview(epsilon=1).to_dict()["columns"][0]["depends"] is None

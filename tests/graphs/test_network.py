"""A question is free until it is released; then it is charged first, once, and nothing private leaves."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from defocus import Budget, edge, machine_code
from defocus.answers.columns import noisy
from defocus.errors import (
    BudgetExceededError,
    InvalidParameterError,
    MissingExtraError,
    NotDeclaredError,
    NotRecordedError,
    QuestionFailedError,
    UnsupportedEventError,
)
from defocus.graphs import Network, Public, Released, open_graph
from defocus.graphs.question import Question, Result, silent
from defocus.ledger import Ledger
from defocus.noise.testing import seeded
from defocus.privacy.events import Approximate, Pure

ASKED: list[Callable[[Network], Any]] = [
    lambda g: g.edges(),
    lambda g: g.degrees(),
    lambda g: g.degree_sequence(),
    lambda g: g.degree_histogram(),
    lambda g: g.degree_histogram(at_most=2),
    lambda g: g.triangles(),
    lambda g: g.stars(),
    lambda g: g.stars(3),
    lambda g: g.joint(),
    lambda g: g.joint("edges", "degree_histogram"),
    lambda g: g.joint("degrees", "stars_2"),
]


@dataclass(frozen=True)
class Told:
    """A method and a question that do what the test says."""

    run_it: Any
    words: str = "something"
    name: str = "told"
    error: float = 1.0
    interval: float = 2.0
    how: str = "as told"
    rules: tuple[str, ...] = ()

    @property
    def event(self) -> Any:
        return Pure(0.5)

    def run(self, data: Any, bits: Any) -> Any:
        return self.run_it(data, bits)

    def methods(self, _public: Public, _budget: Budget) -> list[Any]:
        return [self]


@pytest.mark.parametrize("ask", ASKED)
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_every_method_of_every_question_can_be_released(friends: Network, ask: Any, delta: Any) -> None:
    query = ask(friends)
    methods = query.methods(epsilon=1, delta=delta)
    assert isinstance(query.question, Question)
    for method in methods:
        before = len(friends.ledger)
        answer = query.release(epsilon=1, delta=delta, bits=seeded(1), method=method.name)
        assert len(friends.ledger) == before + 2
        assert isinstance(answer, Released)
        assert answer.method == method.name
        assert answer.event == method.event
        for column in answer.columns:
            assert np.isfinite(column.values).all()
            held = (column.low <= column.values) & (column.values <= column.high)
            assert (held | (np.isnan(column.low) & np.isnan(column.high) & silent(method))).all()
        promised = answer.promise()
        assert promised is not None
        assert promised.epsilon <= 1 + 1e-9


@pytest.mark.parametrize("ask", ASKED)
def test_the_default_errs_least_and_previews_are_free(friends: Network, ask: Any) -> None:
    query = ask(friends)
    preview = query.preview(epsilon=1, delta=1e-6)
    assert preview.error == min(method.error for method in query.methods(epsilon=1, delta=1e-6) if not silent(method))
    assert preview.fits
    assert preview.method in str(preview)
    assert "one edge" in preview.explain()
    assert preview.to_dict()["method"] == preview.method
    assert "<table>" in preview._repr_html_()
    assert query.plan(epsilon=1, delta=1e-6).name == preview.method
    assert len(friends.ledger) == 1


@pytest.mark.parametrize("ask", ASKED)
def test_previews_do_not_depend_on_the_edges(opened: Callable[..., Network], ask: Any) -> None:
    names = [f"n{i}" for i in range(30)]
    complete = [(u, v) for u in names for v in names]
    previews = [
        ask(opened(edges, nodes=names, name="g")).preview(epsilon=0.7, delta=1e-7).to_dict()
        for edges in ([], complete, complete[:40])
    ]
    assert previews[0] == previews[1] == previews[2]


@pytest.mark.parametrize("ask", ASKED)
def test_the_shape_of_an_answer_does_not_depend_on_the_edges(opened: Callable[..., Network], ask: Any) -> None:
    names = [f"n{i}" for i in range(12)]
    complete = [(u, v) for u in names for v in names]
    answers = [ask(opened(edges, nodes=names)).release(epsilon=1) for edges in ([], complete, complete[:20])]
    shapes = [
        (answer.to_arrow().schema.names, len(answer), list(map(list, answer.keys.values()))) for answer in answers
    ]
    assert shapes[0] == shapes[1] == shapes[2]


def test_a_release_is_charged_before_the_data_is_looked_at(friends: Network) -> None:
    seen: list[int] = []

    def look(_data: Any, _bits: Any) -> Result:
        seen.append(len(friends.ledger))
        return Result((noisy("x", [1.0], error=1, half=2, how="told"),))

    friends.ask(Told(look)).release(epsilon=1)
    assert seen == [2]


def test_a_failure_after_the_charge_keeps_it_and_tells_nothing(friends: Network) -> None:
    def fail(_data: Any, _bits: Any) -> Result:
        raise ValueError("ada and bob are friends")

    with pytest.raises(QuestionFailedError, match="charged") as caught:
        friends.ask(Told(fail)).release(epsilon=1)
    assert "ada" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert friends.remaining().epsilon == pytest.approx(999.5)


@pytest.mark.parametrize(
    "result",
    [None, Result(()), Result((noisy("x", [1], error=1, half=1, how=""),), keys={"node": [1, 2]})],
)
def test_a_method_that_gives_no_sound_result_fails_after_the_charge(friends: Network, result: Any) -> None:
    with pytest.raises(QuestionFailedError):
        friends.ask(Told(lambda _data, _bits: result)).release(epsilon=1)


def test_without_numba_nothing_is_charged(friends: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(machine_code, "import_module", missing)
    with pytest.raises(MissingExtraError, match="numba"):
        friends.edges().release(epsilon=1)
    assert len(friends.ledger) == 1


def test_the_same_request_is_answered_again_for_free(friends: Network) -> None:
    first = friends.degrees().release(epsilon=1, request="degrees in May")
    again = friends.degrees().release(epsilon=1, request="degrees in May")
    assert len(friends.ledger) == 3
    assert np.array_equal(first.value, again.value)
    assert again.receipt == first.receipt
    assert str(again) == str(first)
    assert again.to_arrow() == first.to_arrow()
    histogram = friends.degree_histogram().release(epsilon=1, request="histogram in May")
    assert friends.degree_histogram().release(epsilon=1, request="histogram in May").to_dict() == histogram.to_dict()
    with pytest.raises(InvalidParameterError, match="another question"):
        friends.degrees().release(epsilon=2, request="degrees in May")
    with pytest.raises(InvalidParameterError, match="another question"):
        friends.edges().release(epsilon=1, request="degrees in May")


def test_a_kept_answer_about_other_nodes_is_another_answer(tmp_path: Path) -> None:
    def ask(nodes: list[str]) -> Released:
        with open_graph([("a", "b")], unit=edge(), budget=Budget(9), nodes=nodes, ledger=tmp_path / "l", name="g") as g:
            return g.degrees().release(epsilon=1, request="May")

    assert ask(["a", "b"]).value.tolist() == ask(["a", "b"]).value.tolist()
    with pytest.raises(InvalidParameterError, match="another question"):
        ask(["a", "c"])


def test_an_answer_that_cannot_be_noted_is_not_lost(friends: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: Any, **_named: Any) -> None:
        raise InvalidParameterError("The disk is full.", fix="make room.")

    monkeypatch.setattr(type(friends.ledger), "record", refuse)
    with pytest.raises(NotRecordedError, match="disk is full") as caught:
        friends.edges().release(epsilon=1)
    assert isinstance(caught.value.release, Released)


def test_more_than_the_budget_is_refused_and_the_preview_says_so(opened: Callable[..., Network]) -> None:
    g = opened(budget=Budget(1))
    assert not g.edges().preview(epsilon=2).fits
    assert "does not cover it" in str(g.edges().preview(epsilon=2))
    with pytest.raises(BudgetExceededError):
        g.edges().release(epsilon=2)
    with pytest.raises(NotDeclaredError, match="no delta"):
        g.edges().release(epsilon=0.5, delta=1e-6)
    assert len(g.ledger) == 1


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), True, "1", None, 1e-30])
def test_an_epsilon_that_is_none_is_refused(friends: Network, epsilon: Any) -> None:
    for query in (friends.edges(), friends.triangles(), friends.joint(), friends.degree_histogram()):
        with pytest.raises(InvalidParameterError):
            query.release(epsilon=epsilon)
    assert len(friends.ledger) == 1


@pytest.mark.parametrize("delta", [-1e-6, 1, 2, float("nan"), "1e-6", True])
def test_a_delta_that_is_none_is_refused(friends: Network, delta: Any) -> None:
    with pytest.raises((InvalidParameterError, UnsupportedEventError)):
        friends.edges().release(epsilon=1, delta=delta)
    assert len(friends.ledger) == 1


def test_reprs_say_nothing_private(friends: Network) -> None:
    shown = [repr(thing) for thing in (friends, friends.data, friends.data.pairs, friends.edges(), friends.data.graph)]
    assert not any(name in text for text in shown for name in ("ada", "bob"))


def test_a_kept_answer_is_not_taken_for_one_about_other_labels_or_columns(
    opened: Callable[..., Network], tmp_path: Path
) -> None:
    pairs = np.array([[0, 1], [1, 2], [2, 0]])
    g = opened(pairs, nodes=3000)
    labels = np.arange(3000) // 1500
    other = labels.copy()
    other[1000:1100] = 1  # where the print of an array has dots
    g.communities(labellings=[labels, labels[::-1]]).release(epsilon=1, request="a")
    g.communities(labellings=[labels.tolist(), labels[::-1]]).release(epsilon=1, request="a")
    with pytest.raises(InvalidParameterError, match="another question"):
        g.communities(labellings=[other, labels[::-1]]).release(epsilon=1, request="a")
    frame = pa.table({"u": [0, 1], "v": [1, 2], "w": [2, 2]})
    with Ledger.open(tmp_path / "l", budget=Budget(9), unit=edge(), dataset="says nothing of columns") as earlier:
        open_graph(frame, nodes=3, ledger=earlier).edges().release(epsilon=1, request="b")
        second = open_graph(frame, nodes=3, ends=("u", "w"), ledger=earlier)
        with pytest.raises(InvalidParameterError, match="another question"):
            second.edges().release(epsilon=1, request="b")


@dataclass(frozen=True)
class Grumbling:
    """A method that warns as soon as it sees the data."""

    name: str = "plain"
    error: float = 1.0
    interval: float = 1.0
    how: str = "none"
    rules: tuple[str, ...] = ()
    words: str = "something"

    @property
    def event(self) -> Pure:
        return Pure(1)

    def methods(self, _public: Any, _budget: Any) -> list[Any]:
        return [self]

    def run(self, data: Any, _bits: Any) -> Result:
        warnings.warn("42 edges", stacklevel=1)
        assert np.isinf(np.array([data.graph.edges]) / np.array([0]))
        return Result((noisy("x", [1], error=1.0, half=1.0, how="none"),))


def test_warnings_about_private_values_are_not_shown(friends: Network) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert friends.ask(Grumbling()).release(epsilon=1).value == 1
    assert not seen


def test_who_interrupts_a_question_is_told_that_the_charge_stays(friends: Network) -> None:
    def stop(_data: Any, _bits: Any) -> Result:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        friends.ask(Told(stop)).release(epsilon=1)
    assert stopped.value.__notes__ == ["The question was charged (entry 1) before it was interrupted; that stays."]
    assert friends.remaining().epsilon == pytest.approx(999.5)


def test_where_a_delta_does_not_fit_a_question_says_which_would(opened: Callable[..., Network]) -> None:
    g = opened(budget=Budget(1, 1e-6))
    g.ledger.charge(Approximate(0.1, 9e-7), purpose="before")
    asked, method = g.triangles(), "noisy local sensitivity"
    preview = asked.preview(epsilon=0.1, delta=1e-6, method=method)
    assert not preview.fits
    with pytest.raises(BudgetExceededError) as refused:
        asked.release(epsilon=0.1, delta=1e-6, method=method)
    assert refused.value.fix.startswith("ask with delta=")
    assert preview.prospect is not None
    assert refused.value.fix == preview.prospect.remedy
    left = float(refused.value.fix.partition("=")[2].partition(":")[0])
    assert asked.release(epsilon=0.1, delta=left, method=method).promise() is not None

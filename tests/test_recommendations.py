"""Which room and mechanism for what: errors as the rooms preview them, and lines that run."""

import math
from typing import Any, get_args

import pytest

import defocus as dp
from defocus import local
from defocus.errors import DefocusError
from defocus.local.shuffling import Key
from defocus.recommendations import Recommendation, Task, recommend


@pytest.fixture(scope="module")
def found() -> dict[str, Recommendation]:
    return {task: recommend(task, people=10_000, epsilon=1, delta=1e-6, categories=16) for task in get_args(Task)}


@pytest.mark.slow
def test_every_task_has_a_way_and_the_smallest_error_comes_first(found: dict[str, Recommendation]) -> None:
    for task, each in found.items():
        assert each.best is not None
        assert each.best.trust == "curator"
        errors = [math.inf if way.error is None else way.error for way in each.ways]
        assert errors == sorted(errors)
        assert (each.best.error is None) is (task == "training")
        assert str(each).startswith(f"{task}: ")


def test_trust_buys_accuracy_where_there_is_something_to_compare(found: dict[str, Recommendation]) -> None:
    for task in ("count", "histogram", "mean", "quantile"):
        errors = {way.trust: way.error or 0 for way in reversed(found[task].ways)}
        assert errors["curator"] < errors["shuffler"] < errors["nobody"]
    for task in ("training", "edges", "triangles"):
        assert {way.trust for way in found[task].ways} == {"curator"}
        assert "randomised reports" in found[task].left_out[-1]


def test_who_trusts_less_is_shown_less(found: dict[str, Recommendation]) -> None:
    for task in ("count", "quantile"):
        alone = recommend(task, people=10_000, epsilon=1, delta=1e-6, categories=16, trust="nobody")
        assert alone.ways == tuple(way for way in found[task].ways if way.trust == "nobody")
        shuffled = recommend(task, people=10_000, epsilon=1, delta=1e-6, categories=16, trust="shuffler")
        assert {way.trust for way in shuffled.ways} == {"nobody", "shuffler"}
    assert recommend("training", people=1000, epsilon=1, trust="nobody").best is None


def test_a_pure_law_leaves_out_whatever_has_a_delta() -> None:
    for task in ("count", "quantile", "triangles", "training"):
        pure = recommend(task, people=10_000, epsilon=1, law="pure", categories=16)
        assert all(way.law == "pure" for way in pure.ways)
        assert any("has a delta" in why for why in pure.left_out) is (task != "triangles")
    found = recommend("training", people=10_000, epsilon=1, law="pure").best
    assert found is not None
    assert found.mechanism == "objective perturbation"


def test_lines_run_and_keep_what_they_promise(found: dict[str, Recommendation]) -> None:
    keys = [Key.generate().public.hex() for _ in range(2)]
    for task in ("count", "histogram", "mean", "quantile"):
        for way in found[task].ways:
            line = way.line
            if way.trust == "curator":
                compile(line, task, "eval")
                continue
            for name, key in zip(("shuffler", "analyser"), keys, strict=True):
                line = line.replace(f"{name}=…", f'{name}=bytes.fromhex("{key}")')
            line = line.replace("local.collect(", "asked(").replace(', ledger=ledger, purpose="…"', "")
            made: Any = eval(line, {"local": local, "asked": lambda each: each})  # noqa: S307 -- written here
            if way.trust == "shuffler":
                assert dp.privacy.account(made.event, "basic", "replace").epsilon(1e-6) <= 1 + 1e-9
            elif task in {"count", "histogram"}:
                assert math.sqrt(made.variance(10_000)) == pytest.approx(way.error)


def test_few_people_leave_out_what_cannot_be_kept() -> None:
    few = recommend("quantile", people=20, epsilon=0.5)
    assert any("do not hide" in why for why in few.left_out)
    assert few.best is not None


@pytest.mark.parametrize(
    "bad", [{"task": "guess"}, {"people": 0}, {"epsilon": 0}, {"trust": "all"}, {"law": "none"}, {"delta": 1}]
)
def test_bad_questions_are_refused(bad: dict[str, Any]) -> None:
    given: dict[str, Any] = {"task": "count", "people": 100, "epsilon": 1}
    with pytest.raises(DefocusError):
        recommend(**(given | bad))

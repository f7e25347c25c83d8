"""Attacks on membership: what is private is not called, copies and memories are."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier
from torch import nn

from defocus.audit import ClosestRecord, MarginalDensity, SecretGuess, membership
from defocus.errors import DefocusError, InvalidParameterError, UnknownColumnError
from defocus.noise.testing import seeded

PEOPLE = pa.table(
    {
        "age": np.random.default_rng(0).uniform(0, 90, 400),
        "ward": [["A", "B", "C"][i] for i in np.random.default_rng(1).integers(0, 3, 400)],
        "sick": np.random.default_rng(2).random(400) < 0.2,
    }
)


def mean(rows: Any) -> Any:
    return np.asarray(rows).mean(axis=0)


def towards(model: Any, rows: Any) -> Any:
    return np.asarray(rows) @ model


def responses(epsilon: float, draw: np.random.Generator) -> tuple[Any, Any]:
    """Each person's coin, told truly with the probability that epsilon allows: the worst private release there is."""

    def fit(rows: Any) -> Any:
        told = np.isin(np.arange(300), rows)
        return told ^ (draw.random(300) < 1 / (1 + math.exp(epsilon)))

    return fit, lambda model, rows: model[np.asarray(rows)] + 0.0


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_what_loses_epsilon_is_hardly_ever_called_and_comes_near_it(epsilon: float) -> None:
    draw, called, least = np.random.default_rng(0), 0, 0.0
    fit, score = responses(epsilon, draw)
    for seed in range(60):
        found = membership(
            fit, np.arange(300), score=score, shadows=2, claimed=epsilon, confidence=0.8, bits=seeded(seed)
        )
        called += found.violation
        least += found.bound.epsilon_lower / 60
    assert called <= 21  # Bin(60, .2) is above with probability .3 %
    assert epsilon / 3 < least < epsilon


def test_several_runs_show_more_than_one() -> None:
    fit, score = responses(2.0, np.random.default_rng(0))
    bounds = [
        membership(fit, np.arange(300), score=score, runs=runs, claimed=2, bits=seeded(1)).bound.epsilon_lower
        for runs in (1, 10)
    ]
    assert bounds[0] < bounds[1] < 2
    assert bounds[1] > 1.7


def test_the_same_with_less_noise_is_called() -> None:
    fit, score = responses(3.0, np.random.default_rng(0))
    assert membership(fit, np.arange(300), score=score, claimed=1, bits=seeded(1)).violation


@pytest.mark.parametrize("shadows", [0, 4])
def test_rows_that_are_copied_are_called_violations(shadows: int) -> None:
    found = membership(lambda rows: rows, PEOPLE, shadows=shadows, claimed=1, bits=seeded(0))
    assert found.violation
    assert found.verdict == "violation"
    assert found.bound.epsilon_lower > 2


def test_shadow_models_find_what_a_loss_alone_does_not_show() -> None:
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(300, 40)), draw.integers(0, 2, 300).astype(float)

    def fit(rows: Any) -> Any:
        return np.linalg.pinv(rows[0]) @ rows[1]

    def loss(model: Any, rows: Any) -> Any:
        return -((rows[0] @ model - rows[1]) ** 2)

    found = membership(fit, (x, y), score=loss, shadows=16, claimed=0.1, bits=seeded(0))
    areas = {curve.name: curve.auc[0] for curve in found.curves}
    assert areas["score"] < 0.56
    assert min(areas["lira"], areas["lira offline"], areas["rmia"]) > areas["score"] + 0.09


def test_a_person_of_many_rows_is_told_by_all_of_them() -> None:
    """One row alone hardly moves the sum of a thousand; ten rows of one person, all in or all out, do."""
    draw = np.random.default_rng(0)
    rows = np.repeat(draw.normal(size=(100, 30)), 10, axis=0) + 0.3 * draw.normal(size=(1000, 30))
    people = np.repeat(np.arange(100), 10)
    noisy = lambda rows: mean(rows) + np.random.default_rng(len(rows)).normal(0, 0.06, 30)  # noqa: E731
    alone = membership(noisy, rows, score=towards, shadows=16, bits=seeded(0))
    together = membership(noisy, rows, score=towards, person=people, shadows=16, bits=seeded(0))
    assert (alone.persons, together.persons) == (1000, 100)
    assert together.best.auc[0] > alone.best.auc[0] + 0.1


@pytest.mark.slow
def test_parallel_processes_find_what_one_finds() -> None:
    told: list[float] = []
    rows = np.random.default_rng(0).normal(size=(60, 4))
    one = membership(mean, rows, score=towards, shadows=3, bits=seeded(0))
    two = membership(mean, rows, score=towards, shadows=3, bits=seeded(0), workers=2, progress=told.append)
    for first, second in zip(one.curves, two.curves, strict=True):
        np.testing.assert_array_equal(first.scores, second.scores)
    assert told[-1] == 100


def test_the_bound_is_drawn_beside_the_curves_and_told(tmp_path: Path) -> None:
    found = membership(lambda rows: rows, PEOPLE, claimed=1, delta=1e-6, bits=seeded(0))
    figure = found.plot()
    assert "most, by epsilon 1" in [line.get_label() for line in figure.axes[0].lines]
    assert figure.axes[0].get_xscale() == figure.axes[0].get_yscale() == "log"
    figure.savefig(tmp_path / "roc.svg")
    told = json.loads(json.dumps(found.to_json()))
    assert told["violation"]
    assert told["attacks"][0]["tpr_at_fpr"]["1 %"]["tpr"] == 1
    assert told["most"]["1 %"] == pytest.approx(0.01 * math.e, rel=1e-3)
    assert "at most, by the claim" in found._repr_html_()
    assert "in expectation by the claim" in str(found)
    assert "claimed" in membership(lambda rows: rows, PEOPLE, bits=seeded(0))._repr_html_()


def test_measured_marginals_show_who_was_in_more_than_distances_do() -> None:
    """Counts of pairs without noise, and rows drawn from one of them at a time."""
    draw = np.random.default_rng(5)
    rows = draw.integers(0, 8, (300, 4))
    knows = MarginalDensity.of(rows, [("0", "1"), ("2", "3")])

    def fit(own: Any) -> Any:
        places = draw.integers(0, len(own), (2, len(own)))
        return np.hstack([own[places[0], :2], own[places[1], 2:]])

    scores: dict[str, Any] = {"distance": ClosestRecord.of(rows), "marginals": knows}
    found = membership(fit, rows, score=scores, shadows=8, claimed=0.1, bits=seeded(3))
    areas = {curve.name: curve.auc[0] for curve in found.curves}
    assert areas["marginals"] > areas["distance"] + 0.1
    assert found.violation


def test_what_is_frequent_everywhere_is_no_sign_of_having_been_in() -> None:
    """Synthetic rows that are as the reference score alike, in full cells and in rare ones."""
    rows = np.array([[0, 0]] * 90 + [[1, 1]] * 10)
    assert np.abs(MarginalDensity.of(rows)(rows, rows)).max() < 1e-9
    assert np.ptp(MarginalDensity.of(rows)(rows[:50], rows[[0, -1]])) > 1


def test_a_secret_is_guessed_of_persons_in_and_out_alike_where_only_the_crowd_tells_it() -> None:
    draw = np.random.default_rng(0)
    known = draw.integers(0, 50, 400)
    rows = pa.table({"known": known, "secret": [str(k // 10) for k in known]})
    crowd = membership(lambda own: own, rows, score=SecretGuess("secret"), claimed=1, bits=seeded(0))
    assert crowd.best.scores.mean() > 0.9  # it is guessed right, of everybody
    assert crowd.best.auc[0] < 0.6
    own = pa.table({"known": np.arange(400), "secret": draw.integers(0, 9, 400)})
    assert membership(lambda own: own, own, score=SecretGuess("secret", 1), claimed=1, bits=seeded(0)).violation


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"score": 3}, "must be a function"),
        ({"score": {}}, "must be a function"),
        ({"score": lambda _, rows: rows[:3, 0]}, "one number for each row"),
        ({"score": lambda _, rows: rows[:, 0] * math.nan}, "none may be NaN"),
        ({"person": [1, 2]}, "person of each row"),
        ({"person": [1] * 40}, "too few"),
        ({"attacks": ["lira"]}, "need shadow models"),
        ({"attacks": []}, "need shadow models"),
        ({"attacks": ["psychic"]}, "psychic"),
        ({"confidence": 1}, "confidence"),
        ({"claimed": -1}, "claimed"),
        ({"runs": 0}, "runs"),
    ],
)
def test_refuses_what_makes_no_attack(how: dict[str, Any], words: str) -> None:
    with pytest.raises(DefocusError, match=words):
        membership(lambda rows: rows, np.random.default_rng(0).normal(size=(40, 2)), **how)


def test_refuses_marginals_and_secrets_of_no_column() -> None:
    with pytest.raises(UnknownColumnError):
        MarginalDensity.of(PEOPLE, [("age", "wart")])
    with pytest.raises(UnknownColumnError):
        SecretGuess("wart")(PEOPLE, PEOPLE)
    with pytest.raises(InvalidParameterError):
        ClosestRecord.of([1, 2, 3])


def neighbours_of(rows: Any) -> Any:
    return KNeighborsClassifier(3, weights="distance").fit(*rows)


def memorised(rows: Any) -> Any:
    net = nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 2))
    optimizer, (x, y) = torch.optim.Adam(net.parameters(), 0.01), map(torch.from_numpy, rows)
    for _ in range(150):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x.float()), y).backward()
        optimizer.step()
    return lambda x: torch.softmax(net(torch.from_numpy(x).float()), 1).detach().numpy()


@pytest.mark.slow
@pytest.mark.parametrize("fit", [neighbours_of, memorised])
def test_models_of_others_that_promise_nothing_are_called(fit: Any) -> None:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(300, 20))
    rows = (x, (x[:, 0] + 1.5 * draw.normal(size=300) > 0).astype(np.int64))

    def known(model: Any, rows: Any) -> Any:
        told = getattr(model, "predict_proba", model)(rows[0])
        return np.log(np.clip(told[np.arange(300), rows[1]], 1e-6, 1))

    found = membership(fit, rows, score=known, shadows=8, runs=2, claimed=1, confidence=0.99, bits=seeded(0))
    assert found.violation, found

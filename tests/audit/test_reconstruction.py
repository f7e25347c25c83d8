"""Reconstruction: exact and nearly exact answers give secrets away, noise for epsilon does not."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import defocus as dp
from defocus.audit import published, reconstruct, reconstruction
from defocus.errors import DefocusError
from defocus.noise.testing import seeded

DRAW = np.random.default_rng(0)
ASKED = DRAW.integers(0, 2, (300, 80))


@pytest.mark.parametrize("method", ["least squares", "linear program"])
@pytest.mark.parametrize("off", [0, 2])
def test_answers_that_are_hardly_wrong_give_nearly_all_secrets_away(method: str, off: int) -> None:
    found = reconstruction(lambda secrets: ASKED @ secrets + off * DRAW.integers(-1, 2, 300), ASKED, method=method,
                           claimed=1, bits=seeded(1))  # fmt: skip
    assert found.share > 0.95
    assert found.violation
    assert found.most == pytest.approx(math.e / (1 + math.e), abs=0.01)


def test_a_linear_program_bears_answers_that_are_wildly_wrong() -> None:
    """A tenth of them are."""
    wrong = np.where(DRAW.random(300) < 0.1, 1000, 0)
    shares = {
        method: reconstruction(lambda s: ASKED @ s + wrong, ASKED, method=method, bits=seeded(1)).share
        for method in ("least squares", "linear program")
    }
    assert shares["linear program"] == 1
    assert shares["least squares"] < 0.9


def test_secrets_behind_randomised_response_are_hardly_ever_called() -> None:
    """The worst release of secrets at epsilon: its bound is above the truth as rarely as it says."""
    truth = 1 / (1 + math.exp(-1.0))
    called = 0
    for seed in range(60):
        found = reconstruction(
            lambda secrets: secrets ^ (DRAW.random(200) > truth),
            np.eye(200),
            claimed=1,
            confidence=0.8,
            bits=seeded(seed),
        )
        called += found.violation
        assert abs(found.share - truth) < 0.15
    assert called <= 21  # Bin(60, .2) is above with probability .3 %


def test_noise_for_all_answers_together_hides_secrets_and_noise_for_each_alone_does_not() -> None:
    noisy = {scale: lambda s, scale=scale: ASKED @ s + DRAW.laplace(0, scale, 300) for scale in (300, 1)}
    found = {scale: reconstruction(release, ASKED, claimed=1, bits=seeded(3)) for scale, release in noisy.items()}
    assert not found[300].violation
    assert found[300].share < 0.65
    assert found[1].violation


def test_released_tables_of_a_ledger_give_secrets_away_at_a_large_epsilon_only(tmp_path: Path) -> None:
    """The attacker knows ages and wards of all people, and reads how many are sick by each of them."""
    draw = np.random.default_rng(4)
    known = {"age": draw.integers(0, 150, 120), "ward": draw.integers(0, 12, 120)}
    sick = draw.random(120) < 0.5
    people = pa.table({**known, "sick": sick})
    shares = {}
    for epsilon in (0.1, 50):
        place = tmp_path / str(epsilon)
        with dp.open(people, unit=dp.rows(), budget=dp.Budget(1000), ledger=place, name="people") as table:
            asked = [
                table.where("sick").group_by(name, keys=range(n)).agg(n=dp.count())
                for name, n in (("age", 150), ("ward", 12))
            ]
            answers = [each.release(epsilon=epsilon, bits=seeded(1)) for each in asked]
        queries, counts, errors = published(answers, pa.table(known))
        assert queries.shape == (162, 120)
        shares[epsilon] = ((reconstruct(queries, counts, errors=errors) > 0.5) == sick).mean()
    assert shares[50] > 0.85
    assert shares[0.1] < 0.65


def test_answers_about_some_people_are_read_with_their_flags(tmp_path: Path) -> None:
    people = pa.table({"age": [1, 1, 2], "sick": [True, False, True]})
    with dp.open(people, unit=dp.rows(), budget=dp.Budget(100), ledger=tmp_path / "a", name="people") as table:
        answer = table.where("sick and age > 1").agg(n=dp.count()).release(epsilon=50)
    queries, counts, _ = published([(answer, [False, False, True])], people)
    assert queries.tolist() == [[0, 0, 1]]
    assert reconstruct(queries, counts, method="least squares")[2] > 0.9


def test_it_is_told_and_drawn(tmp_path: Path) -> None:
    found = reconstruction(lambda s: ASKED @ s, ASKED, claimed=1, delta=1e-6, bits=seeded(1))
    told = json.loads(json.dumps(found.to_json()))
    assert (told["share"], told["persons"], told["violation"]) == (1, 80, True)
    assert told["interval"][0] > 0.9
    assert "100.00%" in str(found)
    assert "guessing finds 50 %" in found._repr_html_()
    found.plot().savefig(tmp_path / "a.svg")


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"queries": [[1, 2]]}, "eight or more"),
        ({"method": "magic"}, "magic"),
        ({"release": lambda secrets: secrets[:3]}, "a line for each answer"),
        ({"claimed": -1}, "claimed"),
    ],
)
def test_refuses_what_makes_no_attack(how: dict[str, Any], words: str) -> None:
    given = {"release": lambda s: ASKED @ s, "queries": ASKED, **how}
    with pytest.raises(DefocusError, match=words):
        reconstruction(given.pop("release"), given.pop("queries"), **given)


def test_refuses_errors_of_zero_and_answers_without_counts(tmp_path: Path) -> None:
    with pytest.raises(DefocusError, match="above zero"):
        reconstruct([[1, 0]], [1], errors=[0])
    people = pa.table({"age": [1.0, 1.5]})
    with dp.open(people, unit=dp.rows(), budget=dp.Budget(9), ledger=tmp_path / "a", name="people") as table:
        answer = table.agg(m=dp.mean("age", 0, 2)).release(epsilon=1)
    with pytest.raises(DefocusError, match="None of the answers is a count"):
        published([answer], people)

"""The example of attacks on a table without names: what leaks is true, and what is private stays below its bound."""

import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "why_privacy.py"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


@pytest.fixture(scope="module")
def people(example: dict[str, Any]) -> list[Any]:
    found: list[Any] = example["town"](people=2000)
    return found


def test_the_table_is_as_anonymous_as_it_claims(example: dict[str, Any], people: list[Any]) -> None:
    groups = example["anonymous"](people)
    sizes = Counter(person.coarse for person in people if person.diagnosis)
    assert groups
    for key, rows in groups.items():
        assert len(rows) == sizes[key] >= example["K"]


def test_linkage_names_most_rows_and_names_them_rightly(example: dict[str, Any], people: list[Any]) -> None:
    table = example["without_names"](people)
    named = example["linkage"](table, people)
    truth = {person.name: person.diagnosis for person in people}
    assert len(named) > 0.9 * len(table)
    assert all(truth[name] == diagnosis for name, diagnosis in named.items())


def test_homogeneity_is_certain_and_right_despite_anonymity(example: dict[str, Any], people: list[Any]) -> None:
    patients = [person for person in people if person.diagnosis]
    certain = example["homogeneity"](example["anonymous"](people), patients)
    truth = {person.name: person.diagnosis for person in patients}
    assert len(certain) >= 5
    assert all(truth[name] == diagnosis for name, diagnosis in certain.items())


def test_groups_that_disagree_give_nothing_away(example: dict[str, Any], people: list[Any]) -> None:
    mixed = {people[0].coarse: ["asthma", "cancer", "cancer", "cancer", "cancer"]}
    assert example["homogeneity"](mixed, people) == {}


def test_nobody_believes_more_than_the_guarantee_allows(
    example: dict[str, Any], people: list[Any], tmp_path: Path
) -> None:
    """Over every patient and every guess, the strongest attacker stays at or below the bound."""
    answer = example["private_counts"](people, tmp_path)
    prior = dict(zip(example["DIAGNOSES"], (0.5, 0.3, 0.1, 0.09, 0.01), strict=True))
    moved = 0.0
    for target in [person for person in people if person.diagnosis][:150]:
        after = example["posterior"](answer, people, target, prior)
        assert sum(after.values()) == pytest.approx(1)
        for guess, belief in after.items():
            assert belief <= example["ceiling"](answer, prior[guess]) + 1e-6
            assert 1 - belief <= example["ceiling"](answer, 1 - prior[guess]) + 1e-6
            moved = max(moved, abs(belief - prior[guess]))
    assert moved > 0.01  # the attack does use the answer


def test_the_private_counts_are_close_and_cost_what_they_say(
    example: dict[str, Any], people: list[Any], tmp_path: Path
) -> None:
    answer = example["private_counts"](people, tmp_path)
    true = Counter((person.coarse[0], person.diagnosis) for person in people if person.diagnosis)
    cells = zip(answer.keys["band"].to_pylist(), answer.keys["diagnosis"].to_pylist(), strict=True)
    inside = [
        low <= true[cell] <= high
        for cell, low, high in zip(cells, answer["patients"].low, answer["patients"].high, strict=True)
    ]
    assert len(inside) == 25
    assert sum(inside) >= 16
    assert answer.promise().epsilon == pytest.approx(0.5, rel=1e-6)


def test_it_tells_the_story(example: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    example["main"]()
    out = " ".join(capsys.readouterr().out.split())
    for words in (
        "1335 rows",
        "1324 of them",
        "159 groups",
        "10 of them",
        "For 68 named",
        "(0 wrong)",
        "100 %",
        "after the private release",
        "at most, whatever they know 29.2 %",
    ):
        assert words in out

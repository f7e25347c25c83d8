"""What one person is, in words and in equality."""

import copy
import dataclasses
import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import defocus
from defocus.errors import InvalidParameterError
from defocus.privacy import Adjacency, Sensitivity, Unit, edge, item, node, rows, user, weight

WORDS = {
    "one row, added or removed": rows(),
    "one row, replaced by another": rows(replace=True),
    "everything about one patient_id, added or removed": user("patient_id"),
    "everything about one patient_id, replaced by another": user("patient_id", replace=True),
    "one edge, added or removed": edge(),
    "one edge, replaced by another": edge(replace=True),
    "one node and its edges, added or removed": node(),
    "one node with at most 50 edges, added or removed": node(max_degree=50),
    "one node with at most 50 edges, replaced by another": node(max_degree=50, replace=True),
    "one event, added or removed": item(),
    "one event, replaced by another": item(replace=True),
    "one weight in [0, 2.5], replaced by another": weight(bound=2.5),
    "one weight in [0, 1/3], replaced by another": weight(bound=Fraction(1, 3)),
}


@pytest.mark.parametrize("words", WORDS)
def test_a_unit_says_who_is_protected_and_from_what(words: str) -> None:
    assert str(WORDS[words]) == words


def test_units_that_read_differently_are_different() -> None:
    assert len(set(WORDS.values())) == len(WORDS)
    assert user("patient_id") == user("patient_id")
    assert user("patient_id") != user("doctor_id")
    assert user("patient_id") != user("patient_id", replace=True)
    assert weight(bound=2) == weight(bound=2.0) == weight(bound=Fraction(2))


@pytest.mark.parametrize("unit", WORDS.values(), ids=str)
def test_a_unit_travels_and_cannot_be_changed(unit: Unit) -> None:
    again = pickle.loads(pickle.dumps(unit))  # noqa: S301  # our own bytes
    assert again == copy.deepcopy(unit) == unit
    assert hash(again) == hash(unit)
    assert again.adjacency is unit.adjacency
    with pytest.raises(AttributeError):
        unit.kind = "rows"  # type: ignore[misc]


def test_adding_and_removing_is_the_adjacency_unless_said_otherwise() -> None:
    """Which weights exist is public, so a weight can only be replaced."""
    assert {unit.adjacency for unit in (rows(), user("id"), edge(), node(), item())} == {Adjacency.ADD_REMOVE}
    assert weight(bound=1).adjacency is Adjacency.REPLACE
    assert [str(each) for each in Adjacency] == ["add_remove", "replace"]


@pytest.mark.parametrize("column", ["", None, 3, b"id", ["id"], True])
def test_a_user_needs_a_column(column: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"(?s)name of the column.*To fix: .*user\(\"patient_id\"\)"):
        user(column)


@pytest.mark.parametrize("degree", [0, -1, 1.5, True, "3", math.nan, 2**63])
def test_a_degree_is_a_count(degree: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"(?s)max_degree must .*To fix"):
        node(max_degree=degree)


@pytest.mark.parametrize("bound", [0, -1, math.nan, math.inf, True, "1", None])
def test_a_weight_needs_a_positive_bound(bound: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"(?s)bound must .*To fix"):
        weight(bound=bound)


@pytest.mark.parametrize("replace", ["no", "replace", 0, 1, None, Adjacency.ADD_REMOVE])
def test_adjacency_is_never_guessed_from_something_truthy(replace: Any) -> None:
    for make in (rows, edge, node, item, lambda **named: user("id", **named)):
        with pytest.raises(InvalidParameterError, match=r"(?s)replace must be True or False.*To fix"):
            make(replace=replace)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Unit("people"),
        lambda: Unit(["rows"]),  # type: ignore[arg-type]
        lambda: Unit("user"),
        lambda: Unit("rows", column="id"),
        lambda: Unit("rows", adjacency="add_remove"),  # type: ignore[arg-type]
    ],
)
def test_a_unit_made_by_hand_is_checked_as_well(make: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"(?s)is not a unit.*To fix: make one with rows\(\), user\(\)"):
        make()


def test_units_are_at_the_front_door() -> None:
    for make in (rows, user, edge, node, item, weight):
        assert getattr(defocus, make.__name__) is make


def moves(statistic: Any, data: Any, neighbours: Any, order: float) -> float:
    """The largest movement seen over neighbours: never above a true sensitivity."""
    return max(float(np.linalg.norm(np.atleast_1d(statistic(data) - statistic(other)), order)) for other in neighbours)


def test_counts_and_stays_move_by_what_the_documents_say() -> None:
    """Visits with at most m per patient: event level 1, user level m; days of at most 30 a visit: 30 and 30 m."""
    m, longest = 3, 30
    visits = [(patient, longest) for patient in range(4) for _ in range(m)]
    one_visit = [visits[:i] + visits[i + 1 :] for i in range(len(visits))]
    one_patient = [[visit for visit in visits if visit[0] != patient] for patient in range(4)]
    days = lambda table: sum(stay for _, stay in table)  # noqa: E731 - a statistic, named for the lines below
    assert moves(len, visits, one_visit, 1) == Sensitivity(1).l1
    assert moves(len, visits, one_patient, 1) == Sensitivity(m).l1
    assert moves(days, visits, one_visit, 1) == Sensitivity(longest).l1
    assert moves(days, visits, one_patient, 1) == Sensitivity(longest * m).l1


def test_accuracies_and_clipped_means_move_by_what_the_documents_say() -> None:
    """Accuracy on m examples: 1/m; mean of n vectors clipped to C: 2C/n, one replaced; clipped sum: C, one removed."""
    m = 20
    right = np.ones(m)
    wrong = [np.where(np.arange(m) == i, 0, right) for i in range(m)]
    assert moves(np.mean, right, wrong, 1) == pytest.approx(1 / m)
    n, clip = 8, 2.5
    vectors = np.tile([clip, 0.0], (n, 1))
    flipped = vectors.copy()
    flipped[0] = [-clip, 0.0]
    assert moves(lambda v: v.mean(axis=0), vectors, [flipped], 2) == pytest.approx(2 * clip / n)
    assert moves(lambda v: v.sum(axis=0), vectors, [vectors[1:]], 2) == pytest.approx(clip)


def test_a_sensitivity_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Sensitivity(1).l1 = 2  # type: ignore[misc]

"""Which cells rows fall into, and how far one person moves them: by trying all of few."""

import itertools
from typing import Any

import numpy as np
import pytest

from defocus.errors import InvalidParameterError
from defocus.learning.estimators.grid import Persons
from defocus.learning.evaluation.cells import SUMS, Layout, edges_of, noise_for
from defocus.mechanisms import Gaussian, Laplace
from defocus.privacy.budgets import Budget
from defocus.privacy.units import rows, user

EDGES = (0.0, 0.5, 1.0)
NAN = float("nan")
TWO = Layout("score", (0, 1), EDGES, 0.5, ("A", "B"), persons=False)
THREE = Layout("chances", ("a", "b", "c"), EDGES, 0.5, (), persons=False)
NAMED = Layout("labels", ("a", "b", "c"), (), 0.5, ("A", "B"), persons=False)
NUMBERS = Layout("number", (), (), 0.5, (), persons=False)

Row = tuple[Any, Any, int]
"""Scores, the target, the group."""
EVERY: dict[str, tuple[Layout, list[Row]]] = {
    "two classes": (TWO, [((s,), t, g) for s in (0.2, 0.5, NAN) for t in (0, 1, -1) for g in (0, -1)]),
    "three classes": (THREE, [(s, t, 0) for s in ((0.1, 0.2, 0.7), (0.4, 0.3, 0.3), (NAN,) * 3) for t in (0, 2, -1)]),
    "named classes": (NAMED, [((s,), t, g) for s in (0.0, 2.0, NAN) for t in (0, 2, -1) for g in (1, -1)]),
    "numbers": (NUMBERS, [((s,), t, 0) for s in (0.0, 0.3, 1.0, NAN) for t in (0.0, 1.0, 0.7, NAN)]),
}


def counted(layout: Layout, some: list[Row], owner: list[int] | None = None) -> Any:
    width = 3 if layout.kind == "chances" else 1
    scores = np.array([row[0] for row in some], dtype=float).reshape(len(some), width)
    kind = float if layout.kind == "number" else np.int64
    targets, groups = np.array([row[1] for row in some], dtype=kind), np.array([row[2] for row in some], dtype=np.int64)
    persons = None if owner is None else Persons(np.array(owner, dtype=np.int64))
    return layout.counted(scores, targets, groups if layout.groups else None, persons)


def moved(one: Any, other: Any, layout: Layout) -> tuple[float, float]:
    apart = np.abs(one - other) / layout.unit
    return float(apart.sum()), float(np.square(apart).sum())


@pytest.mark.parametrize("name", EVERY)
def test_no_row_moves_cells_further_than_is_charged_for(name: str) -> None:
    layout, every = EVERY[name]
    furthest, squared = 0.0, 0.0
    for few in itertools.product(every, repeat=2):
        both = counted(layout, list(few))
        for last in ([], [every[3]]):
            far, square = moved(counted(layout, [*few[:1], *last]), both, layout)
            limit = layout.sensitivity(rows(replace=bool(last)))
            assert far <= limit.l1 / layout.unit
            assert square <= limit.l2_squared / layout.unit**2 + 1e-9
            furthest, squared = max(furthest, far), max(squared, square)
    assert furthest == layout.sensitivity(rows(replace=True)).l1 / layout.unit or name == "numbers"
    assert furthest > 1 or squared > 1


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_no_person_moves_cells_further_than_one_row_may(name: str) -> None:
    plain, every = EVERY[name]
    layout = Layout(plain.kind, plain.classes, plain.edges, plain.threshold, plain.groups, persons=True)
    limit = layout.sensitivity(user("id"))
    assert limit.l1 == layout.unit * (len(SUMS) if name == "numbers" else len(layout.shapes))
    other = [every[0], every[1]]
    for own in itertools.chain(itertools.product(every, repeat=2), itertools.product(every[:6], repeat=3)):
        without = counted(layout, other, [0, 1])
        far, square = moved(counted(layout, [*other, *own], [0, 1, *[2] * len(own)]), without, layout)
        assert far <= limit.l1 / layout.unit
        assert square <= limit.l2_squared / layout.unit**2


def test_persons_who_own_several_rows_move_cells_as_often() -> None:
    assert TWO.sensitivity(rows(per_person=3)).l1 == 3
    assert TWO.sensitivity(rows(per_person=3, replace=True)).l1 == 6
    assert THREE.sensitivity(rows()).l1 == 2
    assert float(THREE.sensitivity(rows()).l2_squared) == 2


def test_every_row_has_one_cell_of_each_table() -> None:
    for layout, every in (EVERY["two classes"], EVERY["named classes"]):
        for row in every:
            assert counted(layout, [row]).sum() == 1
    for row in EVERY["three classes"][1]:
        assert counted(THREE, [row])[: 4 * 4].sum() == 1
        assert counted(THREE, [row])[4 * 4 :].sum() in {0, 1}


def test_a_score_at_an_edge_is_in_the_bucket_above_and_odd_rows_in_the_last_cell() -> None:
    def place(score: float, label: int, group: int) -> list[int]:
        return [int(each[0]) for each in np.nonzero(counted(TWO, [((score,), label, group)]).reshape(3, 3, 3))]

    assert place(0.5, 1, 0) == [0, 1, 1]
    assert place(np.nextafter(0.5, 0), 1, 0) == [0, 1, 0]
    assert place(1.0, 0, 1) == [1, 0, 1]
    assert place(NAN, 0, 1) == [1, 0, 2]
    assert place(0.2, -1, 0) == [0, 2, 2]
    assert place(0.2, 0, -1) == [2, 0, 0]


def test_the_threshold_is_an_edge_whatever_the_buckets() -> None:
    for buckets in (1, 7, 20, [0.2, 0.6], None):
        edges = edges_of(buckets, 0.37, expected=None, variance=2.0)
        assert 0.37 in edges
        assert edges[0] == 0
        assert edges[-1] == 1
        assert list(edges) == sorted(set(edges))


def test_more_rows_and_less_noise_mean_more_buckets() -> None:
    def number(expected: int | None, variance: float) -> int:
        return len(edges_of(None, 0.5, expected=expected, variance=variance)) - 1

    assert number(100, 2.0) == 10
    assert number(100, 2.0) < number(None, 2.0) == number(1000, 2.0) < number(10_000, 2.0) <= 200
    assert number(1000, 200.0) < number(1000, 2.0)


@pytest.mark.parametrize("buckets", [0, -1, 2.5, [0.5, 0.2], [0.2, 2], 10**9, "many"])
def test_buckets_that_are_none_are_refused(buckets: Any) -> None:
    with pytest.raises(InvalidParameterError):
        edges_of(buckets, 0.5, expected=None, variance=2.0)


def test_noise_is_the_least_that_the_price_allows() -> None:
    pure = noise_for(TWO, Budget(1), rows())
    assert isinstance(pure.mechanism, Laplace)
    assert (float(pure.mechanism.scale), pure.mechanism.sensitivity) == (1, 1)
    assert noise_for(TWO, Budget(1, 1e-6), rows()) == pure
    many = noise_for(TWO, Budget(1, 1e-3), rows(per_person=20, replace=True))
    assert isinstance(many.mechanism, Laplace | Gaussian)
    assert many.variance <= noise_for(TWO, Budget(1), rows(per_person=20, replace=True)).variance
    assert isinstance(noise_for(TWO, Budget(rho=0.5), rows(replace=True)).mechanism, Laplace | Gaussian)
    persons = Layout("score", (0, 1), EDGES, 0.5, (), persons=True)
    assert noise_for(persons, Budget(1), user("id")).variance == pytest.approx(2, rel=0.01)

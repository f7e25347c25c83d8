"""Translations of units, by brute force: all small data sets about two or three persons, and their distances."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from defocus.errors import LedgerMismatchError
from defocus.privacy import Adjacency, Laplace, Unit, edge, group, item, node, rows, user, weight
from defocus.privacy.translation import TRANSLATIONS, appearance

DataSet = Any
"""Something hashable."""


def distances(start: DataSet, moves: Callable[[DataSet], Iterable[DataSet]], furthest: int) -> dict[DataSet, int]:
    """How many changes each data set is away from ``start``, by breadth-first search."""
    found, front = {start: 0}, [start]
    for steps in range(1, furthest + 1):
        front = [one for data in front for one in moves(data) if one not in found]
        found |= dict.fromkeys(front, steps)
    return found


def multiset(values: Iterable[Any]) -> frozenset[tuple[Any, int]]:
    return frozenset(Counter(values).items())


def one_row_more_or_less(data: frozenset[tuple[Any, int]]) -> Iterator[DataSet]:
    counted = Counter(dict(data))
    for value in (0, 1):
        yield multiset((counted + Counter([value])).elements())
        if counted[value]:
            yield multiset((counted - Counter([value])).elements())


def one_edge_more_or_less(nodes: int) -> Callable[[DataSet], Iterator[DataSet]]:
    pairs = [frozenset(pair) for pair in itertools.combinations(range(nodes), 2)]
    return lambda graph: (graph ^ {pair} for pair in pairs)


def furthest_apart(
    pairs: Iterable[tuple[DataSet, DataSet]], moves: Callable[[DataSet], Iterable[DataSet]], limit: int
) -> int:
    most = 0
    walks: dict[DataSet, dict[DataSet, int]] = {}
    for before, after in pairs:
        if before not in walks:
            walks[before] = distances(before, moves, limit)
        most = max(most, walks[before].get(after, limit + 1))
    return most


def records_of_a_person(most: int) -> list[tuple[int, ...]]:
    return [chosen for n in range(most + 1) for chosen in itertools.combinations_with_replacement((0, 1), n)]


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("unit", [rows, item])
def test_a_person_with_at_most_m_rows_is_as_many_changes_as_the_unit_says(
    most: int, replaced: bool, unit: Callable[..., Unit]
) -> None:
    person = user("patient", replace=replaced)
    said = appearance(person, unit(per_person=most)).changes
    owned = records_of_a_person(most)
    others = owned[:4]
    pairs = []
    for other, mine in itertools.product(others, owned):
        changed = owned if replaced else [()]
        pairs += [(multiset(other + mine), multiset(other + new)) for new in changed]
    assert furthest_apart(pairs, one_row_more_or_less, said) == said


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("replaced", [False, True])
def test_a_person_at_the_end_of_at_most_m_edges_is_as_many_changes_as_the_unit_says(most: int, replaced: bool) -> None:
    said = appearance(user("patient", replace=replaced), edge(per_person=most)).changes
    nodes = 7 if replaced else 5
    pairs = []
    for ends in itertools.chain.from_iterable(itertools.combinations(range(1, nodes), n) for n in range(most + 1)):
        for rest in ((), (frozenset((1, 2)), frozenset((2, 3)))):
            graph = frozenset((*rest, *(frozenset((0, end)) for end in ends)))
            options: Iterable[tuple[int, ...]] = [()]
            if replaced:
                options = itertools.chain.from_iterable(
                    itertools.combinations(range(1, nodes), n) for n in range(most + 1)
                )
            pairs += [(graph, frozenset((*rest, *(frozenset((0, end)) for end in new)))) for new in options]
    steps = one_edge_more_or_less(nodes)

    def apart(before: frozenset[Any], after: frozenset[Any]) -> int:
        return len(before ^ after)  # each change adds or removes one edge, so no walk is shorter, and one is as short

    assert max(apart(before, after) for before, after in pairs) == said
    near = [(before, after) for before, after in pairs if apart(before, after) <= 2]
    assert all(distances(before, steps, 2)[after] == apart(before, after) for before, after in near[:40])


def test_a_person_who_is_a_node_is_one_node_change_or_two_where_persons_are_replaced() -> None:
    nodes = (0, 1, 2)
    pairs = [frozenset(pair) for pair in itertools.combinations(nodes, 2)]
    graphs = {
        (frozenset(there), frozenset(edges))
        for n in range(len(nodes) + 1)
        for there in itertools.combinations(nodes, n)
        for k in range(len(pairs) + 1)
        for edges in itertools.combinations([pair for pair in pairs if pair <= set(there)], k)
    }

    def without(graph: DataSet, one: int) -> DataSet:
        there, edges = graph
        return there - {one}, frozenset(pair for pair in edges if one not in pair)

    def one_node_more_or_less(graph: DataSet) -> Iterator[DataSet]:
        yield from (without(graph, one) for one in graph[0])
        yield from (other for other in graphs for one in other[0] - graph[0] if without(other, one) == graph)

    for replaced in (False, True):
        said = appearance(user("patient", replace=replaced), node()).changes
        neighbours = [
            (graph, other)
            for graph in graphs
            for other in graphs
            if 0 in graph[0]
            and (
                without(graph, 0) == other if not replaced else without(graph, 0) == without(other, 0) and 0 in other[0]
            )
        ]
        assert furthest_apart(neighbours, one_node_more_or_less, said) == said


@pytest.mark.parametrize("most", [1, 2, 3])
def test_values_of_at_most_m_weights_are_m_changes_in_place(most: int) -> None:
    said = appearance(user("patient", replace=True), weight(bound=1, per_person=most)).changes
    settings = list(itertools.product((0, 1), repeat=most))

    def one_value_changes(values: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        yield from ((*values[:i], 1 - values[i], *values[i + 1 :]) for i in range(len(values)))

    pairs = [((*mine, 1), (*other, 1)) for mine in settings for other in settings]
    assert furthest_apart(pairs, one_value_changes, said) == said


def test_a_group_owes_as_much_as_a_release_that_was_planned_for_as_many_changes() -> None:
    unit = appearance(user("patient"), edge(per_person=20))
    assert group(Laplace(40), unit.changes) == Laplace(2)


def test_the_ledger_says_whether_persons_are_replaced() -> None:
    replaced = user("patient", replace=True)
    assert appearance(replaced, user("id")) == user("id", replace=True)
    assert appearance(replaced, node()).adjacency is Adjacency.REPLACE
    assert not appearance(replaced, rows(per_person=1)).number_is_public
    assert appearance(node(), user("name")) == user("name")


@pytest.mark.parametrize(
    ("person", "data", "what", "fix"),
    [
        (user("patient"), rows(), "any number", "rows(per_person=…); or name the column"),
        (user("patient"), edge(), "any number", "edge(per_person=…); or protect the node"),
        (user("patient"), item(), "any number", "item(per_person=…)"),
        (user("patient", replace=True), weight(bound=3), "any number", "weight(bound=3, per_person=…)"),
        (node(), edge(), "any number", "edge(per_person=…)"),
        (node(max_degree=9), edge(), "any number", "edge(per_person=…)"),
        (user("patient"), weight(bound=3, per_person=2), "which weights exist is public", "replace=True"),
        (user("patient"), rows(replace=True, per_person=1), "number of units is public", "leave replace= out"),
        (user("patient"), user("patient", replace=True), "number of units is public", "leave replace= out"),
        (rows(), user("patient"), "does not say whose", "unit=dp.user"),
        (edge(), node(), "does not say whose", "unit=dp.user"),
        (item(), rows(per_person=2), "does not say whose", "unit=dp.user"),
        (rows(replace=True), rows(), "does not say whose", "unit=dp.user"),
    ],
)
def test_where_no_translation_exists_the_reason_and_the_remedy_are_told(
    person: Unit, data: Unit, what: str, fix: str
) -> None:
    with pytest.raises(LedgerMismatchError) as refused:
        appearance(person, data)
    assert what in refused.value.what
    assert fix in refused.value.fix


def test_every_translation_is_listed_with_its_reason() -> None:
    assert len({one.appears for one in TRANSLATIONS}) == len(TRANSLATIONS) >= 7
    assert all(one.why and one.changes and one.replaced for one in TRANSLATIONS)

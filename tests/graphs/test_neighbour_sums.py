"""Sums over neighbours: whom they protect, by all small cases, and what they are."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from defocus import Budget, Ledger, edge, rows, user
from defocus.errors import BudgetExceededError, DefocusError
from defocus.graphs import neighbour_sums
from defocus.graphs.neighbour_sums import _GRID, _share, _sums, _whole
from defocus.noise.testing import seeded


def book(folder: Path, unit: Any = None, epsilon: float = 9.0) -> Ledger:
    unit = user("page") if unit is None else unit
    return Ledger.open(folder / "a.ledger", budget=Budget(epsilon, 1e-5), unit=unit, dataset="pages")


def exact(lists: list[tuple[int, ...]], labels: tuple[int, ...]) -> Any:
    """The sums of nodes with these lists and labels."""
    pairs = [(one, other) for one, listed in enumerate(lists) for other in listed]
    columns = np.array(pairs, np.int64).reshape(-1, 2)
    return _sums((columns[:, 0], columns[:, 1]), _whole(np.array(labels), 2), len(lists))


def test_removing_or_replacing_any_node_of_any_small_graph_moves_the_sums_by_what_is_charged() -> None:
    nodes = 3
    others = [[tuple(o for o, bit in zip(set(range(nodes)) - {v}, bits, strict=True) if bit)
               for bits in product((0, 1), repeat=nodes - 1)] for v in range(nodes)]  # fmt: skip
    most_gone, most_replaced = 0, 0
    for lists in product(*others):
        for labels in product((-1, 0, 1), repeat=nodes):
            whole = exact(list(lists), labels)
            gone = exact([(), *lists[1:]], (-1, *labels[1:]))
            most_gone = max(most_gone, int(((whole - gone) ** 2).sum()))
            for own, label in product(others[0], (0, 1)):
                other = exact([own, *lists[1:]], (label, *labels[1:]))
                most_replaced = max(most_replaced, int(((whole - other) ** 2).sum()))
    assert 0.999 * _GRID**2 < most_gone <= _GRID**2
    assert 1.999 * _GRID**2 < most_replaced <= 4 * _GRID**2


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_all_that_one_node_owns_moves_the_sums_of_larger_graphs_by_no_more(data: st.DataObject) -> None:
    """Any values and any list of one node, twice the same and none included; what others list stays."""
    nodes = data.draw(st.integers(2, 30))
    number = st.floats(-3, 3) | st.sampled_from([np.nan, np.inf, -1e300, 1.0])
    lists = st.lists(st.integers(-1, nodes), max_size=40)
    draw = np.random.default_rng(data.draw(st.integers(0, 99)))
    source, target = (draw.integers(0, nodes, 3 * nodes) for _ in range(2))
    values = draw.normal(size=(nodes, 3))
    found = []
    for _ in range(2):
        own = np.array(data.draw(lists), np.int64)
        values[0] = data.draw(st.lists(number, min_size=3, max_size=3))
        columns = np.append(source[source != 0], np.zeros_like(own)), np.append(target[source != 0], own)
        found.append(_sums(columns, _whole(values, None), nodes))
    values[0] = 0
    found.append(_sums((source[source != 0], target[source != 0]), _whole(values, None), nodes))
    assert ((found[0] - found[2]) ** 2).sum() <= _GRID**2
    assert ((found[0] - found[1]) ** 2).sum() <= 4 * _GRID**2


@pytest.mark.parametrize("degree", [1, 2, 3, 7, 100, 12_345])
def test_a_hub_sends_no_more_than_anybody(degree: int) -> None:
    nodes = degree + 1
    values = np.full((nodes, 3), -0.9)
    values[1:] = 0
    listed = np.arange(1, nodes)
    sums = _sums((np.zeros(degree, np.int64), listed), _whole(values, None), nodes)
    assert 0.9 * _GRID**2 < (sums.astype(object) ** 2).sum() <= _GRID**2


def test_shares_are_the_largest_that_fit() -> None:
    degree = np.unique(np.geomspace(1, 2**31, 4000).astype(np.int64))
    share = _share(degree).astype(object)
    assert (share**2 * degree <= _GRID**2).all()
    assert ((share + 1) ** 2 * degree > _GRID**2).all()


def test_values_are_cut_to_norm_one_and_odd_ones_are_nothing() -> None:
    values = np.array([[1, -1], [np.nan, 0.5], [-0.0, np.inf], [0.6, -0.8], [5e-324, -1e300]])
    found = _whole(values, None)
    assert ((found**2).sum(1) <= _GRID**2).all()
    assert found[1].tolist() == [0, _GRID // 2]
    assert found[2].tolist() == [0, _GRID]
    assert abs(found[0] / _GRID - [np.sqrt(0.5), -np.sqrt(0.5)]).max() < 1e-5
    assert found[4].tolist() == [0, -_GRID]


def test_pairs_that_name_no_node_twins_and_loops_change_nothing() -> None:
    some = np.array([0, 1, 2]), np.array([1, 2, 0])
    odd = np.array([0, 1, 2, 0, 2, -1, 7, 1, 2**62]), np.array([1, 2, 0, 1, 2, 0, 0, 9, 0])
    know = _whole(np.array([0, 1, 1]), 2)
    assert (_sums(some, know, 3) == _sums(odd, know, 3)).all()


@pytest.mark.statistical
def test_the_noise_has_the_declared_scale_and_no_other(tmp_path: Path) -> None:
    nothing = np.zeros(0, np.int64), np.zeros(0, np.int64)
    with book(tmp_path) as ledger:
        made = neighbour_sums(nothing, np.full(5000, -1), classes=4, nodes=5000, ledger=ledger, rho=0.5, bits=seeded(3))
    assert ledger.terms.unit.changes == 1
    noise = made.value.ravel()  # rho = 1/2 means a standard deviation of one message
    assert stats.kstest(noise, "norm", (0, 1)).pvalue > 1e-6
    assert stats.kstest(noise, "norm", (0, 1.1)).pvalue < 1e-6


def test_replaced_nodes_and_persons_of_several_pay_for_all_they_move(tmp_path: Path) -> None:
    errors = []
    for place, unit in enumerate((user("page"), user("page", replace=True), rows(per_person=3))):
        folder = tmp_path / str(place)
        folder.mkdir()
        with book(folder, unit) as ledger:
            made = neighbour_sums((np.array([0]), np.array([1])), np.zeros((2, 1)), nodes=2, ledger=ledger, rho=0.1)
        errors.append(made.error)
    assert np.allclose(np.array(errors) / errors[0], [1, 2, 3], rtol=1e-3)


def test_an_answer_is_recalled_by_its_request_and_not_for_another_question(tmp_path: Path) -> None:
    some, know = (np.array([0, 1]), np.array([1, 0])), np.array([0, 1])
    with book(tmp_path) as ledger:
        first = neighbour_sums(some, know, classes=2, nodes=2, ledger=ledger, epsilon=4, delta=1e-6, request="a")
        before = len(list(ledger.entries()))
        again = neighbour_sums(some, know, classes=2, nodes=2, ledger=ledger, epsilon=4, delta=1e-6, request="a")
        assert (first.value == again.value).all()
        assert "not that others list it" in first.explain()
        assert len(list(ledger.entries())) == before
        with pytest.raises(DefocusError, match="another question"):
            neighbour_sums(some, know, classes=3, nodes=2, ledger=ledger, epsilon=4, delta=1e-6, request="a")
        with pytest.raises(BudgetExceededError):
            neighbour_sums(some, know, classes=2, nodes=2, ledger=ledger, epsilon=8, delta=1e-6)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"edges": ([0], [1])}, "arrays of whole numbers"),
        ({"edges": (np.array([0.0]), np.array([1.0]))}, "arrays of whole numbers"),
        ({"edges": (np.array([0]), np.array([1, 2]))}, "arrays of whole numbers"),
        ({"edges": np.zeros((2, 2), np.int64)}, "arrays of whole numbers"),
        ({"values": np.zeros(2)}, "a row for each of the 2 nodes"),
        ({"values": np.zeros((3, 1))}, "a row for each of the 2 nodes"),
        ({"values": np.zeros((2, 0))}, "a row for each of the 2 nodes"),
        ({"values": np.array([["a"], ["b"]])}, "a row for each of the 2 nodes"),
        ({"values": np.zeros((2, 1)), "classes": 2}, "whole number of its class"),
        ({"nodes": 0}, "nodes"),
        ({"nodes": 2**40}, "2\\*\\*31"),
        ({"values": np.ones((2, 2**20 + 1), np.int8)}, "2\\*\\*20"),
        ({"delta": None}, "without a delta"),
    ],
)
def test_what_does_not_fit_is_refused_before_the_charge(tmp_path: Path, given: dict[str, Any], words: str) -> None:
    usual = {"edges": (np.array([0]), np.array([1])), "values": np.zeros((2, 1)), "nodes": 2, "epsilon": 1}
    with book(tmp_path) as ledger:
        asked, before = {"delta": 1e-6, **usual, **given}, len(list(ledger.entries()))
        with pytest.raises(DefocusError, match=words):
            neighbour_sums(asked.pop("edges"), asked.pop("values"), ledger=ledger, **asked)
        assert len(list(ledger.entries())) == before


@pytest.mark.parametrize("unit", [edge(), user("page", period="month", of="day")])
def test_units_that_hold_what_others_list_or_a_part_of_a_list_are_refused(tmp_path: Path, unit: Any) -> None:
    with book(tmp_path, unit) as ledger, pytest.raises(DefocusError, match="itself owns"):
        neighbour_sums((np.array([0]), np.array([1])), np.zeros((2, 1)), nodes=2, ledger=ledger, rho=0.1)

import json
from typing import Any

import numpy as np
import pytest

from defocus.audit import Pair, neighbours
from defocus.audit.neighbours import KINDS
from defocus.errors import InvalidParameterError


def rows(data: Any) -> list[str]:
    return [repr(row) for row in (data.tolist() if isinstance(data, np.ndarray) else data)]


@pytest.mark.parametrize("kind", ["numbers", "integers", "keys"])
def test_the_second_has_exactly_one_row_more(kind: str) -> None:
    for pair in neighbours(kind):
        assert rows(pair.second)[:-1] == rows(pair.first), pair.name


@pytest.mark.parametrize("kind", ["numbers", "integers", "keys"])
def test_exactly_one_row_is_replaced(kind: str) -> None:
    for pair in neighbours(kind, replace=True):
        changed = [a != b for a, b in zip(rows(pair.first), rows(pair.second), strict=True)]
        assert sum(changed) == 1, pair.name


def test_counts_differ_by_one_and_fit_in_64_bits() -> None:
    for pair in neighbours("count"):
        assert pair.second - pair.first == 1
        assert -(2**63) <= pair.first < pair.second < 2**63


def test_values_differ_by_at_most_one() -> None:
    assert all(0 <= pair.second - pair.first <= 1 for pair in neighbours("value"))


def test_the_hostile_ones_are_there() -> None:
    text = json.dumps([str(pair) for kind in KINDS for pair in neighbours(kind)])
    for word in ("empty", "NaN", "infinity", "largest", "2^53", "negative zero", "equal rows", "new key"):
        assert word in text


@pytest.mark.parametrize("replace", [False, True])
def test_a_nan_joins_other_rows(replace: bool) -> None:
    pairs = neighbours("numbers", replace=replace)
    assert any(np.isnan(pair.second).any() and len(pair.second) > 2 for pair in pairs)
    assert not any(np.isnan(pair.first).any() for pair in pairs)


def test_names_are_unique_and_long_data_is_shortened() -> None:
    for kind in KINDS:
        names = [pair.name for pair in neighbours(kind)]
        assert len(set(names)) == len(names)
    assert len(str(Pair("long", "x" * 1000, []))) < 100


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        InvalidParameterError, match=r"(?s)'graphs'.*count, edges, gradients, integers, keys, nodes, numbers, value"
    ):
        neighbours("graphs")

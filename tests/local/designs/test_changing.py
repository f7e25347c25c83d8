"""The law of values that change, from its integers."""

import itertools
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from defocus.errors import EpsilonTooLargeError, InvalidParameterError, SilentDeviceError, UnreadableDescriptionError
from defocus.local import Categories, Changing, changing
from defocus.local.designs.changing import Flips
from defocus.local.levels import growth


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), 1, 2.5, 6])
@pytest.mark.parametrize("length", [1, 2, 3, 5, 8])
def test_flips_have_two_weights_of_the_right_ratio_and_the_best_gain(length: int, epsilon: float) -> None:
    flips = Flips.of(length, epsilon)
    assert Fraction(flips.high, flips.low) <= growth(epsilon)[0]
    assert Fraction(flips.high, flips.low) > growth(epsilon)[0] * (1 - Fraction(1, 1 << 38))
    assert flips.weights == tuple(
        math.comb(length, i) * (flips.high if i <= flips.within else flips.low) for i in range(length + 1)
    )

    def gain(within: int) -> Fraction:
        ways = list(itertools.product((1, -1), repeat=length))
        weights = [flips.high if way.count(-1) <= within else flips.low for way in ways]
        return Fraction(sum(w * way[0] for w, way in zip(weights, ways, strict=True)), sum(weights))

    assert flips.gain == gain(flips.within) == max(map(gain, range(length)))


@pytest.mark.parametrize(("epochs", "changes"), [(1, 0), (2, 1), (7, 2), (300, 1), (365, 2), (365, None), (512, 3)])
def test_every_epoch_is_told_by_reports_that_cover_all_before_it_once(epochs: int, changes: int | None) -> None:
    asked = changing(3, epochs=epochs, changes=changes, epsilon=2)
    assert sum(group.share for group in asked.groups) == 1 << 16
    for epoch in range(1, epochs + 1):
        told = asked.used(epoch)
        assert all(asked.groups[i].due(at) for i, at in told)
        first, *rest = told
        if len(asked.groups) == 1 and changes != 0:
            assert told == [(0, epoch)]
            continue
        assert first == (0, 1)
        covered = [t for i, at in rest for t in range(at - (1 << (asked.groups[i].level or 0)), at)]
        assert sorted(covered) == (list(range(1, epoch)) if changes else [])
    for group in asked.groups:
        assert sum(group.due(epoch) for epoch in range(1, epochs + 1)) >= group.flips.length


def test_rows_tell_categories_apart_exactly_half_of_the_time() -> None:
    asked = changing(5, epochs=2, changes=1, epsilon=1)
    signs = np.array([[asked.sign(code, row) for row in range(asked.rows)] for code in range(asked.domain.size)])
    assert (signs @ signs.T == asked.rows * np.eye(asked.domain.size)).all()
    assert (signs.sum(axis=1) == 0).all()


def test_a_report_at_each_epoch_errs_less_than_reports_drawn_anew_and_more_with_changes() -> None:
    for epochs in (2, 10, 100):
        asked = changing(5, epochs=epochs, epsilon=1)
        assert asked.error(1000) < asked.error_anew(1000)
    found = [changing(5, epochs=500, changes=k, epsilon=1).error(1000) for k in (0, 1, 2, 4, 400, None)]
    assert found == sorted(found)
    assert found[-1] == found[-2]


def test_a_description_travels_and_keeps_its_digest() -> None:
    described = [changing(["a", "b"], epochs=300, changes=k, epsilon=Fraction(4, 3)) for k in (0, 2, None)]
    for asked in described:
        again = Changing.from_json(asked.to_json())
        assert again == asked
        assert again.digest == asked.digest
    data = json.loads(described[0].to_json())
    wrong: tuple[dict[str, Any], ...] = (
        {"version": 2},
        {"epochs": 0},
        {"changes": -1},
        {"epsilon": 0},
        {"law": []},
        {"method": "other"},
        {"domain": {}},
        {"more": 1},
    )
    for change in wrong:
        with pytest.raises(UnreadableDescriptionError):
            Changing.from_json(json.dumps(data | change))
    for text in ("", "[]", "{}", "null"):
        with pytest.raises(UnreadableDescriptionError):
            Changing.from_json(text)


def test_a_device_has_a_limit_of_its_own() -> None:
    asked = changing(3, epochs=5, epsilon=2)
    assert Changing.from_json(asked.to_json(), at_most=2) == asked
    with pytest.raises(EpsilonTooLargeError):
        Changing.from_json(asked.to_json(), at_most=1)


def test_what_has_no_meaning_is_refused() -> None:
    good: dict[str, Any] = {"epochs": 5, "changes": 1, "epsilon": 1}
    for bad in ({"epochs": 0}, {"epochs": 10**6}, {"changes": -1}, {"changes": 1.5}, {"epsilon": 0}, {"epsilon": 99}):
        with pytest.raises(InvalidParameterError):
            changing(3, **(good | bad))
    with pytest.raises(SilentDeviceError):
        changing(["a", "b"], epochs=5, epsilon=1, outside="refuse")
    with pytest.raises(InvalidParameterError, match="categories"):
        Changing(Categories.of(1 << 17), 5, 1, 1)
    with pytest.raises(InvalidParameterError, match="from 1 to 5"):
        changing(3, epochs=5, epsilon=1).used(6)

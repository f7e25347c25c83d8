"""A device whose value changes: every series of values against every other, by the code that runs."""

import itertools
import json
import math
from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.local.odd_values import ODD

from defocus.audit import batched, lower_bound
from defocus.errors import InvalidParameterError, UnreadableDescriptionError
from defocus.local import Categories, Changing, ChangingMemory, ChangingServer
from defocus.local.clients.changing import _signs
from defocus.local.designs.changing import Flips
from defocus.noise.testing import seeded


def law(asked: Changing, group: int, row: int, values: tuple[int, ...]) -> dict[bytes, Fraction]:
    """The law of all that a device of this group and row sends: every draw of its signs and coins is run."""
    flips = asked.groups[group].flips
    found = defaultdict[bytes, Fraction](Fraction)
    total, memory = sum(flips.weights), json.loads(ChangingMemory(asked).to_json())
    for signs in itertools.product((1, -1), repeat=flips.length):
        weight = Fraction(flips.high if signs.count(-1) <= flips.within else flips.low, total)
        kept = {"epoch": 0, "group": group, "row": row, "signs": list(signs), "used": 0, "last": 0}
        for coins in itertools.product((1, -1), repeat=asked.epochs):
            device = ChangingMemory.from_json(json.dumps(memory | {"kept": kept | {"coins": coins}}))
            sent = b"".join(device.report(value) for value in values)
            found[sent] += weight / 2**asked.epochs
    return found


@pytest.mark.slow
@pytest.mark.parametrize("method", ["changes", "each"])
@pytest.mark.parametrize(("size", "epochs", "changes"), [(2, 4, 1), (2, 4, 2), (3, 3, 1), (3, 3, None)])
def test_all_series_of_values_are_as_close_as_was_charged(
    size: int, epochs: int, changes: int | None, method: Any
) -> None:
    """Also those that change more often than was declared: the largest ratio of all series of reports is e**epsilon."""
    asked, worst = Changing(Categories.of(size), epochs, changes, 1, method), Fraction(0)
    assert (len(asked.groups) > 1) is (method == "changes")
    row = next(row for row in range(asked.rows) if asked.sign(0, row) != asked.sign(1, row))
    for group in range(len(asked.groups)):
        laws = [law(asked, group, row, values) for values in itertools.product(range(size), repeat=epochs)]
        assert all(sum(each.values()) == 1 for each in laws)
        for sent in set().union(*laws):
            chances = [each.get(sent, Fraction(0)) for each in laws]
            assert min(chances) > 0
            worst = max(worst, max(chances) / min(chances))
    assert worst == Fraction(asked.groups[0].flips.high, asked.groups[0].flips.low)
    assert float(worst) <= math.e


@pytest.mark.parametrize("flips", [Flips.of(1, 1), Flips.of(3, 1), Flips.of(5, 2)])
@pytest.mark.statistical
def test_signs_have_the_stated_law(flips: Flips) -> None:
    bits, total = seeded(3), sum(flips.weights)
    seen = defaultdict[tuple[int, ...], int](int)
    for _ in range(6000):
        seen[tuple(_signs(flips, bits))] += 1
    distance = 0.0
    for signs in itertools.product((1, -1), repeat=flips.length):
        expected = 6000 * (flips.high if signs.count(-1) <= flips.within else flips.low) / total
        distance += (seen[signs] - expected) ** 2 / expected
    ways = 2**flips.length
    assert distance < ways + 4.5 * math.sqrt(2 * ways)


@pytest.mark.statistical
def test_coins_are_fair_and_independent() -> None:
    asked, bits = Changing(Categories.of(2), 8, 1, 1), seeded(4)
    coins = np.array([json.loads(ChangingMemory(asked, bits=bits).to_json())["kept"]["coins"] for _ in range(2000)])
    assert coins.shape == (2000, 8)
    assert np.abs(coins.T @ coins / 2000 - np.eye(8)).max() < 4.5 / math.sqrt(2000)
    assert np.abs(coins.mean(axis=0)).max() < 4.5 / math.sqrt(2000)


@pytest.mark.slow
@pytest.mark.statistical
def test_the_auditor_finds_nearly_epsilon_in_a_series_that_changes_and_never_more() -> None:
    asked, bits = Changing(Categories.of(2), 3, None, 1), seeded(9)

    def told(values: tuple[int, ...], n: int) -> list[bytes]:
        sent = list[bytes]()
        for _ in range(n):
            device = ChangingMemory(asked, bits=bits)
            messages = [device.report(value) for value in values]
            sent.append(messages[0][12:16] + bytes(message[-1] for message in messages))
        return sent

    finding = lower_bound(batched(told), ((0, 0, 0), (1, 0, 1)), 8000, claimed=1)
    assert finding.verdict != "violation"
    assert finding.epsilon_lower > 0.5


def test_a_stored_memory_goes_on_and_ends() -> None:
    asked = Changing(Categories.of(3), 300, 2, 1)
    values = np.random.default_rng(4).integers(0, 3, 300).tolist()
    one, other = ChangingMemory(asked, bits=seeded(5)), ChangingMemory(asked, bits=seeded(5))
    for value in values:
        other = ChangingMemory.from_json(other.to_json())
        set_back = ChangingMemory.from_json(other.to_json())
        assert one.report(value) == other.report(value) == set_back.report(value)
    with pytest.raises(InvalidParameterError, match="All epochs"):
        one.report(0)


@pytest.mark.parametrize("odd", ODD)
def test_every_value_is_a_message_of_one_length(odd: str) -> None:
    value: Any = ODD[odd]
    for changes in (1, None):
        asked = Changing(Categories.of(["x", "y"], outside="other"), 4, changes, 1)
        device, server = ChangingMemory(asked), ChangingServer(asked)
        for each in (value, "x", value, None):
            message = device.report(each)
            assert len(message) == 18
            assert server.add(message)


def test_texts_that_are_no_memory_are_refused() -> None:
    good = json.loads(ChangingMemory(Changing(Categories.of(2), 4, 1, 1)).to_json())
    wrong: tuple[dict[str, Any], ...] = (
        {"signs": [7]},
        {"signs": []},
        {"coins": [1]},
        {"group": 9},
        {"epoch": "1"},
        {"row": None},
    )
    for change in wrong:
        with pytest.raises(UnreadableDescriptionError):
            ChangingMemory.from_json(json.dumps(good | {"kept": good["kept"] | change}))
    for text in ("", "{}", "[]", '{"asked": 3}'):
        with pytest.raises(UnreadableDescriptionError):
            ChangingMemory.from_json(text)

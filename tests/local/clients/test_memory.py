import json
import math
from typing import Any

import numpy as np
import pytest
from tests.local.odd_values import ODD

from defocus.errors import InvalidParameterError, SilentDeviceError, UnmadeReportError, UnreadableDescriptionError
from defocus.local import Memory, Oracle, Server, mean, oracle
from defocus.local.designs import DBitFlip, Rappor, design, numeric
from defocus.local.domains import Categories
from defocus.noise.testing import seeded

REPEATED = [
    (design("rappor", ["a", "b", "c"], 4), "b", "c"),
    (numeric("duchi", 0, 10, 2), 3.0, 9.9),
    (design("d-bit", 8, 2, asked=3), 5, 6),
]


@pytest.mark.parametrize(("made", "value", "other"), REPEATED, ids=["rappor", "duchi", "d-bit"])
def test_reports_of_one_value_come_from_one_draw_and_a_stored_memory_goes_on(made, value, other) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001 - three kinds of value
    memory = Memory(made, bits=seeded(3))
    server = Server(made)
    memory.report(value)
    first = [memory.report(value, bits=seeded(i)) for i in range(20)]
    again = Memory.from_json(memory.to_json())
    assert [again.report(value, bits=seeded(i)) for i in range(20)] == first
    assert server.add_many(first) == 20
    assert server.add(memory.report(other, nonce=True))
    if not isinstance(made, Rappor):
        assert len(set(first)) == 1


def test_rappor_disguises_what_it_remembers_anew_each_time() -> None:
    made = design("rappor", ["a", "b", "c"], 4)
    memory = Memory(made, bits=seeded(3))
    reports = np.array([memory.payload("a", seeded(i))[0] for i in range(400)])
    assert len(set(map(bytes, reports))) == 400
    kept = json.loads(memory.to_json())["kept"]["filters"]["0"]
    remembered = np.unpackbits(np.array(kept, np.uint64).view(np.uint8), bitorder="little")[:64]
    shown = np.unpackbits(reports[:, 1:], axis=1, bitorder="little").mean(axis=0)
    assert np.abs(shown - (0.5 + 0.25 * remembered)).max() < 5 * math.sqrt(0.25 / 400)


@pytest.mark.statistical
def test_remembered_answers_estimate_as_well_as_fresh_ones() -> None:
    asked = mean("duchi", 0, 10, 2)
    hours = np.tile([1.0, 4.0, 9.0], 1500)
    server = asked.server()
    for i, x in enumerate(hours):
        server.add(Memory(asked.design, bits=seeded(i)).report(x))
    found = asked.estimate(server)
    assert abs(found.value - hours.mean()) < 4 * found.error
    buckets = Oracle(DBitFlip(Categories(6), 2, asked=3))
    counted = buckets.server()
    for i in range(3000):
        counted.add(Memory(buckets.design, bits=seeded(i)).report(i % 3))
    counts = buckets.estimate(counted)
    assert (np.abs(counts.counts - np.repeat([1000, 0], 3)) < 4 * counts.errors).all()


@pytest.mark.statistical
def test_a_number_is_rounded_up_as_often_as_it_is_large() -> None:
    made = numeric("duchi", 0, 10, 16)
    ones = sum(int(Memory(made, bits=seeded(i)).payload(3.0)[0]) for i in range(3000))
    assert abs(ones / 3000 - 0.3) < 4 * math.sqrt(0.21 / 3000)


@pytest.mark.parametrize("odd", ODD)
def test_a_memory_has_a_report_for_every_value_and_one_filter_for_all_outside(odd: str) -> None:
    value: Any = ODD[odd]
    for made in (design("rappor", ["x", "y"], 4), numeric("duchi", 0, 10, 2), design("d-bit", 8, 2, asked=3)):
        memory, server = Memory(made, bits=seeded(1)), Server(made)
        found = {len(memory.report(each)) for each in (value, value, None, "z")}
        assert len(found) == 1
        assert server.add(memory.report(value))
        if isinstance(made, Rappor):
            assert list(json.loads(memory.to_json())["kept"]["filters"]) == ["2"]


def test_a_memory_refuses_rules_of_silence_and_texts_that_are_none() -> None:
    for silent in (design("rappor", ["a", "b"], 1, outside="refuse"), numeric("duchi", 0, 1, 1, outside="refuse")):
        with pytest.raises(SilentDeviceError):
            Memory(silent)
    for text in ("", "{}", "[]", '{"design": 3}', Memory(numeric("duchi", 0, 1, 1)).to_json().replace("alpha", "beta")):
        with pytest.raises(UnreadableDescriptionError):
            Memory.from_json(text)


def test_candidates_that_look_alike_are_refused() -> None:
    asked = oracle("rappor", 300, 2, width=8, cohorts=2)
    with pytest.raises(InvalidParameterError, match="cannot be told apart"):
        asked.estimate(asked.encode([1, 2]))


def test_one_report_of_rappor_costs_less_than_all_of_them() -> None:
    """Erlingsson et al. (2014): with f = ½, p = ½, q = ¾ and two hash functions, ln 3 times 4 for all; 1.07 for one."""
    made = Rappor(Categories.of(3), math.log(3) * 4 + 1e-9)
    assert made.flip == pytest.approx(0.25, rel=0.01)
    assert made.report_epsilon == pytest.approx(1.0743, rel=0.01)


def test_a_memory_that_was_damaged_sends_nothing() -> None:
    text = Memory(numeric("duchi", 0, 1, 1)).to_json()
    kept = json.loads(text)
    kept["kept"]["ends"] = [7, 7]
    with pytest.raises(UnmadeReportError, match="Nothing was reported"):
        Memory.from_json(json.dumps(kept)).report(0.5)


def test_no_multiple_of_epsilon_covers_a_change_of_a_remembered_value() -> None:
    """A series of reports that differ is impossible for a value that stays, and common for one that changes."""
    devices = [Memory(numeric("duchi", 0, 10, 1), bits=seeded(i)) for i in range(200)]
    assert not any(device.report(0) != device.report(0) for device in devices)
    assert sum(device.report(0) != device.report(10) for device in devices) > 50

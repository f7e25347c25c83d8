import json
from typing import Any

import numpy as np
import pytest

from defocus.errors import EpsilonTooLargeError, OutOfDomainError, SilentDeviceError, UnmadeReportError
from defocus.local import Client, mean, oracle
from defocus.local.clients import client as module
from defocus.local.clients.numeric import on_grid
from defocus.local.designs import KRR, NUMERIC_NAMES, to_json
from defocus.local.domains import Codes
from defocus.local.layouts import Payload
from defocus.noise import Bits
from defocus.noise.testing import seeded


def test_a_share_off_the_grid_is_put_back_whatever_made_it() -> None:
    shares = np.array([-5.0, 7.0, np.nan, np.inf, -np.inf, 1.0])
    assert on_grid(shares, 16, seeded(1)).tolist() == [0, 16, 0, 16, 0, 16]


def test_a_report_that_the_design_does_not_know_is_never_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second lock: should a randomiser ever leave its cells, the device says so and stays silent."""

    def astray(_design: Any, codes: Codes, _bits: Bits) -> Payload:
        return np.full(len(codes), 9, np.uint8)

    monkeypatch.setitem(module._RANDOMISERS, KRR, astray)  # type: ignore[misc]  # its key is an abstract class
    client = oracle("k-rr", 5, 1).client()
    for call in (lambda: client.report(1), lambda: client.report_json(1), lambda: client.encode([1, 2])):
        with pytest.raises(UnmadeReportError, match="Nothing was reported"):
            call()


@pytest.mark.parametrize("value", [0.5, "x", None, [1], float("nan"), 2**64, 2**70, True])
def test_a_device_reports_whatever_it_holds_where_the_rule_says_so(value: Any) -> None:
    for asked in (oracle("k-rr", 5, 1, outside="other"), oracle("oue", ["a", "b"], 1, outside="other")):
        assert asked.server().add(asked.client().report(value))
    for name in NUMERIC_NAMES:
        numbers = mean(name, 0, 1, 1)
        assert numbers.server().add(numbers.client().report(value))


def test_under_refusal_a_device_says_that_its_silence_is_seen() -> None:
    with pytest.raises(OutOfDomainError, match="silence can be seen"):
        oracle("k-rr", ["heart", "lung"], 1).client().report("liver")


def test_a_device_has_a_limit_of_its_own() -> None:
    text = to_json(oracle("k-rr", 5, 8).design)
    assert Client.from_json(text, at_most=8).report(1)
    with pytest.raises(EpsilonTooLargeError):
        Client.from_json(text, at_most=1)


def test_a_collector_cannot_turn_categories_into_numbers() -> None:
    wire = mean("piecewise", 0, 1, 1, cells=8).design.to_wire()
    wire["domain"] = oracle("k-rr", ["HIV-", "HIV+"], 1).domain.to_wire()
    with pytest.raises(ValueError, match="domain"):
        Client.from_json(json.dumps(wire))


def test_a_device_can_insist_on_an_outcome_for_every_value() -> None:
    for good in (oracle("k-rr", 5, 1, outside="other"), mean("duchi", 0, 1, 1)):
        assert Client.from_json(good.to_json(), never_silent=True).report(None)
    for bad in (oracle("k-rr", 5, 1), mean("duchi", 0, 1, 1, outside="refuse")):
        with pytest.raises(SilentDeviceError, match=r"silent[^\n]*\nTo fix: .*outside='other'"):
            Client.from_json(bad.to_json(), never_silent=True)

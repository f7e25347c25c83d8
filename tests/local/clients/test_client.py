import json
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.local.making import small_oracle
from tests.local.odd_values import ODD

from defocus.errors import EpsilonTooLargeError, OutOfDomainError, SilentDeviceError, UnmadeReportError
from defocus.local import Client, HeavyHitters, Mean, Oracle, mean, oracle
from defocus.local.clients import HistogramClient, SumClient
from defocus.local.clients import client as module
from defocus.local.clients.numeric import on_grid
from defocus.local.designs import KRR, NAMES, NUMERIC_NAMES, to_json
from defocus.local.domains import Categories, Codes, Interval
from defocus.local.layouts import Payload
from defocus.local.shuffling import Round
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


@pytest.mark.parametrize("odd", ODD)
def test_every_device_reports_whatever_it_holds_and_nothing_else_can_be_seen(odd: str) -> None:
    """No error, no warning, one message of one length: silence would be an outcome that no noise covers."""
    value: Any = ODD[odd]
    asked: list[Oracle | Mean] = [mean(name, 0, 1, 1) for name in NUMERIC_NAMES]
    asked += [small_oracle(name, domain, 1) for name in NAMES for domain in (5, ["x", "y"])]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for each in asked:
            client, server = each.client(), each.server()
            made = [client.report(value, nonce=True), client.report(1, nonce=True), client.report("x", nonce=True)]
            assert len(set(map(len, made))) == 1
            assert server.add_many(made) == 3
            assert server.add(client.report_json(value))
        sums = SumClient(Interval(0, 1), 4, 3, Fraction(1, 2))
        counts = HistogramClient(Categories.of(5), Fraction(1, 2), 7)
        assert len(sums.report(value)) == 7
        assert len(counts.report(value, seeded(1))) == len(counts.report(0, seeded(1)))
        prefixes = HeavyHitters("ab", 2, 1)
        question = prefixes.oracle(0, []).to_json()
        assert len(prefixes.device(value).report(0, question)) == len(prefixes.device("ab").report(0, question))


def test_a_rule_under_which_devices_can_be_silent_is_refused_before_a_value_is_looked_at() -> None:
    silent = oracle("k-rr", ["heart", "lung"], 1, outside="refuse")
    numbers = mean("duchi", 0, 1, 1, outside="refuse")
    for value in ("heart", "liver", 0.5):
        for each in (silent, numbers):
            for call in (each.client().report, each.client().report_json):
                with pytest.raises(SilentDeviceError):
                    call(value)
    devices: tuple[Callable[[], Any], ...] = (
        lambda: SumClient(numbers.domain, 4, 3, Fraction(1, 2)),
        lambda: HistogramClient(silent.domain, Fraction(1, 2), 3),
        lambda: Round(silent.design, 10, bytes(32), bytes([1] * 32)),
    )
    for device in devices:
        with pytest.raises(SilentDeviceError):
            device()
    assert len(silent.encode(["heart"])) == 1
    with pytest.raises(OutOfDomainError, match="silence can be seen"):
        silent.encode(["liver"])


def test_the_values_outside_are_counted_without_bias_and_change_no_other_count() -> None:
    asked, bits = oracle("k-rr", ["heart", "lung"], 3), seeded(5)
    found = asked.estimate(asked.encode(["heart"] * 3000 + ["lung"] * 2000 + [None, "liver", b"heart"] * 500, bits))
    assert found.categories == ["heart", "lung", "other"]
    assert (np.abs(found.counts - [3000, 2000, 1500]) < 4 * found.errors).all()
    numbered = oracle("k-rr", 2, 3)
    counted = numbered.estimate(numbered.encode([0, 1, 7], bits))
    assert counted.label(2) == "other"
    assert counted.categories == range(3)
    assert "category 2 is of all other values" in str(counted)
    assert "category 2 is of all other values" in counted.explain()


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


def test_a_device_insists_on_an_outcome_for_every_value() -> None:
    for good in (oracle("k-rr", 5, 1), mean("duchi", 0, 1, 1)):
        assert Client.from_json(good.to_json()).report(None)
    for bad in (oracle("k-rr", 5, 1, outside="refuse"), mean("duchi", 0, 1, 1, outside="refuse")):
        with pytest.raises(SilentDeviceError, match=r"silent[^\n]*\nTo fix: .*outside='other'"):
            Client.from_json(bad.to_json())

"""Readings that hold whenever the analyst stops."""

import math
from typing import Any

import pytest

from defocus.errors import InvalidParameterError
from defocus.privacy.events import Gaussian, Pure
from defocus.privacy.odometers import odometer


def test_readings_grow_with_the_run_and_start_at_zero() -> None:
    meter = odometer(1e-6)
    spent, before = meter.start, 0.0
    assert meter.read(spent) == 0.0
    for _ in range(40):
        spent = meter.after(spent, Gaussian(15))
        assert meter.read(spent) >= before
        before = meter.read(spent)
    assert 1 < before < 4


def test_a_pure_run_is_read_at_the_level_above_its_sum() -> None:
    meter = odometer(0, levels=(0.5, 1, 2))
    spent = meter.after(meter.start, 3 * Pure(0.25))
    assert meter.read(spent) == 1.0
    assert meter.read(meter.after(spent, Pure(5))) == math.inf


def test_an_analyst_who_stops_when_ahead_is_still_within_the_reading() -> None:
    """Exact law of a run of randomised responses stopped at the first lead of two."""
    meter = odometer(0.05, levels=(0.25, 0.5, 1.0, 2.0, 4.0))
    epsilon, leaves = 0.2, []

    def go(lead: int, steps: int, p: float, q: float, spent: Any) -> None:
        if abs(lead) >= 2 or steps == 10:
            leaves.append((p, q, meter.read(spent)))
            return
        after = meter.after(spent, Pure(epsilon))
        e = math.exp(epsilon)
        go(lead + 1, steps + 1, p * e / (1 + e), q / (1 + e), after)
        go(lead - 1, steps + 1, p / (1 + e), q * e / (1 + e), after)

    go(0, 0, 1.0, 1.0, meter.start)
    for level in {reading for *_, reading in leaves}:
        excess = math.fsum(max(0.0, p - math.exp(level) * q) for p, q, reading in leaves if reading == level)
        assert excess <= 0.05 / 5 + 1e-12


def test_an_odometer_without_levels_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="at least one level"):
        odometer(1e-6, levels=())
    for bad in (0, -1, float("nan"), True):
        with pytest.raises(InvalidParameterError):
            odometer(1e-6, levels=(bad,))


def test_a_level_beyond_floats_is_a_level() -> None:
    meter = odometer(1e-6, levels=(1, 10**400))
    assert meter.read(meter.after(meter.start, Pure(5))) > 1e300

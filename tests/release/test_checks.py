import math
from dataclasses import dataclass
from typing import Any

import pytest

from defocus.errors import InvalidParameterError
from defocus.mechanisms import Exponential, Grid, Laplace
from defocus.release.checks import checked_mechanism, chooses, in_units, named


@dataclass(frozen=True)
class Silent:
    """Has everything but an event."""

    event: Any = None
    error: float = 1.0

    def interval(self, confidence: float) -> float:
        return confidence

    def check(self, value: Any) -> None:
        """Accept anything."""

    def sample(self, value: Any, bits: Any = None) -> Any:
        return value, bits


def test_a_mechanism_must_say_what_it_owes() -> None:
    with pytest.raises(InvalidParameterError, match="does not say what it owes"):
        checked_mechanism(Silent(), None)


def test_choices_are_known() -> None:
    assert chooses(Exponential(epsilon=1, candidates=2))
    assert not chooses(Laplace(scale=1))


def test_errors_scale_with_the_grid_and_infinity_stays() -> None:
    assert in_units(3, Grid("0.5")) == 1.5
    assert in_units(3, None) == 3.0
    assert in_units(math.inf, Grid("0.5")) == math.inf


def test_long_descriptions_are_one_short_line() -> None:
    assert named(Laplace(scale=2)) == "Laplace(scale=2, sensitivity=1)"
    assert len(named("x\n" * 500)) == 300

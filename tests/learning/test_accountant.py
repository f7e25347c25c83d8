"""Plans: what a run will do, and the one event that it owes."""

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from defocus import Budget, rows
from defocus.errors import CannotCalibrateError, InvalidParameterError
from defocus.learning.accountant import Plan, plan
from defocus.learning.clipping import AdaptiveClipping, FixedClipping
from defocus.learning.metrics import Metrics
from defocus.learning.noise_schedule import Banded, BufferedToeplitz, Schedule
from defocus.privacy import Gaussian, Sampled, account

TENTH = Fraction(1, 10)


def made(**more: Any) -> Plan:
    given: dict[str, Any] = {
        "unit": rows(),
        "price": Budget(3, 1e-5),
        "size": 1000,
        "batch_size": 100,
        "epochs": None,
        "steps": 50,
        "sampling": "poisson",
        "noise_multiplier": None,
        "noise": None,
        "delta": 1e-5,
        "clipping": FixedClipping(1),
        "metrics": "nothing",
        **more,
    }
    return plan(**given)


def test_the_noise_is_the_least_that_the_budget_allows() -> None:
    found = made()
    assert Budget(3, 1e-5).covers(account(found.event))
    assert not Budget(3, 1e-5).covers(account(50 * Sampled(Gaussian(found.ratio * 0.999), TENTH)))
    assert found.epsilon_after(50) <= 3
    assert found.epsilon_after(0) == 0


def test_a_plan_is_printed_for_people() -> None:
    plain = made(noise_multiplier=2)
    assert str(plain).splitlines() == [
        "protected: one row, added or removed",
        "steps:     50, 100 of 1000 expected in each",
        "cost:      Budget(epsilon=3, delta=1e-05) for the whole run",
        "noise:     2 times the sensitivity of a step",
    ]
    assert repr(plain) == "<plan: 50 steps, Budget(epsilon=3, delta=1e-05)>"
    assert "100 of 1000" in plain._repr_html_()


def test_noise_of_a_published_run_is_found() -> None:
    """TensorFlow Privacy's tutorial: MNIST, batch 256, noise 1.1, 60 epochs: epsilon 3.01 by moments."""
    found = made(size=60_000, batch_size=256, epochs=60, steps=None, noise_multiplier=1.1)
    assert found.steps == 14_063
    assert 2.3 < found.epsilon_after(found.steps) < 3.01


def test_what_leaves_nothing_for_the_gradient_is_refused_before_the_charge() -> None:
    half: dict[str, Any] = {"precision": 0.5}
    with pytest.raises(InvalidParameterError, match="nothing is left for the gradient"):
        made(clipping=AdaptiveClipping(**half), metrics=Metrics(**half))


@settings(max_examples=8)
@given(watched=st.floats(0.001, 0.2), counted=st.floats(0.001, 0.2))
def test_what_is_released_beside_the_gradient_is_in_the_event(watched: float, counted: float) -> None:
    """The inverse squares of the ratios of all parts add up to that of the event."""
    found = made(noise_multiplier=2.0, clipping=AdaptiveClipping(precision=counted), metrics=Metrics(precision=watched))
    assert sum(found.shares) == pytest.approx(1.0)
    assert sum(found.ratio_of(i, 0) ** -2 for i in range(3)) == pytest.approx(found.ratio**-2)
    assert found.event == 50 * Sampled(Gaussian(2.0), TENTH)
    assert found.ratio_of(0, 0) > 2.0


def test_a_schedule_is_a_sum_of_events() -> None:
    found = made(noise=Schedule([2, 1]), steps=10)
    base = found.ratio
    assert found.event == 5 * Sampled(Gaussian(2 * base), TENTH) + 5 * Sampled(Gaussian(base), TENTH)
    assert found.event_after(6) == 5 * Sampled(Gaussian(2 * base), TENTH) + Sampled(Gaussian(base), TENTH)
    assert found.ratio_of(0, 0) == 2 * found.ratio_of(0, 9)


def test_correlated_noise_is_charged_by_turns() -> None:
    found = made(noise=Banded(bands=4), epochs=3, steps=None)
    assert found.steps == 30
    assert found.event == 3 * Gaussian(found.ratio)
    thinned = made(noise=Banded(bands=4, groups=5), epochs=3, steps=None)
    assert thinned.event == 6 * Sampled(Gaussian(thinned.ratio), Fraction(1, 2))
    assert thinned.batch_size == 100
    assert made(noise=Banded(), metrics=Metrics()).shares == (1.0, 0.0, 0.0)
    buffered = made(noise=BufferedToeplitz(2), epochs=3, steps=None)
    assert (buffered.steps, buffered.event) == (30, 3 * Gaussian(buffered.ratio))
    assert made(noise=BufferedToeplitz(2, groups=10), epochs=3, steps=None).event == buffered.event


def test_epochs_become_steps() -> None:
    assert made(epochs=2, steps=None).steps == 20
    assert made(epochs=0.25, steps=None).steps == 3
    assert made(epochs=2, steps=None, batch_size=300, sampling="balls in bins").steps == 6
    replaced = made(epochs=2, steps=None, batch_size=300, sampling="shuffled", unit=rows(replace=True))
    assert replaced.steps == 6  # an epoch leaves the rest out


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"epochs": 1}, "one of them"),
        ({"steps": None}, "one of them"),
        ({"batch_size": 1001}, "cannot be drawn from 1000"),
        ({"steps": 10**8}, "at most"),
        ({"noise_multiplier": 0.1}, "more than Budget"),
        ({"noise": Banded(), "sampling": "fixed size"}, "sampling of its own"),
        ({"noise": Banded(groups=20)}, "more than one of 20 groups"),
        ({"noise": BufferedToeplitz(groups=20)}, "more than one of 20 groups"),
        ({"noise": BufferedToeplitz(groups=5)}, "nothing is proven for a part"),
        ({"noise": BufferedToeplitz(), "sampling": "shuffled"}, "sampling of its own"),
        ({"noise": BufferedToeplitz(), "clipping": AdaptiveClipping()}, "where the clip shrinks"),
        ({"noise": Banded(), "clipping": AdaptiveClipping()}, "where the clip shrinks"),
        ({"price": None}, "nor how much noise"),
        ({"noise": 1.0}, "noise_multiplier="),
        ({"price": Budget(3, 0.01)}, "publishing one random record"),
        ({"price": Budget(rho=0.1)}, "cannot be kept by steps on samples"),
        ({"batch_size": 0.1}, "less than one unit"),
        ({"noise": Banded(), "metrics": Metrics(loss=3)}, "nothing is shown"),
        *(({"batch_size": bad}, "batch") for bad in (0, -1, math.nan, math.inf, True, "9", None)),
        *(({"steps": bad}, "steps") for bad in (0, -1, 1.5, True, "9")),
        *(({"epochs": bad, "steps": None}, "epochs") for bad in (0, -1, math.nan, True, "9")),
        *(({"noise_multiplier": bad}, "noise_multiplier") for bad in (0, -1, math.nan, True, "9")),
    ],
)
def test_what_cannot_be_planned_is_refused(more: Any, words: str) -> None:
    with pytest.raises(InvalidParameterError, match=words):
        made(**more)


def test_a_budget_without_delta_is_refused_with_a_remedy() -> None:
    with pytest.raises(CannotCalibrateError) as caught:
        made(price=Budget(3))
    assert "delta" in caught.value.fix
    concentrated = made(price=Budget(rho=0.1), sampling="balls in bins", batch_size=1000)
    assert concentrated.ratio == pytest.approx(math.sqrt(250), rel=1e-5)

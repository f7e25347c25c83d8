"""The algebra of events: what equals what, what costs what, and what is no event."""

import copy
import dataclasses
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from defocus import mechanisms, privacy
from defocus.errors import InvalidParameterError
from defocus.privacy import (
    ACCOUNTANTS,
    NOTHING,
    Approximate,
    Composed,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    Sampled,
    SampledBatch,
    Selected,
    SelectedPoisson,
    account,
    compose,
)
from defocus.privacy.events import described

positives = st.floats(0.5, 50) | st.integers(1, 50) | st.fractions(Fraction(1, 2), 50, max_denominator=100)
single: st.SearchStrategy[Event] = st.one_of(
    st.builds(Gaussian, positives),
    st.builds(Laplace, positives),
    st.builds(DiscreteLaplace, positives, st.integers(1, 3)),
    st.builds(Pure, positives),
    st.builds(RandomizedResponse, positives, st.integers(2, 5)),
    st.builds(lambda ratio, rate: Sampled(Gaussian(ratio), rate), positives, st.floats(0.01, 1)),
)
events = st.lists(st.tuples(single, st.integers(0, 3)), max_size=3).map(
    lambda parts: compose(n * event for event, n in parts)
)
SINGLES: list[type[Event]] = [
    Approximate,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
]


def counted(event: Event) -> dict[Event, int]:
    """A composition as a multiset, whatever its order."""
    return dict(event.parts) if isinstance(event, Composed) else {event: 1}


@given(events, events)
def test_order_does_not_matter(a: Event, b: Event) -> None:
    assert counted(a + b) == counted(b + a)


@given(events, events, events)
def test_grouping_does_not_matter(a: Event, b: Event, c: Event) -> None:
    assert (a + b) + c == a + (b + c) == compose([a, b, c]) == sum([a, b, c])


@given(events, st.integers(0, 50), st.integers(0, 50))
def test_repetitions_add_and_multiply(a: Event, m: int, n: int) -> None:
    assert (m + n) * a == m * a + n * a
    assert m * (n * a) == (m * n) * a
    assert n * a == a * n


@given(events, events, st.integers(0, 50))
def test_repetition_spreads_over_a_sum(a: Event, b: Event, n: int) -> None:
    assert counted(n * (a + b)) == counted(n * a + n * b)


@given(events)
def test_nothing_is_neutral_and_no_repetitions_are_nothing(a: Event) -> None:
    assert NOTHING + a == a == a + NOTHING
    assert 0 * a == NOTHING == compose([]) == 0 * NOTHING == 7 * NOTHING
    assert 1 * a == a
    assert a + a == 2 * a


@settings(max_examples=25, deadline=None)
@given(single, single, st.integers(1, 4))
@pytest.mark.parametrize("method", ["pld", "rdp", "basic"])
def test_what_is_equal_costs_the_same(method: str, a: Event, b: Event, n: int) -> None:
    one, other = account(n * (a + b), method=method), account(n * b + n * a, method=method)
    assert one.epsilon(1e-6) == pytest.approx(other.epsilon(1e-6), rel=1e-4)


@pytest.mark.parametrize("method", ACCOUNTANTS)
def test_nothing_costs_nothing_by_every_accountant(method: str) -> None:
    loss = account(NOTHING, method=method)
    assert loss.epsilon(0) == 0 == loss.epsilon(1e-9)
    assert loss.delta(0) < 1e-300 > loss.delta(1)


@given(st.integers(1, 1000))
def test_one_number_in_three_types_is_one_event(n: int) -> None:
    numbers: list[Any] = [n, float(n), Fraction(n), np.float32(n), np.int16(n)]
    forms: list[Event] = [Gaussian(number) for number in numbers]
    assert len(set(forms)) == 1
    assert sum(forms[1:], forms[0]) == 5 * Gaussian(n)
    assert all(form != Laplace(n) for form in forms)
    assert Sampled(Gaussian(n), Fraction(1, 2)) == Sampled(Gaussian(float(n)), 0.5)


def test_a_decimal_fraction_and_its_float_are_two_events() -> None:
    assert Laplace(Fraction(1, 10)) != Laplace(0.1)
    assert Laplace(Fraction(0.1)) == Laplace(0.1)


@given(single)
def test_parameters_are_plain_numbers_and_cannot_be_changed(event: Any) -> None:
    for field in dataclasses.fields(event):
        assert type(getattr(event, field.name)) in {int, float, Fraction, Gaussian}
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(event, field.name, 1)
    with pytest.raises((AttributeError, TypeError)):
        event.colour = "red"
    assert not hasattr(event, "__dict__")


@given(events)
def test_copies_are_equal_and_hash_alike(event: Event) -> None:
    for again in (pickle.loads(pickle.dumps(event)), copy.deepcopy(event), copy.copy(event)):  # noqa: S301  # our own bytes
        assert again == event
        assert hash(again) == hash(event)


def test_numpy_numbers_are_kept_as_pythons_own() -> None:
    event: Any = SampledBatch(DiscreteGaussian(np.float64(2.5), np.int64(3), np.int8(4)), np.int64(5), np.uint16(50))  # type: ignore[arg-type]  # numpy's own are taken too
    assert (
        repr(event)
        == "SampledBatch(event=DiscreteGaussian(sigma=2.5, sensitivity=3, dimension=4), size=5, population=50)"
    )
    assert np.int64(3) * Gaussian(1) == 3 * Gaussian(1)
    assert repr(np.int64(3) * Gaussian(1)) == "Composed(parts=((Gaussian(ratio=1), 3),))"


@pytest.mark.parametrize("kind", SINGLES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    "bad",
    [math.nan, math.inf, -math.inf, -1, -1e-300, True, False, "1", None, 1j, [1], Gaussian(1), Fraction(-1, 3)],
    ids=repr,
)
def test_what_is_no_parameter_is_refused_by_name(kind: type[Any], bad: Any) -> None:
    parameter = dataclasses.fields(kind)[0].name
    rest = [1e-6] if kind is Approximate else []
    with pytest.raises(InvalidParameterError, match=rf"(?s)^{parameter} must .*To fix: ."):
        kind(bad, *rest)


@pytest.mark.parametrize("kind", SINGLES, ids=lambda kind: kind.__name__)
def test_absurdly_long_numbers_are_refused_in_few_words(kind: type[Any]) -> None:
    rest = [1e-6] if kind is Approximate else []
    for bad in (10**5000, Fraction(1, 10**5000), Fraction(10**5000, 7)):
        with pytest.raises(InvalidParameterError, match=r"(?s)too many digits.*To fix: round") as caught:
            kind(bad, *rest)
        assert len(str(caught.value)) < 200
    assert repr(kind(10**400, *rest))


@pytest.mark.parametrize("kind", [Gaussian, Laplace, DiscreteGaussian, DiscreteLaplace])
def test_no_noise_is_no_noise_event(kind: type[Any]) -> None:
    for zero in (0, 0.0, Fraction(0)):
        with pytest.raises(InvalidParameterError, match="must be positive"):
            kind(zero)


@pytest.mark.parametrize("kind", [Pure, Concentrated, Exponential, RandomizedResponse])
def test_a_promise_of_zero_is_free(kind: type[Any]) -> None:
    assert account(kind(0), method="zcdp").epsilon(1e-9) == 0


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "half an entry": (lambda: DiscreteGaussian(1, 1, 1.5), "dimension must be a whole number"),  # type: ignore[arg-type]
    "no entries": (lambda: DiscreteGaussian(1, 1, 0), "dimension must be a whole number of at least 1"),
    "too many entries": (lambda: DiscreteGaussian(1, 1, 2**63), "dimension must be below 2"),
    "a fractional shift": (lambda: DiscreteLaplace(1, 1.5), "sensitivity must be a whole number"),  # type: ignore[arg-type]
    "one category": (lambda: RandomizedResponse(1, 1), "categories must be a whole number of at least 2"),
    "too many categories": (lambda: RandomizedResponse(1, 10**400), "categories must be below 2"),
    "a delta of one": (lambda: Approximate(1, 1), r"delta must lie in \[0, 1\)"),
    "a negative delta": (lambda: Approximate(1, -1e-9), r"delta must lie in \[0, 1\)"),
    "a rate of zero": (lambda: Sampled(Gaussian(1), 0), r"rate must lie in \(0, 1\]"),
    "a rate above one": (lambda: Sampled(Gaussian(1), 1.01), r"rate must lie in \(0, 1\]"),
    "a sampled number": (lambda: Sampled(1.0, 0.1), "but got float"),  # type: ignore[arg-type]
    "a sampled class": (lambda: Sampled(Gaussian, 0.1), "but got type"),  # type: ignore[arg-type]
    "an empty batch": (lambda: SampledBatch(Gaussian(1), 0, 10), "size must be a whole number of at least 1"),
    "more than there are": (lambda: SampledBatch(Gaussian(1), 11, 10), "cannot be drawn without replacement"),
    "a batch of a list": (lambda: SampledBatch([Gaussian(1)], 1, 10), "but got list"),  # type: ignore[arg-type]
    "gamma of zero": (lambda: Selected(Gaussian(1), 0), r"gamma must lie in \(0, 1\)"),
    "gamma of one": (lambda: Selected(Gaussian(1), 1), r"gamma must lie in \(0, 1\)"),
    "eta of minus one": (lambda: Selected(Gaussian(1), 0.5, -1), "eta must be above -1"),
    "eta not a number": (lambda: Selected(Gaussian(1), 0.5, math.nan), "eta must be a finite number"),
    "a mean of zero": (lambda: SelectedPoisson(Gaussian(1), 0), "mean must be positive"),
    "selection of None": (lambda: Selected(None, 0.5), "but got NoneType"),  # type: ignore[arg-type]
    "one and a half times": (lambda: Gaussian(1) * 1.5, "number of repetitions must be a whole number"),
    "minus one times": (lambda: Gaussian(1) * -1, "number of repetitions must be a whole number of at least 0"),
    "True times": (lambda: True * Gaussian(1), "number of repetitions must be a whole number"),
    "an event times an event": (lambda: Gaussian(1) * Gaussian(1), "number of repetitions must be"),
    "'3' times": (lambda: Gaussian(1) * "3", "number of repetitions must be a whole number"),
    "one and a half of numpy's": (lambda: np.float64(1.5) * Gaussian(1), "number of repetitions must be"),
    "absurdly often": (lambda: 10**5000 * Gaussian(1), "too many digits"),
    "a composition of numbers": (lambda: compose([3]), "Only events can be composed, but one is int"),  # type: ignore[list-item]
    "a composition of lists": (lambda: compose([[Gaussian(1)]]), "but one is list"),  # type: ignore[list-item]
    "composed minus once": (lambda: compose([Gaussian(1)], times=-1), "number of repetitions must be"),
    "composed half a time": (lambda: compose([Gaussian(1)], times=0.5), "number of repetitions must be"),  # type: ignore[arg-type]
    "parts that are no pairs": (lambda: Composed((Gaussian(1),)), "Composed needs pairs"),  # type: ignore[arg-type]
    "parts that are a number": (lambda: Composed(3), "Composed needs pairs"),  # type: ignore[arg-type]
    "a part that never happened": (lambda: Composed(((Gaussian(1), 0),)), "number of repetitions"),
    "a part that is composed": (lambda: Composed(((2 * Gaussian(1), 1),)), "must be a single event"),
    "a part that is no event": (lambda: Composed((("Gaussian", 1),)), "must be a single event, but it is str"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_with_a_remedy(case: str) -> None:
    make, words = REFUSED[case]
    with pytest.raises(InvalidParameterError, match=rf"(?s){words}.*To fix: ."):
        make()


def test_only_zero_may_stand_before_a_sum() -> None:
    assert sum([Gaussian(1), Laplace(2)]) == Gaussian(1) + Laplace(2)
    assert sum([]) == 0
    for stranger in (1, 1.0, 0.0, None, False, [1]):
        with pytest.raises(TypeError):
            stranger + Gaussian(1)
        with pytest.raises(TypeError, match="unsupported operand"):
            Gaussian(1) + stranger


def test_parts_given_as_lists_are_kept_as_tuples() -> None:
    event = Composed([[Gaussian(1), 2]])  # type: ignore[arg-type]
    assert event == 2 * Gaussian(1)
    assert hash(event) == hash(2 * Gaussian(1))


def test_a_single_event_stays_itself_and_equal_ones_are_counted() -> None:
    assert compose([Gaussian(1)]) == Gaussian(1)
    assert compose(Gaussian(1) for _ in range(1000)) == 1000 * Gaussian(1)
    assert repr(2 * Gaussian(1) + Pure(1)) == "Composed(parts=((Gaussian(ratio=1), 2), (Pure(epsilon=1), 1)))"


def test_counts_of_repetitions_never_overflow() -> None:
    assert 10**30 * Gaussian(1) + 10**30 * Gaussian(1) == (2 * 10**30) * Gaussian(1)


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (privacy.Laplace(20), "the event privacy.Laplace"),
        (privacy.Laplace, "the class Laplace"),
        (mechanisms.Laplace(scale=2), "the mechanism Laplace"),
        (mechanisms.Laplace, "the class Laplace"),
        (2 * privacy.Laplace(20), "the event privacy.Composed"),
        ("laplace", "str"),
        (None, "NoneType"),
    ],
)
def test_things_of_the_same_name_are_told_apart(thing: Any, words: str) -> None:
    assert described(thing) == words

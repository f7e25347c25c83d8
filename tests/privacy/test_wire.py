"""Events as a ledger stores them: exact, stable for ever, and safe to read from a stranger."""

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError
from defocus.privacy import (
    NOTHING,
    AllocatedGaussian,
    Approximate,
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
    SampledGaussian,
    Selected,
    SelectedPoisson,
    Shuffled,
    ShuffledGaussian,
    SubsetResponse,
    compose,
    events,
    from_wire,
    to_wire,
)

counts = st.integers(1, 2**63 - 1)
positives = (
    st.floats(min_value=0, exclude_min=True, allow_infinity=False)
    | st.integers(1, 10**400)
    | st.fractions(min_value=Fraction(1, 10**300)).filter(bool)
)
rates = st.floats(0, 1, exclude_min=True) | st.fractions(Fraction(1, 10**9), 1)
insides = rates.filter(lambda rate: rate < 1)
single: st.SearchStrategy[Event] = st.one_of(
    st.builds(Gaussian, positives),
    st.builds(Laplace, positives),
    st.builds(DiscreteGaussian, positives, positives, counts),
    st.builds(DiscreteLaplace, positives, counts),
    st.builds(Pure, positives),
    st.builds(Approximate, positives, insides),
    st.builds(Concentrated, positives),
    st.builds(Exponential, positives),
    st.builds(SampledGaussian, positives, rates),
    st.builds(
        lambda ratio, steps: AllocatedGaussian(ratio, Fraction(1, steps + 1), steps), positives, st.integers(1, 99)
    ),
    st.builds(lambda ratio, size: ShuffledGaussian(ratio, size, 9 * size, 8), positives, st.integers(1, 99)),
    st.builds(RandomizedResponse, positives, st.integers(2, 2**63 - 1)),
)
anything = st.recursive(
    single,
    lambda inner: st.one_of(
        st.builds(Sampled, inner, rates),
        st.builds(
            lambda event, size, more: SampledBatch(event, size, size + more),
            inner,
            st.integers(1, 10**9),
            st.integers(0, 10**9),
        ),
        st.builds(Selected, inner, insides, st.floats(-0.9, 9)),
        st.builds(SelectedPoisson, inner, positives),
        st.lists(st.tuples(inner, st.integers(0, 10**9)), max_size=3).map(
            lambda parts: compose(n * event for event, n in parts)
        ),
    ),
    max_leaves=5,
)

GOLDEN: dict[str, Event] = {
    '{"kind":"Gaussian","ratio":1.1}': Gaussian(1.1),
    '{"kind":"Gaussian","ratio":3}': Gaussian(3),
    '{"kind":"Laplace","ratio":"5/4"}': Laplace(Fraction(5, 4)),
    '{"dimension":7,"kind":"DiscreteGaussian","sensitivity":"7/2","sigma":1e-300}': DiscreteGaussian(
        1e-300, Fraction(7, 2), 7
    ),
    '{"kind":"DiscreteLaplace","scale":"4/1","sensitivity":2}': DiscreteLaplace(Fraction(4), 2),
    '{"epsilon":0.1,"kind":"Pure"}': Pure(0.1),
    '{"delta":1e-06,"epsilon":1,"kind":"Approximate"}': Approximate(1, 1e-6),
    '{"kind":"Concentrated","rho":0.5}': Concentrated(0.5),
    '{"epsilon":"1/3","kind":"Exponential"}': Exponential(Fraction(1, 3)),
    '{"categories":4,"epsilon":2,"kind":"RandomizedResponse"}': RandomizedResponse(2, 4),
    '{"event":{"kind":"Gaussian","ratio":1},"kind":"Sampled","rate":0.01}': Sampled(Gaussian(1), 0.01),
    '{"event":{"kind":"Gaussian","ratio":1},"kind":"SampledBatch","population":1000,"size":10}': SampledBatch(
        Gaussian(1), 10, 1000
    ),
    '{"kind":"SampledGaussian","rate":"1/100","ratio":1.1}': SampledGaussian(1.1, Fraction(1, 100)),
    '{"kind":"AllocatedGaussian","rate":"1/100","ratio":1.1,"steps":100}': AllocatedGaussian(
        1.1, Fraction(1, 100), 100
    ),
    '{"kind":"ShuffledGaussian","population":1001,"ratio":2,"size":10,"steps":100}': ShuffledGaussian(2, 10, 1001, 100),
    '{"eta":0,"event":{"epsilon":1,"kind":"Pure"},"gamma":0.1,"kind":"Selected"}': Selected(Pure(1), 0.1),
    '{"event":{"epsilon":1,"kind":"Pure"},"kind":"SelectedPoisson","mean":20}': SelectedPoisson(Pure(1), 20),
    '{"both":"1/16","epsilon":1,"inside":0.25,"kind":"SubsetResponse"}': SubsetResponse(1, 0.25, Fraction(1, 16)),
    '{"event":{"categories":2,"epsilon":1,"kind":"RandomizedResponse"},"kind":"Shuffled","users":1000}': Shuffled(
        RandomizedResponse(1), 1000
    ),
    '{"kind":"Composed","parts":[]}': NOTHING,
    '{"kind":"Composed","parts":[[{"kind":"Gaussian","ratio":1},1000],[{"epsilon":1,"kind":"Pure"},1]]}': 1000
    * Gaussian(1)
    + Pure(1),
}
"""Written in ledgers that outlive this code: a line may be added here, and none may ever be changed."""


def written(event: Event) -> str:
    return json.dumps(to_wire(event), allow_nan=False, sort_keys=True, separators=(",", ":"))


@pytest.mark.parametrize("text", GOLDEN)
def test_the_stored_form_never_changes(text: str) -> None:
    assert written(GOLDEN[text]) == text
    again = from_wire(json.loads(text))
    assert again == GOLDEN[text]
    assert repr(again) == repr(GOLDEN[text])


def test_every_kind_of_event_has_a_golden_form() -> None:
    kinds = {name for name in events.__all__ if isinstance(getattr(events, name), type)} - {"Event"}
    assert {type(event).__name__ for event in GOLDEN.values()} == kinds


@given(anything)
def test_what_is_written_is_read_back_exactly(event: Event) -> None:
    text = written(event)
    again = from_wire(json.loads(text))
    assert again == event
    assert repr(again) == repr(event)
    assert written(again) == text


def test_numpy_parameters_are_written_as_plain_json() -> None:
    event = np.int64(3) * Sampled(Gaussian(np.float32(1.5)), np.float64(0.25))  # type: ignore[arg-type]
    assert written(event) == (
        '{"kind":"Composed","parts":[[{"event":{"kind":"Gaussian","ratio":1.5},"kind":"Sampled","rate":0.25},3]]}'
    )


GAUSSIAN = {"kind": "Gaussian", "ratio": 1}
INSIDE: list[Any] = [3, None, "Gaussian", [], {}, [GAUSSIAN]]
HOSTILE: list[Any] = [
    None,
    3,
    "Gaussian",
    b"{}",
    [],
    [["kind", "Gaussian"], ["ratio", 1]],
    {},
    {"ratio": 1},
    {"kind": None, "ratio": 1},
    {"kind": 3, "ratio": 1},
    {"kind": ["Gaussian"], "ratio": 1},
    {"kind": {"kind": "Gaussian"}, "ratio": 1},
    {"kind": "gaussian", "ratio": 1},
    {"kind": "Event"},
    {"kind": "compose", "events": []},
    {"kind": "NOTHING"},
    {"kind": "__class__", "ratio": 1},
    {"kind": "__init__"},
    {"kind": "Gaussian"},
    {"kind": "Gaussian", "ratio": 1, "colour": "red"},
    {"kind": "Gaussian", "ratio": 1, "__class__": "Pure"},
    {"kind": "Gaussian", "self": 1, "ratio": 1},
    {"kind": "Gaussian", 3: 1},
    {"kind": "Gaussian", None: 1, "ratio": 1},
    {"kind": "Composed"},
    {"kind": "Composed", "parts": None},
    {"kind": "Composed", "parts": "ab"},
    {"kind": "Composed", "parts": {"ab": 1}},
    {"kind": "Composed", "parts": [GAUSSIAN]},
    {"kind": "Composed", "parts": [[GAUSSIAN]]},
    {"kind": "Composed", "parts": [[GAUSSIAN, 1, 2]]},
    {"kind": "Composed", "parts": [], "more": 1},
    *({"kind": "Composed", "parts": [[GAUSSIAN, times]]} for times in (0, -1, 1.0, True, "3", None, math.nan)),
    {"kind": "Composed", "parts": [[{"kind": "Composed", "parts": []}, 1]]},
    *({"kind": "Sampled", "event": inner, "rate": 0.1} for inner in INSIDE),
    *(
        {"kind": "Gaussian", "ratio": ratio}
        for ratio in (
            *(None, True, [], [1], {}, GAUSSIAN, math.nan, math.inf, -math.inf, 0, -1, 10**5000),
            *("", "1", "1/0", "0/1", "-1/2", "nan", "inf", "1e5", "1e999999999", "0x1/2", " 1/2", "1/2\n", "1_0/3"),
            *("1/2/3", "__class__", "1/-2", "¹/₂", "٣/4", "1/" + "9" * 10**6, "9" * 2000 + "/1"),
        )
    ),
]


@pytest.mark.parametrize("data", HOSTILE, ids=lambda data: str(type(data).__name__))
def test_hostile_data_is_refused_at_once_and_in_few_words(data: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"(?s)To fix: .") as caught:
        from_wire(data)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "deepen",
    [lambda d: {"kind": "Sampled", "event": d, "rate": 0.5}, lambda d: {"kind": "Composed", "parts": [[d, 2]]}],
)
def test_nesting_ten_thousand_deep_is_refused(deepen: Any) -> None:
    data: Any = GAUSSIAN
    for _ in range(10_000):
        data = deepen(data)
    with pytest.raises(InvalidParameterError, match="nested too deeply"):
        from_wire(data)


def test_nothing_is_written_that_could_not_be_read() -> None:
    event: Event = Gaussian(1)
    for _ in range(32):
        event = Sampled(event, 0.5)
    assert from_wire(to_wire(event)) == event
    with pytest.raises(InvalidParameterError, match=r"(?s)more than 32 deep.*To fix"):
        to_wire(Sampled(event, 0.5))
    with pytest.raises(InvalidParameterError, match="more than 32 deep"):
        to_wire(2 * event)


@pytest.mark.parametrize("stranger", [None, 3, "Gaussian", Gaussian, {"kind": "Gaussian"}, Event()])
def test_strangers_are_not_written(stranger: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"(?s)not an event a ledger can store.*To fix"):
        to_wire(stranger)


def test_an_event_of_someone_elses_making_is_not_written() -> None:
    class Gaussian(Event):
        ratio = 1

    with pytest.raises(InvalidParameterError, match="not an event a ledger can store"):
        to_wire(Gaussian())


junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["Gaussian", "Composed", "Sampled"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["kind", "parts", "ratio", "event", "rate", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(junk)
def test_junk_is_an_event_or_refused_and_nothing_else(data: Any) -> None:
    try:
        event = from_wire(data)
    except InvalidParameterError:
        return
    assert from_wire(json.loads(written(event))) == event

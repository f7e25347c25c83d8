import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import EpsilonTooLargeError, InvalidParameterError, UnreadableDescriptionError
from defocus.local import best
from defocus.local.designs import (
    KRR,
    NAMES,
    NUMERIC_NAMES,
    CountMeanSketch,
    Design,
    GeometryResponse,
    Hadamard,
    LocalHashing,
    SubsetSelection,
    Unary,
    design,
    from_json,
    numeric,
    to_json,
)
from defocus.local.domains import Categories, Interval
from defocus.privacy import account, events


def test_variances_are_the_published_ones() -> None:
    """Per person, 1000 categories; Wang et al. (2017) Table 1, Acharya et al. (2019)."""
    d = Categories.of(1000)
    for epsilon, krr, oue, hr in ((1, 339, 3.68, 4.68), (3, 2.80, 0.221, 1.22), (5, 0.0529, 0.0273, 1.027)):
        assert KRR(d, epsilon).variance(1) == pytest.approx(krr, rel=0.01)
        assert Unary(d, epsilon).variance(1) == pytest.approx(oue, rel=0.01)
        assert Hadamard(d, epsilon).variance(1) == pytest.approx(hr, rel=0.01)
        assert LocalHashing(d, epsilon).variance(1) == pytest.approx(oue, rel=0.02)
        root = math.exp(epsilon / 2)
        assert Unary(d, epsilon, symmetric=True).variance(1) == pytest.approx(root / (root - 1) ** 2, rel=0.002)


@given(st.fractions(Fraction(1, 8), 12, max_denominator=1000))
def test_unary_noise_of_few_bits_is_within_a_thousandth_of_the_best(epsilon: Fraction) -> None:
    made, e = Unary(Categories.of(10), epsilon), math.exp(epsilon)
    assert made.variance(1) <= 1.0011 * 4 * e / (e - 1) ** 2
    assert math.log(made.ratio) == pytest.approx(float(epsilon), rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_a_description_survives_json_and_keeps_its_digest(name: str) -> None:
    for domain in (12, ["a", "b", "c"]):
        for epsilon in (1, 0.7, Fraction(1, 3)):
            made = design(name, domain, epsilon, outside="other")
            again = from_json(to_json(made))
            assert again == made
            assert again.digest == made.digest
            assert again.digest != design(name, domain, Fraction(2), outside="other").digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"version": 1', '"version": 2'),
        ('"defocus.local"', '"defocus.loco"'),
        ('"high": ', '"high": 1'),
        ('"k-rr"', '"k-rrr"'),
        ('"epsilon": 1', '"epsilon": NaN'),
        ('"epsilon": 1', '"epsilon": "1/0"'),
        ('"size": 6', '"size": 1'),
        ('"size": 6', '"size": true'),
        ('"options": {}', '"options": {"x": 1}'),
        ('"options": {}', '"options": []'),
        ('"categories"', '"cats"'),
        ("{", "["),
    ],
)
def test_a_description_that_was_changed_is_refused(old: str, new: str) -> None:
    text = to_json(design("k-rr", 5, 1))
    assert old in text
    with pytest.raises(UnreadableDescriptionError, match="To fix: pass what Oracle"):
        from_json(text.replace(old, new, 1))


@pytest.mark.parametrize("name", NAMES)
def test_a_report_costs_its_person_epsilon(name: str) -> None:
    event = design(name, 10, 1).event
    assert account(event, method="basic").epsilon(0) == pytest.approx(1)
    assert account(3 * event, method="basic").epsilon(0) == pytest.approx(3)
    assert isinstance(event, events.Pure | events.RandomizedResponse)


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, True, "one", None, 40])
@pytest.mark.parametrize("name", NAMES)
def test_an_epsilon_without_meaning_is_refused(name: str, epsilon: object) -> None:
    with pytest.raises(InvalidParameterError, match="epsilon"):
        design(name, 10, epsilon)  # type: ignore[arg-type]


def test_subsets_and_projective_geometry_have_the_published_variances() -> None:
    """Per person, 1000 categories; Ye, Barg (2018), Feldman et al. (2022): 3.76 and .221 with fields of prime order."""
    d = Categories.of(1000)
    for epsilon, subset, prime in ((1, 3.67, 3.76), (3, 0.218, 0.221), (5, 0.0252, 0.0272)):
        assert SubsetSelection(d, epsilon).variance(1) == pytest.approx(subset, rel=0.005)
        assert 0.999 * subset < GeometryResponse(d, epsilon).variance(1) < 1.002 * prime
    assert GeometryResponse(d, 1, order=3).variance(1) == pytest.approx(3.76, rel=0.003)


def test_a_sketch_pays_for_collisions_of_whole_categories() -> None:
    made = CountMeanSketch(Categories.of(100), 2, rows=8, width=16)
    assert made.variance(1000, pairs=120) - made.variance(1000) == pytest.approx(1)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("olh", {"order": 6}),
        ("pgr", {"order": 1}),
        ("pgr", {"order": -4}),
        ("subset", {"members": 11}),
        ("cms", {"rows": 0}),
        ("cms", {"width": 1 << 40}),
        ("hcms", {"rows": 3}),
        ("hcms", {"seed": -1}),
        ("olh", {"order": 32749}),
    ],
)
def test_options_without_meaning_are_refused(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError):
        design(name, 10, 1, **options)


VALUES: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.floats() | st.text(max_size=8) | st.just([]) | st.just({})
)


@given(st.sampled_from([*NAMES, *NUMERIC_NAMES]), st.data())
def test_a_description_from_strangers_is_read_or_refused_and_nothing_else(name: str, data: st.DataObject) -> None:
    made = numeric(name, 0, 1, 1) if name in NUMERIC_NAMES else design(name, 20, 1)
    wire = made.to_wire()
    place = data.draw(st.sampled_from(["", "domain", "options", "law"]))
    target = wire[place] if place else wire
    if target:
        target[data.draw(st.sampled_from(sorted(target)))] = data.draw(VALUES)
    try:
        assert from_json(json.dumps(wire)).digest
    except UnreadableDescriptionError as refused:
        assert "To fix" in str(refused)  # noqa: PT017 - either is right


@pytest.mark.parametrize("name", [*NAMES, *NUMERIC_NAMES])
def test_a_domain_of_the_other_kind_is_refused_wherever_it_comes_from(name: str) -> None:
    """Codes used as shares of an interval, or shares as codes, would slide off the grid that the noise is for."""
    made: Design = numeric(name, 0, 1, 1) if name in NUMERIC_NAMES else design(name, 3, 1)
    other = Categories.of(3) if name in NUMERIC_NAMES else Interval(0, 1)
    with pytest.raises(InvalidParameterError, match="domain"):
        replace(made, domain=other)  # type: ignore[type-var]  # every design is a dataclass
    with pytest.raises(UnreadableDescriptionError, match="domain"):
        from_json(json.dumps(made.to_wire() | {"domain": other.to_wire()}))


def test_a_device_can_limit_what_it_is_told_to_pay() -> None:
    text = to_json(design("k-rr", 3, 2))
    assert from_json(text, at_most=2).epsilon == 2
    with pytest.raises(EpsilonTooLargeError, match=r"epsilon = 2.*limit is 1"):
        from_json(text, at_most=1)


def test_what_cannot_be_drawn_is_refused_when_it_is_designed() -> None:
    """And not at the first report, or where the best oracle is looked for."""
    for size in (2, 10, 1000, 100_000):
        for epsilon in (31.99, 32):
            assert best(size, epsilon).variance(1) >= 0

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.local.odd_values import ODD

from defocus.errors import InvalidParameterError, Number, OutOfDomainError
from defocus.local import mean, oracle
from defocus.local.domains import LARGEST_DOMAIN, Categories, Interval, canonical, domain_from_wire


@pytest.mark.parametrize("values", [[5], [-1], [2**62], [-(2**63)], np.array([2**64 - 1], np.uint64)])
def test_a_number_outside_is_refused_without_being_quoted_or_counted_as_other(values: Any) -> None:
    with pytest.raises(OutOfDomainError) as refused:
        Categories.of(5, outside="refuse").codes(values)
    assert str(values[0]) not in str(refused.value).replace("5 categories", "")
    assert Categories.of(5).codes(values).tolist() == [5]


@pytest.mark.parametrize("values", [["b", "?"], ["b", 3], ["b", None], np.array(["b", ""])])
def test_a_label_that_nothing_has_is_refused_or_counted_as_other(values: Any) -> None:
    with pytest.raises(OutOfDomainError):
        Categories.of(["a", "b"], outside="refuse").codes(values)
    assert Categories.of(["a", "b"]).codes(values).tolist() == [1, 2]


@pytest.mark.parametrize("values", [[0.5], ["0"], "01", [[1]], [True], [None], 3, [math.nan], [10**30]])
def test_values_of_a_numbered_domain_are_whole_numbers(values: Any) -> None:
    with pytest.raises(InvalidParameterError):
        Categories.of(5, outside="refuse").codes(values)


def test_a_missing_value_that_turns_a_column_into_floats_changes_no_other_value() -> None:
    """Pandas and polars write whole numbers as floats where one is missing."""
    asked = Categories.of(3)
    assert asked.codes(np.array([0, 2, 1])).tolist() == [0, 2, 1]
    assert asked.codes(np.array([0.0, 2.0, math.nan])).tolist() == [0, 2, 3]
    assert asked.codes(np.array([0, 2, None])).tolist() == [0, 2, 3]
    assert asked.codes(np.ma.array([0, 2, 1], mask=[False, False, True])).tolist() == [0, 2, 3]
    assert Interval(0, 4).positions(np.ma.array([0, 2, 4], mask=[False, False, True])).tolist() == [0, 0.5, 0]


@pytest.mark.parametrize("odd", ODD)
def test_no_value_changes_what_becomes_of_another(odd: str) -> None:
    value: Any = ODD[odd]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Categories.of(3).codes([2, value, 0]).tolist()[::2] == [2, 0]
        assert Categories.of(["x", "y"]).codes(["y", value, "x"]).tolist() == [1, 2, 0]
        assert Interval(0, 4).positions([3, value, 1]).tolist()[::2] == [0.75, 0.25]


def test_values_are_read_as_what_they_are_and_never_by_their_own_code() -> None:
    assert Categories.of(["a"]).codes([ODD["text that raises"]]).tolist() == [0]
    assert Categories.of(3).codes([ODD["number that raises"], np.int8(2), 2.0, 1.5, "1"]).tolist() == [1, 2, 2, 3, 3]
    huge = [ODD["huge"], ODD["huge negative"], ODD["huge number that raises"], ODD["ratio that raises"]]
    assert Interval(0, 1).positions(huge).tolist() == [1, 0, 1, 1]


class _Half(Fraction):
    @property
    def numerator(self) -> int:
        raise SystemExit


class _Wide(np.longdouble):
    def __array__(self, *_: Any, **__: Any) -> Any:
        raise SystemExit


def test_fractions_and_wide_floats_of_other_classes_are_read_without_their_own_code() -> None:
    assert Interval(0, 1).positions([_Half(1, 2), _Wide(0.25)]).tolist() == [0.5, 0.25]


def test_the_label_of_the_bucket_is_no_other_label() -> None:
    with pytest.raises(InvalidParameterError, match=r"'other' is what[^\n]*\nTo fix: leave the label"):
        Categories.of(["red", "other"])
    assert Categories.of(["red", "other"], outside="refuse").codes(["other"]).tolist() == [1]


NOTHING_OF_THE_DOMAIN = [0.5, "0", None, True, [1], {}, math.nan, math.inf, 2**63, 2**64, -(2**70), b"x", 1j, object()]


@pytest.mark.parametrize("value", NOTHING_OF_THE_DOMAIN, ids=[f"{i}" for i in range(14)])
def test_every_value_whatever_it_is_has_a_declared_outcome(value: Any) -> None:
    """Silence would be an outcome, too, and not a private one."""
    assert Categories.of(3).codes([value]).tolist() == [3]
    assert Categories.of(3).codes([1, value]).tolist() == [1, 3]
    assert Categories.of(["a", "b"]).codes([value, "b"]).tolist() == [2, 1]
    found = Interval(2, 4).positions([3, value]).tolist()
    assert found[0] == 0.5
    assert found[1] in (0, 1)
    assert Interval(2, 4).positions([value])[0] in (0, 1)


def test_what_is_no_number_counts_as_the_low_end() -> None:
    given = [math.nan, None, "3", True, [3], 10**400, -(10**400), math.inf]
    assert Interval(2, 4).positions(given).tolist() == [0, 0, 0, 0, 0, 1, 0, 1]
    assert Interval(2, 4).positions(np.array([math.nan, 4])).tolist() == [0, 1]


def test_a_batch_that_is_no_list_of_values_is_refused_under_every_rule() -> None:
    for values in (3, None, "01", b"01", np.array([[1, 2]]), np.array(1)):
        for domain in (Categories.of(3, outside="other"), Categories.of(["a", "b"], outside="other")):
            with pytest.raises(InvalidParameterError):
                domain.codes(values)
        with pytest.raises(InvalidParameterError):
            Interval(0, 1).positions(values)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (0, Fraction(1, 10**400)),
        (-1.7e308, 1.7e308),
        (0, 10**400),
        (-(10**400), 0),
        (1, 1 + Fraction(1, 10**400)),
        (-(10**308), 10**308),
    ],
    ids=["narrow", "wide", "far up", "far down", "narrow around 1", "wide whole"],
)
def test_an_interval_that_floats_cannot_measure_is_refused(low: Any, high: Any) -> None:
    with pytest.raises(InvalidParameterError, match="measured"):
        Interval(low, high)


@pytest.mark.parametrize("labels", [(1, 2), ("a", 1), "ab", (None, "b"), (("a",), ("b",))])
def test_labels_are_texts(labels: Any) -> None:
    with pytest.raises(InvalidParameterError, match="texts"):
        Categories(2, labels)


def test_nobody_is_an_answer() -> None:
    assert Categories.of(5).codes([]).tolist() == []


@pytest.mark.parametrize("domain", [0, 1, -3, True, 2.0, "abc", ["a"], ["a", "a"], [1, 2], None, LARGEST_DOMAIN + 1])
def test_a_domain_without_meaning_is_refused(domain: Any) -> None:
    with pytest.raises(InvalidParameterError):
        Categories.of(domain, outside="refuse")


def test_numbers_outside_an_interval_are_clipped_or_refused() -> None:
    assert Interval(-1, 3).positions([-9, -1, 0, 3, math.inf, -math.inf, 1e308]).tolist() == [0, 0, 0.25, 1, 1, 0, 1]
    with pytest.raises(OutOfDomainError):
        Interval(-1, 3, "refuse").positions([4])
    for bad in ([math.nan], ["1"], [[1]], np.array([None])):
        with pytest.raises(OutOfDomainError):
            Interval(-1, 3, "refuse").positions(bad)


@pytest.mark.parametrize(("low", "high"), [(1, 1), (2, 1), (math.nan, 1), (0, math.inf), ("0", 1), (False, True)])
def test_an_interval_needs_two_finite_ends_in_order(low: Any, high: Any) -> None:
    with pytest.raises(InvalidParameterError):
        Interval(low, high)


@pytest.mark.parametrize("domain", [Categories.of(7), Categories.of(["x", "y"], outside="other"), Interval(0, 2.5)])
def test_a_domain_survives_json(domain: Any) -> None:
    assert domain_from_wire(domain.to_wire()) == domain


def test_refusals_name_the_rule_that_the_domain_has() -> None:
    with pytest.raises(OutOfDomainError, match="outside='other'") as refused:
        Categories(5, outside="refuse").codes([7])
    assert "clip" not in str(refused.value)
    with pytest.raises(OutOfDomainError, match="outside='clip'") as refused:
        Interval(0, 1, "refuse").positions([7])
    assert "other" not in str(refused.value)


NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.fractions()


@given(NUMBERS)
def test_equal_numbers_are_written_alike(value: Number) -> None:
    found = canonical(value)
    assert found == value
    for same in (int(value), Fraction(value), float(Fraction(value)) if -1e300 < value < 1e300 else value):
        if same == value:
            assert repr(canonical(same)) == repr(found)


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), (0.5, Fraction(1, 2)), (Fraction(2), 2)])
def test_equal_descriptions_have_one_text_and_one_digest_whatever_was_made_before(one: Number, other: Number) -> None:
    for made in (lambda e: oracle("k-rr", 5, e).design, lambda e: mean("duchi", 0, e, e).design):
        assert made(one).to_wire() == made(other).to_wire()
        assert repr(made(one).to_wire()) == repr(made(other).to_wire())
        assert made(one).digest == made(other).digest

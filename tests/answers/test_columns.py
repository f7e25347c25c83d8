import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.answers.making import column

from defocus.answers.columns import AnswerColumn, Tails, brief, checked_names, decimals, named, noisy, rounded, written
from defocus.errors import InvalidParameterError, UnknownColumnError
from defocus.mechanisms import Gaussian, Laplace


def test_a_cell_is_reliable_up_to_the_threshold_and_not_beyond() -> None:
    made = column(values=[100, 99, -100, 0, np.nan], errors=10)
    assert made.reliable(0.1) == [True, False, True, False, False]
    assert made.reliable(0.09) == [False] * 5


def test_where_no_error_is_known_the_interval_speaks_and_else_nothing() -> None:
    nan = np.nan
    made = AnswerColumn(
        "p90",
        values=np.array([10.0, 10.0, 10.0]),
        errors=np.array([nan, nan, nan]),
        low=np.array([9.5, 0.0, nan]),
        high=np.array([10.5, 20.0, nan]),
        integral=False,
        how="quantiles",
    )
    assert made.reliable(0.1) == [True, False, None]
    assert made.spread[0] == pytest.approx(0.5 / 1.959964)


def test_raising_to_zero_keeps_what_the_interval_held_and_says_that_it_is_biased() -> None:
    made = column(values=[-50, -3, 5], errors=10).non_negative()
    assert made.values.tolist() == [0, 0, 5]
    assert made.low.tolist() == [0, 0, 0]
    assert made.high.tolist() == [0, 17, 25]
    assert made.errors.tolist() == [10, 10, 10]
    assert "biased upwards" in made.how


def test_numbers_cannot_be_changed_afterwards() -> None:
    given = np.array([1.0, 2.0])
    made = AnswerColumn("n", given, given, given, given, True, "how")
    given[0] = 7
    assert made.values[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        made.values[0] = 3


@pytest.mark.parametrize("part", [np.array([1.0]), np.array([[1.0, 2.0]]), np.array(1.0)])
def test_parts_of_another_shape_are_refused(part: np.ndarray) -> None:
    two = np.array([1.0, 2.0])
    with pytest.raises(InvalidParameterError, match="one number for each group"):
        AnswerColumn("n", two, two, part, two, True, "how")


@pytest.mark.parametrize(
    ("keys", "names"),
    [
        (["n"], ["n"]),
        (["N"], ["n"]),
        (["n"], ["N"]),
        (["n_low"], ["n"]),
        ([], ["n", "n_reliable"]),
        ([], ["n", "n"]),
        (["stay_ERROR"], ["stay"]),
    ],
)
def test_names_that_would_meet_are_refused(keys: list[str], names: list[str]) -> None:
    with pytest.raises(InvalidParameterError, match="rename one"):
        checked_names(keys, names)


def test_other_names_are_fine() -> None:
    checked_names(["ward", "error"], ["n", "stay", "low"])


def test_expected_absolute_errors_are_not_taken_for_standard_errors() -> None:
    made = noisy("x", [10.0, 10.0], error=0.8, half=np.array([1.959963984540054, np.nan]), how="told")
    assert made.absolute
    assert made.errors.tolist() == [0.8, 0.8]
    assert made.spread == pytest.approx([1, 0.8 * np.sqrt(np.pi / 2)])
    assert made.taken([1]).absolute


def test_columns_are_found_by_name_or_refused_with_the_nearest() -> None:
    columns = [column("visits"), column("stay")]
    assert named(columns, "stay") is columns[1]
    with pytest.raises(UnknownColumnError, match="no column 'visit'") as caught:
        named(columns, "visit")
    assert "did you mean 'visits'" in caught.value.fix


@given(st.floats(1e-12, 1e12))
def test_rounding_steps_are_between_a_twentieth_and_half_of_the_error(error: float) -> None:
    places = decimals(error)
    assert places is not None
    step = 10.0**-places
    assert error / 20 * (1 - 1e-9) <= step <= error / 2 * (1 + 1e-9)


@given(st.lists(st.tuples(st.floats(1e-6, 1e6), st.floats(-1e6, 1e6)), min_size=1))
def test_each_number_is_rounded_by_less_than_a_quarter_of_its_own_error(pairs: list[tuple[float, float]]) -> None:
    errors, values = (np.array(part) for part in zip(*pairs, strict=True))
    one = column(values=values, errors=errors.tolist(), integral=False)
    assert (abs(rounded(values, one.places) - values) <= errors / 4 * (1 + 1e-6) + 1e-9).all()
    assert one.places == [column(values=[v], errors=[e], integral=False).places[0] for e, v in pairs]


def test_a_value_that_its_noise_drowns_is_not_rounded_away() -> None:
    drowned = column(values=[71.3, 59.8, 18.6, 0.0001], errors=[255.0, 255.0, 255.0, 255.0], integral=False)
    assert [written(v, p) for v, p in zip(drowned.values, drowned.places, strict=True)] == ["71", "60", "19", "0"]
    assert drowned.reliable(0.1) == [False] * 4


def test_counts_have_no_decimals_and_unknown_errors_decide_nothing() -> None:
    assert decimals(0.001, integral=True) == 0
    assert [decimals(error) for error in (np.nan, np.inf, 0.0)] == [None] * 3
    mixed = column(values=[1 / 3, 2 / 3], errors=[np.nan, 0.5], integral=False)
    assert mixed.places == [None, 1]
    assert rounded(np.array([1 / 3]), [None])[0] == 1 / 3


def test_nothing_is_written_as_minus_zero() -> None:
    assert written(-0.2, 0) == "0"
    assert math.copysign(1, float(rounded(np.array([-0.01]), [1])[0])) == 1


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [
        (1234567.891, 2, "1 234 567.89"),
        (-1234.5, -2, "-1 200"),
        (5, 0, "5"),
        (1e20, 0, "1e+20"),
        (1 / 3, None, "0.333333"),
        (math.nan, 1, "–"),
        (math.inf, 1, "∞"),
        (-math.inf, 1, "-∞"),
        (1e-20, 400, "1e-20"),
    ],
)
def test_numbers_are_written_for_people(value: float, places: int | None, text: str) -> None:
    assert written(value, places) == text


@given(st.floats(1e-9, 1e12))
def test_two_digits_are_within_a_twentieth(value: float) -> None:
    assert float(brief(value).replace(" ", "")) == pytest.approx(value, rel=0.0501)


def test_errors_that_are_none_are_dashes() -> None:
    assert brief(math.nan) == "–"
    assert brief(math.inf) == "∞"


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.96, 0.99, 0.999, 0.999999])
@pytest.mark.parametrize(
    "mechanism", [Laplace(scale=s) for s in (0.3, 1, 2, 7, 100)] + [Gaussian(sigma=s) for s in (0.5, 1, 3, 50)], ids=str
)
def test_intervals_of_any_confidence_hold_the_noise_as_often_as_they_say(
    mechanism: Laplace | Gaussian, confidence: float
) -> None:
    """The exact half-width of discrete noise is never larger than what follows from the one with 95 %."""
    gaussian = isinstance(mechanism, Gaussian)
    for tails in (Tails.LOG_CONCAVE, Tails.NORMAL) if gaussian else (Tails.LOG_CONCAVE,):
        made = noisy("n", [0], error=1, half=mechanism.interval(0.95), how="noise", tails=tails)
        low, high = made.interval(confidence)
        exact = mechanism.interval(confidence)
        assert -low[0] == high[0] >= exact
        if confidence > 0.95 and tails is (Tails.NORMAL if gaussian else Tails.LOG_CONCAVE):
            assert high[0] <= 1.2 * exact + 6


def test_what_is_not_known_about_tails_is_not_claimed() -> None:
    made = column(values=[3.0, np.nan])
    low, high = made.interval(0.8)
    assert (low[0], high[0]) == (made.low[0], made.high[0])  # holds more often than that
    with pytest.raises(InvalidParameterError, match="no interval with 99 % confidence"):
        made.interval(0.99)
    low, _ = replace(made, tails=Tails.NORMAL).interval(0.99)
    assert low[0] < made.low[0]
    assert np.isnan(low[1])
    with pytest.raises(InvalidParameterError, match="no interval with 95 %"):
        column(errors=np.nan).interval()
    assert [len(end) for end in column(values=[]).interval(0.99)] == [0, 0]


def test_raising_negative_values_leaves_no_other_interval_than_the_known_one() -> None:
    made = replace(column(values=[-3.0]), tails=Tails.LOG_CONCAVE)
    assert made.non_negative().interval()[0][0] == 0
    with pytest.raises(InvalidParameterError, match="no interval"):
        made.non_negative().interval(0.99)


def test_a_rank_without_ends_is_open_where_rows_may_lie_beyond_what_counts() -> None:
    nothing = np.array([math.nan])
    of_rows = AnswerColumn("m", np.array([9.0]), nothing, nothing, nothing, integral=False, how="", rank=4.0)
    assert of_rows.opened == [None]
    assert replace(of_rows, limits=(-math.inf, math.inf)).opened == ["both"]

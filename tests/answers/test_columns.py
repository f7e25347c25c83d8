import numpy as np
import pytest
from tests.answers.making import column

from defocus.answers.columns import AnswerColumn, checked_names, named, noisy
from defocus.errors import InvalidParameterError, UnknownColumnError


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

"""How the privacy floor words its refusals."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import (
    CannotCalibrateError,
    DefocusError,
    ExpressionError,
    FormulaOutOfRangeError,
    InvalidParameterError,
    NoiseOverflowError,
    NotBitsError,
    UnsupportedEventError,
)
from defocus.privacy import Budget, Concentrated, Gaussian, Laplace, account, calibrate, classical_gaussian_sigma


def test_refusals_survive_the_way_between_processes() -> None:
    for error in (NotBitsError(3), NoiseOverflowError(70)):
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own bytes
        assert type(copy) is type(error)
        assert str(copy) == str(error)


def test_they_are_what_python_would_raise_as_well() -> None:
    assert issubclass(NotBitsError, DefocusError | ValueError)
    assert issubclass(NoiseOverflowError, OverflowError)


def test_a_refused_generator_is_named_by_its_type_and_never_shown() -> None:
    seed = "19991231"
    assert seed not in str(NotBitsError(seed))
    assert "of type str" in str(NotBitsError(seed))


def test_an_unsupported_event_is_named_with_its_accountant_and_a_way_out() -> None:
    with pytest.raises(UnsupportedEventError) as caught:
        account(Concentrated(1), method="gdp")
    assert caught.value.what.startswith("The gdp accountant cannot express Concentrated: ")
    assert "pld" in caught.value.fix


def test_an_event_is_named_by_its_kind_and_its_parameters_are_not_shown() -> None:
    text = str(UnsupportedEventError(Laplace(123456789), accountant="gdp", why="it cannot", fix="use pld."))
    assert "123456789" not in text


def test_calibration_and_formulas_have_refusals_of_their_own() -> None:
    with pytest.raises(CannotCalibrateError, match="To fix"):
        calibrate(Gaussian, Budget(1))
    with pytest.raises(FormulaOutOfRangeError, match="gaussian_sigma"):
        classical_gaussian_sigma(2, 1e-5)
    assert issubclass(FormulaOutOfRangeError, InvalidParameterError)
    assert not issubclass(CannotCalibrateError, InvalidParameterError)


@given(st.text(max_size=200), st.data())
def test_an_expression_is_shown_on_one_line_with_a_caret_under_the_place(text: str, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(text)))
    error = ExpressionError("Odd", text=text, position=position, fix="mend it.")
    head, shown, caret = error.what.split("\n")
    assert head == f"Odd, at position {position + 1}:"
    assert shown.isascii()
    assert shown.isprintable()
    assert caret.strip() == "^"
    if position < len(text) and " " <= text[position] <= "~":
        assert shown[caret.index("^")] == text[position]
    assert len(error.what) < 250


def test_an_expression_error_keeps_its_position_between_processes() -> None:
    error = ExpressionError("Odd", text="2 * x", position=4, fix="mend it.")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own bytes
    assert again.position == 4
    assert str(again) == str(error)


@pytest.mark.parametrize(("length", "position"), [(1000, 500), (1000, 0), (1000, 1000)])
def test_a_long_expression_is_cut_around_the_place(length: int, position: int) -> None:
    text = "".join(chr(97 + i % 26) for i in range(length))
    shown, caret = ExpressionError("Odd", text=text, position=position, fix="mend it.").what.split("\n")[1:]
    assert shown.startswith("    ...") == (position > 32)
    assert shown.endswith("...") == (position < length - 32)
    assert len(caret) <= len(shown) + 1

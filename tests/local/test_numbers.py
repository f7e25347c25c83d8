from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import Number
from defocus.local import mean, oracle
from defocus.local.numbers import canonical

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

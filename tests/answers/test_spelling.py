"""Every value has a text that files can hold."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from defocus.answers.showing import plain, visible
from defocus.answers.spelling import spelt


class Refusing:
    def __str__(self) -> str:
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("ada", "ada"),
        ("", ""),
        (-3, "-3"),
        (True, "True"),
        (2.5, "2.5"),
        (np.int64(7), "7"),
        (b"x", "b'x'"),
        (dt.date(2024, 1, 1), "2024-01-01"),
        (UUID(int=3), "00000000-0000-0000-0000-000000000003"),
        ((1, "a"), "(1, 'a')"),
        ("\ud800x", "\\ud800x"),
        (10**999, "1" + "0" * 999),
        (10**5000, hex(10**5000)),
        (-(10**5000), hex(-(10**5000))),
        ((10**5000, "a"), f"({hex(10**5000)}, a)"),
        (Fraction(10**5000, 3), f"{hex(10**5000)}/3"),
        (Decimal("1e999999"), "1E+999999"),
        (Refusing(), "<Refusing>"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_value_has_a_text_that_files_hold(value: Any, text: str) -> None:
    assert spelt(value) == text
    assert spelt(value).encode() == text.encode()
    assert plain(value, widest=10**6) == (text or "''")
    assert visible(value) == text

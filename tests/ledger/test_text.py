import getpass
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError
from defocus.ledger.text import line, whoever


@given(st.text())
def test_text_comes_back_as_it_is_or_not_at_all(value: str) -> None:
    unsafe = not value.strip() or any(unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} for c in value)
    if unsafe:
        with pytest.raises(InvalidParameterError, match="To fix") as refused:
            line("purpose", value)
        assert refused.value.what.isprintable()
    elif not set(value) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"):
        assert line("purpose", value) is value


@pytest.mark.parametrize("value", ["\n", "a\rb", "\x7f", "\x9b31m", "\u2066x", "\udfff"])
def test_what_could_disturb_a_terminal_is_refused_with_its_position(value: str) -> None:
    with pytest.raises(InvalidParameterError, match="To fix"):
        line("purpose", value)


def test_the_longest_text_fits_and_one_more_does_not() -> None:
    assert line("purpose", "x" * 2000)
    with pytest.raises(InvalidParameterError, match="2001 characters"):
        line("purpose", "x" * 2001)


def test_who_is_the_account_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "ada")
    assert whoever(None) == "ada"
    assert whoever("Grace") == "Grace"


def test_an_account_without_a_name_is_called_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> str:
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr(getpass, "getuser", unknown)
    assert whoever(None).startswith("uid ")

from pathlib import Path
from typing import Any

import pytest

from defocus.errors import InvalidParameterError
from defocus.ledger import Ledger
from defocus.ledger.places import patience, url_of


@pytest.mark.parametrize(
    "where", [None, 3, b"a", "", "  ", "a\0b", ":memory:", "mysql://host/db", "sqlite:///a", "x://", "http://a"]
)
def test_a_place_that_is_none_is_refused_with_examples(where: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"visits\.ledger"):
        Ledger.open(where)


def test_paths_and_addresses_are_told_apart() -> None:
    assert url_of(Path("postgresql:")) is None
    assert url_of("C:/visits.ledger") is None
    assert url_of("postgresql://a@b/c") is not None


def test_patience_has_an_end() -> None:
    assert patience(1e9) == 3600

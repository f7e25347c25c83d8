"""Purposes that the owner of the data allows."""

from typing import Any

import pytest

from defocus.errors import InvalidParameterError
from defocus.release.purposes import allowed, declared


def test_any_purpose_will_do_where_none_was_declared() -> None:
    assert declared(None) is None
    assert allowed("report", None, "q") == "report"
    assert allowed(None, None, "q" * 300) == "q" * 200


def test_only_declared_purposes_are_allowed_and_the_nearest_is_named() -> None:
    purposes = declared(["monthly report", "audit"])
    assert allowed("audit", purposes, "q") == "audit"
    with pytest.raises(InvalidParameterError, match="'monthly reprot' is none of them") as caught:
        allowed("monthly reprot", purposes, "q")
    assert caught.value.fix == "did you mean 'monthly report'? The purposes are monthly report; audit."
    with pytest.raises(InvalidParameterError, match="none was named"):
        allowed(None, purposes, "q")


@pytest.mark.parametrize("given", [[], 3, True, b"audit", ["a\nb"], [""], [7]])
def test_what_names_no_purpose_is_refused(given: Any) -> None:
    with pytest.raises(InvalidParameterError):
        declared(given)

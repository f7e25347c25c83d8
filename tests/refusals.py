"""Tables of refusals: a sentence, a call, its error, words of what it says, and how its remedy begins."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import pytest

from defocus.errors import DefocusError

__all__ = ["Row", "check", "each"]

Row: TypeAlias = tuple[str, Callable[[], object], type[DefocusError], str, str]


def each(rows: Sequence[Row]) -> pytest.MarkDecorator:
    """One test for each row, named by its sentence."""
    return pytest.mark.parametrize(
        ("call", "error", "words", "fix"), [row[1:] for row in rows], ids=[r[0] for r in rows]
    )


def check(call: Callable[[], object], error: type[DefocusError], words: str, fix: str) -> None:
    """Fail if the call is not refused with this error, these words and this remedy."""
    with pytest.raises(error, match=words) as caught:
        call()
    assert caught.value.fix.startswith(fix)

from typing import Any

import pytest

from defocus import mechanisms, privacy
from defocus.privacy.naming import described


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (privacy.Laplace(20), "the event privacy.Laplace"),
        (privacy.Laplace, "the class Laplace"),
        (mechanisms.Laplace(scale=2), "the mechanism Laplace"),
        (mechanisms.Laplace, "the class Laplace"),
        (2 * privacy.Laplace(20), "the event privacy.Composed"),
        ("laplace", "str"),
        (None, "NoneType"),
    ],
)
def test_things_of_the_same_name_are_told_apart(thing: Any, words: str) -> None:
    assert described(thing) == words

"""The room opens without PyTorch and without scikit-learn, and says what to install when they are needed."""

import subprocess
import sys

import pytest

from defocus import learning

ABSENT = """
import sys, importlib.abc
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in {'torch', 'sklearn'}:
            raise ModuleNotFoundError(f'No module named {name!r}', name=name)
sys.meta_path.insert(0, Absent())
import defocus as dp
"""


def without_extras(code: str) -> str:
    made = subprocess.run([sys.executable, "-c", ABSENT + code], capture_output=True, text=True, check=True)  # noqa: S603 - our own interpreter
    return made.stdout.strip()


def test_the_room_opens_without_torch_and_scikit_learn() -> None:
    assert without_extras("print(dp.learning.__name__, dir(dp.learning) == sorted(dp.learning.__all__))") == (
        "defocus.learning True"
    )


def test_what_is_not_there_is_refused_like_any_attribute() -> None:
    with pytest.raises(AttributeError, match=r"'defocus\.learning' has no attribute 'Trainr'"):
        learning.Trainr  # type: ignore[attr-defined]  # noqa: B018 - the look is the test


@pytest.mark.parametrize("name", ["Trainer", "AdaptiveClipping", "Gradients"])
def test_what_needs_torch_says_how_to_get_it(name: str) -> None:
    told = without_extras(
        f"""
try:
    dp.learning.{name}
except dp.errors.MissingExtraError as error:
    print(error)
"""
    )
    assert f"learning.{name} needs the package torch" in told
    assert "pip install 'defocus[learn]'" in told


def test_the_room_opens_where_torch_is() -> None:
    assert learning.Trainer.__module__ == "defocus.learning.trainer"

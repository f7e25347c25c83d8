"""Every error: exported, worded, and the same on the other side of a process."""

import copy
import importlib
import inspect
import pickle
import pkgutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from types import ModuleType
from typing import Any

import pytest

from defocus import errors
from defocus.errors import (
    BudgetExceededError,
    DefocusError,
    ExpressionError,
    InvalidParameterError,
    MissingExtraError,
)
from defocus.privacy import Gaussian


def rooms() -> list[ModuleType]:
    return [importlib.import_module(f"defocus.errors.{found.name}") for found in pkgutil.iter_modules(errors.__path__)]


CLASSES = sorted(
    {
        kind
        for room in rooms()
        for _, kind in inspect.getmembers(room, inspect.isclass)
        if issubclass(kind, DefocusError) and kind.__module__ == room.__name__
    },
    key=lambda kind: kind.__name__,
)

EXCEEDED: dict[str, Any] = {
    "requested": 0.5,
    "remaining": 0.25,
    "difference": 0.25,
    "measure": "epsilon",
    "budget": "Budget(epsilon=1)",
    "left": "one release of epsilon 0.25",
    "requested_epsilon": 0.5,
    "remaining_epsilon": 0.25,
}


def example(kind: type[DefocusError]) -> DefocusError:
    """One of each kind, its parameters filled in by their types, so that kinds yet to come are tried as well."""
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    plain: dict[Any, Any] = {str: "a word", int: 7, float: 0.5, float | None: 0.5}
    kinds: dict[str, Any] = {"Iterable": ["laplace"], "Mapping": {"north": "it is closed"}}
    values: dict[str, Any] = {
        each.name: plain.get(
            each.annotation, next((kinds[name] for name in kinds if name in str(each.annotation)), Gaussian(1))
        )
        for each in parameters
        if each.kind is not each.VAR_KEYWORD
    }
    first = [values.pop(each.name) for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    error: DefocusError = kind(*first, **values)
    return error


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_error_is_exported_and_drawn(kind: type[DefocusError]) -> None:
    assert getattr(errors, kind.__name__) is kind
    assert kind.__name__ in errors.__all__
    assert kind.__name__ in (errors.__doc__ or "")
    assert kind.__doc__


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_error_says_how_to_mend_it(kind: type[DefocusError]) -> None:
    error = example(kind)
    what, fix = str(error).split("\nTo fix: ")
    assert what == error.what
    assert fix == error.fix
    assert what
    assert fix


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("travel", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])  # noqa: S301  # our own bytes
def test_every_error_survives_copying(kind: type[DefocusError], travel: Any) -> None:
    error = example(kind)
    error.add_note("seen on the way")
    again = travel(error)
    assert type(again) is kind
    assert str(again) == str(error)
    assert again.args == error.args
    assert again.__dict__ == error.__dict__
    assert again.__notes__ == ["seen on the way"]


def exceed() -> None:
    raise BudgetExceededError(**EXCEEDED)


def test_a_refusal_in_another_process_arrives_with_its_numbers() -> None:
    with (
        ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool,
        pytest.raises(BudgetExceededError, match="requested") as caught,
    ):
        pool.submit(exceed).result()
    assert {name: getattr(caught.value, name) for name in ("requested", "remaining", "difference", "measure")} == {
        name: EXCEEDED[name] for name in ("requested", "remaining", "difference", "measure")
    }


def test_a_refusal_reads_well_at_the_end_of_a_traceback() -> None:
    code = "from defocus.privacy import Gaussian; Gaussian(0)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603 - our own interpreter
    assert found.returncode == 1
    assert found.stderr.endswith(
        "InvalidParameterError: ratio must be positive, but it is 0.\nTo fix: pass ratio > 0.\n"
    )


def test_errors_are_also_what_python_would_have_raised() -> None:
    assert issubclass(InvalidParameterError, ValueError)
    assert issubclass(MissingExtraError, ImportError)
    assert issubclass(ExpressionError, ValueError)


def test_an_error_without_a_remedy_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="fix"):
        DefocusError("The cup is empty.")  # type: ignore[call-arg]


def test_a_missing_extra_is_one_command_away() -> None:
    error = MissingExtraError("Plotting", package="matplotlib", extra="plot")
    assert str(error) == (
        "Plotting needs the package matplotlib, which is not installed.\nTo fix: run: pip install 'defocus[plot]'"
    )

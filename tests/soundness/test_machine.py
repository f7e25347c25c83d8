"""The machine itself: it finds every kind of side door when there is one, and none where there is none."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.soundness.odd_rows import VALUES, odd_rows
from tests.soundness.watching import attempt, compared, plain

import defocus as dp
from defocus.mechanisms import Laplace
from defocus.noise import discrete_laplace, system


def book(home: Path) -> dp.Ledger:
    return dp.Ledger.open(home / "v.ledger", budget=dp.Budget(10), unit=dp.rows(), dataset="v")


def told(rows: Sequence[int], home: Path) -> Any:
    """What is right: a count with noise."""
    with book(home) as ledger:
        return dp.release.release(Laplace(scale=2), len(rows), ledger=ledger, purpose="p").value


def a_length(rows: Sequence[int], home: Path) -> Any:
    return [told(rows, home), len(rows)]


def a_type(rows: Sequence[int], home: Path) -> Any:
    return [told(rows, home), np.zeros(1, np.int64 if max(rows) < 100 else np.float64)]


def an_error(rows: Sequence[int], home: Path) -> Any:
    if max(rows) > 100:
        raise dp.errors.UnfitDataError("too large", fix="none")
    return told(rows, home)


def an_error_after_the_charge(rows: Sequence[int], home: Path) -> Any:
    found = told(rows, home)
    return an_error(rows, home) and found


def a_cause(rows: Sequence[int], home: Path) -> Any:
    told(rows, home)
    try:
        raise ValueError(str(rows))  # noqa: TRY301
    except ValueError:
        raise dp.errors.UnfitDataError("it failed", fix="none")  # noqa: B904 -- what it carries along is the point


def a_warning(rows: Sequence[int], home: Path) -> Any:
    np.float32(1) / np.float32(0 if max(rows) > 100 else 1)
    return told(rows, home)


def a_word(rows: Sequence[int], home: Path) -> Any:
    print("large" * (max(rows) > 100))  # noqa: T201
    return told(rows, home)


def a_charge(rows: Sequence[int], home: Path) -> Any:
    with book(home) as ledger:
        mechanism = Laplace(scale=2 if max(rows) < 100 else 4)
        return type(dp.release.release(mechanism, len(rows), ledger=ledger, purpose="p").value).__name__


def too_far(rows: Sequence[int], home: Path) -> Any:
    with book(home) as ledger:
        return dp.release.release(Laplace(scale=2), sum(rows), ledger=ledger, purpose="p").value


def one_draw_more(rows: Sequence[int], home: Path) -> Any:
    for _ in range(1 + (max(rows) > 100)):
        Laplace(scale=2).sample(1, system())
    return told(rows, home)


def noise_of_its_own_and_too_far(rows: Sequence[int], home: Path) -> Any:
    with book(home) as ledger:
        receipt = ledger.charge(Laplace(scale=2).event, purpose="p")
        return receipt.sequence, np.array([sum(rows)]) + discrete_laplace(2, 1)


def noise_of_its_own_and_a_length(rows: Sequence[int], home: Path) -> Any:
    return len(rows), np.array([len(rows)]) + discrete_laplace(2, 1), told(rows, home)


LEAKS = (
    a_length, a_type, an_error, an_error_after_the_charge, a_cause, a_warning, a_word, a_charge, too_far,
    one_draw_more, noise_of_its_own_and_too_far, noise_of_its_own_and_a_length,
)  # fmt: skip


def tried(act: Callable[[Sequence[int], Path], Any]) -> list[Any]:
    return compared(act.__name__, lambda home, odd: act([1, 2, *odd], home), {"a large row": 1000}, works=False)


@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.__name__)
def test_every_kind_of_side_door_is_found(leak: Callable[[Sequence[int], Path], Any]) -> None:
    assert tried(leak)


def test_a_release_has_none() -> None:
    assert not tried(told)


def test_the_rows_that_tell_are_named() -> None:
    odds = {str(i): i for i in range(3, 40)} | {"large": 1000}
    found = compared("an error", lambda home, odd: an_error([1, *odd], home), odds)
    assert {each.odd for each in found} == {"large"}


def test_there_are_many_odd_rows_and_none_twice() -> None:
    names = [each.name for each in odd_rows(("person", "x"), "person")]
    assert len(VALUES) >= 60
    assert len(set(names)) == len(names) >= 140
    assert plain(float("nan")) == plain(float("nan"))


def test_a_driver_whose_call_always_fails_is_no_driver() -> None:
    def fails(home: Path, odd: Sequence[int]) -> Any:
        return [told([1, *odd], home), attempt(lambda: dp.Budget(-1), refused="another reason")]

    (found,) = compared("fails", fails, {"a large row": 1000})
    assert found.odd == "(the base data)"
    assert "does not work" in found.what
    refused = lambda home, odd: [told([1, *odd], home), attempt(lambda: dp.Budget(-1), refused="Budget|epsilon")]  # noqa: E731
    assert not compared("refused", refused, {"a large row": 1000})

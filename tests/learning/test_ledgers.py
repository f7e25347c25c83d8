"""Which ledger pays, and what a fit may cost."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from defocus import Budget, Ledger, rows, user
from defocus.errors import (
    DefocusError,
    InvalidParameterError,
    LedgerMismatchError,
    LedgerUnavailableError,
    NotDeclaredError,
)
from defocus.learning import PCA
from defocus.learning.ledgers import delta_of, ledger_of, place_of, price, total_of


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"epsilon": 1, "delta": 1e-9}, Budget(1, 1e-9)),
        ({"epsilon": 1, "delta": 0}, Budget(1)),
        ({"epsilon": 1}, Budget(1, 1e-6)),
        ({"epsilon": 1, "total": Budget(3, 1e-5)}, Budget(1, 1e-5)),
        ({"epsilon": 1, "total": Budget(3)}, Budget(1)),
        ({"epsilon": 1, "total": Budget(rho=3)}, Budget(1, 1e-6)),
        ({"rho": 0.1, "total": Budget(3, 1e-5)}, Budget(rho=0.1)),
    ],
)
def test_a_price_has_the_delta_of_the_ledger_by_default(given: dict[str, Any], found: Budget) -> None:
    assert price(**{"epsilon": None, "delta": None, "rho": None, **given}) == found


@pytest.mark.parametrize(
    "given", [{}, {"delta": 1e-6}, {"epsilon": 1, "rho": 1}, {"rho": 1, "delta": 1e-6}, {"epsilon": 0}, {"delta": 0.5}]
)
def test_what_is_no_price_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError):
        price(**{"epsilon": None, "delta": None, "rho": None, **given})


@pytest.mark.parametrize("size", [1, 2, 1000, 10**6, 10**8])
def test_a_default_delta_protects_each_of_a_public_number_of_people(size: int) -> None:
    assert delta_of(None, size) <= 1e-6
    assert delta_of(Budget(rho=1), size) * size < 1


def test_what_is_in_memory_has_no_ledger_of_its_own() -> None:
    for data in (None, np.zeros((2, 2)), (np.zeros(2), np.zeros(2)), SimpleNamespace(root="gone"), "x.csv"):
        with pytest.raises(NotDeclaredError, match="no place of its own") as caught:
            place_of(None, data, rows())
        assert 'ledger="' in caught.value.fix
    with pytest.raises(NotDeclaredError, match="no place of its own"):
        PCA(budget=Budget(1, 1e-6)).fit(np.zeros((3, 2)))


def test_what_lies_in_a_file_or_a_folder_has_its_ledger_beside_it(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((4, 2)))
    (tmp_path / "photos").mkdir()
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    photos = SimpleNamespace(root=str(tmp_path / "photos"))
    assert place_of(None, (mapped[:2], np.zeros(2)), rows()) == tmp_path / "x.ledger"
    assert place_of(None, photos, rows()) == tmp_path / "photos.ledger"
    assert place_of(None, SimpleNamespace(dataset=photos), rows()) == tmp_path / "photos.ledger"
    assert place_of("other.ledger", photos, rows()) == "other.ledger"
    with pytest.raises(NotDeclaredError, match="no place of its own"):  # the ledger of their inputs lies elsewhere
        place_of(None, (np.array(mapped), mapped), rows())


def test_a_ledger_is_made_for_a_total_only_and_must_be_for_the_same_unit_later(tmp_path: Path) -> None:
    place = tmp_path / "a.ledger"
    assert total_of(place, None) is None
    assert total_of(place, Budget(3, 1e-6)) == Budget(3, 1e-6)
    with pytest.raises(DefocusError, match="no ledger"):
        ledger_of(place, unit=rows(), budget=None, new=None)
    assert not place.exists()
    ledger_of(place, unit=rows(), budget=None, new=Budget(2, 1e-6)).close()
    assert total_of(place, Budget(3, 1e-6)) == Budget(2, 1e-6)
    with ledger_of(place, unit=None, budget=None, new=Budget(9, 1e-6)) as found:
        assert found.budget == Budget(2, 1e-6)
        assert ledger_of(found, unit=rows(), budget=Budget(2, 1e-6), new=None) is found
        with pytest.raises(InvalidParameterError, match="nothing was charged"):
            ledger_of(found, unit=user("id"), budget=None, new=None)
        with pytest.raises(LedgerMismatchError, match="budget"):
            ledger_of(found, unit=None, budget=Budget(3, 1e-6), new=None)
    assert isinstance(found, Ledger)


def test_a_ledger_that_is_not_there_asks_for_what_a_fit_can_be_given(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailableError, match="to make a new ledger, give budget= as well"):
        PCA(ledger=str(tmp_path / "new.ledger")).fit(np.zeros((5, 2)))

"""Releases that are planned for fewer changes than one person can make."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import defocus as dp
from defocus import local
from defocus.errors import DefocusError
from defocus.learning.estimators.fit_budget import fit_budget
from defocus.learning.estimators.labels import labels
from defocus.mechanisms import RandomizedResponse
from defocus.privacy.units import Unit
from defocus.release import release


def book(home: Path, *, replace: bool = False) -> dp.Ledger:
    return dp.Ledger.open(
        home / "a.ledger", budget=dp.Budget(50, 1e-2), unit=dp.user("patient", replace=replace), dataset="hospital"
    )


@pytest.mark.parametrize("unit", [dp.rows(per_person=3), dp.item(per_person=3)])
def test_a_table_is_planned_for_all_rows_of_a_person(tmp_path: Path, unit: Unit) -> None:
    table = dp.open(pa.table({"x": np.arange(90) % 7}), ledger=book(tmp_path), name="visits", unit=unit)
    event = table.agg(n=dp.count()).release(epsilon=1).receipt.event
    assert event == dp.privacy.DiscreteLaplace(3 << 24, 3 << 24)  # three rows move it by so many steps


def test_parts_are_not_charged_apart_where_a_person_has_rows_in_several(tmp_path: Path) -> None:
    with pytest.raises(DefocusError):
        dp.open(
            pa.table({"x": np.arange(90) % 7, "day": np.arange(90) % 3}),
            ledger=tmp_path / "p.ledger",
            name="visits",
            unit=dp.rows(per_person=3),
            budget=dp.Budget(3),
            parts="day",
        )


def test_classes_are_found_for_a_person_who_is_replaced(tmp_path: Path) -> None:
    view = book(tmp_path, replace=True).data("survey", unit=dp.rows(per_person=1))
    purse = fit_budget(epsilon=2, delta=1e-5, rho=None, ledger=view, unit=None, budget=None)
    selection = labels(None, purse).selection
    assert selection is not None
    assert selection.replace  # the class of who leaves and the class of who comes


def test_reports_of_each_row_are_not_released_where_a_person_has_several_rows(tmp_path: Path) -> None:
    view = book(tmp_path, replace=True).data("votes", unit=dp.rows(per_person=3))
    with pytest.raises(DefocusError):
        release(RandomizedResponse(epsilon=1, categories=3), np.array([0, 1, 2, 1]), ledger=view, purpose="votes")


def test_a_collection_does_not_contradict_the_declared_number_of_reports(tmp_path: Path) -> None:
    view = book(tmp_path).data("app", unit=dp.item(per_person=4))
    with pytest.raises(DefocusError):
        local.collect(local.oracle("k-rr", 5, 1), ledger=view, purpose="app", reports=1, participation="public")


def test_public_participation_needs_an_outcome_for_a_missing_value_of_every_attribute(tmp_path: Path) -> None:
    asked = local.attributes({"colour": ["red", "blue"]}, epsilon=1, outside="refuse")
    with pytest.raises(DefocusError):
        local.collect(asked, ledger=book(tmp_path), purpose="colours", participation="public")

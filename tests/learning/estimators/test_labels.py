"""Classes: declared, or found and charged; labels that few rows have are never shown."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from defocus import Budget, rows
from defocus.errors import InvalidParameterError, NotDeclaredError, UnfitDataError
from defocus.learning import LogisticRegression, NaiveBayes
from defocus.learning.estimators import labels as module
from defocus.learning.estimators.labels import labels, numbered
from defocus.learning.estimators.spending import Purse
from defocus.noise.testing import seeded
from defocus.privacy.accounting import account

MEANS = Purse(Budget(1, 1e-6), None, rows())


def test_a_label_that_one_row_has_is_not_shown_and_frequent_ones_are() -> None:
    y = np.array(["ill"] * 2000 + ["well"] * 2000 + ["a secret"])
    assert labels(None, MEANS).found(y, seeded(1)).tolist() == ["ill", "well"]


def test_finding_classes_and_fitting_stay_within_the_budget_together() -> None:
    X, y = np.zeros((4000, 2)), np.arange(4000) % 2
    model = LogisticRegression(budget=Budget(1, 1e-6), steps=20).fit(X, y)
    assert Budget(1, 1e-6).covers(account(model.event_))
    assert model.classes_.tolist() == [0, 1]


def test_labels_outside_of_the_declared_classes_are_nobody_s() -> None:
    y = np.array([0.0, 1.0, 7.0, np.nan])
    assert numbered(y, np.array([0.0, 1.0])).tolist() == [0, 1, -1, -1]
    assert numbered(y, np.array([])).tolist() == [-1] * 4


def test_refuses_to_show_no_class_at_all() -> None:
    with pytest.raises(NotDeclaredError, match="Not even one class"):
        NaiveBayes().fit(np.zeros((3, 1)), [0, 1, 1])


@pytest.mark.parametrize("declared", ["ab", 3, {"a": 1}, [1], [], [[0, 1]], [1, True, 1.0]])
def test_refuses_classes_that_are_no_list_of_two_or_more(declared: Any) -> None:
    with pytest.raises(InvalidParameterError, match="classes"):
        labels(declared, MEANS)


@pytest.mark.parametrize("declared", [["a", 1], [0, None], [0.0, np.nan], [0, 1j], [b"a", b"b"]])
def test_refuses_classes_of_different_or_other_kinds(declared: Any) -> None:
    with pytest.raises(InvalidParameterError, match="all numbers or all texts"):
        labels(declared, MEANS)


def test_refuses_to_find_classes_without_a_delta() -> None:
    with pytest.raises(NotDeclaredError, match="declare them"):
        labels(None, Purse(Budget(rho=0.1), None, rows()))


@pytest.mark.parametrize(
    ("y", "rare"),
    [
        (["ill", "well"], "a rare and very long diagnosis"),
        ([0, 1], np.nan),
        ([0, 1], 0.5),
        ([False, True], 7),
        ([0.0, 2.0], np.inf),
        ([1, 2], 2**63),
        ([1, 2], "two"),
        ([1, 2], None),
        (["ill", "well"], 7.5),
        (["ill", "well"], [1, 2]),
        ([1, 2], 10**400),
    ],
)
def test_a_label_that_is_not_shown_does_not_change_the_type_of_those_that_are(y: list[Any], rare: Any) -> None:
    known = labels(None, MEANS)
    without = known.found(known.read(y * 2000), seeded(1))
    beside = known.found(known.read([*y * 2000, rare]), seeded(1))
    assert beside.tolist() == without.tolist()
    assert beside.dtype == without.dtype


def test_found_numbers_are_whole_where_all_of_them_are_and_else_fractions() -> None:
    known = labels(None, MEANS)
    assert known.found(np.array([0.0, 1.0] * 2000), seeded(1)).dtype == np.int64
    assert known.found(np.array([0.0, 1.5] * 2000), seeded(1)).dtype == np.float64
    assert known.found(np.array(["b", "a"] * 2000, dtype=object), seeded(1)).tolist() == ["a", "b"]


def test_labels_of_two_kinds_are_both_found_and_numbers_come_first() -> None:
    known = labels(None, MEANS)
    y = known.read([7, "seven", 7.0, None, float("nan")] * 1000)
    classes = known.found(y, seeded(1))
    assert classes.tolist() == [7, "seven"]
    assert numbered(y, classes)[:5].tolist() == [0, 1, 0, -1, -1]


def test_nothing_that_is_no_label_is_found_however_many_have_it() -> None:
    known = labels(None, MEANS)
    assert known.found(known.read(np.array([np.nan] * 3000 + [1.0] * 3000)), seeded(1)).tolist() == [1]
    assert known.found(known.read(np.array([None, {}] * 3000, dtype=object)), seeded(1)).tolist() == []


@pytest.mark.parametrize(
    ("declared", "y"), [([0, 1], np.array(["0", "1"])), (["0", "1"], np.array([0, 1])), ([0, 1], pd.Series(["0", "1"]))]
)
def test_labels_whose_type_is_not_that_of_the_classes_are_refused_by_their_type(declared: Any, y: Any) -> None:
    with pytest.raises(UnfitDataError, match="but the declared classes are"):
        labels(declared, MEANS).read(y)
    assert numbered(labels(declared, MEANS).read(list(y)), np.array(declared)).tolist() == [-1, -1]


def test_the_sign_of_a_zero_that_one_row_has_is_not_shown() -> None:
    y = np.array([-0.0] + [0.0, 0.5] * 2000)
    known = labels(None, MEANS)
    assert not np.signbit(known.found(known.read(y), seeded(1))).any()


def test_columns_of_truth_values_have_such_classes_and_lists_have_numbers() -> None:
    known = labels(None, MEANS)
    assert known.found(known.read(np.array([False, True] * 2000)), seeded(1)).dtype == np.bool_
    assert known.found(known.read([False, True] * 2000), seeded(1)).dtype == np.int64


def test_all_declared_classes_are_learned_and_found_ones_up_to_those_that_noise_is_planned_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    y = np.arange(2000) % 1100
    model = NaiveBayes(classes=range(1100), bits=seeded(1)).fit(np.zeros((2000, 1)), y)
    assert len(model.classes_) == len(model.feature_log_prob_) == 1100
    monkeypatch.setattr(module, "_MOST_FOUND", 2)
    assert NaiveBayes(bits=seeded(1)).fit(np.zeros((6000, 1)), np.arange(6000) % 3).classes_.tolist() == [0, 1]

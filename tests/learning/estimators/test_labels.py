"""Classes: declared, or found and charged; labels that few rows have are never shown."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from defocus import Budget, rows
from defocus.errors import InvalidParameterError, NotDeclaredError, UnfitDataError
from defocus.learning import LogisticRegression, NaiveBayes
from defocus.learning.estimators import labels as module
from defocus.learning.estimators.fit_budget import FitBudget
from defocus.learning.estimators.inputs import marks
from defocus.learning.estimators.labels import labels, numbered
from defocus.noise.testing import seeded
from defocus.privacy.accounting import account

MEANS = FitBudget(Budget(1, 1e-6), "a.ledger", rows())


def test_a_label_that_one_row_has_is_not_shown_and_frequent_ones_are() -> None:
    y = np.array(["ill"] * 2000 + ["well"] * 2000 + ["a secret"])
    assert labels(None, MEANS).found(marks(y), seeded(1)).tolist() == ["ill", "well"]


def test_finding_classes_and_fitting_stay_within_the_budget_together() -> None:
    X, y = np.zeros((4000, 2)), np.arange(4000) % 2
    model = LogisticRegression(epsilon=1, delta=1e-6, max_iter=20).fit(X, y)
    assert Budget(1, 1e-6).covers(account(model.event_))
    assert model.classes_.tolist() == [0, 1]


def test_labels_outside_of_the_declared_classes_are_nobody_s() -> None:
    y = np.array([0.0, 1.0, 7.0, np.nan])
    assert numbered(marks(y), np.array([0.0, 1.0])).tolist() == [0, 1, -1, -1]
    assert numbered(marks(y), np.array([])).tolist() == [-1] * 4


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
        labels(None, FitBudget(Budget(rho=0.1), "a.ledger", rows()))


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
    assert known.found(marks(np.array([0.0, 1.0] * 2000)), seeded(1)).dtype == np.int64
    assert known.found(marks(np.array([0.0, 1.5] * 2000)), seeded(1)).dtype == np.float64
    assert known.found(marks(np.array(["b", "a"] * 2000, dtype=object)), seeded(1)).tolist() == ["a", "b"]


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


COLUMNS = {
    "pandas": lambda y, kind: pd.Series(y, dtype={bool: "boolean", int: "Int64"}[kind]),
    "pandas array": lambda y, kind: pd.array(y, dtype={bool: "boolean", int: "Int64"}[kind]),
    "pandas on Arrow": lambda y, kind: pd.Series(y, dtype={bool: "bool[pyarrow]", int: "int64[pyarrow]"}[kind]),
    "categories": lambda y, kind: pd.Series(pd.Categorical(y, categories=pd.Index(sorted({*y} - {None}), dtype=kind))),
    "a frame": lambda y, kind: pd.DataFrame({"y": pd.array(y, dtype={bool: "boolean", int: "Int64"}[kind])}),
    "polars": lambda y, kind: pl.Series(y, dtype={bool: pl.Boolean, int: pl.Int64}[kind]),
    "a polars frame": lambda y, kind: pl.DataFrame({"y": pl.Series(y, dtype={bool: pl.Boolean, int: pl.Int64}[kind])}),
    "Arrow": lambda y, kind: pa.array(y, {bool: pa.bool_(), int: pa.int64()}[kind]),
    "Arrow in chunks": lambda y, kind: pa.chunked_array([pa.array(y, {bool: pa.bool_(), int: pa.int64()}[kind])]),
    "an Arrow dictionary": lambda y, kind: pa.array(y, {bool: pa.bool_(), int: pa.int64()}[kind]).dictionary_encode(),
    "masked": lambda y, kind: np.ma.array(np.array([each or 0 for each in y], kind), mask=[e is None for e in y]),
}


@pytest.mark.parametrize("kind", [bool, int])
@pytest.mark.parametrize("made", COLUMNS.values(), ids=COLUMNS)
def test_the_type_of_classes_is_that_of_the_column_whether_or_not_a_label_is_missing(made: Any, kind: type) -> None:
    y: list[Any] = [False, True] if kind is bool else [2**60, 2**60 + 1]
    known = labels(None, MEANS)
    for column in (made(y * 2000, kind), made([*y * 2000, None], kind)):
        read = known.read(column)
        classes = known.found(read, seeded(1))
        assert classes.tolist() == y
        assert classes.dtype == np.dtype(kind)
        assert numbered(read, classes).tolist() == [0, 1] * 2000 + [-1] * (len(read) - 4000)
        assert numbered(read, labels([2**60, 2**60 + 1], MEANS).found(read, None)).max() == (-1 if kind is bool else 1)


@pytest.mark.parametrize("rare", [0.5, None, "x", 2**64, -1, True, Decimal("0.5"), [1, 2], 1e300, np.float32(2), b"x"])
@pytest.mark.parametrize("made", [list, lambda y: pd.Series(y, dtype=object)], ids=["list", "objects"])
def test_whole_labels_of_no_type_are_exact_whatever_one_of_them_is(made: Any, rare: Any) -> None:
    known = labels(None, MEANS)
    for y in ([2**60, 2**60 + 1] * 2000, [*[2**60, 2**60 + 1] * 2000, rare]):
        read = known.read(made(y))
        classes = known.found(read, seeded(1))
        assert classes.tolist() == [2**60, 2**60 + 1]
        assert classes.dtype == np.int64
        assert numbered(read, classes)[:4000].tolist() == [0, 1] * 2000


def test_labels_and_classes_of_different_types_of_numbers_are_compared_exactly() -> None:
    y = marks(np.array([2**53, 2**53 + 1, 1, 0]))
    assert numbered(y, np.array([1.0, 2.0**53])).tolist() == [1, -1, 0, -1]
    assert numbered(marks(np.array([2**63 + 1, 5], np.uint64)), np.array([-1, 5])).tolist() == [-1, 1]
    assert numbered(marks(np.array([0.5, 2.0**53])), np.array([0, 2**53, 2**53 + 1])).tolist() == [-1, 1]
    assert numbered(marks(np.array([True, False])), np.array([0.5, 1.0, 7.0])).tolist() == [1, -1]
    assert labels([2**53 + 1, 2**53, 0.5], MEANS).found(y, None).tolist() == [0.5, 2**53, 2**53 + 1]


def test_labels_are_read_one_by_one_however_they_are_wrapped() -> None:
    odd = [[1], (1,), np.array(1), np.array([1]), np.int8(1), 1.0, Decimal(1), Fraction(1), True, [[1]], [1, 2], {1}]
    assert list(marks(odd).values) == [1] * 9 + [None] * 3
    assert list(marks([float("nan"), float("inf"), -0.0, Decimal("1e999999"), 2**64]).values) == [
        None, float("inf"), 0, None, None,
    ]  # fmt: skip


def test_declared_classes_of_truth_values_are_learned_from_a_column_with_a_missing_one() -> None:
    y = pd.array([True, False, None] * 500, dtype="boolean")
    for classes, kind in (([False, True], np.bool_), ([0, 1], np.int64), ([0.0, 1.0], np.float64)):
        model = LogisticRegression(classes=classes, max_iter=2, bits=seeded(1)).fit(np.zeros((1500, 1)), y)
        assert model.classes_.dtype == kind

"""Rows of a table for a model: what is read, in which order, and what the table says about it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import defocus as dp
from defocus.errors import DefocusError, InvalidParameterError, UnknownColumnError, WrongKindError

STAYS = pa.table(
    {
        "patient": [2, 1, None, 1, 3],
        "age": [50, 30, 99, 31, None],
        "days": [1.5, 2.0, 3.0, None, float("nan")],
        "smokes": [True, False, True, None, True],
        "ward": ["B", "A", "A", None, "C"],
    }
)
FACTS: dict[str, Any] = {"age": (18, 90), "days": (0, 30), "ward": ["A", "B"]}


@pytest.fixture
def stays(tmp_path: Path, any_engine: str) -> Iterator[dp.tables.Table]:
    assert any_engine
    terms: dict[str, Any] = {"unit": dp.user("patient"), "budget": dp.Budget(5, 1e-5), "ledger": tmp_path / "l"}
    with dp.open(STAYS, **terms, name="stays") as table:
        yield table.declare(**FACTS)


def test_rows_are_read_with_their_persons_in_the_order_of_what_they_hold(stays: dp.tables.Table) -> None:
    inputs, target, persons = stays.examples(["age", "days", "smokes"], "ward").read_examples()
    nan = float("nan")
    expected = [[30, 2, 0], [31, nan, nan], [50, 1.5, 1], [nan, nan, 1], [nan, nan, nan]]
    np.testing.assert_array_equal(inputs, expected)
    assert inputs.dtype == np.float64
    assert target.to_pylist() == ["A", None, "B", "C", None]
    assert persons == [1, 1, 2, 3, None]  # the last is nobody's


def test_groups_are_read_beside_the_rows(stays: dp.tables.Table) -> None:
    examples = stays.examples(["age"], "smokes", group="ward")
    inputs, target, group, persons = examples.read_grouped()
    np.testing.assert_array_equal(inputs[:, 0], [30, 31, 50, np.nan, np.nan])
    assert target.to_pylist() == [False, None, True, True, None]
    assert group.to_pylist() == ["A", None, "B", "C", None]
    assert persons == [1, 1, 2, 3, None]
    assert examples.group_values == ["A", "B"]
    assert examples.facts != stays.where("age > 20").examples(["age"], "smokes", group="ward").facts
    assert stays.examples("age").read_grouped()[2] is None
    with pytest.raises(UnknownColumnError):
        stays.examples("age", group="wards")


def test_filters_derived_columns_and_joins_are_kept(stays: dp.tables.Table) -> None:
    prices = pa.table({"ward": ["A", "B"], "price": [10, 20]})
    table = stays.derive(old="age > 40").join(prices, on="ward").where("ward = 'B' OR age = 30")
    inputs, target, persons = table.examples(["old", "price"], "age").read_examples()
    assert inputs[:-1].tolist() == [[0, 10], [1, 20]]
    assert target.to_pylist() == [30, 50, None]
    assert target.type == pa.int64()
    assert persons == [1, 2, None]


def test_no_row_is_one_of_nobody(stays: dp.tables.Table) -> None:
    inputs, target, persons = stays.where("age > 1000").examples(["age"], "days").read_examples()
    assert inputs.shape == (1, 1)
    assert target.to_pylist() == persons == [None]


def test_what_the_table_declares_is_known(stays: dp.tables.Table) -> None:
    examples = stays.examples(["age", "smokes"], "ward")
    assert (examples.input_bounds, examples.target_bounds) == (([18.0, 0.0], [90.0, 1.0]), None)
    assert examples.target_values == ["A", "B"]
    assert (examples.unit, examples.ledger.unit) == (dp.user("patient"), dp.user("patient"))
    assert stays.examples("age", "days").target_bounds == (0.0, 30.0)
    assert stays.examples("age", "smokes").target_values == [False, True]
    assert stays.derive(sum="age + days").examples(["age", "sum"]).input_bounds == ([18.0, 18.0], [90.0, 120.0])
    assert stays.derive(per="age / days").examples(["age", "per"]).input_bounds is None
    assert stays.declare(age=[20, 30, 40]).examples("age").input_bounds == ([18.0], [90.0])
    assert repr(examples).startswith("Examples(age, smokes for ward; protects everything about one patient")


def test_rows_of_their_own_are_persons_of_their_own(tmp_path: Path) -> None:
    terms: dict[str, Any] = {"unit": dp.rows(), "budget": dp.Budget(5, 1e-5), "ledger": tmp_path / "l"}
    with dp.open(STAYS, **terms, name="stays") as table:
        assert table.examples("age").read_examples()[2] == [0, 1, 2, 3, 4, None]


def test_nothing_is_read_until_a_model_asks(stays: dp.tables.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> None:
        pytest.fail("rows were read")

    monkeypatch.setattr(type(stays.rows.engine), "run", never)
    examples = stays.where("age > 20").examples(["age"], "ward")
    with pytest.raises(DefocusError):
        dp.learning.LogisticRegression().fit(stays.examples(["age"], "days"))
    with pytest.raises(DefocusError):
        dp.learning.LogisticRegression(bounds=(0, 1)).fit(examples)


@pytest.mark.parametrize(
    ("inputs", "target", "kind"),
    [
        (["ward"], None, WrongKindError),
        (["age", "height"], None, UnknownColumnError),
        ([], None, InvalidParameterError),
        ([7], None, InvalidParameterError),
        (["age"], "height", UnknownColumnError),
        (["age"], ["ward"], InvalidParameterError),
    ],
)
def test_columns_that_cannot_be_examples_are_refused(
    stays: dp.tables.Table, inputs: Any, target: Any, kind: type[DefocusError]
) -> None:
    with pytest.raises(kind) as refused:
        stays.examples(inputs, target)
    assert refused.value.fix

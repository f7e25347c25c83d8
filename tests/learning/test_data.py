"""Data in its forms, and data of unknown size refused."""

import datetime as dt
import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset, WeightedRandomSampler

from defocus.errors import UnaccountedSamplingError, UnfitDataError
from defocus.learning.data import Collated, Units, examples, without_loader

X = torch.arange(12.0).view(6, 2)
Y = torch.arange(6)


class Squares(Dataset[Any]):
    def __len__(self) -> int:
        return 6

    def __getitem__(self, i: int) -> Any:
        return X[i], Y[i]


class Endless(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        while True:
            yield 1, 2


@pytest.mark.parametrize(
    "data",
    [(X, Y), [X, Y], (X.numpy(), Y.numpy()), TensorDataset(X, Y), Subset(TensorDataset(X, Y), range(6)), Squares()],
    ids=lambda data: type(data).__name__,
)
def test_examples_are_taken_by_number_from_every_form_of_data(data: Any) -> None:
    made = examples(data, (torch.zeros(2), 0) if isinstance(data, Squares) else None)
    assert made.length == 6
    inputs, targets = made.take(np.array([4, 1]))
    assert inputs.tolist() == X[[4, 1]].tolist()
    assert targets.tolist() == [4, 1]
    inputs, targets = made.take(np.zeros(0, np.int64))
    assert inputs.shape == (0, 2)
    assert targets.shape == (0,)


def test_inputs_may_be_mappings_and_tuples() -> None:
    made = examples(({"ids": X, "mask": Y}, Y))
    inputs, _ = made.take(np.array([2]))
    assert inputs["mask"].tolist() == [2]
    inputs, target = examples(TensorDataset(X, Y, Y)).take(np.array([3]))
    assert isinstance(inputs, tuple)
    assert target.tolist() == [3]


def test_arrays_are_not_copied() -> None:
    array = np.zeros((4, 2), np.float32)
    made = examples((array, np.zeros(4, np.int64)))
    array[1] = 7
    assert made.take(np.array([1]))[0].tolist() == [[7, 7]]


@pytest.mark.parametrize(
    "data", [Endless(), iter([1]), (each for each in [1]), 7, None, {1, 2}], ids=lambda data: type(data).__name__
)
def test_data_of_unknown_size_is_refused(data: Any) -> None:
    with pytest.raises(UnfitDataError, match="no known size") as caught:
        examples(data)
    assert "Dataset with a length" in caught.value.fix


@pytest.mark.parametrize(
    "data",
    [
        (X, Y[:5]),
        (X, 3),
        (X[:0], Y[:0]),
        (np.array(["secret"] * 6), Y),
        (np.array([object()] * 6), Y),
        X,
        X.numpy(),
        {"x": X},
        "secret",
        (X, None),
    ],
    ids=lambda data: type(data).__name__,
)
def test_unfit_data_is_refused_and_not_quoted(data: Any) -> None:
    with pytest.raises(UnfitDataError) as caught:
        examples(data)
    assert "secret" not in str(caught.value)


class Items(Dataset[Any]):
    """Items in a list; one that is an error is raised."""

    def __init__(self, *items: Any) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int) -> Any:
        found = self.items[i]
        if isinstance(found, BaseException):
            raise found
        return found() if callable(found) else found


class Flagged(torch.Tensor):
    """A tensor of another class."""


class PanicError(BaseException):
    """What is no Exception, as packages in other languages raise."""


def recursive() -> Any:
    found: list[Any] = [1]
    found[0] = found
    return found


FORM = (torch.zeros(2), 0)
ODD: dict[str, Any] = {
    "another shape": (torch.zeros(3), 0),
    "a dimension more": (torch.zeros(2, 1), 0),
    "a huge one": lambda: (torch.zeros(1).expand(1 << 40), 0),
    "a target with a shape": (torch.zeros(2), torch.zeros(1, dtype=torch.long)),
    "no item": None,
    "no input": (None, 0),
    "no target": (torch.zeros(2), None),
    "one part": (torch.zeros(2),),
    "three parts": (torch.zeros(2), torch.zeros(2), 0),
    "text": "secret",
    "text in it": ("secret", 0),
    "a text for a target": (torch.zeros(2), "secret"),
    "a float for a class": (torch.zeros(2), 0.5),
    "a complex number": (torch.zeros(2, dtype=torch.complex64), 0),
    "a class beyond 64 bits": (torch.zeros(2), 1 << 70),
    "a mapping": {"x": torch.zeros(2), "y": 0},
    "a mapping in it": ({"x": torch.zeros(2)}, 0),
    "nested lists": ([[1.0], [2.0, 3.0]], 0),
    "a list of itself": recursive,
    "a generator": lambda: (each for each in (torch.zeros(2), 0)),
    "a generator in it": lambda: ((each for each in (1.0, 2.0)), 0),
    "sparse": (torch.zeros(2).to_sparse(), 0),
    "quantised": lambda: (torch.quantize_per_tensor(torch.zeros(2), 1.0, 0, torch.quint8), 0),
    "nested": lambda: (torch.nested.nested_tensor([torch.zeros(2)], layout=torch.jagged), 0),
    "on no device": lambda: (torch.zeros(2, device="meta"), 0),
    "an array of objects": (np.array([None, 1]), 0),
    "an array of texts": (np.array(["secret", ""]), 0),
    "an array of dates": (np.zeros(2, "M8[s]"), 0),
    "an error": ValueError("secret"),
    "out of memory": torch.OutOfMemoryError("secret"),
    "no memory": MemoryError("secret"),
    "a wrong number": IndexError("secret"),
    "the end": StopIteration("secret"),
    "an exit": SystemExit("secret"),
    "no Exception": PanicError("secret"),
    "a refusal of ours": UnfitDataError("secret", fix="secret"),
    "a class": int,
    "too deep": RecursionError("secret"),
}


@pytest.mark.parametrize("name", ODD)
def test_an_item_that_does_not_fit_is_left_out_whatever_it_is(name: str) -> None:
    """In any place, alone and among others, of which nothing changes."""
    one, other = (torch.tensor([1.0, 2.0]), 3), (torch.tensor([4.0, 5.0]), 6)
    made = examples(Items(ODD[name], one, ODD[name], other), FORM)
    inputs, targets = made.take(np.arange(4))
    assert inputs.tolist() == [[1, 2], [4, 5]]
    assert targets.tolist() == [3, 6]
    inputs, targets = made.take(np.array([0]))
    assert inputs.shape == (0, 2)
    assert (inputs.dtype, targets.dtype) == (torch.float32, torch.int64)


@pytest.mark.parametrize(
    "item",
    [
        [torch.ones(2), 1],
        (torch.ones(2, dtype=torch.float64), np.int32(1)),
        (torch.ones(2, dtype=torch.uint8), torch.tensor(1)),
        (np.ones(2), True),
        (np.ones(4, ">f8")[::-2], np.array(1)),
        (torch.ones(2, requires_grad=True), 1),
        (nn.Parameter(torch.ones(2)), 1),
        (torch.ones(2).as_subclass(Flagged), 1),
        (torch.ones(1).expand(2), 1),
    ],
)
def test_what_fits_becomes_plain_numbers_of_the_declared_type(item: Any) -> None:
    inputs, targets = examples(Items(item), FORM).take(np.array([0, 0]))
    assert inputs.tolist() == [[1, 1], [1, 1]]
    assert targets.tolist() == [1, 1]
    assert type(inputs) is torch.Tensor
    assert (inputs.dtype, targets.dtype) == (torch.float32, torch.int64)
    assert not inputs.requires_grad


def test_whoever_is_first_nothing_is_read_to_find_the_form() -> None:
    """No item is looked at before the charge: of a Dataset that is not declared, not even the type of one matters."""
    for items in ([None] * 9, [(torch.zeros(2), 0)] * 9, [ValueError()] * 9):
        with pytest.raises(UnfitDataError, match="is not declared") as caught:
            examples(Items(*items))
        assert "example=" in caught.value.fix
    made = examples(Items(*[SystemExit()] * 9), FORM)
    assert made.form()[0].tolist() == [[0, 0]]
    assert examples(Items(None), None, (torch.ones(8, 2), torch.ones(8))).form()[1].tolist() == [0]


def test_inputs_of_items_may_be_mappings_and_tuples() -> None:
    form = ({"a": torch.zeros(2), "b": (0, 0.0)}, 0)
    item = ({"b": [1, 2.0], "a": np.ones(2)}, 3)
    inputs, targets = examples(Items(item, ({"a": np.ones(2)}, 3), item), form).take(np.arange(3))
    assert inputs["a"].tolist() == [[1, 1], [1, 1]]
    assert [each.tolist() for each in inputs["b"]] == [[1, 1], [2, 2]]
    assert targets.tolist() == [3, 3]


@pytest.mark.parametrize(
    "item", [(X[0], "secret"), ({"x": X[0], "name": "secret"}, 1), (X[0], None), (X[0], b"secret"), (X[0], {"secret"})]
)
def test_a_declared_example_that_holds_no_numbers_is_refused_by_its_type(item: Any) -> None:
    with pytest.raises(UnfitDataError, match="which makes no plain tensor") as caught:
        examples(Items(), item)
    assert "secret" not in str(caught.value)


def test_tensors_that_are_not_plain_are_refused() -> None:
    with pytest.raises(UnfitDataError, match="which makes no plain tensor"):
        examples((X.to_sparse(), Y))


def test_items_that_are_mappings_have_no_target() -> None:
    with pytest.raises(UnfitDataError, match="is a dict") as caught:
        examples(Items(), {"x": X[0], "y": 1})
    assert "(input, target)" in caught.value.fix


def test_loaders_and_samplers_of_their_own_are_refused() -> None:
    weighted = WeightedRandomSampler([0.9] + [0.1] * 5, 6)
    with pytest.raises(UnaccountedSamplingError, match="with a WeightedRandomSampler") as caught:
        without_loader(DataLoader(TensorDataset(X, Y), sampler=weighted))
    assert "loader.dataset" in caught.value.fix
    with pytest.raises(UnaccountedSamplingError, match="data= is a sampler"):
        examples(weighted)


def test_a_users_examples_share_a_weight_of_one() -> None:
    units = Units(6, ["b", "a", "b", "c", "b", "a"])
    assert units.count == 3
    numbers, weights = units.examples_of(np.array([1, 0]))
    assert sorted(numbers[:2].tolist()) == [1, 5]
    assert sorted(numbers[2:].tolist()) == [0, 2, 4]
    assert weights.tolist() == pytest.approx([0.5, 0.5, 1 / 3, 1 / 3, 1 / 3])
    assert [len(part) for part in units.examples_of(np.zeros(0, np.int64))] == [0, 0]


def test_without_users_each_example_is_a_unit() -> None:
    numbers, weights = Units(6).examples_of(np.array([5, 2]))
    assert numbers.tolist() == [5, 2]
    assert weights.tolist() == [1.0, 1.0]


class Unruly(int):
    """Ends the process when two of it are compared."""

    def __hash__(self) -> int:
        raise SystemExit

    def __eq__(self, _: object) -> bool:
        raise SystemExit


NOBODY = [None, math.nan, np.nan, pd.NA, pd.NaT, Decimal("sNaN"), [1, 2], {}, np.zeros(2), 1j, object()]
SOMEBODY = [2.5, 2**64, -(10**400), "x", "1", b"1", True, Unruly(7), UUID(int=1), dt.date(2020, 1, 1), pd.Timestamp(0)]


@pytest.mark.parametrize("odd", NOBODY + SOMEBODY, ids=lambda odd: type(odd).__name__)
def test_no_user_changes_whose_the_other_examples_are(odd: Any) -> None:
    """What is missing or names nobody leaves its example out; all else is a user."""
    users = [5, "a", 5, odd, 6, "a"]
    units = Units(6, users)
    somebody = any(odd is each for each in SOMEBODY)
    assert units.count == 3 + somebody
    examples = [sorted(units.examples_of(np.array([unit]))[0].tolist()) for unit in range(units.count)]
    assert examples == [[0, 2], [1, 5], *([[3]] if somebody else []), [4]]


@pytest.mark.parametrize(
    "column",
    [
        lambda cells: pd.Series(cells, dtype="Int64"),
        lambda cells: pd.Series(cells, dtype="float64"),
        lambda cells: pl.Series(cells, dtype=pl.UInt64),
        lambda cells: pa.array(cells, pa.int32()),
        lambda cells: pd.Series([None if cell is None else str(cell) for cell in cells], dtype="category"),
        lambda cells: pl.Series([None if cell is None else str(cell) for cell in cells], dtype=pl.String),
        lambda cells: np.array(cells, object),
    ],
)
def test_a_missing_user_of_a_column_is_nobody(column: Any) -> None:
    units = Units(4, column([1, None, 2, 1]))
    assert units.count == 2
    assert sorted(units.examples_of(np.array([0, 1]))[0].tolist()) == [0, 2, 3]
    assert Units(2, column([None, None])).count == 0


def test_equal_numbers_are_one_user_however_they_are_written() -> None:
    assert Units(6, [1, 1.0, np.int8(1), Decimal(1), Fraction(2, 2), True]).count == 1
    assert Units(3, ["1", 1, np.str_("1")]).count == 2


@pytest.mark.parametrize(
    "users", [[1, 2], [[1] * 6], "abcdef", {1, 2, 3, 4, 5, 6}, np.zeros((6, 1)), np.zeros(6, complex), 3]
)
def test_users_that_are_no_list_of_names_are_refused(users: Any) -> None:
    with pytest.raises(UnfitDataError, match="users="):
        Units(6, users)


class Tokens:
    """As a tokenizer makes them: dicts of lists, and one of another length."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, i: int) -> dict[str, Any]:
        return {"input_ids": [i, i + 1] if i < 2 else [i], "attention_mask": [1, 1], "labels": i % 2}


TOKENS = {"input_ids": [0, 0], "attention_mask": [0, 0], "labels": 0}


def test_items_may_be_dicts_of_lists_with_labels_and_what_has_another_length_is_left_out() -> None:
    made = examples(Tokens(), TOKENS)
    inputs, targets = made.take(np.arange(3))
    assert inputs["input_ids"].tolist() == [[0, 1], [1, 2]]
    assert set(inputs) == {"input_ids", "attention_mask"}
    assert targets.tolist() == [0, 1]
    with pytest.raises(UnfitDataError, match="nothing tells what is the target"):
        examples(Tokens(), {**TOKENS, "label": 1})


def test_a_collator_is_applied_to_every_example_by_itself() -> None:
    seen: list[int] = []

    def padded(items: list[dict[str, Any]]) -> dict[str, Any]:
        seen.append(len(items))
        rows = [(item["input_ids"] + [0, 0])[:2] for item in items]
        return {"input_ids": torch.tensor(rows), "labels": torch.tensor([item["labels"] for item in items])}

    with pytest.warns(UserWarning, match="collate_fn are taken"):
        data, batch = without_loader(DataLoader(Tokens(), batch_size=2, collate_fn=padded))
    assert isinstance(data, Collated)
    assert batch == 2
    inputs, targets = examples(data, {"input_ids": [0, 0], "labels": 0}).take(np.arange(3))
    assert inputs["input_ids"].tolist() == [[0, 1], [1, 2], [2, 0]]
    assert targets.tolist() == [0, 1, 0]
    assert set(seen) == {1}

"""Data in its forms, and data of unknown size refused."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, WeightedRandomSampler

from defocus.errors import UnaccountedSamplingError, UnfitDataError
from defocus.learning.examples import Units, examples

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
    [(X, Y), [X, Y], (X.numpy(), Y.numpy()), TensorDataset(X, Y), Squares()],
    ids=lambda data: type(data).__name__,
)
def test_examples_are_taken_by_number_from_every_form_of_data(data: Any) -> None:
    made = examples(data)
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


class Ragged(Dataset[Any]):
    """Examples of shapes that differ, and one that differs only where nobody looked."""

    def __init__(self, odd: int) -> None:
        self.odd = odd

    def __len__(self) -> int:
        return 1000

    def __getitem__(self, i: int) -> Any:
        return torch.zeros(7 if i % self.odd == 3 else 5), 0


def test_examples_of_different_shapes_are_refused_without_telling_them() -> None:
    """Dynamic shapes: mostly before anything is charged, else when they meet; torch's own words stay unsaid."""
    with pytest.raises(UnfitDataError, match="differ in shape or kind") as caught:
        examples(Ragged(4))
    assert "mask" in caught.value.fix
    rare = examples(Ragged(1001))
    with pytest.raises(UnfitDataError, match="differ in shape or kind") as caught:
        rare.take(np.array([1, 2, 3]))
    assert "7" not in str(caught.value)
    assert caught.value.__context__ is None


class Items(Dataset[Any]):
    def __init__(self, item: Any) -> None:
        self.item = item

    def __len__(self) -> int:
        return 9

    def __getitem__(self, i: int) -> Any:
        return self.item


@pytest.mark.parametrize(
    "item", [(X[0], "secret"), ({"x": X[0], "name": "secret"}, 1), (X[0], None), (X[0], b"secret"), (X[0], {"secret"})]
)
def test_leaves_that_are_no_numbers_are_refused_by_their_type(item: Any) -> None:
    with pytest.raises(UnfitDataError, match="which makes no tensor") as caught:
        examples(Items(item))
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_items_that_are_mappings_have_no_target() -> None:
    with pytest.raises(UnfitDataError, match="is a dict") as caught:
        examples(Items({"x": X[0], "y": 1}))
    assert "(input, target)" in caught.value.fix


def test_loaders_and_samplers_of_their_own_are_refused() -> None:
    weighted = WeightedRandomSampler([0.9] + [0.1] * 5, 6)
    with pytest.raises(UnaccountedSamplingError, match="with a WeightedRandomSampler") as caught:
        examples(DataLoader(TensorDataset(X, Y), sampler=weighted))
    assert "loader.dataset" in caught.value.fix
    with pytest.raises(UnaccountedSamplingError, match="draws batches on its own"):
        examples(DataLoader(TensorDataset(X, Y), batch_size=2))
    with pytest.raises(UnaccountedSamplingError, match="data= is a sampler"):
        examples(weighted)


def test_a_users_examples_share_a_weight_of_one() -> None:
    units = Units(6, ["b", "a", "b", "c", "b", "a"])
    assert units.count == 3
    numbers, weights = units.examples_of(np.array([0, 1]))
    assert sorted(numbers[:2].tolist()) == [1, 5]
    assert sorted(numbers[2:].tolist()) == [0, 2, 4]
    assert weights.tolist() == pytest.approx([0.5, 0.5, 1 / 3, 1 / 3, 1 / 3])
    assert [len(part) for part in units.examples_of(np.zeros(0, np.int64))] == [0, 0]


def test_without_users_each_example_is_a_unit() -> None:
    numbers, weights = Units(6).examples_of(np.array([5, 2]))
    assert numbers.tolist() == [5, 2]
    assert weights.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("users", [[1, 2], [[1] * 6], [0.5] * 6, [None] * 6])
def test_users_that_name_nobody_are_refused(users: Any) -> None:
    with pytest.raises(UnfitDataError, match="users="):
        Units(6, users)

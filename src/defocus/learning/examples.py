"""The private data of a run: examples that can be taken by their numbers, each of one unit."""

from collections.abc import Sized
from contextlib import suppress
from typing import Any, final

import numpy as np
import numpy.typing as npt
import torch
from torch.utils import _pytree as trees
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler, TensorDataset, default_collate

from defocus.errors import UnaccountedSamplingError, UnfitDataError
from defocus.learning.gradients.batches import Batch
from defocus.noise.integers import Integers

__all__ = ["Examples", "Units", "Weights", "examples"]

Weights = npt.NDArray[np.float64]
"""How much each example counts."""

_TRIED = 8
"""How many examples of a dataset must make a batch before anything is charged."""

_FIX = "pass (inputs, targets), tensors or arrays with one example in each row, or a torch Dataset with a length."


@final
class Examples:
    """Examples of a known number, taken in batches of inputs and targets."""

    __slots__ = ("_dataset", "_tensors", "length")

    def __init__(self, length: int, *, tensors: Any = None, dataset: Any = None) -> None:
        self.length, self._tensors, self._dataset = length, tensors, dataset

    def take(self, numbers: Integers, device: torch.device | None = None) -> Batch:
        """The examples of these numbers, on the device; an empty batch for none."""
        if self._dataset is None:
            index = torch.from_numpy(np.ascontiguousarray(numbers))
            found = trees.tree_map(lambda leaf: leaf[index.to(leaf.device)], self._tensors)
        elif len(numbers):
            found = _collated([self._dataset[int(i)] for i in numbers])
        else:
            found = trees.tree_map(lambda leaf: leaf[:0], _collated([self._dataset[0]]))
        batch: Batch = trees.tree_map(lambda leaf: _moved(leaf, device), found)
        return batch


@final
class Units:
    """Which examples belong to which protected unit: each to itself, or all of a user's to the user."""

    __slots__ = ("_members", "_starts", "count")

    def __init__(self, length: int, users: object = None) -> None:
        self.count = length
        self._members: Integers | None = None
        self._starts: Integers | None = None
        if users is None:
            return
        labels = np.asarray(users)
        if labels.ndim != 1 or len(labels) != length:
            raise UnfitDataError(
                "users= must name one user for each example.", fix="pass a one-dimensional array as long as the data."
            )
        if labels.dtype.kind not in "iuUSb":
            raise UnfitDataError(
                f"users= must hold whole numbers or texts, but is of type {labels.dtype}.",
                fix="convert it, for example with users.astype(str).",
            )
        found, inverse = np.unique(labels, return_inverse=True)
        self.count = len(found)
        self._members = np.argsort(inverse, kind="stable").astype(np.int64)
        self._starts = np.concatenate(([0], np.cumsum(np.bincount(inverse, minlength=len(found))))).astype(np.int64)

    def examples_of(self, units: Integers) -> tuple[Integers, Weights]:
        """The examples of these units, and the weight of each: one over how many its unit has."""
        if self._members is None or self._starts is None or not len(units):
            return units, np.ones(len(units))
        parts = [self._members[self._starts[unit] : self._starts[unit + 1]] for unit in units]
        return np.concatenate(parts), np.concatenate([np.full(len(part), 1 / len(part)) for part in parts])


def examples(data: object) -> Examples:
    """Private data in one of its forms: (inputs, targets), or a torch Dataset of known length."""
    if isinstance(data, DataLoader):
        kind = type(data.sampler).__name__
        raise UnaccountedSamplingError(
            f"A DataLoader draws batches on its own, with a {kind}, and what it draws is not what would be charged.",
            fix="pass its dataset, data=loader.dataset; batches are drawn by sampling= and batch=.",
        )
    if isinstance(data, Sampler):
        raise UnaccountedSamplingError(
            "data= is a sampler. Batches are drawn by Defocus, so that what is charged is what ran.",
            fix="pass the dataset; weights belong in the loss, where clipping bounds them.",
        )
    if isinstance(data, TensorDataset):
        return _tensors(_pair(data.tensors))
    if isinstance(data, tuple | list) and len(data) == 2 and not isinstance(data, Dataset):
        return _tensors((data[0], data[1]))
    if isinstance(data, IterableDataset) or not isinstance(data, Sized) or not hasattr(data, "__getitem__"):
        raise UnfitDataError(
            f"The data, of type {type(data).__name__}, has no known size or cannot be read by number, so no rate of"
            " sampling can be charged for it.",
            fix=_FIX,
        )
    if isinstance(data, torch.Tensor | np.ndarray | dict | str | bytes):
        raise UnfitDataError(f"The data is of type {type(data).__name__}, without targets.", fix=_FIX)
    made = _some(Examples(len(data), dataset=data))
    made.take(np.unique(np.linspace(0, made.length - 1, _TRIED).astype(np.int64)))
    return made


def _tensors(pair: tuple[Any, Any]) -> Examples:
    tensors = trees.tree_map(_tensor, pair)
    leaves = [leaf for leaf in trees.tree_leaves(tensors) if isinstance(leaf, torch.Tensor)]
    if len(leaves) != len(trees.tree_leaves(tensors)) or any(leaf.dim() == 0 for leaf in leaves):
        raise UnfitDataError("The data holds something that is not an array of examples.", fix=_FIX)
    if len({len(leaf) for leaf in leaves}) != 1:
        raise UnfitDataError("Inputs and targets do not agree on the number of examples.", fix=_FIX)
    return _some(Examples(len(leaves[0]), tensors=tensors))


def _tensor(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        if leaf.dtype.kind not in "fiub":
            raise UnfitDataError(f"The data has an array of type {leaf.dtype}, which no tensor holds.", fix=_FIX)
        return torch.from_numpy(np.ascontiguousarray(leaf))
    return leaf


def _some(made: Examples) -> Examples:
    if made.length < 1:
        raise UnfitDataError("There are no examples.", fix=_FIX)
    return made


def _collated(items: list[Any]) -> Batch:
    for leaf in trees.tree_leaves(items):
        if not isinstance(leaf, torch.Tensor | np.ndarray | np.number | np.bool_ | int | float):
            raise UnfitDataError(
                f"An item of the data holds something of type {type(leaf).__name__}, which makes no tensor.",
                fix="return tensors and numbers: whole numbers for classes and tokens, a mask for what is not known.",
            )
    found: Any = None
    with suppress(Exception):  # what torch says about the examples is not attached to what is said below
        found = default_collate(items)
    if found is not None:
        return _pair(found)
    raise UnfitDataError(
        "Examples of the data differ in shape or kind, so that they make no batch.",
        fix="pad them to one length in the dataset, with a mask for the model; return tensors and numbers.",
    )


def _pair(item: Any) -> Batch:
    """Inputs and targets of an item: the last part is the target."""
    if isinstance(item, dict):
        raise UnfitDataError(
            "An item of the data is a dict, of which nothing tells what is the target.",
            fix="return (input, target); the input may be a dict of the arguments of the model.",
        )
    if not isinstance(item, tuple | list) or len(item) < 2:
        raise UnfitDataError("An item of the data is not a pair of an input and a target.", fix=_FIX)
    *inputs, target = item
    return (inputs[0] if len(inputs) == 1 else tuple(inputs)), target


def _moved(leaf: Any, device: torch.device | None) -> Any:
    return leaf.to(device) if device is not None and isinstance(leaf, torch.Tensor) else leaf

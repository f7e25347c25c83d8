"""The private data of a run: examples that can be taken by their numbers, each of one unit."""

import warnings
from collections.abc import Callable, Mapping, Sized
from typing import Any, final

import numpy as np
import numpy.typing as npt
import torch
from torch.utils import _pytree as trees
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Subset,
    TensorDataset,
    default_collate,
)

from defocus.errors import UnaccountedSamplingError, UnfitDataError
from defocus.learning.examples import PrivateExamples, owners
from defocus.learning.gradients.layouts import Batch
from defocus.learning.noise import KEY_BYTES, Stream
from defocus.learning.ownership import bounded, owned
from defocus.mechanisms.grid import read_column
from defocus.noise import permutation
from defocus.noise.ranges import Integers

__all__ = ["Collated", "Examples", "Units", "Weights", "examples", "table_examples", "tensors_of", "without_loader"]

Weights = npt.NDArray[np.float64]
"""How much each example counts."""

_LABELS = ("labels", "label")
_ORDER = bytes(KEY_BYTES)
"""No secret: examples with several owners are gone through in one public order, which their contents do not decide."""
_FIX = "pass (inputs, targets), tensors or arrays with one example in each row, or a torch Dataset with a length."


@final
class Examples:
    """Examples of a known number and a public form, taken in batches of inputs and targets.

    Guarantee:
        What one item of a dataset is decides about that item alone. It counts if it has the declared form: the same
        mappings and tuples, tensors, arrays or numbers of the same shapes, of types that the declared ones can hold.
        Whatever else it is, or raises when it is read, it is left out.
    Assumes:
        An item of a dataset depends on its number, and on generators that all share, not on items read before.
    """

    __slots__ = ("_dataset", "_form", "_tensors", "length")

    def __init__(self, length: int, form: Batch, *, tensors: Any = None, dataset: Any = None) -> None:
        self.length, self._form, self._tensors, self._dataset = length, form, tensors, dataset

    def form(self, device: torch.device | None = None) -> Batch:
        """A batch of one example that has the form of all and is zero: made of public facts."""
        return _moved(self._form, device)

    def take(self, numbers: Integers, device: torch.device | None = None) -> Batch:
        """The examples of these numbers that have the declared form, on the device; an empty batch for none."""
        if self._dataset is None:
            index = torch.from_numpy(np.ascontiguousarray(numbers))
            return _moved(trees.tree_map(lambda leaf: leaf[index.to(leaf.device)], self._tensors), device)
        read = (self._read(int(i)) for i in numbers)
        items = [item for item in read if item is not None]
        if not items:
            return _moved(trees.tree_map(lambda leaf: leaf[:0], self._form), device)
        return _moved(trees.tree_map(lambda *column: torch.stack(column), *items), device)

    def holds(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor lies in the memory of the examples, as far as they are kept in tensors or arrays."""
        kept, inside = self._tensors, self._dataset
        while isinstance(inside, Subset):
            inside = inside.dataset
        leaves = trees.tree_leaves([kept, list(vars(inside).values()) if hasattr(inside, "__dict__") else []])
        mine = tensor.untyped_storage().data_ptr()
        theirs = (
            leaf.untyped_storage().data_ptr() if isinstance(leaf, torch.Tensor) else leaf.__array_interface__["data"][0]
            for leaf in leaves
            if isinstance(leaf, torch.Tensor | np.ndarray)
        )
        return tensor.numel() > 0 and mine in theirs

    def _read(self, number: int) -> Batch | None:
        try:
            example: Batch = _fitted(_pair(self._dataset[number]), self._form)
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 -- whatever one item is or does, it says nothing about the others
            return None
        return example


@final
class Units:
    """Which examples belong to which unit that is drawn: each to itself, or all of a user's to the user.

    An example that is nobody's is left out, as rows without a person are in tables. With ``per_person``, examples may
    have several owners and are drawn one by one; some are left out, so that nobody has more than so many.
    """

    __slots__ = ("_members", "_starts", "count", "nobody", "shared")

    def __init__(self, length: int, users: object = None, per_person: int | None = None) -> None:
        self.count = length
        self.shared: int | None = None
        """Of how many examples the used ones are a part that was chosen by their owners; None where all are used."""
        self.nobody = 0
        """How many of them have no owner."""
        self._members: Integers | None = None
        self._starts: Integers | None = None
        if users is None:
            return
        if per_person is not None:
            found = owned(users, length)
            self._members = bounded(found, per_person, permutation(length, Stream(_ORDER, "owners")).tolist())
            self.count, self.shared, self.nobody = len(self._members), length, found.nobody
            return
        owner = owners(users, length)
        self.count = int(owner.max(initial=-1)) + 1
        order = np.argsort(owner, kind="stable")
        self._members = order[np.count_nonzero(owner < 0) :]
        self._starts = np.searchsorted(owner[self._members], np.arange(self.count + 1))

    def examples_of(self, units: Integers) -> tuple[Integers, Weights]:
        """The examples of these units, and the weight of each: one over how many its unit has."""
        if self._members is None or not len(units):
            return units, np.ones(len(units))
        if self._starts is None:
            return self._members[units], np.ones(len(units))
        parts = [self._members[self._starts[unit] : self._starts[unit + 1]] for unit in units]
        return np.concatenate(parts), np.concatenate([np.full(len(part), 1 / len(part)) for part in parts])


def without_loader(data: Any) -> tuple[Any, int | None]:
    """The dataset and the batch size of a DataLoader; other data as it is.

    A loader whose batches are not all alike (weights, parts) is refused: the trainer draws its own. A ``collate_fn`` is
    applied to every example by itself, so that no example decides how others are padded.
    """
    if not isinstance(data, DataLoader):
        return data, None
    plain = type(data.sampler) in {RandomSampler, SequentialSampler} and type(data.batch_sampler) is BatchSampler
    if not plain:
        kind = type(data.sampler).__name__
        raise UnaccountedSamplingError(
            f"A DataLoader with a {kind} or a rule of its own for batches draws other ones than would be charged.",
            fix="pass its dataset, data=loader.dataset; batches are drawn by sampling= and batch_size=.",
        )
    warnings.warn(
        "Of a DataLoader the dataset, the batch size and the collate_fn are taken. Batches are drawn by the trainer,"
        " with sampling=, so that what is charged is what ran; workers are not used.",
        UserWarning,
        stacklevel=3,
    )
    plainly = data.collate_fn is default_collate
    return data.dataset if plainly else Collated(data.dataset, data.collate_fn), data.batch_size


@final
class Collated:
    """Items of a dataset as a collator makes them, each by itself: a batch of one, without its first axis.

    Guarantee:
        What is made of an item depends on that item alone. A collator that pads must pad to a public length, as the
        declared form of an example has it: what comes out in another shape is left out.

    >>> Collated([[1, 2], [3]], lambda items: torch.tensor([(item + [0, 0])[:2] for item in items]))[1]
    tensor([3, 0])
    """

    __slots__ = ("_collate", "dataset")

    def __init__(self, dataset: Any, collate: Callable[[list[Any]], Any]) -> None:
        self.dataset, self._collate = dataset, collate

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, number: int) -> Any:
        return trees.tree_map(lambda leaf: leaf[0], _parts(self._collate([self.dataset[number]])))


def _parts(batch: Any) -> Any:
    """What a collator made, with mappings of any class (BatchEncoding, UserDict) as plain dicts."""
    return dict(batch) if isinstance(batch, Mapping) else batch


def examples(data: object, example: object = None, probe: Batch | None = None) -> Examples:
    """Private data in one of its forms: (inputs, targets), or a torch Dataset of known length.

    Items may be tuples, of which the last part is the target, or dicts with a target called ``labels`` or ``label``.

    The form of an example is public: arrays have one, and that of the items of a Dataset is declared, by one that is
    made up or by a probe. No item is read to find out: that one would decide what becomes of all the others.
    """
    if isinstance(data, Sampler):
        raise UnaccountedSamplingError(
            "data= is a sampler. Batches are drawn by Defocus, so that what is charged is what ran.",
            fix="pass the dataset; weights belong in the loss, where clipping bounds them.",
        )
    if isinstance(data, TensorDataset):
        return _some(_tensors(_pair(data.tensors)))
    if isinstance(data, tuple | list) and len(data) == 2 and not isinstance(data, Dataset):
        return _some(_tensors((data[0], data[1])))
    if isinstance(data, IterableDataset) or not isinstance(data, Sized) or not hasattr(data, "__getitem__"):
        raise UnfitDataError(
            f"The data, of type {type(data).__name__}, has no known size or cannot be read by number, so no rate of"
            " sampling can be charged for it.",
            fix=_FIX,
        )
    if isinstance(data, torch.Tensor | np.ndarray | dict | str | bytes):
        raise UnfitDataError(f"The data is of type {type(data).__name__}, without targets.", fix=_FIX)
    return _some(Examples(len(data), _declared(data, example, probe), dataset=data))


def table_examples(table: PrivateExamples) -> tuple[Examples, Units]:
    """Examples of a table, of which there may be none, and the unit of each."""
    pair, users = tensors_of(table)
    listed = _tensors(pair)
    return listed, Units(listed.length, users)


def tensors_of(table: PrivateExamples) -> tuple[tuple[torch.Tensor, torch.Tensor], list[Any] | None]:
    """Examples of a table as tensors, and whose each is, where persons are protected.

    Inputs are float32, and NULL is zero. A target with declared values is the place of its value among them, in their
    order; otherwise truth values and whole numbers are int64, and numbers are float32 with one column. A target that is
    NULL, or none of the declared values, is -1 or NaN, which losses do not take: the example counts as zero.
    """
    inputs, target, persons = table.read_examples()
    if target is None:
        raise UnfitDataError(
            "These examples have no target.", fix='name one: table.examples(["age", "days"], "readmitted").'
        )
    values, there = read_column(target)
    listed = table.target_values
    if listed is not None:
        places = {value: place for place, value in enumerate(sorted(listed))}
        values = np.array([places.get(value, -1) for value in target.to_pylist()])
    elif values.dtype.kind in "biu":
        values = np.where(True if there is None else there, values.astype(np.int64), -1)
    elif values.dtype.kind != "f":
        raise UnfitDataError(
            "The target is not a number, and its values are not declared.",
            fix='declare them before examples(…): table.declare(ward=["A", "B"]).',
        )
    rows = torch.from_numpy(np.where(np.isnan(inputs), 0.0, inputs)[:-1]).float()  # the last is nobody's
    aims = torch.from_numpy(np.array(values[:-1]))
    users = persons[:-1] if table.unit.kind == "user" else None
    return (rows, aims.float()[:, None] if values.dtype.kind == "f" else aims.long()), users


def _declared(data: Any, example: object, probe: Batch | None) -> Batch:
    """The form of the items of a dataset."""
    if example is not None:
        if isinstance(example, Mapping):
            example = {name: np.asarray(part) if isinstance(part, list) else part for name, part in example.items()}
        return _zeros(trees.tree_map(lambda leaf: _plain(leaf)[None], _pair(example)))
    if probe is not None:
        return _zeros(trees.tree_map(_plain, tuple(probe)))
    while type(data) is Subset:
        data = data.dataset
    if type(data) is TensorDataset:
        return _zeros(_pair(data.tensors))
    raise UnfitDataError(
        f"What the items of the data look like, of type {type(data).__name__}, is not declared, and no private one"
        " decides that for all of them.",
        fix="pass example=(input, target), one synthetic item with the shapes and types of all, such as"
        " example=(torch.zeros(3, 32, 32), 0); or pass (inputs, targets) as tensors or arrays.",
    )


def _tensors(pair: tuple[Any, Any]) -> Examples:
    tensors = trees.tree_map(_tensor, pair)
    leaves = [leaf for leaf in trees.tree_leaves(tensors) if isinstance(leaf, torch.Tensor)]
    if len(leaves) != len(trees.tree_leaves(tensors)) or any(leaf.dim() == 0 for leaf in leaves):
        raise UnfitDataError("The data holds something that is not an array of examples.", fix=_FIX)
    if len({len(leaf) for leaf in leaves}) != 1:
        raise UnfitDataError("Inputs and targets do not agree on the number of examples.", fix=_FIX)
    return Examples(len(leaves[0]), _zeros(tensors), tensors=tensors)


def _tensor(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        if leaf.dtype.kind not in "fiub":
            raise UnfitDataError(f"The data has an array of type {leaf.dtype}, which no tensor holds.", fix=_FIX)
        with warnings.catch_warnings(action="ignore"):  # that an array may only be read; nobody writes to it
            return torch.from_numpy(np.ascontiguousarray(leaf))
    return _plain(leaf) if isinstance(leaf, torch.Tensor) else leaf


def _some(listed: Examples) -> Examples:
    if listed.length < 1:
        raise UnfitDataError("There are no examples.", fix=_FIX)
    return listed


def _zeros(batch: Batch) -> Batch:
    """One example of the form of these."""
    zeros: Batch = trees.tree_map(lambda leaf: leaf.new_zeros((1, *leaf.shape[1:])), tuple(batch))
    return zeros


def _fitted(item: Any, form: Any) -> Any:
    """An item in the declared form, or an error."""
    if isinstance(form, torch.Tensor):
        leaf = _plain(np.asarray(item) if isinstance(item, list) else item)  # lists of numbers, as tokenizers give
        if leaf.shape != form.shape[1:] or not torch.can_cast(leaf.dtype, form.dtype):
            raise _unlike()
        return leaf.to(form.device, form.dtype, copy=True)  # the dataset may use its memory again for the next item
    if isinstance(form, Mapping):
        if not isinstance(item, Mapping) or item.keys() != form.keys():
            raise _unlike()
        return {name: _fitted(item[name], each) for name, each in form.items()}
    if not isinstance(item, tuple | list) or len(item) != len(form):
        raise _unlike()
    parts = [_fitted(*pair) for pair in zip(item, form, strict=True)]
    return form._make(parts) if hasattr(form, "_make") else type(form)(parts)  # those with names are made otherwise


def _plain(leaf: Any) -> torch.Tensor:
    """A tensor that is nothing else: without a graph, whatever class of tensor, array or number it was."""
    if isinstance(leaf, torch.Tensor):
        with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001 -- its only name
            dense = leaf.layout is torch.strided and not leaf.is_nested and not leaf.is_quantized
            if dense and type(leaf).__torch_dispatch__ is torch.Tensor.__torch_dispatch__:
                return leaf.detach().as_subclass(torch.Tensor)
    elif isinstance(leaf, np.ndarray | np.number | np.bool_) and leaf.dtype.kind in "fiub":
        return torch.from_numpy(np.asarray(leaf, leaf.dtype.newbyteorder("="), order="C"))
    elif isinstance(leaf, bool | int | float):
        kind = torch.bool if isinstance(leaf, bool) else torch.int64 if isinstance(leaf, int) else torch.float64
        return torch.tensor(leaf, dtype=kind)
    raise UnfitDataError(
        f"An item of the data holds something of type {type(leaf).__name__}, which makes no plain tensor.",
        fix="return tensors and numbers: whole numbers for classes and tokens, a mask for what is not known.",
    )


def _unlike() -> UnfitDataError:
    return UnfitDataError("An item of the data has not the declared form.", fix=_FIX)


def _pair(item: Any) -> Batch:
    """Inputs and targets of an item: the last part of a tuple, and what is called a label in a dict, is the target."""
    if isinstance(item, Mapping):
        found = [name for name in _LABELS if name in item]
        if len(found) != 1:
            raise UnfitDataError(
                "An item of the data is a dict, of which nothing tells what is the target.",
                fix="call it labels or label, one of them; or return (input, target), where the input may be a dict of"
                " the arguments of the model.",
            )
        return {name: part for name, part in item.items() if name != found[0]}, item[found[0]]
    if not isinstance(item, tuple | list) or len(item) < 2:
        raise UnfitDataError("An item of the data is not a pair of an input and a target.", fix=_FIX)
    *inputs, target = item
    return (inputs[0] if len(inputs) == 1 else tuple(inputs)), target


def _moved(batch: Batch, device: torch.device | None) -> Batch:
    moved: Batch = trees.tree_map(lambda leaf: leaf if device is None else leaf.to(device), tuple(batch))
    return moved
